"""Makes command-line arguments from the declarations of options (core/options.py), and keywords from parsed ones."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout

from fastprof.cli.messages import Progress
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import UsageError
from fastprof.core.named_alike import ANY
from fastprof.core.options import Option, Switch, WordList, Words

if TYPE_CHECKING:
    import argparse

    from fastprof.cli.parser import Parser

    Known = Iterable[Option[Any]] | Callable[[], Iterable[Option[Any]]]

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


def add_options(parser: Parser, options: Known, own: Iterable[Option[Any]] = ()) -> None:
    """Add flags for `options` under their headings.  Options not given are not in the namespace.

    Options of a format are hidden from --help, so its length does not grow with the number of formats.  A function
    is called only if the command line needs more than `own`, for which no registration is loaded.
    """
    if hasattr(parser, "add_own"):  # Quick
        parser.add_own(own)
        return
    from argparse import SUPPRESS

    from fastprof.cli.of_format import OfFormat

    options = [*(options() if callable(options) else options)]
    for heading, mine in by_heading(option for option in options if not option.format).items():
        group = parser.last_group(heading) if heading in _LAST.values() else heading_of(parser, heading)
        for option in mine:
            add_option(group, option, SUPPRESS)
    of_formats = [option for option in options if option.format]
    if of_formats:
        of_format = heading_of(parser, "input").add_argument(
            "-O",
            metavar="NAME=VALUE",
            action=OfFormat,
            known=options,
            default=SUPPRESS,
            help="set an option of one format; --help-all lists them",
        )
        of_format.details = "NAME may include the format: -O folded.root=main.  A switch needs no VALUE."
    for name, mine in by_heading(of_formats).items():
        group = heading_of(parser, f"for {name} alone")
        parser.hide(group)
        for option in mine:
            add_option(group, option, SUPPRESS)


def full_help(option: Option[Any]) -> str:
    """The help of an option with its details."""
    return f"{option.help}.  {option.details}" if option.details else option.help


def heading_of(parser: argparse.ArgumentParser, title: str) -> Any:
    """The group of arguments with this title; created if missing."""
    for group in parser._action_groups:
        if group.title == title:
            return group
    return parser.add_argument_group(title)


def add_option(group: Any, option: Option[Any], suppress: str) -> None:
    """Add the flag of an option to a parser or a group of arguments.  `suppress`: the default of what is then no
    argument."""
    help = option.help.replace("%", "%%")
    flags = [option.short, option.flag] if option.short else [option.flag]
    given: dict[str, Any] = {"dest": option.key, "default": suppress, "help": help}
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


def _parser(option: Option[Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            return option.kind.parse(text)
        except ValueError as error:
            raise wrong(str(error)) from None

    return parsed


def wrong(reason: str) -> Exception:
    """The error of a value, of which argparse names the flag."""
    from argparse import ArgumentTypeError

    return ArgumentTypeError(reason)


def given(args: argparse.Namespace, options: Known) -> dict[str, Any]:
    """The options that were given, as keywords of the Python interface."""
    keys = getattr(args, "options", None)
    if keys is None:
        keys = [option.key for option in (options() if callable(options) else options)]
    given = {key: getattr(args, key) for key in keys if hasattr(args, key)}
    return given | {name[len(ANY) :]: value for name, value in vars(args).items() if name.startswith(ANY)}


def keywords(args: argparse.Namespace, options: Known) -> dict[str, Any]:
    """What the function of a verb is called with, besides its inputs and its output: `from_`, `to` and `keep_going` if
    the verb has them, a progress bar, and the options that were given."""
    own = {name: getattr(args, name) for name in ("from_", "to", "keep_going") if hasattr(args, name)}
    return {**own, "progress": Progress(args.quiet), **given(args, options)}


def add_input(parser: argparse.ArgumentParser, *, names: bool = False, keep_going: bool = False) -> None:
    """`names`: also --files0-from."""
    group = heading_of(parser, "input")
    group.add_argument(
        "-f", "--from", dest="from_", metavar="FORMAT", help="input format (default: detected from the content)"
    )
    if names:
        add_names(parser)
    if keep_going:
        group.add_argument("--keep-going", action="store_true", help="skip inputs that cannot be read; exit code 3")


def add_names(parser: argparse.ArgumentParser) -> None:
    help = "also read NUL-terminated input names from FILE"
    heading_of(parser, "input").add_argument("--files0-from", metavar="FILE", help=help)


def add_file(parser: argparse.ArgumentParser, help: str, metavar: str = "OUTPUT", **given: Any) -> None:
    """-o, which `help` describes."""
    heading_of(parser, "output").add_argument("-o", "--output", metavar=metavar, help=help, **given)


def add_output(parser: argparse.ArgumentParser) -> None:
    add_file(parser, "output file (default: standard output)", default="-")
    group = heading_of(parser, "output")
    group.add_argument("-t", "--to", metavar="FORMAT", help="output format (default: by the suffix of OUTPUT)")


def add_printed(parser: argparse.ArgumentParser, *, table: bool = True) -> None:
    """What a printed answer looks like, and how long it is.  `table`: also --csv and --markdown."""
    group = heading_of(parser, "output")
    if table:
        group.add_argument("--csv", action="store_true", help="print CSV with exact figures")
        group.add_argument("--markdown", action="store_true", help="print Markdown, for issues and logs")
    help = "width of the text in columns, or none for no limit"
    group.add_argument("--width", type=_width, metavar="N", help=help)
    words = ("auto", "always", "never")
    group.add_argument("--color", choices=words, default="auto", metavar="WHEN", help="auto, always or never")
    add_budget(parser)


def add_budget(parser: argparse.ArgumentParser) -> None:
    """--budget-tokens (budget.py)."""
    heading_of(parser, "output").add_argument(
        "--budget-tokens",
        type=_tokens,
        metavar="N",
        help="limit the answer to N tokens of 4 bytes",
    ).details = "Keeps what costs most, and states what was cut and how to ask for it."


def _tokens(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    if not 200 <= number <= 1 << 24:
        raise wrong(f"{text!r:.80} is not a number of tokens from 200 to {1 << 24:,}")
    return number


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
        raise wrong(f"{text!r:.80} is neither a number of columns, up to 99999, nor none")
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
