"""Makes command-line arguments from the declarations of options (core/options.py), and keywords from parsed ones."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout

from fastprof.cli.messages import Progress
from fastprof.cli.parser import Parser
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.named_alike import accepting
from fastprof.core.options import Option, Switch, WordList, Words, ambiguous, named

# Prefix, in the argument namespace, of -O names that several formats have.
_ANY = "*."
# Headings of --help for groups of options, in this order.  The groups of formats follow, then _LAST, which includes
# --help itself.
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
    """Options by the heading of their group, in the order shown."""
    options = [*options]
    groups = dict.fromkeys(option.group for option in options)
    order = [*_HEADINGS, *(g for g in groups if g not in _HEADINGS and g not in _LAST), *_LAST]
    found = {_HEADINGS.get(g) or _LAST.get(g) or g: [o for o in options if o.group == g] for g in order}
    return {heading: mine for heading, mine in found.items() if mine}


def add_options(parser: Parser, options: Iterable[Option[Any]]) -> None:
    """Add flags for `options` under their headings.  Options not given are not in the namespace.

    Options of a format are hidden from --help, so its length does not grow with the number of formats.
    """
    options = [*options]
    for heading, mine in by_heading(option for option in options if not option.format).items():
        group = parser.last_group(heading) if heading in _LAST.values() else heading_of(parser, heading)
        for option in mine:
            _add(group, option)
    of_formats = [option for option in options if option.format]
    if of_formats:
        of_format = heading_of(parser, "input").add_argument(
            "-O",
            metavar="NAME=VALUE",
            action=OfFormat,
            known=options,
            default=argparse.SUPPRESS,
            help="set an option of one format; --help-all lists them",
        )
        of_format.details = "NAME may include the format: -O folded.root=main.  A switch needs no VALUE."
    for name, mine in by_heading(of_formats).items():
        group = heading_of(parser, f"for {name} alone")
        parser.hide(group)
        for option in mine:
            _add(group, option)


def full_help(option: Option[Any]) -> str:
    """The help of an option with its details."""
    return f"{option.help}.  {option.details}" if option.details else option.help


def heading_of(parser: argparse.ArgumentParser, title: str) -> Any:
    """The group of arguments with this title; created if missing."""
    for group in parser._action_groups:
        if group.title == title:
            return group
    return parser.add_argument_group(title)


def _add(group: Any, option: Option[Any]) -> None:
    help = option.help.replace("%", "%%")
    flags = [option.short, option.flag] if option.short else [option.flag]
    given: dict[str, Any] = {"dest": option.key, "default": argparse.SUPPRESS, "help": help}
    if isinstance(option.kind, Switch):
        given |= {"action": "store_const", "const": not option.default}
    elif isinstance(option.kind, Words) and not isinstance(option.kind, WordList):
        given |= {"choices": (*option.kind.words, *option.kind.renamed), "metavar": option.kind.metavar}
    else:
        given |= {"type": _parser(option), "metavar": option.kind.metavar}
    if option.several:
        given["action"] = "append"
    action = group.add_argument(*flags, **given)
    action.details, action.rare = option.details, option.rare
    action.completes, action.words = option.kind.completes, option.kind.words


class OfFormat(argparse.Action):
    """-O NAME=VALUE: sets the option of this name as its flag would."""

    def __init__(self, known: list[Option[Any]], **given: Any) -> None:
        super().__init__(**given)
        self._known = known

    def spellings(self) -> list[str]:
        """`NAME=` for each option of a format, `NAME` for a switch."""
        mine = [option for option in self._known if option.format]
        return [*dict.fromkeys(o.name + "=" * (not isinstance(o.kind, Switch)) for o in mine)]

    def __call__(self, parser: argparse.ArgumentParser, args: argparse.Namespace, text: Any, flag: Any = None) -> None:
        name, equals, value = text.partition("=")
        format_, dot, name = name.rpartition(".")
        name = format_.replace("_", "-") + dot + name.replace("-", "_")
        try:
            if general := [option for option in self._known if option.key == name and not option.format]:
                raise UsageError(f"{name!r} is not an option of a format: use {general[0].flag}")
            options = named(name, [option for option in self._known if option.format])
            options, found = accepting(options, lambda option: self._value(option, equals, value))
        except UsageError as error:
            raise argparse.ArgumentError(None, f"-O {text}: {error}") from None
        if found != found[:1] * len(found):
            raise argparse.ArgumentError(None, f"-O {text}: {ambiguous(name, options)}")
        key = options[0].key if len(options) == 1 else _ANY + name
        setattr(args, key, [*getattr(args, key, ()), found[0]] if options[0].several else found[0])

    @staticmethod
    def _value(option: Option[Any], equals: str, text: str) -> Any:
        if not equals and not isinstance(option.kind, Switch):
            raise UsageError(f"{option.kind.metavar} is missing: {option.help}")
        try:
            return option.kind.parse(text)
        except ValueError as error:
            raise UsageError(str(error)) from None


def _parser(option: Option[Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            return option.kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def given(args: argparse.Namespace, options: Iterable[Option[Any]]) -> dict[str, Any]:
    """The options that were given, as keywords of the Python interface."""
    given = {option.key: getattr(args, option.key) for option in options if hasattr(args, option.key)}
    return given | {name[len(_ANY) :]: value for name, value in vars(args).items() if name.startswith(_ANY)}


def keywords(args: argparse.Namespace, options: Iterable[Option[Any]]) -> dict[str, Any]:
    """What the function of a verb is called with, besides its inputs and its output: `from_`, `to` and `keep_going` if
    the verb has them, a progress bar, and the options that were given."""
    own = {name: getattr(args, name) for name in ("from_", "to", "keep_going") if hasattr(args, name)}
    return {**own, "progress": Progress(args.quiet), **given(args, options)}


def add_input(parser: argparse.ArgumentParser) -> None:
    group = heading_of(parser, "input")
    group.add_argument(
        "-f", "--from", dest="from_", metavar="FORMAT", help="input format (default: detected from the content)"
    )


def add_keep_going(parser: argparse.ArgumentParser) -> None:
    heading_of(parser, "input").add_argument(
        "--keep-going", action="store_true", help="skip inputs that cannot be read; exit code 3"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    group = heading_of(parser, "output")
    group.add_argument("-o", "--output", default="-", metavar="OUTPUT", help="output file (default: standard output)")
    group.add_argument("-t", "--to", metavar="FORMAT", help="output format (default: by the suffix of OUTPUT)")


def add_screen(parser: argparse.ArgumentParser) -> None:
    group = heading_of(parser, "output")
    group.add_argument(
        "--width",
        type=_width,
        metavar="N",
        help="width of the text in columns, or none for no limit",
    )
    words = ("auto", "always", "never")
    group.add_argument("--color", choices=words, default="auto", metavar="WHEN", help="auto, always or never")


def add_budget(parser: argparse.ArgumentParser) -> None:
    """--budget-tokens."""
    from fastprof.cli.budget import add_budget

    add_budget(heading_of(parser, "output"))


def add_table(parser: argparse.ArgumentParser) -> None:
    """--csv and --markdown."""
    group = heading_of(parser, "output")
    group.add_argument("--csv", action="store_true", help="print CSV with exact figures")
    group.add_argument("--markdown", action="store_true", help="print Markdown, for issues and logs")


# Suffixes of outputs that are tables, and the flags that print the same.
_TABLES = {".json": "json", ".csv": "csv", ".md": "markdown", ".txt": ""}


def table_of(path: str) -> str | None:
    """The table selected by an output's suffix: json, csv, markdown, or "" for text; None: not a table.

    The suffix of a format, such as .speedscope.json, selects no table.
    """
    name, suffix = os.path.splitext(os.path.basename(path))
    return _TABLES.get(suffix) if suffix != ".json" or "." not in name else None


@contextmanager
def table_to(path: str | None) -> Iterator[None]:
    """Redirect prints to a file, which appears whole or not at all; None: to standard output."""
    if path is None:
        yield
        return
    from fastprof.core.sink import Sink

    with Sink(path) as sink:
        with redirect_stdout(io.StringIO()) as text:
            yield
        sink.write(text.getvalue().encode("utf-8", "backslashreplace"))
        sink.commit()


def choose_table(args: argparse.Namespace, path: str) -> None:
    """Set the flag of the table selected by the suffix of --output, unless one is given."""
    kind = table_of(path)
    if kind and not any(getattr(args, flag) for flag in ("json", "csv", "markdown")):
        setattr(args, kind, True)


def refuse_several(args: argparse.Namespace) -> None:
    """Errors: UsageError for two of --json, --csv and --markdown."""
    given = [flag for flag in ("json", "csv", "markdown") if getattr(args, flag)]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} exclude each other")


def refuse_screen(args: argparse.Namespace, *others: str) -> None:
    """Errors: UsageError for --width or --color if one of `others`, such as "--json", leaves no text to print."""
    for other in others:
        for flag, default in (("--width", None), ("--color", "auto")):
            if getattr(args, other[2:]) and getattr(args, flag[2:]) != default:
                raise UsageError(f"{flag} applies to printed text, not to {other}")


def _width(text: str) -> int:
    if text == "none":
        return 0
    if not (text.isdecimal() and int(text[:6]) > 0 and len(text) < 6):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is neither a number of columns, up to 99999, nor none")
    return int(text)


def add_log(
    parser: argparse.ArgumentParser, json: str = "print the summary as JSON on stderr", *, of_files: bool = False
) -> None:
    """`of_files`: the summary is of many files, whose manifest lists everything."""
    group = heading_of(parser, "output")
    group.add_argument("-q", "--quiet", action="store_true", help="suppress the summary and the progress line")
    if not of_files:
        group.add_argument("-v", "--verbose", action="store_true", help="list all warnings, and data not in the output")
    group.add_argument("--json", action="store_true", help=json)
