"""fastprof top: what costs most."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Sequence

from fastprof.cli.arguments import add_input_arguments, add_options, add_report_arguments, given_options, heading_of
from fastprof.cli.report import Progress, exit_code, say_report
from fastprof.cli.text import Scale, Screen, percent, print_table
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.verbs.top import Call, Row, Top, options, top

DESCRIPTION = """\
Say what costs most: functions with what was spent in them
(self) and in them and what they called (inclusive), of any
profile, or of several together."""
EXAMPLES = """\
examples:
  fastprof top callgrind.out.123
  fastprof top trace.xray -s ./program --sort total
  fastprof top cpu.pb.gz --tree caller -n 5
  fastprof top cachegrind.out.7 --by line --value D1mr
  fastprof top *.prof --threshold 1% --csv > top.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="a file, a directory, or - for standard input")
    add_input_arguments(parser)
    add_report_arguments(parser, json="print JSON")
    heading_of(parser, "output").add_argument("--csv", action="store_true", help="print CSV, with exact figures")
    add_options(parser, options())


def run(args: argparse.Namespace) -> int:
    if args.json and args.csv:
        raise UsageError("--json or --csv: one of them")
    given = given_options(args, options())
    found = top(args.inputs, from_=args.from_, progress=Progress(args.quiet), **given)
    if args.json:
        print(json.dumps(_as_json(found), indent=1))
    elif args.csv:
        _print_csv(found)
    else:
        _print_text(found, tree="tree" in given)
    report = found.report
    if not args.quiet and not args.json and (report.losses or report.warnings):
        say_report(report, args.inputs[0] if len(args.inputs) == 1 else f"{len(args.inputs)} inputs")
    return exit_code(report)


def _as_json(found: Top) -> dict[str, Any]:
    def with_calls(row: Row) -> dict[str, Any]:
        calls = {name: [call._asdict() for call in getattr(row, name)] for name in ("callers", "callees")}
        return row._asdict() | calls

    return found._asdict() | {
        "value": found.value._asdict(),
        "second": found.second and found.second._asdict(),
        "rows": [with_calls(row) for row in found.rows],
        "report": found.report.as_dict(),
    }


_CSV = Row._fields[: Row._fields.index("callers")]


def _print_csv(found: Top) -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(_CSV)
    for row in found.rows:
        table.writerow("" if (value := getattr(row, name)) is None else value for name in _CSV)


# ---- text


def _print_text(found: Top, tree: bool) -> None:
    name, total = found.value.name, Scale.of(found.total, found.value.unit)
    inputs = found.inputs[0] if len(found.inputs) == 1 else f"{len(found.inputs)} inputs"
    things = "label sets" if found.by == "label" else f"{found.by}s"
    print_table(
        [(f"{inputs}: {' '.join(filter(None, (total(found.total), total.unit, name)))} in {found.n_rows:,} {things}",)]
    )
    if found.rows:
        print()
        (_print_tree if tree else _print_rows)(found)
    if found.n_rows > len(found.rows):
        print(f"... {found.n_rows - len(found.rows):,} more ({percent(found.rest)} %)")


def _print_rows(found: Top) -> None:
    rows, names = found.rows, _names(found)
    own, total = _scale(found, [row.self for row in rows]), _scale(found, [row.inclusive for row in rows])
    columns = [
        (own.title("self"), [own(row.self) for row in rows]),
        ("self %", [percent(row.self_share) for row in rows]),
        ("sum %", [percent(row.cumulated_share) for row in rows]),
    ]
    if found.second:
        second = Scale.of(max(abs(row.second or 0) for row in rows), found.second.unit)
        columns.insert(0, (second.title(found.second.name), [second(row.second or 0) for row in rows]))
    if rows[0].inclusive is not None:
        columns.append((total.title("inclusive"), [total(row.inclusive or 0) for row in rows]))
        columns.append(("incl. %", [percent(row.inclusive_share or 0) for row in rows]))
    if rows[0].calls is not None:
        columns.append(("calls", [f"{row.calls:,}" for row in rows]))
    right = range(len(columns))
    columns += names
    print_table(
        zip(*([title, *cells] for title, cells in columns), strict=True),
        right=right,
        narrow=range(len(right), len(columns)),
        shares=[None, *(row.self_share for row in rows)],
        screen=Screen.of(sys.stdout),
    )


def _names(found: Top) -> list[tuple[str, list[str]]]:
    """The columns that say what a row is of."""
    rows, by = found.rows, found.by
    if by in ("file", "object"):
        return [(by, [getattr(row, by) or "???" for row in rows])]
    if by in ("thread", "label"):
        return [(by, [row.name for row in rows])]
    objects = ("object", [row.object for row in rows])
    if by == "line":
        return [("function", [row.name for row in rows]), ("line", [f"{row.file}:{row.line}" for row in rows]), objects]
    seen = Counter((row.name, row.object) for row in rows)
    return [
        # names that would look alike are told apart by their files
        ("function", [_shown(row, f" ({row.file})" * (seen[row.name, row.object] > 1)) for row in rows]),
        objects,
    ]


def _print_tree(found: Top) -> None:
    """As callgrind_annotate does: above each function (*) who calls it (<), below what it calls (>)."""
    total = _scale(found, [row.inclusive for row in found.rows])
    own = _scale(found, [row.self for row in found.rows])
    table: list[tuple[object, ...]] = [
        (own.title("self"), total.title("inclusive"), "incl. %", "calls", "function", "object")
    ]
    shares: list[float | None] = [None]
    for row in found.rows:
        table.append(("",) * 6)
        for sign, calls in (("<", row.callers), ("*", ()), (">", row.callees)):
            if sign == "*":
                n = "" if row.calls is None else row.calls
                share = percent(row.inclusive_share or 0)
                table.append((own(row.self), total(row.inclusive or 0), share, n, f"* {_shown(row)}", row.object))
            for one in calls:
                n, share = "" if one.calls is None else one.calls, percent(one.cost, found.total)
                table.append(("", total(one.cost), share, n, f"  {sign} {_shown(one)}", one.object))
        shares += [None] * (len(row.callers) + 1) + [row.inclusive_share] + [None] * len(row.callees)
    print_table(table, right=range(4), narrow=(4, 5), shares=shares, screen=Screen.of(sys.stdout))
    print()


def _scale(found: Top, figures: Sequence[int | None]) -> Scale:
    return Scale.of(max(abs(figure or 0) for figure in figures), found.value.unit)


def _shown(one: Row | Call, file: str = "") -> str:
    member = "" if one.cycle is None or one.name == f"<cycle {one.cycle}>" else f" <cycle {one.cycle}>"
    return one.name + file + member
