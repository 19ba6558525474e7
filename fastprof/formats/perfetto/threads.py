"""Threads of a trace in the model (fp_perfetto_place in csrc/perfetto/read.h)."""

from fastprof.core._c import lib
from fastprof.core._typing import fp_perfetto_place
from fastprof.core.c_memory import enough
from fastprof.core.model import Part
from fastprof.formats.perfetto.trace import Trace

_NO_ID = (1 << 32) - 1
_LANES = 1 << 31  # lanes get numbers below this, so that viewers accept them


class PlaceThreads:
    """Assigns threads of the model to places when the decoder requests them.  A lane gets a free number."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._model, self._r = trace, trace.model, trace.c
        self._input = self._model.input()
        self._numbers: dict[tuple[int, ...], int] = {}  # in the model, by id; of a thread, by process and id
        self._taken: set[tuple[int, ...]] = set()  # these numbers, and those of lanes
        self._free, self._lane = _NO_ID, _LANES
        self._lanes: list[tuple[int, int, str]] = []  # pid, tid, name
        self._n_added = 0
        self._ids: dict[int, bytes] = {}  # of the trace, by our number

    def _number(self, id_: int, *scope: int) -> int:
        """Convert an id for the model: a missing one is 0; one beyond 32 bits, or whose number another one got, gets a
        free number."""
        id_ = max(id_, 0) if id_ >= -1 else id_
        key = (*scope, id_)
        if key not in self._numbers:
            number = id_ if 0 <= id_ <= _NO_ID else self._free
            while (*scope, number) in self._taken:
                number = self._free = self._free - 1
            self._numbers[key] = number
            if number != id_:
                self._ids[number] = b"%d" % id_
            self._taken.add((*scope, number))
        return self._numbers[key]

    def answer(self) -> None:
        """Give the decoder the thread that it requests."""
        r = self._r
        place, lane = r.places[r.requested], int(r.requested_lane)
        pid = self._number(int(place.pid))
        if place.is_lanes or lane:
            self._lane -= 1
            while (pid, self._lane) in self._taken:
                self._lane -= 1
            tid = self._lane
            self._taken.add((pid, tid))
            self._lanes.append((pid, tid, self._lane_name(place, lane)))
            self._ids[tid] = b"%d" % place.tid if not place.is_lanes and place.tid > 0 else b""
        else:
            tid = self._number(int(place.tid), pid)
        enough(lib.fp_perfetto_set_thread(r, self._model.thread(pid, tid, self._input)))

    def _lane_name(self, place: fp_perfetto_place, lane: int) -> str:
        name = self._model.string(place.path).decode("utf-8", "replace") if place.is_lanes else ""
        if not name:
            name = self._trace.names().get((int(place.pid), int(place.tid)), f"thread {int(place.tid)}")
            name = "track" if place.is_lanes else name
        return f"{name} [{lane + 1}]" if lane else name

    def add_names(self, part: Part, *, at_end: bool = False) -> None:
        """Put all names of threads and processes into the part, if many are new or the trace ends."""
        n = int(self._r.n_named) + len(self._lanes)
        if n == self._n_added or (not at_end and n < 2 * self._n_added):
            return
        self._n_added = n
        processes, threads = dict[int, bytes](), dict[tuple[int, int], bytes]()
        for (pid, tid), name in self._trace.names().items():
            own = self._number(pid)
            if tid < 0:
                processes[own] = name.encode()
            else:
                threads[own, self._number(tid, own)] = name.encode()
        threads |= {(pid, tid): name.encode() for pid, tid, name in self._lanes}
        self._model.names.put(part, self._input, processes, threads, self._ids)
