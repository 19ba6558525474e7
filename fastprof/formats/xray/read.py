"""Reads LLVM XRay logs (csrc/xray/read.h)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, fp_batch, fp_err, fp_window, fp_xray
from fastprof.core.c_memory import enough, owned
from fastprof.core.errors import check
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, UINT64, Options
from fastprof.formats.xray import PROGRAM
from fastprof.formats.xray.reported import REPORTED
from fastprof.symbols import DEMANGLE, SYMBOLS

if TYPE_CHECKING:
    from fastprof.formats.xray.map import Function, FunctionNames

_LENT = (lib.FP_FULL, lib.FP_DONE)  # the batch is complete
_MODES = {
    lib.FP_XRAY_BASIC: "basic",
    lib.FP_XRAY_FDR: "fdr",
    lib.FP_XRAY_PROFILE: "profiling",
    lib.FP_XRAY_PROFILE_RAW: "profiling (without file header)",
}
# Bytes that the index pass reads at a time: little, because the head of an FDR buffer has 80 bytes; more if buffers are
# so small that seeking costs more than reading.
_INDEX_WINDOW = 1024
_DENSE_WINDOW = 16 * 1024
# The first rows: their functions are compared with the sleds of the map.  At most workers.FEW_ROWS.
_CHECKED_ROWS = 1 << 18


class XRayReader(NativeReader):
    """One log.  `view` is "timeline", or "stacks" for a profiling-mode log."""

    format = "xray"
    view = "timeline"

    def start(self) -> None:
        self.x = x = owned(lib.fp_xray_new(self.model.c, self.options[LENIENT]), "the XRay decoder")
        self._err = ffi.new("struct fp_err *")
        nbytes = ffi.new("size_t *")
        self._check(lib.fp_xray_header(x, self.source.head, len(self.source.head), nbytes, self._err))
        self._header_nbytes = int(nbytes[0])
        self._names = _load_names(self.options)
        self._unnamed = 0
        self._numbers: dict[int, Function] = {}  # by function of the model
        self._seen = ffi.new("uint8_t[]", 1)
        self.functions: dict[int, int] = {}  # of the model, by function id
        program = self.options[PROGRAM] or (self._names.maps[0].program if self._names else "")
        self._object = self.model.object(program) if program else 0
        profile = x.mode in (lib.FP_XRAY_PROFILE, lib.FP_XRAY_PROFILE_RAW)
        if profile:
            self.view = "stacks"
        part = Part(pid=int(x.pid) or None)
        if profile:
            part.value_types = [ValueType("time", "ticks"), ValueType("calls", "count")]  # as a folded timeline has
        else:
            part.extra["ticks_per_second"] = int(x.ticks_per_second)
        part.descriptions = [(b"Source", self._describe().encode())]
        self.part = self.model.add_part(part)

    def _describe(self) -> str:
        x = self.x
        version = "" if x.mode >= lib.FP_XRAY_PROFILE else f" version {x.version}"
        return f"XRay {_MODES[x.mode]}{version}"

    def _check(self, status: int) -> int:
        return check(status, self._err, self.source.name, self.format)

    # ---- which bytes, in which order -----------------------------------

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        if self.x.mode == lib.FP_XRAY_FDR:
            self.index()
            return self._fdr_ranges()
        return ((self._header_nbytes, None),)

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        if encoded and self.x.mode == lib.FP_XRAY_FDR and not self.options[LENIENT]:
            from fastprof.formats.xray.pieces import read_in_pieces

            return read_in_pieces(self, capacity)
        return super().rows(capacity)

    def index(self) -> None:
        """FDR: find the buffers and put them in order.  Only the head of each is read."""
        x, source = self.x, self.source
        source.spool()
        assert source.size is not None
        window = bytearray(_DENSE_WINDOW)
        view = memoryview(window)
        in_ = ffi.new("struct fp_window *")
        in_.p = ffi.from_buffer("uint8_t[]", window)
        few = view[:_INDEX_WINDOW]
        next_ = ffi.new("uint64_t *", self._header_nbytes)
        start, window_ = self._header_nbytes, few
        while True:
            in_.base, in_.pos = start, 0
            in_.n = source.read_into(start, window_)
            status = lib.fp_xray_index(x, in_, source.size, next_, self._err)
            if status != lib.FP_MORE and self._check(status) == lib.FP_DONE:
                break
            next_start = next_[0]
            window_ = view if next_start - start < _DENSE_WINDOW else few
            start = next_start
        self._drop_copies()

    def _drop_copies(self) -> None:
        """Skip buffers that occur twice.

        The runtime writes a buffer that a thread still holds at exit twice, the second time in another buffer's place.
        """
        one, other, nbytes = (ffi.new("uint64_t *") for _ in range(3))
        while lib.fp_xray_duplicates(self.x, one, other, nbytes):
            if self._same_bytes(one[0], other[0], nbytes[0]):
                lib.fp_xray_drop(self.x)

    def _fdr_ranges(self) -> Iterator[tuple[int, int | None]]:
        """The buffers in time order.  In lenient mode each is a separate range, so that damage ends with it."""
        offset, nbytes = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        most = 0 if self.options[LENIENT] else UINT64
        while lib.fp_xray_range(self.x, most, offset, nbytes):
            yield offset[0], nbytes[0]

    def _same_bytes(self, a: int, b: int, nbytes: int) -> bool:
        step = 1 << 20
        return all(
            self.source.read_at(a + at, min(step, nbytes - at)) == self.source.read_at(b + at, min(step, nbytes - at))
            for at in range(0, nbytes, step)
        )

    # ---- decoding ------------------------------------------------------

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = lib.fp_xray_feed(self.x, in_, batch, err)
        if self._numbers and self.view == "timeline" and self.n_read < _CHECKED_ROWS and status in _LENT:
            self._record_operations(batch)
        return int(status)

    def answer(self, batch: fp_batch) -> None:
        self.define(self.x)

    def _record_operations(self, batch: fp_batch) -> None:
        """Record the operations of a batch's functions."""
        n = self.model.count("functions")
        if n > len(self._seen):
            seen = ffi.new("uint8_t[]", 2 * n)
            ffi.memmove(seen, self._seen, len(self._seen))
            self._seen = seen
        lib.fp_xray_seen(batch, self._seen, n)

    def _mismatches(self) -> int:
        """How many functions have operations without sleds."""
        seen = bytes(ffi.buffer(self._seen))
        return sum(not f.can(seen[number]) for number, f in self._numbers.items() if number < len(seen))

    def define(self, x: fp_xray) -> None:
        """Name a function that a decoder finds for the first time."""
        function_id = x.requested
        if function_id not in self.functions:
            self.functions[function_id] = self._name(function_id)
        enough(lib.fp_xray_define(x, function_id, self.functions[function_id]))

    def _name(self, function_id: int) -> int:
        model = self.model
        symbol = self._names.lookup(function_id) if self._names else None
        if symbol is None:
            self._unnamed += 1
            if self._names is None:
                self.advice = REPORTED["unnamed-functions"]
            function = model.function(f"#{function_id}", object_id=self._object)
        else:
            object_id = model.object(symbol.object) if symbol.object else self._object
            system_name = symbol.system_name if symbol.system_name != symbol.name else ""
            function = model.function(symbol.name, symbol.file, object_id, system_name, symbol.line)
            if model.numbers.setdefault(function, function_id) != function_id:
                # Another function has the same name, file and line: both are static, without debug information.
                system_name = f"{symbol.system_name}#{function_id}"
                function = model.function(symbol.name, symbol.file, object_id, system_name, symbol.line)
                model.numbers[function] = function_id
            self._numbers[function] = symbol
        return function

    def finish(self) -> None:
        x, log = self.x, self.log
        stats = x.stats
        log.count_all(REPORTED, stats)
        self._log_names()
        if stats.joined:
            self.model.parts[self.part].pid = None  # a profile's pid is that of its first log only
        facts = log.facts
        facts["mode"] = _MODES[x.mode]
        if x.mode < lib.FP_XRAY_PROFILE:
            facts["version"] = int(x.version)
            facts["ticks_per_second"] = int(x.ticks_per_second)
            facts["constant_tsc"] = bool(x.flags & 1)
            facts["nonstop_tsc"] = bool(x.flags & 2)
        facts["byte_order"] = "big-endian" if x.swap else "little-endian"
        if x.mode == lib.FP_XRAY_FDR:
            facts["buffer_size"] = int(x.buffer_size)
        if x.mode != lib.FP_XRAY_BASIC:
            facts["buffers"] = int(stats.buffers)

    def _log_names(self) -> None:
        """Warnings about the names."""
        log, called = self.log, len(self._numbers) + self._unnamed
        if self._names is None:
            return
        for note in self._names.notes():
            log.warn(REPORTED["map-notes"], note=note)
        doubts = []
        if self._unnamed:
            doubts.append(f"not in the map: {self._unnamed:,} of {counted(called, 'function')} of the log")
        if mismatches := self._mismatches():
            doubts.append(f"entries or exits that the map lacks: {mismatches:,} of {counted(called, 'function')}")
        if doubts:
            log.warn(REPORTED["other-build"], path=self._names.maps[0].path, doubts="; ".join(doubts))


def _load_names(options: Options) -> FunctionNames | None:
    if not options[SYMBOLS]:
        return None
    from fastprof.formats.xray.map import FunctionNames, InstrumentationMap

    return FunctionNames(InstrumentationMap.load(path, options[DEMANGLE]) for path in options[SYMBOLS])
