"""The identity of rows across profiles, and what is kept of a profile."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence

from fastprof.bridges.rows.pair import stem
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, Pointer
from fastprof.core.labels import GROUP_END
from fastprof.core.unknown_names import known, text_of

Key = tuple[bytes, bytes, bytes, int, str]  # name, file, object, line, labels


def names_of(key: Key) -> tuple[str, str, int, str, str]:
    """Name, file, line, object and labels, as text."""
    name, file, object_, line, label = key
    text = text_of(name).replace(GROUP_END.decode(), " ") if name else ""
    return text, known(file), line, known(object_), label


def unversioned(key: Key) -> tuple[object, ...]:
    """What another build leaves unchanged."""
    name, file, object_, line, label = key
    return name or (file.rpartition(b"/")[2] if not object_ else b""), stem(object_), line, label


Costs = tuple["array[int]", "array[int]", "array[int]", "array[int]"]  # rows; self and inclusive costs and calls


def _pointers(costs: Costs) -> Any:
    kept = ffi.new("struct fp_trend_kept *")
    kept.n = len(costs[0])
    kept.rows = ffi.from_buffer("uint32_t[]", costs[0])
    kept.self, kept.inclusive, kept.calls = (ffi.from_buffer("int64_t[]", column) for column in costs[1:])
    return kept


def packed(costs: Costs, before: int = 0) -> bytes:
    """Costs as bytes; `before`: rows are not among them, but so many bytes before."""
    room = ffi.new("uint8_t[]", 12 + 28 * len(costs[0]))
    return ffi.buffer(room, lib.fp_trend_pack(_pointers(costs), before, room))[:]


def unpacked(data: bytes | bytearray | mmap.mmap, most: int, at: int = 0, size: int | None = None) -> Costs:
    """What was packed.  Errors: ValueError for other bytes, and for a row that is not below `most`."""
    size = len(data) - at if size is None else size
    n = int.from_bytes(data[at : at + 4], "little")
    if n > len(data):  # each has a byte at least
        raise ValueError("damaged costs")
    costs = array("I", bytes(4 * n)), array("q", bytes(8 * n)), array("q", bytes(8 * n)), array("q", bytes(8 * n))
    made = _pointers(costs)
    its: Pointer[int] = ffi.from_buffer("uint8_t[]", data)
    if lib.fp_trend_unpack(its, len(data), at, size, most, made) != lib.FP_DONE:
        raise ValueError("damaged costs")
    if made.n == n:
        return costs
    ids, own, inclusive, calls = costs
    return ids[: made.n], own[: made.n], inclusive[: made.n], calls[: made.n]


def together(all_: Sequence[Costs], names: Sequence[int], n_names: int) -> tuple[bytes, list[bytes]] | None:
    """Costs of several profiles: their rows, which are these `names`, and the costs of each.  None: a profile has a row
    without costs, as if only others had it."""
    places, n = array("I", bytes(4 * n_names)), len(names)
    for place, name in enumerate(names):
        places[name] = place
    wide = array("I", names), array("q", bytes(8 * n)), array("q", bytes(8 * n)), array("q", bytes(8 * n))
    rows, found = b"".join(name.to_bytes(4, "little") for name in names), list[bytes]()
    at = len(rows)
    for costs in all_:
        if lib.fp_trend_spread(_pointers(costs), ffi.from_buffer("uint32_t[]", places), _pointers(wide)) != lib.FP_DONE:
            return None
        found.append(packed(wide, at))
        at += len(found[-1])
    return rows, found


class Entry(NamedTuple):
    """What is kept of a profile: facts as JSON, and costs, whose rows are names of the cache."""

    facts: dict[str, Any]
    costs: Costs
