"""fastprof merge: the sums of many profiles."""

import argparse

from fastprof.cli import arguments
from fastprof.cli.messages import print_written
from fastprof.cli.parser import Parser
from fastprof.inputs.expand import names_in
from fastprof.verbs.merge import merge
from fastprof.verbs.weight_options import options

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
    arguments.add_input(parser, names=True, keep_going=True)
    arguments.add_output(parser)
    arguments.add_log(parser)
    arguments.add_options(parser, options())


def run(args: argparse.Namespace) -> int:
    inputs = [*args.inputs, *(names_in(args.files0_from) if args.files0_from else ())]
    if not inputs and not args.files0_from:
        args.parser.no_input()
    log = merge(inputs, args.output, **arguments.keywords(args, options()))
    return print_written(args, log, "merge")
