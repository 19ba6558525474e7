"""A slow, obvious reader of archives, written from docs/formats/archive.md alone.

It shares no code with fastprof; only zstandard frames are decoded by a library.
"""

from __future__ import annotations

import ast
import re
import struct
import zlib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import zstandard

from tests.reference.archive_bytes import MASK, Bytes, cbor, varint, zag, zig
from tests.reference.archive_tables import Profile, read_tables, tables_applied
from tests.reference.archive_times import Times

DOCUMENT = Path(__file__).parents[2] / "docs" / "formats" / "archive.md"


def encoded(value: Any) -> bytes:
    """CBOR of a value of the dictionary."""
    rest = b""
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        major, n = 0, value
    elif isinstance(value, (str, bytes)):
        rest = value.encode() if isinstance(value, str) else value
        major, n = 3 if isinstance(value, str) else 2, len(rest)
    elif isinstance(value, dict):
        major, n, rest = 5, len(value), b"".join(encoded(one) for pair in value.items() for one in pair)
    elif isinstance(value, tuple):
        is_type = value[:1] == ("<",)
        major, n, rest = 6, 60501 if is_type else 60500, encoded([*value[is_type:]])
    else:
        major, n, rest = 4, len(value), b"".join(map(encoded, value))
    sizes = [(24, ""), (1 << 8, ">B"), (1 << 16, ">H"), (1 << 32, ">I"), (1 << 64, ">Q")]
    i, format_ = next((i, format_) for i, (limit, format_) in enumerate(sizes) if n < limit)
    return bytes([major << 5 | (23 + i if i else n)]) + (struct.pack(format_, n) if i else b"") + rest


def metadata_dictionary() -> bytes:
    text = DOCUMENT.read_text().rpartition("## The metadata dictionary")[2]
    sections, words = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    sections = re.sub("<(.*?)>", r'("<", \1)', sections, flags=re.DOTALL).replace("true", "True")
    words = re.sub(r'" *\n? *(b?)"', r'", \1"', words)
    return b"".join(map(encoded, ast.literal_eval(f"[{sections}{words}]")))


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
            if type_ == 11:
                assert len(types) == 1
                add_bundle(profile, data, at, number)
            else:
                add(profile, type_, Bytes(payload(data, at, type_, number, profile)))
            at += size
        for key in ("totals", "facts", "repairs", "losses"):
            assert "long" in summary or summary.get(key, profile.end.get(key)) == profile.end.get(key)
        assert sum(chunk[0] for chunk in chunks) == len(profile.rows) == sum(profile.end["kinds"])
        profiles.append(profile)
    return profiles


def bundle(data: bytes, at: int, member: int | None) -> tuple[list[int], bytes]:
    """The offsets of the bases of TABLES and ROWS in a bundle, and its sections."""
    sync, found, flags, number, n, raw, crc = struct.unpack_from("<2sBBIIII", data, at)
    assert sync == b"\xf7P" and struct.unpack_from("<I", data, at + 20)[0] == zlib.crc32(data[at : at + 20])
    stored = data[at + 24 : at + 24 + n]
    assert found == 11 and member in (None, number) and zlib.crc32(stored) == crc and flags | 4 == 2 | 4 | 8 | 32
    dictionary, bases = metadata_dictionary(), [0, 0]
    if flags & 4:
        assert member is not None  # the other one has none
        bases, other = bundle(data, struct.unpack_from("<Q", stored)[0], None)
        dictionary += other
        stored = stored[8:]
    raw_content = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    decompressor = zstandard.ZstdDecompressor(dict_data=raw_content)
    out = decompressor.decompress(bytes.fromhex("28b52ffd") + stored, max_output_size=max(raw, 1))
    assert len(out) == raw
    return (bases, out) if flags & 4 else ([*struct.unpack_from("<QQ", out)], out[16:])


def add_bundle(profile: Profile, data: bytes, at: int, number: int) -> None:
    bases, sections = bundle(data, at, number)
    rest = Bytes(sections)
    while rest.at < len(sections):
        type_, flags = rest.u8(), rest.u8()
        own = rest.take(rest.varint())
        if flags:
            assert flags == 64
            base = payload(data, bases[type_ - 3], type_, None)
            if type_ == 3:
                own, profile.same_stacks = tables_applied(Bytes(base), Bytes(own))
            else:
                assert type_ == 4
                own = applied(Bytes(base), Bytes(own), profile.same_stacks)
        add(profile, type_, Bytes(own))


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


def payload(data: bytes, at: int, type_: int, member: int | None, profile: Profile | None = None) -> bytes:
    sync, found, flags, number, n, raw, crc = struct.unpack_from("<2sBBIIII", data, at)
    assert sync == b"\xf7P" and struct.unpack_from("<I", data, at + 20)[0] == zlib.crc32(data[at : at + 20])
    assert found in (type_, 10 if type_ == 3 and member is None else type_) and member in (None, number)
    stored = data[at + 24 : at + 24 + n]
    assert zlib.crc32(stored) == crc
    if not flags & 2:
        return stored
    dictionary = b""
    base = b""
    if flags & 4:
        base = payload(data, struct.unpack_from("<Q", stored)[0], type_, None)
        dictionary = b"" if flags & 64 else base
        stored = stored[8:]
    if flags & 8:
        dictionary = metadata_dictionary()
    stored = bytes.fromhex("28b52ffd") * (flags & 32 > 0) + stored
    raw_content = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    decompressor = zstandard.ZstdDecompressor(dict_data=raw_content if dictionary else None)
    out = decompressor.decompress(stored, max_output_size=max(raw, 1))
    assert len(out) == raw
    if not flags & 64:
        return out
    assert profile is not None
    if type_ == 4:
        return applied(Bytes(base), Bytes(out), profile.same_stacks)
    out, profile.same_stacks = tables_applied(Bytes(base), Bytes(out))
    return out


def numbers_of(stream: Bytes, is_values: bool) -> list[int]:
    found, values = [], Values(stream) if is_values else None
    if values:
        values.divisor = 1
    while stream.at < len(stream.data):
        found.append(values.next() & MASK if values else stream.varint())
    return found


def take_pairs(stream: Bytes, there: list[int]) -> list[int | None]:
    """By row the paired one of the base.  `there`: the base's rows whose stack the profile has."""
    rows: list[int | None] = []
    following = 0
    for _ in range(stream.varint()):
        code = stream.varint()
        if code == 1:
            rows.append(None)
            continue
        at = following + zag(code - 2) if code else following
        rows.append(there[at])
        following = at + 1
    return rows


def stacks_of(base: Bytes) -> list[int]:
    """The stack of each row."""
    stacks, stack = [], 0
    for number in numbers_of(base, False):
        stack += zag(number)
        stacks.append(stack)
    return stacks


def packed(values: list[int]) -> bytes:
    made, last = varint(1) if values else b"", 0
    for value in values:
        value = (value & MASK) - ((value & MASK) >> 63 << 64)
        made += varint(0 if value == last else 1 + zig(last) if value == -(1 << 63) else 1 + zig(value))
        last = value
    return made


def by_row(stream: Bytes, base: Bytes, i: int, pairs: list[int | None], same_stacks: list[int]) -> bytes:
    """A stream of stacks from its differences to rows of the base."""
    if i:
        theirs = numbers_of(base, i >= 4)
        divisor = stream.varint() if i >= 4 else 1
        numbers = [((0 if row is None else theirs[row]) + stream.delta()) * divisor for row in pairs]
        return packed(numbers) if i >= 4 else b"".join(varint(n & MASK) for n in numbers)
    stacks = stacks_of(base)
    made, last = b"", 0
    for row in pairs:
        stack = last + stream.delta() if row is None else same_stacks.index(stacks[row])
        made += varint(zig(stack - last))
        last = stack
    return made


def numbers_of_row(i: int, code: int) -> int:
    """How many numbers stream i > 0 of a graph has for a row."""
    kind = code & 7
    if i >= 15:
        return int(kind == 1 if i % 2 == 0 else kind == 0 or (code & 32 > 0 and kind != 1))
    some = {1: code & 8 > 0, 2: code & 16 > 0, 9: kind in (1, 2, 3), 13: kind in (1, 2, 3), 14: kind == 3}
    if i in some:
        return int(some[i])
    return int(kind != 4 if i < 6 else kind == 1) if i < 9 else (kind in (2, 3)) * (2 if i == 10 else 1)


class GraphRows:
    """Rows of a graph that are paired with rows of the base."""

    def __init__(self, base_streams: list[Bytes], stream: Bytes, same_functions: list[int]) -> None:
        self.base_streams, self.same = base_streams, same_functions
        self.base_codes = base_streams[0].data
        self.functions = self.at_rows(1, 8)
        self.files = self.at_rows(2, 16)
        n = stream.varint()
        bits = stream.take((n + 7) // 8)
        self.pairs: list[int | None] = []
        following = 0
        for i in range(n):
            code = stream.varint() if bits[i // 8] >> i % 8 & 1 else 1
            self.pairs.append(following + zag(code - 1) if code else None)
            following = self.pairs[-1] + 1 if code else following  # type: ignore[operator]
        codes, last, changed = b"", (0, 0), 0
        for row in self.pairs:
            expected = 0
            if row is not None:
                now = self.functions[row], self.files[row]
                changes = 8 * (now[0] != last[0]) | 16 * (now[1] != last[1])
                expected = self.base_codes[row] & ~24 | changes & ~changed
                last, changed = now, 0
            codes += bytes([(stream.u8() + expected) % 256])
            changed |= codes[-1] if row is None else 0
        self.codes = codes

    def at_rows(self, i: int, bit: int) -> list[int]:
        found, last, numbers = [], 0, iter(numbers_of(Bytes(self.base_streams[i].data), False))
        for code in self.base_codes:
            last += zag(next(numbers)) if code & bit else 0
            found.append(last)
        return found

    def stream(self, i: int, stream: Bytes) -> bytes:
        divisor = stream.varint() if i >= 15 else 1
        numbers = iter(numbers_of(Bytes(self.base_streams[i].data), i >= 15))
        theirs: list[list[int]] = []
        last = 0
        for code in self.base_codes:
            theirs.append([])
            for _ in range(numbers_of_row(i, code)):
                last = last + zag(next(numbers)) if i <= 6 else next(numbers)
                theirs[-1].append(last)
        counts = [numbers_of_row(i, code) for code in self.codes]
        unpaired = sum(n for n, row in zip(counts, self.pairs, strict=True) if row is None)
        new = iter([stream.delta() for _ in range(unpaired)])
        found: list[int] = []
        shift = 0
        for n, row in zip(counts, self.pairs, strict=True):
            for k in range(n):
                expected = found[-1] if i <= 6 and found else 0
                if row is not None and i in (1, 6):
                    base = self.functions[row] if i == 1 else theirs[row][k] if k < len(theirs[row]) else 0
                    expected = self.same.index(base) if base and base in self.same else expected
                elif row is not None and i == 2:
                    expected = self.files[row] + shift
                elif row is not None and k < len(theirs[row]):
                    expected = theirs[row][k]
                found.append((expected + (next(new) if row is None else stream.delta())) & MASK)
                if row is not None and i == 2:
                    shift = found[-1] - self.files[row]
        assert stream.at == len(stream.data)
        if i >= 15:
            return packed([n * divisor for n in found])
        if i > 6:
            return b"".join(map(varint, found))
        steps = ((n - before + (1 << 63)) % (1 << 64) - (1 << 63) for before, n in pairwise([0, *found]))
        return b"".join(varint(zig(step)) for step in steps)


def applied(base: Bytes, difference: Bytes, same_stacks: list[int]) -> bytes:
    """The ROWS payload from which the difference was made, or an equivalent one."""
    view, runs, streams = chunk_of(difference)
    _, _, base_streams = chunk_of(base)
    out: list[bytes] = []
    pairs: list[int | None] = []
    for i, stream in enumerate(streams):
        how = stream.u8()
        if not how:
            out.append(stream.data[1:])
            continue
        if how == 2 and view == 3:
            if not i:
                graph = GraphRows(base_streams, stream, same_stacks)
            out.append(graph.stream(i, stream) if i else graph.codes)
            continue
        if how == 2:
            assert view == 2
            if not i:
                stacks = stacks_of(Bytes(base_streams[0].data))
                pairs = take_pairs(stream, [row for row, stack in enumerate(stacks) if stack in same_stacks[1:]])
            out.append(by_row(stream, base_streams[i], i, pairs, same_stacks))
            assert stream.at == len(stream.data)
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
