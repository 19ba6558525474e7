"""fastprof convert: any profile into any other format."""

import argparse

from fastprof import plan
from fastprof.cli import arguments
from fastprof.cli.messages import print_written
from fastprof.cli.parser import Parser
from fastprof.verbs.convert import convert

DESCRIPTION = """\
Convert a profile to another format; several inputs are
merged.  Compressed inputs are decompressed, and an OUTPUT
ending in .gz, .zst, .xz, .bz2 or .lz4 is compressed.
A damaged input is an error and leaves no output, unless
--lenient.
A profile is a timeline (calls in time order), stacks
(samples) or a graph (costs and calls by source position)."""
EXAMPLES = """\
examples:
  fastprof convert trace.xray -s ./program -o out.callgrind
  fastprof convert trace.xray --per-thread -o out.callgrind
  fastprof convert trace.xray --labels cpu -o out.pb.gz
  fastprof convert cpu.pb.gz -O root=main -o out.folded
  fastprof convert day1.xray day2.xray -o both.callgrind.gz
  cat trace.zst | fastprof convert - -t pprof > out.pb.gz
"""


def add_arguments(parser: Parser) -> None:
    parser.add_inputs()
    arguments.add_input(parser)
    arguments.add_output(parser)
    arguments.add_log(parser)
    arguments.add_options(parser, plan.known_options())


def run(args: argparse.Namespace) -> int:
    log = convert(args.inputs, args.output, **arguments.keywords(args, plan.known_options()))
    return print_written(args, log, "convert")
