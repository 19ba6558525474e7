"""fastprof explain: a page about a profile of any format, or about what changed between two."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from textwrap import wrap

from fastprof.cli import arguments
from fastprof.cli.budget import Answer, print_answer
from fastprof.cli.messages import Progress, exit_code
from fastprof.cli.parser import Parser
from fastprof.cli.text import Screen, cut, percent, print_table, shortened_by, text_of, utc
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError, printable
from fastprof.core.figures import Scale, quantity
from fastprof.core.messages import counted
from fastprof.verbs.diff.difference import Change, growth
from fastprof.verbs.explain import Comparison, Explanation, Finding, Function, Recorded, explain, options
from fastprof.verbs.explain.hot import Step

DESCRIPTION = """\
Explain a profile on at most 60 lines, the same for every
format: what was recorded, the hottest path and functions,
what stands out (a thread, locks, the allocator, the kernel,
waiting), and what is doubtful (lost samples, missing names,
few samples).  With two profiles, explain what changed."""
EXAMPLES = """\
examples:
  fastprof explain perf.data
  fastprof explain old.pb.gz new.pb.gz
  fastprof explain cpu.pb.gz --json | jq .findings
"""
_LINES = 60
# What a page has until it fits: steps of the path, the characters of a finding, and of its lines.
_ATTEMPTS = ((14, 210, 110), (10, 210, 110), (8, 160, 160), (6, 160, 160))
_MOST_FINDINGS = 7
_NAME = 90  # characters of a name
_LINE = 160


_Sizes = tuple[int, int, int]


def add_arguments(parser: Parser) -> None:
    parser.add_inputs(metavar="FILE", help="a file, a folder, STORE:NAME, or - for stdin; or OLD NEW")
    arguments.add_input(parser)
    group = arguments.heading_of(parser, "output")
    group.add_argument("-q", "--quiet", action="store_true", help="suppress the progress line")
    group.add_argument("--json", action="store_true", help="print JSON")
    arguments.add_budget(parser)
    arguments.add_options(parser, options())


def run(args: argparse.Namespace) -> int:
    if len(args.inputs) > 2:
        raise UsageError(f"{counted(len(args.inputs), 'input')}: explain takes one profile, or an old and a new one")
    given = arguments.given(args, options())
    found = explain(*args.inputs, from_=args.from_, progress=Progress(args.quiet), **given)
    print_answer(args, _answer(found))
    return exit_code(found.log)


def _answer(found: Explanation | Comparison) -> Answer:
    is_one = isinstance(found, Explanation)
    lists = ("functions", "findings", "doubts", "lines") if is_one else ("changes", "inclusive", "doubts")

    def first(k: int) -> Explanation | Comparison:
        """The page with at most `k` entries of each kind, half of those of the path at its end."""
        kept: dict[str, Any] = {name: getattr(found, name)[:k] for name in lists}
        path = found.path
        kept["path"] = path if len(path) <= k else [*path[: k // 2], *path[len(path) - (k + 1) // 2 :]]
        return found._replace(**kept)

    n = max(len(getattr(found, name)) for name in (*lists, "path"))
    name = "explain" if is_one else "explain-changes"
    more = "fastprof top or annotate" if is_one else "fastprof diff"
    return Answer(name, n, "entries of each list", lambda k: first(k)._asdict(), lambda k: print(text(first(k))), more)


# ---- text


def text(found: Explanation | Comparison) -> str:
    """The page as `str` of the result."""
    page = ""
    for sizes in _ATTEMPTS:
        if isinstance(found, Explanation):
            page = text_of(partial(_print_explanation, found=found, sizes=sizes))
        else:
            page = text_of(partial(_print_comparison, found=found, sizes=sizes))
        if page.count("\n") < _LINES:
            break
    return page


def _print_explanation(screen: Screen, found: Explanation, sizes: _Sizes) -> None:
    recorded, value = found.recorded, found.value
    if found.total and value.name not in recorded.totals:  # those of a timeline are not recorded
        totals, units = {value.name: found.total} | recorded.totals, {value.name: value.unit} | recorded.units
        recorded = recorded._replace(totals=totals, units=units)
    for line in _head(recorded, value.name):
        screen.print(line)
    if not found.total:
        _print_findings(screen, "what is doubtful", found.doubts, sizes)
        return
    about = ", estimated from calls between functions" * found.estimated
    short = shortened_by([step.name for step in found.path] + [one.name for one in (*found.functions, *found.lines)])
    _print_path(screen, found.path, short, f"the hottest path{about}", sizes)
    scale = Scale.of(max((abs(one.self) for one in found.functions), default=0), found.value.unit)
    shown = f"functions by self cost, the first of {found.n_functions:,}"
    _print_functions(screen, [one for one in found.functions if one.self], short, shown, scale)
    if found.lines:
        _print_functions(screen, found.lines, short, "lines by self cost", scale)
    _print_findings(screen, "what stands out", found.findings, sizes)
    _print_findings(screen, "what is doubtful", found.doubts, sizes)


def _head(recorded: Recorded, value: str) -> Iterator[str]:
    """Up to five lines."""
    yield _fitted(f"{recorded.file}: {recorded.format}, {recorded.view}")
    if recorded.program or recorded.creator:
        program = cut(recorded.program, _NAME)
        yield _fitted("  " + ", ".join(filter(None, (program, f"by {recorded.creator}" * bool(recorded.creator)))))
    counts = ((recorded.samples, "sample"), (recorded.calls, "call"), (recorded.functions, "function"))
    words = [counted(n, one) for n, one in counts if n]
    processes = ((recorded.processes, "process", "processes"), (recorded.threads, "thread", "threads"))
    words += [counted(n, one, several) for n, one, several in processes if n and n > 1]
    if recorded.seconds:
        words.insert(0, quantity(round(recorded.seconds * 1e9), "nanoseconds"))
    when = f"{utc(recorded.time_ns)}: " if recorded.time_ns else ""
    if when or words:
        yield _fitted(f"  {when}{', '.join(words)}")
    totals = [name for name in (value, *recorded.totals) if name in recorded.totals]
    texts = [_total(recorded, name) for name in dict.fromkeys(totals)]
    if texts:
        more = f", and {len(texts) - 5:,} more value types" * (len(texts) > 5)
        yield _fitted(f"  total: {', '.join(texts[:5])}{more}")


def _total(recorded: Recorded, name: str) -> str:
    text = quantity(recorded.totals[name], recorded.units.get(name, ""))
    return text if name == recorded.units.get(name) else f"{text} {name}"


def _fitted(text: str) -> str:
    return cut(printable(text), _LINE)


def _place(file: str, line: int, object_: str) -> str:
    if file or line:  # as `top --by line` shows them
        return f"{os.path.basename(file) or '???'}{f':{line}' * bool(line)}"
    return os.path.basename(object_).strip("[]")


def _print_path(screen: Screen, path: Sequence[Step], short: dict[str, str], title: str, sizes: _Sizes) -> None:
    if not path:
        return
    left_out, first = max(len(path) - sizes[0], 0), sizes[0] // 3
    rows: list[list[object]] = [["incl. %", "self %", title]]
    for number, step in enumerate(path):
        if left_out and number == first:
            rows.append(["", "", f"... {counted(left_out, 'call')} more"])
        if left_out and first <= number < first + left_out:
            continue
        if step.skipped:
            what = f"... {counted(step.skipped, 'call')} of the same cost ..."
            rows.append(["", "", what])
        rows.append([percent(step.inclusive_share), percent(step.self_share), _named(step, short)])
    screen.print()
    print_table(rows, right=(0, 1), screen=screen)


def _named(one: Step | Function, short: dict[str, str]) -> str:
    place = _place(one.file, one.line, one.object)
    return cut(short[one.name], _NAME) + f"  [{cut(place, _NAME // 2)}]" * bool(place)


def _print_functions(
    screen: Screen, found: Iterable[Function], short: dict[str, str], title: str, scale: Scale
) -> None:
    rows: list[list[object]] = [[scale.title("self"), "self %", "incl. %", title]]
    for one in found:
        inclusive = "" if one.inclusive_share is None else percent(one.inclusive_share)
        rows.append([scale(one.self), percent(one.self_share), inclusive, _named(one, short)])
    if len(rows) > 1:
        screen.print()
        print_table(rows, right=(0, 1, 2), screen=screen)


def _print_findings(screen: Screen, title: str, found: Sequence[Finding], sizes: _Sizes) -> None:
    if not found:
        return
    screen.print(f"\n{title}")
    for one in found[:_MOST_FINDINGS]:
        lines = wrap(cut(printable(one.text), sizes[1]), sizes[2], subsequent_indent="  ")
        for line in lines[:1] + [" ".join(lines[1:])] * (len(lines) > 1):
            screen.print(f"  {line}")
    if len(found) > _MOST_FINDINGS:
        screen.print(f"  ... {len(found) - _MOST_FINDINGS} more; --json has all")


def _print_comparison(screen: Screen, found: Comparison, sizes: _Sizes) -> None:
    for side, recorded in (("old", found.old), ("new", found.new)):
        first, *rest = _head(recorded._replace(program="", creator=""), "")
        screen.print(f"{side}: {first}")
        for line in rest:
            screen.print(line)
    screen.print()
    for value in found.values[:4]:
        change = f"{growth(value.old, value.new):+.1f} %" if value.old else "new" if value.new else "0 %"
        screen.print(f"{value.name}: {quantity(value.old, value.unit)} -> {quantity(value.new, value.unit)} ({change})")
    names = [row.name for row in (*found.changes, *found.inclusive)] + [step.name for step in found.path]
    short = shortened_by(names)
    if found.values:
        n = f"{len(found.changes)} of {found.n_changed:,}"
        _print_changes(screen, found, found.changes, short, f"functions whose self cost changed, {n}")
        _print_changes(screen, found, found.inclusive, short, "functions whose inclusive cost changed", inclusive=True)
        if not found.changes and not found.inclusive:
            screen.print("\nno function's cost changed")
    _print_path(screen, found.path, short, "the hottest path of the new profile", sizes)
    _print_findings(screen, "what is doubtful", found.doubts, sizes)


def _print_changes(
    screen: Screen,
    found: Comparison,
    rows: Sequence[Change],
    short: dict[str, str],
    title: str,
    *,
    inclusive: bool = False,
) -> None:
    value = found.values[found.shown]
    sides = [(row.inclusive or (0, 0)) if inclusive else (row.old[found.shown], row.new[found.shown]) for row in rows]
    if not sides:
        return
    scale = Scale.of(max(abs(cost) for pair in sides for cost in pair), value.unit)
    total = max(abs(value.old), abs(value.new))
    lines: list[list[object]] = [[scale.title("old"), scale.title("new"), "of total %", title]]
    for row, (old, new) in zip(rows, sides, strict=True):
        place = _place(row.file, row.line, row.object)
        name = cut(short[row.name] or "???", _NAME) + f"  [{cut(place, _NAME // 2)}]" * bool(place)
        share = f"{100 * (new - old) / total:+.1f}" if total else "-"
        lines.append([scale(old), scale(new), share, name])
    screen.print()
    print_table(lines, right=(0, 1, 2), screen=screen)
