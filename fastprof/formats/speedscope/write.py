"""Writes speedscope's JSON: samples of stacks, calls of timelines (csrc/speedscope/write.h)."""

from collections.abc import Callable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_speedscope_group, fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.model import Batch, Part
from fastprof.core.parts import comments_of, default_value
from fastprof.core.reported import counts_of
from fastprof.core.spill import Groups
from fastprof.core.thread_ids import Threads
from fastprof.core.version import __version__
from fastprof.formats.speedscope.reported import REPORTED

SCHEMA = "https://www.speedscope.app/file-format-schema.json"

# speedscope's names of units, by the usual names.
_UNITS = {
    **dict.fromkeys(("nanoseconds", "nanosecond", "ns"), "nanoseconds"),
    **dict.fromkeys(("microseconds", "microsecond", "us"), "microseconds"),
    **dict.fromkeys(("milliseconds", "millisecond", "ms"), "milliseconds"),
    **dict.fromkeys(("seconds", "second", "s"), "seconds"),
    **dict.fromkeys(("bytes", "byte", "B"), "bytes"),
}


class SpeedscopeWriter(Writer):
    """A profile for each thread of a timeline, and for each thread and value type of stacks; frames at the end.

    Rows are kept, packed, until the rows of each thread are known; beyond a MiB in a temporary file.
    """

    format = "speedscope"
    view = "stacks"
    costless = frozenset({"zero-values"})

    def start(self) -> None:
        self._w = owned(lib.fp_speedscope_new(self.model.c), "the writer of speedscope's JSON")
        self._packed = Groups()
        self._threads = Threads(self.model, 0, 0)
        self._names: dict[int, str] = {}  # by group
        self._n_parts = 0
        self._taken: dict[tuple[str, str], int] = {}  # views and names, and how many groups would have them
        self._views: dict[int, str] = {}  # by part

    def put(self, batch: Batch) -> None:
        w = self._w
        self._views[batch.part] = batch.view
        if batch.view == "timeline":
            enough(lib.fp_speedscope_calls(w, batch.c))
        else:
            row = ffi.new("uint32_t *")
            while enough(lib.fp_speedscope_samples(w, batch.c, row)) == lib.FP_FULL:
                self._spill()
        if w.packed > lib.FP_SPEEDSCOPE_PACKED:
            self._spill()

    def _spill(self) -> None:
        for number in range(self._w.n_groups):
            self._packed.take(number, self._w.groups[number].packed)
        self._w.packed = 0

    def _as_json(self, number: int, put: Callable[[fp_window], int], zero: int = 0) -> None:
        lib.fp_speedscope_begin(self._w, number, zero)
        for in_ in self._packed.windows(number, self._w.groups[number].packed):
            while enough(put(in_)) == lib.FP_FULL:
                self.drain()
        self.drain()

    # ---- profiles ----------------------------------------------------------

    def end(self) -> None:
        w, log = self._w, self.log
        self.text(f'{{"$schema":"{SCHEMA}","exporter":"fastprof-{__version__}","profiles":['.encode())
        groups = [number for number in range(w.n_groups) if w.groups[number].rows]
        threads = [number for number in groups if self._view_of(number) == "timeline"]
        sampled = [number for number in groups if self._view_of(number) == "stacks"]
        self._n_parts = len({w.groups[number].part for number in groups})
        zero = min((int(w.groups[number].first) for number in threads), default=0)
        active, n = self._all_sampled(sampled)
        for number in threads:
            self._evented(number, self.model.parts[w.groups[number].part], zero, n)
            n += 1
        if not n:
            self._head(0, "evented" if self.view == "timeline" else "sampled", "empty", "none")
            lists = '"events":[]' if self.view == "timeline" else '"samples":[],"weights":[]'
            self.text(f',{lists},"startValue":0,"endValue":0}}'.encode())
        self.text(f'\n],"activeProfileIndex":{active},"shared":{{"frames":['.encode())
        at = ffi.new("uint32_t *")
        while enough(lib.fp_speedscope_put_frames(w, at, self.out)) == lib.FP_FULL:
            self.drain()
        self.text(b"\n]}}\n")
        self.written = int(w.samples + w.calls)
        for view, name, n in (("stacks", "samples_written", w.samples), ("timeline", "events_written", w.calls)):
            if n or view == self.view:
                log.rows[name] += int(n)
        for code, deep in (("deep-calls", w.deep_calls), ("deep-frames", w.deep_frames)):
            log.count(REPORTED[code], deep, depth=lib.FP_SPEEDSCOPE_DEPTH)
        log.count_all(
            REPORTED,
            counts_of(w)
            | {
                "start-time": zero > 0,
            },
        )

    def _view_of(self, number: int) -> str:
        """The view of a group's rows."""
        return self._views[self._w.groups[number].part]

    def _all_sampled(self, groups: list[int]) -> tuple[int, int]:
        """The profiles of all stacks: the number of the one to show first, and how many they are."""
        active, n = 0, 0
        for number in groups:
            part = self.model.parts[self._w.groups[number].part]
            for k in range(len(part.value_types)):
                if number == groups[0] and k == default_value(part, "stacks"):
                    active = n
                self._sampled(number, part, k, n)
                n += 1
        empty = [part for number, part in enumerate(self.model.parts) if self._views.get(number, "stacks") == "stacks"]
        if not n and self.view == "stacks" and empty and empty[-1].value_types:
            active, n = default_value(empty[-1], "stacks"), len(empty[-1].value_types)
            for k in range(n):
                self._sample_head(empty[-1], k, "", k)
                self.text(b',"samples":[],"weights":[],"startValue":0,"endValue":0}')
        return active, n

    def _evented(self, number: int, part: Part, zero: int, n: int) -> None:
        group = self._w.groups[number]
        unit = "nanoseconds" if part.extra.get("ticks_per_second") else "none"
        start, end = group.first - zero, group.last - zero
        self._head(n, "evented", self._whose(number, part), unit)
        self.text(f',"startValue":{start},"endValue":{end},"events":['.encode())
        self._as_json(number, lambda in_: lib.fp_speedscope_put_calls(self._w, in_, self.out), zero)
        self.text(b"]}")

    def _sampled(self, number: int, part: Part, k: int, n: int) -> None:
        w, n_values = self._w, len(part.value_types)
        self._sample_head(part, k, self._whose(number, part), n)
        self.text(b',"samples":[')
        self._as_json(number, lambda in_: lib.fp_speedscope_put_stacks(w, in_, n_values, k, self.out))
        self.text(b'],"weights":[')
        self._as_json(number, lambda in_: lib.fp_speedscope_put_weights(w, in_, n_values, k, self.out))
        self.text(f'],"startValue":0,"endValue":{w.now}}}'.encode())

    def _sample_head(self, part: Part, k: int, whose: str, n: int) -> None:
        """The name of a profile for people, and its identity for readers."""
        value_type = part.value_types[k]
        name = f"{whose}: " * bool(whose) + value_type.name + f" ({value_type.unit})" * bool(value_type.unit)
        head = {"valueType": value_type.name, "valueUnit": value_type.unit, "samplesOf": whose}
        self._head(n, "sampled", name + self._estimated(part), _UNITS.get(value_type.unit, "none"))
        self.text(
            "".join(f',"{key}":{_json(text)}' for key, text in head.items() if text or key == "valueType").encode()
        )

    def _head(self, n: int, type_: str, name: str, unit: str) -> None:
        self.text(f'{"," * bool(n)}\n{{"type":"{type_}","name":{_json(name)},"unit":"{unit}"'.encode())

    def _whose(self, number: int, part: Part) -> str:
        """A unique name of the thread or part of a group's rows; "" if they have none."""
        if number not in self._names:
            view = self._view_of(number)
            name = own = self._name(view, self._w.groups[number], part)
            while own and (view, name) in self._taken:
                self._taken[view, own] += 1
                name = f"{own} [{self._taken[view, own]}]"
            self._taken[view, name] = 1
            self._names[number] = name
        return self._names[number]

    def _name(self, view: str, group: fp_speedscope_group, part: Part) -> str:
        thread = group.thread
        if view == "stacks" and not thread:
            return f"part {part.number}" if part.number is not None and self._n_parts > 1 else ""
        return self._threads.text(thread, part)

    @staticmethod
    def _estimated(part: Part) -> str:
        is_estimate = any(comment.startswith(b"stacks are estimated") for comment in comments_of(part))
        return ", estimated from a call graph" if is_estimate else ""


def _json(text: str) -> str:
    from json import dumps

    return dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
