"""fastprof convert: any profile into any other format."""

from __future__ import annotations

import argparse

from fastprof.cli.common import (
    Progress,
    add_level_argument,
    add_reading_arguments,
    options_from,
    tell,
    whole,
)
from fastprof.core.engine import CHOICES, LABELS, RANGES, Options, misfit
from fastprof.verbs import pipeline

DESCRIPTION = """\
Convert a profile into another format, streaming.  Several inputs are merged
into one profile.  Compressed input (.gz .zst .xz .bz2) is read as it is; the
output is compressed if its name says so.  A damaged input is an error and
leaves no output, unless --lenient."""
EXAMPLES = """\
examples:
  fastprof convert trace.xray -s ./program -o out.callgrind
  fastprof convert trace.xray --per-thread -o out.callgrind
  fastprof convert trace.xray --labels thread,cpu -o out.pb.gz
  zstd -dc trace.xray.zst | fastprof convert - --to callgrind > out.callgrind
  fastprof convert day1.xray day2.xray -o both.callgrind.gz
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="a file, a directory, or - for standard input")
    parser.add_argument("-o", "--output", default="-", metavar="OUTPUT", help="default: standard output")
    parser.add_argument("-t", "--to", metavar="FORMAT", help="format to write (default: by the output's suffix)")
    add_reading_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the report as JSON, on standard error")
    parser.add_argument("--per-thread", action="store_true", help="keep threads apart: one part for each of all inputs")
    parser.add_argument(
        "--labels",
        type=_labels,
        metavar="LIST",
        help=f"pprof: label samples with these of {','.join(LABELS)}, keeping apart what they tell apart; or none "
        "(default: the labels that samples come with)",
    )
    parser.add_argument(
        "--time-unit", choices=CHOICES["time_unit"], default="ns", help="times in nanoseconds, or exact in clock ticks"
    )
    parser.add_argument(
        "--aggregate", action="store_true", help="sum up repeated lines of the same place (memory: distinct places)"
    )
    parser.add_argument(
        "--compute-events", action="store_true", help="Callgrind: make inherited events (formulas) columns of values"
    )
    parser.add_argument("--no-compress-names", action="store_true", help="Callgrind: write every name in full")
    parser.add_argument("--no-compress-positions", action="store_true", help="Callgrind: write every position in full")
    parser.add_argument(
        "--inline-calls", action="store_true", help="stacks to a graph: inlined functions are called by their callers"
    )
    parser.add_argument(
        "--stacks",
        choices=CHOICES["stacks"],
        default="estimate",
        help="a graph to stacks: estimate callers from the arcs' costs (default), direct callers only, or none",
    )
    parser.add_argument(
        "--prune",
        type=float,
        default=1e-5,
        metavar="SHARE",
        help="a graph to stacks: estimated shares below this part of the total go to [pruned] (default: 1e-5)",
    )
    parser.add_argument(
        "--period", type=whole("period_us"), metavar="MICROSECONDS", help="gperftools: the time of one sample"
    )
    parser.add_argument(
        "--keep-signal-frames", action="store_true", help="gperftools: keep frames of the profiler's own signal handler"
    )
    parser.add_argument(
        "--time", type=whole("time_ns"), metavar="NANOSECONDS", help="pprof: when it was taken, since 1970"
    )
    parser.add_argument("--comment", action="append", default=[], metavar="TEXT", help="pprof: add a comment")
    parser.add_argument(
        "--name-addresses", action="store_true", help="pprof: give addresses without symbol a function [object+0xADDR]"
    )
    parser.add_argument("--member", metavar="NAME", help="archives: which profile to read of several")
    parser.add_argument(
        "--time-range",
        type=_range,
        metavar="A:B",
        help="archives: only what happened from A to B, ticks of a timeline or nanoseconds of stacks; "
        "either may be left out",
    )
    parser.add_argument(
        "--thread", type=whole("threads"), action="append", default=[], metavar="TID", help="archives: only this thread"
    )
    parser.add_argument("--part", type=whole("part"), metavar="N", help="archives: only this part, from 1")
    add_level_argument(parser)
    parser.add_argument(
        "--max-memory",
        type=_size,
        default=Options().max_memory,
        metavar="SIZE",
        help="distinct rows kept in memory before they are spilled to a temporary file, e.g. 200M (default: 20M)",
    )


def _labels(text: str) -> tuple[str, ...]:
    """"thread,cpu" as its words; "none" as none."""
    words = () if text == "none" else tuple(text.split(","))
    if why := misfit("labels", words):
        raise argparse.ArgumentTypeError(f"{why}, none")
    return words


def _range(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    least, most = RANGES["time_range"]
    try:
        found = int(first or least), int(last or most)
    except ValueError:
        colon = ""
    if not colon or misfit("time_range", found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range A:B of whole numbers up to {most}, A up to B; either may be left out"
        )
    return found


def _size(text: str) -> int:
    """"200M" as bytes."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    digits = text[:-1] if unit else text
    if not digits.isdecimal() or misfit("max_memory", int(digits) << unit):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes like 200M (or K, G)")
    return int(digits) << unit


def run(args: argparse.Namespace) -> int:
    options = options_from(
        args,
        per_thread=args.per_thread,
        labels=args.labels,
        time_unit=args.time_unit,
        aggregate=args.aggregate,
        compute_events=args.compute_events,
        compress_names=not args.no_compress_names,
        compress_positions=not args.no_compress_positions,
        inline_calls=args.inline_calls,
        stacks=args.stacks,
        prune=args.prune,
        period_us=args.period,
        keep_signal_frames=args.keep_signal_frames,
        time_ns=args.time,
        comments=tuple(args.comment),
        name_addresses=args.name_addresses,
        max_memory=args.max_memory,
        member=args.member,
        time_range=args.time_range,
        threads=tuple(args.thread),
        part=args.part,
        level=args.level,
    )
    report = pipeline.convert(
        args.inputs,
        args.output,
        from_=args.from_,
        to=args.to,
        options=options,
        progress=Progress(args.quiet),
    )
    rows = ", ".join(f"{n:,} {name}" for name, n in report.rows.items())
    target = "standard output" if args.output == "-" else args.output
    return tell(args, report, f"{rows or 'no records'} -> {target} ({report.facts['output bytes']:,} bytes)")
