"""Writes timelines as XRay FDR version 5 logs (csrc/xray/write.h)."""

import re

from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.errors import FastprofError, inputs_of
from fastprof.core.model import Batch, Part
from fastprof.core.reported import counts_of
from fastprof.formats.xray.reported import REPORTED

_ID_LIMIT = 1 << 28  # a function record has 28 bits for the id
BUFFER_SIZE = 16384  # for the file header; only readers of version 1 need it


class XRayWriter(Writer):
    """One FDR v5 log.  Keeps function ids that the model has, and those of functions named `#ID`.

    No two functions get the same id.  A function whose id is missing, too large or already taken gets a made-up
    id, and is counted.  Made-up ids count down from the largest.  The runtime numbers the functions of each
    object from 1 up, so they only meet real ids in a log of 16 objects with 16 million functions in the last one.

    Equal process and thread numbers of different inputs are different threads; readers would merge them.  So the
    second input's get new numbers, and are counted.
    """

    format = "xray"
    view = "timeline"

    def start(self) -> None:
        self._w = owned(lib.fp_xray_write_new(self.model.c), "the XRay writer")
        self._begun = False
        self._dropped = 0  # rows
        self._ids = ffi.new("uint32_t[]", 64)
        self._n_ids = 0
        self._taken: set[int] = set()
        self._made_up = _ID_LIMIT  # the last made-up id; all above are taken
        self._unnumbered = self._wide = self._shared = 0
        self._numbers = ffi.new("uint32_t[]", 0)
        self._n_threads = self._renumbered = 0
        self._pids, self._tids = _Numbers(), _Numbers()

    def _begin(self, part: Part | None) -> None:
        self._begun = True
        self._w.ticks_per_second = int((part.extra.get("ticks_per_second") if part else None) or 0)
        enough(lib.fp_xray_write_header(self._w, BUFFER_SIZE, self.out))

    def _number_functions(self) -> None:
        """Give each new function of the model its XRay id."""
        n = self.model.count("functions")
        if n > len(self._ids):
            grown = ffi.new("uint32_t[]", 2 * n)
            ffi.memmove(grown, self._ids, 4 * self._n_ids)
            self._ids = grown
        without = []
        for function in range(max(self._n_ids, 1), n):  # function 0 means "unknown" and keeps id 0
            number = self._own_id(function)
            if number is None:
                self._unnumbered += 1
            elif number >= _ID_LIMIT:
                self._wide += 1
            elif number in self._taken:
                self._shared += 1
            else:
                self._ids[function] = number
                self._taken.add(number)
                continue
            without.append(function)
        for function in without:
            self._ids[function] = self._make_up()
        self._n_ids = n
        self._w.ids, self._w.n_ids = self._ids, n

    def _number_threads(self) -> None:
        """Give each new thread of the model its numbers."""
        n = self.model.count("threads")
        if 2 * n > len(self._numbers):
            grown = ffi.new("uint32_t[]", 4 * n)
            ffi.memmove(grown, self._numbers, 8 * self._n_threads)
            self._w.numbers = self._numbers = grown
        for thread in range(max(self._n_threads, 1), n):  # thread 0 means "none"
            input_, pid, tid = self.model.row("threads", thread)
            numbers = self._pids.of(input_, pid) if pid else 0, self._tids.of(input_, tid)
            self._renumbered += numbers != (pid, tid)
            self._numbers[2 * thread], self._numbers[2 * thread + 1] = numbers
        self._n_threads = n

    def _own_id(self, function: int) -> int | None:
        """The id that a function had in the log it comes from, if it comes from one."""
        number = self.model.numbers.get(function)
        if number is None:
            called = re.fullmatch(rb"#(0|[1-9]\d{0,9})", self.model.get_function(function).name)
            number = int(called[1]) if called else None
        return number

    def _make_up(self) -> int:
        """An id that no function has, at least 1.  Errors: FastprofError when all are taken."""
        self._made_up -= 1
        while self._made_up in self._taken:
            self._made_up -= 1
        if self._made_up <= 0:
            raise FastprofError(
                f"{inputs_of(self.model)}an XRay log has ids for {_ID_LIMIT - 1:,} functions, and there are more"
            )
        self._taken.add(self._made_up)
        return self._made_up

    def put(self, batch: Batch) -> None:
        if not self._begun:
            self._begin(self.model.parts[batch.part])
        if self.model.count("functions") != self._n_ids:
            self._number_functions()
        if self.model.count("threads") != self._n_threads:
            self._number_threads()
        enough(lib.fp_xray_write_put(self._w, batch.c, self.out))
        w, before = self._w, self._dropped
        self._dropped = w.empty_events + w.large_events + w.counters
        written = len(batch) - (self._dropped - before)
        self.written += written
        self.log.rows["rows_written"] += written

    def end(self) -> None:
        if not self._begun:
            self._begin(self.model.parts[0] if self.model.parts else None)
        w = self._w
        enough(lib.fp_xray_write_end(w, self.out))
        self.log.count_all(
            REPORTED,
            counts_of(w)
            | {
                "function-names": self._unnumbered,
                "wide-function-ids": self._wide,
                "shared-function-ids": self._shared,
                "thread-numbers": self._renumbered,
            },
        )


class _Numbers:
    """Processes or threads: a number that another input has, too, becomes a free one from 2^30 up, so that
    readers, which put buffers of one time in the order of their threads, keep the order of the inputs."""

    def __init__(self) -> None:
        self._given: dict[tuple[int, int], int] = {}
        self._taken: set[int] = set()
        self._free = 1 << 30

    def of(self, input_: int, number: int) -> int:
        key = input_, number
        if key not in self._given:
            while number in self._taken:
                number, self._free = self._free, self._free + 1
            self._taken.add(number)
            self._given[key] = number
        return self._given[key]
