"""Reads recordings of Python's profiling.sampling (csrc/tachyon/read.h)."""

import struct
from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_window
from fastprof.core.errors import check
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.formats.tachyon.reported import REPORTED

_HEAD, _FOOTER, _NEWEST = 64, 32, 2
# After the magic number: version, Python's, start, interval, samples, threads, places of strings and frames,
# compression, mode.  In the first alphas of Python 3.15 the number of samples had 4 bytes.
_HEADER, _OLDER = "I4BQQQIQQII", "I4BQQIIQQI"
_MODES = ("wall", "cpu", "gil", "wall", "exceptions")
# A compressed block has 3 bytes and more, and expands to at most 128 KiB.
_SLICE = 512


class TachyonReader(NativeReader):
    """Samples of threads in the order of the file, with their times."""

    format = "tachyon"
    view = "stacks"
    new = lib.fp_tachyon_new
    renews_stacks = True

    def start(self) -> None:
        self.source.spool()
        self._size = self.source.size or 0
        super().start()
        self._err = ffi.new("struct fp_err *")
        order = "<" if self.source.head[:4] == b"HCAT" else ">"
        self._r.swap = order == ">"
        head, foot = self.source.read_at(0, _HEAD), self.source.read_at(max(self._size - _FOOTER, 0), _FOOTER)
        if self._size < _HEAD + _FOOTER:
            raise self.damaged("the file is shorter than its header and footer", self._size, lib.FP_E_TRUNCATED)
        found: tuple[Any, ...] = ()
        for layout in (_HEADER, _OLDER):
            found = struct.unpack_from(order + layout, head, 4)
            self._strings, self._frames, self._compression = found[9:12]
            if _HEAD <= self._strings <= self._frames <= self._size - _FOOTER:
                break
        if not 0 < found[0] <= _NEWEST:
            raise self.damaged(f"the version is {found[0]}, expected 1 or 2", 4, lib.FP_E_VERSION)
        n_strings, n_frames, nbytes = struct.unpack_from(order + "IIQ", foot)
        if not _HEAD <= self._strings <= self._frames <= self._size - _FOOTER:
            what = "the tables are not in the file, which may be cut or was not finished"
            raise self.damaged(what, 40, lib.FP_E_TRUNCATED)
        if nbytes != self._size:
            what = f"the file is {nbytes:,} bytes long by its footer, not {self._size:,}"
            raise self.damaged(what, self._size - _FOOTER + 8, lib.FP_E_TRUNCATED)
        if self._compression > 1:
            raise self.damaged(f"the compression is {self._compression}, expected 0 or 1", 56)
        self._read_tables(n_strings, n_frames)
        interval, mode = found[6], found[12] if len(found) > 12 else 0
        if not 0 < interval < 1 << 50:
            raise self.damaged(f"the interval is {interval:,} us, expected 1 to 2^50", 20)
        name = _MODES[mode - 1] if 0 < mode <= len(_MODES) else "wall"
        self._r.start_us, self._r.interval_ns = found[5], interval * 1000
        self._r.input = self._input = self.model.input()
        part = Part([ValueType(name, "nanoseconds"), ValueType("samples", "count")])
        part.extra["default_sample_type"] = name
        self.part = self.model.add_part(part)
        self.log.facts |= {"python": ".".join(map(str, found[1:4])), "interval_us": interval}
        self.log.facts |= {"mode": "all" if mode == 4 else name} if mode else {}
        self._plain = ffi.new("struct fp_window *")  # a window of decompressed samples
        self._window = b""
        self._stream: Any = None
        self._is_damaged = False

    def _read_tables(self, n_strings: int, n_frames: int) -> None:
        end = self._size - _FOOTER
        for read, start, stop, n in (
            (lib.fp_tachyon_strings, self._strings, self._frames, n_strings),
            (lib.fp_tachyon_frames, self._frames, end, n_frames),
        ):
            data = self.source.read_at(start, stop - start)
            status = read(self._r, ffi.from_buffer("uint8_t[]", data), len(data), n, self._err)
            self._err.offset += start
            check(status, self._err, self.source.name, self.format)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        yield _HEAD, self._strings - _HEAD

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        if not self._compression:
            return int(lib.fp_tachyon_feed(self._r, in_, batch, err))
        while (status := int(lib.fp_tachyon_feed(self._r, self._plain, batch, err))) == lib.FP_MORE:
            if in_.pos == in_.n and not in_.eof and not self._is_damaged:
                return status
            self._decompress(in_)
        if status < 0:
            err.offset = in_.base + in_.pos  # of what was decompressed last
        return status

    def _decompress(self, in_: fp_window) -> None:
        """Append to the window of samples what the next bytes expand to."""
        import zstandard

        taken = bytes(ffi.buffer(in_.p + in_.pos, min(_SLICE, in_.n - in_.pos)))
        self._stream = self._stream or zstandard.ZstdDecompressor().decompressobj()
        was_over, data, damage = self._stream.eof, b"", ""
        try:
            data = b"" if was_over else self._stream.decompress(taken)
        except zstandard.ZstdError as error:
            damage = f"the compressed samples are damaged: {error}"
        if (was_over and taken) or self._stream.unused_data:
            damage = "bytes follow the compressed samples"
        elif not taken and not was_over:
            damage = "the compressed samples end too early"
        if damage and not self.options[LENIENT]:
            raise self.damaged(damage, int(in_.base + in_.pos), lib.FP_E_MALFORMED if taken else lib.FP_E_TRUNCATED)
        self._is_damaged |= bool(damage)
        in_.pos = in_.n if damage else in_.pos + len(taken)
        plain = self._plain
        self._window = self._window[plain.pos :] + data
        plain.p, plain.n, plain.pos = ffi.from_buffer("uint8_t[]", self._window), len(self._window), 0
        plain.eof = bool(damage) or (in_.eof and in_.pos == in_.n)

    def finish(self) -> None:
        r, log, model, id_ = self._r, self.log, self.model, ffi.new("uint64_t *")
        threads = ((lib.fp_tachyon_thread(r, i, id_), id_[0]) for i in range(1, r.n_threads))
        ids = {model.row("threads", thread)[2]: b"%d" % id for thread, id in threads if thread}
        model.names.put(model.parts[self.part], self._input, {}, {}, ids)
        log.facts["samples"] = int(r.samples)
        r.bad_end |= self._is_damaged
        log.count_all(REPORTED, r)
