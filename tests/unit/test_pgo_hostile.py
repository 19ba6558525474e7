"""Hostile programs and recordings, from which profiles for compilers are made: errors that name their place, or counted
losses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from fastprof.core.varint import varint
from fastprof.formats.pgo.levels import base_discriminator
from fastprof.symbols.dwarf import DEEPEST
from fastprof.symbols.objects import ElfObject
from tests.support.elf import ElfSection, ElfSymbol, elf_file

AT, SIZE = 0x401000, 0x1000
TARGETS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("llvmprof", {"llvm_profile": {"format": "text"}}),
    ("llvmprof", {"llvm_profile": {"format": "binary"}}),
    ("llvmprof", {"llvm_profile": {"format": "extbinary"}}),
    ("afdo", {}),
    ("afdo", {"gcov_profile": {"format": "padded"}}),
    ("afdo", {"gcov_profile": {"format": "version1"}}),
    ("fdata", {}),
)
Row = tuple[int, int, int]  # address, line, discriminator
COMPILE_UNIT, SUBPROGRAM, ABSTRACT, INLINED = 1, 2, 3, 4
UDATA, STRING, ADDRESS, DATA8, OFFSET, REFERENCE, FLAG = 0x0F, 0x08, 0x01, 0x07, 0x17, 0x13, 0x0C
NAME, STATEMENTS, LOW, HIGH, DECLARED_FILE, DECLARED, ORIGIN, INLINE = 0x03, 0x10, 0x11, 0x12, 0x3A, 0x3B, 0x31, 0x20
CALL_FILE, CALL_LINE, DISCRIMINATOR = 0x58, 0x59, 0x2136
DECLARATION = ((DECLARED_FILE, UDATA), (DECLARED, UDATA))
CODE, CALLED = ((LOW, ADDRESS), (HIGH, DATA8)), ((CALL_FILE, UDATA), (CALL_LINE, UDATA), (DISCRIMINATOR, UDATA))
ABBREVIATIONS = (
    (COMPILE_UNIT, 0x11, 1, ((NAME, STRING), (STATEMENTS, OFFSET), *CODE)),
    (SUBPROGRAM, 0x2E, 1, ((NAME, STRING), *DECLARATION, *CODE)),
    (ABSTRACT, 0x2E, 0, ((NAME, STRING), *DECLARATION, (INLINE, FLAG))),
    (INLINED, 0x1D, 1, ((ORIGIN, REFERENCE), *CODE, *CALLED)),
)


def abbreviations() -> bytes:
    out = b""
    for number, tag, children, attributes in ABBREVIATIONS:
        pairs = b"".join(varint(name) + varint(form) for name, form in attributes)
        out += varint(number) + varint(tag) + bytes([children]) + pairs + b"\0\0"
    return out + b"\0"


def information(calls: Sequence[tuple[int, int]], skipped: int) -> bytes:
    """`main`, behind its first bytes nested calls of `f`, each with its line and discriminator."""
    start, size = AT + skipped, SIZE - skipped
    entries = varint(ABSTRACT) + b"f\0" + varint(1) + varint(1) + b"\1"
    unit = varint(COMPILE_UNIT) + b"a.c\0" + struct.pack("<IQQ", 0, AT, SIZE)
    origin = 11 + len(unit)
    entries += varint(SUBPROGRAM) + b"main\0" + varint(1) + varint(10) + struct.pack("<QQ", AT, SIZE)
    for line, discriminator in calls:
        entries += varint(INLINED) + struct.pack("<IQQ", origin, start, size) + varint(1) + varint(line)
        entries += varint(discriminator)
    body = unit + entries + bytes(len(calls) + 2)
    return struct.pack("<IHIB", 7 + len(body), 4, 0, 8) + body


def lines(rows: Sequence[Row], end: int) -> bytes:
    """A line table of version 4."""
    head = bytes([1, 1, 1, 251, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0a.c\0\0\0\0\0"
    body, line = b"", 1
    for address, number, discriminator in rows:
        step = varint(discriminator)
        body += b"\0\x09\x02" + struct.pack("<Q", address) + b"\0" + varint(1 + len(step)) + b"\4" + step
        body += b"\x03" + signed(number - line) + b"\x01"
        line = number
    body += b"\0\x09\x02" + struct.pack("<Q", end) + b"\0\1\1"
    return struct.pack("<IHI", 6 + len(head) + len(body), 4, len(head)) + head + body


def signed(n: int) -> bytes:
    out = bytearray()
    while not -64 <= n < 64:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n & 0x7F])


def program(
    path: Path, calls: Sequence[tuple[int, int]], rows: Sequence[Row], end: int = AT + SIZE, skipped: int = 0
) -> Path:
    """Code of zeros, which are instructions of two bytes, with a segment."""
    parts = {
        ".debug_abbrev": abbreviations(),
        ".debug_info": information(calls, skipped),
        ".debug_line": lines(rows, end),
    }
    at, sections = 0x1000 + SIZE, [ElfSection(".text", AT, 0x1000, SIZE)]
    for name, content in parts.items():
        sections.append(ElfSection(name, 0, at, len(content), code=False))
        at += len(content)
    made = bytearray(elf_file(sections, [ElfSymbol("main", AT, 1)]))
    for section, content in zip(sections[1:], parts.values(), strict=True):
        made[section.offset : section.offset + section.nbytes] = content
    (headers,) = struct.unpack_from("<Q", made, 0x28)
    for k in range(2, 2 + len(parts)):
        struct.pack_into("<Q", made, headers + 64 * k + 8, 0)  # not in memory
    (table,) = struct.unpack_from("<Q", made, headers + 64 * (2 + len(parts)) + 0x18)
    struct.pack_into("<Q", made, table + 24 + 16, SIZE)
    struct.pack_into("<Q", made, 0x20, len(made))
    struct.pack_into("<HH", made, 0x36, 56, 1)
    made += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, AT, AT, SIZE, SIZE, 0x1000)
    path.write_bytes(made)
    return path


def callgrind(path: Path, program: Path, counts: dict[int, int]) -> Path:
    rows = "".join(f"{address:#x} 1 {count}\n" for address, count in counts.items())
    head = f"version: 1\ncreator: x\npositions: instr line\nevents: Ir\nob={program}\nfl=a.c\nfn=main\n"
    path.write_text(head + rows)
    return path


def written(folder: Path, source: Path, program: Path, target: int = 0) -> tuple[bytes, fastprof.Log]:
    suffix, options = TARGETS[target]
    log = fastprof.convert(source, folder / f"out.{suffix}", symbols=[str(program)], **options)
    return (folder / f"out.{suffix}").read_bytes(), log


DISCRIMINATORS = [0, 1, 2, 4, 62, 64, 126, 128, 0x1FFE, 1 << 20, (1 << 32) - 2, (1 << 32) - 1]
HUGE = [1 << 32, (1 << 32) + 2, (1 << 63) + 6, (1 << 64) - 1]


@pytest.mark.parametrize("target", range(len(TARGETS)))
def test_huge_discriminators_of_lines(tmp_path: Path, target: int) -> None:
    """Those beyond 32 bits leave an instruction without a place."""
    values = [*DISCRIMINATORS, *HUGE]
    rows = [(AT + 16 * k, 11 + k, value) for k, value in enumerate(values)]
    made = program(tmp_path / "app", [], rows, AT + 16 * len(rows))
    source = callgrind(tmp_path / "callgrind.out.1", made, {AT + 16 * k: 100 + k for k in range(len(rows))})
    out, log = written(tmp_path, source, made, target)
    if TARGETS[target][0] == "fdata":
        assert out.count(b"\n") == 1 + len(rows)
        return
    assert log.not_representable["unplaced-instructions"] == len(HUGE)
    if target == 0:
        places = [(k + 1, base_discriminator(value), 100 + k) for k, value in enumerate(DISCRIMINATORS)]
        expected = [f" {offset}.{base}: {n}" if base else f" {offset}: {n}" for offset, base, n in places]
        assert out.decode().splitlines()[1:] == expected
    elif target < 3:
        assert fastprof.info(tmp_path / "out.llvmprof").facts["totals"]["samples"] == sum(range(100, 112))


@pytest.mark.parametrize(("value", "kept"), [*((value, True) for value in DISCRIMINATORS), *((v, False) for v in HUGE)])
def test_huge_discriminators_of_calls(tmp_path: Path, value: int, kept: bool) -> None:
    made = program(tmp_path / "app", [(12, value)], [(AT, 3, 0)])
    source = callgrind(tmp_path / "callgrind.out.1", made, {AT: 70, AT + 8: 1 << 62})
    if kept:
        base = base_discriminator(value)
        place = f"2.{base}" if base else "2"
        text = written(tmp_path, source, made)[0].decode()
        assert text.splitlines()[1:] == [f" {place}: f:{(1 << 62) + 70}", f"  2: {1 << 62}"]
    else:
        with pytest.raises(FastprofError, match="no counted address is in a function with lines"):
            written(tmp_path, source, made)


@pytest.mark.parametrize("target", range(len(TARGETS)))
@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, 4000])
def test_calls_nested_deeply(tmp_path: Path, depth: int, target: int) -> None:
    """Beyond the levels that readers can take, counts have no place."""
    made = program(tmp_path / "app", [(12, 2)] * depth, [(AT, 3, 0)], skipped=SIZE - 64)
    source = callgrind(tmp_path / "callgrind.out.1", made, {AT: 60, AT + SIZE - 32: 70})
    out, log = written(tmp_path, source, made, target)
    if TARGETS[target][0] != "fdata":
        assert log.not_representable["unplaced-instructions"] == (depth >= DEEPEST)
    if target == 0:
        assert out.decode().count("\n") == (2 if depth >= DEEPEST else depth + 3)


def test_entries_nested_too_deeply_are_damage(tmp_path: Path) -> None:
    made = program(tmp_path / "app", [(12, 2)] * 5000, [(AT, 3, 0)])
    source = callgrind(tmp_path / "callgrind.out.1", made, {AT: 60})
    with pytest.raises(FastprofError, match="no counted address is in a function with lines"):
        written(tmp_path, source, made)
    found = ElfObject(str(made))
    found.lookup(AT)
    assert "damaged" in found.note


@pytest.mark.parametrize("target", range(len(TARGETS)))
def test_addresses_backwards_in_the_line_table(tmp_path: Path, target: int) -> None:
    rows = [(AT + 64, 20, 2), (AT + 32, 21, 4), (AT, 22, 6), ((1 << 64) - 8, 23, 8), (0, 24, 2)]
    made = program(tmp_path / "app", [], rows)
    source = callgrind(tmp_path / "callgrind.out.1", made, {AT: 5, AT + 40: 6, AT + 70: 7, (1 << 64) - 1: 8, 1: 9})
    out, log = written(tmp_path, source, made, target)
    assert out
    assert TARGETS[target][0] == "fdata" or log.not_representable["unsymbolized-instructions"] == 2


def branches(path: Path, program: Path, pairs: Sequence[tuple[int, int]], times: int) -> Path:
    """The text of perf script: one stack with `pairs`, newest first, again and again."""
    maps = f"demo 7/7 0.100000: PERF_RECORD_MMAP2 7/7: [{AT:#x}({SIZE:#x}) @ 0x1000 08:01 42 0]: r-xp {program}\n"
    entries = "".join(f" {source:#x}/{target:#x}/P/-/-/0 " for source, target in pairs)
    path.write_text(f"{maps}demo 7/7 0.200000:   {AT:x} {entries * times}\n")
    return path


@pytest.mark.parametrize("target", [*range(len(TARGETS)), len(TARGETS)])
def test_a_stack_of_a_million_branches(tmp_path: Path, target: int) -> None:
    """Forwards, backwards, outside of the program, at both ends of memory; most of them are no straight run."""
    pairs = [(AT + 64, AT + 32), (AT + 96, AT + 16), (AT + 8, AT + 128), (AT + SIZE, 0x10), ((1 << 64) - 1, 1)]
    rows = [(AT + 8 * k, 11 + k, 2 * k) for k in range(64)]
    made = program(tmp_path / "app", [], rows)
    source = branches(tmp_path / "a.perf", made, pairs, 200_000)
    assert fastprof.info(source, branches=True).facts["totals"]["taken"] == 1_000_000
    if target == len(TARGETS):
        fastprof.convert(source, tmp_path / "out.preagg", symbols=[str(made)])
        assert f"B {AT + 64:x} {AT + 32:x} 200000 0\n" in (tmp_path / "out.preagg").read_text()
        return
    out, log = written(tmp_path, source, made, target)
    assert out and log.not_representable["instructions-elsewhere"] > 0
