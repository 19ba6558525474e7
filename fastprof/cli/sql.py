"""fastprof sql: a question in SQL."""

from __future__ import annotations

import argparse
import atexit
import gc
import sys

from fastprof.cli.arguments import add_input_arguments, add_options, given_options, heading_of
from fastprof.cli.messages import exit_code, say_beside
from fastprof.cli.parser import Parser
from fastprof.cli.text import print_table
from fastprof.core._typing import Any
from fastprof.verbs.sql import Answer, options, sql

DESCRIPTION = """\
Ask a question in SQL (DuckDB's, see docs/tables.md). A
timeline has the tables spans and events, stacks have
samples and frames, a graph has graph. Of several files
they are p1.spans, p2.spans and so on. The query sees
these tables alone, no files."""
EXAMPLES = """\
examples:
  fastprof sql trace.xray "select function, sum(self)
    from spans group by 1 order by 2 desc limit 10"
  fastprof sql callgrind.out.1 "describe graph"
  fastprof sql --csv cpu.pb.gz "from samples" > samples.csv
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("input", metavar="FILE", nargs="+", help="a file, or - for standard input")
    parser.add_argument("query", metavar="QUERY", help="what is asked, in SQL")
    add_input_arguments(parser)
    group = heading_of(parser, "output")
    group.add_argument("-q", "--quiet", action="store_true", help="print no warnings")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print an array of objects, one for each row")
    form.add_argument("--csv", action="store_true", help="print CSV; the names of columns first")
    add_options(parser, options())


def run(args: argparse.Namespace) -> int:
    atexit.unregister(gc.freeze)  # DuckDB looks at its end whether all of it was freed, and complains
    with sql(args.input, args.query, from_=args.from_, **given_options(args, options())) as answer:
        if args.json:
            _print_json(answer)
        elif args.csv:
            _print_csv(answer)
        elif answer.columns:
            rows: list[tuple[Any, ...]] = [tuple(answer.columns)]
            rows += (tuple("NULL" if cell is None else cell for cell in row) for row in answer.rows())
            print_table(rows, right=[i for i, numeric in enumerate(answer.numeric) if numeric])
        report = answer.report
    if not args.quiet:
        say_beside(report, ", ".join(args.input))
    return exit_code(report)


def _print_json(answer: Answer) -> None:
    import json

    before = "["
    for row in answer.rows():
        sys.stdout.write(before + json.dumps(dict(zip(answer.columns, row, strict=True)), default=str))
        before = ",\n "
    sys.stdout.write("[]\n" if before == "[" else "]\n")


def _print_csv(answer: Answer) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows())
