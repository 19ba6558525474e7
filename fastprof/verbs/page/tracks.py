"""What a page's time order has in addition to calls and samples.

    counter size, time, value          by counter: its points; of each the time, relative to the previous one, and value
    mark thread, time, name, count     events, by thread and time
    state thread, name, begin, duration, depth      states of threads, by thread and begin

Times are relative to the first of the time axis, those of marks and states to the previous one of the thread.  Threads
and names are indices of the lists in the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from struct import iter_unpack

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.c_memory import owned
from fastprof.core.errors import check_sums, printable
from fastprof.core.model import Batch, Model
from fastprof.core.thread_names import ThreadNames, apart
from fastprof.verbs.page import Columns

if TYPE_CHECKING:
    from fastprof.verbs.page.contexts import Times

_ROOM = 200_000  # values kept while a timeline is read, and as many events
_MOST_COUNTERS = 64  # of a page
_POINTS, _MARKS, _STATES = 12_000, 8_000, 12_000  # of a page of the usual size
_STRETCH = 20  # times as long an axis at most, for what is before and after calls and samples
_SHOWN_NAME = 32  # bytes of a payload that is no text


class Tracks:
    """Counters and events of a timeline (csrc/bridges/rows/tracks.h), and states of threads."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._err = ffi.new("struct fp_err *")
        self._c = owned(lib.fp_tracks_new(model.c, _ROOM), "the tracks of a timeline")
        self._most_states = _STATES
        self.states: Times | None = None
        self.is_limited = False  # to the time of what else the page shows

    def put(self, batch: Batch) -> None:
        self._fits(lib.fp_tracks_put(self._c, batch.c, self._err))

    def fit(self, times: int) -> None:
        """Keep as much as fits a page `times` as large as usual; 0: all."""
        self._most_states = times * _STATES or _ROOM
        self._fits(lib.fp_tracks_fit(self._c, times * _POINTS or _ROOM, times * _MARKS or _ROOM))

    def __bool__(self) -> bool:
        return bool(self._c.n_tracks or self._c.n_marks or (self.states and self.states.c.n))

    def extent(self, first: int, last: int) -> tuple[int, int]:
        """The time axis, which would otherwise be from `first` to `last`: longer, but not so that this part is lost."""
        if self.is_limited:
            return first, last
        times = [(int(self._c.first_time), int(self._c.last_time))]
        if self.states:
            times.append((int(self.states.c.first_time), int(self.states.c.last_time)))
        firsts, lasts = zip((first, last), *(one for one in times if one[0] <= one[1]), strict=True)
        is_lost = max(lasts) - min(firsts) > _STRETCH * (last - first) > 0
        return (first, last) if is_lost else (min(firsts), max(lasts))

    def add_to(self, columns: Columns, head: dict[str, Any], axis: tuple[int, int], named: dict[int, str]) -> None:
        """`axis`: the first and the last time; `named`: the threads that the page has, by id."""
        threads = _Threads(self._model, named)
        added = {
            **self._counters(columns, axis, threads),
            **self._marks(columns, axis, threads),
            **self._thread_states(columns, axis, threads),
        }
        head["tracks"] = added | {"threads": threads.names()}

    def _counters(self, columns: Columns, axis: tuple[int, int], threads: _Threads) -> dict[str, Any]:
        c, found = self._c, []
        for i in sorted(range(c.n_tracks), key=lambda i: -c.tracks[i].n_points)[:_MOST_COUNTERS]:
            track = c.tracks[i]
            points = [
                (max(0, time - axis[0]), value)
                for time, value in iter_unpack("=Qd", ffi.buffer(track.points, track.n_points * 16))
                if time <= axis[1]
            ]
            if points:
                found.append((self._name(track.name), track, points))
        found.sort(key=lambda one: (threads[one[1].thread], one[0]))
        columns.add("counter size", "I", [len(points) for _, _, points in found])
        times = [_steps([time for time, _ in points]) for _, _, points in found]
        columns.add("counter time", "d", [*chain.from_iterable(times)])
        values = [value for _, _, points in found for _, value in points]
        columns.add("counter value", "d", [int(v) for v in values] if all(map(float.is_integer, values)) else values)
        units = self._units()
        described = [
            {"name": name, "thread": threads[one.thread], "n": one.n, "least": one.least, "most": one.most}
            | ({"unit": units[name]} if name in units else {})
            for name, one, _ in found
        ]
        return {"counters": described, "left_out": c.n_tracks - len(found) + c.n_left_out, "is_thinned": bool(c.pixel)}

    def _units(self) -> dict[str, str]:
        """By the name of a counter."""
        model, found = self._model, dict[str, set[str]]()
        table, texts = model.c.counter_units, model.c.unit_names
        for i in range(1, table.n):
            name, unit = table.words[2 * i], table.words[2 * i + 1]
            start, end = texts.start[unit], texts.start[unit + 1]
            shown = printable(bytes(ffi.buffer(texts.bytes + start, end - start)).decode("utf-8", "replace"))
            found.setdefault(printable(model.string(name).decode("utf-8", "replace")), set()).add(shown)
        return {name: units.pop() for name, units in found.items() if len(units) == 1}

    def _marks(self, columns: Columns, axis: tuple[int, int], threads: _Threads) -> dict[str, Any]:
        names = dict[str, int]()
        marks = [
            (threads[m.thread], m.time - axis[0], names.setdefault(self._event(m), len(names)), m.count)
            for m in (self._c.marks[i] for i in range(self._c.n_marks))
            if axis[0] <= m.time <= axis[1]
        ]
        columns.add("mark thread", "I", [thread for thread, *_ in marks])
        columns.add("mark time", "d", _steps_by(marks))
        columns.add("mark name", "I", [name for _, _, name, _ in marks])
        columns.add("mark count", "I", [count for *_, count in marks])
        return {"events": [*names], "n_events": sum(count for *_, count in marks)}

    def _thread_states(self, columns: Columns, axis: tuple[int, int], threads: _Threads) -> dict[str, Any]:
        if not self.states:
            return {}
        names, found, calls = dict[str, int](), [], self.states.longest(self._most_states)
        rows = zip(calls.threads, calls.begins, calls.durations, calls.functions, calls.depths, strict=True)
        for thread, begin, duration, function, depth in rows:
            first, last = max(begin, axis[0]), min(begin + duration, axis[1])
            if first <= last:
                name = names.setdefault(self._function(function), len(names))
                found.append((threads[thread], first - axis[0], last - first, name, depth))
        columns.add("state thread", "I", [thread for thread, *_ in found])
        columns.add("state begin", "d", _steps_by(found))
        columns.add("state duration", "d", [duration for _, _, duration, _, _ in found])
        columns.add("state name", "I", [name for _, _, _, name, _ in found])
        columns.add("state depth", "I", [depth for *_, depth in found])
        return {"states": [*names], "states_left_out": calls.left_out, "shortest_state": calls.shortest}

    def _function(self, function: int) -> str:
        model = self._model
        return printable(model.string(model.row("functions", function)[2]).decode("utf-8", "replace"))

    def _name(self, name: int) -> str:
        size = ffi.new("size_t *")
        text = bytes(ffi.buffer(lib.fp_tracks_name(self._c, name, size), size[0])) if name else b""
        try:
            return printable(text.decode())
        except UnicodeDecodeError:
            return text[:_SHOWN_NAME].hex(" ") + " ..." * (len(text) > _SHOWN_NAME)

    def _event(self, mark: Any) -> str:
        name = self._name(mark.name) or "[unknown]"
        return f"{name} (type {mark.type - 1})" if mark.type else name

    def _fits(self, status: int) -> None:
        check_sums(status, self._err, self._model, "report", [])


class _Threads:
    """Numbers of threads in the order of their use, by id; those of one process and number are the same."""

    def __init__(self, model: Model, named: dict[int, str]) -> None:
        self._model, self._named = model, named
        self._known = {self._ids(thread): name for thread, name in named.items() if thread < model.count("threads")}
        self._numbers: dict[object, int] = {}  # by name of a thread that the page has, or by id
        self._of: dict[int, int] = {}

    def _ids(self, thread: int) -> tuple[int, ...]:
        return self._model.row("threads", thread)[1:]

    def __getitem__(self, thread: int) -> int:
        if thread not in self._of:
            name = self._named.get(thread) or self._known.get(self._ids(thread))
            self._of[thread] = self._numbers.setdefault(name or self._ids(thread), len(self._numbers))
        return self._of[thread]

    def names(self) -> list[str]:
        """The names of all threads so far, no two of them equal."""
        names, ids = ThreadNames(self._model), {number: thread for thread, number in self._of.items()}
        known = [*dict.fromkeys(self._named.values())]
        new = {number for key, number in self._numbers.items() if not isinstance(key, str)}
        texts: Iterator[str] = iter(apart([*known, *(names.text(ids[number]) for number in sorted(new))])[len(known) :])
        return [next(texts) if number in new else str(key) for key, number in self._numbers.items()]


def _steps(times: Sequence[int]) -> list[int]:
    return [b - a for a, b in zip((0, *times), times, strict=False)]


def _steps_by(rows: Iterable[tuple[int, ...]]) -> list[int]:
    """Of rows (thread, time ...) sorted by thread and time."""
    groups = (list(group) for _, group in groupby(rows, key=lambda row: row[0]))
    return [*chain.from_iterable(_steps([row[1] for row in group]) for group in groups)]
