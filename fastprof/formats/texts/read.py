"""Readers of text lines (_machine.pyx and the parsers of this folder)."""

from __future__ import annotations

import re

from fastprof.core._typing import TYPE_CHECKING, ClassVar
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, Options
from fastprof.core.owner import address_of
from fastprof.core.reported import coded
from fastprof.core.source import WINDOW, Source
from fastprof.formats.texts._stacks import LuaJIT, Rprof, Tracers
from fastprof.formats.texts.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_in
    from fastprof.formats.texts._machine import Lines


# The first line of a stack of a map.
_MAP = re.compile(rb"^@([^\[\n]*)\[(?:[^\n]*,)?[ \t\r]*\n", re.MULTILINE)
MOST_MAPS = 64


class TextReader(NativeReader):
    """Reads lines with a parser of this folder."""

    view = "stacks"
    renews_stacks = True
    remarks = frozenset({"other-lines"})
    parser: ClassVar[type[Lines]]  # unless _new_parser makes another

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        self.lines = self._new_parser()
        self.part = model.add_part(Part(self.value_types()))

    def _new_parser(self) -> Lines:
        return self.parser(address_of(self.model.c), self.options[LENIENT])

    def value_types(self) -> list[ValueType]:
        return [ValueType("samples", "count")]

    def step(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        return self.lines.feed(address_of(in_), address_of(batch), address_of(err))

    def finish(self) -> None:
        self.log.count_all(REPORTED, coded(REPORTED, self.lines.counts))


class TracerReader(TextReader):
    """Stacks of bpftrace, BCC and DTrace.  Each named map of bpftrace has a value type of its name.

    Loses: offsets in functions; values of maps without stacks and lines between stacks, which are counted."""

    format = "tracer-stacks"

    def _new_parser(self) -> Tracers:
        self._maps = self._named_maps()
        return Tracers(address_of(self.model.c), self.options[LENIENT], self._maps)

    def value_types(self) -> list[ValueType]:
        return [*map(self._value_type, self._maps)]

    def _named_maps(self) -> list[bytes]:
        """The names of maps with stacks, "" for stacks that have none.  Reads a file with maps twice."""
        if not _MAP.search(self.source.head) and b"@" not in self.source.head:
            return [b""]
        self.source.spool()
        found: dict[bytes, None] = {}
        offset, rest = 0, b""
        while data := self.source.read_at(offset, WINDOW):
            offset += len(data)
            lines, newline, rest = (rest + data).rpartition(b"\n")
            found |= dict.fromkeys(_MAP.findall(lines + newline))
            if len(found) > MOST_MAPS:
                raise FormatError(self.source.name, self.format, f"more than {MOST_MAPS} maps with stacks")
        return [*found] or [b""]

    def _value_type(self, name: bytes) -> ValueType:
        """BCC's header states what is measured."""
        time = re.match(rb"Tracing ([\w-]+) time \((us|ns)\)", self.source.head)
        if name or time is None:
            return ValueType(name.decode("utf-8", "replace") or "samples", "count")
        return ValueType(time[1].decode(), {b"us": "microseconds", b"ns": "nanoseconds"}[time[2]])


class RprofReader(TextReader):
    """Samples of R.  Loses the sizes of R's heap (memory.profiling), which are counted."""

    format = "rprof"
    parser = Rprof

    def value_types(self) -> list[ValueType]:
        return [*super().value_types(), ValueType("time", "nanoseconds")]


class LuaJitReader(TextReader):
    """What LuaJIT's profiler prints: shares are hundredths of a percent of all samples."""

    format = "luajit"
    parser = LuaJIT

    def value_types(self) -> list[ValueType]:
        if re.match(rb"\s*\d+%", self.source.head):
            return [ValueType("share", "count")]
        return super().value_types()
