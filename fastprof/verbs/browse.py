"""A profile, or the difference of two, to be browsed in a terminal: the figures of the page of `report`.

Contexts and costs are added up as for a page (verbs/page/contexts.py).  Everything else is looked up when it is shown:
children of a context when it is unfolded, callers and callees when a function is selected.

    browsed = browse(["cpu.pb.gz"])
    tree = browsed.tree(browsed.events[0], EVERYTHING)
    for child in tree.children(tree.root): print(child.title, tree.costs(child))
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from fastprof import bridges, plan
from fastprof.core._c import lib
from fastprof.core._typing import Any, NamedTuple, Pointer
from fastprof.core.errors import UsageError, printable, usage_error
from fastprof.core.function_names import Place
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Option, Options, checked
from fastprof.core.streams import name_of
from fastprof.core.thread_names import ThreadNames, apart
from fastprof.verbs.comparing import PAIR
from fastprof.verbs.page.content import array_of
from fastprof.verbs.page.figures import Places, Table
from fastprof.verbs.report import ASM, END, SOURCE, SUM, PageData, options
from fastprof.verbs.run import listed, run

_BROWSED = END._replace(code="verbs.browse:browsed")
_FIRST = 200  # functions by each figure that are ranked at first
PRUNED = "[pruned]"
NO_VALUE = ""  # of a label: samples without it


class Event(NamedTuple):
    """A value type, and its value columns: one, or those of the old and the new profile; -1: a profile lacks it."""

    name: str
    unit: str
    columns: tuple[int, ...]


class Selection(NamedTuple):
    """What is shown: everything, or the samples of a thread (an index of `threads`) or with a label."""

    thread: int = -1
    label: tuple[str, str | None] | None = None  # a key and its value; None: values that were merged


EVERYTHING = Selection()


class Row(NamedTuple):
    """A function or a cycle, and its costs by column of an event."""

    place: Place
    self: tuple[int, ...]
    inclusive: tuple[int, ...] | None  # None: unknown
    calls: int | None


def change_of(costs: Sequence[int]) -> int:
    """The difference of two, or the only one."""
    return costs[-1] - costs[0] if len(costs) > 1 else costs[0]


class Call(NamedTuple):
    """A caller or a callee."""

    place: Place | None  # None: pruned
    costs: tuple[int, ...]
    calls: int | None


class Node:
    """A function below its callers.  Without a selected thread it may consist of contexts of several threads."""

    __slots__ = ("_browsed", "_function", "contexts", "depth")

    def __init__(self, browsed: Browsed, function: int, contexts: tuple[int, ...], depth: int) -> None:
        self._browsed, self._function, self.contexts, self.depth = browsed, function, contexts, depth

    @property
    def place(self) -> Place | None:
        """None: everything, or what was pruned."""
        return self._browsed.places[self._function] if self._function else None

    @property
    def title(self) -> str:
        place = self.place
        return place.name if place else PRUNED if self.depth else "everything"


class Tree:
    """The contexts of a selection in one event.  A context's subtree are those up to `end`, itself the first."""

    def __init__(self, browsed: Browsed, event: Event, selection: Selection) -> None:
        self._browsed, self._n = browsed, len(browsed.up)
        self.self = [browsed.self_costs(k, selection) for k in event.columns]
        self.total = [self._summed(costs) for costs in self.self]
        if len(self.self) == 1 and min(self.self[0], default=0) >= 0:
            self.weight: Sequence[int] = self.total[0]  # what a context's size is drawn by
        else:
            self.weight = self._summed([max(map(abs, costs)) for costs in zip(*self.self, strict=True)])
        roots = [i for i in self._siblings(0, self._n) if selection.thread in (-1, browsed.thread_of(i))]
        self._cut = tuple(i for i in roots if browsed.thread_of(i) < 0)  # pruned threads
        self.root = Node(browsed, 0, tuple(i for i in roots if browsed.thread_of(i) >= 0), 0)
        self._children: dict[tuple[int, ...], list[Node]] = {}

    def _summed(self, costs: Iterable[int]) -> list[int]:
        total, up = [*costs], self._browsed.up
        for i in range(self._n - 1, -1, -1):
            if up[i]:
                total[i - up[i]] += total[i]
        return total

    def _siblings(self, first: int, end: int) -> Iterator[int]:
        while first < end:
            yield first
            first = self._browsed.end[first]

    def children(self, node: Node) -> list[Node]:
        """Those with a cost, the largest first."""
        found = self._children.get(node.contexts)
        if found is None:
            browsed, weight, by_function = self._browsed, self.weight, dict[int, list[int]]()
            function, end = browsed.function, browsed.end
            for i in node.contexts:
                j, last = i + 1, end[i]
                while j < last:
                    if weight[j]:
                        by_function.setdefault(function[j], []).append(j)
                    j = end[j]
            if not node.depth and self._cut:
                by_function.setdefault(0, []).extend(self._cut)
            if not browsed.are_distinct:
                by_function = browsed.merged(by_function)
            found = [Node(browsed, of, tuple(contexts), node.depth + 1) for of, contexts in by_function.items()]
            found.sort(key=self.size, reverse=True)
            self._children[node.contexts] = found
        return found

    def size(self, node: Node) -> int:
        more = 0 if node.depth else sum(self.weight[i] for i in self._cut)
        return sum(self.weight[i] for i in node.contexts) + more

    def costs(self, node: Node) -> tuple[int, ...]:
        """The inclusive costs of a node, by column."""
        contexts = node.contexts if node.depth else node.contexts + self._cut
        return tuple(sum(total[i] for i in contexts) for total in self.total)

    def own(self, node: Node) -> tuple[int, ...]:
        return tuple(sum(costs[i] for i in node.contexts) for costs in self.self)

    def rows(self) -> list[Row]:
        """The functions of the contexts, nested ones counted once, as far as they cost anything."""
        browsed = self._browsed
        own: dict[Place, list[int]] = {}
        inclusive: dict[Place, list[int]] = {}
        until: dict[Place, int] = {}  # the end of the outermost context that the last ones are in
        for i in range(self._n):
            place = browsed.place_of(i) if self.weight[i] else None
            if place is None:
                continue
            mine = own.setdefault(place, [0] * len(self.self))
            for k, costs in enumerate(self.self):
                mine[k] += costs[i]
            if until.get(place, 0) <= i:
                until[place] = browsed.end[i]
                all_ = inclusive.setdefault(place, [0] * len(self.self))
                for k, total in enumerate(self.total):
                    all_[k] += total[i]
        return [Row(place, tuple(mine), tuple(inclusive[place]), None) for place, mine in own.items()]

    def calls(self, place: Place) -> tuple[list[Call], list[Call]]:
        """The callers and callees of a function.  Of a recursion only the outermost call has a cost."""
        browsed, up = self._browsed, self._browsed.up
        sums: tuple[dict[Place | None, list[int]], ...] = {}, {}

        def add(into: int, other: Place | None, i: int, *, outermost: bool) -> None:
            costs = sums[into].setdefault(other, [0] * len(self.total))
            for k, total in enumerate(self.total if outermost else ()):
                costs[k] += total[i]

        until = 0
        for i in range(self._n):
            if not self.weight[i] or browsed.place_of(i) != place:
                continue
            caller = i - up[i]
            if up[i] and up[caller]:
                add(0, browsed.place_of(caller), i, outermost=until <= i)
            until = max(until, browsed.end[i])
            for j in self._siblings(i + 1, browsed.end[i]):
                if self.weight[j]:
                    other = browsed.place_of(j)
                    add(1, other, j, outermost=not self._is_within(i, other))
        callers, callees = (
            sorted((Call(other, tuple(costs), None) for other, costs in of.items()), key=_by_cost) for of in sums
        )
        return callers, callees

    def _is_within(self, i: int, place: Place | None) -> bool:
        """Whether the context or one of its callers is of this function."""
        browsed = self._browsed
        while browsed.up[i]:
            if browsed.place_of(i) == place:
                return True
            i -= browsed.up[i]
        return False

    def matched(self, matches: Callable[[Place], bool]) -> tuple[int, bytearray]:
        """The inclusive cost in the last column of the functions that match, nested ones once; and by context whether
        it or one below it matches."""
        browsed, up = self._browsed, self._browsed.up
        known: dict[int, bool] = {}
        flags, outside, found = bytearray(self._n), 0, 0
        total = self.total[-1] if self.total else []
        for i, function in enumerate(browsed.function):
            if function not in known:
                known[function] = bool(function) and matches(browsed.places[function])
            if known[function] and up[i] and self.weight[i]:
                flags[i] = 1
                if outside <= i:
                    found += total[i]
                    outside = browsed.end[i]
        for i in range(self._n - 1, -1, -1):
            if flags[i] and up[i]:
                flags[i - up[i]] = 1
        return found, flags


def _by_cost(call: Call) -> tuple[int, Place]:
    return -max(map(abs, call.costs), default=0), call.place or Place(PRUNED)


class Browsed:
    """The data, and its log.

    events, default      value types, and the index of the one that is shown first
    threads, labels      names; values by key, None for several that were merged
    n_cut, cut           the contexts that did not fit, and the largest share that they have of an event
    """

    def __init__(self, data: PageData, model: Model, log: Log, prune: float | None) -> None:
        self._data, shown, self.log = data, data.shown, log
        self._kept = data.kept()
        shown.cut(prune or 0, lib.FP_NO_ID, fits=prune is None)
        self.places = Places(model, shown)
        self._table, self._has_all = Table(model, shown, self._kept, _FIRST, self.places), False
        self._model = model
        # no two functions are shown as one
        self.are_distinct = model.distinct_functions() == model.count("functions") - 1
        self.title, self.compared = data.title, data.compared
        known = [costs.inclusive_known for costs in shown.costs]
        self.estimated = shown.estimated and any(known)
        self.has_calls = all(known[k] for k in self._kept)
        events = [Event(type_.name, type_.unit, self._columns_of(e)) for e, type_ in enumerate(shown.events)]
        self.events = [event for event in events if max(event.columns) >= 0]
        names = [event.name for event in self.events]
        wanted = shown.events[shown.default].name if shown.default is not None else ""
        self.default = names.index(wanted) if wanted in names else 0
        self._take_contexts(model)
        self._rows: dict[tuple[Event, Selection], list[Row]] = {}
        self._trees: dict[tuple[Event, Selection], Tree] = {}

    def _columns_of(self, event: int) -> tuple[int, ...]:
        columns = self._data.shown.columns
        sides = range(1 + self.compared)
        found = [[k for k in self._kept if columns[k] == (event, side)] for side in sides]
        return tuple(of[0] if of else -1 for of in found)

    def _take_contexts(self, model: Model) -> None:
        c = self._data.shown.contexts
        n = self._n = int(c.n)
        self.up, self.function = array_of("I", c.up, n), array_of("I", c.function, n)
        self.end = end = [*range(1, n + 1)]  # the contexts below each follow it
        for i in range(n - 1, -1, -1):
            if self.up[i] and end[i - self.up[i]] < end[i]:
                end[i - self.up[i]] = end[i]
        self._thread = array_of("I", c.thread, n)
        of_roots = dict.fromkeys(self._thread)
        names = ThreadNames(model)
        of_roots.pop(lib.FP_NO_ID, None)
        self._threads = {thread: i for i, thread in enumerate(of_roots)}
        self.threads = [*apart(names.text(thread) for thread in of_roots)]
        labels = self._data.shown.labels
        self.labels: dict[str, list[str | None]] = {}
        for key, text in sorted(
            {value for of in labels.sets for value in of}, key=lambda v: (v[0], v[1] is None, v[1])
        ):
            self.labels.setdefault(key, []).append(text)
        pruned = [i for i, function in enumerate(self.function) if not function and self.up[i]]
        self.n_cut = int(c.n_all) + len(pruned) - n
        sums = [self._data.shown.costs[k].sum("self") for k in self._kept]
        lost = [sum(column[i] for i in pruned) for column in map(self._self, self._kept)] if pruned else []
        self.cut = max((abs(part / whole) for part, whole in zip(lost, sums, strict=False) if whole), default=0.0)

    def _self(self, k: int) -> array[int]:
        c = self._data.shown.contexts
        return array_of("q", c.self + k * self._n, self._n) if 0 <= k < c.n_values else array("q", bytes(8 * self._n))

    def merged(self, by_function: dict[int, list[int]]) -> dict[int, list[int]]:
        """Contexts of functions with the same place become those of the first one."""
        first: dict[Place | None, int] = {}
        found: dict[int, list[int]] = {}
        for function, contexts in by_function.items():
            place = self.places[function] if function else None
            found.setdefault(first.setdefault(place, function), []).extend(contexts)
        return found

    def place_of(self, i: int) -> Place | None:
        """The function of a context; None: pruned."""
        function = self.function[i]
        return self.places[function] if function else None

    def thread_of(self, i: int) -> int:
        """An index of `threads`; -1: of pruned threads."""
        return self._threads.get(self._thread[i], -1)

    def self_costs(self, k: int, selection: Selection) -> Sequence[int]:
        """The self costs of contexts in a value column; without those that are not selected."""
        costs: Sequence[int] = self._self(k)
        if selection.label:
            costs = self._labelled(k, costs, *selection.label)
        if selection.thread >= 0:
            chosen = {thread for thread, i in self._threads.items() if i == selection.thread}
            costs = [cost if thread in chosen else 0 for cost, thread in zip(costs, self._thread, strict=True)]
        return costs

    def _labelled(self, k: int, costs: Sequence[int], key: str, text: str | None) -> list[int]:
        """The part of the costs whose samples have this label."""
        labels, n = self._data.shown.labels, self._n
        c = labels.c
        if text == NO_VALUE:
            is_in = [all(value.key != key for value in of) for of in labels.sets]
        else:
            is_in = [any((value.key, value.text) == (key, text) for value in of) for of in labels.sets]
        found, rest = [0] * n, [*costs]
        n_entries = int(c.n_entries) if 0 <= k < c.n_values else 0
        of_entries: Pointer[int] = c.entry_self + k * n_entries
        for e in range(n_entries):
            i, cost = c.entry_context[e], of_entries[e]
            rest[i] -= cost
            if is_in[c.entry_set[e]]:
                found[i] += cost
        sets = array_of("I", c.set, n) if c.set else array("I", bytes(4 * n))
        for i, of in enumerate(sets):
            if is_in[of]:
                found[i] += rest[i]
        return found

    def tree(self, event: Event, selection: Selection) -> Tree:
        key = event, selection
        if key not in self._trees:
            if len(self._trees) > 8:  # each has some numbers for each context
                self._trees.clear()
            self._trees[key] = Tree(self, event, selection)
        return self._trees[key]

    def total(self, event: Event) -> tuple[int, ...]:
        return tuple(self._data.shown.costs[k].sum("self") if k >= 0 else 0 for k in event.columns)

    def is_of_all(self, selection: Selection) -> bool:
        """Whether the figures of functions cover everything: of an estimate, those of a thread are unknown."""
        return selection == EVERYTHING or self.estimated

    def rows(self, event: Event, selection: Selection) -> list[Row]:
        """The functions, and with everything selected also cycles of them, that have costs or calls."""
        if not self.is_of_all(selection):
            key = event, selection
            if key not in self._rows:
                self._rows[key] = self.tree(event, selection).rows()
            return self._rows[key]
        key = event, EVERYTHING
        if key not in self._rows:
            if not self._has_all:  # takes a second for 100,000 functions
                self._table = Table(self._model, self._data.shown, self._kept, 1 << 30, self.places)
                self._has_all = True
            self._rows[key] = [
                row for row in self._known_rows(event) if any(row.self) or any(row.inclusive or (row.calls,))
            ]
        return self._rows[key]

    def largest(self, event: Event, n: int) -> list[Row]:
        """The functions with the largest self costs, of two profiles with the largest changes, the largest first."""
        rows = [row for row in self._known_rows(event) if not row.place.name.startswith("<cycle ")]
        return sorted((row for row in rows if change_of(row.self)), key=lambda row: -abs(change_of(row.self)))[:n]

    def _known_rows(self, event: Event) -> Iterator[Row]:
        for place, costs in self._table.costs():
            of = [costs.get(k) for k in event.columns]
            if not any(of):
                continue
            inclusive = tuple(one.inclusive or 0 if one else 0 for one in of) if self.has_calls else None
            calls = next((one.calls for one in reversed(of) if one), None)
            yield Row(place, tuple(one.self if one else 0 for one in of), inclusive, calls)

    def calls(self, place: Place, event: Event, selection: Selection) -> tuple[list[Call], list[Call]]:
        """The callers and the callees of a function or cycle, the most expensive first."""
        if not self.is_of_all(selection):
            return self.tree(event, selection).calls(place)
        arcs, n = self._table.arcs(place), 0
        columns = [arcs.costs[self._kept.index(k)] if k >= 0 else [0] * len(arcs.places) for k in event.columns]
        counts = arcs.calls[len(event.columns) - 1]
        found = [
            Call(other, tuple(column[i] for column in columns), counts[i] or None)
            for i, other in enumerate(arcs.places)
        ]
        n = arcs.n_callers
        return sorted(found[:n], key=_by_cost), sorted(found[n:], key=_by_cost)


def pattern(text: str) -> Callable[[Place], bool] | None:
    """Whether a function's name, file or object matches a regular expression, or has the text if it is none.  Upper and
    lower case are equal unless the text has upper case.  None: no text."""
    if not text:
        return None
    flags = 0 if any(map(str.isupper, text)) else re.IGNORECASE
    try:
        wanted = re.compile(text, flags)
    except (re.error, OverflowError, RecursionError):  # the latter two: a count or a nesting that is too large
        wanted = re.compile(re.escape(text), flags)
    return lambda place: any(wanted.search(of) for of in (place.name, place.file, place.object))


def browse(inputs: Any, *, from_: str | None = None, progress: Any = None, **given: Any) -> Browsed:
    """Read a profile, or two to compare.

    Errors: those of `report`; UsageError for options that only pages have.
    """
    chosen = checked(given, browse_options())
    paths = listed(inputs)
    if not 1 <= len(paths) <= 2:
        raise UsageError(f"the terminal shows one input or compares two, not {len(paths)}")
    if "-" in paths:
        raise UsageError("--tui reads keys from standard input, so it cannot be the profile; name a file")
    if PAIR in chosen and len(paths) == 1:
        raise usage_error("{--pair} applies to two inputs")
    names = [printable(path if isinstance(path, str) else name_of(path)) for path in paths]
    found: Browsed = run(_BROWSED, [[path] for path in paths], chosen, from_, progress, {"given_as": names})
    return found


def browse_options() -> list[Option[Any]]:
    return [option for option in options() if option not in (SOURCE, ASM, SUM)]


def browsed(
    pipelines: Sequence[plan.Pipeline], model: Model, chosen: Options, log: Log, *, given_as: Sequence[str], **_: Any
) -> Browsed:
    return Browsed(PageData(pipelines, model, chosen, log, given_as), model, log, chosen[bridges.PRUNE])
