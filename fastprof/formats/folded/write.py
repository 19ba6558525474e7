"""Writes folded stacks (csrc/folded/write.h)."""

from fastprof.core._c import lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.errors import UsageError, inputs_of
from fastprof.core.log import percent
from fastprof.core.messages import Message
from fastprof.core.model import Batch
from fastprof.formats.folded import NANOSECONDS, ROOT
from fastprof.formats.folded.reported import REPORTED


class FoldedWriter(Writer):
    """A line for each row, in the order in which they come, as the plan made them: one value, frames that are names.

    Times are written in microseconds, because some viewers make an object of each count.
    """

    format = "folded"
    view = "stacks"
    costless = frozenset({"zero-values"})

    def start(self) -> None:
        self._w = owned(lib.fp_folded_writer_new(self.model.c), "the writer of folded stacks")
        self._nanoseconds = self.options[NANOSECONDS]
        self._n_called = 0  # of Model.function_texts
        root = self.options[ROOT]
        if root is not None:
            enough(lib.fp_folded_root(self._w, self.model.intern(root)))

    def put(self, batch: Batch) -> None:
        w, (value, *_) = self._w, self.model.parts[batch.part].value_types
        texts = self.model.function_texts
        for function in [*texts][self._n_called :] if len(texts) > self._n_called else ():
            enough(lib.fp_folded_call(w, function, self.model.intern(texts[function])))
        self._n_called = len(texts)
        in_microseconds = value.unit in ("nanoseconds", "ns") and not self._nanoseconds
        w.divisor = 1000 if in_microseconds else 1
        self.take_all(lambda: lib.fp_folded_put(w, batch.c, self.out, self.err))
        unit = "microseconds" if in_microseconds else value.unit
        self.log.facts["value_type"] = f"{value.name}{'/' * bool(unit)}{unit}"
        self.log.rows["stacks_written"] += int(w.stats.lines) - self.written
        self.written = int(w.stats.lines)

    def end(self) -> None:
        stats, log = self._w.stats, self.log
        if stats.rounded and not stats.lines:
            what = "{inputs}all times are below half a microsecond and would round to 0: use {--nanoseconds}"
            raise UsageError(Message(what, inputs=inputs_of(self.model)))
        log.count_all(REPORTED, stats)
        if stats.left_out and stats.lines:
            log.warn(REPORTED["missing-cost"], share=percent(stats.left_out / stats.cost))
