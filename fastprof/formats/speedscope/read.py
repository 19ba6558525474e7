"""Reads speedscope's JSON (csrc/speedscope/read.h)."""

from collections import Counter
from collections.abc import Iterable

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_speedscope_profile, fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.model import MAX_VALUE_TYPES, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.spill import Spilled
from fastprof.formats.speedscope import EVENTED
from fastprof.formats.speedscope.reported import REPORTED

_TYPE = re.compile(rb'"type"\s{0,8}:\s{0,8}"(evented|sampled)"')
_EVENTED = re.compile(rb'"type"\s{0,8}:\s{0,8}"evented"')
_LONGEST = 48  # bytes that match, at most
_SCALES = {b"nanoseconds": 0, b"microseconds": 3, b"milliseconds": 6, b"seconds": 9}  # to nanoseconds
_ESTIMATED = b", estimated from a call graph"  # at the end of a name


class SpeedscopeReader(NativeReader):
    """A timeline if the first profile is evented, else stacks, with evented profiles as the other view."""

    format = "speedscope"
    renews_stacks = True

    def start(self) -> None:
        self.source.spool()  # two passes; and the first profile may be far from the beginning
        first = self.source.search(_TYPE, _LONGEST)
        self.view = "timeline" if first and first[1] == b"evented" else "stacks"
        wanted = self.options[EVENTED]
        if self.view == "stacks" and self.source.search(_EVENTED, _LONGEST):
            self.view, self.other_view = ("timeline", "") if wanted else ("stacks", "timeline")
        new = lib.fp_speedscope_read_new(self.model.c, self.options[LENIENT])
        self._r = owned(new, "the reader of speedscope's JSON")
        self._file = Spilled()
        self._read = 0  # bytes of the kept values in the file
        self._others = 0
        self._types: list[ValueType] = []  # of stacks, known after the first pass

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        yield 0, None
        self._plan()
        lib.fp_speedscope_again(self._r)
        yield 0, None

    def _plan(self) -> None:
        """The use of each profile."""
        r, model = self._r, self.model
        wanted = lib.FP_SPEEDSCOPE_EVENTED if self.view == "timeline" else lib.FP_SPEEDSCOPE_SAMPLED
        profiles = [r.profiles[i] for i in range(r.n_profiles)]
        mine = [(i, p) for i, p in enumerate(profiles, 1) if p.type == wanted]
        self._others = 0 if self.reads_second_view else sum(p.type != wanted and p.has_items for p in profiles)
        input_ = model.input() if mine else 0
        if self.view == "stacks":
            self._plan_samples(mine, input_)
            return
        parts: dict[Any, int] = {}
        names = Part()
        self._name(names, input_, ((i, p.name) for i, p in mine))
        for i, p in mine:
            unit = model.string(p.unit)
            p.wanted, p.scale = 1, _SCALES.get(unit, 0)
            p.is_time = is_time = unit in _SCALES
            p.thread = model.thread(0, i, input_)
            if is_time not in parts:
                parts[is_time] = model.add_part(
                    Part(extra={"ticks_per_second": 1_000_000_000 * is_time, **names.extra})
                )
            p.part = parts[is_time]

    def _plan_samples(self, mine: list[tuple[int, fp_speedscope_profile]], input_: int) -> None:
        """Profiles that name their thread (fastprof's) are value types of these threads.  Other profiles of
        equal value types are threads."""
        model, r = self.model, self._r
        alike = Counter(self._value_type(p) for _, p in mine)
        columns: dict[ValueType, list[int]] = {}  # by value type: a thread may have several of one name
        types: list[ValueType] = []
        seen: Counter[tuple[ValueType, int]] = Counter()
        threads: dict[int, int] = {}  # by the thread of the samples: the number of the first profile
        default = 0
        for i, p in mine:
            p.wanted = 1
            value_type = self._value_type(p)
            unit = b"" if p.has_value else model.string(p.unit)
            p.scale, p.is_time = _SCALES.get(unit, 0), unit in _SCALES
            if p.has_value:
                before = seen[value_type, p.samples_of]
                seen[value_type, p.samples_of] += 1
                number = threads.setdefault(p.samples_of, i) if p.samples_of else 0
            else:
                before = 0
                number = i if alike[value_type] > 1 else 0
            found = columns.setdefault(value_type, [])
            if before == len(found):
                found.append(len(types))
                types.append(value_type)
            p.column = found[before]
            p.thread = model.thread(0, number, input_) if number else 0
            if i - 1 == r.active:
                default = p.column
        if len(types) > MAX_VALUE_TYPES:
            raise self.damaged(f"profiles have {len(types):,} names and units, expected up to {MAX_VALUE_TYPES:,}")
        part = Part(value_types=types or [ValueType("weight", "count")])
        if any(p.has_value and model.string(p.name).endswith(_ESTIMATED) for _, p in mine):
            part.comments.append(b"stacks are estimated from a call graph")
        if default < len(types) - 1:  # the last one is the default anyway
            part.extra["default_sample_type"] = types[default].name
        numbered = [
            (i, p.samples_of or p.name)
            for i, p in mine
            if p.thread and (not p.samples_of or threads[p.samples_of] == i)
        ]
        if numbered:
            self._name(part, input_, numbered)
        self._types = part.value_types
        index = model.add_part(part)
        for _, p in mine:
            p.part = index

    def _name(self, part: Part, input_: int, numbered: Iterable[tuple[int, int]]) -> None:
        """Name threads by their numbers, which are not in the file; their process has none."""
        names = {(0, i): self.model.string(name) for i, name in numbered if name}
        self.model.names.put(part, input_, {0: b""}, names, {i: b"" for _, i in names})

    def _value_type(self, profile: fp_speedscope_profile) -> ValueType:
        """The value type of a profile's samples.  Profile names of other writers are arbitrary and ignored."""
        if profile.has_value:
            name, unit = (self.model.string(text) for text in (profile.value, profile.value_unit))
            return ValueType(name.decode("utf-8", "replace"), unit.decode("utf-8", "replace"))
        unit = self.model.string(profile.unit)
        if unit in _SCALES:
            return ValueType("time", "nanoseconds")
        return ValueType("size", "bytes") if unit == b"bytes" else ValueType("weight", "count")

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        if self.view == "stacks":
            enough(lib.fp_batch_set_values(batch, len(self._types)))
        return lib.fp_speedscope_feed(self._r, in_, batch, err)

    answers = {  # noqa: RUF012
        lib.FP_SPEEDSCOPE_SPILL: lambda self, _: self._spill(),
        lib.FP_SPEEDSCOPE_REFILL: lambda self, _: self._refill(),
    }

    def _spill(self) -> None:
        if not self._r.spills:  # the first ones of a profile
            self._file = Spilled()
            self._read = 0
        self._file.append(memoryview(ffi.buffer(self._r.kept, 8 * self._r.n_kept)))
        self._r.n_kept = 0
        self._r.spills += 1

    def _refill(self) -> None:
        """The next values in the file, which are those of one profile."""
        n = min(8 * lib.FP_SPEEDSCOPE_KEPT, max(8, self._file.nbytes - self._read))
        self._file.read(self._read, memoryview(ffi.buffer(self._r.kept, n)))
        self._read += n
        self._r.n_kept = n // 8

    def finish(self) -> None:
        r, log = self._r, self.log
        log.count_all(REPORTED, r)
        log.count(REPORTED["unreadable-rest"], r.bad_end * (not self.is_second))
        log.count(REPORTED["other-profiles"], self._others)
        texts = {"name": r.title, "exporter": r.exporter}
        self.stated = {
            key: bytes(text.p[0 : text.n]).decode("utf-8", "replace") for key, text in texts.items() if text.n
        }
        log.facts["profiles"] = int(r.n_profiles)
