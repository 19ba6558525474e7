"""The parts of perf.data around the records: header, attributes and features."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fastprof.core._typing import NamedTuple

HEADER_NBYTES = 104
PIPE_HEADER_NBYTES = 16
_OLD_HEADER_NBYTES = 72
_OLD_ATTR_SIZES = (64, 72, 80, 96, 104, 112, 120, 128, 136, 144)
_CLOCK = 25  # the bit that `clock` counts
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
N_FEATURES = 256


class Section(NamedTuple):
    offset: int
    nbytes: int


class Header(NamedTuple):
    order: str  # the byte order for struct: "<" or ">"
    pipe: bool
    attr_nbytes: int = 0  # of an entry of `attrs`
    attrs: Section = Section(0, 0)
    data: Section = Section(0, 0)
    features: tuple[int, ...] = ()  # their numbers; the sections follow the data


class Attr(NamedTuple):
    """A struct perf_event_attr; fields that an older one lacks are 0."""

    type: int
    config: int
    period: int  # or a frequency
    sample_type: int
    read_format: int
    flags: int
    config1: int
    branch_type: int
    regs_user: int
    regs_intr: int
    clock: int | None  # clockid_t, None for the kernel's own

    @property
    def is_frequency(self) -> bool:
        return bool(self.flags >> 10 & 1)


def byte_order(head: bytes) -> str:
    if head.startswith(b"2ELIFREP"):
        return ">"
    if head.startswith(b"PERFFILE") and len(head) >= 24:  # version 1: the header has no byte order
        return "<" if struct.unpack_from("<Q", head, 16)[0] - 16 in _OLD_ATTR_SIZES else ">"
    return "<"


def header(head: bytes) -> Header | None:
    """Parse the header in the first bytes of a file; None if they are too few."""
    if len(head) < PIPE_HEADER_NBYTES:
        return None
    order = byte_order(head)
    (nbytes,) = struct.unpack_from(order + "Q", head, 8)
    if nbytes == PIPE_HEADER_NBYTES:
        return Header(order, True)
    if len(head) < _OLD_HEADER_NBYTES:
        return None
    attr_nbytes, *fields = struct.unpack_from(order + "5Q", head, 16)
    features: tuple[int, ...] = ()
    if nbytes >= HEADER_NBYTES and len(head) >= HEADER_NBYTES:
        bits = _feature_bits(head[_OLD_HEADER_NBYTES:HEADER_NBYTES], order)
        features = tuple(number for number in range(N_FEATURES) if bits >> number & 1)
    return Header(order, False, attr_nbytes, Section(*fields[:2]), Section(*fields[2:4]), features)


def _feature_bits(data: bytes, order: str) -> int:
    """The bits, from 64-bit words or, of 32-bit big-endian recorders, 32-bit words: all set HOSTNAME, bit 3."""
    words = struct.unpack(order + "4Q", data)
    if order == ">" and not words[0] >> 3 & 1 and words[0] >> 35 & 1:
        words = struct.unpack("<4Q", struct.pack("<8I", *struct.unpack(">8I", data)))
    return sum(word << 64 * k for k, word in enumerate(words))


def attr(data: bytes, order: str) -> Attr:
    """Parse 64 bytes or more.  Bit fields of big-endian machines begin at the other end of each byte."""
    type_, _, config, period, sample_type, read_format = struct.unpack_from(order + "IIQQQQ", data)
    flags = data[40:48] if order == "<" else data[40:48].translate(_REVERSED)

    has_clock = flags[_CLOCK // 8] >> _CLOCK % 8 & 1

    def field(offset: int) -> int:
        found: int = struct.unpack_from(order + "Q", data, offset)[0] if offset + 8 <= len(data) else 0
        return found

    return Attr(
        type_,
        config,
        period,
        sample_type,
        read_format,
        int.from_bytes(flags, "little"),
        field(56),
        field(72),
        field(80),
        field(96),
        struct.unpack_from(order + "i", data, 92)[0] if has_clock and len(data) >= 96 else None,
    )


def attr_nbytes(data: bytes, order: str) -> int:
    """The size of an attribute, from its first 8 bytes."""
    return int(struct.unpack_from(order + "I", data, 4)[0]) or 64


# ---- features ------------------------------------------------------------


class Feature:
    """Reads the fields of a section in order.  Errors: struct.error beyond its end."""

    def __init__(self, data: bytes, order: str) -> None:
        self.data = data
        self._order = order
        self._at = 0

    def numbers(self, kinds: str) -> tuple[int, ...]:
        found = struct.unpack_from(self._order + kinds, self.data, self._at)
        self._at += struct.calcsize(self._order + kinds)
        return found

    def number(self, kind: str = "I") -> int:
        return self.numbers(kind)[0]

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self._at:
            raise struct.error("the section ends too early")
        self._at += n
        return self.data[self._at - n : self._at]

    def text(self) -> bytes:
        return self.take(self.number()).partition(b"\0")[0]


class Description(NamedTuple):
    """An entry of EVENT_DESC."""

    name: str
    ids: tuple[int, ...]


def descriptions(feature: Feature) -> Iterator[Description]:
    n, nbytes = feature.numbers("II")
    for _ in range(n):
        feature.take(nbytes)
        n_ids = feature.number()
        name = feature.text().decode("utf-8", "replace")
        yield Description(name, struct.unpack(f"{feature._order}{n_ids}Q", feature.take(8 * n_ids)))


class BuildId(NamedTuple):
    name: bytes
    id: str  # hexadecimal
    is_kernel: bool


def build_ids(data: bytes, order: str) -> Iterator[BuildId]:
    """Records: u32 type, u16 misc, u16 size; s32 pid; u8 id[20], size, pad[3]; the name.  Old ones have no pid."""
    at = 0
    entries = []
    while at + 36 <= len(data):
        _, misc, nbytes = struct.unpack_from(order + "IHH", data, at)
        if nbytes < 36 or at + nbytes > len(data):
            break
        entries.append((misc, data[at + 8 : at + nbytes]))
        at += nbytes
    is_old = any(entry[28:].startswith(b"nel.kallsyms]") for _, entry in entries)
    for misc, entry in entries:
        found = build_id(misc, entry, is_old=is_old)
        if found is not None:
            yield found


def build_id(misc: int, body: bytes, *, is_old: bool = False) -> BuildId | None:
    """What follows the header of such a record."""
    begin = 0 if is_old else 4
    name = body[24 + begin :].partition(b"\0")[0]
    data = body[begin : begin + 20]
    n = body[begin + 20] if misc >> 15 & 1 and not is_old else 0
    if len(data) < 20 or not name or not any(data):
        return None
    if not 0 < n <= 20:
        n = 8 if not any(data[8:]) else 16 if not any(data[16:]) else 20
    return BuildId(name, data[:n].hex(), misc & 7 in (1, 4))
