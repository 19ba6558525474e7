"""Reads profiles of XLA (csrc/xplane/read.h)."""

from collections.abc import Iterator

from fastprof.core._c import lib
from fastprof.core._typing import fp_batch
from fastprof.core.model import Part
from fastprof.core.native import NativeReader
from fastprof.core.options import MAX_MEMORY
from fastprof.core.spill import MOST_ROUNDS, Spilled
from fastprof.formats.xplane.reported import REPORTED


class XplaneReader(NativeReader):
    """A timeline in picoseconds: planes are processes, lines are threads, objects are categories.

    Loses stats of events and events without times, which are counted."""

    format = "xplane"
    view = "timeline"
    new = lib.fp_xplane_new
    decode = lib.fp_xplane_feed

    def start(self) -> None:
        super().start()
        self._r.rounds.most = min(self.options[MAX_MEMORY], MOST_ROUNDS)
        self._spilled = Spilled()
        self.part = self.model.add_part(Part(extra={"ticks_per_second": 10**12}))

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        self._r.input = self.model.input()
        yield 0, None

    def answer(self, batch: fp_batch) -> None:
        self._spilled.answer(self._r.rounds)

    def _text(self, string: int) -> bytes:
        return self.model.string(string)

    def finish(self) -> None:
        r, log = self._r, self.log
        processes, threads, ids = dict[int, bytes](), dict[tuple[int, int], bytes](), dict[int, bytes]()
        for name in (r.names[i] for i in range(r.n_names)):
            if not name.tid:
                processes[name.pid] = self._text(name.name)
                continue
            threads[name.pid, name.tid] = self._text(name.shown or name.name)
            ids[name.tid] = b"%d" % (int(name.id) - (int(name.id) >> 63 << 64))
        self.model.names.put(self.model.parts[self.part], int(r.input), processes, threads, ids)
        if r.base_ns:
            log.facts["times_from_ns"] = int(r.base_ns)
        for i in range(r.n_messages):
            message = self._text(r.messages[i]).decode("utf-8", "replace")
            log.warn(REPORTED["profiler-messages"], file=self.source.name, message=message)
        log.count_all(REPORTED, r)
