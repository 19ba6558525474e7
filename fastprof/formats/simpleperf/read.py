"""Reads samples of simpleperf (csrc/simpleperf/read.h)."""

from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core.messages import counted
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.formats.simpleperf.reported import REPORTED


class SimpleperfReader(NativeReader):
    """Samples with times; each event has a value type for its samples, and one for the sum of their counts.

    Loses, and counts: context switches, the kinds of execution of frames."""

    format = "simpleperf"
    view = "stacks"
    new = lib.fp_simpleperf_new
    decode = lib.fp_simpleperf_feed
    renews_stacks = True
    addresses = True

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        """The input twice: names come last."""
        r, model = self._r, self.model
        self.source.spool()
        r.input = model.input()
        yield 0, None
        if not r.n_events:  # before Android 9
            r.n_events, r.events[0] = 1, 0
        types, names = list[ValueType](), [self._text(r.events[k]) for k in range(r.n_events)]
        for name in names:
            unit = "nanoseconds" if name.startswith(("cpu-clock", "task-clock")) else "count"
            types += ValueType(f"{name}_samples" if name else "samples", "count"), ValueType(name or "events", unit)
        self.part = model.add_part(Part(types, extra={"default_sample_type": types[1].name}))
        r.is_second = True
        yield 0, None

    def _text(self, string: int) -> str:
        return self.model.string(string).decode("utf-8", "replace")

    def finish(self) -> None:
        r, log, model, name = self._r, self.log, self.model, ffi.new("uint32_t *")
        rows = [(model.row("threads", lib.fp_simpleperf_thread(r, i, name)), name[0]) for i in range(1, r.n_threads)]
        model.names.put_comms(model.parts[self.part], {row: model.string(text) for row, text in rows if text})
        facts = {"app": r.app, "android_sdk": r.sdk}
        log.facts |= {fact: self._text(string) for fact, string in facts.items() if string}
        if r.lost:
            log.facts["lost_samples"] = int(r.lost)
            log.warn(REPORTED["lost-samples"], file=self.source.name, lost=counted(int(r.lost), "sample"))
        log.count_all(REPORTED, r)
