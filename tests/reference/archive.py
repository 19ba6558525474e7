"""A slow, obvious reader of archives, written from docs/formats/archive.md alone.

It shares no code with fastprof; only zstandard frames are decoded by a library.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

MASK = (1 << 64) - 1
DOCUMENT = Path(__file__).parents[2] / "docs" / "formats" / "archive.md"
TABLES = {
    "objects": 2, "mappings": 5, "functions": 5, "lines": 4, "frames": 4, "stacks": 2, "labels": 5, "threads": 3,
}  # fmt: skip


def zag(v: int) -> int:
    return v >> 1 if v % 2 == 0 else -(v >> 1) - 1


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n: int) -> bytes:
        assert self.at + n <= len(self.data)
        self.at += n
        return self.data[self.at - n : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def delta(self) -> int:
        return zag(self.varint())


def cbor(b: Bytes) -> Any:
    first = b.u8()
    major, info = first >> 5, first & 31
    if first in (0xF4, 0xF5, 0xF6):
        return {0xF4: False, 0xF5: True, 0xF6: None}[first]
    if first == 0xFB:
        return struct.unpack(">d", b.take(8))[0]
    n = info if info < 24 else int.from_bytes(b.take(1 << info - 24), "big")
    if major == 0:
        return n
    if major == 1:
        return -1 - n
    if major == 2:
        return b.take(n)
    if major == 3:
        return b.take(n).decode("utf-8", "surrogatepass")
    if major == 4:
        return [cbor(b) for _ in range(n)]
    if major == 5:
        return {cbor(b): cbor(b) for _ in range(n)}
    assert n in (60500, 60501)
    return tuple(cbor(b))


def metadata_dictionary() -> bytes:
    block = DOCUMENT.read_text().rpartition("byte strings, the others text):\n```\n")[2].partition("```")[0]
    out = b""
    for is_bytes, text in re.findall(r'(b?)"(.*?)"', block):
        assert len(text) < 256
        major = 2 if is_bytes else 3
        head = bytes([major << 5 | len(text)]) if len(text) < 24 else bytes([major << 5 | 24, len(text)])
        out += head + text.encode()
    return out


@dataclass
class Profile:
    view: str = ""
    name: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list)
    strings: list[bytes] = field(default_factory=lambda: [b""])
    tables: dict[str, list[tuple[int, ...]]] = field(
        default_factory=lambda: {name: [(0,) * n] for name, n in TABLES.items()}
    )
    rows: list[tuple[int, dict[str, Any], list[int]]] = field(default_factory=list)  # part, columns, values
    end: dict[str, Any] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # of functions


def read(data: bytes) -> list[Profile]:
    """All members of an archive.  Damage: an AssertionError, or worse."""
    assert data[:8] == bytes.fromhex("894650410d0a1a0a")
    assert struct.unpack_from("<HHI", data, 8) == (1, 0, zlib.crc32(data[:12]))
    index, crc, magic = struct.unpack("<QI4s", data[-16:])
    assert magic == b"FPAE" and crc == zlib.crc32(data[-16:-8])
    count, _, root = cbor(Bytes(payload(data, index, 6, None)))
    members = listed(data, root)
    assert len(members) == count and [name for _, name, _ in members] == sorted(name for _, name, _ in members)
    profiles = []
    for number, name, entry in sorted(members):
        view, at, types, sizes, chunks, summary = cbor(Bytes(entry))
        profile = Profile(view, name)
        for type_, size in zip(types, sizes, strict=True):
            add(profile, type_, Bytes(payload(data, at, type_, number)))
            at += size
        for key in ("totals", "facts", "repairs", "losses"):
            assert "long" in summary or summary.get(key, profile.end.get(key)) == profile.end.get(key)
        assert sum(chunk[0] for chunk in chunks) == len(profile.rows) == sum(profile.end["kinds"])
        profiles.append(profile)
    return profiles


def listed(data: bytes, page: Any) -> list[tuple[int, str, bytes]]:
    """Number, name and entry of each member below a page."""
    height, names, numbers, entries = page
    if height == 0:
        return list(zip(numbers, names, entries, strict=True))
    found = []
    for name, offset in zip(names, numbers, strict=True):
        below = listed(data, cbor(Bytes(payload(data, offset, 8, None))))
        assert below[0][1] == name
        found += below
    return found


def payload(data: bytes, at: int, type_: int, member: int | None) -> bytes:
    sync, found, flags, number, n, raw, crc = struct.unpack_from("<2sBBIIII", data, at)
    assert sync == b"\xf7P" and struct.unpack_from("<I", data, at + 20)[0] == zlib.crc32(data[at : at + 20])
    assert found == type_ and member in (None, number)
    stored = data[at + 24 : at + 24 + n]
    assert zlib.crc32(stored) == crc
    if not flags & 2:
        return stored
    dictionary = b""
    base = b""
    if flags & 4:
        base = payload(data, struct.unpack_from("<Q", stored)[0], type_, None)
        dictionary = b"" if flags & 16 else base
        stored = stored[8:]
    if flags & 8:
        dictionary = metadata_dictionary()
    raw_content = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    decompressor = zstandard.ZstdDecompressor(dict_data=raw_content if dictionary else None)
    out = decompressor.decompress(stored, max_output_size=max(raw, 1))
    assert len(out) == raw
    return applied(Bytes(base), Bytes(out)) if flags & 16 else out


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def applied(base: Bytes, difference: Bytes) -> bytes:
    """The ROWS payload from which the difference was made, or an equivalent one."""
    view, runs, streams = chunk_of(difference)
    _, _, base_streams = chunk_of(base)
    out = []
    for i, stream in enumerate(streams):
        if not stream.u8():
            out.append(stream.data[1:])
            continue
        other, made = base_streams[i], b""
        values = Values(other) if (view == 2 and i >= 4) or (view == 3 and i >= 15) else None
        if values:
            made += varint(1)
        last = 0
        while other.at < len(other.data):
            if view == 3 and i == 0:
                made += bytes([(other.u8() + stream.u8()) % 256])
            elif values:
                value = (values.next() + stream.delta()) & MASK
                value -= (value >> 63) << 64
                zig = 2 * value if value >= 0 else -2 * value - 1
                zig_of_last = 2 * last if last >= 0 else -2 * last - 1
                made += varint(0 if value == last else 1 + zig_of_last if value == -(1 << 63) else 1 + zig)
                last = value
            else:
                made += varint((other.varint() + stream.delta()) & MASK)
        assert stream.at == len(stream.data)
        out.append(made)
    head = bytes([view]) + varint(len(runs)) + b"".join(varint(n) for run in runs for n in run)
    return head + varint(len(out)) + b"".join(varint(len(stream)) for stream in out) + b"".join(out)


def chunk_of(b: Bytes) -> tuple[int, list[tuple[int, ...]], list[Bytes]]:
    """View, runs and streams of a ROWS payload."""
    view = b.u8()
    runs = [(b.varint(), b.varint(), b.varint(), b.varint()) for _ in range(b.varint())]
    lengths = [b.varint() for _ in range(b.varint())]
    return view, runs, [Bytes(b.take(n)) for n in lengths]


def add(profile: Profile, type_: int, b: Bytes) -> None:
    if type_ == 2:
        for number, part in cbor(b):
            profile.parts[number : number + 1] = [part]
    elif type_ == 3:
        read_tables(profile, b)
    elif type_ == 4:
        read_rows(profile, b)
    elif type_ == 5:
        profile.end = cbor(b)
    elif type_ == 7:
        profile.numbers |= cbor(b)


def read_tables(profile: Profile, b: Bytes) -> None:
    assert b.varint() == len(profile.strings)
    lengths = [b.varint() for _ in range(b.varint())]
    profile.strings += [b.take(n) for n in lengths]
    for name, n_columns in TABLES.items():
        assert b.varint() == len(profile.tables[name])
        n = b.varint()
        columns = []
        for _ in range(n_columns):
            value, column = 0, []
            for _ in range(n):
                value = (value + b.delta()) & MASK
                column.append(value)
            columns.append(column)
        profile.tables[name] += list(zip(*columns, strict=True))


def read_rows(profile: Profile, b: Bytes) -> None:
    view, runs, streams = chunk_of(b)
    assert profile.view == ("timeline", "stacks", "graph")[view - 1]
    chunk = {1: Timeline, 2: Stacks, 3: Graph}[view](streams)
    for part, rows, n_values, positions in runs:
        for _ in range(rows):
            columns, values = chunk.row(n_values, positions)
            profile.rows.append((part, columns, values))


class Values:
    def __init__(self, b: Bytes) -> None:
        self.b = b
        self.divisor = b.varint() if b.data else 1
        self.last = 0

    def next(self) -> int:
        code = self.b.varint()
        if code:
            zig_of_last = 2 * self.last if self.last >= 0 else -2 * self.last - 1
            self.last = -(1 << 63) if code - 1 == zig_of_last else zag(code - 1)
        return self.last * self.divisor


class Stacks:
    def __init__(self, streams: list[Bytes]) -> None:
        self.streams = streams
        self.values = [Values(s) for s in streams[4:]]
        self.last = [0] * 4

    def row(self, n_values: int, positions: int) -> tuple[dict[str, Any], list[int]]:
        for i in range(4):
            self.last[i] = (self.last[i] + self.streams[i].delta()) & MASK
        columns = dict(zip(("stack", "time", "thread", "label"), self.last, strict=True))
        return columns, [self.values[k].next() for k in range(n_values)]


class Graph:
    def __init__(self, streams: list[Bytes]) -> None:
        self.streams = streams
        self.values = [Values(s) for s in streams[15:]]
        self.function = self.file = self.callee = 0
        self.position = [0, 0, 0]  # line, address, bb
        self.target = [0, 0, 0]
        self.targets: dict[int, list[int]] = {}

    def row(self, n_values: int, positions: int) -> tuple[dict[str, Any], list[int]]:
        s = self.streams
        has = [positions & 4, positions & 1, positions & 2]
        names = ("line", "address", "bb")
        code = s[0].u8()
        kind = code & 7
        if code & 8:
            self.function += s[1].delta()
        if code & 16:
            self.file += s[2].delta()
        row: dict[str, Any] = defaultdict(int, kind=kind, function=self.function, file=self.file)
        if kind != 4:
            for i in range(3):
                if has[i]:
                    self.position[i] = (self.position[i] + s[3 + i].delta()) & MASK
                    row[names[i]] = self.position[i]
        if kind == 1:
            self.callee += s[6].delta()
            row["callee"] = self.callee
            target = list(self.targets.get(self.callee, self.target))
            row["count"] = s[13].varint()
            for i in range(3):
                if has[i]:
                    target[i] = (target[i] + s[7 + i].delta()) & MASK
                    row["target_" + names[i]] = target[i]
            self.target = self.targets[self.callee] = target
        if kind in (2, 3):
            row["callee"] = self.function + s[10].delta()
            row["target_file"] = self.file + s[10].delta()
            for i, stream in enumerate((s[11], s[12], s[9])):
                if has[i]:
                    row["target_" + names[i]] = (row[names[i]] + stream.delta()) & MASK
            row["count"] = s[13].varint()
            if kind == 3:
                row["count2"] = s[14].varint()
        if kind in (0, 1) or code & 32:
            return row, [self.values[2 * k + (kind == 1)].next() for k in range(n_values)]
        return row, [0] * n_values


class Timeline:
    def __init__(self, streams: list[Bytes]) -> None:
        self.codes, self.runs, self.functions, self.arguments, self.events, self.payloads, self.walls = streams[:7]
        self.times = Times(*streams[7:])
        self.thread = self.cpu = self.left = self.last_listed = self.wall = 0
        self.stack: dict[int, list[int]] = defaultdict(list)
        self.callees: dict[int, list[int]] = defaultdict(lambda: [0] * 16)
        self.with_arguments: dict[int, bool] = defaultdict(bool)
        self.argument: dict[int, int] = defaultdict(int)
        self.last_function: dict[int, int] = defaultdict(int)
        self.last_left: dict[int, int] = defaultdict(int)

    def row(self, n_values: int, positions: int) -> tuple[dict[str, Any], list[int]]:
        if not self.left:
            self.thread += self.runs.delta()
            self.cpu += self.runs.delta()
            self.left = self.runs.varint()
        self.left -= 1
        code = self.codes.u8()
        row = {"thread": self.thread, "cpu": self.cpu, "aux": 0, "function": 0}
        if code < 38:
            pool = key = self.function_row(code, row)
            row["time"] = self.times.next(self.thread, key, pool % 4)
        else:
            self.event(code, row)
            row["op"] = code - 38 + 4
            row["time"] = self.times.next(self.thread, None, row["op"])
        return row, []

    def function_row(self, code: int, row: dict[str, Any]) -> int:
        stack = self.stack[self.thread]
        listed = 0
        if code >= 34:
            self.last_listed += self.functions.delta()
            listed = self.last_listed
        leaves = code in (0, 1, 36, 37)
        if leaves:
            function = listed if code >= 36 else stack[-1]
            row["op"] = 1 + code % 2
            if function in stack:
                while stack.pop() != function:
                    pass
        else:
            callees = self.callees[stack[-1] if stack else 0]
            function = listed if code >= 34 else callees[(code - 2) % 16]
            del callees[15 if code >= 34 else (code - 2) % 16]
            callees.insert(0, function)
            if 18 <= code < 34 or code == 35:
                self.with_arguments[function] = not self.with_arguments[function]
            row["op"] = 3 if self.with_arguments[function] else 0
            if len(stack) == 1024:
                del stack[:512]
            stack.append(function)
        row["function"] = self.last_function[self.thread] = function
        key = function * 4 + leaves * 2 + self.last_left[self.thread]
        self.last_left[self.thread] = int(leaves)
        return key

    def event(self, code: int, row: dict[str, Any]) -> None:
        if code == 38:
            function = self.last_function[self.thread]
            self.argument[function] = (self.argument[function] + self.arguments.delta()) & MASK
            row["aux"] = self.argument[function]
        elif code == 41:
            self.wall = (self.wall + self.walls.delta()) & MASK
            row["aux"] = self.wall
        else:
            assert code in (39, 40)
            if code == 40:
                row["function"] = self.events.varint()
            row["aux"] = self.payloads.take(self.events.varint())


@dataclass
class At:
    ref: int
    frac: int = 1 << 31
    history: int = 0
    jitter: int = 1


class Times:
    def __init__(self, tables: Bytes, words: Bytes, bits: Bytes) -> None:
        first = tables.varint()
        self.q = tables.varint()
        self.has_jitter = tables.u8()
        self.limits = tables.varint(), tables.varint()
        plain, hashed = self.keys(tables), self.keys(tables)
        self.pools = [self.table(tables) for _ in range(8)]
        self.jitters = [self.table(tables) for _ in range(48 if self.has_jitter else 0)]
        self.plain = {key: self.table(tables) for key in plain}
        self.hashed = {key: self.table(tables) for key in hashed}
        assert tables.at == len(tables.data)
        self.words = words
        self.x = [struct.unpack("<I", words.take(4))[0] for _ in range(2)]
        self.bits = int.from_bytes(bits.data, "little")
        self.at: dict[int, At] = {}
        self.last = At(first)

    @staticmethod
    def keys(b: Bytes) -> list[int]:
        key, found = -1, []
        for _ in range(b.varint()):
            key += 1 + b.varint()
            found.append(key)
        return found

    @staticmethod
    def table(b: Bytes) -> list[tuple[int, int]]:
        symbol, found = -1, []
        for _ in range(b.varint()):
            symbol += 1 + b.varint()
            found.append((symbol, b.varint()))
        assert sum(f for _, f in found) in (0, 1024)
        return found

    def symbol(self, coder: int, table: list[tuple[int, int]]) -> int:
        place, c = self.x[coder] % 1024, 0
        for symbol, f in table:
            if place < c + f:
                x = f * (self.x[coder] >> 10) + place - c
                if x < 1 << 16:
                    x = x << 16 | struct.unpack("<H", self.words.take(2))[0]
                self.x[coder] = x
                return symbol
            c += f
        raise AssertionError("an empty table")

    def raw(self, n: int) -> int:
        value = self.bits & ((1 << n) - 1)
        self.bits >>= n
        return value

    def next(self, thread: int, key: int | None, pool: int) -> int:
        if thread not in self.at:
            self.at[thread] = At(self.last.ref, self.last.frac, self.last.history, self.last.jitter)
        at = self.last = self.at[thread]
        table = self.pools[pool]
        if key is not None:
            table = self.plain.get(key, table)
            table = self.hashed.get((key * 27 + at.history) * 2654435761 % 2**32 >> 14, table)
        symbol = self.symbol(0, table)
        at.history = at.history % 9 * 3 + sum(symbol > limit for limit in self.limits)
        if symbol == 504:
            at.ref = (at.ref + self.raw(64)) & MASK
            at.frac = 1 << 31
            return at.ref
        k = symbol
        if symbol >= 32:
            o = (symbol - 32) // 8 + 2
            k = (8 + (symbol - 32) % 8 << o) + self.raw(o)
        exact = (at.ref << 32) + at.frac + k * self.q
        at.ref, at.frac = exact >> 32 & MASK, exact & 0xFFFFFFFF
        if not self.has_jitter:
            return at.ref
        e = self.symbol(1, self.jitters[at.jitter * 16 + (at.frac >> 28)])
        miss = self.raw(64) if e == 3 else e - 1
        at.jitter = 1 if e == 3 else e
        time = (at.ref + miss) & MASK
        if miss not in (-1, 0, 1, MASK) or k > 4096:
            at.ref, at.frac = time, 1 << 31
        else:
            exact = (at.ref << 32) + at.frac + (-1 if miss == MASK else miss) * (1 << 28)
            at.ref, at.frac = exact >> 32 & MASK, exact & 0xFFFFFFFF
        return time
