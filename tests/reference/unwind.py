"""The obvious reader of .eh_frame and .debug_frame, and of the expressions in them: DWARF 5, sections 2.5 and 6.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Value = tuple[str, int] | tuple[str, int, int] | tuple[str, bytes] | tuple[str]
Registers = dict[int, int]
Memory = Callable[[int, int], int]

WORD = 1 << 64
DEPTH, STEPS = 64, 1000  # limits of expressions
KEPT_STATES = 32
REGISTERS = {62: range(17), 183: range(33)}


class DamagedError(Exception):
    pass


class OutsideError(Exception):
    pass


class Row(NamedTuple):
    start: int
    end: int
    cfa: Value | None  # ("register", number, offset) or ("is block", bytes)
    registers: dict[int, Value]
    is_signal: bool = False


class Function(NamedTuple):
    start: int
    end: int
    rows: list[Row] | None  # None: damaged


class Bytes:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise DamagedError
        self.at += n
        return self.data[self.at - n : self.at]

    def skip(self, n: int) -> None:
        """Also backwards."""
        if not 0 <= self.at + n <= len(self.data):
            raise DamagedError
        self.at += n

    def number(self, n: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(n), "little", signed=signed)

    def groups(self) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, shift

    def unsigned(self) -> int:
        value, _ = self.groups()
        if value >= WORD:
            raise DamagedError
        return value

    def signed(self) -> int:
        value, bits = self.groups()
        return signed(value - (1 << bits) if value >> (bits - 1) else value)

    def block(self) -> bytes:
        return self.take(self.unsigned())


def signed(value: int) -> int:
    value %= WORD
    return value - WORD if value >> 63 else value


# ---- programs


class Cie(NamedTuple):
    """The parts of a CIE that programs depend on; sections of tests have the encoding absptr."""

    code: int
    data: int
    program: bytes
    is_signal: bool = False


class Program:
    def __init__(self, cie: Cie, start: int) -> None:
        self.cie, self.location = cie, start
        self.cfa: Value | None = None
        self.registers: dict[int, Value] = {}
        self.first: dict[int, Value] | None = None
        self.kept: list[tuple[Value | None, dict[int, Value]]] = []
        self.rows: list[Row] = []

    def run(self, program: bytes) -> None:
        left = Bytes(program)
        while left.at < len(program):
            by = self.step(left)
            if by and self.first is None:
                raise DamagedError  # a CIE has no locations
            if by:
                self.add(self.location + by)

    def add(self, end: int) -> None:
        row = Row(self.location, end, self.cfa, dict(self.registers), self.cie.is_signal)
        self.rows.append(row)
        self.location = end

    def restore(self, register: int) -> None:
        if self.first is None:
            raise DamagedError
        self.registers.pop(register, None)
        if register in self.first:
            self.registers[register] = self.first[register]

    def scaled(self, value: int) -> int:
        return signed(value * self.cie.data)

    def step(self, left: Bytes) -> int:
        """Run an instruction; returns the number of bytes that it advances."""
        op = left.number(1)
        if op >> 6 == 1:
            return (op & 63) * self.cie.code % WORD
        if op >> 6 == 2:
            self.registers[op & 63] = ("at", self.scaled(left.unsigned()))
        elif op >> 6 == 3:
            self.restore(op & 63)
        elif op == 0x01:
            to = left.number(8)
            if to < self.location or self.first is None:
                raise DamagedError
            return to - self.location
        elif op in (0x02, 0x03, 0x04, 0x1D):
            return left.number({2: 1, 3: 2, 4: 4, 0x1D: 8}[op]) * self.cie.code % WORD
        elif op == 0x06:
            self.restore(left.unsigned())
        elif op == 0x0A:
            if len(self.kept) == KEPT_STATES:
                raise DamagedError
            self.kept.append((self.cfa, dict(self.registers)))
        elif op == 0x0B:
            if not self.kept:
                raise DamagedError
            self.cfa, self.registers = self.kept.pop()
        elif op in (0x0C, 0x0D, 0x0E, 0x0F, 0x12, 0x13):
            self.set_cfa(op, left)
        elif op == 0x2E:
            left.unsigned()
        elif op not in (0x00, 0x2C, 0x2D):
            self.set_register(op, left.unsigned(), left)
        return 0

    def set_cfa(self, op: int, left: Bytes) -> None:
        if op == 0x0F:
            self.cfa = ("is block", left.block())
            return
        if op in (0x0C, 0x12):
            self.cfa = ("register", left.unsigned(), 0)
        if self.cfa is None or self.cfa[0] != "register":
            raise DamagedError
        _, register, offset = self.cfa  # type: ignore[misc]
        if op == 0x0D:
            register = left.unsigned()
        elif op in (0x0C, 0x0E):
            offset = signed(left.unsigned())
        else:
            offset = self.scaled(left.signed())
        self.cfa = ("register", register, offset)

    def set_register(self, op: int, register: int, left: Bytes) -> None:
        rules: dict[int, Callable[[], Value]] = {
            0x05: lambda: ("at", self.scaled(left.unsigned())),
            0x07: lambda: ("undefined",),
            0x08: lambda: ("same",),
            0x09: lambda: ("register", left.unsigned(), 0),
            0x10: lambda: ("at block", left.block()),
            0x11: lambda: ("at", self.scaled(left.signed())),
            0x14: lambda: ("is", self.scaled(left.unsigned())),
            0x15: lambda: ("is", self.scaled(left.signed())),
            0x16: lambda: ("is block", left.block()),
            0x2F: lambda: ("at", self.scaled(-left.unsigned())),
        }
        if op not in rules:
            raise DamagedError
        self.registers[register] = rules[op]()


def rows_of(cie: Cie, start: int, size: int, program: bytes) -> list[Row] | None:
    """The rows of a function; None if it is damaged before its end."""
    run = Program(cie, start)
    try:
        run.run(cie.program)
        run.first = dict(run.registers)
        run.kept.clear()
        run.run(program)
    except DamagedError:
        # damage after the function's end does not matter
        if run.first is None or run.location < start + size:
            return None
    if run.location < start + size:
        run.add(start + size)
    return [row._replace(end=min(row.end, start + size)) for row in run.rows if row.start < start + size]


# ---- rules


def sum_of(block: bytes, register: int, *, deref: bool) -> int | None:
    """The n of an expression `register + n`, or of `*(register + n)`."""
    try:
        left = Bytes(block)
        if left.number(1) != 0x70 + register or register > 31:
            return None
        n = left.signed()
        if (deref and left.number(1) != 6) or left.at != len(block):
            return None
    except DamagedError:
        return None
    return n if -(1 << 31) <= n < 1 << 31 else None


def rule_of(row: Row, machine: int) -> str:
    """The part of a row that finds pc, sp and fp, in the notation of tests/support/unwinding.py."""
    sp, fp, ra = {62: (7, 6, 16), 183: (31, 29, 30)}[machine]
    sp_name, fp_name = {62: ("rsp", "rbp"), 183: ("sp", "x29")}[machine]
    cfa, of_fp, of_ra = row.cfa, row.registers.get(fp, ("same",)), row.registers.get(ra)
    if cfa is None:
        return "damaged"
    if of_ra and of_ra[0] == "undefined":
        return "last"
    block = cfa[1] if isinstance(cfa[1], bytes) else b""
    blocks = [v[1] if v and v[0] == "at block" and isinstance(v[1], bytes) else b"" for v in (of_fp, of_ra)]
    if machine == 62:
        words = [sum_of(b, sp, deref=b is block) for b in (block, *blocks)]
        if block and None not in words:
            return "signal " + " ".join(
                f"{n}=*({sp_name}{w:+})" for n, w in zip(("cfa", "fp", "ra"), words, strict=True)
            )
    small = range(-(1 << 31), 1 << 31)
    is_saved = of_ra is not None and of_ra[0] == "at"
    by_link = machine == 183 and (of_ra is None or of_ra[0] == "same")
    if sp in row.registers or not (by_link or of_ra is None or (is_saved and of_ra[1] in small)):  # type: ignore[index]
        return "slow"
    tail = f" ra=c{of_ra[1]:+}" if is_saved else " ra=link" if machine == 183 else " ra=lost"  # type: ignore[index, str-format]
    tail += " S" if row.is_signal else ""
    if block:
        at, to = sum_of(block, fp, deref=True), sum_of(blocks[0], fp, deref=False)
        if at is not None and to is not None:
            return f"*({fp_name}{at:+}) fp=*({fp_name}{to:+}){tail}"
        plt = machine == 62 and len(block) == 11 and block[:6] == bytes.fromhex("770880003f1a")
        if not (plt and block[7:] == bytes.fromhex("2a332422") and 0x30 <= block[6] <= 0x3F):
            return "slow"
        name = f"plt{block[6] - 0x30}"
    elif cfa[0] == "register" and cfa[1] in (sp, fp) and cfa[2] in small:  # type: ignore[misc]
        name = f"{sp_name if cfa[1] == sp else fp_name}{cfa[2]:+}"  # type: ignore[misc]
    else:
        return "slow"
    if of_fp[0] == "at" and of_fp[1] in small:  # type: ignore[misc]
        popped = name.startswith(sp_name) and of_fp[1] < -cfa[2]  # type: ignore[misc, operator]
        return f"{name} fp={'same' if popped else f'c{of_fp[1]:+}'}{tail}"  # type: ignore[misc]
    return f"{name} fp={'lost' if of_fp[0] == 'undefined' else 'same'}{tail}" if len(of_fp) == 1 else "slow"


# ---- expressions


def operand(op: int, left: Bytes, registers: Registers) -> int | None:
    """What an operation pushes that reads nothing from the stack; None if it is another one."""

    def register(number: int) -> int:
        if number not in registers:
            raise DamagedError
        return registers[number]

    if 0x30 <= op <= 0x4F:
        return op - 0x30
    if 0x50 <= op <= 0x6F:
        return register(op - 0x50)
    if 0x70 <= op <= 0x8F:
        return register(op - 0x70) + left.signed()
    if op == 0x92:
        return register(left.unsigned()) + left.signed()
    if op == 0x03:
        return left.number(8)
    if 0x08 <= op <= 0x0F:
        return left.number(1 << (op - 8) // 2, signed=bool(op & 1))
    if op in (0x10, 0x11):
        return left.unsigned() if op == 0x10 else left.signed()
    return None


def evaluate(block: bytes, registers: Registers, memory: Memory, pushed: int | None = None) -> int:
    """Errors: DamagedError, or OutsideError from memory."""
    left, stack, steps = Bytes(block), [] if pushed is None else [pushed], 0

    def pop() -> int:
        if not stack:
            raise DamagedError
        return stack.pop()

    def pick(depth: int) -> int:
        if depth >= len(stack):
            raise DamagedError
        return stack[-1 - depth]

    def load(address: int, n: int) -> int:
        if not 1 <= n <= 8:
            raise DamagedError
        return memory(address, n)

    while left.at < len(block):
        steps += 1
        if steps > STEPS:
            raise DamagedError
        op = left.number(1)
        if (value := operand(op, left, registers)) is not None:
            stack.append(value)
        elif op in (0x12, 0x14):
            stack.append(pick(op == 0x14))
        elif op == 0x13:
            pop()
        elif op == 0x15:
            stack.append(pick(left.number(1)))
        elif op == 0x16:
            pick(1)
            stack[-2:] = stack[-1], stack[-2]
        elif op == 0x17:
            pick(2)
            stack[-3:] = stack[-1], stack[-3], stack[-2]
        elif op in (0x06, 0x94):
            stack.append(load(pop(), 8 if op == 0x06 else left.number(1)))
        elif op == 0x19:
            stack.append(abs(signed(pop())))
        elif op in (0x1F, 0x20):
            stack.append(-pop() if op == 0x1F else ~pop())
        elif op == 0x23:
            stack.append(pop() + left.unsigned())
        elif op in (0x28, 0x2F):
            by = left.number(2, signed=True)
            if op == 0x2F or pop():
                left.skip(by)
        elif 0x1A <= op <= 0x2E:
            b, a = pop(), pop()
            stack.append(two(op, a, b))
        elif op != 0x96:
            raise DamagedError
        if len(stack) > DEPTH:
            raise DamagedError
        stack[-1:] = [value % WORD for value in stack[-1:]]
    return pop()


def two(op: int, a: int, b: int) -> int:
    sa, sb = signed(a), signed(b)
    if op in (0x1B, 0x1D) and not b:
        raise DamagedError
    if op == 0x1B:
        return abs(sa) // abs(sb) * (1 if (sa < 0) == (sb < 0) else -1)
    if op in (0x24, 0x25, 0x26):
        return {0x24: a << b if b < 64 else 0, 0x25: a >> b if b < 64 else 0, 0x26: sa >> min(b, 63)}[op]
    if op == 0x1D:
        return a % b
    return int(
        {
            0x1A: a & b,
            0x1C: a - b,
            0x1E: a * b,
            0x21: a | b,
            0x22: a + b,
            0x27: a ^ b,
            0x29: a == b,
            0x2A: sa >= sb,
            0x2B: sa > sb,
            0x2C: sa <= sb,
            0x2D: sa < sb,
            0x2E: a != b,
        }[op]
    )


def caller_of(row: Row, registers: Registers, memory: Memory) -> tuple[int, int]:
    """The return address and the stack pointer of the caller of x86-64 code, from all registers.

    Errors: DamagedError, OutsideError.
    """
    if row.cfa is None:
        raise DamagedError
    if row.cfa[0] == "register":
        _, number, offset = row.cfa  # type: ignore[misc]
        if number not in registers:
            raise DamagedError
        cfa = (registers[number] + offset) % WORD
    else:
        cfa = evaluate(row.cfa[1], registers, memory)  # type: ignore[arg-type, misc]

    def recovered(number: int) -> int:
        how, *value = row.registers.get(number, ("undefined",))
        if how in ("at", "is"):
            address = (cfa + value[0]) % WORD  # type: ignore[operator]
        elif how in ("at block", "is block"):
            address = evaluate(value[0], registers, memory, cfa)  # type: ignore[arg-type]
        elif how == "undefined" or (how == "register" and value[0] not in registers):
            raise DamagedError
        else:
            return registers[number if how == "same" else value[0]]  # type: ignore[index]
        if number == 7 and how == "at" and address < registers[7]:
            return registers[7]  # popped
        return memory(address, 8) if how.startswith("at") else address

    found = recovered(16)
    try:
        return found, recovered(7)
    except (DamagedError, OutsideError):
        return found, cfa
