"""Reads DHAT profiles (csrc/valgrind/dhat.h)."""

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_window
from fastprof.core.allocators import NAMES
from fastprof.core.c_memory import enough, owned
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, MAX_MEMORY
from fastprof.core.spill import KeptKeys
from fastprof.formats.valgrind.places import Places
from fastprof.formats.valgrind.reported import REPORTED

# Names in the order of enum fp_dhat_value, and whether they are bytes, blocks or time.
_TOTAL = (("total_bytes", "bytes"), ("total_blocks", "blocks"))
_LIVES = (
    ("at_end_bytes", "bytes"),
    ("at_end_blocks", "blocks"),
    ("at_gmax_bytes", "bytes"),
    ("at_gmax_blocks", "blocks"),
    ("max_bytes", "bytes"),
    ("max_blocks", "blocks"),
)
_ACCESSES = (("read_bytes", "bytes"), ("written_bytes", "bytes"))
_FIRST = {name: k for k, (name, _) in enumerate([*_TOTAL, *_LIVES, *_ACCESSES, ("lifetimes", "time")])}


_UNITS = {"byte": "bytes", "blocks": "count", "instrs": "instructions", "µs": "microseconds"}  # as elsewhere


class DhatReader(NativeReader):
    """Reads program points; their values depend on the mode."""

    format = "dhat"
    view = "stacks"
    allocator = True
    renews_stacks = True

    def start(self) -> None:
        self.distinct = True
        self._d = owned(lib.fp_dhat_new(self.model.c, self.options[LENIENT]), "the reader of DHAT profiles")
        self._kept = KeptKeys(ffi.addressof(self._d.stacks), self.options[MAX_MEMORY])

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        d = self._d
        status = lib.fp_dhat_feed(d, in_, err) if self.part < 0 else lib.fp_dhat_rows(d, batch, err)
        self._kept.rest()
        return int(status)

    def answer(self, batch: fp_batch) -> None:
        self._describe()

    def _text(self, field: int) -> str:
        return self._bytes(self._d.text[field]).decode("utf-8", "replace")

    def _bytes(self, string: int) -> bytes:
        strings = self._d.texts
        start = strings.start[string]
        return bytes(ffi.buffer(strings.bytes + start, strings.start[string + 1] - start))

    def _enter_places(self) -> None:
        """Set the place of each text of the frame table."""
        d, places = self._d, Places(self.model)
        starts = ffi.unpack(d.texts.start, d.texts.n + 1)
        texts = ffi.buffer(d.texts.bytes, starts[-1])[:]
        for i in range(lib.fp_dhat_n_table(d)):
            string = lib.fp_dhat_table(d, i)
            enough(lib.fp_dhat_place(d, string, *places.enter(texts[starts[string] : starts[string + 1]])))

    def _describe(self) -> None:
        """At the end of the input, set the part and the places of frames."""
        d, log = self._d, self.log
        units = {
            "bytes": self._text(lib.FP_DHAT_BU) or "bytes",
            "blocks": self._text(lib.FP_DHAT_BKSU) or "count",
            "time": self._text(lib.FP_DHAT_TU) or "instrs",
        }
        units = {kind: _UNITS.get(unit, unit) for kind, unit in units.items()}
        names = [*_TOTAL, *(_LIVES if d.lifetimes else ()), *(_ACCESSES if d.accesses else ())]
        if d.lifetimes:
            names.append(("lifetimes", "time"))
        for k, (name, _) in enumerate(names):
            d.columns[k] = _FIRST[name]
        d.n_columns = len(names)
        self._enter_places()
        mode = self._text(lib.FP_DHAT_MODE)
        extra: dict[str, Any] = {
            "default_sample_type": "at_gmax_bytes" if d.lifetimes else "total_bytes",
            "drop_frames": NAMES,
        }
        command = self._bytes(d.text[lib.FP_DHAT_CMD])
        self.part = self.model.add_part(
            Part(
                [ValueType(name, units[kind]) for name, kind in names],
                command=command or None,
                pid=int(d.pid) if 0 <= d.pid < 1 << 32 else None,
                extra=extra,
            )
        )
        log.facts["mode"] = mode
        if d.end_time >= 0:
            log.facts["end_time"] = int(d.end_time)
        if d.peak_time >= 0:
            log.facts["peak_time"] = int(d.peak_time)
        log.facts["time_unit"] = units["time"]

    def finish(self) -> None:
        d = self._d
        self.log.facts["program_points"] = int(d.points)
        self.log.count_all(REPORTED, d)
