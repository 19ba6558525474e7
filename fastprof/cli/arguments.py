"""Makes command-line arguments from the declarations of options (core/options.py), and keywords from what was given."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from fastprof.cli.parser import Parser
from fastprof.core._typing import Any
from fastprof.core.options import Option, Switch, WordList, Words

# Headings of --help for groups of options, in this order.  Other groups are formats, which follow, then _LAST, under
# which --help itself is, too.
_HEADINGS = {
    "input": "input",
    "output": "output",
    "rows": "rows",
    "annotate": "lines",
    "batch": "many files",
    "filters": "filters and names",
    "symbols": "symbols",
    "values": "values, labels and views",
}
_LAST = {"limits": "general"}


def by_heading(options: Iterable[Option[Any]]) -> dict[str, list[Option[Any]]]:
    """Options under the headings of their groups, in the order in which they are shown."""
    options = [*options]
    groups = dict.fromkeys(option.group for option in options)
    order = [*_HEADINGS, *(g for g in groups if g not in _HEADINGS and g not in _LAST), *_LAST]
    found = {_HEADINGS.get(g) or _LAST.get(g) or g: [o for o in options if o.group == g] for g in order}
    return {heading: mine for heading, mine in found.items() if mine}


def add_options(parser: Parser, options: Iterable[Option[Any]]) -> None:
    """Flags for `options`, under their headings.  What was not given is not in the namespace.

    Those of a format are hidden from --help, which stays as long as it is however many formats there are.
    """
    options = [*options]
    for heading, mine in by_heading(option for option in options if not option.format).items():
        group = parser.last_group(heading) if heading in _LAST.values() else heading_of(parser, heading)
        for option in mine:
            _add(group, option)
    for name, mine in by_heading(option for option in options if option.format).items():
        group = heading_of(parser, f"for {name} alone")
        parser.hide(group)
        for option in mine:
            _add(group, option)


def full_help(option: Option[Any]) -> str:
    """All that there is to say of it."""
    return f"{option.help}.  {option.details}" if option.details else option.help


def heading_of(parser: argparse.ArgumentParser, title: str) -> Any:
    """The group of arguments with this title, made if it is not there."""
    for group in parser._action_groups:
        if group.title == title:
            return group
    return parser.add_argument_group(title)


def _add(group: Any, option: Option[Any]) -> None:
    flags = [option.short, option.flag] if option.short else [option.flag]
    help = option.help.replace("%", "%%")
    given: dict[str, Any] = {"dest": option.name, "default": argparse.SUPPRESS, "help": help}
    if isinstance(option.kind, Switch):
        given |= {"action": "store_const", "const": not option.default}
    elif isinstance(option.kind, Words) and not isinstance(option.kind, WordList):
        given |= {"choices": option.kind.words, "metavar": option.kind.metavar}
    else:
        given |= {"type": _parser(option), "metavar": option.kind.metavar}
    if option.several:
        given["action"] = "append"
    group.add_argument(*flags, **given).details = option.details


def _parser(option: Option[Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            return option.kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def given_options(args: argparse.Namespace, options: Iterable[Option[Any]]) -> dict[str, Any]:
    """The options that were given, as keywords of the Python interface."""
    return {option.name: getattr(args, option.name) for option in options if hasattr(args, option.name)}


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    group = heading_of(parser, "input")
    group.add_argument(
        "-f", "--from", dest="from_", metavar="FORMAT", help="input format (default: recognized by its content)"
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = heading_of(parser, "output")
    group.add_argument("-o", "--output", default="-", metavar="OUTPUT", help="output file (default: standard output)")
    group.add_argument("-t", "--to", metavar="FORMAT", help="output format (default: by the suffix of OUTPUT)")


def add_report_arguments(parser: argparse.ArgumentParser, json: str = "print the report as JSON, on stderr") -> None:
    group = heading_of(parser, "output")
    group.add_argument("-q", "--quiet", action="store_true", help="suppress the summary and the progress line")
    group.add_argument("--json", action="store_true", help=json)
