"""Counts and warnings of logs: each folder declares its texts in a table, in `reported.py`.

    REPORTED = reported(
        "fp_folded_counts",
        shared=("orphan-exits",),
        repairs={"blank-lines": "blank line(s)", "late-lines": "line(s) that (is|are) late"},
        warnings={"zero-period": "{file}: the period is 0, so all CPU times are 0; use {--period}"},
    )
    log.count(REPORTED["blank-lines"], n)
    log.count_all(REPORTED, decoder.counts)
    log.warn(REPORTED["zero-period"], file=source.name)

Scripts rely on codes, so codes stay when texts change.  A code has the same kind in all folders.  In a text, `{file}`
is a value passed when it is reported, `{--period}` an option (core/messages.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastprof.core._c import ffi
from fastprof.core._typing import Any, CData, NamedTuple
from fastprof.core.counted import COUNTED
from fastprof.core.messages import Message, filled

Words = Mapping[str, str | tuple[str, str]]  # by code: singular and plural, in one text or in two


def _forms(words: str) -> tuple[str, str]:
    """The singular and the plural of "line(s) that (is|are) late"."""
    one, *parts = words.replace("(s)", "(|s)").split("(")
    several = one
    for part in parts:
        choice, _, rest = part.partition(")")
        first, chosen, second = choice.partition("|")
        one += first + rest if chosen else f"({part}"
        several += second + rest if chosen else f"({part}"
    return one, several


class Entry(NamedTuple):
    """An entry of a log."""

    code: str
    kind: str  # where it appears in a log: "repairs", "losses", "not_representable", "left_out" or "warnings"
    one: str  # "orphan exit"; "" for a warning
    several: str  # "orphan exits"; the whole text of a warning

    def text(self, values: Iterable[tuple[str, Any]] = (), *, flags: bool = False) -> str:
        """The plural without a number."""
        return filled(self.several, values, flags=flags)

    def counted(self, n: int, values: Iterable[tuple[str, Any]] = (), *, flags: bool = False) -> str:
        """For a person: "2 orphan exits"."""
        return self.message(n, values).text(flags=flags)

    def message(self, n: int, values: Iterable[tuple[str, Any]] = ()) -> Message:
        return Message(f"{n:,} {self.one if n == 1 else self.several}", **dict(values))


def reported(
    *structs: str,
    shared: Iterable[str] = (),
    repairs: Words | None = None,
    losses: Words | None = None,
    not_representable: Words | None = None,
    left_out: Words | None = None,
    warnings: Mapping[str, str] | None = None,
) -> dict[str, Entry]:
    """A folder's table, by code.  `structs`: of the C core, whose counts it has (FP_COUNT in csrc/core/fp.h); `shared`:
    codes of SHARED that it also uses."""
    found = {code: SHARED[code] for code in shared}
    kinds = {"repairs": repairs, "losses": losses, "not_representable": not_representable, "left_out": left_out}
    for kind, words in kinds.items():
        for code, forms in (words or {}).items():
            found[code] = Entry(code, kind, *(_forms(forms) if isinstance(forms, str) else forms))
    for code, text in (warnings or {}).items():
        found[code] = Entry(code, "warnings", "", text)
    declared = [(code, names) for struct in structs for code, (_, *names) in COUNTED[struct].items()]
    found |= {code: Entry(code, names[0], *["", *names[1:]][-2:]) for code, names in declared if names}
    return {code: SHARED[code] for code, _ in declared if code in SHARED} | found


def counts_of(c: CData) -> dict[str, int]:
    """What a struct of the C core counted, by code."""
    fields = COUNTED[ffi.typeof(c).cname.split()[1]]
    return {code: int(getattr(c, field)) for code, (field, *_) in fields.items()}


def coded(table: Mapping[str, Entry], counts: Mapping[str, int]) -> dict[str, int]:
    """What a lexer counted in fields that have the names of codes, by code; without other fields."""
    found = {field.replace("_", "-"): n for field, n in counts.items()}
    return {code: n for code, n in found.items() if code in table}


# Entries that several folders share.
SHARED: dict[str, Entry] = {}
SHARED |= reported(
    repairs={
        "clamped-times": "time(s) clamped",
        "orphan-exits": "orphan exit(s)",
        "rounded-weights": "fractional weight(s), rounded",
        "samples-without-stack": "sample(s) without a stack, shown as [no stack]",
        "unfinished-calls": "unfinished call(s)",
        "unwound-frames": "unwound frame(s)",
    },
    losses={
        "damaged-records": "damaged record(s)",
        "skipped-bytes": "byte(s) skipped",
        "unreadable-lines": "unreadable line(s)",
        "unreadable-rest": "file(s) whose end(s) could not be read",
    },
    not_representable={
        "addresses": "frame(s) whose address is dropped",
        "build-ids": "build id(s)",
        "call-arguments": "call argument(s)",
        "counter-values": "value(s) of (a counter|counters)",
        "events": "event(s)",
        "part-addresses": "part(s) whose addresses are dropped",
        "places": "frame(s) whose address, file or line is dropped",
        "replaced-bytes": "non-UTF-8 byte(s) of (a name,|names,) replaced",
        "sample-labels": "label(s) of (a sample|samples)",
        "sample-times": "time(s) of (a sample|samples)",
        "start-time": "start time(s), from which times are counted",
        "thread-numbers": (
            "thread with a duplicate number, renumbered",
            "threads with duplicate numbers, renumbered",
        ),
        "units": ("unit of a value type", "units of value types"),
        "value-names": ("name of a value type", "names of value types"),
        "value-types": "value(s) of type {name}",
    },
    warnings={
        "no-such-label": "{option}: no sample has the label {key:.80}; {which}",
        "object-notes": "{path}: {note}",
    },
)

# Entries of core itself.
REPORTED = reported(
    repairs={"byte-order-marks": "byte order mark(s)"},
    losses={
        "cut-names": "name(s) truncated to {most}",
        "damaged-streams": "damaged {kind} stream(s), read up to the damage",
        "shortened-files": "file(s) that shrank while (it|they) (was|were) read",
    },
    left_out={"filtered-rows": "row(s) by {options}"},
    warnings={
        "default-without-cost": "{name} is 0 everywhere, so {instead} takes its place; {--value:=}NAME selects another",
        "only-zeros": "{name} is 0 everywhere; {--value:=}NAME selects another value type: {others}",
    },
)
