"""The rows of both sides of a difference, side by side.

A side is one profile, or several runs.  Each run has its own columns, from which means and spreads are computed:

    function    run 0 of old    run 1 of old    run 0 of new    ->    old (mean)    new (mean)
    f           10              12              15                    11            15
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from fastprof import bridges, plan
from fastprof.bridges.project.project import NOT_COUNTED, to_graph
from fastprof.bridges.rows.choose import one_value
from fastprof.bridges.rows.coarse import CALLS, coarse, subtracted
from fastprof.bridges.rows.pair import Pairs
from fastprof.bridges.sums.aggregate import Table
from fastprof.bridges.sums.agree import Agreement, common
from fastprof.bridges.sums.heap_values import Heaps
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.chosen_value import ChosenValue, settled_default
from fastprof.core.engine import Input
from fastprof.core.errors import FastprofError, inputs_of, usage_error
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType, set_values
from fastprof.core.options import Options
from fastprof.core.parts import match_part, merge_parts
from fastprof.core.unknown_names import known, text_of
from fastprof.core.version import __version__
from fastprof.verbs.comparing import log_pairs, read_all
from fastprof.verbs.diff.difference import Change, Difference, Runs, Value
from fastprof.verbs.diff.gate import short_of
from fastprof.verbs.diff.inclusive import Inclusive
from fastprof.verbs.diff.rows import RowOptions, Rows, size_of
from fastprof.verbs.diff.significance import welch
from fastprof.verbs.groups import Groups, keys_of
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.scaling import Side, Weights, in_integers

if TYPE_CHECKING:
    from fractions import Fraction

# Rows grouped by these have no position, so they are in the file of their function.
_IN_OWN_FILE = ("function", "file", "object")


class Both(Input):
    """The difference as an input of a conversion: its rows are new - old.

    `names`: the runs of old, then those of new; the side of a pipeline is the number of its run.
    """

    format = ""
    name = "the difference"
    renews_frames = False  # rows of sums are those that were read

    def __init__(
        self,
        names: tuple[list[str], list[str]],
        pipelines: Sequence[plan.Pipeline],
        chosen: Options,
        how: RowOptions,
        model: Model,
        log: Log,
        *,
        inclusive: bool = False,
    ) -> None:
        self._pipelines, self._how, self._chosen = pipelines, how, chosen
        self._sides, self._names = names, [*names[0], *names[1]]
        self._n_old, self._n_runs = len(names[0]), len(self._names)
        self.view, self._options = "graph" if inclusive else pipelines[0].view, pipelines[0].options
        self._inclusive = Inclusive(model, self._options, log, self._n_old, self._n_runs) if inclusive else None
        keys = keys_of(how.by)
        self._groups = Groups(model, keys) if keys else None
        if self._groups:
            self.view = "graph"
        self._model, self._log = model, log
        self.renews_stacks = all(pipeline.renews_stacks for pipeline in pipelines)
        # stacks that are written as they are read may be written before the other side's value types are known
        self._reads_first = self.view == "graph" or how.by_name or Weights.needed(self._n_runs, chosen)
        self._agreement = Agreement(model, self._options, log, compares=self._reads_first)
        self._heaps = Heaps(model, self._options, log)
        self._events: list[ValueType] = []  # of all runs
        self._columns: dict[int, list[int]] = {}  # by part: the events of its values
        self._totals: list[dict[int, Any]] = [{} for _ in self._names]  # by run, then by part: sums of its values
        self._calls = [0] * self._n_runs  # by arc
        self._has_calls = False  # some are counted; known after the last row
        self._weights: Weights | None = None

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        for batch in self._differences() if self.view == "graph" else self._samples():
            self.n_read += len(batch)
            yield batch

    def _side(self, run: int) -> int:
        return int(run >= self._n_old)

    def _read(self, run: int) -> Iterator[Batch]:
        """The rows of a run; adds them to its totals."""
        all_totals = self._totals[run]
        for batch in chain.from_iterable(self._rows_of(run, one) for one in self._pipelines if one.side == run):
            n_values, index = int(batch.c.n_values), batch.part
            if index not in all_totals:
                all_totals[index] = ffi.new("int64_t[]", n_values + 1)
                self._columns[index] = match_part(self._model, index, n_values, self._events)
            if lib.fp_batch_add_self(batch.c, all_totals[index], n_values) == lib.FP_E_OVERFLOW:
                raise FastprofError(f"{self._names[run]}: the sum of its costs exceeds 2^63 - 1")
            yield batch

    def _rows_of(self, run: int, pipeline: plan.Pipeline) -> Iterator[Batch]:
        def paired(rows: Iterator[Batch]) -> Iterator[Batch]:
            rows = self._heaps.paired(rows, self._names[run])
            if self._options[bridges.VALUE] is None:
                return rows
            return one_value(rows, self._model, self._options, self._log)

        if self._inclusive:
            rows = self._inclusive.rows(pipeline, paired)
        else:
            rows = paired(pipeline.rows(self._model, self._log))
        # an input's own parts may differ: as a graph they have the same value types
        rows = self._agreement.compared(self._agreement.named(rows, self._names[run]))
        if self._groups is None:
            return rows
        return to_graph(self._groups.as_functions(rows), self._model, pipeline.options, self._log)

    # ---- weights, known after the last row

    def _sums(self, run: int) -> dict[int, int]:
        """The totals of a run by event."""
        found: dict[int, int] = {}
        for index, totals in self._totals[run].items():
            for k, e in enumerate(self._columns[index]):
                found[e] = found.get(e, 0) + totals[k]
        if self._has_calls:
            found[len(self._events) - 1] = self._calls[run]
        return found

    def weights(self) -> Weights:
        if self._weights is None:
            runs = []
            for run, name in enumerate(self._names):
                n_inputs = sum(1 for one in self._pipelines if one.side == run for _ in one.inputs)
                parts = [self._model.parts[index] for index in self._totals[run]]
                runs.append(Side(name, n_inputs, parts, self._sums(run)))
            self._weights = Weights(runs, self._n_old, self._events, self._chosen)
            self._weights.note(self._log)
        return self._weights

    # ---- stacks

    def _samples(self) -> Iterator[Batch]:
        sides = [(self._side(run), "stacks", self._read(run)) for run in range(self._n_runs)]
        if self._reads_first:
            by_name, renews = self._how.by_name, self.renews_stacks
            sides = read_all(sides, self._model, self._options, self._log, pair=by_name, renews_stacks=renews)
        for run in (*range(self._n_old, self._n_runs), *range(self._n_old)):
            rows = sides[run][2]
            if Weights.needed(self._n_runs, self._chosen):
                rows = self._weighted(run, rows)
            rows = rows if self._side(run) else subtracted(rows, self._model)
            yield from rows if self._agreement.all_alike else common(rows, self._model, self._options, self._log)
        self.weights()

    def _weighted(self, run: int, batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            n_values = int(batch.c.n_values)
            columns = match_part(self._model, batch.part, n_values, self._events)
            set_values(batch, n_values + 1)
            for k, e in enumerate(columns):
                factors, divisor = in_integers([self.weights().of(e)[run]])
                self._combine(batch, n_values, [factors[0] * (j == k) for j in range(n_values)], divisor, e)
                c = batch.c
                ffi.memmove(c.values + k * c.cap, c.values + n_values * c.cap, 8 * c.n)
            set_values(batch, n_values)
            yield batch

    def _combine(self, batch: Batch, to: int, factors: list[int], divisor: int, event: int) -> None:
        if lib.fp_batch_combine(batch.c, to, factors, to, divisor) == lib.FP_E_OVERFLOW:
            what = f"{inputs_of(self._model)}a difference in value type {self._events[event].name}"
            raise FastprofError(f"{what} exceeds 2^63 - 1")

    # ---- graphs

    def _summed(self) -> tuple[Table, list[list[int]]]:
        """The rows of all runs, side by side, and for each event its column in each run, -1 for none."""
        model, by = self._model, "function" if self._groups else self._how.by
        pairs = Pairs(model) if self._how.by_name else None
        table = Table(model, self._options[bridges.MAX_MEMORY])
        types: dict[int, list[ValueType]] = {}  # by part
        for run in range(self._n_runs):
            rows = coarse(self._read(run), model, by)
            for batch in pairs.noted(rows, self._side(run)) if pairs is not None else rows:
                if by == "arc":
                    self._calls[run] += sum(batch.values(int(batch.c.n_values) - 1))
                if batch.part not in types:
                    types[batch.part] = self._of_run(run, batch.part)
                table.put(batch, types[batch.part])
        if pairs is not None:
            table = self._paired(table, pairs)
        self._has_calls = any(self._calls)
        if self._has_calls:
            self._events.append(CALLS)
        column = {t.unit: k for k, t in enumerate(table.value_types)}
        last = len(self._events) - 1 if self._has_calls else -1
        places = [-1 if e == last else e for e in range(len(self._events))]
        return table, [[column.get(f"{run} {e}", -1) for run in range(self._n_runs)] for e in places]

    def _paired(self, table: Table, pairs: Pairs) -> Table:
        """The sums; rows of old get the ids of their counterparts in new."""
        by = self._how.by
        pairs.find(by)
        log_pairs(self._log, pairs, by if by in ("file", "object") else "function")
        if not pairs:
            return table
        if self._inclusive:
            self._inclusive.pair(pairs)
        if (self._groups or by in _IN_OWN_FILE) and table.move(*pairs.counterparts):
            return table
        paired = Table(self._model, self._options[bridges.MAX_MEMORY])
        for batch in pairs.replaced(table.batches(self._model.add_part(Part()))):
            paired.put(batch, table.value_types)
        return paired

    def _of_run(self, run: int, index: int) -> list[ValueType]:
        """The value types of a part, renamed so that each run has its own columns."""
        types, columns = self._model.parts[index].value_types, self._columns[index]
        marked = [
            ValueType(f"{t.name} of {self._names[run]}", f"{run} {e}") for t, e in zip(types, columns, strict=True)
        ]
        if self._how.by == "arc":
            marked.append(ValueType(f"calls of {self._names[run]}", f"{run} -1"))
        return marked

    @property
    def _keeps_all(self) -> bool:
        """Whether the result has value types that some runs lack, which is known after the last row."""
        only_common = self._options[bridges.INTERSECT] or not self._agreement.all_alike
        return not only_common or not all(self._totals)  # filters may leave no rows

    def _kept(self, columns: list[list[int]]) -> list[int]:
        """The events of the result."""
        kept = [e for e, runs in enumerate(columns) if self._keeps_all or -1 not in runs]
        if not kept and columns:
            what = "{inputs}{--intersect:name}: no value type is common to both"
            raise usage_error(what, inputs=inputs_of(self._model))
        return kept

    def _factors(self, columns: list[int], event: int, sides: tuple[int, int], n: int) -> tuple[list[int], int]:
        """The factors of `n` columns for the cost of an event; `sides` are the signs of old and new."""
        weights, divisor = in_integers(self.weights().of(event))
        factors = [0] * n
        for run, column in enumerate(columns):
            if column >= 0:
                factors[column] = weights[run] * sides[self._side(run)]
        return factors, divisor

    def _differences(self) -> Iterator[Batch]:
        table, columns = self._summed()
        kept, n_columns = self._kept(columns), len(table.value_types)
        factors = [(e, *self._factors(columns[e], e, (-1, 1), n_columns)) for e in kept]
        part = self._part([self._events[e] for e in kept])
        for batch in table.batches(self._model.add_part(part)):
            c = batch.c
            set_values(batch, n_columns + len(kept))
            for to, (e, weights, divisor) in enumerate(factors, n_columns):
                self._combine(batch, to, weights + [0] * (to - n_columns), divisor, e)
            ffi.memmove(c.values, c.values + n_columns * c.cap, 8 * len(kept) * c.cap)
            set_values(batch, len(kept))
            ffi.buffer(c.count, 8 * c.n)[:] = bytes(8 * c.n)  # their difference is an event
            yield batch
            set_values(batch, n_columns)

    def _part(self, value_types: list[ValueType]) -> Part:
        """The header of the difference, as cg_diff writes it."""
        runs = range(self._n_runs)
        parts = [[i for run in runs if self._side(run) == side for i in self._totals[run]] for side in (0, 1)]
        commands = [merge_parts((self._model.parts[i] for i in of), []).command for of in parts]
        names = "; ".join(self._names).encode("utf-8", "surrogateescape")
        part = Part(
            value_types,
            creator=f"fastprof-{__version__}".encode(),
            command=b"; ".join(command or b"(unknown)" for command in commands),
            descriptions=[(b"Files compared", b"  " + names)],
        )
        if self._has_calls:
            part.descriptions.append((b"Calls", b"their difference is the event calls (" + NOT_COUNTED + b")"))
        return part

    # ---- results

    def totals(self, events: Iterable[int] | None = None) -> Difference:
        """The totals of both sides, by default of all value types of the result.  Call it after the last row."""
        sums, weights = [self._sums(run) for run in range(self._n_runs)], self.weights()
        if events is None:
            events = [e for e in range(len(self._events)) if self._keeps_all or all(e in one for one in sums)]
        values: list[Value] = []
        runs: list[Runs] = []
        for e in events:
            event, costs = self._events[e], [one.get(e, 0) for one in sums]
            of = weights.of(e)
            sides = [
                _rounded(sum(costs[run] * of[run] for run in range(self._n_runs) if self._side(run) == side))
                for side in (0, 1)
            ]
            values.append(Value(event.name, event.unit, sides[0], sides[1]))
            if of_runs := self._runs(costs, e):
                runs.append(of_runs)
        old, new = (_listed(names) for names in self._sides)
        return Difference(old, new, self._how.by, values, 0, [], 0, self._log, self._how.sort, tuple(runs))

    def _runs(self, costs: Sequence[int], event: int) -> Runs | None:
        """The scaled costs of several runs, and whether they differ."""
        if self._n_runs == 2:
            return None
        scaled = [float(cost * factor) for cost, factor in zip(costs, self.weights().scale(event), strict=True)]
        old, new = tuple(scaled[: self._n_old]), tuple(scaled[self._n_old :])
        return Runs(old, new, welch(old, new))

    def found(self) -> tuple[Difference, list[Change]]:
        """The totals and the rows with the largest differences, and the watched rows.  Rows below the threshold of both
        totals do not count, nor do those of several runs that differ by chance."""
        how, model = self._how, self._model
        table, columns = self._summed()
        if self._groups:
            self._groups.warn("--by", self._log)
        kept = self._kept(columns)
        all_ = self.totals(kept)
        if not kept:
            self._log.warn(REPORTED["no-value-types"], inputs=inputs_of(model))
            return all_, []
        values, shown = all_.values, self._shown(all_.values)
        event, inclusive = kept[shown], None
        if self._inclusive:
            inclusive = self._inclusive.end(values[shown].name, self.weights().of(event))
            if inclusive is None and how.sort == "inclusive":
                what = "{inputs}{--sort:=}inclusive: the profiles have only self costs, no calls"
                raise usage_error(what, inputs=inputs_of(model))
        by_inclusive = inclusive if how.sort == "inclusive" else None
        tested = min(len(names) for names in self._sides) > 1
        rows = Rows(how, [how.threshold * abs(total) for total in values[shown][2:4]], tested=tested)
        watched: list[Change] = []
        names = {model.intern(name.encode("utf-8", "surrogateescape")) for name in how.watched}
        if self._groups and names:
            names = self._groups.names_of(how.watched)
        watches = partial(_named, model, names=names)
        if how.by in ("file", "object"):
            watches = partial(_of_base, model, names={*how.watched})
        for batch, sides in self._with_sides(table, columns, kept):
            costs = by_inclusive.of(batch["function"]) if by_inclusive else None
            both = costs or _columns(batch, [side[shown] for side in sides])
            sizes = rows.sizes(batch, both)
            chosen, found = rows.candidates(sizes), watches(batch) if names else []
            if not chosen and not found:
                continue
            runs: list[Runs | None] = [None] * len(batch)
            if self._n_runs > 2:
                costs = by_inclusive.runs_of(batch["function"]) if by_inclusive else _columns(batch, columns[event])
                runs = [self._runs(of, event) for of in zip(*costs, strict=True)]
            rows.test(sizes, runs)
            changes = self._changes(batch, sides, inclusive, runs)
            watched += map(changes, found)
            for i in chosen:
                rows.add(sizes[i], partial(changes, i))
        changes_, n_changed, n_noise = rows.end()
        result = all_._replace(shown=shown, n_changed=n_changed, n_noise=n_noise)
        changes_.sort(key=lambda c: (-size_of(*result.sides(c), how.sort == "percent"), *c[:5]))
        return result._replace(rows=changes_[: how.n]), watched

    def _with_sides(
        self, table: Table, columns: list[list[int]], kept: list[int]
    ) -> Iterator[tuple[Batch, list[list[int]]]]:
        """The rows of a table, and which of their columns are the costs of old and new in the events `kept`."""
        n_columns = len(table.value_types)
        combined: list[tuple[int, list[int], int]] = []  # event, factors, divisor
        sides: list[list[int]] = [[], []]
        for side, signs in zip(sides, ((1, 0), (0, 1)), strict=True):
            for e in kept:
                factors, divisor = self._factors(columns[e], e, signs, n_columns)
                if divisor == 1 and sum(map(abs, factors)) == 1:  # a single run, unscaled
                    side.append(factors.index(1))
                else:
                    side.append(n_columns + len(combined))
                    combined.append((e, factors, divisor))
        for batch in table.batches(self._model.add_part(self._part([self._events[e] for e in kept]))):
            set_values(batch, n_columns + len(combined))
            for to, (e, factors, divisor) in enumerate(combined, n_columns):
                self._combine(batch, to, factors + [0] * (to - n_columns), divisor, e)
            yield batch, sides
            set_values(batch, n_columns)

    def _changes(
        self, batch: Batch, sides: list[list[int]], inclusive: Inclusive | None, runs: list[Runs | None]
    ) -> Callable[[int], Change]:
        """Returns a function that converts a row of a batch to a Change."""
        model, by_place, by_line = self._model, self._how.by in ("file", "object"), self._how.by == "line"
        columns = [batch[name] for name in ("function", "file", "line", "callee")]
        costs = [[batch.values(k) for k in side] for side in sides]

        def change(i: int) -> Change:
            function, file, line, callee = (column[i] for column in columns)
            own, called = model.get_function(function), model.get_function(callee).name if callee else b""
            path, object_ = known(model.string(file)), known(own.object)
            name = known(own.name) if by_place else text_of(own.name)
            old, new = (tuple(values[i] for values in side) for side in costs)
            total = None
            if inclusive:
                [[before], [after]] = inclusive.of([function])
                total = before, after
            label, name = self._groups.split(name) if self._groups else ("", name)
            line = line if by_line else own.line
            return Change(name, path, object_, line, text_of(called), old, new, total, runs[i], label)

        return change

    def _shown(self, values: list[Value]) -> int:
        """The value to sort by: --value, else the old profile's default, else the first common one."""
        names, column = [value.name for value in values], ChosenValue(self._options[bridges.VALUE], bridges.VALUE.flag)
        for index in chain(*self._totals):
            column.of(self._model.parts[index], "graph")
        at = names.index(column.type.name) if column.type and column.type.name in names else 0
        if self._options[bridges.VALUE] is not None:
            return at
        types = [ValueType(value.name, value.unit) for value in values]
        return settled_default(types, at, [value.old or value.new for value in values], self._log)


def _columns(batch: Batch, columns: Iterable[int]) -> list[list[int]]:
    """Values of a batch; 0 for column -1 (a value type that a run lacks)."""
    return [[0] * len(batch) if k < 0 else batch.values(k).tolist() for k in columns]


def _named(model: Model, batch: Batch, names: set[int]) -> list[int]:
    """The rows whose function has one of these names."""
    return [i for i, function in enumerate(batch["function"]) if model.row("functions", function)[2] in names]


def _of_base(model: Model, batch: Batch, names: set[str]) -> list[int]:
    """The rows whose file or object is called by one of these names."""
    texts = (model.get_function(function).name.decode("utf-8", "surrogateescape") for function in batch["function"])
    return [i for i, text in enumerate(texts) if not names.isdisjoint(short_of(text))]


def _rounded(cost: Fraction | int) -> int:
    """Round to the nearest integer, halves away from 0."""
    size = (2 * abs(cost.numerator) + cost.denominator) // (2 * cost.denominator)
    return size if cost >= 0 else -size


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
