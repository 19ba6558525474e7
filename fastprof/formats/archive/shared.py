"""Tables that several profiles share.  docs/formats/archive.md describes the section."""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core.model import Model
from fastprof.core.owner import owned


def united(base: bytes, others: Iterable[bytes], least: float) -> bytes | None:
    """The tables of `base` with the further entries of `others`.

    None if there are less than `least` times as many entries, or too many for differences to them.
    """
    model = Model()
    ids = owned(lib.fp_archive_ids_new(model.c), lib.fp_archive_ids_free, "the archive's ids")
    err = ffi.new("struct fp_err *")
    if lib.fp_archive_tables_read(ids, base, len(base), err):
        return None
    before = sum(ids.n)
    for one in others:
        ids = owned(lib.fp_archive_ids_new(model.c), lib.fp_archive_ids_free, "the archive's ids")
        if lib.fp_archive_tables_read(ids, one, len(one), err):
            return None
        strings = model.c.strings
        if strings.start[strings.n] > lib.FP_ARCHIVE_MAX_DIFFERENCE:
            return None
    out = owned(ffi.new("struct fp_buf *"), lib.fp_buf_free, "tables")
    ends = ffi.new("uint32_t[]", [1] * lib.FP_ARCHIVE_TABLES)
    if lib.fp_archive_tables_write(model.c, ends, out):
        raise MemoryError("no memory for tables")
    few = sum(ends) < least * before
    return None if few or out.n > lib.FP_ARCHIVE_MAX_DIFFERENCE else bytes(ffi.buffer(out.p, out.n))
