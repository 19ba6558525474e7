"""Reads Austin's MOJO (csrc/mojo/read.h)."""

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_batch
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.formats.mojo.reported import REPORTED

# In the order of enum fp_mojo_value; the last one of a mode is its default.
_TYPES = (
    ValueType("samples", "count"),
    ValueType("memory", "bytes"),
    ValueType("alloc_space", "bytes"),
    ValueType("cpu", "nanoseconds"),
    ValueType("wall", "nanoseconds"),
)
_COLUMNS = {"cpu": (0, 3), "memory": (0, 1, 2), "full": (0, 1, 2, 3, 4)}
_FACTS = {"austin": "austin", "mode": "mode", "interval": "interval_us", "duration": "duration_us", "gc": "gc_us"}


class MojoReader(NativeReader):
    """Samples of threads in the order of the file, which has no times of them."""

    format = "mojo"
    view = "stacks"
    new = lib.fp_mojo_new
    decode = lib.fp_mojo_feed
    renews_stacks = True

    def answer(self, batch: fp_batch) -> None:
        """The descriptions are read: the mode decides which values samples have."""
        r, model = self._r, self.model
        r.input = self._input = model.input()
        columns = _COLUMNS.get(self._descriptions().get("mode", ""), (0, 4))
        for k in range(lib.FP_MOJO_VALUES):
            r.columns[k] = columns.index(k) if k in columns else -1
        self.part = model.add_part(Part([_TYPES[k] for k in columns]))

    def _descriptions(self) -> dict[str, str]:
        strings = ffi.unpack(self._r.descriptions, 2 * self._r.n_descriptions)
        texts = [self.model.string(string).decode("utf-8", "replace") for string in strings]
        return dict(zip(texts[::2], texts[1::2], strict=True))

    def finish(self) -> None:
        r, log, model, id_ = self._r, self.log, self.model, ffi.new("uint64_t *")
        numbers = ((model.row("threads", lib.fp_mojo_thread(r, i, id_))[2], id_[0]) for i in range(r.n_threads))
        ids = {number: b"%d" % id for number, id in numbers if number != id}
        model.names.put(model.parts[self.part], self._input, {}, {}, ids)
        found = self._descriptions()
        log.facts |= {"version": int(r.version)} | {fact: found[key] for key, fact in _FACTS.items() if key in found}
        log.count_all(REPORTED, r)
