"""Reads captures of memray (csrc/memray/read.h)."""

from __future__ import annotations

from collections import defaultdict

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, ClassVar, fp_batch, fp_err, fp_window
from fastprof.core.heap_sums import TYPES, facts_of
from fastprof.core.model import Part
from fastprof.core.native import Answers, NativeReader
from fastprof.formats.memray.reported import REPORTED
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS, SYMBOLIZE, SYMBOLS, SYSROOT

if TYPE_CHECKING:
    from fastprof.symbols.mappings import Mapping
    from fastprof.symbols.symbol import Symbol

_ALLOCATORS = ("", "pymalloc", "pymalloc_debug", "malloc", "other", "mimalloc", "mimalloc_debug")


def _is_loop(name: str) -> bool:
    """Whether this is the interpreter's function that executes a call of Python, or one of those of Python 3.14."""
    return "_PyEval_EvalFrameDefault" in name or name.startswith("_TAIL_CALL_")


class MemrayReader(NativeReader):
    """Allocations by stack and thread: all, temporary ones, those not freed, those at the peak."""

    format = "memray"
    view = "stacks"
    new = lib.fp_memray_new

    def start(self) -> None:
        super().start()
        version = int.from_bytes(self.source.head[7:11], "little")
        self.addresses = self.source.head[11 if version < 12 else 15 : 16].startswith(b"\1")  # of native frames

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = lib.fp_memray_feed(self._r, in_, batch, err)
        if status in (lib.FP_FULL, lib.FP_DONE):  # rows come after the last record
            self._name_threads()
        return status

    def _begin(self, batch: fp_batch) -> None:
        r, model = self._r, self.model
        r.input = self._input = model.input()
        first = len(TYPES) // 2 if r.is_aggregated else 0
        r.heap.first_column = first
        extra: dict[str, Any] = {"time_ns": int(r.start_ms) * 1_000_000}
        if r.end_ms > r.start_ms:
            extra["duration_ns"] = int(r.end_ms - r.start_ms) * 1_000_000
        self.part = model.add_part(
            Part(TYPES[first:], command=model.string(r.command) or None, pid=int(r.pid), extra=extra)
        )

    def _find_loops(self, batch: fp_batch) -> None:
        """Tell the decoder which native frames are those of the interpreter's loop."""
        if not self.options[SYMBOLIZE]:
            return
        from fastprof.symbols.finder import Finder
        from fastprof.symbols.symbolizer import Symbolizer

        r, model = self._r, self.model
        by_images = defaultdict[tuple[int, int], list[int]](list)
        for i in range(1, r.n_wanted):
            by_images[r.wanted[i].first, r.wanted[i].end].append(i)
        options = self.options
        finder = Finder(
            symbols=options[SYMBOLS],
            sysroot=options[SYSROOT],
            debug_dirs=options[DEBUG_DIRS],
            demangle=options[DEMANGLE],
            force=options[FORCE_SYMBOLS],
        )
        for (first, end), wanted in by_images.items():
            symbolizer = Symbolizer(map(self._mapping, ffi.unpack(r.images + first, end - first)), finder)
            frames = [model.row("frames", r.wanted[i].frame) for i in wanted]
            chains = symbolizer.resolve([low | high << 32 for _, low, high, *_ in frames], returns=True)
            for i, (mapping, low, high, flags, _), chain in zip(wanted, frames, chains, strict=True):
                loop = next((k for k, one in enumerate(chain) if _is_loop(one.system_name or one.name)), None)
                if loop is not None:
                    lines = self._lines(chain[:loop], model.row("mappings", mapping)[lib.FP_MAPPING_OBJECT])
                    frame = model.frame(mapping, low | high << 32, flags, lines) if loop else lib.FP_MEMRAY_LOOP
                    r.wanted[i].answer = frame

    def _mapping(self, mapping: int) -> Mapping:
        from fastprof.symbols.mappings import Mapping

        model = self.model
        object_id, low, high, low_limit, high_limit, low_offset, high_offset, _ = model.row("mappings", mapping)
        path = model.string(model.row("objects", object_id)[lib.FP_OBJECT_NAME]).decode("utf-8", "surrogateescape")
        return Mapping(low | high << 32, low_limit | high_limit << 32, low_offset | high_offset << 32, path, "", True)

    def _lines(self, chain: tuple[Symbol, ...], object_id: int) -> int:
        lines, model = 0, self.model
        for one in reversed(chain):
            function = model.function(one.name, one.file, object_id, one.system_name, one.start_line)
            lines = model.line(function, one.line, 0, lines)
        return lines

    answers: ClassVar[Answers] = {lib.FP_MEMRAY_HEADER: _begin, lib.FP_MEMRAY_NAMES: _find_loops}

    def _name_threads(self) -> None:
        r, model, name = self._r, self.model, ffi.new("uint32_t *")
        threads: dict[tuple[int, int], bytes] = {}
        for i in range(r.n_threads):
            _, pid, tid = model.row("threads", lib.fp_memray_thread(r, i, name))
            if name[0]:
                threads[pid, tid] = model.string(name[0])
        model.names.put(model.parts[self.part], self._input, {}, threads, {})

    def finish(self) -> None:
        r, log = self._r, self.log
        log.facts["version"] = int(r.version)
        if r.python:
            log.facts["python"] = f"{r.python >> 24}.{r.python >> 16 & 255}"
        if 0 < r.python_allocator < len(_ALLOCATORS):
            log.facts["python_allocator"] = _ALLOCATORS[r.python_allocator]
        log.facts |= facts_of(r.heap)
        if r.is_aggregated:
            del log.facts["peak_ms"]  # not in the file
        log.count_all(REPORTED, r)
