"""fastprof archive: several profiles in one file."""

from __future__ import annotations

import argparse
import json
import os

from fastprof import plan
from fastprof.cli.arguments import (
    add_input_arguments,
    add_options,
    add_output_arguments,
    add_report_arguments,
    given_options,
)
from fastprof.cli.messages import Progress, tell
from fastprof.cli.text import print_table
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.options import Option
from fastprof.verbs import adding, store
from fastprof.verbs.convert import convert
from fastprof.verbs.inputs import expand

DESCRIPTION = """\
Keep many profiles in one archive.  Similar profiles share
storage.  Adding is safe: if it is interrupted, the profiles
that were there stay readable."""
EXAMPLES = """\
examples:
  fastprof archive add nightly.fpa callgrind.out.101
  fastprof archive add nightly.fpa trace.xray --name mon
  fastprof archive list nightly.fpa
  fastprof archive extract nightly.fpa mon -o mon.callgrind

`fastprof archive ACTION --help` has the options of each.
"""


def _extract_options() -> list[Option[Any]]:
    return [option for option in plan.known_options() if option.name != "member"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, does: str) -> argparse.ArgumentParser:
        description = f"{does.capitalize()}."
        return actions.add_parser(name, help=does, description=description, formatter_class=parser.formatter_class)

    add = action("add", "add profiles to an archive")
    add.add_argument("store", metavar="STORE", help="the archive; it is created if there is none")
    add.add_argument("inputs", nargs="+", metavar="INPUT", help="a file, a directory, or - for standard input")
    add.add_argument("--name", help="name of the profile in the archive, for a single INPUT (default: its file name)")
    add_input_arguments(add)
    add_report_arguments(add)
    add_options(add, adding.adding_options())
    list_ = action("list", "list the profiles in an archive")
    list_.add_argument("store", metavar="STORE", help="the archive")
    list_.add_argument("--json", action="store_true", help="print JSON")
    extract = action("extract", "write one profile of an archive, in any format")
    extract.add_argument("store", metavar="STORE", help="the archive")
    extract.add_argument("name", metavar="NAME", help="the profile's name, as `fastprof archive list` shows it")
    add_input_arguments(extract)
    add_output_arguments(extract)
    add_report_arguments(extract)
    add_options(extract, _extract_options())
    for one in (add, list_, extract):
        one.set_defaults(parser=one)


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        return _list(args)
    if args.action == "add":
        return _add(args)
    report = convert(
        [args.store],
        args.output,
        from_=args.from_ or "archive",
        to=args.to,
        progress=Progress(args.quiet),
        **given_options(args, _extract_options()) | {"member": args.name},
    )
    return tell(args, report, f"{args.name} -> {args.output}")


def _add(args: argparse.Namespace) -> int:
    passed_over: list[str] = []
    inputs = expand(args.inputs, passed_over.append)
    if args.name is not None and len(inputs) > 1:
        raise UsageError("--name names one INPUT, but there are several")
    options = given_options(args, adding.adding_options())
    code = 0
    if "-" in inputs and args.name is None:
        raise UsageError("standard input has no name: give one with --name")
    with adding.adding(args.store) as session:
        for path in inputs:
            name = os.path.basename(path) if args.name is None else args.name
            report = session.add(path, name, from_=args.from_, progress=Progress(args.quiet), **options)
            while passed_over:
                report.warn(passed_over.pop())
            code = max(code, tell(args, report, f"{path} -> {args.store} as {name}"))
    return code


def _list(args: argparse.Namespace) -> int:
    members = store.members(args.store)
    if args.json:
        print(json.dumps(members, indent=2, default=str))
        return 0
    rows = [(m["name"], m["view"], m["rows"], m["stored bytes"]) for m in members]
    print_table([("name", "view", "rows", "bytes"), *rows], right=(2, 3))
    return 0
