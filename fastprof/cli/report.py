"""fastprof report: write an interactive HTML report."""

import argparse
import shlex
import sys

from fastprof.cli import arguments
from fastprof.cli.messages import print_written
from fastprof.cli.parser import Parser
from fastprof.core.errors import UsageError
from fastprof.core.urls import shown
from fastprof.verbs.report import options, report

DESCRIPTION = """\
Write an interactive HTML page for a profile of any format:
flame graph, functions, callers and callees, and calls in
time order.  The page is one file and loads nothing else.
With two inputs, it compares the second with the first;
with --sum it shows the sum of all inputs."""
EXAMPLES = """\
examples:
  fastprof report cpu.pb.gz -o report.html
  fastprof report trace.xray -s ./program -o report.html
  fastprof report old.pb.gz new.pb.gz -o changed.html
  fastprof report *.prof --sum -o sum.html
  fastprof report callgrind.out.7 --prune 0 -o all.html
  fastprof report cpu.pb.gz -o flame.svg
  fastprof report cpu.pb.gz -o cpu.graph.svg
"""


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(help="a file, a directory, or -; two are compared, or several added up")
    arguments.add_input(parser, keep_going=True)
    pages = "page to write, NAME.svg for the flame graph alone, or graph.svg for the call graph"
    arguments.add_file(parser, f"{pages} (default: standard output)", default="-")
    arguments.add_log(parser)
    arguments.add_options(parser, options())


def run(args: argparse.Namespace) -> int:
    if args.output == "-" and sys.stdout.isatty():
        raise UsageError("the page is not written to a terminal: name a file with -o, or use `fastprof view`")
    command = shlex.join(["fastprof", *map(shown, args.words)])
    log = report(args.inputs, args.output, command=command, **arguments.keywords(args, options()))
    return print_written(args, log, "report")
