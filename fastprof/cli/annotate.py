"""fastprof annotate: source lines, or instructions, with their costs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence, Set
from copy import copy
from functools import partial

from fastprof.cli import arguments
from fastprof.cli.budget import Answer, print_answer
from fastprof.cli.messages import exit_code, print_problems
from fastprof.cli.parser import Parser
from fastprof.cli.reported import REPORTED
from fastprof.cli.text import Screen, cut, percent, print_table, shortened_by, text_of
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.figures import Scale
from fastprof.core.unknown_names import readable
from fastprof.core.urls import shown
from fastprof.verbs.annotate import annotate, options
from fastprof.verbs.annotation import Annotation, Call, Instruction, Line, Listing

DESCRIPTION = """\
Show source files with the costs of each line, and below it
the calls it makes: => function (count).  Without FILE, show
the files of the most expensive functions, if they can be
found.  --asm shows instructions instead."""
EXAMPLES = """\
examples:
  fastprof annotate callgrind.out.123
  fastprof annotate cpu.pb.gz -I ~/src/zip inflate.c
  fastprof annotate callgrind.out.123 --value Dr inflate.c
  fastprof annotate callgrind.out.123 --asm --context 2
  fastprof annotate app.xray -s app --json | jq .totals
"""
_MISSING = 10  # missing files to list
_LEAST_NAME = 12  # columns of a callee


def add_arguments(parser: Parser) -> None:
    parser.add_inputs("input", nargs=None)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a source file, or the end of its path")
    arguments.add_input(parser, keep_going=True)
    arguments.add_log(parser, json="print JSON")
    arguments.add_printed(parser, table=False)
    arguments.add_options(parser, options())
    parser.set_defaults(more="files")


def run(args: argparse.Namespace) -> int:
    arguments.refuse_screen(args, "--json")
    found = annotate(args.input, args.files, **arguments.keywords(args, options()))
    lines = _lines_by_cost(found) if args.budget_tokens else []

    def first(k: int) -> Annotation:
        return found if k == len(lines) else _with_lines(found, {*lines[:k]})

    def show(k: int) -> None:
        _Page(first(k), Screen.from_options(args.width, args.color), not hasattr(args, "demangle")).print()

    def problems() -> None:
        print_problems(found.log, shown(args.input), args.quiet, args.verbose)

    ask = "a FILE after the profile"
    answer = Answer("annotate", len(lines), "listings[].lines", lambda k: _as_dict(first(k)), show, ask, indent=None)
    print_answer(args, answer, problems)
    return exit_code(found.log)


def _lines_by_cost(found: Annotation) -> list[tuple[int, int, int]]:
    """Lines with costs or calls, by listing, block and position: the most expensive first."""
    costs: list[tuple[int, tuple[int, int, int]]] = []
    for i, listing in enumerate(found.listings):
        for j, block in enumerate(listing.blocks()):
            line: Any
            for k, line in enumerate(block):
                own = line.values[found.value] if line.values else 0
                called = max((abs(call.values[found.value]) for call in line.calls), default=0)
                costs.append((-max(abs(own), called), (i, j, k)))
    return [place for _, place in sorted(costs)]


def _with_lines(found: Annotation, kept: Set[tuple[int, int, int]]) -> Annotation:
    """The listings with only these lines, without listings that have none."""
    short = copy(found)
    short.listings = []
    for i, listing in enumerate(found.listings):
        blocks: list[Any] = [
            [line for k, line in enumerate(block) if (i, j, k) in kept] for j, block in enumerate(listing.blocks())
        ]
        blocks = [block for block in blocks if block]
        if blocks:
            one = Listing(listing.name, listing.file, listing.path, listing.values, partial(iter, blocks))
            short.listings.append(one)
    return short


def text(found: Annotation) -> str:
    """The tables as `str` of the result."""
    return text_of(lambda screen: _Page(found, screen, short=True).print())


class _Page:
    """The text for a person."""

    def __init__(self, found: Annotation, screen: Screen, short: bool) -> None:
        """`short`: shorten C++ names as `top` does."""
        self._found, self._screen, self._short = found, screen, short
        self._shown = self._that_fit()

    def print(self) -> None:
        for listing in self._found.listings:
            self._print_listing(listing)
        if self._found.missing:
            self._print_missing()
        scales = self._scales(self._found.totals)
        rows: list[list[object]] = [[*self._titles(scales), ""]]
        for share, values in self._found.shares.items():
            rows.append([*self._figures(scales, values), share])
        self._print(rows)

    def _that_fit(self) -> list[int]:
        """The value types to show: on a terminal as many as leave half the width to the source, but at least one."""
        found = self._found
        order = [found.value, *(k for k in range(len(found.totals)) if k != found.value)][: len(found.totals)]
        if self._screen.width is None:
            return sorted(order)
        left = self._screen.width // 2
        shown: list[int] = []
        for k in order:
            left -= max(len(found.value_types[k].name), len(f"{found.totals[k]:,}")) + len("  100.0  ")
            if shown and left < 0:
                names = ", ".join(found.value_types[k].name for k in order[len(shown) :])
                found.log.warn(REPORTED["narrow-terminal"], names=names)
                break
            shown.append(k)
        return sorted(shown)

    def _scales(self, largest: list[int]) -> list[Scale]:
        return [Scale.of(largest[k], self._found.value_types[k].unit) for k in self._shown]

    def _titles(self, scales: list[Scale]) -> list[object]:
        titles: list[object] = []
        for k, scale in zip(self._shown, scales, strict=True):
            titles += [scale.title(self._found.value_types[k].name), "%"]
        return titles

    def _figures(self, scales: list[Scale], values: list[int] | None) -> list[object]:
        """A value and its percentage for each value type.  0 has no percentage; a missing value is a dot."""
        if values is None:
            return [".", ""] * len(scales)
        cells: list[object] = []
        for k, scale in zip(self._shown, scales, strict=True):
            cells += [scale(values[k]), percent(values[k], self._found.totals[k]) if values[k] else ""]
        return cells

    def _share(self, values: list[int] | None) -> float | None:
        total = self._found.totals[self._found.value] if values else 0
        return values[self._found.value] / total if values and total else None

    def _print_listing(self, listing: Listing) -> None:
        blocks = [*listing.blocks()]
        names = [call.function for block in blocks for line in block for call in line.calls]
        called = shortened_by(names) if self._short else {name: name for name in names}
        lines = [line for block in blocks for line in block]
        figures = [listing.values, *(line.values for line in lines if line.values)]
        figures += [call.values for line in lines for call in line.calls]
        scales = self._scales([max(abs(values[k]) for values in figures) for k in range(len(self._found.totals))])
        heading = ("address", "line") if any(isinstance(line, Instruction) for line in lines) else ("line",)
        title = listing.name + f"  [{listing.path}]" * (listing.path != listing.name)
        blank = [""] * len(heading)
        rows: list[list[object]] = [[*self._titles(scales), *heading, ""]]
        rows.append([*self._figures(scales, listing.values), *blank, title])
        shares: list[float | None] = [None, None]
        for block in blocks:
            if block[0].text is not None and (
                block is not blocks[0] or (isinstance(block[0], Line) and block[0].number > 1)
            ):
                rows.append([*[""] * (2 * len(scales)), *blank, f"-- {heading[0]} {_places(block[0])[0]} --"])
                shares.append(None)
            for line in block:
                rows.append([*self._figures(scales, line.values), *_places(line), _text(line)])
                shares.append(self._share(line.values))
                for call in line.calls:
                    rows.append([*self._figures(scales, call.values), *blank, _Called.of(call, called, listing)])
                    shares.append(None)
        self._print(rows, shares)
        self._screen.print()

    def _print_missing(self) -> None:
        missing = self._found.missing
        scales = self._scales([max(abs(m.values[k]) for m in missing) for k in range(len(self._found.totals))])
        rows = [[*self._titles(scales), "not found"]]
        rows += [[*self._figures(scales, m.values), m.name] for m in missing[:_MISSING]]
        if rest := missing[_MISSING:]:
            sums = [sum(column) for column in zip(*(m.values for m in rest), strict=True)]
            rows.append([*self._figures(scales, sums), f"... {len(rest):,} more"])
        self._print(rows)
        self._screen.print()

    def _print(self, rows: list[list[object]], shares: Sequence[float | None] = ()) -> None:
        """Print a table whose last column is text, cut at the edge of the screen; calls lose their arguments."""
        last = len(rows[0]) - 1
        room = None
        if self._screen.width is not None:
            room = max(self._screen.width - sum(max(len(str(row[i])) for row in rows) + 2 for i in range(last)), 20)
        for row in rows:
            text = row[-1]
            row[-1] = text.fitting(room) if isinstance(text, _Called) else str(text)[:room]
        places = last - 2 * len(self._shown)  # the figures; the line or address follows
        right = [*range(2 * len(self._shown)), *([2 * len(self._shown)] if places else [])]
        print_table(rows, right, narrow=(last,), shares=shares, screen=self._screen)


def _places(line: Line | Instruction) -> list[str]:
    if isinstance(line, Line):
        return [str(line.number or "")]
    return [f"{line.address:x}" if line.address else "", f"{os.path.basename(line.file)}:{line.line}" * bool(line.line)]


def _text(line: Line | Instruction) -> str:
    if line.text is not None:
        return readable(line.text.expandtabs())
    if isinstance(line, Instruction):
        return "(not disassembled)" if line.address else "(of no known address)"
    return "(past the end of the file)" if line.number else "(of no known line)"


class _Called(NamedTuple):
    """A call below a line."""

    name: str
    times: str
    where: str  # the file of the callee, if different

    @staticmethod
    def of(call: Call, names: Mapping[str, str], listing: Listing) -> _Called:
        where = "" if call.file in (listing.file, "") else f"  [{call.file}]"
        times = "" if call.times is None else f" ({call.times:,}x)"
        return _Called(readable(names[call.function]), times, readable(where))

    def fitting(self, room: int | None) -> str:
        """The call in `room` columns: the name loses its arguments, then its middle; the file is dropped last."""
        if room is None:
            return f"=> {self.name}{self.times}{self.where}"
        where = self.where if room >= len(self.times + self.where) + _LEAST_NAME else ""
        return f"=> {cut(self.name, max(room - 3 - len(self.times + where), _LEAST_NAME))}{self.times}{where}"


def _as_dict(found: Annotation) -> dict[str, Any]:
    listings = [
        {"name": one.name, "file": one.file, "path": one.path, "values": one.values}
        | {"lines": [line for block in one.blocks() for line in block]}
        for one in found.listings
    ]
    parts = ("value_types", "value", "totals", "shares", "listings", "missing", "log")
    return {name: getattr(found, name) for name in parts} | {"listings": listings}
