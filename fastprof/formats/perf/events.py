"""The events of a recording, and their value types."""

from __future__ import annotations

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, fp_perf_reader
from fastprof.core.branches import value_types
from fastprof.core.c_memory import enough
from fastprof.core.model import MAX_VALUE_TYPES, Model, Part, ValueType
from fastprof.formats.perf.container import Attr
from fastprof.formats.perf.features import Features
from fastprof.formats.perf.names import BPF_OUTPUT, CONTEXT_SWITCHES, DUMMY, SOFTWARE, TRACEPOINT, name_of

if TYPE_CHECKING:
    from fastprof.formats.perf.tracing import Tracepoint

_CONTEXT_SWITCH = 1 << 26  # of the flags: the recording has SWITCH records
_SWITCH_EVENT = "sched:sched_switch"
_OFF_CPU_EVENT = "offcpu-time"  # of perf record --off-cpu
_LEAST_TIMER_NS = 10_000  # perf_swevent_start_hrtimer in kernel/events/core.c
_MOST_NAMES = (MAX_VALUE_TYPES - 1) // 2 - 1  # reserves one for off-CPU time
_OTHERS = "other events"
_OFF_CPU = "off-cpu"
_FIELDS = ("sample_type", "read_format", "branch_type", "regs_user", "regs_intr", "period", "flags")


class Event:
    """An event of the recording; `number` is the decoder's."""

    def __init__(self, number: int, attr: Attr, ids: tuple[int, ...]) -> None:
        self.number = number
        self.attr = attr
        self.ids = ids
        self.given = ""  # its name in the file
        self.tracepoint: Tracepoint | None = None  # its fields become labels

    @property
    def name(self) -> str:
        return self.given or (self.tracepoint.name if self.tracepoint else name_of(self.attr))

    @property
    def unit(self) -> str:
        """The unit of its periods.  Software clocks count nanoseconds, unless the fixed period is shorter than the
        kernel's timer allows: `-c 1` samples every 10 us, yet each sample has a period of 1.
        """
        attr = self.attr
        too_fast = not attr.is_frequency and 0 < attr.period < _LEAST_TIMER_NS
        is_clock = attr.type == SOFTWARE and attr.config < 2 and not too_fast
        return "nanoseconds" if is_clock or self.is_off_cpu_time else "count"

    @property
    def is_off_cpu_time(self) -> bool:
        return self.attr.type == SOFTWARE and self.attr.config == BPF_OUTPUT and self.given == _OFF_CPU_EVENT

    @property
    def switched_by(self) -> int:
        """The enum fp_perf_switched if the event reports every thread switch, else 0."""
        attr = self.attr
        if attr.is_frequency or attr.period != 1:
            return 0
        if attr.type == SOFTWARE and attr.config == CONTEXT_SWITCHES:
            return int(lib.FP_PERF_BY_COUNTER)
        is_tracepoint = attr.type == TRACEPOINT and self.name.partition(" ")[0] == _SWITCH_EVENT
        return int(lib.FP_PERF_BY_TRACEPOINT) if is_tracepoint else 0


class Events(list[Event]):
    """All events, as numbered by the decoder."""

    def __init__(self, r: fp_perf_reader, model: Model) -> None:
        super().__init__()
        self._r = r
        self._model = model

    def add(self, attr: Attr, ids: tuple[int, ...]) -> bool:
        """Add an event.  Returns whether its samples have their ids at the offset of the others."""
        event = Event(len(self), attr, ids)
        fields = {name: getattr(attr, name) for name in _FIELDS}
        status = lib.fp_perf_add_event(self._r, ffi.new("struct fp_perf_attr *", fields))
        if status == lib.FP_E_MALFORMED:
            return False
        enough(status)
        enough(lib.fp_perf_add_ids(self._r, event.number, ids, len(ids)))
        self.append(event)
        return True

    def of(self, id_: int) -> Event | None:
        """The event with an id."""
        if len(self) == 1:
            return self[0]
        number = lib.fp_perf_event_of(self._r, id_)
        return self[number] if number != lib.FP_NO_ID else None

    def describe(self, features: Features) -> None:
        """Take over what features say, once they are read."""
        self._name(features)
        self._describe_tracepoints(features)
        self.describe_switches()

    def _name(self, features: Features) -> None:
        """Name events from the EVENT_DESC feature: by their ids or, without ids, by their order."""
        for k, description in enumerate(features.descriptions):
            for event in self:
                if description.name and not event.given:
                    is_it = event.ids[0] in description.ids if event.ids and description.ids else event.number == k
                    event.given = description.name if is_it else ""

    def _describe_tracepoints(self, features: Features) -> None:
        for event in self:
            found = features.tracepoints.get(event.attr.config)
            if event.attr.type != TRACEPOINT or event.tracepoint or not found:
                continue
            event.tracepoint = found
            for name, *numbers in found.fields:
                field = ffi.new("struct fp_perf_field *", (self._model.intern(name), *numbers))
                enough(lib.fp_perf_add_field(self._r, event.number, field))

    def describe_switches(self) -> None:
        """Tell the decoder which events and records report thread switches."""
        r = self._r
        for event in self:
            if event.is_off_cpu_time:
                lib.fp_perf_set_off_cpu_time(r, event.number)
            if event.attr.flags & _CONTEXT_SWITCH:
                r.off_cpu = True
            if event.switched_by:
                r.off_cpu = True
                fields = event.tracepoint.fields if event.tracepoint else ()
                places = {field.name: field.offset for field in fields if field.nbytes == 4}
                prev, next_ = places.get(b"prev_pid", 0), places.get(b"next_pid", 0)
                lib.fp_perf_set_switched(r, event.number, event.switched_by, prev, next_)


class Columns:
    """Two for each event, its samples and the sum of their periods, and one for off-CPU time."""

    def __init__(self, r: fp_perf_reader, events: Events) -> None:
        self._r = r
        self._events = events
        self._types: list[ValueType] = []
        self._columns: dict[str, int] = {}  # by name of an event
        self._off_cpu: int | None = None  # the column of off-CPU time
        r.off_column = lib.FP_PERF_NO_COLUMN

    def lack(self, event: Event | None) -> bool:
        """Is there no column yet for this event, or for off-CPU time?"""
        return self._off_cpu is None if event is None else self._name(event) not in self._columns

    def add(self, event: Event | None) -> None:
        """Add columns for all events that have none."""
        types = [*self._types]
        for other in self._events:
            is_dummy = other.attr.type == SOFTWARE and other.attr.config == DUMMY
            name = self._name(other)
            if name not in self._columns and (other is event or not is_dummy):
                self._columns[name] = len(types)
                types += [ValueType(f"{name}_samples", "count"), ValueType(name, other.unit)]
        if self._r.off_cpu and self._off_cpu is None:
            self._off_cpu = len(types)
            types.append(ValueType(_OFF_CPU, "nanoseconds"))
        self._types = types

    def tell(self) -> None:
        """Let the decoder have the columns of all events, including new ones."""
        for event in self._events:
            column = self._columns.get(self._name(event), lib.FP_PERF_NO_COLUMN)
            lib.fp_perf_set_column(self._r, event.number, column)
        if self._off_cpu is not None:
            self._r.off_column = self._off_cpu

    def _name(self, event: Event) -> str:
        """The name of its column."""
        return event.name if event.name in self._columns or len(self._columns) < _MOST_NAMES else _OTHERS

    def part(self, features: Features) -> Part:
        first = self._events[0]
        extra: dict[str, Any] = {}
        if self._columns and len(self._types) > 2:  # perf shows the first event first
            extra["default_sample_type"] = self._types[1].name
        is_periodic = first.attr.period and not first.attr.is_frequency and not first.is_off_cpu_time
        if len(self._events) == 1 and is_periodic:
            what = ("cpu", first.unit) if first.unit == "nanoseconds" else (first.name, first.unit)
            extra["period"], extra["period_type"] = first.attr.period, what
        return Part(self._types, command=features.command, extra=extra | _times(features))

    def part_of_branches(self, features: Features) -> Part:
        types = value_types()
        extra = {"default_sample_type": types[0].name} | _times(features)
        return Part(types, command=features.command, extra=extra)


def _times(features: Features) -> dict[str, Any]:
    times = {"duration_ns": features.duration_ns, "time_ns": features.start_ns}
    return {key: time for key, time in times.items() if time}
