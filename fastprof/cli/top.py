"""fastprof top: rank functions, lines, files, objects or threads by cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from fastprof import formats
from fastprof.cli import arguments
from fastprof.cli.messages import exit_code, inputs_text, print_problems
from fastprof.cli.text import Screen, first_line, percent, print_csv, print_rest, print_table, shortened_by, text_of
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Format
from fastprof.core.errors import UsageError
from fastprof.core.figures import UNITS, Scale
from fastprof.core.function_names import Place, marks
from fastprof.core.messages import counted
from fastprof.core.model import ValueType
from fastprof.core.options import checked
from fastprof.verbs.function_costs import Durations
from fastprof.verbs.groups import keys_of
from fastprof.verbs.reads import Reads
from fastprof.verbs.top import OPTIONS, Call, Row, Top, options, top

if TYPE_CHECKING:
    import argparse

    from fastprof.cli.parser import Parser

DESCRIPTION = """\
Rank functions by cost: their own (self), and including the
functions they call (inclusive).  sum % adds up self %.
Several inputs are added up, or compared by --matrix."""
_OPTIONAL = ("sum %", "object", "90 %", "incl. %", "self %", "min", "inclusive", "calls", "median", "99 %")  # columns
_LEAST = 0.005  # share of a function's inclusive cost below which --tree adds up callers and callees
_TREE = ("self", "inclusive", "incl. %", "calls", "object", "label", "function")  # columns of --tree
EXAMPLES = """\
examples:
  fastprof top callgrind.out.123
  fastprof top trace.xray -s ./program --sort inclusive
  fastprof top *.prof --threshold 1% -o top.csv
"""


def add_arguments(parser: Parser) -> None:
    parser.add_inputs()
    arguments.add_input(parser, keep_going=True)
    arguments.add_log(parser, json="print JSON")
    help = "write the table to a file: text, or .md, .csv, .json; --matrix also to .html, .arrows, .parquet"
    arguments.add_file(parser, help)
    arguments.add_printed(parser)
    arguments.add_options(parser, options, OPTIONS)


def run(args: argparse.Namespace) -> int:
    arguments.refuse_several(args)
    is_page = (args.output or "").endswith(".html")
    if is_page and not hasattr(args, "matrix"):
        raise UsageError(f"{args.output}: top writes a page only of --matrix; fastprof report writes one of a profile")
    target = None
    if args.budget_tokens is not None:
        from fastprof.cli.budget import refuse_output

        refuse_output(args, args.output)
    if args.output and arguments.table_of(args.output) is None and not is_page:
        target = _table_format(args)
    arguments.choose_table(args, args.output or "")
    arguments.refuse_screen(args, "--json", "--csv", "--markdown")
    if target:
        _refuse_flags(args)
    if args.output:
        Reads(args.inputs, checked(arguments.given(args, options), options)).refuse(args.output)
    found = top(args.inputs, **arguments.keywords(args, options))
    if target and found.matrix:
        from fastprof.cli import matrix

        matrix.write_table(found, found.matrix, args.output, target)
    else:
        _print(found, args, is_page=is_page)
    return exit_code(found.log)


def _print(found: Top, args: argparse.Namespace, *, is_page: bool) -> None:
    def show(k: int) -> None:
        one = _first(found, k)
        if one.matrix:
            from fastprof.cli import matrix

            matrix.show(one, one.matrix, args, is_page=is_page)
        elif args.csv:
            _print_csv(one)
        else:
            screen = Screen.from_options(args.width, args.color, markdown=args.markdown)
            _print_text(one if hasattr(args, "demangle") else _shortened(one), hasattr(args, "tree"), screen)

    def problems() -> None:
        print_problems(found.log, inputs_text(args.inputs), args.quiet, args.verbose)

    rows, name = (found.matrix.rows, "matrix.rows") if found.matrix else (found.rows, "rows")
    with arguments.table_to(None if args.output == "-" else args.output):
        if args.json or args.budget_tokens is not None:
            from fastprof.cli.budget import Answer, print_answer

            answer = Answer("top", len(rows), name, lambda k: _as_json(_first(found, k)), show, "--focus REGEX")
            print_answer(args, answer, problems)
        else:
            show(len(rows))
            problems()


def _first(found: Top, k: int) -> Top:
    """The result with its first `k` rows."""
    if found.matrix:
        return found._replace(matrix=found.matrix._replace(rows=found.matrix.rows[:k]))
    rows = found.rows[:k]
    if k >= len(found.rows) or not found.total:
        return found._replace(rows=rows)
    return found._replace(rows=rows, rest=1 - next((r.cumulated_share for r in reversed(rows) if not _is_cycle(r)), 0))


def _refuse_flags(args: argparse.Namespace) -> None:
    """Errors: UsageError for options of printed text if the output is an Arrow stream or Parquet."""
    for flag, default in (("json", False), ("csv", False), ("markdown", False), ("width", None), ("color", "auto")):
        if getattr(args, flag) != default:
            raise UsageError(f"--{flag} does not apply to {args.output}")


def _table_format(args: argparse.Namespace) -> Format | None:
    """The format of --output if a matrix is written in it; None: text.

    Errors: UsageError for the suffix of another format: a table as text would look like a profile.
    """
    output = args.output
    if output.endswith((".arrow", ".feather")):
        raise UsageError(f"{output}: Arrow's file format is not written; an Arrow stream has the suffix .arrows")
    try:
        target = formats.for_output(output)
    except UsageError:
        return None
    if target.holds.table and hasattr(args, "matrix"):
        return target
    if target.holds.table:
        raise UsageError(
            f"{output}: top writes {target.name} only of --matrix; `fastprof convert` writes the table of a profile"
        )
    raise UsageError(
        f"{output}: top writes tables (.csv, .json, .md, .txt); `fastprof convert` writes profiles as {target.name}"
    )


def _as_json(found: Top) -> dict[str, Any]:
    whole = found._asdict()
    last = {name: whole.pop(name) for name in ("stats", "matrix")}
    left_out = set() if found.stats else {"durations"}
    left_out |= set() if _has_threads(found) else {*_THREAD}
    whole["rows"] = [{k: v for k, v in row._asdict().items() if k not in left_out} for row in found.rows]
    if found.matrix:
        from fastprof.cli import matrix

        last["matrix"] = matrix.as_json(found.matrix)
    return whole | {name: value for name, value in last.items() if value}


def _with_calls(found: Top) -> list[Row | Call]:
    """The rows, each followed by its callers and callees."""
    every: list[Row | Call] = []
    for row in found.rows:
        every += [row, *row.callers, *row.callees]
    return every


def _shortened(found: Top) -> Top:
    """The rows with short C++ names; --json, --csv and --demangle=full print their arguments."""
    short = shortened_by(one.name for one in _with_calls(found))

    def of_calls(calls: tuple[Call, ...]) -> tuple[Call, ...]:
        return tuple(call._replace(name=short[call.name]) for call in calls)

    rows = [
        row._replace(name=short[row.name], callers=of_calls(row.callers), callees=of_calls(row.callees))
        for row in found.rows
    ]
    return found._replace(rows=rows)


_PLURALS = {"branch": "branches", "category": "categories"}
_CSV = Row._fields[: Row._fields.index("callers")]
_THREAD = ("pid", "tid", "thread")


def _has_threads(found: Top) -> bool:
    return "thread" in found.by.split(",")


def _print_csv(found: Top) -> None:
    more = Durations._fields if found.stats else ()
    own: tuple[str, ...] = _CSV
    if _has_threads(found):
        own = (*_CSV, *_THREAD)
    elif "function" in keys_of(found.by):
        own = ("label", *_CSV)
    rows = ([*(getattr(row, name) for name in own), *(row.durations or [None] * len(more))] for row in found.rows)
    print_csv(chain([(*own, *more)], rows))


# ---- text


def text(found: Top) -> str:
    """The table as `str` of the result."""
    if found.matrix:
        from fastprof.cli import matrix

        return text_of(partial(matrix.print_text, found, found.matrix))
    tree = any(row.callers or row.callees for row in found.rows)
    return text_of(partial(_print_text, _shortened(found), tree))


def _print_text(found: Top, tree: bool, screen: Screen) -> None:
    total, name = Scale.of(found.total, _unit(found.value)), found.value.name
    words = [total(found.total), total.unit, "" if name in UNITS or (name == "time" and total.unit) else name, "in"]
    words.append(counted(found.n_rows - found.n_cycles, _noun(found.by), _PLURALS.get(found.by, "")))
    if found.n_cycles:
        words.append(f"and {counted(found.n_cycles, 'cycle')}")
    line = f"{inputs_text(found.inputs)}: {' '.join(filter(None, words))}"
    screen.print(first_line(line, found.other_values, screen))
    if found.rows:
        screen.print()
        (_print_tree if tree else _print_rows)(found, screen)
    print_rest(found.n_rows - len(found.rows), screen, f" ({percent(found.rest)} %)")


def _noun(by: str) -> str:
    return "label set" if by == "label" else "group" if keys_of(by) else by


def _print_rows(found: Top, screen: Screen) -> None:
    figures, names = _figures(found), _names(found)
    columns = figures + names
    print_table(
        zip(*([title, *cells] for title, cells in columns), strict=True),
        right=range(len(figures)),
        narrow=range(len(figures), len(columns)),
        optional=[i for name in _OPTIONAL for i, (title, _) in enumerate(columns) if _is_titled(title, name)],
        shares=[None, *(row.self_share for row in found.rows)],
        screen=screen,
    )


def _figures(found: Top) -> list[tuple[str, list[str]]]:
    """The columns of figures, by title."""
    rows, cost = found.rows, _scale(found)
    columns: list[tuple[str, list[str]]] = []
    if found.second:
        costs = [row.second or 0 for row in rows]
        second = Scale.of(max(map(abs, costs)), _unit(found.second), costs)
        columns.append((second.title(found.second.name), [second(one) for one in costs]))
    columns += [
        (cost.title("self"), [cost(row.self) for row in rows]),
        ("self %", [percent(row.self_share) for row in rows]),
        ("sum %", ["" if _is_cycle(row) else percent(row.cumulated_share) for row in rows]),
    ]
    if rows[0].inclusive is not None:
        columns.append((cost.title("inclusive"), [cost(row.inclusive or 0) for row in rows]))
        columns.append(("incl. %", [percent(row.inclusive_share or 0) for row in rows]))
    if rows[0].calls is not None:
        columns.append(("calls", [f"{row.calls:,}" for row in rows]))
    return columns + (_durations(found.rows, _unit(found.stats)) if found.stats else [])


def _durations(rows: Sequence[Row], unit: str) -> list[tuple[str, list[str]]]:
    """The columns of --stats, each with a scale of its own; empty cells for functions of which no call ended."""
    columns = []
    for title, field in zip(("min", "median", "90 %", "99 %", "max"), Durations._fields[1:], strict=True):
        times = [row.durations and getattr(row.durations, field) for row in rows]
        known = [time for time in times if time is not None]
        scale = Scale.of(max(known, default=0), unit, known, lost=0)
        columns.append((scale.title(title), ["" if time is None else scale(time) for time in times]))
    return columns


def _is_titled(title: str, name: str) -> bool:
    """Whether a title is this name, without its unit."""
    return title == name or (title.startswith(f"{name} ") and title.count(" ") == name.count(" ") + 1)


def _names(found: Top) -> list[tuple[str, list[str]]]:
    """The columns that identify a row."""
    rows, by, names = found.rows, found.by, [row.name for row in found.rows]
    if by in ("file", "object", "category"):
        return [(by, [(row.file if by == "file" else row.object) or "???" for row in rows])]
    if by == "branch":
        return [("object", _short([row.object for row in rows])), (by, names)]
    keys = keys_of(by)
    labels = ", ".join(key for key in keys if key != "function")
    if by in ("thread", "label") or (keys and "function" not in keys):
        return [(labels or by, names)]
    columns = [(labels, [row.label for row in rows])] if keys else []
    has_objects = any(row.object for row in rows)
    if has_objects:
        columns.append(("object", _short([row.object for row in rows])))
    if by == "line":
        lines = [f"{row.file or '???'}{f':{row.line}' * (row.line > 0)}" for row in rows]
        return [*columns, ("function", names), ("line", lines)]
    return [*columns, ("function", _apart(rows, has_objects=has_objects))]


def _apart(rows: Sequence[Row | Call], *, has_objects: bool) -> list[str]:
    """Names of functions; equal ones are followed by what distinguishes them, except the column of objects."""
    places = [Place(f"{row.object * has_objects}\0{row.name}", row.file, row.line, row.object) for row in rows]
    found = marks(places)
    texts = (f" ({found[place]})" if place in found else "" for place in places)
    return [_shown(row, text) for row, text in zip(rows, texts, strict=True)]


def _short(objects: list[str]) -> list[str]:
    """The base names of objects, unless two would be equal."""
    names = {name: name.rpartition("/")[2] for name in objects}
    return [names[name] for name in objects] if len({*names.values()}) == len(names) else objects


def _print_tree(found: Top, screen: Screen) -> None:
    """Print callers (<) above each function (*) and callees (>) below it, as callgrind_annotate does."""
    cost = _scale(found)
    every = _with_calls(found)
    names = dict(zip(every, _apart(every, has_objects=any(one.object for one in every)), strict=True))
    lines: list[tuple[str, ...]] = []  # as _TREE
    shares: list[float | None] = [None]

    def add(sign: str, one: Row | Call, inclusive: int, self: str = "", share: float | None = None) -> None:
        calls = "" if one.calls is None else f"{one.calls:,}"
        label = one.label if isinstance(one, Row) else ""
        name = f"{sign} {names.get(one) or _shown(one)}"
        lines.append((self, cost(inclusive), percent(inclusive, found.total), calls, one.object, label, name))
        shares.append(share)

    def add_calls(sign: str, row: Row, calls: tuple[Call, ...]) -> None:
        """Add lines of callers or callees; several cheap ones share a line."""
        least = _LEAST * max(abs(row.self), abs(row.inclusive or 0))
        small = [call for call in calls if abs(call.cost) < least]
        for call in calls:
            if len(small) < 2 or abs(call.cost) >= least:
                add(sign, call, call.cost)
        if len(small) > 1:
            times = None if small[0].calls is None else sum(call.calls or 0 for call in small)
            name = f"... {len(small):,} more below {percent(_LEAST)} % of it"
            cost_of_all = sum(call.cost for call in small)
            add(sign, Call(name, "", 0, "", None, cost_of_all, times), cost_of_all)

    for row in found.rows:
        lines.append(("",) * len(_TREE))
        shares.append(None)
        add_calls("  <", row, row.callers)
        add("*", row, row.inclusive or 0, cost(row.self), row.inclusive_share)
        add_calls("  >", row, row.callees)
    columns = dict(zip(_TREE, map(list, zip(*lines, strict=True)), strict=True))
    columns["object"] = _short(columns["object"])
    keys = ", ".join(key for key in keys_of(found.by) if key != "function")
    titles = {"self": cost.title("self"), "inclusive": cost.title("inclusive"), "label": keys}
    if not any(columns["calls"]):  # nobody counted them
        del columns["calls"]
    if not any(columns["label"]):
        del columns["label"]
        titles["function"] = keys or "function"
    n = [*columns].index("object")  # columns of figures
    print_table(
        zip(*([titles.get(name, name), *cells] for name, cells in columns.items()), strict=True),
        right=range(n),
        narrow=range(n, len(columns)),
        optional=(n, 2),
        shares=shares,
        screen=screen,
    )
    screen.print()


def _is_cycle(one: Row | Call) -> bool:
    return one.name == f"<cycle {one.cycle}>"


def _scale(found: Top) -> Scale:
    """One scale for self and inclusive costs, which are compared with each other."""
    figures = [figure or 0 for row in found.rows for figure in (row.self, row.inclusive)]
    return Scale.of(max(map(abs, figures)), _unit(found.value), figures)


def _unit(value: ValueType) -> str:
    """The unit of a value type.  Callgrind files have no units, but events named like one."""
    return value.unit or (value.name if value.name in UNITS else "")


def _shown(one: Row | Call, file: str = "") -> str:
    member = "" if one.cycle is None or _is_cycle(one) else f" <cycle {one.cycle}>"
    return one.name + file + member
