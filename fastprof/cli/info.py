"""fastprof info: describe a profile."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from fastprof import plan
from fastprof.cli.arguments import add_input_arguments, add_log_arguments, add_options, given_options
from fastprof.cli.messages import Progress, exit_code, log_json, print_warnings
from fastprof.cli.parser import Parser
from fastprof.cli.text import print_table
from fastprof.core._typing import Any
from fastprof.verbs.info import info

DESCRIPTION = """\
Describe a profile: format, version, counts, time range,
totals and repairs.  Reads the whole input, but only the
index of an archive (unless --lenient)."""
EXAMPLES = """\
examples:
  fastprof info trace.xray
  fastprof info nightly.fpa --member callgrind.out.101
  fastprof info --json callgrind.out.123 | jq .facts.totals
"""


# Labels of facts that differ from their key with blanks.
_LABELS = {
    "constant_tsc": "constant TSC",
    "cpu": "CPU",
    "cpus_distinct": "CPUs",
    "threads_distinct": "threads",
    "duration_ns": "duration nanoseconds",
    "nonstop_tsc": "nonstop TSC",
    "period_us": "period microseconds",
    "time_ns": "time nanoseconds",
}


def labelled(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Facts with labels for people.  A fact with several tables, e.g. one per event, becomes several."""
    for key, value in facts.items():
        label = _LABELS.get(key) or key.replace("_", " ")
        if isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
            yield from ((f"{label}, {name}", table) for name, table in value.items())
        else:
            yield label, value


def add_arguments(parser: Parser) -> None:
    parser.add_argument("input", metavar="INPUT", help="a file, or - for standard input")
    add_input_arguments(parser)
    add_log_arguments(parser, json="print JSON")
    add_options(parser, plan.reading_options())


def run(args: argparse.Namespace) -> int:
    options = given_options(args, plan.reading_options())
    log = info(args.input, from_=args.from_, progress=Progress(args.quiet), **options)
    if args.json:
        print(log_json(log))
        return exit_code(log)
    rows: list[tuple[str, object]] = []
    for name, value in labelled(log.facts):
        if isinstance(value, dict):
            rows.append((name, ""))
            items = labelled(value) if name == "recorded" else value.items()
            is_counts = name in ("recorded repairs", "recorded losses")  # by code
            rows += [(f"  {key.replace('-', ' ') if is_counts else key}", item) for key, item in items]
        else:
            rows.append((name, ", ".join(map(str, value)) if isinstance(value, list) else value))
    for title, counts in (("repairs", log.repairs), ("losses", log.losses)):
        rows.append((title, "" if counts else "none"))
        rows += [(f"  {name}", n) for name, n in sorted(counts.texts(flags=True).items())]
    print_table(rows)
    print_warnings(log.warned(flags=True))
    return exit_code(log)
