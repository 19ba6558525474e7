"""fastprof diff: the changes from one profile to another."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain

from fastprof.cli import arguments
from fastprof.cli.budget import Answer, print_answer, refuse_output
from fastprof.cli.messages import exit_code, print_log, print_message, print_problems, target_name
from fastprof.cli.parser import Parser
from fastprof.cli.text import Screen, markdown_text, print_csv, print_rest, print_table, shortened_by, text_of
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import UsageError
from fastprof.core.figures import Scale
from fastprof.core.messages import counted
from fastprof.core.options import checked
from fastprof.core.urls import shown
from fastprof.verbs.diff import STATS, Difference, diff, options
from fastprof.verbs.diff.difference import Change, Failure, Runs, growth
from fastprof.verbs.diff.gate import FAIL_OVER
from fastprof.verbs.groups import keys_of
from fastprof.verbs.reads import Reads

if TYPE_CHECKING:
    from fastprof.verbs.diff.overlap import Overlap

DESCRIPTION = """\
Compare the costs of two profiles of any formats.
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
  fastprof diff --fail-over main=5 old/*.prof -- new/*.prof
"""
FAILED = 4  # exit code of --fail-over


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(metavar="OLD NEW", help="OLD NEW (- for standard input), or OLD ... -- NEW ...")
    parser.set_defaults(more="inputs")
    arguments.add_input(parser, keep_going=True)
    arguments.add_output(parser)
    arguments.add_log(parser, json="print JSON; with -o, the summary as JSON on stderr")
    arguments.add_printed(parser)
    arguments.add_options(parser, options())


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """OLD and NEW.  Errors: UsageError."""
    inputs, words = args.inputs, args.words
    following = words[words.index("--") + 1 :] if "--" in words else []
    for word in following:
        if word.startswith("-") and word != "-" and not os.path.lexists(word):
            raise UsageError(f"{word} is not a file: options go ahead of --, which only names follow")
    n_new = len(following) or 1
    if not 0 < n_new < len(inputs):  # all names follow --, because they may begin with a dash
        n_new = 1
    if len(inputs) < 2:
        raise UsageError("NEW is missing: diff compares two profiles")
    if len(inputs) > 2 and n_new == 1 and "--" not in words:
        raise UsageError(f"{counted(len(inputs), 'input')}: separate the old from the new ones, OLD ... -- NEW ...")
    return inputs[:-n_new], inputs[-n_new:]


def run(args: argparse.Namespace) -> int:
    is_table = args.to is None and arguments.table_of(args.output) is not None
    written = not is_table and (args.output != "-" or args.to is not None)
    arguments.refuse_several(args)
    if is_table:
        arguments.choose_table(args, args.output)
    refuse_output(args, args.output)
    for flag in ("csv", "markdown"):
        if written and getattr(args, flag):
            raise UsageError(f"--{flag} applies to printed rows, not to --output")
    if getattr(args, "csv", False) and hasattr(args, STATS.key):
        raise UsageError("--csv prints rows only, without --stats")
    arguments.refuse_screen(args, "--json", "--csv", "--markdown", *["--output"] * written)
    sides = _sides(args)
    if is_table:
        Reads([*sides[0], *sides[1]], checked(arguments.given(args, options()), options())).refuse(args.output)
    found = diff(*sides, args.output if written else None, **arguments.keywords(args, options()))
    log = found.log
    if written:
        code = print_log(args, log, "diff-output", target_name(args.output), _summary(found))
    else:
        with arguments.table_to(args.output if is_table else None):
            _print(found, args)
        code = exit_code(log)
    for limit in dict.fromkeys(failure.limit for failure in found.failed):
        grown = ", ".join(_growth_of(failure) for failure in found.failed if failure.limit == limit)
        print_message(f"more than {limit:g} % above {found.old}: {grown}")
    return FAILED if found.failed else code


def _print(found: Difference, args: argparse.Namespace) -> None:
    def first(k: int) -> Difference:
        return found._replace(rows=found.rows[:k])

    def show(k: int) -> None:
        one = first(k)
        if args.markdown:
            _print_markdown_head(one, hasattr(args, FAIL_OVER.key))
        _print_csv(one) if args.csv else _print_text(one, *_screen(args))

    def problems() -> None:
        print_problems(found.log, f"{shown(found.old)} and {shown(found.new)}", args.quiet, args.verbose)

    answer = Answer("diff", len(found.rows), "rows", lambda k: _as_json(first(k)), show, "--by object or --function")
    print_answer(args, answer, problems)


def _screen(args: argparse.Namespace) -> tuple[Screen, bool]:
    """The screen for text, and whether names are shortened."""
    return Screen.from_options(args.width, args.color, markdown=args.markdown), not hasattr(args, "demangle")


def _growth_of(value: Failure) -> str:
    return f"{value.name} {_percent_of(value.old, value.new)}{' %' * bool(value.old)}"


def _print_markdown_head(found: Difference, is_gate: bool) -> None:
    """A title, the verdict of --fail-over and the warnings, for a comment on a pull request."""
    old, new = (markdown_text(os.path.basename(name) or name) for name in (found.old, found.new))
    print(f"### fastprof diff: {old} -> {new}\n")
    limits = [f"{_growth_of(failure)} (limit {failure.limit:g} %)" for failure in found.failed]
    if is_gate:
        print(f"**Failed:** {markdown_text(', '.join(limits))}\n" if limits else "**Passed**\n")
    for warning in found.log.warned(flags=True):
        print(f"> warning: {markdown_text(warning['text'])}\n")


def _summary(found: Difference) -> str:
    return ", ".join(f"{value.name} {value.new - value.old:+,}" for value in found.values) or "no values"


def _percent_of(old: int, new: int) -> str:
    if old == new:
        return "0.0"
    return f"{growth(old, new):+.1f}" if old else "new"


# ---- JSON and CSV

_NAMES = ("name", "file", "object", "line", "callee")


def _columns(by: str) -> tuple[str, ...]:
    return ("label", *_NAMES) if "function" in keys_of(by) else _NAMES


def _as_json(found: Difference) -> dict[str, Any]:
    def sides(one: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(("old", "new"), one, strict=True))

    def runs(of: Runs | None) -> dict[str, Any]:
        """For several profiles a side: the cost in each, and the probability that the difference is chance."""
        return {"runs": of} if of else {}

    rows = [
        {name: getattr(row, name) for name in _columns(found.by)}
        | {"values": {v.name: sides(pair) for v, *pair in zip(found.values, row.old, row.new, strict=True)}}
        | {"inclusive": row.inclusive and sides(row.inclusive)}
        | runs(row.runs)
        for row in found.rows
    ]
    values = [
        value._asdict() | {"percent": round(growth(value.old, value.new), 3) if value.old else None} | runs(of)
        for value, of in zip(found.values, found.runs or [None] * len(found.values), strict=True)
    ]
    whole = {"old": found.old, "new": found.new, "by": found.by, "values": values, "changed": found.n_changed}
    whole |= {"shown": found.shown} | ({"noise": found.n_noise} if found.runs else {})
    whole |= {"failed": found.failed} if found.failed else {}
    whole |= {"overlap": found.overlap} if found.overlap else {}
    return whole | {"rows": rows, "log": found.log}


def _print_csv(found: Difference) -> None:
    columns = _columns(found.by)
    head = [*columns, *(f"{value.name} {side}" for value in found.values for side in ("old", "new"))]
    if any(row.inclusive for row in found.rows):
        head += [f"inclusive {found.values[found.shown].name} {side}" for side in ("old", "new")]
    several = any(row.runs for row in found.rows)
    head += ["old spread %", "new spread %", "p"] * several
    rows = (
        [
            *(getattr(row, name) for name in columns),
            *chain.from_iterable(zip(row.old, row.new, strict=True)),
            *(row.inclusive or ()),
            *_spread(row.runs),
        ]
        for row in found.rows
    )
    print_csv(chain([head], rows))


def _spread(runs: Runs | None) -> tuple[float | None, ...]:
    """Standard deviations in percent of the means, and p."""
    return (runs.spread(runs.old), runs.spread(runs.new), runs.p) if runs else ()


# ---- text


def text(found: Difference) -> str:
    """The table as `str` of the result."""
    return text_of(partial(_print_text, found, short=True))


def _print_text(found: Difference, screen: Screen, short: bool) -> None:
    totals: list[tuple[object, ...]] = [("", "old", "new", "difference", "%")]
    for k, value in enumerate(found.values):
        scale = Scale.of(max(abs(value.old), abs(value.new)), value.unit)
        name, sides = scale.title(value.name), (value.old, value.new)
        line = [scale(value.old), scale(value.new), _signed(scale, *sides), _percent_of(*sides)]
        totals.append((name, *_with_spread(line, found.runs[k] if found.runs else None)))
    if found.runs:
        totals[0] = ("", *_SPREAD_HEAD)
    print_table(totals, right=range(1, len(totals[0])), narrow=(0,), screen=screen)
    if found.rows and found.n_changed:
        screen.print()
        _print_rows(found, screen, short)
    print_rest(found.n_noise, screen, " within the noise")
    if found.overlap:
        screen.print()
        print_table(_overlap(found.overlap), right=range(1, 5), narrow=(0,), screen=screen)


def _overlap(o: Overlap) -> list[tuple[str, ...]]:
    """The figures of --stats."""
    rows: list[tuple[str, ...]] = [("overlap", "%", "both", "only old", "only new")]
    rows.append(("similarity", f"{100 * o.similarity:.3f}", "", "", ""))
    only = f"{100 * o.only_old:.3f} %", f"{100 * o.only_new:.3f} %"
    rows.append(("samples", f"{100 * o.samples:.3f}", "", *only))
    for name, one in ("functions", o.functions), ("hot functions", o.hot_functions), ("hot blocks", o.hot_blocks):
        rows.append((name, f"{100 * one.share:.3f}", f"{one.both:,}", f"{one.only_old:,}", f"{one.only_new:,}"))
    return rows


_SPREAD_HEAD = ("old", "± %", "new", "± %", "difference", "%", "p")


def _with_spread(line: list[str], runs: Runs | None) -> list[str]:
    """old, new, difference and percent, with the spreads of several runs."""
    if not runs:
        return line
    spreads = [_spread_text(runs.spread(costs)) for costs in (runs.old, runs.new)]
    p = "" if runs.p is None else f"{runs.p:.3f}" if runs.p >= 0.001 else "<0.001"
    return [line[0], spreads[0], line[1], spreads[1], *line[2:], p]


def _spread_text(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.1f}"


def _print_rows(found: Difference, screen: Screen, short: bool) -> None:
    value, rows = found.values[found.shown], found.changed()
    if screen.markdown:  # paths of the machine that recorded say little to a reader of a comment
        rows = [row._replace(file=os.path.basename(row.file), object=os.path.basename(row.object)) for row in rows]
    sides = [found.sides(row) for row in rows]
    costs = [cost for pair in sides for cost in pair]
    scale = Scale.of(max(map(abs, costs)), value.unit, costs)
    total = max(abs(value.old), abs(value.new))
    by_inclusive = found.sort == "inclusive"
    lines = [
        _with_spread([scale(old), scale(new), _signed(scale, old, new), _percent_of(old, new)], row.runs)
        for row, (old, new) in zip(rows, sides, strict=True)
    ]
    head = _SPREAD_HEAD[1:] if rows[0].runs else ("new", "difference", "%")
    first = f"{scale.title(value.name)} {'incl. ' * by_inclusive}old"
    columns = [(title, [*cells]) for title, *cells in zip((first, *head), *lines, strict=True)]
    # also self or inclusive cost, whichever is not sorted by
    others = [(row.old[found.shown], row.new[found.shown]) if by_inclusive else row.inclusive for row in rows]
    known = [pair for pair in others if pair]
    if known:
        other = Scale.of(max(abs(new - old) for old, new in known), value.unit, [new - old for old, new in known])
        title = other.title("self diff." if by_inclusive else "incl. diff.")
        columns.append((title, [_signed(other, *pair) if pair else "" for pair in others]))
    figures, least = range(len(columns)), [len(columns) - 1] * bool(known)
    columns += _names(found.by, _shortened(rows) if short else rows)
    titles = [title for title, _ in columns]
    print_table(
        [titles, *zip(*(cells for _, cells in columns), strict=True)],
        right=figures,
        narrow=range(len(columns) - 1, figures.stop - 1, -1),  # the first column is shortened last
        optional=[titles.index(title) for title in ("object", "file") if title in titles[figures.stop + 1 :]] + least,
        shares=[None, *(abs(new - old) / total if total else None for old, new in sides)],
        screen=screen,
    )
    print_rest(max(found.n_changed - len(rows), 0), screen)


def _signed(scale: Scale, old: int, new: int) -> str:
    return f"{'+' * (new > old)}{scale(new - old)}"


def _shortened(rows: list[Change]) -> list[Change]:
    """The rows with C++ names shortened as in `top`."""
    short = shortened_by(name for row in rows for name in (row.name, row.callee))
    return [row._replace(name=short[row.name], callee=short[row.callee]) for row in rows]


def _names(by: str, rows: list[Change]) -> list[tuple[str, list[str]]]:
    """The columns that identify a row."""
    called = [row.name or "???" for row in rows]
    keys = ", ".join(key for key in keys_of(by) if key != "function")
    if by in ("file", "object"):
        return [(by, called)]
    if keys and "function" not in keys_of(by):
        return [(keys, called)]
    if by == "arc":
        columns = [("caller", called), ("callee", [row.callee or "???" for row in rows])]
    else:
        # the line of a function only if another one has its name
        seen = Counter((row.name, row.file, row.object) for row in rows)
        lined = [row.line > 0 and (by == "line" or seen[row.name, row.file, row.object] > 1) for row in rows]
        places = [f"{row.file or '???'}{f':{row.line}' * is_}" for row, is_ in zip(rows, lined, strict=True)]
        columns = [(keys, [row.label for row in rows])] * bool(keys)
        columns += [("function", called), ("line" if by == "line" else "file", places)]
    columns.append(("object", [row.object for row in rows]))
    return [(title, cells) for title, cells in columns if not {*cells} <= {"", "???"}]
