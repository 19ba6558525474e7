"""memray: the statements of docs/formats/memray.md."""

from __future__ import annotations

import struct
from pathlib import Path

import lz4.frame
import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError
from fastprof.core.source import Source
from fastprof.symbols.symbol import Symbol
from fastprof.symbols.symbolizer import Symbolizer
from tests.reference import memray
from tests.support.paths import CORPUS
from tests.support.stackdump import dump

GOOD = CORPUS / "memray" / "good"
THREAD = b"\x0c" + struct.pack("<Q", 1)


@pytest.fixture
def small() -> bytes:
    return (GOOD / "small.memray").read_bytes()


def test_it_is_recognized_also_packed(small: bytes) -> None:
    for data in (small, lz4.frame.compress(small), lz4.frame.compress(small, block_linked=True, content_checksum=True)):
        with Source(data) as source:
            assert formats.detect(source).name == "memray"


def test_values_threads_and_memory_over_time(small: bytes) -> None:
    found = fastprof.info(lz4.frame.compress(small))
    assert found.facts["totals"] == {
        "alloc_objects": 138, "alloc_space": 285428, "temporary_objects": 36, "temporary_space": 104478,
        "leaked_objects": 51, "leaked_space": 48117, "peak_objects": 55, "peak_space": 84901,
    }  # fmt: skip
    assert found.facts["peak_bytes"] == 84901 and found.facts["python"] == "3.11"
    assert found.facts["snapshots"][0]["heap_bytes"] == 0
    rows = fastprof.top(small, by="thread").rows
    assert {str(row.name) for row in rows} >= {"process 12123, worker (2)"}


def test_stacks_of_the_program(small: bytes, tmp_path: Path) -> None:
    fastprof.convert(small, tmp_path / "o.folded", value="leaked_space")
    lines = (tmp_path / "o.folded").read_text().splitlines()
    assert [line.split(" ")[-1] for line in lines if ";leak;make " in line] == ["3006", "3001"]
    rows = dump(small, "memray").rows
    lines_of = {f[3][0][4] for stack, _, _ in rows for f in stack if f[3][0][0] in (b"make", b"leak", b"work")}
    assert lines_of == {4, 6, 8, 9}


def test_an_aggregated_capture_has_the_peak_and_leaks() -> None:
    found = fastprof.info(GOOD / "aggregated.memray").facts
    assert [*found["totals"]] == ["leaked_objects", "leaked_space", "peak_objects", "peak_space"]
    assert found["totals"]["peak_space"] == found["peak_bytes"] > 80_000


def test_a_partial_munmap_splits_a_mapping() -> None:
    def event(kind: int, address: int, size: int) -> memray.Event:
        return memray.Event(2, (("f", 10),), kind, address, size)

    events = [event(memray.MMAP, 0x1000, 0x3000), event(memray.MUNMAP, 0x2000, 0x1000)]
    ((_, _, values),) = dump(memray.write(13, events), "memray").rows
    assert values == (1, 0x3000, 0, 0, 2, 0x2000, 1, 0x3000)


def test_an_empty_munmap_changes_nothing() -> None:
    events = [mapping(memray.MMAP, 0x1000, 0x3000), mapping(memray.MUNMAP, 0x2000, 0)]
    ((_, _, values),) = dump(memray.write(13, events), "memray").rows
    assert values == (1, 0x3000, 0, 0, 1, 0x3000, 1, 0x3000)


def test_line_tables_of_older_pythons() -> None:
    """3.10: pairs of bytes and lines; before: the line applies from the byte on."""
    table = bytes([4, 1, 4, 2])
    for python, offset, line in ((0x030A0000, 2, 13), (0x030A0000, 1, 11), (0x03090000, 3, 10), (0x03090000, 4, 11)):
        code = b"\x0e\1f\0a.py\0" + memray.delta(10) + memray.number(len(table)) + table
        call = b"\x41\1" + memray.delta(offset) + b"\xfe\2\1\1"
        head = bytearray(memray.header(12))
        head[11:15] = struct.pack("<I", python)
        second = b"\x0c" + struct.pack("<Q", 2)
        ((stack, _, _),) = dump(bytes(head) + second + code + call, "memray").rows
        assert stack[0][3][0][4] == line, (python, offset)


def test_a_large_line_table_is_decoded_once() -> None:
    """Looking through it for each instruction would take 10^9 steps."""
    n = 60_000
    table = b"\xe8\2" * n + b"\xef" + b"\x40" * 9 + b"\x1f"  # each code unit a line more, at last far more
    code = b"\x0e\1f\0a.py\0" + memray.delta(10) + memray.number(len(table)) + table
    calls = b"".join(b"\x41\1" + memray.delta(2 * k) + b"\xfe\2\1" * (k > n - 4) + b"\x10" for k in range(n + 1))
    rows = dump(memray.header(13) + b"\x0c" + struct.pack("<Q", 2) + code + calls + b"\1", "memray").rows
    assert sorted(stack[0][3][0][4] for stack, _, _ in rows) == [0, n + 8, n + 9, n + 10]


def native_capture(path: bytes = b"/nowhere/python3") -> bytes:
    """Python's frames: start (hidden), f in the same loop, g in another one; native: main, loop, call, loop, malloc."""
    head = bytearray(memray.header(13))
    head[15] = 1
    image = b"\x06\x07" + path + b"\0\1" + struct.pack("<Q", 0x10000) + b"\x08" + bytes(8) + memray.number(4096)
    natives, before = b"", 0
    for caller, address in enumerate((0x10010, 0x10020, 0x10030, 0x10020, 0x10040)):
        natives += b"\5" + memray.delta(address - before) + memray.delta(int(caller > 0))
        before = address
    code = b"".join(b"\x0e" + bytes([k]) + name + b"\0a.py\0\0\0" for k, name in enumerate((b"start", b"f", b"g")))
    calls = b"\x41\0\0\x40\1\0\x41\2\0"
    return bytes(head) + image + natives + THREAD + code + calls + b"\xfe\2" + memray.delta(1) + b"\x40\1"


def test_native_frames(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Calls of the interpreter's loop become the frames that it executed; functions inlined into it stay."""
    chains: dict[int, tuple[Symbol, ...]] = {}

    def resolve(self: Symbolizer, addresses: list[int], returns: bool = False) -> list[tuple[Symbol, ...]]:
        assert returns and {self.mappings.paths[self.mappings.find(address) or 0] for address in addresses} == {"/py"}
        return [chains.get(address, ()) for address in addresses]

    def stacks() -> dict[str, int]:
        fastprof.convert(native_capture(b"/py"), tmp_path / "o.folded", value="alloc_space")
        lines = (tmp_path / "o.folded").read_text().splitlines()
        return {stack: int(value) for stack, _, value in (line.rpartition(" ") for line in lines)}

    monkeypatch.setattr(Symbolizer, "resolve", resolve)
    assert stacks() == {"f;g": 64}
    assert dict(fastprof.info(native_capture(b"/py")).not_representable) == {"native-stacks": 1}
    chains[0x10020] = (Symbol("_PyEval_EvalFrameDefault", ""),)
    assert stacks() == {"f;[py+0x2f];g;[py+0x3f]": 64}
    assert not fastprof.info(native_capture(b"/py")).not_representable
    chains[0x10020] = (Symbol("inner", "", "c.c", 7), *chains[0x10020])
    assert stacks() == {"f;inner;[py+0x2f];g;inner;[py+0x3f]": 64}


def test_many_images_and_a_deep_native_stack() -> None:
    """Each frame is looked up again after the images changed: 16 KB would take more than a gigabyte."""
    n = 2000
    head = bytearray(memray.header(13))
    head[15] = 1
    natives = b"".join(b"\5" + memray.delta(16) + memray.delta(int(k > 0)) for k in range(n))
    allocations = b"".join(b"\6\xfe\2" + memray.delta(int(k == 0)) + b"\x40" for k in range(n))
    with pytest.raises(FormatError, match="native frames, expected fewer"):
        fastprof.info(bytes(head) + natives + THREAD + allocations + b"\1")


def test_damage_is_an_error_that_says_where(small: bytes) -> None:
    end = len(small.rstrip(b"\0"))
    cut = small[: end - 1]
    for data, at in ((cut, len(cut)), (cut + b"\0" * 100, len(cut)), (cut + b"\x0f", len(cut))):
        with pytest.raises(FormatError) as found:
            fastprof.info(data)
        assert found.value.offset == at
        log = fastprof.info(data, lenient=True)
        assert log.losses == {"unreadable-rest": 1} and log.facts["totals"]["alloc_objects"] == 138


@pytest.mark.parametrize(
    ("version", "records", "text"),
    [
        (13, b"\xfe\2\1", "before the first thread"),
        (13, THREAD + b"\x10", "more returns than calls"),
        (13, THREAD + b"\x41\1\0", "not defined"),
        (13, THREAD + b"\xf8\2\x20\1", "the allocator"),
        (13, THREAD + b"\xf8\1\x0e\x10", "a mapping ends"),
        (13, b"\x0e\1f\0a\0\2" + b"\xff" * 5 + b"\1", "the length of a line table"),
        (13, b"\x07a\0\1" + bytes(8) + b"\1", "a segment"),
        (13, b"\x05\2\2", "the caller of a native frame is not defined"),
        (13, b"\x0aname\0", "before the first thread"),
        (11, THREAD + b"\x04\2", "not defined"),
        (10, b"", "expected 11 to 13"),
    ],
)
def test_each_record_is_checked(version: int, records: bytes, text: str) -> None:
    head = memray.header(version)
    with pytest.raises(FormatError, match=text) as found:
        fastprof.info(head + records + b"\1")
    assert found.value.offset is not None


@pytest.mark.parametrize(
    "records",
    [
        b"\x03\0\0",
        b"\x04\1\0\0\0",
        b"\x04\0\1\0\0",
        b"\x02" + bytes(24) + b"\1" + bytes(47),
        b"\x02" + b"\xff" * 72,
        b"\x09",
    ],
)
def test_records_of_aggregated_captures_are_checked(records: bytes) -> None:
    with pytest.raises(FormatError) as found:
        fastprof.info(memray.header(13, 1) + records + b"\x0f")
    assert found.value.offset == len(memray.header(13, 1))


def mapping(kind: int, address: int, size: int) -> memray.Event:
    return memray.Event(2, (("f", 10),), kind, address, size)


def test_many_mappings() -> None:
    """Each munmap looks at those that it overlaps: with all of them, this would take 10^9 steps."""
    n = 40_000
    events = [mapping(memray.MMAP, 8192 * (k + 1), 4096) for k in range(n)]
    events += [mapping(memray.MUNMAP, 8192 * (k * 7919 % n + 1), 4096) for k in range(n)]
    totals = fastprof.info(memray.write(13, events)).facts["totals"]
    assert (totals["alloc_objects"], totals["leaked_objects"], totals["leaked_space"]) == (n, 0, 0)
    assert totals["peak_space"] == 4096 * n


def test_mappings_that_overlap_again_and_again() -> None:
    events = [mapping(memray.MMAP, 8 * (k + 1), 1 << 30) for k in range(20_000)]
    events += [mapping(memray.MUNMAP, (1 << 30) - 64 * k, 64) for k in range(1_000)]
    with pytest.raises(FormatError, match="mappings overlap"):
        fastprof.info(memray.write(13, events))


def aggregated_sum(thread: int, node: int, peak: int) -> bytes:
    return b"\2" + struct.pack("<QB7xQQQQQQQ", thread, 6, 0, node, 0, 1, 0, peak, 0)


def test_deep_trees_of_aggregated_captures() -> None:
    """Each node becomes a stack once: walking to the root for each sum would take 10^9 steps."""
    n = 100_000
    code = b"\x0e\1f\0a.py\0" + memray.delta(10) + memray.number(2) + b"\xe8\0"
    nodes = b"".join(b"\3\0" + memray.number(k) for k in range(n))
    sums = b"".join(aggregated_sum(1 + k % 2, k + 1, 5) for k in range(n))
    data = memray.header(13, 1) + code + b"\4\0\1\0\1" + nodes + sums + b"\x0f"
    assert fastprof.info(data).facts["totals"]["peak_space"] == 5 * n


def test_threads_that_sums_name_first() -> None:
    """The current thread stays so when others are added."""
    switch = [b"\x0c" + struct.pack("<Q", k) + b"\x0a" + b"t%d\0" % k for k in (1, 2)]
    sums = b"".join(aggregated_sum(k, 0, 1) for k in range(3, 200))
    data = memray.header(13, 1) + b"".join(switch) + sums + b"\x0alast\0" + aggregated_sum(2, 0, 1) + b"\x0f"
    names = {str(row.name) for row in fastprof.top(data, by="thread", n=0).rows}
    assert {"process 7, last (2)"} <= names
