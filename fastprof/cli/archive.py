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
from fastprof.cli.report import Progress, print_table, tell
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.options import Option
from fastprof.verbs import store
from fastprof.verbs.convert import convert
from fastprof.verbs.inputs import expand

DESCRIPTION = """\
Keep many profiles in one archive.  Alike dumps are stored against each other;
adding is safe: what was there stays readable if it is interrupted."""
EXAMPLES = """\
examples:
  fastprof archive add nightly.fpa callgrind.out.101 callgrind.out.102
  fastprof archive list nightly.fpa
  fastprof archive extract nightly.fpa callgrind.out.101 -o old.callgrind
"""


def _extract_options() -> list[Option[Any]]:
    return [option for option in plan.known_options() if option.name != "member"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add profiles to a store, which is made if it is not there")
    add.add_argument("store", metavar="STORE", help="an archive, made if it is not there")
    add.add_argument("inputs", nargs="+", metavar="INPUT", help="a file, kept under its name, or a directory of them")
    add.add_argument("--name", help="name to keep a single INPUT under (standard input needs one)")
    add_input_arguments(add)
    add_report_arguments(add)
    add_options(add, store.adding_options())
    list_ = actions.add_parser("list", help="what a store holds, from its index alone")
    list_.add_argument("store", metavar="STORE", help="an archive")
    list_.add_argument("--json", action="store_true", help="print JSON")
    extract = actions.add_parser("extract", help="one profile of a store, in any format")
    extract.add_argument("store", metavar="STORE", help="an archive")
    extract.add_argument("name", metavar="NAME", help="of a profile in it, as `fastprof archive list` says it")
    add_input_arguments(extract)
    add_output_arguments(extract)
    add_report_arguments(extract)
    add_options(extract, _extract_options())
    for action in (add, list_, extract):
        action.set_defaults(parser=action)


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
    options = given_options(args, store.adding_options())
    code = 0
    for path in inputs:
        name = os.path.basename(path) if args.name is None else args.name
        if path == "-" and args.name is None:
            raise UsageError("standard input has no name: give one with --name")
        report = store.append(args.store, path, name, from_=args.from_, progress=Progress(args.quiet), **options)
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
