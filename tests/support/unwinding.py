"""Rules of the unwinder, as texts."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastprof.core._c import ffi, lib
from fastprof.symbols.unwind import UnwindTable

ENDS = {
    lib.FP_UNWIND_COMPLETE: "complete",
    lib.FP_UNWIND_OUTSIDE: "outside",
    lib.FP_UNWIND_NO_MAP: "no map",
    lib.FP_UNWIND_NO_FILE: "no file",
    lib.FP_UNWIND_NO_TABLE: "no table",
    lib.FP_UNWIND_BROKEN: "broken",
    lib.FP_UNWIND_NOT_EXECUTABLE: "not executable",
    lib.FP_UNWIND_NO_PROGRESS: "no progress",
    lib.FP_UNWIND_TOO_DEEP: "too deep",
}
NAMES = {62: ("rsp", "rbp"), 183: ("sp", "x29")}


def rules_of(table: UnwindTable, machine: int) -> Iterator[tuple[int, str]]:
    """The address and the rule of each row: `rsp+16 fp=c-16 ra=c-8`, `gap`, `slow` ..."""
    rule = ffi.new("struct fp_unwind_rule *")
    for i in range(table.stats.rows):
        address = lib.fp_unwind_table_row(table.c, i, rule)
        yield address, text_of(rule, *NAMES[machine])


def text_of(rule: object, sp: str, fp: str) -> str:
    kind = rule.kind
    plain = {lib.FP_UNWIND_GAP: "gap", lib.FP_UNWIND_DAMAGED: "damaged", lib.FP_UNWIND_SLOW: "slow"}
    if kind in plain:
        return plain[kind]
    if kind == lib.FP_UNWIND_LAST:
        return "last"
    if kind == lib.FP_UNWIND_SIGNAL:
        return f"signal cfa=*({sp}{rule.cfa:+}) fp=*({sp}{rule.fp:+}) ra=*({sp}{rule.ra:+})"
    cfa = {
        lib.FP_UNWIND_SP: f"{sp}{rule.cfa:+}",
        lib.FP_UNWIND_FP: f"{fp}{rule.cfa:+}",
        lib.FP_UNWIND_PLT: f"plt{rule.cfa}",
        lib.FP_UNWIND_REALIGN: f"*({fp}{rule.cfa:+})",
    }[kind]
    at = f"*({fp}{rule.fp:+})" if kind == lib.FP_UNWIND_REALIGN else f"c{rule.fp:+}"
    how_fp = {lib.FP_UNWIND_SAME: "same", lib.FP_UNWIND_SAVED: at, lib.FP_UNWIND_UNKNOWN: "lost"}[rule.fp_how]
    how_ra = {lib.FP_UNWIND_SAME: "link", lib.FP_UNWIND_SAVED: f"c{rule.ra:+}", lib.FP_UNWIND_UNKNOWN: "lost"}[
        rule.ra_how
    ]
    return f"{cfa} fp={how_fp} ra={how_ra}{' S' if rule.is_signal else ''}"


# ---- tables and stacks without files


def uleb(value: int) -> bytes:
    groups = bytearray()
    while True:
        value, low = value >> 7, value & 127
        groups.append(low | (128 if value else 0))
        if not value:
            return bytes(groups)


def sleb(value: int) -> bytes:
    groups = bytearray()
    while not -64 <= value < 64:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes((*groups, value & 127))


def table_of(
    data: bytes, machine: int, *, is_eh: bool, content: bytes = b"", loads: Sequence[tuple[int, ...]] = (), **more: Any
) -> Any:
    """A struct fp_unwind_table * of a section; it keeps the borrowed bytes alive."""
    kept = [ffi.from_buffer("uint8_t[]", part) for part in (data, content)]
    file = ffi.new("struct fp_unwind_file *", {"machine": machine, "id": 1, "n_loads": len(loads), **more})
    at = file.eh_frame if is_eh else file.debug_frame
    at.p, at.n = kept[0], len(data)
    file.content.p, file.content.n = kept[1], len(content)
    copied = ffi.new("struct fp_unwind_load[]", loads)
    file.loads = copied
    table = lib.fp_unwind_table_new(file, ffi.new("struct fp_err *"))
    assert table != ffi.NULL
    return ffi.gc(table, lambda c, kept=kept: lib.fp_unwind_table_free(c))


class Place(NamedTuple):
    start: int
    limit: int
    offset: int
    table: Any = ffi.NULL
    is_executable: bool = True
    why_not: int = lib.FP_UNWIND_NO_FILE


class Found(NamedTuple):
    address: int
    is_return: bool
    place: int  # -1: none


PERF_BITS = {62: {**dict(enumerate((0, 3, 2, 1, 4, 5, 6, 7))), 16: 8, **{8 + i: 16 + i for i in range(8)}}, 183: {}}


def unwind(
    machine: int,
    registers: dict[int, int],
    stack: bytes,
    sp: int,
    places: Sequence[Place],
    *,
    most: int = 100,
    flags: int = 0,
) -> tuple[list[Found], str]:
    """The frames of a stack at sp, leaf first, and how it ended.  `registers` are by DWARF number."""
    bits = PERF_BITS[machine]
    of_sp = {62: 7, 183: 31}[machine]
    values = sorted((bits.get(number, number), value) for number, value in (registers | {of_sp: sp}).items())
    data = struct.pack(f"<{len(values)}Q", *(value for _, value in values))

    @ffi.callback("int(void *, uint64_t, struct fp_unwind_place *)")  # type: ignore[untyped-decorator]
    def find(_self: Any, address: int, place: Any) -> int:
        for word, found in enumerate(places):
            if found.start <= address < found.limit:
                place.start, place.limit, place.offset, place.table = found[:4]
                place.is_executable, place.why_not, place.word = found.is_executable, found.why_not, word
                return int(lib.FP_DONE)
        return int(lib.FP_MORE)

    kept = ffi.from_buffer("uint8_t[]", data), ffi.from_buffer("uint8_t[]", stack)
    sample = ffi.new("struct fp_unwind_sample *", [sum(1 << bit for bit, _ in values), *kept, len(stack)])
    unwinder = ffi.gc(lib.fp_unwind_new(machine, flags), lib.fp_unwind_free)
    frames, n, why = ffi.new("struct fp_unwind_frame[]", most), ffi.new("uint32_t *"), ffi.new("uint32_t *")
    assert lib.fp_unwind_stack(unwinder, sample, find, ffi.NULL, frames, most, n, why) == lib.FP_DONE
    no_word = int(lib.FP_UNWIND_NO_WORD)
    found = [(f.address, bool(f.is_return), -1 if f.word == no_word else f.word) for f in frames[0 : n[0]]]
    return [Found(*one) for one in found], ENDS[why[0]]
