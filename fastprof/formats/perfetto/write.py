"""Writes timelines as Perfetto traces (csrc/perfetto/write.h)."""

from fastprof.core._c import lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.model import Batch
from fastprof.core.reported import counts_of
from fastprof.core.thread_ids import ThreadIds, Threads
from fastprof.formats.perfetto.reported import REPORTED

# Written if there are no events, because readers do not recognize an empty file.
_NOTHING = b"\x0a\x07\x50\x01\x68\x01\xb8\x05\x01"
_MOST_PID, _MOST_TID = (1 << 31) - 1, (1 << 32) - 1


class PerfettoWriter(Writer):
    """Writes a packet for each row: calls as slices, events as instants; threads and names at their first use."""

    format = "perfetto"
    view = "timeline"

    def start(self) -> None:
        self._w = owned(lib.fp_perfetto_new(self.model.c), "the Perfetto writer")
        self._threads = Threads(self.model, _MOST_PID, _MOST_TID)
        self._seen: list[tuple[int, ThreadIds, int]] = []  # threads and their parts

    def put(self, batch: Batch) -> None:
        w = self._w
        w.row = 0
        while status := enough(lib.fp_perfetto_put(w, batch.c, self.out)):
            if status == lib.FP_FULL:
                self.drain()
                continue
            ids = self._threads.ids_of(w.new_thread)
            self._seen.append((w.new_thread, ids, batch.part))
            self._name_thread(w.new_thread, ids, "")
            enough(lib.fp_perfetto_begin(w, w.new_thread, self.out))

    def _name_thread(self, thread: int, ids: ThreadIds, called: str) -> None:
        # the UI shows the number after the name, "f 7", and without a name "Thread 7"
        name = b"" if called == f"thread {ids.tid}" else called.encode("utf-8", "replace")
        enough(lib.fp_perfetto_thread(thread, ids.process, ids.pid, ids.tid, name, len(name), self.out))

    def end(self) -> None:
        w, log = self._w, self.log
        enough(lib.fp_perfetto_end(w, self.out))
        # The source may name threads at its end.  Perfetto uses the first name of a process and the last of a thread.
        for thread, ids, part in self._seen:
            process, called = self._threads.called(thread, ids, self.model.parts[part])
            if ids.new_process:
                name = process.encode("utf-8", "replace")
                enough(lib.fp_perfetto_process(ids.process, ids.pid, name, len(name), self.out))
            if called != f"thread {ids.tid}":
                self._name_thread(thread, ids, called)
        self.written = int(w.calls + w.events)
        if not self.written:
            log.warn(REPORTED["no-times"])
            self.text(_NOTHING)
        log.rows["calls_written"] += int(w.calls)
        log.rows["events_written"] += int(w.events)
        log.count(REPORTED["deep-calls"], w.deep, depth=lib.FP_PERFETTO_DEPTH)
        log.count_all(REPORTED, counts_of(w) | {"thread-numbers": self._threads.renumbered})
