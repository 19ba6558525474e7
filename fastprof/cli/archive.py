"""fastprof archive: several profiles in one file."""

import argparse
import os
from collections.abc import Iterable, Iterator

from fastprof.cli import arguments
from fastprof.cli.as_json import document, json_text, print_json_list
from fastprof.cli.messages import Steps, print_log, print_message
from fastprof.cli.parser import Parser, action_of
from fastprof.cli.text import print_long_table
from fastprof.core._typing import Any
from fastprof.core.messages import counted
from fastprof.core.urls import shown
from fastprof.store import listing, pieces
from fastprof.verbs.archive import (
    archive_add,
    archive_compact,
    archive_extract,
    archive_rm,
    archive_verify,
    extracting_options,
)

DESCRIPTION = """\
Keep many profiles in one archive (a store).  Similar
profiles share storage.  If a change is interrupted, the
profiles that were in the archive stay readable."""
EXAMPLES = """\
examples:
  fastprof archive add nightly.fpa runs/
  fastprof archive add nightly.fpa trace.xray --name mon
  fastprof archive list nightly.fpa 'host1/*' --sort size
  fastprof top 'nightly.fpa:host1/*'
  fastprof archive extract nightly.fpa mon -o mon.callgrind

`fastprof archive ACTION --help` shows the options of each.
"""
_ADD = """\
examples:
  fastprof archive add nightly.fpa callgrind.out.101
  fastprof archive add nightly.fpa runs/ --skip-existing
  fastprof archive add nightly.fpa runs/ --replace
  cat a.prof | fastprof archive add all.fpa - --name a
"""
_LIST = """\
examples:
  fastprof archive list nightly.fpa
  fastprof archive list nightly.fpa 'host1/*' --sort date
  fastprof archive list all.fpa --json | jq .profiles[].name
"""
_EXTRACT = """\
examples:
  fastprof archive extract nightly.fpa mon -o mon.callgrind
  fastprof archive extract nightly.fpa 'host1/*' -t pprof \\
      -o out
"""
_RM = """\
examples:
  fastprof archive rm nightly.fpa mon 'host1/*'
  fastprof archive compact nightly.fpa
"""
_COMPACT = """\
examples:
  fastprof archive compact nightly.fpa
"""
_VERIFY = """\
examples:
  fastprof archive verify nightly.fpa
  fastprof archive verify nightly.fpa 'host1/*' --json
"""


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, does: str, examples: str) -> Parser:
        made = action_of(actions, name, does, f"{does[0].upper()}{does[1:]}.", examples)
        made.add_argument("store", metavar="STORE", help="the archive")
        return made

    def names(to: Parser, does: str, nargs: str = "*") -> None:
        to.add_argument("names", nargs=nargs, metavar="NAME", help=f"{does}, or a pattern: 'host1/*'")
        to.set_defaults(more="names")

    add = action("add", "add profiles to an archive; created if missing", _ADD)
    add.add_inputs()
    add.set_defaults(more="inputs")
    add.add_argument("--name", help="name of a single INPUT (default: its file name)")
    arguments.add_input(add)
    group = arguments.heading_of(add, "input")
    group.add_argument("--skip-existing", action="store_true", help="skip inputs whose name is already in the archive")
    group.add_argument("--replace", action="store_true", help="replace members of the same name")
    group.add_argument("--keep-going", action="store_true", help="skip inputs that cannot be added; exit code 3")
    arguments.add_log(add)
    arguments.add_options(add, pieces.adding_options())
    list_ = action("list", "list the profiles in an archive", _LIST)
    names(list_, "only these profiles")
    list_.add_argument(
        "--sort", choices=[*listing.SORTS], default="name", metavar="KEY", help=f"sort by {', '.join(listing.SORTS)}"
    )
    list_.add_argument("--json", action="store_true", help="print JSON")
    get = action("extract", "write profiles of an archive in any format", _EXTRACT)
    names(get, "name of a profile", "+")
    arguments.add_input(get)
    arguments.add_output(get)
    arguments.add_log(get)
    arguments.add_options(get, extracting_options())
    rm = action("rm", "remove profiles; `compact` then frees their space", _RM)
    names(rm, "name of a profile", "+")
    pack = action("compact", "free the space of removed or replaced profiles", _COMPACT)
    verify = action("verify", "verify all checksums, and read every profile", _VERIFY)
    names(verify, "read only these profiles")
    for one in (rm, pack, verify):
        one.add_argument("--json", action="store_true", help="print JSON")
        one.add_argument("-q", "--quiet", action="store_true", help="suppress the summary and the progress line")


def run(args: argparse.Namespace) -> int:
    code: int = {"add": _add, "list": _list, "extract": _extract, "rm": _rm, "compact": _compact, "verify": _verify}[
        args.action
    ](args)
    return code


def _add(args: argparse.Namespace) -> int:
    keywords = arguments.keywords(args, pieces.adding_options())
    if len(args.inputs) > 1 or os.path.isdir(args.inputs[0]):
        keywords["progress"] = None  # the bar is of profiles
    keywords |= {name: getattr(args, name) for name in ("name", "skip_existing", "replace")}
    with Steps(args.quiet, "profiles") as steps:
        log = archive_add(args.store, args.inputs, done=steps, **keywords)
    facts = log.facts
    added = steps.name if facts["added"] == steps.n == 1 else _profiles(facts["added"])
    counts = [f"added {added}"]
    if facts["replaced"]:
        counts.append(f"replacing {facts['replaced']:,}")
    if facts["left_out"]:
        counts.append(f"skipped {facts['left_out']:,} already present")
    return print_log(args, log, "archive-add", args.store, ", ".join(counts))


def _profiles(n: int) -> str:
    return counted(n, "profile")


def _list(args: argparse.Namespace) -> int:
    # printed as they are read: a store may have a million
    members = listing.each(args.store, args.names, sort=args.sort)
    if args.json:
        print_json_list("archive-list", "profiles", members)
    else:
        print_long_table(_lines(members), right=(4, 5))
    return 0


def _lines(members: Iterable[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    """The lines of `archive list`: head, profiles, sums."""
    yield ("name", "view", "format", "date", "rows", "bytes", "total")
    n = n_rows = n_bytes = 0
    for m in members:
        date = listing.date(m["mtime"]) if "mtime" in m else "-"
        name, view, format_, rows, nbytes = m["name"], m["view"], m.get("format", "-"), m["rows"], m["stored_bytes"]
        yield name, view, format_, date, rows, nbytes, _total(m.get("totals"))
        n, n_rows, n_bytes = n + 1, n_rows + rows, n_bytes + nbytes
    yield _profiles(n), "", "", "", n_rows, n_bytes, ""


def _total(totals: Any) -> str:
    """The total of the first value type."""
    if not totals:
        return "-"
    if isinstance(totals, list):
        return f"{totals[0]:,}"
    name = next(iter(totals))
    return f"{totals[name]:,} {name}"


def _extract(args: argparse.Namespace) -> int:
    with Steps(args.quiet, "profiles") as steps:
        keywords = arguments.keywords(args, extracting_options())
        if len(args.names) > 1 or os.path.isdir(args.output) or args.output.endswith("/"):
            keywords["progress"] = None  # the bar is of profiles
        log = archive_extract(args.store, args.names, args.output, done=steps, **keywords)
    names = log.facts["extracted"]
    what, to = (_profiles(steps.n), args.output) if steps.n else (names[0], shown(args.output))
    return print_log(args, log, "archive-extract", to, what)


def _rm(args: argparse.Namespace) -> int:
    removed = archive_rm(args.store, args.names)
    if args.json:
        print(json_text(document("archive-rm", {"removed": removed}), indent=1))
    elif not args.quiet:
        print_message(f"{_profiles(len(removed))} removed from {args.store}; compact frees their space")
    return 0


def _compact(args: argparse.Namespace) -> int:
    with Steps(args.quiet, "profiles") as steps:
        before, after = archive_compact(args.store, done=steps)
    if args.json:
        print(json_text(document("archive-compact", {"bytes_before": before, "bytes_after": after}), indent=1))
    elif not args.quiet:
        print_message(f"{args.store}: {counted(before, 'byte')} -> {counted(after, 'byte')}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    with Steps(args.quiet, "profiles") as steps:
        wrong = archive_verify(args.store, args.names, done=steps)
    if args.json:
        print(json_text(document("archive-verify", {"errors": wrong}), indent=1))
    elif wrong:
        for one in wrong:
            print_message(one["error"] + (f" (profile {one['name']})" if "name" in one else ""))
    elif not args.quiet:
        print_message(f"{args.store}: {_profiles(steps.n)} read, no errors")
    return 1 if wrong else 0
