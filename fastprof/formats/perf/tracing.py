"""The formats of tracepoints in a recording, by which the fields of their samples are read.

17 08 44 "tracing"  "0.6" 0  u8 big-endian, u8 size of a long  u32 page size
"header_page" 0 u64 n, n bytes   "header_event" 0 u64 n, n bytes   u32 formats: each u64 n, n bytes
u32 systems: each name 0, u32 events: each u64 n, n bytes of text:

    name: sched_switch
    ID: 372
    format:
        field:pid_t next_pid;   offset:56;  size:4;  signed:1;
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fastprof.core import lazy_re as re
from fastprof.core._c import lib
from fastprof.core._typing import NamedTuple

_MAGIC = b"\x17\x08\x44tracing"
_ID = re.compile(rb"^ID: ?([0-9]{1,9})$", re.MULTILINE)
_NAME = re.compile(rb"^name: ?([^\n]+)$", re.MULTILINE)
_FIELD = re.compile(rb"field:([^;\n]{1,200});\s*offset:([0-9]{1,5});\s*size:([0-9]{1,5});(?:\s*signed:([01]);)?")
_COMMON = re.compile(rb"\bcommon_\w+\s*$")  # fields that all tracepoints share
_DECLARED = re.compile(rb"(.*?)(\w+)(\[[^\]]*\])?", re.DOTALL)
# By the value's location (b"" is the field itself) and its type: text, signed or unsigned number.
_KINDS = {
    b"": (lib.FP_PERF_TEXT, lib.FP_PERF_UNSIGNED, lib.FP_PERF_SIGNED),
    b"__data_loc": (lib.FP_PERF_TEXT_ELSEWHERE, lib.FP_PERF_UNSIGNED_ELSEWHERE, lib.FP_PERF_SIGNED_ELSEWHERE),
    b"__rel_loc": (lib.FP_PERF_TEXT_AFTER, lib.FP_PERF_UNSIGNED_AFTER, lib.FP_PERF_SIGNED_AFTER),
}
# Sizes of C types, for arrays of constant length.
_BITS = re.compile(rb"(?:\b|_)[a-z]*(8|16|32|64)(?:_t)?$")
_NBYTES = dict.fromkeys([b"char", b"bool", b"_Bool"], 1) | {b"short": 2, b"long long": 8}
_NBYTES |= dict.fromkeys([b"int", b"unsigned", b"signed", b"pid_t", b"dev_t", b"uid_t", b"gid_t", b"gfp_t"], 4)
_NBYTES |= dict.fromkeys([b"loff_t", b"sector_t", b"ktime_t"], 8)
_LONGS = (b"long", b"size_t", b"ssize_t", b"cpumask_t")
_MOST_FIELDS = 64
_MOST_TRACEPOINTS = 1 << 14
_MOST_NBYTES = 16 << 20  # as in csrc/perf/records.c


class Field(NamedTuple):
    name: bytes
    kind: int  # enum fp_perf_field_kind
    offset: int
    nbytes: int
    each: int  # bytes of a number
    is_array: bool


class Tracepoint(NamedTuple):
    id: int
    name: str  # sched:sched_switch
    fields: tuple[Field, ...]
    n_dropped: int = 0  # fields that do not become labels


class _Bytes:
    """Reads the section in order.  Errors: struct.error beyond its end."""

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
    """The tracepoints of the section.  Errors: struct.error where the data are damaged."""
    left = _Bytes(data)
    n = 0
    if len(data) > _MOST_NBYTES or left.take(len(_MAGIC)) != _MAGIC:
        raise struct.error("this is not a section of tracepoint formats")
    left.name()
    left.order = ">" if left.number("B") else "<"
    long = left.number("B")
    left.take(4)
    for _ in range(2):
        left.name()
        left.sized()
    for _ in range(left.number("I")):
        left.sized()
    for _ in range(left.number("I")):
        system = left.name()
        for _ in range(left.number("I")):
            found = _tracepoint(system, left.sized(), long)
            if found is not None:
                n += 1
                yield found
            if n == _MOST_TRACEPOINTS:
                return


def _tracepoint(system: bytes, text: bytes, long: int) -> Tracepoint | None:
    """Parse a format; `long` is the size of a long on the recorded machine."""
    id_, name = _ID.search(text), _NAME.search(text)
    if id_ is None or name is None:
        return None
    found = [match.groups() for match in _FIELD.finditer(text.partition(b"print fmt:")[0])]
    own = [field for field in found if not _COMMON.search(field[0])]
    known = [field for groups in own if (field := _field(*groups, long=long)) is not None][:_MOST_FIELDS]
    full = b":".join((system, name[1].strip())).decode("utf-8", "replace")
    return Tracepoint(int(id_[1]), full, tuple(known), len(own) - len(known))


def _field(declared: bytes, offset: bytes, nbytes: bytes, signed: bytes | None, *, long: int) -> Field | None:
    """Parse `char prev_comm[16]`, `__data_loc char[] filename` or `pid_t next_pid`.  None for structures, arrays of
    them, and arrays of constant length whose type is unknown.
    """
    match = _DECLARED.fullmatch(declared.strip())
    n = int(nbytes)
    if match is None or not n:
        return None
    type_, name, array = match.groups()
    place = type_.partition(b" ")[0]
    place = place if place in _KINDS else b""
    type_ = type_.removeprefix(place).strip().removesuffix(b"[]").strip()
    if re.match(rb"(?:const )?(?:struct|union)\b[^*]*$", type_):
        return None
    text, unsigned, with_sign = map(int, _KINDS[place])
    is_text = re.search(rb"\bchar\b", type_) is not None and bool(place or array)
    kind = text if is_text else with_sign if signed == b"1" else unsigned
    if place:
        each = 1 if is_text else _nbytes_of(type_, long)
        return Field(name, kind, int(offset), n, each, True) if each and n == 4 else None
    length = int(array[1:-1]) if array and array[1:-1].isdigit() else 0
    each = 1 if is_text else n if not array else n // length if length else _nbytes_of(type_, long)
    if not each or each > 8 or n % each or (length and n % length):
        return None
    return Field(name, kind, int(offset), n, each, bool(array))


def _nbytes_of(type_: bytes, long: int) -> int:
    """The size of a number of this type; 0 for an unknown type."""
    if (match := _BITS.search(type_)) is not None:
        return int(match[1]) // 8
    words = type_.split()
    if words[-2:-1] in ([b"long"], [b"short"]) and words[-1] == b"int":
        del words[-1]
    last = words[-1] if words else b""
    if last.endswith(b"*") or (last in _LONGS and words[-2:] != [b"long", b"long"]):
        return long if long in (4, 8) else 0
    return _NBYTES.get(b" ".join(words[-2:])) or _NBYTES.get(last, 0)
