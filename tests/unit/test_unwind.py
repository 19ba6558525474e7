"""Unwinding stack by stack: the caller of each kind of frame, and the ends of stacks."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fastprof.core._c import lib
from fastprof.core.errors import SymbolError
from fastprof.symbols.elf import ElfFile
from fastprof.symbols.unwind import UnwindTable
from tests.differential.peers import need
from tests.support.unwinding import Place, rules_of, sleb, table_of, uleb, unwind

X86, ARM = 62, 183
SP, CODE = 0x7FFF0000, 0x1000
FIRST = {X86: bytes.fromhex("0c0708 9001"), ARM: bytes.fromhex("0c1f00")}  # CFA = rsp+8, RA at CFA-8; CFA = sp
FP, SP_OF, PC, LINK = {X86: 6, ARM: 29}, {X86: 7, ARM: 31}, {X86: 16, ARM: 32}, 30
MAIN = b"\x07" + bytes([16])  # the return address is undefined


def cfa_is_sp(n: int) -> bytes:
    return b"\x0e" + uleb(n)


def frames_section(machine: int, programs: list[tuple[bytes, bool]], *, first: bytes | None = None) -> bytes:
    """.eh_frame of functions of 0x100 bytes each, from CODE on: their programs, and whether they are signal frames."""
    data = bytearray()
    for k, (program, is_signal) in enumerate(programs):
        head = b"\1" + (b"zRS\0" if is_signal else b"zR\0") + uleb(1) + sleb(-8)
        body = head + bytes([{X86: 16, ARM: LINK}[machine]]) + b"\1\0" + (FIRST[machine] if first is None else first)
        function = struct.pack("<QQ", CODE + k * 0x100, 0x100) + b"\0" + program
        data += struct.pack("<II", 4 + len(body), 0) + body
        data += struct.pack("<II", 4 + len(function), 8 + len(body) + 4) + function
    return bytes(data)


def code(machine: int, *programs: bytes, signal: int = -1, **more: Any) -> Place:
    of_functions = [(program, k == signal) for k, program in enumerate(programs)]
    table = table_of(frames_section(machine, of_functions), machine, is_eh=True, **more)
    return Place(CODE, CODE + 0x1000, CODE, table)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def addresses(found: tuple[list[Any], str]) -> tuple[list[int], str]:
    return [frame.address for frame in found[0]], found[1]


def test_callers() -> None:
    place = code(X86, b"", cfa_is_sp(24), MAIN)
    found, end = unwind(X86, {16: 0x1010}, words(0x1120, 1, 2, 0x1210), SP, [place])
    assert [(f.address, f.is_return, f.place) for f in found] == [
        (0x1010, False, 0),
        (0x1120, True, 0),
        (0x1210, True, 0),
    ]
    assert end == "complete"


def test_a_call_at_the_end_of_a_function_belongs_to_it() -> None:
    place = code(X86, b"", cfa_is_sp(16), MAIN)
    assert addresses(unwind(X86, {16: 0x1010}, words(0x1200, 0, 0x1230), SP, [place]))[0] == [0x1010, 0x1200, 0x1230]


@pytest.mark.parametrize(
    ("stack", "end"),
    [
        (words(0), "complete"),
        (words(0x9000), "not executable"),
        (words(0x3010), "not executable"),
        (b"", "outside"),
        (words(0x1010)[:7], "outside"),
        (words(0x2010), "no file"),
        (words(0x1800), "no table"),
        (words(0x1110), "broken"),
        (words(0x1210), "no progress"),
    ],
)
def test_ends(stack: bytes, end: str) -> None:
    """The second function is damaged, the third leads back."""
    back = b"\x0c\x06\x00" + b"\x11" + uleb(16) + sleb(-1)  # CFA = rbp, the return address at CFA + 8
    place = code(X86, b"", b"\x0b", back, MAIN)
    places = [place, Place(0x2000, 0x3000, 0), Place(0x3000, 0x4000, 0, is_executable=False)]
    padded = stack + words(0x1310) if end == "no progress" else stack
    assert unwind(X86, {16: 0x1010, 6: SP}, padded, SP, places)[1] == end


def test_an_address_in_no_map() -> None:
    assert unwind(X86, {16: 0x9999}, b"", SP, []) == ([(0x9999, False, -1)], "no map")


def test_no_rule_and_no_frame_pointer_is_the_outermost_frame() -> None:
    place = code(X86, b"")
    assert unwind(X86, {16: 0x1010, 6: 0}, words(0x1810), SP, [place])[1] == "complete"
    assert unwind(X86, {16: 0x1010, 6: 1}, words(0x1810), SP, [place])[1] == "no table"


def test_recursion_ends_at_the_limit() -> None:
    found, end = unwind(X86, {16: 0x1010}, words(*[0x1010] * 50), SP, [code(X86, b"")], most=20)
    assert len(found) == 20 and end == "too deep"


def test_a_register_that_was_popped_has_its_value_again() -> None:
    """CFA = rsp+8 after `pop %rbp`: its slot at CFA-16 is below the stack pointer, and rbp is the caller's."""
    popped = b"\x86\x02"
    by_fp = b"\x0c\x06\x10\x86\x02"  # CFA = rbp+16, rbp at CFA-16
    place = code(X86, popped, by_fp, MAIN)
    stack = words(0x1110, 0, 0, 0x55, 0x1210)
    assert addresses(unwind(X86, {16: 0x1010, 6: SP + 24}, stack, SP, [place])) == (
        [0x1010, 0x1110, 0x1210],
        "complete",
    )


def test_frame_pointers_only_where_no_table_is() -> None:
    jit = Place(0x8000, 0x9000, 0)
    stack = words(7, SP + 32, 0x8020, 0, 0, 0x1010)
    registers = {16: 0x8010, 6: SP + 8}
    main = code(X86, MAIN)
    by_pointers = unwind(X86, registers, stack, SP, [jit, main], flags=lib.FP_UNWIND_BY_FRAME_POINTERS)
    assert addresses(by_pointers) == ([0x8010, 0x8020, 0x1010], "complete")
    assert addresses(unwind(X86, registers, stack, SP, [jit, main])) == ([0x8010], "no file")
    for fp in (SP + 9, SP - 8, SP + 0x1000):
        assert len(unwind(X86, {16: 0x8010, 6: fp}, stack, SP, [jit, main], flags=1)[0]) == 1


def test_plt() -> None:
    """From the threshold on, one more word was pushed."""
    plt = b"\x0f\x0b" + bytes.fromhex("770880003f1a3b2a332422")
    place = code(X86, plt, MAIN)
    stack = words(0x1110, 0x1120)
    assert addresses(unwind(X86, {16: 0x102A}, stack, SP, [place]))[0] == [0x102A, 0x1110]
    assert addresses(unwind(X86, {16: 0x102B}, stack, SP, [place]))[0] == [0x102B, 0x1120]


def context(pc: int, sp: int, fp: int) -> bytes:
    """The stack of a signal handler of x86-64 from its caller on."""
    data = bytearray(256)
    for at, value in {120: fp, 160: sp, 168: pc}.items():
        struct.pack_into("<Q", data, at, value)
    return bytes(data)


RESTORE = bytes.fromhex("0f0477a00106 100377a801".replace("100377a801", "101003 77a801") + "100603 77f800")


def test_signals() -> None:
    """The interrupted instruction is looked up at its own address: it is the first of its function."""
    place = code(X86, b"", RESTORE, cfa_is_sp(16), MAIN, signal=1)
    stack = words(0x1101) + context(0x1200, SP + 0x110, 5) + words(0, 0, 0x1310)
    found, end = unwind(X86, {16: 0x1010}, stack, SP, [place])
    assert [(f.address, f.is_return) for f in found] == [
        (0x1010, False),
        (0x1101, True),
        (0x1200, False),
        (0x1310, True),
    ]
    assert end == "complete"


@pytest.mark.parametrize(("leaf", "at"), [(0x1010, 0x1900), (0x1900, None), (0x1907, None), (0x1909, None)])
def test_signals_without_a_table(leaf: int, at: int | None) -> None:
    """musl and Go: `mov $15, %rax; syscall`, at 0x1900."""
    content = bytearray(0x3000)
    content[0x1900:0x1909] = bytes.fromhex("48c7c00f0000000f05")
    load = (0, 0, len(content), len(content), True)
    place = code(X86, b"", MAIN, content=bytes(content), loads=[load])
    stack = (words(at) if at else b"") + context(0x1105, SP + 0x200, 5)
    frames = unwind(X86, {16: leaf}, stack, SP, [place])
    assert addresses(frames) == ([leaf, *([at] if at else []), 0x1105], "complete")


def test_other_registers() -> None:
    """CFA = rbx+16, like in _dl_runtime_resolve: all registers, from the leaf on, which saved rbx."""
    leaf, resolve = b"\x0e\x10\x83\x02", b"\x0c\x03\x10"
    place = code(X86, leaf, resolve, MAIN)
    stack = words(SP + 32, 0x1110, 0, 0, 0, 0x1210)
    assert addresses(unwind(X86, {16: 0x1010, 3: 1}, stack, SP, [place])) == ([0x1010, 0x1110, 0x1210], "complete")
    assert addresses(unwind(X86, {16: 0x1110, 3: SP + 32}, stack, SP, [place])) == ([0x1110, 0x1210], "complete")
    assert addresses(unwind(X86, {16: 0x1110}, stack, SP, [place])) == ([0x1110], "broken")


def test_link_register_and_signed_addresses() -> None:
    """AArch64: the leaf's return address is in x30; the upper bits of others sign them."""
    saved = b"\x0e\x20\x9d\x04\x9e\x03"  # CFA = sp+32, x29 at CFA-32, x30 at CFA-24
    main = b"\x07" + bytes([LINK])
    place = code(ARM, b"", saved, main)
    stack = words(SP + 0x40, 0x1210 | 0x5A << 55, 0, 0)
    found = unwind(ARM, {32: 0x1010, 30: 0x1110 | 0x11 << 48, 29: SP}, stack, SP, [place])
    assert addresses(found) == ([0x1010, 0x1110, 0x1210], "complete")
    assert addresses(unwind(ARM, {32: 0x1110, 30: 0x1010}, words(0, 0x1010, 0, 0), SP, [place])) == (
        [0x1110, 0x1010],
        "broken",  # a caller's return address is no longer in x30
    )


def test_debug_frame_fills_what_eh_frame_leaves(tmp_path: Path) -> None:
    """One object file with each; compressed, and without section headers."""
    compiler = need("gcc")
    (tmp_path / "a.c").write_text("int g(int); int f(int x) { return g(x) + 1; } int h(int x) { return x; }")
    (tmp_path / "b.c").write_text("int g(int x) { char s[x]; return s[x / 2]; } void _start(void) {}")
    flags = ["-O1", "-g", "-gz=zlib", "-fno-asynchronous-unwind-tables"]
    subprocess.run([compiler, "-O1", "-c", "a.c"], cwd=tmp_path, check=True)
    subprocess.run([compiler, *flags, "-c", "b.c"], cwd=tmp_path, check=True)
    subprocess.run(
        [compiler, "-nostdlib", "-static", "-Wl,--eh-frame-hdr", "-gz=zlib", "a.o", "b.o", "-o", "both"],
        cwd=tmp_path,
        check=True,
    )
    elf = ElfFile(tmp_path / "both")
    table = UnwindTable(elf, 1)
    assert (table.stats.functions, table.stats.broken) == (4, 0)
    rules = [rule for _, rule in rules_of(table, X86)]
    assert "rbp+16 fp=c-16 ra=c-8" in rules and "rsp+16 fp=same ra=c-8" in rules

    stripped = bytearray(elf.content)
    struct.pack_into("<Q", stripped, 40, 0)  # e_shoff
    struct.pack_into("<HHH", stripped, 58, 0, 0, 0)
    bare = UnwindTable(ElfFile("bare", bytes(stripped)), 1)
    assert bare.stats.functions == 2
    assert list(rules_of(bare, X86))[:3] == list(rules_of(table, X86))[:3]


def test_other_machines_have_no_table(tmp_path: Path) -> None:
    data = bytearray(Path("/proc/self/exe").read_bytes()[:64].ljust(64, b"\0"))
    struct.pack_into("<H", data, 18, 8)
    with pytest.raises(SymbolError, match="machine 8"):
        UnwindTable(ElfFile("mips", bytes(data)), 1)


def test_programs_of_absurd_length_end_a_stack() -> None:
    """Each of twenty frames would run a megabyte for its rule, CFA = rbx+16, and the caller's rbx is CFA+16."""
    resolve = b"\x0c\x03\x10" + b"\x15\x03" + sleb(-2)
    stack = words(*[0x1010] * 80)
    found, end = unwind(X86, {16: 0x1010, 3: SP + 8}, stack, SP, [code(X86, resolve)])
    assert len(found) == 21 and end == "outside"
    found, end = unwind(X86, {16: 0x1010, 3: SP + 8}, stack, SP, [code(X86, resolve + bytes(1 << 20))])
    assert len(found) == 4 and end == "broken"
