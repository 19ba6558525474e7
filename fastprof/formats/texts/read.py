"""Readers of text lines (_machine.pyx and the parsers of this folder)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from fastprof.core._typing import ClassVar, fp_batch, fp_err, fp_window
from fastprof.core.c_memory import address_of
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.reported import coded
from fastprof.core.source import WINDOW
from fastprof.formats.texts._machine import Lines
from fastprof.formats.texts._raw import PprofRaw
from fastprof.formats.texts._stacks import LuaJIT, Rprof, Tracers
from fastprof.formats.texts._trees import Ghc, Instruments
from fastprof.formats.texts.reported import REPORTED

# The first line of a stack of a map.
_MAP = re.compile(rb"^@([^\[\n]*)\[(?:[^\n]*,)?[ \t\r]*\n", re.MULTILINE)
MOST_MAPS = 64
INT64_MAX = (1 << 63) - 1
# pprof-raw
MOST_VALUES = 64
_HEADINGS = (b"Samples:\n", b"Locations\n", b"Mappings\n")
_SECTIONS = [re.compile(b"^" + heading, re.MULTILINE) for heading in _HEADINGS]


class TextReader(NativeReader):
    """Reads lines with a parser of this folder."""

    view = "stacks"
    renews_stacks = True
    remarks = frozenset({"other-lines"})
    parser: ClassVar[type[Lines]]  # unless _new_parser makes another
    default: ClassVar[int] = 0  # value type

    def start(self) -> None:
        self.lines = self._new_parser()
        self.part = self.model.add_part(self._new_part())

    def _new_parser(self) -> Lines:
        return self.parser(address_of(self.model.c), self.options[LENIENT])

    def _new_part(self) -> Part:
        types = self.value_types()
        last = self.default % len(types) == len(types) - 1  # which is the default
        return Part(types, extra={} if last else {"default_sample_type": types[self.default].name})

    def value_types(self) -> list[ValueType]:
        return [ValueType("samples", "count")]

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
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
                detail = f"more than {MOST_MAPS} maps with stacks"
                raise self.damaged(detail, 0, line=1)
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
    default = 1

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


class GhcReader(TextReader):
    """The tree of cost centres of a GHC profile.  Without `-P`, values are shares of the totals, rounded to 0.1 %."""

    format = "ghc-prof"
    lines: Ghc

    def _new_parser(self) -> Ghc:
        time = re.search(rb"\n\ttotal time +=.*\( *(\d{1,12}) ticks @ (\d{1,9}) (us|ms)", self.source.head)
        size = re.search(rb"\n\ttotal alloc +=[ ]*([\d,]{1,24}) bytes", self.source.head)
        if not time or not size:
            raise self.damaged("no `total time` and `total alloc`", 0, line=1)
        tick = int(time[2]) * {b"us": 1000, b"ms": 1_000_000}[time[3]]
        self.log.facts["ticks"] = int(time[1])
        totals = (min(total, INT64_MAX) for total in (int(time[1]) * tick, int(size[1].replace(b",", b""))))
        return Ghc(address_of(self.model.c), self.options[LENIENT], tick, *totals)

    def value_types(self) -> list[ValueType]:
        return [ValueType("time", "nanoseconds"), ValueType("alloc", "bytes"), ValueType("entries", "count")]

    def finish(self) -> None:
        super().finish()
        if not self.lines.exact:
            self.log.warn(REPORTED["rounded-shares"], file=self.source.name)


class InstrumentsReader(TextReader):
    """A call tree copied from Instruments.  Without a column of self values they are what callees leave."""

    format = "instruments"

    def _new_parser(self) -> Instruments:
        columns = self.source.head.partition(b"\n")[0].rstrip(b"\r").split(b"\t")
        names = [i for i, column in enumerate(columns) if column in (b"Symbol Name", b"Symbol Names") and i]
        if not names:
            raise self.damaged("no column `Symbol Name`", 0, line=1)
        own = next((i for i, column in enumerate(columns[: names[0]]) if column.startswith(b"Self")), 0)
        return Instruments(address_of(self.model.c), self.options[LENIENT], own, names[0])

    def value_types(self) -> list[ValueType]:
        """By the unit of the first row."""
        unit = re.search(rb"\n\s*[\d.,]+ ?([A-Za-z]*)", self.source.head)
        if self.source.head.startswith(b"Bytes") or (unit and unit[1] in (b"Bytes", b"KB", b"MB", b"GB", b"TB")):
            return [ValueType("inuse_space", "bytes")]
        cycles = unit and unit[1] in (b"cycles", b"c", b"Kc", b"Mc", b"Gc", b"Tc")
        return [ValueType("cycles", "count") if cycles else ValueType("time", "nanoseconds")]


class PprofRawReader(TextReader):
    """The text of `pprof -raw`, whose tables follow the samples: sections are read from the last to the first.

    Loses the duration, which pprof cuts to four characters."""

    format = "pprof-raw"
    addresses = True
    allocator = True
    lines: PprofRaw

    def _new_parser(self) -> PprofRaw:
        self.source.spool()
        self._sections = self._found_sections()
        (start, line), (end, _) = self._sections[:2]
        types, newline, _ = self.source.read_at(start, min(end - start, WINDOW)).partition(b"\n")
        self._sections[0] = start + len(types + newline), line + 1
        self._types = [name.rpartition("/") for name in types.decode("utf-8", "replace").split()]
        if not 1 <= len(self._types) <= MOST_VALUES:
            detail = f"expected 1 to {MOST_VALUES} value types"
            raise self.damaged(detail, start, line=line + 1)
        return PprofRaw(address_of(self.model.c), self.options[LENIENT], len(self._types))

    def _found_sections(self) -> list[tuple[int, int]]:
        """Where samples, locations and mappings begin: bytes, and lines before them."""
        found: list[tuple[int, int]] = []
        offset, lines, rest = 0, 0, b""
        while data := self.source.read_at(offset + len(rest), WINDOW):
            whole, newline, rest = (rest + data).rpartition(b"\n")
            text = whole + newline
            at = 0
            while len(found) < 3 and (match := _SECTIONS[len(found)].search(text, at)):
                at = match.end()
                found.append((offset + at, lines + text.count(b"\n", 0, at)))
            lines += text.count(b"\n")
            offset += len(text)
        if len(found) < 2:
            what = "Locations" if found else "Samples:"
            raise self.damaged(f"no line `{what}`", offset + len(rest), -2, lines + 1)
        return found

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        end = None
        for section in reversed(range(len(self._sections))):
            start, line = self._sections[section]
            self.lines.begin(section, line)
            yield start, None if end is None else end - start
            end = start - len(_HEADINGS[section])

    def value_types(self) -> list[ValueType]:
        return [ValueType(name, unit.removesuffix("[dflt]")) for name, _, unit in self._types]

    def _new_part(self) -> Part:
        """With the fields of the first lines.  A line of a comment without a key continues it."""
        part = Part(self.value_types())
        head = self.source.read_at(0, min(self._sections[0][0], WINDOW)).partition(b"\nSamples:\n")[0]
        key = b""
        for line in head.splitlines():
            found, colon, value = line.partition(b": ")
            is_field = bool(colon) and found in _FIELDS
            key = found if is_field else key
            if key == b"Comment":
                part.comments.append(value if is_field else part.comments.pop() + b"\n" + line)
            elif key == b"PeriodType" and value.count(b" ") == 1:
                part.extra["period_type"] = tuple(value.decode("utf-8", "surrogateescape").split(" "))
            elif key == b"Period" and re.fullmatch(rb"-?\d{1,18}", value) and int(value):
                part.extra["period"] = int(value)
            elif key == b"Time" and (time := _nanoseconds(value.decode("utf-8", "replace"))):
                part.extra["time_ns"] = time
            elif key == b"Doc":
                part.extra["doc_url"] = value
        if default := [name for name, _, unit in self._types if unit.endswith("[dflt]")]:
            part.extra["default_sample_type"] = default[0]
        return part


_FIELDS = (b"Comment", b"PeriodType", b"Period", b"Time", b"Duration", b"Doc")


def _nanoseconds(text: str) -> int:
    """Since 1970, of `2026-11-21 06:00:40.003356045 +0000 UTC`; 0 if it is something else."""
    found = re.match(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))? ([+-])(\d\d)(\d\d)", text)
    if not found:
        return 0
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    try:
        days = (date(year, month, day) - date(1970, 1, 1)).days
    except ValueError:
        return 0
    offset = (int(found[9]) * 60 + int(found[10])) * (-60 if found[8] == "-" else 60)
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset
    return seconds * 10**9 + int((found[7] or "").ljust(9, "0"))
