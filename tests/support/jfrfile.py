"""Writes flight recordings for tests.

chunk = Chunk()
main = chunk.stack([("a/B", "m", "()V", 3, 4, "JIT compiled")])
chunk.event("jdk.ExecutionSample", 5, chunk.thread("main", 1, 4711), main, chunk.state("STATE_RUNNABLE"))
path.write_bytes(chunk.bytes())
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

EVENT = "jdk.jfr.Event"
PRIMITIVES = ("boolean", "byte", "short", "char", "int", "long", "float", "double", "java.lang.String")
WIDTHS = {"short": 2, "char": 2, "int": 4, "long": 8}


class Field(NamedTuple):
    name: str
    type: str
    pool: bool = False
    array: bool = False
    unit: str = ""  # of a Timespan


def _event(*fields: Field) -> tuple[Field, ...]:
    return (Field("startTime", "long", unit="@TICKS"), *fields)


THREAD = Field("eventThread", "java.lang.Thread", pool=True)
STACK = Field("stackTrace", "jdk.types.StackTrace", pool=True)
DURATION = Field("duration", "long", unit="TICKS")

# Types without primitives.
TYPES: dict[str, tuple[Field, ...]] = {
    "java.lang.Thread": (
        Field("osName", "java.lang.String"),
        Field("osThreadId", "long"),
        Field("javaName", "java.lang.String"),
        Field("javaThreadId", "long"),
        Field("virtual", "boolean"),
    ),
    "jdk.types.Symbol": (Field("string", "java.lang.String"),),
    "java.lang.Class": (Field("name", "jdk.types.Symbol", pool=True), Field("modifiers", "int")),
    "jdk.types.Method": (
        Field("type", "java.lang.Class", pool=True),
        Field("name", "jdk.types.Symbol", pool=True),
        Field("descriptor", "jdk.types.Symbol", pool=True),
        Field("modifiers", "int"),
        Field("hidden", "boolean"),
    ),
    "jdk.types.FrameType": (Field("description", "java.lang.String"),),
    "jdk.types.ThreadState": (Field("name", "java.lang.String"),),
    "jdk.types.StackFrame": (
        Field("method", "jdk.types.Method", pool=True),
        Field("lineNumber", "int"),
        Field("bytecodeIndex", "int"),
        Field("type", "jdk.types.FrameType", pool=True),
    ),
    "jdk.types.StackTrace": (Field("truncated", "boolean"), Field("frames", "jdk.types.StackFrame", array=True)),
    "jdk.ExecutionSample": _event(
        Field("sampledThread", "java.lang.Thread", pool=True),
        STACK,
        Field("state", "jdk.types.ThreadState", pool=True),
    ),
    "jdk.ObjectAllocationInNewTLAB": _event(
        THREAD,
        STACK,
        Field("objectClass", "java.lang.Class", pool=True),
        Field("allocationSize", "long"),
        Field("tlabSize", "long"),
    ),
    "jdk.JavaMonitorEnter": _event(DURATION, THREAD, STACK, Field("monitorClass", "java.lang.Class", pool=True)),
    "jdk.ActiveSetting": _event(
        Field("id", "long"), Field("name", "java.lang.String"), Field("value", "java.lang.String")
    ),
    "jdk.JVMInformation": _event(
        Field("jvmName", "java.lang.String"),
        Field("jvmVersion", "java.lang.String"),
        Field("jvmArguments", "java.lang.String"),
        Field("pid", "long"),
    ),
    "jdk.CPULoad": _event(Field("machineTotal", "float")),
}


class Chunk:
    """Constants are written in checkpoints of `every` constants; the header points to the last checkpoint."""

    def __init__(
        self,
        types: dict[str, tuple[Field, ...]] | None = None,
        *,
        compressed: bool = True,
        version: tuple[int, int] = (2, 1),
        start_ns: int = 1_700_000_000_000_000_000,
        start_ticks: int = 1000,
        ticks_per_second: int = 1_000_000_000,
        first_id: int = 100,
        every: int = 1 << 30,
    ) -> None:
        self.types = {**TYPES, **(types or {})}
        self.compressed, self.version, self.every = compressed, version, every
        self.clock = start_ns, 1_000_000_000, start_ticks, ticks_per_second
        names = [*PRIMITIVES, EVENT, "jdk.jfr.Timespan", "jdk.jfr.Timestamp", *self.types]
        self.ids = {name: first_id + i for i, name in enumerate(names)}
        self.pools: dict[str, dict[int, bytes]] = {}
        self.known: dict[tuple[str, Any], int] = {}
        self.events: list[bytes] = []

    # ---- numbers and strings

    def number(self, value: int, width: int = 8) -> bytes:
        value &= (1 << 8 * width) - 1
        if not self.compressed:
            return value.to_bytes(width, "big")
        out = bytearray()
        while value > 127 and len(out) < 8:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
        return bytes(out)

    def text(self, value: str | None, kind: int = 3) -> bytes:
        """`kind`: 3 modified UTF-8, 4 UTF-16, 5 Latin-1."""
        if value is None:
            return b"\0"
        if not value:
            return b"\1"
        chars = value.encode("utf-16-le", "surrogatepass")
        units = [int.from_bytes(chars[i : i + 2], "little") for i in range(0, len(chars), 2)]
        if kind == 4:
            return b"\4" + self.number(len(units), 4) + b"".join(self.number(unit, 2) for unit in units)
        if kind == 5:
            return b"\5" + self.number(len(value), 4) + value.encode("latin-1")
        data = b"".join(chr(u).encode("utf-8", "surrogatepass") if u else b"\xc0\x80" for u in units)
        return b"\3" + self.number(len(data), 4) + data

    def value(self, field: Field, value: Any) -> bytes:
        if field.array:
            return self.number(len(value), 4) + b"".join(self.value(field._replace(array=False), one) for one in value)
        if field.pool:
            return self.number(value)
        if field.type in self.types:
            fields = self.types[field.type]
            return b"".join(self.value(one, part) for one, part in zip(fields, value, strict=True))
        if field.type == "java.lang.String":
            return value if isinstance(value, bytes) else self.text(value)
        if field.type in ("float", "double"):
            return struct.pack(">f" if field.type == "float" else ">d", value)
        return bytes([value & 255]) if field.type in ("boolean", "byte") else self.number(value, WIDTHS[field.type])

    # ---- constants

    def constant(self, type_: str, *values: Any, key: int | None = None) -> int:
        """The key of a constant with these fields, added if it is new."""
        again = (type_, repr(values))
        if key is None and again in self.known:
            return self.known[again]
        pool = self.pools.setdefault(type_, {})
        key = len(pool) + 1 if key is None else key
        fields = self.types[type_]
        pool[key] = b"".join(self.value(field, value) for field, value in zip(fields, values, strict=True))
        self.known[again] = key
        return key

    def symbol(self, text: str) -> int:
        return self.constant("jdk.types.Symbol", text)

    def class_(self, name: str) -> int:
        return self.constant("java.lang.Class", self.symbol(name), 1)

    def state(self, name: str) -> int:
        return self.constant("jdk.types.ThreadState", name)

    def thread(self, name: str | None, java_id: int, os_id: int, *, virtual: bool = False) -> int:
        return self.constant("java.lang.Thread", name, os_id, name if java_id else None, java_id, virtual)

    def frame(self, class_: str, method: str, descriptor: str, line: int, bytecode: int, kind: str) -> tuple[int, ...]:
        symbols = self.symbol(method), self.symbol(descriptor)
        key = self.constant("jdk.types.Method", self.class_(class_), *symbols, 1, 0)
        return key, line, bytecode, self.constant("jdk.types.FrameType", kind)

    def stack(self, frames: Sequence[tuple[str, str, str, int, int, str]], *, truncated: bool = False) -> int:
        """Leaf first."""
        return self.constant("jdk.types.StackTrace", truncated, [self.frame(*one) for one in frames])

    # ---- records

    def record(self, type_: int, body: bytes) -> bytes:
        if not self.compressed:
            return (12 + len(body)).to_bytes(4, "big") + type_.to_bytes(8, "big") + body
        rest = self.number(type_) + body
        nbytes = next(n for n in range(1, 10) if len(self.number(len(rest) + n, 4)) == n)
        return self.number(len(rest) + nbytes, 4) + rest

    def event(self, type_: str, *values: Any) -> None:
        """`values` of all fields; the first is the start in ticks since the start of the chunk."""
        fields = self.types[type_]
        values = (self.clock[2] + values[0], *values[1:])
        body = b"".join(self.value(field, value) for field, value in zip(fields, values, strict=True))
        self.events.append(self.record(self.ids[type_], body))

    def setting(self, type_: str, name: str, value: str) -> None:
        self.event("jdk.ActiveSetting", 0, self.ids[type_], name, value)

    def checkpoint(self, pools: list[tuple[str, list[tuple[int, bytes]]]], delta: int, flags: int = 0) -> bytes:
        body = self.number(self.clock[2]) + self.number(0) + self.number(delta) + bytes([flags])
        body += self.number(len(pools), 4)
        for type_, values in pools:
            body += self.number(self.ids[type_]) + self.number(len(values), 4)
            body += b"".join(self.number(key) + value for key, value in values)
        return self.record(1, body)

    def metadata(self) -> bytes:
        strings: dict[str, int] = {}

        def index(text: str) -> bytes:
            return self.number(strings.setdefault(text, len(strings)), 4)

        def element(name: str, attributes: dict[str, str], *children: bytes) -> bytes:
            body = index(name) + self.number(len(attributes), 4)
            body += b"".join(index(key) + index(value) for key, value in attributes.items())
            return body + self.number(len(children), 4) + b"".join(children)

        def field(one: Field) -> bytes:
            attributes = {"name": one.name, "class": str(self.ids[one.type])}
            attributes |= {"constantPool": "true"} if one.pool else {}
            attributes |= {"dimension": "1"} if one.array else {}
            kind = "jdk.jfr.Timestamp" if one.unit.startswith("@") else "jdk.jfr.Timespan"
            note = {"class": str(self.ids[kind]), "value": one.unit.removeprefix("@")}
            return element("field", attributes, *([element("annotation", note)] if one.unit else []))

        classes = []
        for name, id_ in self.ids.items():
            attributes = {"id": str(id_), "name": name}
            fields = self.types.get(name, ())
            attributes |= {"superType": EVENT} if fields and fields[0].name == "startTime" else {}
            classes.append(element("class", attributes, *map(field, fields)))
        region = element("region", {"locale": "en", "gmtOffset": "0"})
        tree = element("root", {}, element("metadata", {}, *classes), region)
        body = self.number(self.clock[2]) + self.number(0) + self.number(1) + self.number(len(strings), 4)
        return self.record(0, body + b"".join(map(self.text, strings)) + tree)

    # ---- the chunk

    def bytes(self, *, finished: bool = True, gap: bytes = b"", flushed: int = 0) -> bytes:
        """`gap`: bytes before the metadata.  `flushed`: of an unfinished chunk, the number of its last flush."""
        body, last = bytearray(b"".join(self.events)), 0
        entries = [(type_, key, value) for type_, pool in self.pools.items() for key, value in pool.items()]
        for at in range(0, len(entries) or 1, self.every):
            by_type: dict[str, list[tuple[int, bytes]]] = {}
            for type_, key, value in entries[at : at + self.every]:
                by_type.setdefault(type_, []).append((key, value))
            here = 68 + len(body)
            body += self.checkpoint([*by_type.items()], last - here if last else 0)
            last = here
        body += gap
        metadata = 68 + len(body)
        body += self.metadata()
        size, places = (68 + len(body), (last, metadata)) if finished or flushed else (0, (0, 0))
        head = struct.pack(">4sHHqqqqqqq", b"FLR\0", *self.version, size, *places, *self.clock)
        return head + struct.pack(">I", flushed << 24 | int(self.compressed)) + bytes(body)
