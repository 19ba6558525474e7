"""Readers whose rows the C core makes, or a lexer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastprof.core._c import lib
from fastprof.core._typing import Any, ClassVar, fp_batch, fp_err, fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Reader
from fastprof.core.options import LENIENT

Answers = Mapping[int, Callable[[Any, fp_batch], int | None]]


class NativeReader(Reader):
    """A reader that only calls a decoder and does what it asks for.

    A subclass sets `part`, `new` and `decode`, or has a `step` of its own, which calls the decoder.  If the decoder
    returns FP_NEEDS, `_r.request` says for what: `answers` has a function for each, of the reader and the batch.  A
    decoder with one request has `answer` instead.
    """

    _r: Any
    new: Callable[[Any, Any], Any] | None = None  # makes the decoder, of the model and `lenient`; None: not `start`
    decode: Callable[[Any, fp_window, fp_batch, fp_err], int]  # the decoder's function, of the C core
    part = -1  # of the rows that come next, which is in the model; -1: not known yet
    answers: ClassVar[Answers]

    def start(self) -> None:
        if self.new is not None:
            self._r = owned(self.new(self.model.c, self.options[LENIENT]), f"the reader of {self.format}")

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        while True:
            if self.part >= 0:
                if batch.n and batch.part != self.part:
                    return int(lib.FP_FULL)
                self.widen(batch)
            if (status := int(self.step(in_, batch, err))) != lib.FP_NEEDS:
                return status
            if (done := self.answer(batch)) is not None:
                return done

    def widen(self, batch: fp_batch) -> None:
        """Let the batch have the columns of the part."""
        batch.part = self.part
        enough(lib.fp_batch_set_values(batch, len(self.model.parts[self.part].value_types)))

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        """What `feed` returns, or FP_NEEDS."""
        return self.decode(self._r, in_, batch, err)

    def answer(self, batch: fp_batch) -> int | None:
        """Do what the decoder asks for.  Returns what `feed` shall return: None, to call the decoder again."""
        return self.answers[self._r.request](self, batch)
