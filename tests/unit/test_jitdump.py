"""jit-PID.dump: code that a virtual machine made, with its lines."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core._c import ffi, lib
from fastprof.symbols.finder import Finder
from fastprof.symbols.jitdump import JitDump
from fastprof.symbols.symbolizer import Mapping, Symbolizer
from tests.support.perfdata import PerfData


class Dump:
    """Writes a jitdump."""

    def __init__(self, order: str = "<", flags: int = 0) -> None:
        self.order = order
        self.data = struct.pack(order + "IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 12, 1, flags)

    def record(self, kind: int, time: int, body: bytes) -> int:
        """The offset of the record."""
        at = len(self.data)
        self.data += struct.pack(self.order + "IIQ", kind, 16 + len(body), time) + body
        return at

    def load(self, time: int, address: int, code: bytes, number: int, name: bytes, nbytes: int | None = None) -> int:
        """The offset of the code."""
        size = len(code) if nbytes is None else nbytes
        head = struct.pack(self.order + "IIQQQQ", 12, 13, address, address, size, number)
        return self.record(0, time, head + name + b"\0" + code) + 16 + len(head) + len(name) + 1

    def move(self, time: int, old: int, new: int, number: int) -> None:
        self.record(1, time, struct.pack(self.order + "IIQQQQQ", 12, 13, new, old, new, 8, number))

    def lines(self, address: int, lines: list[tuple[int, int, bytes]], n: int | None = None) -> None:
        head = struct.pack(self.order + "QQ", address, len(lines) if n is None else n)
        entries = [struct.pack(self.order + "Qii", at, line, 0) + file + b"\0" for at, line, file in lines]
        self.record(2, 0, head + b"".join(entries))

    def write(self, folder: Path) -> Path:
        (folder / "jit-12.dump").write_bytes(self.data)
        return folder / "jit-12.dump"


def codes(dump: JitDump) -> list[tuple[int, int, int, int]]:
    """(time, address, size, offset of the code)"""
    n = ffi.new("uint64_t *")
    found = lib.fp_jitdump_codes(dump.c, n)
    return [(found[i].time, found[i].address, found[i].nbytes, found[i].offset) for i in range(n[0])]


def places(dump: JitDump, *offsets: int) -> list[Any]:
    chains = dump.lookup_many(offsets)
    return [(chain[0].name, chain[0].file, chain[0].line) if chain else None for chain in chains]


def test_the_example_of_the_header(tmp_path: Path) -> None:
    dump = Dump()
    dump.load(5, 0x1000, b"\x90\xc3", 0, b"foo!!")
    assert dump.data[40:56] == bytes.fromhex("00000000 40000000 0500000000000000")
    read = JitDump(dump.write(tmp_path))
    assert codes(read) == [(5, 0x1000, 2, 102)]
    assert places(read, 101, 102, 103, 104) == [None, ("foo!!", "", 0), ("foo!!", "", 0), None]


@pytest.mark.parametrize("order", ["<", ">"])
def test_code_in_order_of_time_with_lines(tmp_path: Path, order: str) -> None:
    dump = Dump(order)
    f = dump.load(30, 0x1000, bytes(16), 1, b"_ZN1a1fEv")
    # not in order; of the same file as the one before; of the next load only
    dump.lines(0x2000, [(0x2008, 9, b"b.js"), (0x2004, 7, b"a.js"), (0x200C, 8, b"\xff")])
    dump.record(4, 0, struct.pack(order + "QQQ", 0, 0, 0))
    g = dump.load(20, 0x2000, bytes(16), 2, b"g")
    again = dump.load(40, 0x1000, bytes(16), 3, b"again")
    dump.lines(0x7000, [(0x7000, 1, b"other.js")])
    h = dump.load(50, 0x3000, b"", 4, b"h")
    dump.move(60, 0x2000, 0x9000, 2)
    dump.record(77, 0, b"unknown")
    dump.record(3, 70, b"")
    read = JitDump(dump.write(tmp_path))
    assert read.reason == read.note == ""
    expected = [
        (20, 0x2000, 16, g),
        (30, 0x1000, 16, f),
        (40, 0x1000, 16, again),
        (50, 0x3000, 0, h),
        (60, 0x9000, 16, g),
    ]
    assert codes(read) == expected
    assert places(read, again, f + 15, g + 3, g + 4, g + 8, g + 12, h) == [
        ("again", "", 0),
        ("a::f()", "", 0),
        ("g", "", 0),
        ("g", "a.js", 7),
        ("g", "b.js", 9),
        ("g", "a.js", 8),
        None,
    ]


def test_lines_of_files_whose_names_are_no_text(tmp_path: Path) -> None:
    """As V8 writes them for optimized code."""
    dump = Dump()
    for file in (b"a\xe9\xc2", b"\x14"):
        dump.lines(0x1000, [(0x1000, 1, b"a.js"), (0x1001, 2, file)])
        at = dump.load(1, 0x1000, bytes(4), 1, b"f")
        assert places(JitDump(dump.write(tmp_path)), at, at + 1) == [("f", "", 0)] * 2


def test_named_by_where_the_code_stands_in_the_dump(tmp_path: Path) -> None:
    """Two pieces of code at one address, at different times, are two mappings."""
    dump = Dump()
    first = dump.load(1, 0x1000, bytes(16), 1, b"first")
    second = dump.load(2, 0x1000, bytes(16), 2, b"second")
    path = dump.write(tmp_path)
    for found in (Finder(symbols=[path]), Finder(symbols=[tmp_path])):
        for offset, name in ((first, "first"), (second, "second")):
            tool = Symbolizer([Mapping(0x1000, 0x1010, offset, "/srv/jit-12.dump")], found)
            assert tool.resolve([0x1008])[0].symbols[0].name == name


def test_damaged_records_are_counted_and_skipped(tmp_path: Path) -> None:
    dump = Dump()
    dump.load(1, 0x1000, b"", 1, b"too long", nbytes=1)
    dump.load(1, 0x1000, b"", 1, b"too long", nbytes=2**64 - 1)
    dump.move(1, 0x1000, 0x2000, 55)  # of no load
    dump.record(0, 1, bytes(20))
    dump.record(0, 1, b"\1" * 50)  # a name without end
    dump.record(1, 1, bytes(20))
    dump.record(2, 1, bytes(8))
    dump.lines(0x5000, [(0x5000, 3, b"a.c")], n=2**64 - 1)
    at = dump.load(2, 0x5000, b"12", 2, b"whole")
    dump.data += struct.pack("<IIQ", 0, 100, 3) + bytes(20)
    read = JitDump(dump.write(tmp_path))
    assert read.note == "7 damaged records; its end is missing or damaged"
    assert codes(read) == [(2, 0x5000, 2, at)]
    assert places(read, at) == [("whole", "a.c", 3)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (b"", "not a jitdump"),
        (b"DTiJ\2\0\0\0\x28\0\0\0" + bytes(28), "version"),
        (b"DTiJ\1\0\0\0\x27\0\0\0" + bytes(28), "length"),
        (b"DTiJ\1\0\0\0\x29\0\0\0" + bytes(28), "length"),
        (b"DTiJ" + bytes(10), "not a jitdump"),
    ],
)
def test_other_files(tmp_path: Path, change: bytes, reason: str) -> None:
    (tmp_path / "x").write_bytes(change or b"x" * 50)
    assert reason in JitDump(tmp_path / "x").reason
    assert JitDump(tmp_path / "none").reason == "No such file or directory"
    (tmp_path / "empty").touch()
    assert JitDump(tmp_path / "empty").reason == "empty file"


def leaves(path: Path, **options: Any) -> list[tuple[str, str, int]]:
    """(function, file and line) of the samples of a recording, in order of time; "" for none."""
    rows = []
    with fastprof.open(path, **options) as profile:
        model = profile.model
        for batch in profile:
            for node in batch["stack"].tolist():
                line = model.row("frames", model.row("stacks", node)[1])[4]
                function, number, *_ = model.row("lines", line)
                _, file, name, *_ = model.row("functions", function)
                rows.append((model.string(name).decode(), model.string(file).decode(), number))
    return rows


def recording(folder: Path, clock: int | None) -> Path:
    """Process 12 maps its dump at 10 and runs at 0x1008 until 60; process 13 has a dump that nobody finds."""
    data = PerfData(clock=clock)
    data.mmap(12, 0x1000, 0x1000, b"//anon", time=5).mmap(12, 0x7000, 0x1000, b"/gone/jit-12.dump", time=10)
    data.mmap(13, 0x7000, 0x1000, b"/gone/jit-13.dump", time=10)
    data.mmap(12, 0x8000, 0x1000, b"/gone/jit-12.dump", time=11)  # once more: a fork, or again by the same
    for time in (19, 20, 25, 30, 59):
        data.sample(12, [0x1008], time)
    data.sample(12, [0x9008], 40).sample(12, [0x9008], 60).sample(13, [0x1008], 61)
    (folder / "perf.data").write_bytes(data.bytes())
    return folder / "perf.data"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    dump = Dump()
    dump.lines(0x1000, [(0x1000, 3, b"a.js"), (0x1008, 4, b"a.js")])
    dump.load(20, 0x1000, bytes(16), 1, b"first")
    dump.load(30, 0x1000, bytes(16), 2, b"second")
    dump.move(50, 0x1000, 0x9000, 1)
    return dump.write(tmp_path)


def test_a_recording_has_the_code_of_its_time(tmp_path: Path, dump: Path) -> None:
    none, first, second = ("", "", 0), ("first", "a.js", 4), ("second", "", 0)
    found = [none, first, first, second, none, second, first, none]
    path = recording(tmp_path, clock=1)
    (tmp_path / "root/gone").mkdir(parents=True)
    (tmp_path / "root/gone/jit-12.dump").write_bytes(dump.read_bytes())
    assert leaves(path, symbols=[dump]) == found
    assert leaves(path, symbols=[tmp_path]) == found
    assert leaves(path, symbols=[tmp_path / "root/gone"]) == found
    assert leaves(path, symbols=[path.parent / "root"], sysroot=str(tmp_path / "root")) == found
    assert leaves(path, symbols=[dump], symbolize=False) == [none] * 8


def test_times_of_another_clock(tmp_path: Path, dump: Path) -> None:
    for clock in (None, 0):
        with fastprof.open(recording(tmp_path, clock=clock), symbols=[dump]) as profile:
            for _ in profile:
                pass
            assert "perf record -k mono" in "".join(profile.log.warnings)
        assert {name for name, *_ in leaves(tmp_path / "perf.data", symbols=[dump])} == {""}
