"""Tables that several profiles share, and which profiles these are.  docs/formats/archive.md describes the sections."""

from bisect import bisect_right
from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.model import Model

_FULL, _MOST = lib.FP_ARCHIVE_SKETCH, (1 << 32) - 1  # hashes of a sketch, the largest one


def united(base: bytes, others: Iterable[bytes], least: float) -> bytes | None:
    """The tables of `base` with the further entries of `others`.

    None if there are less than `least` times as many entries, or too many for differences to them.
    """
    model = Model()
    ids = owned(lib.fp_archive_ids_new(model.c), "the archive's ids")
    err = ffi.new("struct fp_err *")
    if lib.fp_archive_tables_read(ids, base, len(base), err):
        return None
    before = sum(ids.n)
    for one in others:
        ids = owned(lib.fp_archive_ids_new(model.c), "the archive's ids")
        if lib.fp_archive_tables_read(ids, one, len(one), err):
            return None
        strings = model.c.strings
        if strings.start[strings.n] > lib.FP_ARCHIVE_MAX_DIFFERENCE:
            return None
    out = owned(ffi.new("struct fp_buf *"), "tables")
    ends = ffi.new("uint32_t[]", [1] * lib.FP_ARCHIVE_TABLES)
    enough(lib.fp_archive_tables_write(model.c, ends, 0, out))
    few = sum(ends) < least * before
    return None if few or out.n > lib.FP_ARCHIVE_MAX_DIFFERENCE else bytes(ffi.buffer(out.p, out.n))


def sketch_of(tables: bytes) -> list[int]:
    """The sketch of a payload of TABLES; none if it is damaged."""
    out = ffi.new("uint32_t[]", lib.FP_ARCHIVE_SKETCH)
    n = lib.fp_archive_sketch(tables, len(tables), out)
    if n == lib.FP_E_NOMEM:
        raise MemoryError("no memory for a sketch")
    return ffi.unpack(out, n) if n > 0 else []


def common(own: list[int], other: list[int], unknown: float) -> float:
    """The part of a profile's entries that another one has, by their sketches; `unknown` if these do not say."""
    if not own or not other:
        return float(own == other)
    # a full sketch says nothing about hashes above its last one
    limit = min(own[-1] if len(own) == _FULL else _MOST, other[-1] if len(other) == _FULL else _MOST)
    compared = own[: bisect_right(own, limit)]
    return len(set(compared).intersection(other)) / len(compared) if compared else unknown
