"""Counts and warnings of logs: each folder declares its texts in a table, in `reported.py`.

    REPORTED = reported(
        "fp_folded_counts",
        shared=("orphan-exits",),
        repairs={"blank-lines": ("blank line", "blank lines")},
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

Words = Mapping[str, tuple[str, str]]  # by code: singular and plural


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
        for code, (one, several) in (words or {}).items():
            found[code] = Entry(code, kind, one, several)
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
        "clamped-times": ("time clamped", "times clamped"),
        "orphan-exits": ("orphan exit", "orphan exits"),
        "rounded-weights": ("fractional weight, rounded", "fractional weights, rounded"),
        "samples-without-stack": (
            "sample without a stack, shown as [no stack]",
            "samples without a stack, shown as [no stack]",
        ),
        "unfinished-calls": ("unfinished call", "unfinished calls"),
        "unwound-frames": ("unwound frame", "unwound frames"),
    },
    losses={
        "damaged-records": ("damaged record", "damaged records"),
        "skipped-bytes": ("byte skipped", "bytes skipped"),
        "unreadable-lines": ("unreadable line", "unreadable lines"),
        "unreadable-rest": ("file whose end could not be read", "files whose ends could not be read"),
    },
    not_representable={
        "addresses": ("frame whose address is dropped", "frames whose address is dropped"),
        "build-ids": ("build id", "build ids"),
        "call-arguments": ("call argument", "call arguments"),
        "counter-values": ("value of a counter", "values of counters"),
        "events": ("event", "events"),
        "part-addresses": ("part whose addresses are dropped", "parts whose addresses are dropped"),
        "places": ("frame whose address, file or line is dropped", "frames whose address, file or line is dropped"),
        "replaced-bytes": ("non-UTF-8 byte of a name, replaced", "non-UTF-8 bytes of names, replaced"),
        "sample-labels": ("label of a sample", "labels of samples"),
        "sample-times": ("time of a sample", "times of samples"),
        "start-time": (
            "start time, from which times are counted",
            "start times, from which times are counted",
        ),
        "thread-numbers": (
            "thread with a duplicate number, renumbered",
            "threads with duplicate numbers, renumbered",
        ),
        "units": ("unit of a value type", "units of value types"),
        "value-names": ("name of a value type", "names of value types"),
        "value-types": ("value of type {name}", "values of type {name}"),
    },
    warnings={
        "no-such-label": "{option}: no sample has the label {key:.80}; {which}",
        "object-notes": "{path}: {note}",
    },
)

# Entries of core itself.
REPORTED = reported(
    repairs={"byte-order-marks": ("byte order mark", "byte order marks")},
    losses={
        "cut-names": ("name truncated to {most}", "names truncated to {most}"),
        "damaged-streams": (
            "damaged {kind} stream, read up to the damage",
            "damaged {kind} streams, read up to the damage",
        ),
        "shortened-files": (
            "file that shrank while it was read",
            "files that shrank while they were read",
        ),
    },
    left_out={"filtered-rows": ("row by {options}", "rows by {options}")},
    warnings={
        "default-without-cost": "{name} is 0 everywhere, so {instead} takes its place; {--value:=}NAME selects another",
        "only-zeros": "{name} is 0 everywhere; {--value:=}NAME selects another value type: {others}",
    },
)
