"""Output of verbs: progress and the report."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from fastprof.cli import print_message, print_raw
from fastprof.core._typing import Any
from fastprof.core.log import Log
from fastprof.core.urls import shown
from fastprof.core.words import counted

_OF_A_KIND = 5  # warnings printed per code; --json has all


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
    """A progress bar over items processed in sequence, if stderr is a terminal."""

    def __init__(self, quiet: bool, unit: str) -> None:
        self._on = not quiet and sys.stderr.isatty()
        self._unit = unit
        self._bar: Any = None
        self.n = 0
        self.name = ""

    def __call__(self, name: str, n: int, of: int) -> None:
        """Item `name` is done, number `n` of `of`."""
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
    """Print losses and warnings of the inputs on standard error; standard output has a table.

    What a file could not hold is only in --json, because no file is written."""
    if not (log.losses or log.warnings):
        return
    if counts := _counts(log, quiet, written=False):
        print_message(f"{inputs}: {'; '.join(counts)}")
    print_warnings(log.warned(flags=True))


def print_warnings(warnings: Sequence[Mapping[str, str]]) -> None:
    """Print warnings, one per line, but only the first few per code: thousands of objects may lack symbols."""
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


def _counts(log: Log, quiet: bool = False, *, written: bool = True) -> list[str]:
    """The counts; with `quiet` only losses.  `written`: also of what the output could not hold."""
    parts = []
    counts_of = [("repairs", log.repairs), ("losses", log.losses), ("left out", log.left_out)]
    if written:
        counts_of.append(("not representable", log.not_representable))
    for title, counts in counts_of:
        if counts and (counts is log.losses or not quiet):
            parts.append(f"{title}: " + ", ".join(counts.lines(flags=True)))
    return parts


def log_json(log: Log) -> str:
    """The log as one JSON object."""
    from fastprof.cli.as_json import json_text

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
    """Print the log of a written output; returns the exit code."""
    rows = rows_text(log)
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


# By key in a log: singular and plural of what is counted.  Fields are facts of the log.
_NOUNS = {
    "boxes": ("box", "boxes"),
    "calls": ("call", "calls"),
    "calls_written": ("call", "calls"),
    "contexts": ("context", "contexts"),
    "counter_values_written": ("value of a counter", "values of counters"),
    "events_written": ("event", "events"),
    "functions": ("function", "functions"),
    "markers_written": ("marker", "markers"),
    "rows_read": ("row", "rows"),
    "rows_written": ("row", "rows"),
    "samples": ("sample", "samples"),
    "samples_written": ("sample", "samples"),
    "stacks_estimated": ("estimated stack", "estimated stacks"),
    "stacks_written": ("stack of {value_type}", "stacks of {value_type}"),
    "table_rows": ("row of {table}", "rows of {table}"),
}


def rows_text(log: Log) -> str:
    """The samples read and the rows that they were added up to: fewer rows than samples is not a loss.

    81 samples written as 62 rows
    65 rows written
    """

    rows, facts = log.rows, {"value_type": "a value type", "table": "a table"} | log.facts

    def text(key: str) -> str:
        return counted(rows[key], *(noun.format_map(facts) for noun in _NOUNS[key]))

    written = [key for key in rows if key.endswith("_written")]
    read = [key for key in ("samples", "calls") if key in rows]
    if "rows_read" in rows and not read and rows["rows_read"] != sum(rows[key] for key in written):
        read = ["rows_read"]
    others = [text(key) for key in rows if key not in ("samples", "calls", "rows_read", "rows_summed", *written)]
    if read and written:
        return ", ".join([f"{' and '.join(map(text, read))} written as {' and '.join(map(text, written))}", *others])
    return ", ".join([*map(text, read), *(f"{text(key)} written" for key in written), *others])


def exit_code(log: Log) -> int:
    return 3 if log.losses else 0
