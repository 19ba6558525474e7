"""The formats of tracepoints that a recording describes, so that the fields of their samples can be read.

17 08 44 "tracing"  "0.6" 0  u8 big-endian, u8 size of a long  u32 page size
"header_page" 0 u64 n, n bytes   "header_event" 0 u64 n, n bytes   u32 formats: each u64 n, n bytes
u32 systems: each name 0, u32 events: each u64 n, n bytes of text:

    name: sched_switch
    ID: 372
    format:
        field:pid_t next_pid;   offset:56;  size:4;  signed:1;
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from fastprof.core._c import lib
from fastprof.core._typing import NamedTuple

_MAGIC = b"\x17\x08\x44tracing"
_ID = re.compile(rb"^ID: ?([0-9]{1,9})$", re.M)
_NAME = re.compile(rb"^name: ?([^\n]+)$", re.M)
_FIELD = re.compile(rb"field:([^;\n]{1,200});\s*offset:([0-9]{1,5});\s*size:([0-9]{1,5});(?:\s*signed:([01]);)?")
_DECLARED = re.compile(rb"(.*?)(\w+)(\[[^\]]*\])?", re.S)
_ELSEWHERE = {b"__data_loc": int(lib.FP_PERF_TEXT_ELSEWHERE), b"__rel_loc": int(lib.FP_PERF_TEXT_AFTER)}
_MOST_FIELDS = 64
_MOST_TRACEPOINTS = 1 << 14
_MOST_NBYTES = 16 << 20  # as in csrc/perf/records.c


class Field(NamedTuple):
    name: bytes
    kind: int  # enum fp_perf_field_kind
    offset: int
    nbytes: int
    each: int  # bytes of a number: less than `nbytes` in an array


class Tracepoint(NamedTuple):
    id: int
    name: str  # sched:sched_switch
    fields: tuple[Field, ...]


class _Bytes:
    """Takes them apart.  Errors: struct.error beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.order = "<"

    def take(self, n: int) -> bytes:
        if n > len(self._data) - self._at:
            raise struct.error("the formats end too early")
        self._at += n
        return self._data[self._at - n : self._at]

    def number(self, kind: str) -> int:
        return int(struct.unpack(self.order + kind, self.take(struct.calcsize(kind)))[0])

    def name(self) -> bytes:
        end = self._data.find(b"\0", self._at)
        return self.take(end + 1 - self._at)[:-1] if end >= 0 else self.take(len(self._data) + 1)

    def sized(self) -> bytes:
        return self.take(self.number("Q"))


def tracepoints(data: bytes) -> Iterator[Tracepoint]:
    """Errors: struct.error where the data are damaged."""
    left = _Bytes(data)
    n = 0
    if len(data) > _MOST_NBYTES or left.take(len(_MAGIC)) != _MAGIC:
        raise struct.error("these are no formats of tracepoints")
    left.name()
    left.order = ">" if left.number("B") else "<"
    left.take(5)
    for _ in range(2):
        left.name()
        left.sized()
    for _ in range(left.number("I")):
        left.sized()
    for _ in range(left.number("I")):
        system = left.name()
        for _ in range(left.number("I")):
            found = _tracepoint(system, left.sized())
            if found is not None:
                n += 1
                yield found
            if n == _MOST_TRACEPOINTS:
                return


def _tracepoint(system: bytes, text: bytes) -> Tracepoint | None:
    id_, name = _ID.search(text), _NAME.search(text)
    if id_ is None or name is None:
        return None
    fields = (_field(*match.groups()) for match in _FIELD.finditer(text.partition(b"print fmt:")[0]))
    known = [field for field in fields if field is not None and not field.name.startswith(b"common_")]
    full = b":".join((system, name[1].strip())).decode("utf-8", "replace")
    return Tracepoint(int(id_[1]), full, tuple(known[:_MOST_FIELDS]))


def _field(declared: bytes, offset: bytes, nbytes: bytes, signed: bytes | None) -> Field | None:
    """`char prev_comm[16]`, `__data_loc char[] filename`, `pid_t next_pid`; None for structures and arrays of them."""
    match = _DECLARED.fullmatch(declared.strip())
    n = int(nbytes)
    if match is None or not n:
        return None
    type_, name, array = match.groups()
    is_text = re.search(rb"\bchar\b", type_) is not None
    elsewhere = _ELSEWHERE.get(type_.partition(b" ")[0])
    if elsewhere is not None:
        return Field(name, elsewhere, int(offset), n, 4) if is_text and n == 4 else None
    if array and is_text:
        return Field(name, int(lib.FP_PERF_TEXT), int(offset), n, 1)
    length = int(array[1:-1]) if array and array[1:-1].isdigit() else 0 if array else 1
    if not length or n % length or n // length > 8:
        return None
    kind = lib.FP_PERF_SIGNED if signed == b"1" else lib.FP_PERF_UNSIGNED
    return Field(name, int(kind), int(offset), n, n // length)
