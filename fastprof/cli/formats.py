"""fastprof formats: the formats, or the details of one."""

import argparse
import re
import sys

from fastprof import formats
from fastprof.cli.arguments import full_help
from fastprof.cli.as_json import document, json_text
from fastprof.cli.parser import Parser
from fastprof.cli.text import Screen, print_table, terminal_width
from fastprof.core._typing import Any
from fastprof.core.engine import Format
from fastprof.core.messages import filled
from fastprof.core.options import Option, Switch

DESCRIPTION = """\
List the formats: name (for --from and --to), view, read or
written, file names.  With FORMAT, describe one format: its
options, and the repairs and losses it reports."""
EXAMPLES = """\
examples:
  fastprof formats
  fastprof formats pprof
  fastprof formats --json | jq .formats[].name
"""
# The parts of a log, in the order of a format's page, with their headings.
_KINDS = {
    "repairs": "repairs (always done)",
    "losses": "losses (with --lenient; exit code 3)",
    "not_representable": "not representable (exit code 0)",
    "warnings": "warnings",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="FORMAT", help="describe this format")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    known = [formats.get(args.name)] if args.name else formats.listed()
    if args.json:
        entries = [_entry(f) for f in known]
        name, found = ("format", entries[0]) if args.name else ("formats", {"formats": entries})
        print(json_text(document(name, found), indent=1))
    elif args.name:
        _print_one(known[0])
    else:
        rows = [("format", "view", "reads", "writes", "file names", "")]
        rows += [(f.name, _views(f), _yes(f.is_read), _yes(f.writer), _names(f), f.title) for f in known]
        print_table(rows, optional=(5,), screen=Screen.of(sys.stdout))
    return 0


def _entry(f: Format) -> dict[str, Any]:
    return {
        "name": f.name,
        "view": f.view,
        "also": f.second_view,
        "reads": f.is_read,
        "writes": bool(f.writer),
        "suffixes": list(f.suffixes),
        "prefixes": list(f.prefixes),
        "title": f.title,
        "docs": f.docs or f.plugin or f"docs/formats/{f.name}.md",
        "options": [_option(option, f) for option in _options(f)],
        **_reported(f),
    }


def _options(f: Format) -> dict[Option[Any], None]:
    return dict.fromkeys((*f.reads, *f.selects, *f.writes))


def _option(option: Option[Any], f: Format) -> dict[str, Any]:
    used = {"reading": option in (*f.reads, *f.selects), "writing": option in f.writes}
    return {
        "name": option.key,
        "flag": option.flag,
        "values": option.kind.values or option.kind.metavar,
        "default": option.default,
        "repeatable": option.several,
        "for": [use for use, yes in used.items() if yes],
        "help": option.help,
        "details": option.details,
    }


def _reported(f: Format) -> dict[str, list[dict[str, str]]]:
    """The log entries of the format, by kind."""
    table = formats.reported_by(f.name).values()
    return {kind: [{"code": e.code, "text": _plain(e.several)} for e in table if e.kind == kind] for kind in _KINDS}


def _plain(words: str) -> str:
    """A text of the log with options as flags and the names of its other fields."""

    def shown(found: re.Match[str]) -> str:
        return filled(found[0], (), flags=True) if found[1].startswith("-") else found[1].upper()

    return re.sub(r"\{([^{}:!]*)[^{}]*\}", shown, words)


# ---- text


def _print_one(f: Format) -> None:
    entry = _entry(f)
    print(f"{f.name}: {f.title}\n")
    for name, value in (
        ("view", _views(f)),
        ("reads", _yes(f.is_read)),
        ("writes", _yes(f.writer)),
        ("file names", _names(f) or "-"),
        ("docs", entry["docs"]),
    ):
        print(f"{name:11} {value}")
    for use, options in (("reading", (*f.reads, *f.selects)), ("writing", f.writes)):
        own = [(_flags(option), full_help(option)) for option in options if option.format]
        _print_section(f"options for {use}", own)
        shared = [(option.flag, option.help) for option in options if not option.format]
        _print_section(f"shared options for {use}", shared)
    for kind, heading in _KINDS.items():
        _print_section(heading, [(one["code"], one["text"]) for one in entry[kind]])


def _flags(option: Option[Any]) -> str:
    """-O level=N, --level"""
    on = "=no" if option.default is True else "" if isinstance(option.kind, Switch) else f"={option.kind.metavar}"
    return f"-O {option.name}{on}" + (f", {option.flag}" if option.flag.startswith("--") else "")


def _print_section(heading: str, rows: list[tuple[str, str]]) -> None:
    from textwrap import wrap

    if rows:
        print(f"\n{heading}:")
    width = min(terminal_width() or 80, 100)
    for name, text in rows:
        first, *rest = wrap(text, max(width - 26, 20))
        print(*([f"  {name:22}  {first}"] if len(name) <= 22 else [f"  {name}", f"{'':26}{first}"]), sep="\n")
        for line in rest:
            print(f"{'':26}{line}")


def _views(f: Format) -> str:
    return ", ".join(filter(None, (f.view, f.second_view or f.reads_also)))


def _yes(place: str | bool) -> str:
    return "yes" if place else "-"


def _names(f: Format) -> str:
    return " ".join([*f.suffixes, *(prefix + "*" for prefix in f.prefixes)])
