"""fastprof diff: what changed from one profile to another."""

from __future__ import annotations

import argparse
from itertools import chain

from fastprof.cli import print_message
from fastprof.cli.arguments import (
    add_input_arguments,
    add_log_arguments,
    add_options,
    add_output_arguments,
    add_screen_arguments,
    add_table_arguments,
    choose_table,
    given_options,
    heading_of,
    refuse_screen_arguments,
    refuse_several,
)
from fastprof.cli.as_json import json_text
from fastprof.cli.messages import Progress, exit_code, print_log, print_problems
from fastprof.cli.parser import Parser
from fastprof.cli.text import Scale, Screen, print_csv, print_table, short_names, table_of, table_to
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.remote import shown
from fastprof.core.words import counted
from fastprof.verbs.diff import Change, Difference, Value, diff, growth, options

DESCRIPTION = """\
Compare the self costs of two profiles of any formats.
Prints the largest changes, or with -o writes a profile of
NEW minus OLD, in which costs that fell are negative."""
EXAMPLES = """\
examples:
  fastprof diff old.callgrind new.callgrind
  fastprof diff old.pb.gz new.pb.gz --value cpu -n 50
  fastprof diff cachegrind.out.1 cachegrind.out.2 --by line
  fastprof diff base.xray now.xray -s ./program -o d.pb.gz
  fastprof diff main.cachegrind branch.cachegrind \\
    --value Ir --fail-over 1 || echo slower
"""
FAILED = 4  # exit code of --fail-over


def add_arguments(parser: Parser) -> None:
    parser.add_argument("old", metavar="OLD", help="a file, a directory, or - for standard input")
    parser.add_argument("new", metavar="NEW", help="the profile to compare with OLD")
    add_input_arguments(parser)
    add_output_arguments(parser)
    add_log_arguments(parser, json="print JSON; with -o, the summary as JSON on stderr")
    add_table_arguments(parser)
    group = heading_of(parser, "output")
    group.add_argument(
        "--fail-over",
        type=_percent,
        metavar="PERCENT",
        help=f"exit with code {FAILED} if a total grew by more",
    )
    add_screen_arguments(parser)
    add_options(parser, options())


def _percent(text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1
    if not 0 <= percent < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a percentage, 0 or more")
    return percent


def run(args: argparse.Namespace) -> int:
    is_table = args.to is None and table_of(args.output) is not None
    written = not is_table and (args.output != "-" or args.to is not None)
    refuse_several(args)
    if is_table:
        choose_table(args, args.output)
    for flag in ("csv", "markdown"):
        if written and getattr(args, flag):
            raise UsageError(f"--{flag} applies to printed rows, not to --output")
    refuse_screen_arguments(args, "--json", "--csv", "--markdown", *["--output"] * written)
    found = diff(
        args.old,
        args.new,
        args.output if written else None,
        from_=args.from_,
        to=args.to,
        progress=Progress(args.quiet),
        **given_options(args, options()),
    )
    log = found.log
    if written:
        target = "standard output" if args.output == "-" else shown(args.output)
        code = print_log(args, log, f"{_summary(found)} -> {target} ({counted(log.facts['output_bytes'], 'byte')})")
    else:
        with table_to(args.output if is_table else None):
            if args.json:
                _print_json(found)
            else:
                _print_csv(found) if args.csv else _print_text(found, *_how(args))
        if not args.json:
            print_problems(log, f"{shown(found.old)} and {shown(found.new)}", args.quiet)
        code = exit_code(log)
    if args.fail_over is None or not (grown := found.grown(args.fail_over)):
        return code
    print_message(f"more than {args.fail_over:g} % above {found.old}: " + ", ".join(map(_growth_of, grown)))
    return FAILED


def _how(args: argparse.Namespace) -> tuple[Screen, bool]:
    """Where text goes, and whether names are shortened."""
    return Screen.asked(args.width, args.color, markdown=args.markdown), not hasattr(args, "demangle")


def _growth_of(value: Value) -> str:
    return f"{value.name} {_percent_of(value.old, value.new)}{' %' * bool(value.old)}"


def _summary(found: Difference) -> str:
    return ", ".join(f"{value.name} {value.new - value.old:+,}" for value in found.values) or "no values"


def _percent_of(old: int, new: int) -> str:
    if old == new:
        return "0.0"
    return f"{growth(old, new):+.1f}" if old else "new"


# ---- JSON and CSV

_NAMES = ("name", "file", "object", "line", "callee")


def _print_json(found: Difference) -> None:
    def costs(row: Change) -> dict[str, Any]:
        values = zip(found.values, row.old, row.new, strict=True)
        return {value.name: {"old": old, "new": new} for value, old, new in values}

    def inclusive(row: Change) -> dict[str, Any]:
        return {"inclusive": row.inclusive and dict(zip(("old", "new"), row.inclusive, strict=True))}

    names = ({name: getattr(row, name) for name in _NAMES} for row in found.rows)
    rows = [name | {"values": costs(row)} | inclusive(row) for name, row in zip(names, found.rows, strict=True)]
    values = [
        value._asdict() | {"percent": round(growth(value.old, value.new), 3) if value.old else None}
        for value in found.values
    ]
    whole = {"old": found.old, "new": found.new, "by": found.by, "values": values, "changed": found.n_changed}
    whole["shown"] = found.shown
    print(json_text(whole | {"rows": rows, "log": found.log.as_dict(flags=True)}, indent=1))


def _print_csv(found: Difference) -> None:
    head = [*_NAMES, *(f"{value.name} {side}" for value in found.values for side in ("old", "new"))]
    if any(row.inclusive for row in found.rows):
        head += [f"inclusive {found.values[found.shown].name} {side}" for side in ("old", "new")]
    rows = (
        [*row[:5], *chain.from_iterable(zip(row.old, row.new, strict=True)), *(row.inclusive or ())]
        for row in found.rows
    )
    print_csv(chain([head], rows))


# ---- text


def _print_text(found: Difference, screen: Screen, short: bool) -> None:
    totals: list[tuple[object, ...]] = [("", "old", "new", "difference", "%")]
    for value in found.values:
        scale = Scale.of(max(abs(value.old), abs(value.new)), value.unit)
        name, sides = scale.title(value.name), (value.old, value.new)
        totals.append((name, scale(value.old), scale(value.new), _signed(scale, *sides), _percent_of(*sides)))
    print_table(totals, right=(1, 2, 3, 4), narrow=(0,), screen=screen)
    if found.rows and found.n_changed:
        print()
        _print_rows(found, screen, short)


def _print_rows(found: Difference, screen: Screen, short: bool) -> None:
    value, rows = found.values[found.shown], found.changed()
    sides = [found.sides(row) for row in rows]
    costs = [cost for pair in sides for cost in pair]
    scale = Scale.of(max(map(abs, costs)), value.unit, costs)
    total = max(abs(value.old), abs(value.new))
    by_inclusive = found.sort == "inclusive"
    columns = [
        (f"{scale.title(value.name)} {'incl. ' * by_inclusive}old", [scale(old) for old, _ in sides]),
        ("new", [scale(new) for _, new in sides]),
        ("difference", [_signed(scale, old, new) for old, new in sides]),
        ("%", [_percent_of(old, new) for old, new in sides]),
    ]
    # the other of self and inclusive cost, in short
    others = [(row.old[found.shown], row.new[found.shown]) if by_inclusive else row.inclusive for row in rows]
    known = [pair for pair in others if pair]
    if known:
        other = Scale.of(max(abs(new - old) for old, new in known), value.unit, [new - old for old, new in known])
        title = other.title("self diff." if by_inclusive else "incl. diff.")
        columns.append((title, [_signed(other, *pair) if pair else "" for pair in others]))
    figures, least = range(len(columns)), [4] * bool(known)
    columns += _names(found.by, _shortened(rows) if short else rows)
    titles = [title for title, _ in columns]
    print_table(
        [titles, *zip(*(cells for _, cells in columns), strict=True)],
        right=figures,
        narrow=range(len(columns) - 1, figures.stop - 1, -1),  # the first column keeps most
        optional=[titles.index(title) for title in ("object", "file") if title in titles[figures.stop + 1 :]] + least,
        shares=[None, *(abs(new - old) / total if total else None for old, new in sides)],
        screen=screen,
    )
    if found.n_changed > len(rows):
        print(end="\n" * screen.markdown)
        print(f"... {found.n_changed - len(rows):,} more")


def _signed(scale: Scale, old: int, new: int) -> str:
    return f"{'+' * (new > old)}{scale(new - old)}"


def _shortened(rows: list[Change]) -> list[Change]:
    """The same with short names of C++, as `top` prints them."""
    names = [*dict.fromkeys(name for row in rows for name in (row.name, row.callee))]
    short = dict(zip(names, short_names(names), strict=True))
    return [row._replace(name=short[row.name], callee=short[row.callee]) for row in rows]


def _names(by: str, rows: list[Change]) -> list[tuple[str, list[str]]]:
    """The columns that identify a row."""
    called = [row.name or "???" for row in rows]
    if by in ("file", "object"):
        return [(by, called)]
    if by == "arc":
        columns = [("caller", called), ("callee", [row.callee or "???" for row in rows])]
    else:
        places = [f"{row.file or '???'}:{row.line}" if by == "line" else row.file for row in rows]
        columns = [("function", called), ("line" if by == "line" else "file", places)]
    columns.append(("object", [row.object for row in rows]))
    return [(title, cells) for title, cells in columns if not {*cells} <= {"", "???"}]
