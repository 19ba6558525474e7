"""fastprof merge: the sums of many profiles."""

from __future__ import annotations

import argparse

from fastprof import plan
from fastprof.cli.arguments import (
    add_input_arguments,
    add_keep_going,
    add_log_arguments,
    add_options,
    add_output_arguments,
    given_options,
    heading_of,
)
from fastprof.cli.messages import Progress, print_written
from fastprof.cli.parser import Parser
from fastprof.inputs.expand import names_in
from fastprof.verbs.merge import merge

DESCRIPTION = """\
Merge profiles into one by adding up their costs: any
number, of any formats, in any order.  Their value types
must match, unless --union or --intersect is given.  A
damaged input is an error and leaves no output, unless
--lenient or --keep-going is given."""
EXAMPLES = """\
examples:
  fastprof merge a.cachegrind b.cachegrind -o ab.cachegrind
  fastprof merge runs/ -o runs.pb.gz
  find . -name '*.prof' -print0 |
      fastprof merge --files0-from - -o all.pb.gz
  fastprof merge --keep-going runs/ -o runs.callgrind
"""


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(nargs="*")
    add_input_arguments(parser)
    group = heading_of(parser, "input")
    group.add_argument(
        "--files0-from",
        metavar="FILE",
        help="also read NUL-terminated input names from FILE",
    )
    add_keep_going(parser)
    add_output_arguments(parser)
    add_log_arguments(parser)
    add_options(parser, plan.known_options())


def run(args: argparse.Namespace) -> int:
    inputs = [*args.inputs, *(names_in(args.files0_from) if args.files0_from else ())]
    if not inputs and not args.files0_from:
        args.parser.no_input()
    log = merge(
        inputs,
        args.output,
        from_=args.from_,
        to=args.to,
        keep_going=args.keep_going,
        progress=Progress(args.quiet),
        **given_options(args, plan.known_options()),
    )
    return print_written(args, log)
