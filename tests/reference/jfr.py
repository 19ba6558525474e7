"""A slow, obvious reader of flight recordings: all fields of all events, as Python values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple


class Ref(NamedTuple):
    """A constant of a type."""

    type: int
    key: int


class Event(NamedTuple):
    type: str
    values: dict[str, Any]
    time: int  # in ns


class Bytes:
    def __init__(self, data: bytes, at: int, *, compressed: bool) -> None:
        self.data, self.at, self.compressed = data, at, compressed

    def take(self, n: int) -> bytes:
        part = self.data[self.at : self.at + n]
        assert len(part) == n
        self.at += n
        return part

    def number(self, width: int) -> int:
        if not self.compressed:
            return int.from_bytes(self.take(width), "big")
        found = 0
        for k in range(9):
            (byte,) = self.take(1)
            if k == 8:
                return found | byte << 56
            found |= (byte & 127) << 7 * k
            if byte < 128:
                return found & ((1 << 8 * width) - 1)
        raise AssertionError

    def signed(self, width: int) -> int:
        value = self.number(width)
        return value - (value >> (8 * width - 1) << 8 * width)

    def text(self, string_type: int) -> Any:
        (kind,) = self.take(1)
        if kind == 2:
            return Ref(string_type, self.number(8))
        if kind == 4:
            units = [self.number(2) for _ in range(self.number(4))]
            return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")
        if kind == 5:
            return self.take(self.number(4)).decode("latin-1")
        if kind == 3:
            data = self.take(self.number(4)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return data.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return {0: None, 1: ""}[kind]


def element(data: Bytes, strings: list[str]) -> tuple[str, dict[str, str], list[Any]]:
    name = strings[data.number(4)]
    attributes = {}
    for _ in range(data.number(4)):
        key = strings[data.number(4)]
        attributes[key] = strings[data.number(4)]
    return name, attributes, [element(data, strings) for _ in range(data.number(4))]


class Recording:
    """A chunk."""

    def __init__(self, data: bytes, at: int) -> None:
        fields = struct.unpack(">4sHHqqqqqqqI", data[at : at + 68])
        _, _, _, size, _, self.metadata, self.start_ns, _, self.start_ticks, self.rate, flags = fields
        self.data, self.at, self.end, self.compressed = data, at, at + size, bool(flags & 1)
        self.types: dict[int, tuple[str, list[dict[str, str]]]] = {}
        self.pools: dict[int, dict[int, Any]] = {}
        self._read_types()
        for type_, body in self._records():
            if type_ == 1:
                self._read_constants(body)

    def _bytes(self, at: int) -> Bytes:
        return Bytes(self.data, at, compressed=self.compressed)

    def _records(self) -> Iterator[tuple[int, Bytes]]:
        at = self.at + 68
        while at < self.end:
            body = self._bytes(at)
            size, type_ = body.number(4), body.number(8)
            yield type_, body
            at += size

    def _read_types(self) -> None:
        data = self._bytes(self.at + self.metadata)
        for width in (4, 8, 8, 8, 8):
            data.number(width)
        strings = [data.text(0) for _ in range(data.number(4))]
        _, _, children = element(data, strings)
        for _, _, classes in children[:1]:
            for _, attributes, members in classes:
                fields = [own for kind, own, _ in members if kind == "field"]
                self.types[int(attributes["id"])] = attributes["name"], fields
        self.string_type = next(id_ for id_, (name, _) in self.types.items() if name == "java.lang.String")

    def _value(self, data: Bytes, type_: int) -> Any:
        name, fields = self.types[type_]
        if name in ("boolean", "byte"):
            return data.take(1)[0]
        if name in ("short", "int", "long"):
            return data.signed({"short": 2, "int": 4, "long": 8}[name])
        if name == "char":
            return data.number(2)
        if name in ("float", "double"):
            return struct.unpack(">f" if name == "float" else ">d", data.take(4 if name == "float" else 8))[0]
        if name == "java.lang.String":
            return data.text(type_)
        return {field["name"]: self._field(data, field) for field in fields}

    def _field(self, data: Bytes, field: dict[str, str]) -> Any:
        type_ = int(field["class"])

        def one() -> Any:
            return Ref(type_, data.number(8)) if "constantPool" in field else self._value(data, type_)

        return [one() for _ in range(data.number(4))] if "dimension" in field else one()

    def _read_constants(self, body: Bytes) -> None:
        for _ in range(3):
            body.number(8)
        body.take(1)
        for _ in range(body.number(4)):
            type_ = body.number(8)
            for _ in range(body.number(4)):
                key = body.number(8)
                self.pools.setdefault(type_, {})[key] = self._value(body, type_)

    def resolved(self, value: Any) -> Any:
        """The value with constants instead of references; None for a missing constant."""
        if isinstance(value, Ref):
            return self.resolved(self.pools.get(value.type, {}).get(value.key))
        if isinstance(value, dict):
            return {name: self.resolved(one) for name, one in value.items()}
        return [self.resolved(one) for one in value] if isinstance(value, list) else value

    def events(self) -> Iterator[Event]:
        for type_, body in self._records():
            if type_ > 1 and type_ in self.types:
                name, fields = self.types[type_]
                values = {field["name"]: self.resolved(self._field(body, field)) for field in fields}
                ticks = values["startTime"] - self.start_ticks
                ns = abs(ticks) * 1_000_000_000 // (self.rate or 1_000_000_000) * (1 if ticks > 0 else -1)
                yield Event(name, values, self.start_ns + ns)


def events(data: bytes) -> Iterator[Event]:
    """The events of all chunks, which have to be finished."""
    at = 0
    while at < len(data):
        chunk = Recording(data, at)
        yield from chunk.events()
        at = chunk.end
