"""The rows of a page's table: functions, and cycles of them, with their most expensive callers and callees.

All candidates are ranked by their figures alone.  Calls are looked up only for the rows shown, so the cost of a page
depends on its size, not on the profile's.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import product
from operator import add

from fastprof.core._typing import NamedTuple
from fastprof.core.function_names import Place
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.unknown_names import known, text_of
from fastprof.verbs.function_costs import Durations, durations_of
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.top import BY, TREE, Finder, Row

_LISTED = 4  # figures of an arc in Shown.listed_arcs
_CELLS = 1 << 18  # functions times value columns; beyond it only the first column has functions without a cost
_CALLS = 15  # number of callers and of callees shown per function, the most expensive ones


class Places(dict[int, Place]):
    """Functions of a model, each looked up once, and their first lines."""

    def __init__(self, model: Model, shown: Shown) -> None:
        super().__init__()
        self._model, self._shown = model, shown
        self._files: dict[int, str] = {}
        self._objects: dict[int, str] = {0: ""}
        self.lines: dict[Place, int] = {}
        self.are_distinct = True  # no two functions so far have the same place

    def __missing__(self, function: int) -> Place:
        model = self._model
        object_, file, name, _, line = model.row("functions", function)
        if file not in self._files:
            self._files[file] = known(model.string(file))
        if object_ not in self._objects:
            self._objects[object_] = known(model.string(model.row("objects", object_)[0]))
        place = self[function] = Place(text_of(model.string(name)), self._files[file], line, self._objects[object_])
        line, before = line or self._shown.first_line(function), self.lines.get(place)
        self.are_distinct &= before is None
        self.lines[place] = min(line, before or line)
        return place


class Cost(NamedTuple):
    """The costs of a row in a value column."""

    self: int
    inclusive: int | None  # None: unknown
    calls: int | None
    cycle: int | None


class Arcs(NamedTuple):
    """The callers and then the callees of a row, as columns: a page may have 100,000 of them."""

    places: list[Place]
    n_callers: int
    costs: list[Sequence[int]]  # by kept value column
    calls: list[Sequence[int]]  # by side


class Figures(NamedTuple):
    """A row: the figures of a function, or of a cycle of functions, in each value column that has it."""

    place: Place
    costs: dict[int, Cost]
    arcs: Arcs
    is_cycle: bool
    durations: Durations | None  # of its single calls


# a caller or callee, its costs by kept value column, its calls by side
_Arc = tuple[Place, list[int], list[int]]
# callers or callees in a value column, the most expensive first: cost, calls
_Calls = list[tuple[Place, int, int | None]]


class Table:
    """The functions with the largest figures in the value columns `kept`, at least `n` per column; see _rank."""

    def __init__(self, model: Model, shown: Shown, kept: list[int], n: int, places: Places) -> None:
        self._shown, self._kept, self._places = shown, kept, places
        self._columns = {c: {key: shown.costs[c].column(key) for key in ("self", "inclusive", "calls")} for c in kept}
        ids = set[int]()
        for c, key in product(kept, ("self", "inclusive")):
            largest = shown.costs[c].largest(key, n)
            ids.update(largest if len(largest) < 2 * n else largest[:n])  # many may tie with the last
        # by place, then by value column: a function, or a cycle's row
        self._found: dict[Place, dict[int, int | Row]] = {}
        self._finders: dict[int, Finder] = {}
        chosen, finder = Options(**{BY.name: "function", TREE.name: "both"}), None
        is_large = len(ids) * len(kept) > _CELLS
        for c in kept:
            own, inclusive = self._columns[c]["self"], self._columns[c]["inclusive"]
            is_sparse = is_large and c != kept[0]
            event = shown.events[shown.columns[c].event]
            self._finders[c] = finder = Finder(model, shown.costs[c], chosen, (), event, None, finder)
            seen = shown.costs[c].seen
            for i in ids:
                if i < len(seen) and seen[i] and (own[i] or inclusive[i] or not is_sparse):
                    self._found.setdefault(self._free(places[i], c), {})[c] = i
            for row in finder.cycle_rows():
                self._found.setdefault(Place(row.name), {})[c] = row
        self._with_arcs = [c for c in kept if shown.costs[c].has_arcs]
        self._has_cycles = any(finder.has_cycles for finder in self._finders.values())
        self._ranked = self._rank()
        self._made: list[Figures] = []

    def _free(self, place: Place, c: int) -> Place:
        """The place; functions that are the same but for their linker names keep their own rows."""
        name, n = place.name, 1
        while c in self._found.get(place, ()):
            n += 1
            place = place._replace(name=f"{name} [{n}]")
        return place

    def __len__(self) -> int:
        return len(self._ranked)

    def first(self, n: int) -> list[Figures]:
        """The `n` highest ranked rows."""
        for place in self._ranked[len(self._made) : n]:
            found = self._found[place]
            costs = {c: self._cost(c, of) for c, of in found.items()}
            is_cycle = any(place == Place(f"<cycle {cost.cycle}>") for cost in costs.values())
            self._made.append(Figures(place, costs, self._arcs(found), is_cycle, self._durations(found)))
        return self._made[:n]

    def costs(self) -> Iterator[tuple[Place, dict[int, Cost]]]:
        """All rows, the highest ranked first, with their costs by value column."""
        for place in self._ranked:
            yield place, {c: self._cost(c, of) for c, of in self._found[place].items()}

    def arcs(self, place: Place) -> Arcs:
        """The callers and callees of a row; of no other place any."""
        return self._arcs(self._found[place]) if place in self._found else Arcs([], 0, [[]] * len(self._kept), [[], []])

    def _rank(self) -> list[Place]:
        """Rows by their best rank in the self or inclusive costs of any column.

        Sorting the table by any column then shows its largest rows, however few rows fit the page.
        """
        places = sorted(self._found)
        best = [len(places)] * len(places)
        for c in self._kept:
            mine = [(at, of) for at, place in enumerate(places) if (of := self._found[place].get(c)) is not None]
            for key in ("self", "inclusive"):
                if key == "self" or self._shown.costs[c].inclusive_known:
                    column = self._columns[c][key]
                    figures = [-abs(column[of] if isinstance(of, int) else getattr(of, key)) for _, of in mine]
                else:
                    figures = [0] * len(mine)
                for rank, i in enumerate(sorted(range(len(mine)), key=figures.__getitem__)):
                    at = mine[i][0]
                    if rank < best[at]:
                        best[at] = rank
        return [places[at] for at in sorted(range(len(places)), key=best.__getitem__)]

    def _cost(self, c: int, of: int | Row) -> Cost:
        if isinstance(of, Row):
            return Cost(of.self, of.inclusive, of.calls, of.cycle)
        costs, column = self._shown.costs[c], self._columns[c]
        return Cost(
            column["self"][of],
            column["inclusive"][of] if costs.inclusive_known else None,
            column["calls"][of] if costs.calls_known else None,
            self._finders[c].cycle_of(of),
        )

    def _durations(self, found: dict[int, int | Row]) -> Durations | None:
        function = next((of for of in found.values() if isinstance(of, int)), None)
        durations = self._shown.durations
        return None if durations is None or function is None else durations_of(durations, function)

    # ---- callers and callees

    def _arcs(self, found: dict[int, int | Row]) -> Arcs:
        functions = dict.fromkeys(of for of in found.values() if isinstance(of, int))
        if len(functions) == 1 and self._shown.listed is not None:
            return self._listed(next(iter(functions)))
        if len(functions) == 1 and not self._has_cycles:
            return self._arcs_of(next(iter(functions)), found)
        both = list[list[_Arc]]()
        for into in (True, False):
            both.append([])
            others = {function: self._others(function, into) for function in functions}
            by_place: dict[Place, dict[int, tuple[int, int | None]]] = {}
            for c, of in found.items():
                calls = self._calls(c, of, into, others[of]) if isinstance(of, int) else _of_cycle(of, into)
                for place, cost, count in calls:
                    by_place.setdefault(place, {})[c] = cost, count
            for place, by in by_place.items():
                counts = [0, 0]
                for c in reversed(by):
                    counts[self._shown.columns[c].side] = by[c][1] or 0
                both[-1].append((place, [by[c][0] if c in by else 0 for c in self._kept], counts))
        return _columns(both, len(self._kept))

    def _listed(self, function: int) -> Arcs:
        """The arcs of a function of a single timeline, whose value columns are time and calls."""
        first = self._kept[0]
        callers, callees = (self._shown.listed_arcs(function, into, first) for into in (True, False))
        n, both = len(callers) // _LISTED, callers + callees
        places = [self._places[other] for other in both[::_LISTED]]
        arcs = Arcs(places, n, [both[1 + c :: _LISTED] for c in self._kept], [both[3::_LISTED], [0] * len(places)])
        if self._places.are_distinct or (len({*places[:n]}) == n and len({*places[n:]}) == len(places) - n):
            return arcs
        return _merged(arcs, len(self._kept))  # functions with the same place

    def _arcs_of(self, function: int, found: dict[int, int | Row]) -> Arcs:
        """The arcs of a function if there are no cycles: then each other function has one arc."""
        both = list[list[_Arc]]()
        kept, columns, places = self._kept, self._shown.columns, self._places
        positions = {c: k for k, c in enumerate(kept)}
        for into in (True, False):
            listed, by_other = self._others(function, into), dict[int, _Arc]()
            for c in reversed(found) if listed else ():  # of several columns of a side, the first has its calls
                costs, k, side = self._shown.costs[c], positions[c], columns[c].side
                known = costs.calls_known
                for caller, callee, cost, calls in costs.arcs_with(function, into, listed):
                    other = caller if into else callee
                    arc = by_other.get(other)
                    if arc is None:
                        arc = by_other[other] = places[other], [0] * len(kept), [0, 0]
                    arc[1][k] = cost
                    if known:
                        arc[2][side] = calls
            both.append(sorted(by_other.values(), key=_by_cost))
        return _columns(both, len(kept))

    def _others(self, function: int, into: bool) -> list[int]:
        """The listed callers or callees: the most expensive ones of each value column."""
        costs = self._shown.costs
        return sorted({other for c in self._with_arcs for other in costs[c].largest_arcs(function, into, _CALLS)})

    def _calls(self, c: int, function: int, into: bool, listed: list[int]) -> _Calls:
        """As `top --tree` shows them: functions outside a cycle call the cycle, not its members."""
        costs, finder, places = self._shown.costs[c], self._finders[c], self._places
        cycle = finder.cycle_of(function)
        sums: dict[tuple[Place, int | None], tuple[int, int]] = {}
        for caller, callee, cost, calls in costs.arcs_with(function, into, listed):
            place = places[caller if into else callee]
            number = finder.cycle_of(caller if into else callee)
            if not into and number and number != cycle:
                place, number = Place(f"<cycle {number}>"), None
            if before := sums.get((place, number)):
                cost, calls = cost + before[0], calls + before[1]
            sums[place, number] = cost, calls
        if into and cycle:
            sums[Place(f"<cycle {cycle}>"), None] = self._columns[c]["inclusive"][function], 0
        # without call counts, arcs only count sums
        known = costs.calls_known
        rows = sorted((-abs(cost), -calls * known, place, cost, calls) for (place, _), (cost, calls) in sums.items())
        return [(place, cost, calls if known else None) for _, _, place, cost, calls in rows]


def _by_cost(arc: _Arc) -> tuple[int, Place]:
    return -abs(arc[1][0]), arc[0]


def _merged(arcs: Arcs, n_values: int) -> Arcs:
    """Arcs of functions with the same place added up, so that each place has one."""
    both, n = list[list[_Arc]](), arcs.n_callers
    for of in (range(n), range(n, len(arcs.places))):
        by_place = dict[Place, _Arc]()
        for i in of:
            arc = arcs.places[i], [column[i] for column in arcs.costs], [column[i] for column in arcs.calls]
            before = by_place.setdefault(arc[0], arc)
            if before is not arc:
                for sums, more in zip(before[1:], arc[1:], strict=True):
                    sums[:] = map(add, sums, more)
        both.append(sorted(by_place.values(), key=_by_cost))
    return _columns(both, n_values)


def _columns(both: list[list[_Arc]], n_values: int) -> Arcs:
    """Callers and then callees as columns.  `both`: the rows of each."""
    rows = both[0] + both[1]
    if not rows:
        return Arcs([], 0, [()] * n_values, [(), ()])
    costs = [_packed([row[1][k] for row in rows]) for k in range(n_values)]
    calls = [_packed([row[2][side] for row in rows]) for side in (0, 1)]
    return Arcs([row[0] for row in rows], len(both[0]), costs, calls)


def _packed(items: list[int]) -> Sequence[int]:
    try:
        return array("q", items)
    except OverflowError:  # arcs of functions with the same place are added up
        return items


def _of_cycle(row: Row, into: bool) -> _Calls:
    return [
        (Place(call.name, call.file, call.line, call.object), call.cost, call.calls)
        for call in (row.callers if into else row.callees)
    ]
