"""Output of verbs: progress and the report."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from fastprof.cli.text import print_raw
from fastprof.core import lazy_re as re
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import printable
from fastprof.core.log import Log, percent
from fastprof.core.messages import counted
from fastprof.core.streams import Closing
from fastprof.core.urls import shown

if TYPE_CHECKING:
    import argparse

_OF_A_KIND = 5  # warnings printed per code; -v prints all


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


class Steps(Closing):
    """A progress bar over items processed in sequence, if stderr is a terminal and there are at least `least`."""

    def __init__(self, quiet: bool, unit: str, least: int = 2) -> None:
        self._on = not quiet and sys.stderr.isatty()
        self._unit, self._least = unit, least
        self._bar: Any = None
        self.n = 0
        self.name = ""

    def __call__(self, name: str, n: int, of: int) -> None:
        """Item `name` is done, number `n` of `of`."""
        self.name, self.n = name, n
        self.count(n, of)

    def count(self, n: int, of: int) -> None:
        """`n` of `of` items are done, which begin anew with another total."""
        if not self._on or of < self._least:
            return
        if self._bar is None or self._bar.total != of:
            from fastprof.cli.bar import Bar

            self.close()
            self._bar = Bar(of, unit=self._unit)
        self._bar.move(n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def print_message(message: str) -> None:
    """Print one line on standard error."""
    print_raw(f"fastprof: {printable(message)}\n")


def inputs_text(names: Sequence[str]) -> str:
    return shown(names[0]) if len(names) == 1 else f"{len(names)} inputs"


def print_problems(log: Log, inputs: str, quiet: bool, verbose: bool = False) -> None:
    """Print losses and warnings of the inputs on standard error; standard output has a table.

    Repairs and what the table cannot show are listed next to losses and warnings, and with `verbose`."""
    if not (log.losses or log.warnings or verbose):
        return
    if counts := _counts(log, quiet, written=verbose):
        print_message(f"{inputs}: {'; '.join(counts)}")
    print_warnings(log.warned(flags=True), verbose)


def print_warnings(warnings: Sequence[Mapping[str, str]], verbose: bool = False) -> None:
    """Print warnings, one per line, but without `verbose` only the first few per code: thousands of objects may lack
    symbols."""
    if verbose:
        for warning in warnings:
            print_message(f"warning: {warning['text']}")
        return
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
        counts_of.append(("not part of the output", log.not_representable))
    for title, counts in counts_of:
        if counts and (counts is log.losses or not quiet):
            parts.append(f"{title}: " + ", ".join(counts.lines(flags=True)))
    return parts


_NAMED = 3  # kinds of data listed that are not part of the output; -v lists all
# "calls whose CPU is dropped", "calls, summed up without their times": CPU of calls, times of calls
_WHOSE = re.compile(r"(.+?)(?: whose (.+) (?:is|are) dropped|, summed up without their (.+))")
# "threads, merged (--per-thread keeps them separate)": threads
_REMARK = re.compile(r" \(.*|, (?:\w+(?:ed|en)\b|which ).*")


def not_part(log: Log) -> str:
    """What the output could not hold, without numbers: `labels of samples and threads are not part of the output`."""
    kinds = dict.fromkeys(_REMARK.sub("", _WHOSE.sub(_of, text)) for text in log.not_representable.texts())
    if not kinds:
        return ""
    named = [*kinds] if len(kinds) <= _NAMED + 1 else [*kinds][:_NAMED]
    if len(named) < len(kinds):
        named.append(f"{len(kinds) - len(named)} other kinds of data")
    *others, last = named
    return f"{', '.join(others)}{' and ' * bool(others)}{last} are not part of the output, -v lists them"


def _of(found: re.Match[str]) -> str:
    what = found[2] or found[3]
    return f"{'places' if ',' in what else what} of {found[1]}"


def print_log(args: argparse.Namespace, log: Log, name: str, target: str, what: str, read: str = "") -> int:
    """Print the log of a written output on standard error; as JSON the document `name`.  Returns the exit code.

        wrote out.callgrind: 70 rows (2,329 calls; threads are not part of the output, -v lists them)
        repairs: 3 unwound frames

    --verbose lists everything, --quiet keeps losses and warnings."""
    if args.json:
        from fastprof.cli.as_json import document, json_text

        print_raw(json_text(document(name, log.as_dict(flags=True))) + "\n")
        return exit_code(log)
    if not args.quiet:
        nbytes = counted(log.facts["output_bytes"], "byte") if args.verbose and "output_bytes" in log.facts else ""
        covered = ""
        if "coverage" in log.facts:  # of a profile for compilers
            functions, lines = (percent(log.facts[key]) for key in ("coverage_of_functions", "coverage"))
            covered = f"of the counts, {functions} belong to functions and {lines} to lines"
        details = "; ".join(filter(None, [read, covered, nbytes, "" if args.verbose else not_part(log)]))
        print_message(f"wrote {target}: {what}{details and f' ({details})'}")
    for count in _counts(log, args.quiet, written=args.verbose):
        print_message(count)
    print_warnings(log.warned(flags=True), args.verbose)
    return exit_code(log)


def print_written(args: argparse.Namespace, log: Log, name: str) -> int:
    """Print the log of a written output; as JSON the document `name`.  Returns the exit code."""
    files = log.facts.get("files", [])
    target = counted(len(files), "file") if files else target_name(args.output)
    code = print_log(args, log, name, target, *rows_text(log))
    for file in files if not (args.json or args.quiet) else ():
        merged = f", {counted(file['merged_calls'], 'call merged', 'calls merged')}" if "merged_calls" in file else ""
        merged += (
            f", {counted(file['pruned_stacks'], 'stack pruned', 'stacks pruned')}" if "pruned_stacks" in file else ""
        )
        print_message(f"{file['path']}: {counted(file['rows'], 'row')} ({counted(file['bytes'], 'byte')}){merged}")
    return code


def target_name(output: str) -> str:
    return "standard output" if output == "-" else shown(output)


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


_READ = ("samples", "calls", "rows_read")


def rows_text(log: Log) -> tuple[str, str]:
    """What was written, and the samples or calls that were added up to it: fewer rows than samples is not a loss.

    70 rows, 2,329 calls
    """

    rows, facts = log.rows, {"value_type": "a value type", "table": "a table"} | log.facts

    def text(key: str) -> str:
        return counted(rows[key], *(noun.format_map(facts) for noun in _NOUNS[key]))

    written = [key for key, n in rows.items() if key.endswith("_written") and n]
    others = [key for key in rows if key not in (*_READ, "rows_summed") and not key.endswith("_written")]
    read = [key for key in _READ[:2] if rows.get(key)]
    if "rows_read" in rows and not read and rows["rows_read"] != sum(rows[key] for key in written):
        read = ["rows_read"]
    if not written and not others:
        written, read = read, []
    return ", ".join(map(text, written + others)) or "no records", " and ".join(map(text, read))


def exit_code(log: Log) -> int:
    return 3 if log.losses else 0
