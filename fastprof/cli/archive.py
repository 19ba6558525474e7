"""fastprof archive: several profiles in one file."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

from fastprof.cli.common import (
    Progress,
    add_level_argument,
    add_reading_arguments,
    options_from,
    tell,
)
from fastprof.core.engine import Options
from fastprof.core.errors import UsageError, printable
from fastprof.core.io import expand
from fastprof.verbs import pipeline
from fastprof.verbs import store as archive_store

DESCRIPTION = """\
Keep many profiles in one archive.  Alike dumps are stored against each other;
adding is safe: what was there stays readable if it is interrupted."""
EXAMPLES = """\
examples:
  fastprof archive add nightly.fpa callgrind.out.101 callgrind.out.102
  fastprof archive list nightly.fpa
  fastprof archive extract nightly.fpa callgrind.out.101 -o old.callgrind
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add profiles to a store, which is made if it is not there")
    add.add_argument("store", metavar="STORE", help="an archive, made if it is not there")
    add.add_argument("inputs", nargs="+", metavar="INPUT", help="a file, kept under its name, or a directory of them")
    add.add_argument("--name", help="name to keep a single INPUT under (standard input needs one)")
    add_reading_arguments(add)
    add_level_argument(add)
    list_ = actions.add_parser("list", help="what a store holds, from its index alone")
    list_.add_argument("store", metavar="STORE", help="an archive")
    extract = actions.add_parser("extract", help="one profile of a store, in any format")
    extract.add_argument("store", metavar="STORE", help="an archive")
    extract.add_argument("name", metavar="NAME", help="of a profile in it, as `fastprof archive list` says it")
    extract.add_argument("-o", "--output", default="-", metavar="OUTPUT", help="default: standard output")
    extract.add_argument("-t", "--to", metavar="FORMAT", help="format to write (default: by the output's suffix)")
    add_reading_arguments(extract)
    list_.add_argument("--json", action="store_true", help="print JSON")
    for action in (add, list_, extract):
        action.set_defaults(parser=action)
    for action in (add, extract):
        action.add_argument("--json", action="store_true", help="the report as JSON, on standard error")


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        return _list(args)
    options = options_from(args, level=args.level) if args.action == "add" else options_from(args)
    if args.action == "add":
        return _add(args, options)
    report = pipeline.convert(
        [args.store],
        args.output,
        from_=args.from_ or "archive",
        to=args.to,
        options=options._replace(member=args.name),
        progress=Progress(args.quiet),
    )
    return tell(args, report, f"{args.name} -> {args.output}")


def _add(args: argparse.Namespace, options: Options) -> int:
    passed_over: list[str] = []
    inputs = expand(args.inputs, passed_over.append)
    if args.name is not None and len(inputs) > 1:
        raise UsageError("--name names one INPUT, but there are several")
    code = 0
    for path in inputs:
        name = os.path.basename(path) if args.name is None else args.name
        if path == "-" and args.name is None:
            raise UsageError("standard input has no name: give one with --name")
        opened = partial(pipeline.open_reader, path, args.from_, progress=Progress(args.quiet))
        report = archive_store.append(args.store, name, opened, options, pipeline.rows_for)
        while passed_over:
            report.warn(passed_over.pop())
        code = max(code, tell(args, report, f"{path} -> {args.store} as {name}"))
    return code


def _list(args: argparse.Namespace) -> int:
    members = archive_store.members(args.store)
    if args.json:
        print(json.dumps(members, indent=2, default=str))
        return 0
    rows = [("name", "view", "rows", "bytes")]
    rows += [(printable(m["name"]), m["view"], _count(m["rows"]), _count(m["stored bytes"])) for m in members]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for name, view, n, nbytes in rows:
        print(f"{name:<{widths[0]}}  {view:<{widths[1]}}  {n:>{widths[2]}}  {nbytes:>{widths[3]}}")
    return 0


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
