"""The decoder of a trace (csrc/perfetto/read.h), and its requests."""

from collections.abc import Callable

from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.errors import FormatError, check
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, MAX_MEMORY, Options
from fastprof.core.source import Source
from fastprof.core.spill import MOST_ROUNDS, KeptKeys, Spilled
from fastprof.formats.perfetto.inflate import Inflate

FORMAT = "perfetto"
_FOUND = {  # kinds of data, in the order of choice
    "calls": lib.FP_PERFETTO_N_CALLS,
    "samples": lib.FP_PERFETTO_N_SAMPLES,
    "v8": lib.FP_PERFETTO_N_V8_CHUNKS,
    "allocations": lib.FP_PERFETTO_N_HEAP_SAMPLES,
    "objects": lib.FP_PERFETTO_N_OBJECTS,
    "states": lib.FP_PERFETTO_N_SWITCHES,
}


class Trace:
    """`c` is a struct fp_perfetto_read."""

    def __init__(self, source: Source, model: Model, options: Options) -> None:
        self.source, self.model = source, model
        self._lenient = options[LENIENT]
        self.c = owned(lib.fp_perfetto_read_new(model.c, self._lenient), "the Perfetto decoder")
        self.c.rounds.most = min(options[MAX_MEMORY], MOST_ROUNDS)
        self._err = ffi.new("struct fp_err *")
        self._inflate = Inflate()
        self._spilled = Spilled()
        self._kept: list[KeptKeys] = []

    def keep_stacks(self, limit: int) -> None:
        """From now on, keep the data that call stacks need."""
        enough(lib.fp_perfetto_keep_stacks(self.c))
        self._kept = [KeptKeys(ffi.addressof(kept), limit // 2) for kept in (self.c.call_stacks, self.c.chains)]

    def rest(self) -> None:
        """Take that data out of memory, if it is large."""
        for kept in self._kept:
            kept.rest()

    def choose(self) -> str:
        """Choose the kind of data: the first one that the trace has."""
        self.survey(until_call=True)
        counts = self.c.counts
        found = next((data for data, index in _FOUND.items() if counts[index]), "calls")
        self.restart()
        return found

    def restart(self) -> None:
        """Read the trace again from its beginning."""
        self._spilled = Spilled()
        enough(lib.fp_perfetto_restart(self.c))

    def survey(self, *, until_call: bool) -> None:
        """Read the whole trace once, without rows."""
        self._read(lambda: lib.fp_perfetto_survey(self.c, self.source.in_, until_call, self._err))

    def extract(self, to: Spilled) -> None:
        """Append the text of V8's samples.  Before that, the trace was surveyed."""
        self.c.data = lib.FP_PERFETTO_V8
        self._read(lambda: lib.fp_perfetto_feed(self.c, self.source.in_, ffi.NULL, self._err), to)

    def _read(self, read: Callable[[], int], to: Spilled | None = None) -> None:
        """Read the whole trace.  `to` gets its text."""
        source, text = self.source, self.c.text
        source.spool()
        source.select(0)
        status = lib.FP_MORE
        while status in (lib.FP_MORE, lib.FP_NEEDS):
            if status == lib.FP_MORE:
                source.refill()
            elif self.c.asks != lib.FP_PERFETTO_TEXT:
                self.answer()
            status = read()
            self.rest()
            if to is not None and text.n:
                to.append(memoryview(ffi.buffer(text.p, text.n)))
                text.n = 0
        check(status, self._err, source.name, FORMAT)
        source.select(0)

    def names(self) -> dict[tuple[int, int], str]:
        """Names of processes, whose tid is -1, and threads."""
        r, model = self.c, self.model
        named = [r.named[i] for i in range(1, r.n_named)]
        return {(int(e.pid), int(e.tid)): model.string(e.name).decode("utf-8", "replace") for e in named if e.name}

    def answer(self) -> None:
        """Serve a request for packets or records."""
        r = self.c
        if r.asks == lib.FP_PERFETTO_INFLATE:
            self._decompress()
        else:
            self._spilled.answer(r.rounds)

    def _decompress(self) -> None:
        r = self.c
        piece, last = self._inflate.next(int(r.compressed_at), ffi.buffer(r.compressed, r.n_compressed)[:])
        if self._inflate.error:
            if not self._lenient:
                detail = f"a compressed packet: {self._inflate.error}"
                raise FormatError(
                    self.source.name, FORMAT, detail, offset=int(r.compressed_at), code=lib.FP_E_MALFORMED
                )
            r.counts[lib.FP_PERFETTO_N_BAD_PACKETS] += 1
        enough(lib.fp_perfetto_give(r, piece, len(piece), last))
