"""Output of verbs: progress and the report."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from fastprof.cli import print_message, print_raw
from fastprof.cli.as_json import json_text
from fastprof.core._typing import Any
from fastprof.core.log import Log
from fastprof.core.remote import shown
from fastprof.core.words import counted

_OF_A_KIND = 5  # warnings that are printed; --json has all of them


class Progress:
    """A progress bar over the bytes of the input files, if stderr is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._on = not quiet and sys.stderr.isatty()

    def __call__(self, source: Any) -> None:
        if not self._on or not source.compressed_size:
            return
        from fastprof.cli.bar import Bar

        bar = Bar(source.compressed_size, os.path.basename(source.name))
        source.on_progress(bar.move, bar.close)


class Steps:
    """A progress bar over items done one after the other, if stderr is a terminal."""

    def __init__(self, quiet: bool, unit: str) -> None:
        self._on = not quiet and sys.stderr.isatty()
        self._unit = unit
        self._bar: Any = None
        self.n = 0
        self.name = ""

    def __call__(self, name: str, n: int, of: int) -> None:
        """`name` is done, number `n` of so many."""
        self.name, self.n = name, n
        if not self._on or of == 1:
            return
        if self._bar is None:
            from fastprof.cli.bar import Bar

            self._bar = Bar(of, unit=self._unit)
        self._bar.move(n)

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def print_problems(log: Log, inputs: str, quiet: bool) -> None:
    """Losses and warnings of the inputs, next to a table on standard output."""
    if not (log.losses or log.warnings):
        return
    if counts := _counts(log, quiet):
        print_message(f"{inputs}: {'; '.join(counts)}")
    print_warnings(log.warned(flags=True))


def print_warnings(warnings: Sequence[Mapping[str, str]]) -> None:
    """Each on a line, but only the first few of a code: thousands of objects may lack symbols."""
    left = Counter(warning["code"] for warning in warnings)
    printed: Counter[str] = Counter()
    for warning in warnings:
        code = warning["code"]
        printed[code] += 1
        left[code] -= 1
        if printed[code] <= _OF_A_KIND:
            print_message(f"warning: {warning['text']}")
        if printed[code] == _OF_A_KIND and left[code]:
            print_message(f"warning: and {left[code]:,} more like it")


def _counts(log: Log, quiet: bool = False) -> list[str]:
    """The counts; with `quiet` only losses."""
    parts = []
    counts_of = (
        ("repairs", log.repairs),
        ("losses", log.losses),
        ("left out", log.left_out),
        ("not representable", log.not_representable),
    )
    for title, counts in counts_of:
        if counts and (counts is log.losses or not quiet):
            parts.append(f"{title}: " + ", ".join(counts.lines(flags=True)))
    return parts


def log_json(log: Log) -> str:
    """The log as one JSON object."""
    return json_text(log.as_dict(flags=True))


def print_log(args: argparse.Namespace, log: Log, headline: str) -> int:
    """Print the log on standard error; returns the exit code.  --quiet keeps losses and warnings."""
    if args.json:
        print_raw(log_json(log) + "\n")
    else:
        counts = _counts(log, args.quiet)
        if parts := counts if args.quiet else [headline, *counts]:
            print_message("; ".join(parts))
        print_warnings(log.warned(flags=True))
    return exit_code(log)


def print_written(args: argparse.Namespace, log: Log) -> int:
    """As `print_log`, of one output."""
    rows = _rows(log.rows)
    target = "standard output" if args.output == "-" else shown(args.output)
    files = log.facts.get("files", [])
    if files:
        target = counted(len(files), "file")
    code = print_log(args, log, f"{rows or 'no records'} -> {target} ({counted(log.facts['output_bytes'], 'byte')})")
    for file in files if not (args.json or args.quiet) else ():
        merged = f", {counted(file['merged_calls'], 'call merged', 'calls merged')}" if "merged_calls" in file else ""
        merged += (
            f", {counted(file['pruned_stacks'], 'stack pruned', 'stacks pruned')}" if "pruned_stacks" in file else ""
        )
        print_message(f"{file['path']}: {counted(file['rows'], 'row')} ({counted(file['bytes'], 'byte')}){merged}")
    return code


def _rows(rows: Mapping[str, int]) -> str:
    """The samples read and the rows they were summed up to: fewer rows than samples are no loss.

    81 samples written as 62 rows
    65 rows written
    """
    came = [_counted(rows[name], name) for name in ("samples", "calls") if name in rows]
    written = {name: n for name, n in rows.items() if name.endswith(" written")}
    if "read" in rows and not came and rows["read"] != sum(written.values()):
        came = [counted(rows["read"], "row")]
    sums = ("samples", "calls", "read", "summed up")
    others = [_counted(n, name) for name, n in rows.items() if name not in (*sums, *written)]
    went = [_counted(n, name.removesuffix(" written") if came else name) for name, n in written.items()]
    if not (came and went):
        return ", ".join([*came, *went, *others])
    return ", ".join([f"{' and '.join(came)} written as {' and '.join(went)}", *others])


def _counted(n: int, name: str) -> str:
    """Rows by their name in a log, whose first word in s is what is counted: "estimated stacks", "rows written"."""
    words = name.split(" ")
    noun = next(i for i, word in enumerate(words) if word.endswith("s"))
    return counted(n, " ".join([*words[:noun], words[noun][:-1], *words[noun + 1 :]]), name)


def exit_code(log: Log) -> int:
    return 3 if log.losses else 0
