"""Reads samples of Chrome's traces, and V8's CPU profiles (csrc/chrome/samples.h): folders of formats declare them."""

from collections.abc import Iterable

from fastprof.chrome.reported import REPORTED
from fastprof.chrome.threads import ThreadNames
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_batch, fp_err, fp_json, fp_window
from fastprof.core.c_memory import owned
from fastprof.core.errors import check
from fastprof.core.log import Log
from fastprof.core.model import MAX_VALUE_TYPES, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.spill import Spilled

_BLOCK = 8 * lib.FP_CHROME_KEPT  # bytes of a column


def count_ends(log: Log, json: fp_json, *, is_cut: bool) -> None:
    """Count deviations from standard JSON, and warn if the text ends early (`is_cut`)."""
    if is_cut:
        log.warn(REPORTED["maybe-cut-off"])
    log.count_all(
        REPORTED,
        {
            "bare-words": json.odd_words,
            "bare-backslashes": json.odd_escapes,
            "nul-padding": json.rest == 1,
            "rest-after-end": json.rest == 2,
        },
    )


class SamplesReader(NativeReader):
    """Stacks with times.  A sample of V8 counts 1 and lasts until the next one; other samples have a weight, with
    their name as its value type."""

    view = "stacks"
    decode = lib.fp_chrome_samples_feed

    def start(self) -> None:
        self._err = ffi.new("struct fp_err *")
        self._threads = ThreadNames(self.model)
        self._parts: list[list[Part]] = []  # by document
        self._files: list[Spilled] = []  # by column of an event

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        self.source.spool()  # two passes
        self._r = owned(lib.fp_chrome_samples_read_new(self.model.c, self.options[LENIENT]), "the reader of samples")
        yield 0, None
        self._parts = [[] for _ in range(int(self._r.thread_ids.document) + 1)]
        if (status := lib.fp_chrome_samples_again(self._r, self._err)) < 0:
            self.locate(self._err)
        check(status, self._err, self.source.name, self.format)
        self._plan()
        yield 0, None

    def _plan(self) -> None:
        """Define the value types of samples."""
        r, model = self._r, self.model
        names = [model.string(r.types.words[2 * i]).decode("utf-8", "replace") for i in range(1, r.types.n)]
        if len(names) > MAX_VALUE_TYPES:
            raise self.damaged(f"samples have {len(names):,} names, expected up to {MAX_VALUE_TYPES:,}")
        if r.n_sampled or not names:
            r.part = self._add([ValueType("samples", "count"), ValueType("time", "nanoseconds")])
        if names:
            r.named = self._add([ValueType(name, "count") for name in names])
        self._threads.add_names(self._parts)

    def _add(self, types: list[ValueType]) -> int:
        """Add a part for each document.  Returns the first one."""
        first = len(self.model.parts)
        for parts in self._parts:
            parts.append(Part(value_types=[*types]))
            self.model.add_part(parts[-1])
        return first

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = super().feed(in_, batch, err)
        if status < 0:
            self.locate(err)
        if self._parts:
            self._threads.add_names(self._parts)
        return status

    def _drop(self, _: fp_batch) -> None:
        self._files[self._r.column] = Spilled()

    answers = {  # noqa: RUF012
        lib.FP_CHROME_THREAD: lambda self, _: self._threads.set_thread(self._r.thread_ids),
        lib.FP_CHROME_NAME: lambda self, _: self._threads.note(self._r.thread_ids, self._r.text),
        lib.FP_CHROME_SPILL: lambda self, _: self._spill(self._r.column),
        lib.FP_CHROME_DROP: _drop,
        lib.FP_CHROME_BLOCK: lambda self, _: self._refill(),
    }

    def locate(self, err: fp_err) -> None:
        """Set the offset of an error to one in the input, if the text is not the input."""

    def _spill(self, column: int) -> None:
        r = self._r
        if not r.written:
            self._files = [Spilled() for _ in range(lib.FP_CHROME_COLUMNS)]
        self._append(column)
        r.written += 1

    def _append(self, column: int) -> None:
        kept = self._r.columns[column]
        self._files[column].append(memoryview(ffi.buffer(kept.values, 8 * kept.n)))
        kept.n = 0

    def _refill(self) -> None:
        r = self._r
        for column, file in enumerate(self._files):
            if r.block == 0:
                self._append(column)
            n = max(0, min(_BLOCK, file.nbytes - r.block * _BLOCK))
            if n:
                file.read(r.block * _BLOCK, memoryview(ffi.buffer(r.columns[column].values, n)))
            r.columns[column].n = n // 8

    def finish(self) -> None:
        r, log = self._r, self.log
        self._threads.add_names(self._parts, at_end=True)
        count_ends(log, r.json, is_cut=bool(r.killed))
        log.count_all(REPORTED, r)
        log.facts["samples"] = int(r.rows)
        if r.thread_ids.document:
            log.facts["documents"] = int(r.thread_ids.document) + 1
        if r.by_hits != lib.FP_NO_ID:
            log.warn(REPORTED["no-sample-times"], file=self.source.name)
