"""The identity of rows across profiles, and what is kept of a profile."""

from __future__ import annotations

from array import array

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.labels import GROUP_END
from fastprof.core.unknown_names import known, text_of

Key = tuple[bytes, bytes, bytes, int, str]  # name, file, object, line, labels


def names_of(key: Key) -> tuple[str, str, int, str, str]:
    """Name, file, line, object and labels, as text."""
    name, file, object_, line, label = key
    text = text_of(name).replace(GROUP_END.decode(), " ") if name else ""
    return text, known(file), line, known(object_), label


Costs = tuple["array[int]", "array[int]", "array[int]", "array[int]"]  # rows; self and inclusive costs and calls


def _pointers(costs: Costs) -> Any:
    kept = ffi.new("struct fp_trend_kept *")
    kept.n = len(costs[0])
    kept.rows = ffi.from_buffer("uint32_t[]", costs[0])
    kept.self, kept.inclusive, kept.calls = (ffi.from_buffer("int64_t[]", column) for column in costs[1:])
    return kept


def packed(costs: Costs) -> bytes:
    """Costs as bytes."""
    room = ffi.new("uint8_t[]", 8 + 28 * len(costs[0]))
    return ffi.buffer(room, lib.fp_trend_pack(_pointers(costs), room))[:]


def unpacked(data: bytes, most: int) -> Costs:
    """What was packed.  Errors: ValueError for other bytes, and for a row that is not below `most`."""
    n = int.from_bytes(data[:4], "little")
    if len(data) < 8 + 4 * n:
        raise ValueError("damaged costs")
    costs = array("I", bytes(4 * n)), array("q", bytes(8 * n)), array("q", bytes(8 * n)), array("q", bytes(8 * n))
    if lib.fp_trend_unpack(data, len(data), most, _pointers(costs)) != lib.FP_DONE:
        raise ValueError("damaged costs")
    return costs


class Entry(NamedTuple):
    """What is kept of a profile: facts as JSON, and costs, whose rows are names of the cache."""

    facts: dict[str, Any]
    costs: Costs
