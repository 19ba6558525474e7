"""fastprof info: what is in a profile."""

from __future__ import annotations

import argparse

from fastprof.cli.common import (
    Progress,
    add_reading_arguments,
    exit_code,
    options_from,
    report_json,
    say_report,
)
from fastprof.core.errors import printable
from fastprof.verbs import pipeline

DESCRIPTION = """\
Read a profile to its end and say what is in it: format, version, counts, time
range, totals, anomalies.  An archive says it from its index, at once; with
--lenient it is read, too, to find damage and anomalies."""
EXAMPLES = """\
examples:
  fastprof info trace.xray
  fastprof info nightly.fpa --member callgrind.out.101
  fastprof info --json callgrind.out.123.gz | jq .facts.totals
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="a file, or - for standard input")
    add_reading_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--member", metavar="NAME", help="archives: which profile of several")


def run(args: argparse.Namespace) -> int:
    options = options_from(args, member=args.member)
    report = pipeline.info(args.input, from_=args.from_, options=options, progress=Progress(args.quiet))
    if args.json:
        print(report_json(report))
        return exit_code(report)
    rows: list[tuple[str, str]] = []
    for name, value in report.facts.items():
        if isinstance(value, dict):
            rows.append((name, ""))
            rows += [(f"  {printable(str(key))}", _shown(item)) for key, item in value.items()]
        else:
            rows.append((name, _shown(value)))
    for title, counts in (("repairs", report.repairs), ("losses", report.losses)):
        rows.append((title, "" if counts else "none"))
        rows += [(f"  {name}", f"{n:,}") for name, n in sorted(counts.items())]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}".rstrip())
    if report.warnings and not args.quiet:
        say_report(report, args.input)
    return exit_code(report)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6f}"
    return printable(str(value))
