"""Rules of the unwinder, as texts."""

from __future__ import annotations

from collections.abc import Iterator

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
