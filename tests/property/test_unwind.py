"""Programs of call frame information: the rules of any program, and the callers that expressions lead to."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from fastprof.core._c import ffi, lib
from tests.reference import unwind as reference
from tests.support.unwinding import NAMES, Place, sleb, table_of, text_of, uleb, unwind

START, SIZE = 0x1000, 0x100
SP = 0x7FFF0000


REGISTER = st.sampled_from([3, 6, 6, 7, 7, 10, 12, 16, 16, 29, 30, 31, 63, 64, 1 << 40])
OFFSET = st.one_of(st.integers(0, 40), st.sampled_from([1 << 31, (1 << 64) - 1]))
SIGNED = st.one_of(st.integers(-40, 40), st.sampled_from([-(1 << 31), -(1 << 63), (1 << 63) - 1]))


def joined(*parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(*parts).map(b"".join)


def op(*codes: int) -> st.SearchStrategy[bytes]:
    return st.sampled_from([bytes([code]) for code in codes])


ULEB, SLEB, NUMBER = OFFSET.map(uleb), SIGNED.map(sleb), REGISTER.map(uleb)
TWO_BYTES = st.integers(-30, 30).map(lambda n: struct.pack("<h", n))
OPERATION = st.one_of(
    op(*range(0x30, 0x38), 0x57, 0x53),
    op(*range(0x12, 0x15), 0x16, 0x17, *range(0x19, 0x23), *range(0x24, 0x28), *range(0x29, 0x2F), 0x06, 0x96),
    joined(op(0x77, 0x76, 0x73, 0x80), SLEB),
    joined(op(0x92), NUMBER, SLEB),
    joined(op(0x08, 0x09, 0x94, 0x15), st.binary(min_size=1, max_size=1)),
    joined(op(0x0A, 0x0B), st.binary(min_size=2, max_size=2)),
    joined(op(0x0C, 0x0D), st.binary(min_size=4, max_size=4)),
    joined(op(0x0E, 0x0F, 0x03), st.binary(min_size=8, max_size=8)),
    joined(op(0x10, 0x23), ULEB),
    joined(op(0x11), SLEB),
    joined(op(0x28, 0x2F), TWO_BYTES),
)
EXPRESSION = st.one_of(
    st.lists(OPERATION, max_size=8).map(b"".join),
    joined(op(0x77, 0x76), SLEB, op(0x06)),
    joined(op(0x77, 0x76), SLEB),
    st.integers(0x30, 0x40).map(lambda n: bytes.fromhex("770880003f1a") + bytes([n]) + bytes.fromhex("2a332422")),
    st.binary(max_size=4),
)
BLOCK = EXPRESSION.map(lambda data: uleb(len(data)) + data)
INSTRUCTION = st.one_of(
    st.integers(0x40, 0x60).map(lambda code: bytes([code])),
    joined(st.sampled_from([6, 16, 7, 29, 30, 3]).map(lambda n: bytes([0x80 | n])), ULEB),
    st.sampled_from([6, 16, 7, 29, 30, 3]).map(lambda n: bytes([0xC0 | n])),
    op(0x00, 0x0A, 0x0B, 0x2C, 0x2D),
    joined(op(0x02), st.binary(min_size=1, max_size=1)),
    joined(op(0x03), st.integers(0, 300).map(lambda n: struct.pack("<H", n))),
    joined(op(0x04), st.integers(0, 300).map(lambda n: struct.pack("<I", n))),
    joined(op(0x01, 0x1D), st.integers(START - 2, START + SIZE).map(lambda n: struct.pack("<Q", n))),
    joined(op(0x05, 0x0C, 0x14, 0x2F), NUMBER, ULEB),
    joined(op(0x11, 0x12, 0x15), NUMBER, SLEB),
    joined(op(0x06, 0x07, 0x08, 0x0D), NUMBER),
    joined(op(0x09), NUMBER, NUMBER),
    joined(op(0x0E, 0x2E), ULEB),
    joined(op(0x13), SLEB),
    joined(op(0x0F), BLOCK),
    joined(op(0x10, 0x16), NUMBER, BLOCK),
    st.binary(min_size=1, max_size=2),
)
PROGRAM = st.lists(INSTRUCTION, max_size=12).map(b"".join)
FIRST = {62: bytes.fromhex("0c0708 9001"), 183: bytes.fromhex("0c1f00")}
MACHINE = st.sampled_from([62, 183])


def section(cie: reference.Cie, machine: int, program: bytes, *, is_eh: bool) -> bytes:
    """A CIE and its FDE."""
    ra = {62: 16, 183: 30}[machine]
    letters = b"zRS\0" if cie.is_signal and is_eh else b"zR\0" if is_eh else b"\0"
    head = b"\1" + letters + uleb(cie.code) + sleb(cie.data) + bytes([ra])
    body = head + (b"\1\0" if is_eh else b"") + cie.program
    first = struct.pack("<II", 4 + len(body), 0 if is_eh else 0xFFFFFFFF) + body
    function = struct.pack("<QQ", START, SIZE) + (b"\0" if is_eh else b"") + program
    return first + struct.pack("<II", 4 + len(function), len(first) + 4 if is_eh else 0) + function


def row_texts(table: Any, machine: int) -> list[tuple[int, str]]:
    rule = ffi.new("struct fp_unwind_rule *")
    n = lib.fp_unwind_table_stats(table).rows
    return [(lib.fp_unwind_table_row(table, i, rule), text_of(rule, *NAMES[machine])) for i in range(n)]


@given(
    MACHINE, st.booleans(), st.booleans(), st.sampled_from([1, 4, 0]), st.sampled_from([-8, -4, 1]), PROGRAM, PROGRAM
)
@example(62, True, False, 1, -8, b"", b"\x44\x0e\x10\x86\x02\x44\x0d\x06\x0a\x48\x0c\x07\x08\x41\x0b")
def test_rules(machine: int, is_eh: bool, signal: bool, code: int, data: int, first: bytes, program: bytes) -> None:
    cie = reference.Cie(code, data, FIRST[machine] + first, signal and is_eh)
    table = table_of(section(cie, machine, program, is_eh=is_eh), machine, is_eh=is_eh)
    rows = reference.rows_of(cie, START, SIZE, program)
    texts = [(row.start, reference.rule_of(row, machine)) for row in rows or ()] or [(START, "damaged")]
    if reference.rows_of(cie, START, SIZE, b"") is None:
        texts = []  # without its CIE nothing is known, not even its code range
    want = []
    for start, text in [*texts, (START + SIZE, "gap")] if texts else ():
        if not want or want[-1][1] != text:
            want.append((start, text))
    assert row_texts(table, machine) == want
    assert bool(lib.fp_unwind_table_stats(table).broken) == (rows is None)


REGISTERS = st.dictionaries(st.sampled_from([0, 3, 6, 10, 12]), st.integers(SP, SP + 64), max_size=5)


@given(REGISTERS, st.binary(min_size=32, max_size=96), PROGRAM, st.integers(0, SIZE - 1))
@example({3: SP + 8}, bytes(range(64)), b"\x0c\x03\x08\x90\x01", 0)
@example({}, bytes(range(64)), b"\x0f\x02\x77\x10\x16\x10\x03\x77\x00\x06", 0)
def test_callers(registers: dict[int, int], stack: bytes, program: bytes, at: int) -> None:
    """The return address in the leaf, with any registers and expressions."""
    cie = reference.Cie(1, -8, FIRST[62])
    table = table_of(section(cie, 62, program, is_eh=True), 62, is_eh=True)
    known = {**registers, 7: SP, 16: START + at}

    def memory(address: int, n: int) -> int:
        if not 0 <= address - SP <= len(stack) - n:
            raise reference.OutsideError
        return int.from_bytes(stack[address - SP : address - SP + n], "little")

    want: int | str
    rows = reference.rows_of(cie, START, SIZE, program)
    try:
        row = next((row for row in rows or () if row.start <= START + at < row.end), None)
        if row is None:
            want = "broken"
        else:
            if row.registers.get(16) == ("undefined",) and row.cfa:
                want = "complete"
            else:
                want, sp = reference.caller_of(row, known, memory)
                is_back = sp < SP or (sp == SP and want == START + at)
                want = "no progress" if want and is_back else want or "complete"
    except reference.DamagedError:
        want = "broken"
    except reference.OutsideError:
        want = "outside"
    everywhere = Place(0, (1 << 64) - 1, 0)
    frames, end = unwind(62, known, stack, SP, [Place(START, START + SIZE, START, table), everywhere], most=2)
    assert (frames[1].address if len(frames) == 2 else end) == want
