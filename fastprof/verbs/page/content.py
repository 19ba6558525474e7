"""The page's columns.

    function   n entries: name, file, object (indices of texts), its first line.  The first `rows` are in the table.
    row        their figures: self cost and, if known, inclusive cost by value column, calls by side; for a timeline the
               number of calls that ended and their durations: min, median, p90, p99, max
    arc        callers and callees of rows: row, function, whether it is the callee, cost by column, calls by side
    context    the tree, callers first: distance to the caller, function, thread (of roots), self cost by column
    set, value, label, context set    labels.py
    sample     samples with times, sorted by thread and time: context, time (relative to the previous one of the run),
               value; run: how many in a row are of one thread
    call       calls of a timeline, sorted by thread and begin: thread, function, depth, begin (relative to the previous
               call of the thread), duration
    counter, mark, state    tracks.py

A value column is a value type of one side; the old profile is side 0, the new one side 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain, count, repeat
from operator import sub

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, Pointer
from fastprof.core.function_names import Place
from fastprof.core.model import Model
from fastprof.core.thread_names import ThreadNames, apart
from fastprof.verbs.function_costs import Durations
from fastprof.verbs.page import NONE, Columns
from fastprof.verbs.page.contexts import Shown, Times
from fastprof.verbs.page.figures import Arcs, Cost, Figures, Places


class Content:
    """The columns, and their description in the head: those of the table, to which contexts and calls are added."""

    def __init__(self, model: Model, shown: Shown, kept: list[int], figures: list[Figures], places: Places) -> None:
        """`kept`: the value columns to write; `figures`: the rows of the table."""
        self._model, self._shown, self._kept, self._places = model, shown, kept, places
        self.columns = Columns()
        self.head: dict[str, Any] = {"values": [shown.columns[c]._asdict() for c in kept]}
        self._texts: dict[str, int] = {}
        self._named: dict[int, str] = {}  # the threads of contexts
        self._functions: dict[Place, int] = {row.place: i for i, row in enumerate(figures)}
        self.n_functions = sum(not row.is_cycle for row in figures)
        self._rows([row.costs for row in figures])
        self._durations([row.durations for row in figures])
        self._arcs([row.arcs for row in figures])

    def _copy(self) -> Content:
        other = copy(self)
        other.columns, other.head = self.columns.copy(), dict(self.head)
        other._texts, other._functions = dict(self._texts), dict(self._functions)
        return other

    def with_contexts(self) -> Content:
        """These columns and those of the contexts."""
        other = self._copy()
        other._contexts()
        return other

    def with_calls(self, n: int) -> Content:
        """All columns; at most `n` calls in time order."""
        other, times = self._copy(), self._shown.times
        if times is not None and not times.mixed:
            other._calls(times, n)
        elif self._shown.sampled in self._kept:
            other._samples(self._shown.sampled, n)
        texts = other._texts
        for name in ("name", "file", "object"):
            numbers = [texts.setdefault(getattr(place, name), len(texts)) for place in other._functions]
            other.columns.add(f"function {name}", "I", numbers)
        other.columns.add("function line", "I", [self._places.lines.get(f, 0) for f in other._functions])
        other.head["texts"] = [*other._texts]
        return other

    @property
    def n_calls(self) -> int:
        """The number of calls or samples in time order."""
        name = "call thread" if "time" in self.head else "sample context" if "samples" in self.head else ""
        return len(self.columns[name]) if name else 0

    def name(self, function: int) -> str:
        return str(self.head["texts"][self.columns["function name"][function]])

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _function(self, place: Place) -> int:
        return self._functions.setdefault(place, len(self._functions))

    # ---- the table

    def _rows(self, figures: list[dict[int, Cost]]) -> None:
        shown = self._shown
        n = len(figures)
        self.head["rows"] = n
        self.head["functions"] = [shown.costs[c].count for c in self._kept]
        self.head["totals"] = [shown.costs[c].sum("self") for c in self._kept]
        self.columns.add("row cycle", "B", [any(r.cycle is not None for r in figures[i].values()) for i in range(n)])
        for k, c in enumerate(self._kept):
            mine = [figures[i].get(c) for i in range(n)]
            self.columns.add(f"row self {k}", "d", [row.self if row else 0 for row in mine])
            if shown.costs[c].inclusive_known:
                self.columns.add(f"row inclusive {k}", "d", [row.inclusive or 0 if row else 0 for row in mine])
        for side in (0, 1):
            calls = [next((r.calls for c, r in figures[i].items() if self._side(c) == side), 0) for i in range(n)]
            if any(calls):
                self.columns.add(f"row calls {side}", "d", [count or 0 for count in calls])

    def _durations(self, of: list[Durations | None]) -> None:
        if self._shown.durations is None or not any(of):
            return
        for field in Durations._fields:
            self.columns.add(f"row {field}", "d", [getattr(one, field) if one else 0 for one in of])
        time = next(event for event in self._shown.events if event.name == "time")
        self.head["durations"] = {"unit": time.unit}

    def _side(self, column: int) -> int:
        return self._shown.columns[column].side

    def _arcs(self, by_row: list[Arcs]) -> None:
        sizes = [len(arcs.places) for arcs in by_row]
        self.columns.add("arc row", "I", [*chain.from_iterable(map(repeat, count(), sizes))])
        functions = self._functions
        others = [functions.setdefault(place, len(functions)) for arcs in by_row for place in arcs.places]
        self.columns.add("arc function", "I", others)
        callers = [arcs.n_callers for arcs in by_row]
        callees = (bytes(n) + b"\1" * (size - n) for n, size in zip(callers, sizes, strict=True))
        self.columns.add("arc callee", "B", b"".join(callees))
        for k in range(len(self._kept)):
            self.columns.add(f"arc cost {k}", "d", [*chain.from_iterable(arcs.costs[k] for arcs in by_row)])
        for side in (0, 1):
            calls = [*chain.from_iterable(arcs.calls[side] for arcs in by_row)]
            if any(calls):
                self.columns.add(f"arc calls {side}", "d", calls)

    # ---- the tree

    def _contexts(self) -> None:
        c = self._shown.contexts
        n = c.n
        ups = array_of("I", c.up, n)
        functions, threads = array_of("I", c.function, n), array_of("I", c.thread, n)
        numbers = {f: self._function(self._places[f]) if f else NONE for f in dict.fromkeys(functions)}
        roots = {i: threads[i] for i in range(n) if not ups[i]}
        positions = {thread: i for i, thread in enumerate(dict.fromkeys(roots.values()))}
        threads = array("I", bytes(4 * n))
        for i, thread in roots.items():
            threads[i] = positions[thread]
        self.columns.add("context up", "I", ups)
        self.columns.add("context function", "I", array("I", map(numbers.__getitem__, functions)))
        self.columns.add("context thread", "I", threads)
        cut = []
        pruned = [i for i, function in enumerate(functions) if not function and ups[i]]
        for k, column in enumerate(self._kept):
            values = array_of("q", c.self + column * n, n) if column < c.n_values else array("q", bytes(8 * n))
            self.columns.add(f"context self {k}", "d", values)
            cut.append(sum(values[i] for i in pruned))
        self._shown.labels.add_to(self.columns, self.head, self._text, self._kept)
        self.head["threads"] = self._threads(positions)
        self._named = dict(zip(positions, self.head["threads"], strict=True))
        self.head["all_contexts"] = c.n_all
        self.head["cut"] = cut
        self.head["cuts"] = len(pruned)  # contexts named [pruned]

    def _threads(self, threads: Iterable[int]) -> list[str]:
        names = ThreadNames(self._model)
        return apart("[pruned]" if thread == lib.FP_NO_ID else names.text(thread) for thread in threads)

    # ---- time order

    def _calls(self, times: Times, most: int) -> None:
        calls = times.longest(most)
        first, last = self._axis(times.c.first_time, times.c.last_time)
        functions = {f: self._function(self._places[f]) for f in dict.fromkeys(calls.functions)}
        n = len(calls.threads)
        firsts = dict(zip(reversed(calls.threads), range(n - 1, -1, -1), strict=True))  # calls, by thread
        threads = {t: i for i, t in enumerate(reversed(firsts))}
        # relative to the previous call of the thread: compresses better
        steps = [*map(sub, calls.begins, chain((first,), calls.begins))]
        for at in firsts.values():
            steps[at] = calls.begins[at] - first
        columns: tuple[tuple[str, str, Sequence[int]], ...] = (
            ("thread", "I", [*map(threads.__getitem__, calls.threads)]),
            ("function", "I", [*map(functions.__getitem__, calls.functions)]),
            ("depth", "I", calls.depths),
            ("begin", "d", steps),
            ("duration", "d", calls.durations),
        )
        for name, type_, items in columns:
            self.columns.add(f"call {name}", type_, items)
        self.head["time"] = {
            "threads": self._threads(threads),
            "ticks_per_second": times.ticks_per_second or 0,
            "length": last - first if calls.begins or self._shown.tracks else 0,
            "shortest": calls.shortest,
            "left_out": calls.left_out,
        }
        self._tracks((first, last), dict(zip(threads, self.head["time"]["threads"], strict=True)))

    def _samples(self, column: int, most: int) -> None:
        found, times = self._shown.samples(column, most), self._shown.in_time
        first, last = min(found.times, default=0), max(found.times, default=0)
        if first == last:
            return  # nothing to see
        first, last = self._axis(first, last)
        thread = array_of("I", self._shown.contexts.thread, self._shown.contexts.n)
        runs, steps, before = list[int](), array("Q"), (-1, 0)  # thread and time
        for time, context in zip(found.times, found.contexts, strict=True):
            if before[0] != thread[context] or time < before[1]:
                runs.append(0)
                before = -1, first
            runs[-1] += 1
            steps.append(time - before[1])
            before = thread[context], time
        self.columns.add("sample run", "I", runs)
        self.columns.add("sample context", "I", found.contexts)
        self.columns.add("sample time", "d", steps)
        self.columns.add("sample value", "d", found.values)
        self.head["samples"] = {
            "event": self._shown.columns[column].event,
            "length": last - first,
            "n": len(found.times),
            "all": lib.fp_context_times_count(times, column),
        }
        self._tracks((first, last), self._named)

    # ---- tracks

    def _axis(self, first: int, last: int) -> tuple[int, int]:
        tracks = self._shown.tracks
        return tracks.extent(first, last) if tracks else (first, last)

    def _tracks(self, axis: tuple[int, int], named: dict[int, str]) -> None:
        """`named`: threads that the page shows."""
        if self._shown.tracks:
            self._shown.tracks.add_to(self.columns, self.head, axis, named)


def array_of(type_: str, pointer: Pointer[int], n: int) -> array[int]:
    """A copy of `n` items in C."""
    found = array(type_)
    if n:
        found.frombytes(ffi.buffer(pointer, n * found.itemsize))
    return found
