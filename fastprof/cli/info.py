"""fastprof info: describe a profile."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial

from fastprof import plan
from fastprof.cli import arguments
from fastprof.cli.messages import Progress, exit_code, print_warnings
from fastprof.cli.text import PIPE, Screen, print_table, text_of, utc
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.figures import quantity
from fastprof.core.log import Log
from fastprof.inputs.expand import expand, skipped
from fastprof.verbs.info import info

if TYPE_CHECKING:
    import argparse

    from fastprof.cli.budget import Answer
    from fastprof.cli.parser import Parser

DESCRIPTION = """\
Describe profiles: format, version, command, process,
counts, times, totals and repairs.  --json has exact
numbers.  Reads the whole input, but only the index of an
archive (unless --lenient)."""
EXAMPLES = """\
examples:
  fastprof info trace.xray
  fastprof info nightly.fpa --member callgrind.out.101
  fastprof info --json callgrind.out.123 | jq .facts.totals
"""


# Labels of facts, if they are not simply the key with spaces.
_LABELS = {
    "constant_tsc": "constant TSC",
    "cpu": "CPU",
    "cpu_id": "CPU id",
    "cpus": "CPUs",
    "cpus_distinct": "CPUs",
    "doc_url": "documentation",
    "drop_frames": "frames to drop",
    "duration_ns": "duration",
    "keep_frames": "frames to keep",
    "memory_kib": "memory",
    "nonstop_tsc": "nonstop TSC",
    "period_us": "period",
    "pid": "process",
    "seconds": "duration",
    "threads_distinct": "threads",
    "ticks_per_second": "clock",
    "time_ns": "recorded at",
    "units": "",
    "period_type": "",
}
# Facts with a unit, by key.
_UNITS = {
    "buffer_size": "bytes",
    "bytes": "bytes",
    "bytes_of_profiles": "bytes",
    "duration_ns": "nanoseconds",
    "memory_kib": "kilobytes",
    "period_us": "microseconds",
}
# Fields of a header, for any number of parts.
TEXTS = ("creator", "command", "trigger", "pid", "thread", "comments", "descriptions", "process_names", "thread_names")
NS = 1_000_000_000
_OF_A_KIND = 5  # items printed of a list; --json has all


def labelled(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Facts with labels.  A fact with several tables, e.g. one per event, becomes several."""
    for key, value in facts.items():
        label = _LABELS.get(key, key.replace("_", " "))
        if isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
            yield from ((f"{label}, {name}", table) for name, table in value.items())
        elif label and not _repeated(key, facts):
            yield from _shown(key, label, value, facts)


def _repeated(key: str, facts: Mapping[str, Any]) -> bool:
    """Whether another fact shows it."""
    if key == "ticks_per_second":
        return bool(facts[key] == NS)  # times are in nanoseconds
    if key == "descriptions":
        return "mode" in facts and [*facts[key]] == ["Source"]  # XRay's mode and version
    return (key == "duration_ns" and "seconds" in facts) or (key == "period" and "period_us" in facts)


def _shown(key: str, label: str, value: Any, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if key in ("totals", "totals_of_inherited_events"):
        units = facts.get("units", {})
        yield label, {name: quantity(n, units.get(name, "")) for name, n in value.items()}
    elif key == "coverage":
        yield "of its cost", {f"in {name}": f"{100 * share:.1f} %" for name, share in value.items()}
    elif key in ("first_tick", "first_time_ns"):
        last = facts["last_tick" if key == "first_tick" else "last_time_ns"]
        in_ns = key == "first_time_ns" or facts.get("ticks_per_second") == NS
        yield "recorded times", f"{value:,} to {last:,} {'ns' if in_ns else 'ticks'}"
        if key == "first_time_ns" and "duration_ns" not in facts:
            yield "duration", quantity(last - value, "nanoseconds")
    elif key == "snapshots":  # a series of Massif
        yield label, [_snapshot(one, str(facts.get("time_unit", ""))) for one in value]
    elif key == "contexts":
        yield label, f"{value:,} (functions, each with its callers)" if value else 0
    elif key not in ("last_tick", "last_time_ns"):
        yield label, _in_units(key, value, facts)


_SIZES = ("heap_bytes", "extra_bytes", "stacks_bytes", "total_bytes")


def _snapshot(one: Mapping[str, Any], unit: str) -> str:
    """`38 (peak, read): 1.08 MiB = heap 1.08 MiB + extra 18.6 KiB + stacks 0, at 1,162,240 B`"""
    heap, extra, stacks, total = (quantity(one[key], "bytes") for key in _SIZES)
    notes = ", ".join([one["tree"]] * bool(one["tree"]) + ["read"] * one["read"])
    name = f"{one['number']}{f' ({notes})' if notes else ''}"
    return f"{name}: {total} = heap {heap} + extra {extra} + stacks {stacks}, at {one['time']:,} {unit}"


def _in_units(key: str, value: Any, facts: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        more = [f"and {len(value) - _OF_A_KIND:,} more"] if len(value) > _OF_A_KIND and key in TEXTS else []
        return [_in_units(key, one, facts) for one in (value[:_OF_A_KIND] if more else value)] + more
    if isinstance(value, dict):
        return {name: _in_units(key, one, facts) for name, one in value.items()}
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return value
    if key == "time_ns":
        return utc(int(value))
    if key == "seconds":
        return quantity(round(value * NS), "nanoseconds")
    if key == "ticks_per_second":
        return f"{value:,} Hz" if value else "unknown"
    if key == "period":
        kind, _, unit = str(facts.get("period_type", "")).partition("/")
        return f"{quantity(int(value), unit)}{' of ' * bool(kind)}{kind}"
    return quantity(int(value), _UNITS[key]) if key in _UNITS else str(value) if key in TEXTS else value


def _lines(name: str, value: Any) -> Iterator[tuple[str, object]]:
    """Print texts of several parts on separate lines, numbers and short words on one line."""
    if not isinstance(value, list):
        yield name, value
    elif sum(len(str(one)) + 2 for one in value) <= 100:
        yield name, ", ".join(map(str, value))
    else:
        yield from zip([name] + [""] * (len(value) - 1), value, strict=True)


def html(log: Log) -> str:
    """For notebooks: the facts with their units, below the name of the file, and what the log has to say."""
    from fastprof.core.html import facts, notes

    rows = [(label, value) for label, value in labelled(log.facts) if label != "file"]
    flat = [row for label, value in rows for row in _flat(label, value)]
    return facts(flat, os.path.basename(str(log.facts.get("file", "")))) + notes(log)


def _flat(label: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A map as a row for each of its values."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _flat(f"{label}: {name}", one)
    else:
        yield label, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(help="a file, a folder, STORE:NAME, or - for stdin")
    arguments.add_input(parser, keep_going=True)
    arguments.add_log(parser, json="print JSON")
    arguments.add_budget(parser)
    arguments.add_options(parser, plan.reading_options)


def run(args: argparse.Namespace) -> int:
    options = arguments.given(args, plan.reading_options)
    total = Log()  # of what was skipped

    skip = partial(skipped, log=total) if args.keep_going else None
    paths = expand(args.inputs, total.warn, skip, lenient=bool(options.get("lenient")))
    several = paths != args.inputs or len(paths) > 1
    codes: list[int] = []
    logs: list[Log] = []
    for path in paths:
        try:
            log = info(path, from_=args.from_, progress=Progress(args.quiet), **options)
        except FastprofError as error:
            if skip is None or isinstance(error, UsageError):
                raise
            skip(error)
            continue
        if args.json or args.budget_tokens:
            logs.append(log)
        else:
            if codes:
                print()
            _print(log)
        codes.append(exit_code(log))
    if args.json or args.budget_tokens:
        from fastprof.cli.budget import print_answer

        print_answer(args, _of_several(logs) if several or not logs else _of_one(logs[0]))
    print_warnings(total.warned(flags=True))
    if not codes:
        return 1
    return max(exit_code(total), *codes)


# Facts that a short answer keeps, the most important first.
_FIRST = (
    *(
        "file",
        "format",
        "view",
        "totals",
        "units",
        "default_value_type",
        "command",
        "programs",
        "seconds",
        "duration_ns",
    ),
    *("time_ns", "records", "functions", "threads", "processes", "calls", "contexts", "lost_samples"),
)


def _of_one(log: Log) -> Answer:
    order = [*(key for key in _FIRST if key in log.facts), *(key for key in log.facts if key not in _FIRST)]

    def first(k: int) -> Log:
        """The log with its `k` most important facts."""
        kept, short = {*order[:k]}, Log()
        short.take(log)
        short.rows = log.rows
        short.facts = {key: value for key, value in log.facts.items() if key in kept}
        return short

    def show(k: int) -> None:
        short = first(k)
        _print(short if k == len(order) else _with_short_lists(short))

    from fastprof.cli.budget import Answer

    return Answer("info", len(order), "facts", lambda k: first(k).as_dict(flags=True), show, "--json", indent=None)


def _with_short_lists(log: Log) -> Log:
    log.facts = {
        key: dict([*value.items()][:_OF_A_KIND])
        if isinstance(value, dict)
        else value[:_OF_A_KIND]
        if isinstance(value, list)
        else value
        for key, value in log.facts.items()
    }
    return log


def _of_several(logs: list[Log]) -> Answer:
    def build(k: int) -> dict[str, Any]:
        return {"profiles": [log.as_dict(flags=True) for log in logs[:k]]}

    def show(k: int) -> None:
        for i, log in enumerate(logs[:k]):
            if i:
                print()
            _print(log)

    from fastprof.cli.budget import Answer

    return Answer("info-list", len(logs), "profiles", build, show, "info of one file", indent=None)


def text(log: Log) -> str:
    """The facts and counts as `str` of the result."""
    return text_of(partial(_print_text, log, flags=False))


def _print(log: Log) -> None:
    _print_text(log, PIPE)
    print_warnings(log.warned(flags=True))


def _print_text(log: Log, screen: Screen, *, flags: bool = True) -> None:
    """`flags`: texts name options as the command line does."""
    rows: list[tuple[str, object]] = []
    for name, value in labelled(log.facts):
        if isinstance(value, dict):
            rows.append((name, ""))
            items = labelled(value) if name == "recorded" else value.items()
            is_counts = name in ("recorded repairs", "recorded losses")  # keyed by code
            for key, item in items:
                rows += _lines(f"  {key.replace('-', ' ') if is_counts else key}", item)
        else:
            rows += _lines(name, value)
    for title, counts in (("repairs", log.repairs), ("losses", log.losses)):
        rows.append((title, "" if counts else "none"))
        rows += [(f"  {name}", n) for name, n in sorted(counts.texts(flags=flags).items())]
    print_table(rows, screen=screen)
    if unread := log.not_representable.texts(flags=flags):  # also data that an option reads instead
        screen.print("not read")
        print_table([(" ", n, name) for name, n in sorted(unread.items())], right=(1,), screen=screen)
