"""Writes timelines as Trace Event JSON (csrc/trace_event/write.h)."""

from fastprof.core._c import lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.model import Batch, Part
from fastprof.core.reported import counts_of
from fastprof.core.thread_ids import ThreadIds, Threads
from fastprof.core.version import __version__
from fastprof.formats.trace_event import ARGS
from fastprof.formats.trace_event.reported import REPORTED

_MOST = (1 << 31) - 1  # Perfetto's largest process or thread id


class TraceEventWriter(Writer):
    """One object with an array of events, in the order of the rows; each thread's rows are in order of time."""

    format = "trace-event"
    view = "timeline"

    def start(self) -> None:
        self._w = owned(lib.fp_trace_event_write_new(self.model.c), "the writer of trace events")
        self._w.args = self.options[ARGS]
        self._threads = Threads(self.model, _MOST, _MOST)
        self._seen: list[tuple[int, ThreadIds, Part]] = []
        self._begun = False

    def _begin(self, unit: str) -> None:
        head = f'{{"displayTimeUnit":"ns","otherData":{{"creator":"fastprof-{__version__}"{unit}}},"traceEvents":['
        self.text(head.encode())
        self._begun = True

    def put(self, batch: Batch) -> None:
        w, part = self._w, self.model.parts[batch.part]
        if not self._begun:
            self._begin("" if part.extra.get("ticks_per_second") else ',"unit":"ticks"')
            if self.first_time is not None:
                lib.fp_trace_event_write_first(w, self.first_time)
        w.row = 0
        while status := self.check(lib.fp_trace_event_write_put(w, batch.c, self.out, self.err)):
            if status == lib.FP_FULL:
                self.drain()
                continue
            ids = self._threads.ids_of(w.new_thread)
            self._seen.append((w.new_thread, ids, part))
            lib.fp_trace_event_thread(w, w.new_thread, ids.pid, ids.tid)

    def end(self) -> None:
        w, log = self._w, self.log
        if not self._begun:
            self._begin("")
        enough(lib.fp_trace_event_write_end(w, self.out))
        self.written = int(w.rows)
        # At the end: viewers accept names anywhere, and a reader may find them only late.
        rows = [row for seen in self._seen for row in self._named(*seen)]
        self.text(("," * bool(self.written and rows) + ",".join(rows) + "\n]}\n").encode("utf-8", "replace"))
        if w.zero:
            log.warn(REPORTED["shifted-times"], shift=int(w.zero))
        log.rows["rows_written"] += self.written
        log.count(REPORTED["deep-calls"], w.deep, depth=lib.FP_TRACE_EVENT_DEPTH)
        log.count_all(REPORTED, counts_of(w) | {"thread-numbers": self._threads.renumbered})

    def _named(self, thread: int, ids: ThreadIds, part: Part) -> list[str]:
        """Metadata events: the name of a thread, and the name of its process before its first thread."""
        from json import dumps

        process, name = self._threads.called(thread, ids, part)
        names = [("process_name", process)] * (ids.new_process and bool(process)) + [("thread_name", name)]
        where = f'"pid":{ids.pid},"tid":{ids.tid}'
        return [
            f'\n{{"name":"{what}","ph":"M",{where},"args":{{"name":{dumps(text, ensure_ascii=False)}}}}}'
            for what, text in names
        ]
