"""Compare two profiles.

old: main 10, f 40        new: main 10, f 30, g 5
rows by |difference|: f 40 -> 30, g 0 -> 5, main 10 -> 10
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from math import inf

from fastprof import bridges, plan
from fastprof.bridges.rows.coarse import BY as BY_WORDS
from fastprof.bridges.rows.coarse import CALLS, coarse, taken_off
from fastprof.bridges.rows.pair import Pairs
from fastprof.bridges.sums.aggregate import Table
from fastprof.bridges.sums.agree import Agreement
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.engine import Format, Holds, Input
from fastprof.core.errors import FastprofError, UsageError, inputs_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Option, Options, Share, Whole, Words, checked
from fastprof.core.parts import match_part, merge_parts, zeros
from fastprof.core.value import Column
from fastprof.core.version import __version__
from fastprof.core.words import Message
from fastprof.inputs import Progress
from fastprof.verbs.comparing import PAIR, log_pairs, paired_rows
from fastprof.verbs.convert import target_of
from fastprof.verbs.diff_inclusive import Inclusive
from fastprof.verbs.outputs import CODE
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import result_of, run

if TYPE_CHECKING:
    from typing import Unpack

    from fastprof.verbs.keywords import DiffOptions

Path = str | os.PathLike[str]


class Value(NamedTuple):
    """A value type, and the self costs of each profile in total."""

    name: str
    unit: str
    old: int
    new: int


class Change(NamedTuple):
    """A function (file, object, line of a file, or call) and its costs, one for each value."""

    name: str
    file: str
    object: str
    line: int  # by line, else 0
    callee: str  # by arc, else ""
    old: tuple[int, ...]
    new: tuple[int, ...]
    inclusive: tuple[int, int] | None = None  # by function: old and new, of values[shown]; None: unknown


class Difference(NamedTuple):
    """What `diff` found.  `rows` are sorted by the difference of values[shown], the largest first."""

    old: str
    new: str
    by: str
    values: list[Value]
    shown: int
    rows: list[Change]
    n_changed: int  # rows that differ in what sorts them, of which `rows` may have the first only
    log: Log
    sort: str = "self"

    def changed(self) -> list[Change]:
        """The rows that differ in what sorts them."""
        return [row for row in self.rows if self.sides(row)[0] != self.sides(row)[1]]

    def sides(self, row: Change) -> tuple[int, int]:
        """The old and the new cost that sort a row."""
        if self.sort == "inclusive":
            return row.inclusive or (0, 0)
        return row.old[self.shown], row.new[self.shown]

    def _repr_html_(self) -> str:
        """For notebooks: the changed rows, with exact figures."""
        from fastprof.core.html import table

        k = self.shown
        costs = "old", "new", "difference", "inclusive old", "inclusive new"
        head = *costs, "function", "callee", "file", "line", "object"
        if not self.values:
            return table(head[:0], (), f"{self.old} and {self.new}: no values")
        cells = [
            (
                row.old[k],
                row.new[k],
                row.new[k] - row.old[k],
                *(row.inclusive or (None, None)),
                row.name,
                row.callee,
                row.file,
                row.line or None,
                row.object,
            )
            for row in self.changed()
        ]
        kept = [i for i, name in enumerate(head) if name in head[:3] or {row[i] for row in cells} - {None, ""}]
        value = self.values[k]
        of = f"{value.name} {value.unit}".strip()
        caption = f"{self.old} and {self.new}: {value.old:,} and {value.new:,} {of}"
        return table([head[i] for i in kept], ([row[i] for i in kept] for row in cells), caption)

    def grown(self, percent: float) -> list[Value]:
        """The values whose totals grew by more than `percent`; from 0 any growth is more."""
        return [v for v in self.values if v.new > v.old and (not v.old or growth(v.old, v.new) > percent)]


def growth(old: int, new: int) -> float:
    """In percent of `old`, which is not 0."""
    return 100 * (new - old) / abs(old)


BY = Option(
    "by",
    Words(*BY_WORDS, metavar="WHAT"),
    "function",
    group="rows",
    help="group by function, line, file, object or arc",
    details="Default: function.  An arc is a call from one function to another.",
)
N = Option("n", Whole(0, 1 << 31), 30, flag="-n", group="rows", help="print N rows (default: 30; 0: all)")
SORT = Option(
    "sort",
    Words("self", "inclusive", "percent", metavar="KEY"),
    "self",
    group="rows",
    help="sort by change of self or inclusive cost, or percent",
    details="Default: self.  `percent`: of the old self cost; what is new comes first.  `inclusive`: of functions.",
)
THRESHOLD: Option[float | None] = Option(
    "threshold",
    Share(),
    None,
    group="rows",
    help="show rows with at least this share of a total",
    details="Of OLD or of NEW: 0.01 or 1%.  Without it, every change counts.",
)
_PRINTED = (N, SORT, THRESHOLD)

# Operators of the difference itself; the others are for its sides.
_LAST: tuple[Option[Any], ...] = (bridges.VALUE, bridges.UNION, bridges.INTERSECT, bridges.MAX_MEMORY)
# All rows of a profile are added up by BY; inlined functions have their own rows.
_FIXED: dict[Option[Any], Any] = {
    bridges.PER_THREAD: False,
    bridges.LABELS: None,
    bridges.AGGREGATE: False,
    bridges.FRAMES: bridges.FRAMES.default,
    bridges.INLINE_CALLS: True,
}


# Functions get their inclusive costs on the way to a graph.
_FUNCTIONS = plan.End(
    "diff",
    holds=Holds(unmerged=True),
    does=(bridges.FOLD_TO_GRAPH, bridges.PROJECT, bridges.SUM_PLACES),
    fixes=_FIXED,
    code="verbs.diff:found",
)


@cache
def options() -> list[Option[Any]]:
    return [BY, *_PRINTED, PAIR, *(option for option in plan.known_options() if option not in _FIXED)]


def diff(
    old: Path,
    new: Path,
    output: Path | None = None,
    *,
    from_: str | None = None,
    to: str | None = None,
    progress: Progress | None = None,
    **options_: Unpack[DiffOptions],
) -> Difference:
    """Compare the self costs of two profiles, files or directories.

    `by` groups the rows: "function" (default), "line", "file", "object" or "arc".  `pair` is "name" (default), which
    finds functions in another build of the program, or "exact".  Without `output` and `to` the
    `n` rows with the largest differences are in the result (default: 30; 0: all).  With them the differences, new -
    old, are written as a profile, and the result has the totals.  In stacks the samples of `old` are there with values
    below 0 and the label pprof::base, as `pprof -diff_base` has them.
    The other options are those of docs/options.md.  Errors: FastprofError and its kinds; then nothing is left at
    `output`.

    >>> import fastprof
    >>> old = "tests/corpus/callgrind/good/cfi.callgrind"
    >>> twice = fastprof.merge([old, old], "twice.callgrind")
    >>> [(row.name, row.old, row.new) for row in fastprof.diff(old, "twice.callgrind").rows]
    [('g', (9, 0), (18, 0)), ('f', (5, 6), (10, 12))]
    """
    given = checked(options_, options())
    written_to = "-" if output is None else os.fspath(output)
    target = target_of(written_to, to) if output is not None or to is not None else None
    for option in _PRINTED if target else ():
        if option in given:
            raise UsageError(Message(f"{{{option.flag}}} chooses printed rows; the profile of {{-o}} has all"))
    paths = [os.fspath(path) for path in (old, new)]
    if paths == ["-", "-"]:
        raise UsageError("standard input (-) can be read only once")
    last = (*_LAST, *_last_of(target))

    if target or given[BY] != "function":
        if given[SORT] == "inclusive":
            raise UsageError(Message("{--sort:=}inclusive sorts functions, not {--by:=}{by}", by=given[BY]))
        end = plan.End(
            target.name if target else "diff",
            lambda views: _view(target, views),
            options=(BY, *_PRINTED, PAIR, *last),
            fixes=_FIXED,
            code="verbs.diff:written" if target else "verbs.diff:found",
        )
    else:
        end = _FUNCTIONS._replace(options=(BY, *_PRINTED, PAIR, *last))
    rest = Options(**{option.key: given[option] for option in last if option in given})
    passed_on = {"target": target, "output": written_to, "onward": rest} if target else {}
    difference: Difference = run(end, [[path] for path in paths], given, from_, progress, {"paths": paths} | passed_on)
    return difference


def found(
    pipelines: Sequence[plan.Pipeline], model: Model, options: Options, log: Log, *, paths: list[str]
) -> Difference:
    """The rows with the largest differences, and the totals."""
    both = _Both(paths, pipelines, options, model, log, inclusive=options[BY] == "function")
    return both.found(options[N] or None, options[SORT], options[THRESHOLD] or 0)


def written(
    pipelines: Sequence[plan.Pipeline],
    model: Model,
    options: Options,
    log: Log,
    *,
    paths: list[str],
    target: Format,
    output: str,
    onward: Options,
) -> Difference:
    """The totals.  The differences are the input of a second plan, which leads to `output`."""
    view = pipelines[0].view
    if view == "stacks" and BY in options:
        what = "{inputs}{--by} applies to tables and graphs; a difference of stacks keeps whole stacks"
        raise UsageError(Message(what, inputs=inputs_of(model)))
    both = _Both(paths, pipelines, options, model, log)
    end = plan.writing(target, CODE)._replace(view=view)
    # rows of a graph with calls are summed up and in order already
    made = plan.make([[both]], end, onward, merge=view == "stacks" or not target.holds.calls)
    result_of(made, model, onward, log, {"output": output, "target": target})
    return both.totals()


def _size(old: int, new: int, in_percent: bool) -> float:
    """Of a difference; of what is new, in percent of nothing, beyond any other."""
    size = abs(new - old)
    return size if not in_percent or not size else size / abs(old) if old else inf


def _last_of(target: Format | None) -> Iterator[Option[Any]]:
    """Options from the difference to an output."""
    if target:
        yield from target.writes
        yield from bridges.SHALLOW.options if target.holds.repeats_frames else ()
        yield from (bridges.TABLE,) if target.holds.table else ()


def _view(target: Format | None, views: Iterable[str]) -> str:
    """The view in which the two are compared."""
    if target is None:
        return "graph"
    if target.view == "timeline":
        raise UsageError(f"a difference has no times, which {target.name} is made of")
    view = target.view_for(views)
    if view == "timeline":
        return "graph" if target.view == "any" else target.view
    return view


class _Both(Input):
    """The difference as an input of a conversion: its rows are new - old."""

    format = ""
    name = "the difference"

    def __init__(
        self,
        names: list[str],
        pipelines: Sequence[plan.Pipeline],
        asked: Options,
        model: Model,
        log: Log,
        *,
        inclusive: bool = False,
    ) -> None:
        self._pipelines, self._by, self._names = pipelines, asked[BY], names
        self._by_name = asked[PAIR] == "name"
        self.view, self._options = "graph" if inclusive else pipelines[0].view, pipelines[0].options
        self._inclusive = Inclusive(model, self._options, log) if inclusive else None
        self._model, self._log = model, log
        self._agreement = Agreement(model, self._options, log)
        self._events: list[ValueType] = []  # of both
        self._columns: dict[int, list[int]] = {}  # by part: which events its values are
        self._totals: tuple[dict[int, Any], dict[int, Any]] = {}, {}  # of old and new, by part: sums of its values
        self._calls = [0, 0]  # by arc

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        for batch in self._differences() if self.view == "graph" else self._samples():
            self.n_read += len(batch)
            yield batch

    def _read(self, side: int) -> Iterator[Batch]:
        """The rows of old (0) or new (1), which are added up on the way."""
        all_totals = self._totals[side]
        rows = chain.from_iterable(self._rows_of(one) for one in self._pipelines if one.side == side)
        for batch in self._agreement.compared(self._agreement.named(rows, self._names[side])):
            n_values, index = int(batch.c.n_values), batch.part
            if index not in all_totals:
                all_totals[index] = ffi.new("int64_t[]", n_values + 1)
                self._columns[index] = match_part(self._model, index, n_values, self._events)
            if lib.fp_batch_add_self(batch.c, all_totals[index], n_values) == lib.FP_E_OVERFLOW:
                raise FastprofError(f"{self._names[side]}: the sum of its costs exceeds 2^63 - 1")
            yield batch

    def _rows_of(self, pipeline: plan.Pipeline) -> Iterator[Batch]:
        return self._inclusive.rows(pipeline) if self._inclusive else pipeline.rows(self._model, self._log)

    def _samples(self) -> Iterator[Batch]:
        old, new = self._read(0), self._read(1)
        if self._by_name:
            sides = [(0, "stacks", old), (1, "stacks", new)]
            (_, _, old), (_, _, new) = paired_rows(sides, self._model, self._options, self._log)
        yield from new
        yield from taken_off(old, self._model)

    # ---- graphs

    def _summed(self) -> tuple[Table, list[tuple[int, int]]]:
        """The rows of both, side by side, and for each event its columns in old and new, -1 for none."""
        model = self._model
        pairs = Pairs(model) if self._by_name else None
        table = Table(model, self._options[bridges.MAX_MEMORY])
        for side in (0, 1):
            rows = coarse(self._read(side), model, self._by)
            for batch in pairs.noted(rows, side) if pairs is not None else rows:
                if self._by == "arc":
                    self._calls[side] += sum(batch.values(int(batch.c.n_values) - 1))
                table.put(batch, self._of_side(side, batch.part))
        if pairs is not None:
            table = self._paired(table, pairs)
        if self._by == "arc":
            self._events.append(CALLS)
        column = {t.unit: k for k, t in enumerate(table.value_types)}
        last = len(self._events) - 1 if self._by == "arc" else -1
        places = [-1 if e == last else e for e in range(len(self._events))]
        return table, [(column.get(f"0 {e}", -1), column.get(f"1 {e}", -1)) for e in places]

    def _paired(self, table: Table, pairs: Pairs) -> Table:
        """The sums, rows of old with the ids of their counterparts in new."""
        pairs.find(self._by)
        log_pairs(self._log, pairs, self._by if self._by in ("file", "object") else "function")
        if not pairs:
            return table
        if self._inclusive:
            self._inclusive.pair(pairs.replacements)
        paired = Table(self._model, self._options[bridges.MAX_MEMORY])
        for batch in pairs.replaced(table.batches(self._model.add_part(Part()))):
            paired.put(batch, table.value_types)
        return paired

    def _of_side(self, side: int, index: int) -> list[ValueType]:
        """The value types of a part, renamed so that old and new are different columns."""
        types, columns = self._model.parts[index].value_types, self._columns[index]
        marked = [
            ValueType(f"{t.name} of {self._names[side]}", f"{side} {e}") for t, e in zip(types, columns, strict=True)
        ]
        if self._by == "arc":
            marked.append(ValueType(f"calls of {self._names[side]}", f"{side} -1"))
        return marked

    def _kept(self, pairs: list[tuple[int, int]]) -> list[int]:
        """The events of the result."""
        everything = not self._options[bridges.INTERSECT] or not all(self._totals)  # filters may leave one without rows
        kept = [e for e, pair in enumerate(pairs) if everything or -1 not in pair]
        if not kept and pairs:
            what = "{inputs}{--intersect:name}: no value type is common to both"
            raise UsageError(Message(what, inputs=inputs_of(self._model)))
        return kept

    def _differences(self) -> Iterator[Batch]:
        table, pairs = self._summed()
        kept, n_columns = self._kept(pairs), len(table.value_types)
        part = self._part([self._events[e] for e in kept])
        for batch in table.batches(self._model.add_part(part)):
            c = batch.c
            batch.set_values(n_columns + len(kept))
            for to, e in enumerate(kept):
                old, new = pairs[e]
                factors = [(k == new) - (k == old) for k in range(n_columns)]
                if lib.fp_batch_combine(c, n_columns + to, factors, n_columns) == lib.FP_E_OVERFLOW:
                    what = f"{inputs_of(self._model)}a difference in value type {self._events[e].name}"
                    raise FastprofError(f"{what} exceeds 2^63 - 1")
            ffi.memmove(c.values, c.values + n_columns * c.cap, 8 * len(kept) * c.cap)
            batch.set_values(len(kept))
            counts = batch["count"]
            for i, kind in enumerate(batch["kind"] if self._by == "arc" else ()):
                counts[i] = kind == lib.FP_CALL
            yield batch
            batch.set_values(n_columns)

    def _part(self, value_types: list[ValueType]) -> Part:
        """The header of the difference, as cg_diff writes it."""
        commands = [merge_parts((self._model.parts[i] for i in totals), []).command for totals in self._totals]
        names = "; ".join(self._names).encode("utf-8", "surrogateescape")
        part = Part(
            value_types,
            creator=f"fastprof-{__version__}".encode(),
            command=b"; ".join(command or b"(unknown)" for command in commands),
            descriptions=[(b"Files compared", b"  " + names)],
        )
        if self._by == "arc":
            part.descriptions.append((b"Calls", b"their difference is the event calls; every arc says 1"))
        return part

    # ---- as plain objects

    def totals(self) -> Difference:
        """Call it after the last row."""
        sums = [[0] * len(self._events), [0] * len(self._events)]
        for side, into in zip(self._totals, sums, strict=True):
            for index, totals in side.items():
                for k, e in enumerate(self._columns[index]):
                    into[e] += totals[k]
        values = [Value(t.name, t.unit, *pair) for t, *pair in zip(self._events, *sums, strict=True)]
        if self._by == "arc":
            values[-1] = values[-1]._replace(old=self._calls[0], new=self._calls[1])
        old, new = self._names
        return Difference(old, new, self._by, values, 0, [], 0, self._log)

    def found(self, n: int | None, sort: str, threshold: float) -> Difference:
        """The totals, and the `n` rows with the largest differences.  Rows below `threshold` of both totals do not
        count."""
        table, pairs = self._summed()
        kept, all_ = self._kept(pairs), self.totals()
        values = [all_.values[e] for e in kept]
        if not values:
            self._log.warn(REPORTED["no-value-types"], inputs=inputs_of(self._model))
            return all_._replace(values=[])
        shown = self._shown(values)
        pairs = [pairs[e] for e in kept]
        changed, in_percent, inclusive = 0, sort == "percent", None
        if self._inclusive:
            inclusive = self._inclusive.end(values[shown].name)
            if inclusive is None and sort == "inclusive":
                what = "{inputs}{--sort:=}inclusive: the profiles have only self costs, no calls"
                raise UsageError(Message(what, inputs=inputs_of(self._model)))
        least_costs = [threshold * abs(total) for total in (values[shown].old, values[shown].new)]
        rows: list[tuple[float, int, tuple[Any, ...]]] = []  # a heap: difference, place among all, row
        number = 0
        for batch in table.batches(self._model.add_part(self._part([self._events[e] for e in kept]))):
            sides = inclusive.of(batch) if inclusive and sort == "inclusive" else _columns(batch, pairs[shown])
            sizes = self._sizes(batch, sides, least_costs, in_percent)
            changed += sum(size > 0 for size in sizes)
            least = rows[0][0] if n is not None and len(rows) == n and rows else -1
            if n == 0 or max(sizes, default=-1) <= least:
                continue
            columns = [batch[name].tolist() for name in ("function", "file", "line", "callee")]
            costs = [_columns(batch, side) for side in zip(*pairs, strict=True)]
            both = [*zip(*inclusive.of(batch), strict=True)] if inclusive else [None] * len(batch)
            for i, size in enumerate(sizes):
                if size <= least:
                    continue
                number -= 1  # of equal differences the first are kept
                row = *(column[i] for column in columns), *(tuple(c[i] for c in side) for side in costs), both[i]
                if n is None or len(rows) < n:
                    heapq.heappush(rows, (size, number, row))
                else:
                    heapq.heapreplace(rows, (size, number, row))
                least = rows[0][0] if n is not None and len(rows) == n else -1
        changes = [self._change(*row) for _, _, row in rows]
        result = all_._replace(values=values, shown=shown, rows=changes, n_changed=changed, sort=sort)
        changes.sort(key=lambda c: (-_size(*result.sides(c), in_percent), *c[:5]))
        return result

    def _sizes(
        self, batch: Batch, sides: Sequence[Sequence[int]], least_costs: list[float], in_percent: bool
    ) -> list[float]:
        """The size of the difference of each row; -1 for one that does not count."""
        old, new = sides
        sizes = [_size(x, y, in_percent) for x, y in zip(old, new, strict=True)]
        for i, (x, y) in enumerate(zip(old, new, strict=True) if any(least_costs) else ()):
            if abs(x) < least_costs[0] and abs(y) < least_costs[1]:
                sizes[i] = -1
        if self._by == "arc":
            return [size if kind == lib.FP_CALL else -1 for size, kind in zip(sizes, batch["kind"], strict=True)]
        return sizes

    def _shown(self, values: list[Value]) -> int:
        """The value to sort by: that of --value, else the old profile's default, else the first of both."""
        names, column = [value.name for value in values], Column(self._options[bridges.VALUE], bridges.VALUE.flag)
        for index in chain(*self._totals):
            column.of(self._model.parts[index], "graph")
        at = names.index(column.type.name) if column.type and column.type.name in names else 0
        if len(values) > 1 and not (values[at].old or values[at].new):
            types = [ValueType(value.name, value.unit) for value in values]
            self._log.warn(REPORTED["only-zeros"], **zeros(types[at], types))
        return at

    def _change(
        self,
        function: int,
        file: int,
        line: int,
        callee: int,
        old: tuple[int, ...],
        new: tuple[int, ...],
        inclusive: tuple[int, int] | None,
    ) -> Change:
        model = self._model
        own, called = model.get_function(function), model.get_function(callee).name if callee else b""
        texts = own.name, model.string(file), own.object, called
        name, path, object_, called_name = (text.decode("utf-8", "backslashreplace") for text in texts)
        return Change(name, path, object_, line, called_name, old, new, inclusive)


def _columns(batch: Batch, columns: Iterable[int]) -> list[list[int]]:
    """Values of a batch; 0 for column -1, of a value type that a side lacks."""
    return [[0] * len(batch) if k < 0 else batch.values(k).tolist() for k in columns]
