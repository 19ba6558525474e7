"""fastprof trend: which functions changed, and since when."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

from fastprof import formats
from fastprof.cli import arguments
from fastprof.cli.budget import Answer, print_answer, refuse_output
from fastprof.cli.messages import exit_code, inputs_text, print_message, print_problems
from fastprof.cli.parser import Parser
from fastprof.cli.text import Screen, cut, markdown_text, print_csv, print_rest, print_table, shortened_by, text_of
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Format
from fastprof.core.errors import FastprofError, UsageError, printable
from fastprof.core.messages import counted
from fastprof.core.options import checked
from fastprof.verbs.reads import Reads
from fastprof.verbs.trend import LABELS_OF_INPUTS, options, trend
from fastprof.verbs.trend.result import Finding, Trend
from fastprof.verbs.trend.texts import figure_of, fitted, percent, sparkline, sure, with_

if TYPE_CHECKING:
    from fastprof.verbs.trend.page import Compared

DESCRIPTION = """\
Find which functions changed, by how much and since when, in
profiles of many commits, days or machines.  Statistics over
all functions distinguish changes from noise."""
EXAMPLES = """\
examples:
  fastprof trend nightly.fpa --over date
  fastprof trend runs.fpa --over commit --order git
  fastprof trend runs/ --fail-over 2 --window 3
"""
FAILED = 4  # exit code of --fail-over
_ROWS = 200  # of the heat map of a page
_SERIES = 1000  # of a table of series
_MOST_BYTES = 16 << 20  # of pairs of profiles in a page, from which no more are added
_NAME = 24  # characters of a name in the last column
_PATH = 160  # characters of a call path where the screen has no width


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(help="a file, a directory, a store, or - for standard input")
    arguments.add_input(parser, keep_going=True)
    arguments.add_log(parser, json="print JSON")
    help = "write a page (.html), the table (text, .md, .csv, .json) or series (.parquet, .arrows)"
    arguments.add_file(parser, help)
    arguments.add_printed(parser)
    arguments.add_options(parser, options())


_GARBAGE = 1 << 20  # objects between collections, of which thousands of profiles are many and none is garbage


def run(args: argparse.Namespace) -> int:
    arguments.refuse_several(args)
    is_page = (args.output or "").endswith(".html")
    target = _table_format(args) if args.output and arguments.table_of(args.output) is None and not is_page else None
    if target:
        if args.json or args.csv or args.markdown:
            raise UsageError(f"{args.output}: is neither JSON nor text")
        vars(args).setdefault("rows", _SERIES)
    if is_page:
        if args.json or args.csv or args.markdown:
            raise UsageError(f"{args.output}: a page is neither JSON nor a table")
        vars(args).setdefault("rows", _ROWS)
    arguments.choose_table(args, args.output or "")
    refuse_output(args, args.output)
    arguments.refuse_screen(args, "--json", "--csv", "--markdown")
    Reads(args.inputs, checked(arguments.given(args, options()), options())).refuse(args.output)
    gc.set_threshold(_GARBAGE)
    found = trend(args.inputs, **arguments.keywords(args, options()))
    if target:
        from fastprof.verbs.cells import write

        write(found.table().parts(), args.output, target)
        _print_problems(found, args)
    else:
        with arguments.table_to(None if args.output == "-" else args.output):
            _print_whole(found, args, is_page=is_page)
    for limit in dict.fromkeys(failure.limit for failure in found.failed):
        mine = [one for one in found.failed if one.limit == limit]
        grown = ", ".join(f"{one.name} {percent(one.change)} since {one.since}" for one in mine[:5])
        more = f" and {len(mine) - 5:,} more" if len(mine) > 5 else ""
        print_message(f"more than {limit:g} % slower: {grown}{more}")
    return FAILED if found.failed else exit_code(found.log)


def _print_whole(found: Trend, args: argparse.Namespace, *, is_page: bool) -> None:
    if not is_page:
        _print(found, args)
        return
    from fastprof.verbs.trend.page import page

    print(page(found, _compared(found, args)), end="")
    _print_problems(found, args)


def _table_format(args: argparse.Namespace) -> Format:
    """Errors: UsageError for an output that is no table."""
    with suppress(UsageError):
        target = formats.for_output(args.output)
        if target.holds.table:
            return target
    tables = "tables (.md, .csv, .json, .txt, .parquet, .arrows)"
    raise UsageError(f"{args.output}: trend writes pages (.html) and {tables}")


def _print(found: Trend, args: argparse.Namespace) -> None:
    def first(k: int) -> Trend:
        return found._replace(findings=found.findings[:k])

    def show(k: int) -> None:
        if args.csv:
            _print_csv(first(k))
            return
        screen = Screen.from_options(args.width, args.color, markdown=args.markdown)
        _print_text(first(k), screen, is_gate=hasattr(args, "fail_over"), short=not hasattr(args, "demangle"))

    answer = Answer("trend", len(found.findings), "findings", lambda k: as_json(first(k)), show, "--function REGEX")
    print_answer(args, answer, lambda: _print_problems(found, args))


def _print_problems(found: Trend, args: argparse.Namespace) -> None:
    print_problems(found.log, inputs_text(args.inputs), args.quiet, args.verbose)


def _compared(found: Trend, args: argparse.Namespace) -> list[Compared]:
    """For each finding a profile before it and one after it, compared; or why they are not."""
    from fastprof.core.html import frame
    from fastprof.verbs.report import options as options_of_report
    from fastprof.verbs.report import report
    from fastprof.verbs.trend.page import Compared

    known = {option.key for option in options_of_report()} - LABELS_OF_INPUTS
    given = {key: value for key, value in arguments.given(args, options()).items() if key in known}
    all_ = list[Compared]()
    first: dict[tuple[str, ...], int] = {}  # by the profiles: the first finding with them
    nbytes = 0
    for i, one in enumerate(found.findings):
        points = one.compared(found.points)
        before, after = (found.points[at]._replace(input=name) for at, name in zip(points, one.inputs, strict=True))
        made = Compared(before, after, same=first.setdefault(one.inputs, i))
        if points[0] == points[1]:
            made = made._replace(why="there is one point only")
        elif made.same == i and nbytes >= _MOST_BYTES:
            made = made._replace(why=f"this page would be larger than {_MOST_BYTES >> 20} MB")
        elif made.same == i:
            try:
                both = frame(report([before.input, after.input], from_=args.from_, **given).html)
                made = made._replace(frame=both.replace("<iframe", '<iframe loading="lazy"', 1))  # when it is opened
            except FastprofError as error:  # the input cannot be read twice, or the page has no room for it
                made = made._replace(why=str(error))
            nbytes += len(made.frame)
        all_.append(made)
    return all_


# ---- JSON and CSV


def as_json(found: Trend) -> dict[str, Any]:
    """The document of --json; docs/trend.md has its keys."""
    whole = found._asdict()
    last = {name: whole.pop(name) for name in ("rows", "log")}
    return whole | {"findings": [*map(_without_left, found.findings)]} | last


def _without_left(one: Finding) -> dict[str, Any]:
    """A finding; `left` only if it was requested and is known."""
    whole = one._asdict()
    if not one.left:
        del whole["left"]
    return whole


_CSV = Finding._fields[: Finding._fields.index("values")]


def _print_csv(found: Trend) -> None:
    points = [point.name for point in found.points]
    rows = ([*(getattr(one, name) for name in _CSV), *one.values] for one in found.findings)
    print_csv(chain([(*_CSV, *points)], rows))


# ---- text


def text(found: Trend) -> str:
    """The table as `str` of the result."""
    return text_of(lambda screen: _print_text(found, screen, is_gate=False, short=True))


def _print_text(found: Trend, screen: Screen, *, is_gate: bool, short: bool) -> None:
    if screen.markdown:
        screen.print("### fastprof trend\n")
        if is_gate:
            worst = ", ".join(f"{_text(one.name, screen)} {percent(one.change)}" for one in found.failed)
            screen.print(f"**Failed:** {worst}\n" if worst else "**Passed**\n")
    screen.print(_text(found.title, screen))
    if found.findings:
        screen.print()
        _print_findings(found, screen, short=short)
    print_rest(found.n_found - len(found.findings), screen)
    _print_causes(found, screen, short=short)
    for one in found.findings:
        if one.left:
            name, good, since = (_text(text, screen) for text in (one.shown_name, one.last_good, one.since))
            screen.print(f"\n{name}: {counted(len(one.left), 'commit')} after {good}, up to {since}:")
            _print_list([_text(commit, screen) for commit in one.left], screen)


def _print_causes(found: Trend, screen: Screen, *, short: bool) -> None:
    width = screen.width or _PATH

    def path(text: str, rest: int) -> str:
        names = text.split(" > ")
        if short:
            shortened = shortened_by(names)
            names = [shortened[name] for name in names]
        return fitted(" > ".join(names), width - rest)

    for one in found.findings:
        if one.causes:
            screen.print(f"\n{_text(one.shown_name, screen)}, {percent(one.change)} since {_text(one.since, screen)}:")
        shares = ["at the same point" if c.share is None else f"{100 * c.share:.0f} % of it" for c in one.causes]
        both = zip(one.causes, shares, strict=True)
        texts = [(path(c.text, len(share) + 6) if c.kind == "path" else c.text, share) for c, share in both]
        moved = [_text(with_(one), screen)] if one.causes and one.kind == "cost shift" else []
        _print_list([*moved, *(f"{_text(text, screen)}  ({share})" for text, share in texts)], screen)


def _print_list(lines: Sequence[str], screen: Screen) -> None:
    for i, line in enumerate(lines):
        screen.print(("\n" if screen.markdown and not i else "") + ("* " if screen.markdown else "  ") + line)


def _text(text: str, screen: Screen) -> str:
    """A name of a profile, so that it controls neither the terminal nor Markdown."""
    return markdown_text(printable(text)) if screen.markdown else printable(text)


def _print_findings(found: Trend, screen: Screen, *, short: bool) -> None:
    rows = found.findings
    names = [one.shown_name for one in rows]
    others = [other.name for one in rows for other in one.others]
    shortened = shortened_by([*names, *others]) if short else {}
    names = [shortened.get(name, name) for name in names]
    figures = [figure_of(found)(value) for one in rows for value in (one.before, one.after)]
    columns = [
        (found.by if found.by in ("line", "file", "object", "category") else "function", names),
        ("change", [percent(one.change) for one in rows]),
        ("since", [found.short(one.since) for one in rows]),
        ("before -> after", [f"{a} -> {b}" for a, b in zip(figures[::2], figures[1::2], strict=True)]),
        ("kind", [one.shown_kind for one in rows]),
        ("sure", [sure(one.p) for one in rows]),
        ("trend", [sparkline(one.values) for one in rows]),
        ("with", [with_(one, lambda name: cut(shortened.get(name, name), _NAME)) for one in rows]),
    ]
    columns = [column for column in columns if any(column[1])]
    titles = [title for title, _ in columns]
    print_table(
        [titles, *zip(*(cells for _, cells in columns), strict=True)],
        right=[titles.index("change")],
        narrow=[titles.index("since"), 0],
        optional=[titles.index(title) for title in ("with", "trend") if title in titles],
        shares=[None, *(one.after - one.before if one.is_worse else None for one in rows)],
        screen=screen,
    )
