"""Writes gperftools CPU profiles (csrc/gperftools/write.h)."""

import sys

from fastprof.core._c import ffi, lib
from fastprof.core.engine import Writer
from fastprof.core.log import percent
from fastprof.core.messages import Message
from fastprof.core.model import Batch, Part
from fastprof.core.reported import counts_of
from fastprof.formats.gperftools import NANOSECONDS, PERIOD
from fastprof.formats.gperftools.reported import REPORTED
from fastprof.symbols.maps import MapsText, arrange


class GperftoolsWriter(Writer):
    """A profile of 64-bit words in the machine's byte order, which google-pprof and go tool pprof read."""

    format = "gperftools"
    view = "stacks"
    advice = Message(
        "it holds only addresses: write pprof or folded, or use {--frames:=}address with a graph that has addresses"
    )

    def start(self) -> None:
        self._w = ffi.new("struct fp_gperftools_writer *", {"model": self.model.c})
        self._period_us = self.options[PERIOD]
        self._begun = False

    def _words(self, *words: int) -> None:
        self.text(b"".join(n.to_bytes(8, sys.byteorder) for n in words))

    def _begin(self, part: Part | None) -> None:
        extra = part.extra if part else {}
        unit = extra.get("period_type", ("cpu", "nanoseconds"))[1]
        period_us = extra.get("period", 0) * NANOSECONDS.get(unit, 0) // 1000
        if not 0 < period_us < 1 << 32:
            period_us = 10_000
            self.log.count(REPORTED["period"], bool(extra.get("period")))
        if self._period_us:
            period_us = self._period_us
        self._w.period_ns = period_us * 1000
        self._words(0, 3, 0, period_us, 0)
        self._begun = True

    def put(self, batch: Batch) -> None:
        part = self.model.parts[batch.part]
        if not self._begun:
            self._begin(part)
        self._w.unit_ns = NANOSECONDS.get(part.value_types[0].unit, 0)
        self.take_all(lambda: lib.fp_gperftools_put(self._w, batch.c, 0, self.out, self.err))

    def end(self) -> None:
        if not self._begun:
            self._begin(self.model.parts[0] if self.model.parts else None)
        self._words(0, 1, 0)
        maps, build_ids, changed = MapsText(), 0, 0
        for i in range(1, self.model.count("mappings")):
            row = self.model.row("mappings", i)
            start, limit, offset = (row[k] | row[k + 1] << 32 for k in (1, 3, 5))
            path, build_id = (self.model.string(s) for s in self.model.row("objects", row[0]))
            build_ids += bool(build_id)
            before = len(maps.objects)
            maps.line(_maps_line(start, limit, offset, path))
            changed += any(m.path != path for m in maps.objects[before:])
        # in a reader's order, so that reading and writing again changes nothing
        for m in arrange(dict.fromkeys(maps.objects)):
            self.text(_maps_line(m.start, m.limit, m.offset, m.path))
        w = self._w
        self.log.count_all(
            REPORTED,
            counts_of(w)
            | {
                "function-names": w.rows and self._n_named(),
                "changed-paths": changed,
                "build-ids": build_ids,
                "mappings-without-addresses": maps.unknown,
            },
        )
        self.written = int(w.rows)
        if w.rows and w.left_out and not w.written:
            period = f"{w.period_ns // 1000:,} us"
            self.log.zeros = Message("every time is below half of the period ({period}); use {--period}", period=period)
        self.log.rows["samples_written"] += self.written
        for code, value in {"missing-cost": w.left_out, "missing-frames": w.cut}.items():
            if value and self.written:
                self.log.warn(REPORTED[code], share=percent(value / (w.written + w.left_out)))

    def _n_named(self) -> int:
        """Functions that have a name; others are named by their place."""
        model = self.model
        names = (model.string(model.row("functions", i)[2]) for i in range(1, model.count("functions")))
        return sum(bool(name) for name in names)


def _maps_line(start: int, limit: int, offset: int, path: bytes) -> bytes:
    """A line as in /proc/PID/maps."""
    line = f"{start:08x}-{limit:08x} r-xp {offset:08x} 00:00 0          ".encode()
    return line + path.replace(b"\n", b"?") + b"\n"
