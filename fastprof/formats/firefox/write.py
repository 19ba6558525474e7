"""Writes processed profiles of the Firefox Profiler (csrc/firefox/write.h)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, Pointer, fp_firefox
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import DRAIN, Writer
from fastprof.core.model import Batch, Part, ValueType
from fastprof.core.parts import columns_for, comments_of, default_value, descriptions_of, merge_parts, remarks_of
from fastprof.core.reported import counts_of
from fastprof.core.spill import Groups
from fastprof.core.thread_ids import Threads
from fastprof.core.version import __version__
from fastprof.formats.firefox.reported import REPORTED

# Later front-ends upgrade profiles of earlier versions, and refuse those of later ones.
_VERSION = 60
_BUFFERED = 1 << 20  # bytes of columns spilled together
_MOST_NUMBER = (1 << 31) - 1  # of processes and threads
_UNITS = {
    "seconds": lib.FP_FIREFOX_SECONDS,
    "s": lib.FP_FIREFOX_SECONDS,
    "milliseconds": lib.FP_FIREFOX_UNCHANGED,
    "ms": lib.FP_FIREFOX_UNCHANGED,
    "microseconds": lib.FP_FIREFOX_MICROSECONDS,
    "us": lib.FP_FIREFOX_MICROSECONDS,
    "nanoseconds": lib.FP_FIREFOX_NANOSECONDS,
    "ns": lib.FP_FIREFOX_NANOSECONDS,
}
_KNOWN_UNITS = {*_UNITS, "bytes", "count", ""}  # the viewer knows no other units of weights
_COLOURS = (
    "blue",
    "green",
    "orange",
    "purple",
    "lightblue",
    "brown",
    "magenta",
    "red",
    "lightred",
    "yellow",
    "darkgrey",
)
# How a counter is drawn: its value, on its own track.
_COUNTER = {
    "graphType": "line-accumulated",
    "unit": "",
    "color": "grey",
    "markerSchemaLocation": None,
    "sortWeight": 50,
}
_EVENT = {
    "name": "event",
    "display": ["marker-chart", "marker-table"],
    "fields": [
        {"key": "data", "label": "Data", "format": "string"},
        {"key": "number", "label": "Type", "format": "integer"},
    ],
}


def _weight_type(value_type: ValueType) -> str:
    if value_type.unit in _UNITS:
        return "tracing-ms"
    return "bytes" if value_type.unit == "bytes" else "samples"


class FirefoxWriter(Writer):
    """Columns grow with the rows, in a temporary file if long, and are joined at the end: threads
    first, `meta` last."""

    format = "firefox"
    view = "stacks"

    def start(self) -> None:
        self._w = w = owned(lib.fp_firefox_new(self.model.c), "the Firefox writer")
        w.unknown, w.no_stack = self.model.intern("[unknown]"), self.model.intern("[no stack]")
        w.custom, w.typed = self.model.intern("custom event"), self.model.intern("typed event")
        self._packed = Groups()  # by column
        self._types: list[ValueType] | None = None
        self._columns: dict[int, Pointer[int]] = {}  # by part: for fp_firefox_put
        self._units: Pointer[int] = ffi.NULL
        self._named = False  # threads are named after themselves, not after the value type
        self._start = 0  # the first time of all threads

    # ---- rows -----------------------------------------------------------

    def put(self, batch: Batch) -> None:
        enough(lib.fp_firefox_put(self._begun(batch.part), batch.c, self._columns[batch.part]))
        if self._w.buffered > _BUFFERED:
            self._spill()

    def _begun(self, index: int) -> fp_firefox:
        """The writer, prepared for rows of a part."""
        w, part = self._w, self.model.parts[index]
        if self._types is None:
            timeline = self.view == "timeline"
            self._types = [] if timeline else [ValueType(t.name, t.unit) for t in part.value_types]
            w.n_values = len(self._types)
            w.units = self._units = ffi.new("int32_t[]", [_UNITS.get(t.unit, 0) for t in self._types] or 1)
        if index not in self._columns:
            columns = columns_for(part, self._types, self.log, REPORTED["value-types"]) if self._types else []
            self._columns[index] = ffi.new("int32_t[]", columns or 1)
        return w

    def _spill(self) -> None:
        w = self._w
        for column in ffi.unpack(w.dirty, w.n_dirty) if w.n_dirty else []:
            self._packed.add(column, w.columns[column])
        lib.fp_firefox_spilled(w)

    # ---- the profile ----------------------------------------------------

    def end(self) -> None:
        w, log, model = self._w, self.log, self.model
        if self._types is None:
            self._begun(model.add_part(Part()))
        if self.view == "timeline":
            enough(lib.fp_firefox_end(w))
        threads_in = [w.threads[k] for k in range(w.n_threads)]
        self._start = min((t.first for t in threads_in if t.first or self.view == "timeline"), default=0)
        part = merge_parts([model.parts[i] for i in self._columns], self._types or [])
        threads = Threads(model, _MOST_NUMBER, _MOST_NUMBER)
        self.text(b'{"threads":[')
        counters: list[int] = []
        placed: dict[int, tuple[int, int]] = {}  # by thread of the model: its index in the array, its process
        for k in range(w.n_threads):
            if w.threads[k].is_counter:
                counters.append(k)
                continue
            self.text(b"," if placed else b"")
            placed[w.threads[k].thread] = len(placed), self._thread(k, threads)
        self.text(b'],"shared":{')
        self._shared()
        self.text(b"}")
        if counters:
            self._counters(counters, placed)
        self.text(b',"libs":' + self._libs() + b',"meta":' + _text(self._meta(part)) + b"}\n")
        self.written = int(w.samples + w.events + w.values)
        log.rows["samples_written"] += int(w.samples)
        log.rows["markers_written"] += int(w.events)
        if w.values:
            log.rows["counter_values_written"] += int(w.values)
        log.count_all(
            REPORTED,
            counts_of(w)
            | {
                "value-names": len(self._types or ()) == 1 and self._named,
                "units": sum(t.unit not in _KNOWN_UNITS for t in self._types or ()),
                "start-time": self.view == "timeline" and self._start > 0,
                "thread-numbers": threads.renumbered,
            },
        )

    def _thread(self, k: int, threads: Threads) -> int:
        """Write a thread.  Returns its process."""
        t = self._w.threads[k]
        part = self.model.parts[t.part]
        if not self._types or k % len(self._types) == 0:
            self._ids = threads.ids_of(t.thread)
        ids = self._ids
        process_name, thread_name = threads.called(t.thread, ids, part)
        known = any(self.model.row("threads", t.thread))
        self._named = self._named or known
        value_type = self._types[k % len(self._types)] if self._types else None
        name = thread_name if value_type is None or known else value_type.name
        if known and value_type is not None and len(self._types or ()) > 1:
            name = f"{value_type.name}, {thread_name}"
        own = {"valueType": value_type.name, "valueUnit": value_type.unit} if value_type else {}
        if self.view == "stacks" and t.first:
            own["timesFrom"] = str(self._start)
        self._object(
            {
                "name": name,
                "processName": process_name,
                "pid": str(ids.pid),
                "tid": ids.tid,
                "isMainThread": ids.tid == ids.pid,
                "processType": "default",
                "processStartupTime": 0,
                "processShutdownTime": None,
                "registerTime": 0,
                "unregisterTime": None,
                "pausedRanges": [],
                **own,
            }
        )
        self.text(b',"samples":{')
        self._samples(k, value_type)
        self.text(b"},")
        self.text(b'"markers":{')
        self._markers(lib.FP_FIREFOX_SHARED + k * lib.FP_FIREFOX_STRIDE, t.markers)
        self.text(b"}}")
        return ids.pid

    def _samples(self, k: int, value_type: ValueType | None) -> None:
        t = self._w.threads[k]
        column = lib.FP_FIREFOX_SHARED + k * lib.FP_FIREFOX_STRIDE
        weights = column + lib.FP_FIREFOX_WEIGHT
        first_time = ffi.new("uint64_t *", t.first)
        self._array("stack", self._spilled(column + lib.FP_FIREFOX_STACK))
        if self.view == "timeline":
            self._array("timeDeltas", chain(self._times_at(first_time, 1), self._spilled(weights)))
            self._array("weight", chain(self._spilled(weights), self._repeated(b"0,", 1)))
            weight_type = "tracing-ms"
        else:
            if t.first:
                deltas = self._spilled(column + lib.FP_FIREFOX_DELTA)
                self._array("timeDeltas", chain(self._times_at(first_time, 1), deltas))
            else:
                self._array("time", self._numbers(t.samples))
            if value_type is not None:
                self._array("weight", self._spilled(weights))
            else:
                self.text(b'"weight":null,')
            weight_type = "samples" if value_type is None else _weight_type(value_type)
        self.text(b'"weightType":"%b","length":%d' % (weight_type.encode(), t.samples))

    def _markers(self, first: int, n: int) -> None:
        timeline = self.view == "timeline"
        self._array("data", self._spilled(first + lib.FP_FIREFOX_MARKER_DATA) if timeline else ())
        self._array("name", self._spilled(first + lib.FP_FIREFOX_MARKER_NAME) if timeline else ())
        self._array("startTime", self._times(first + lib.FP_FIREFOX_MARKER_TIME) if timeline else ())
        self._array("endTime", self._repeated(b"null,", n))
        self._array("phase", self._repeated(b"0,", n))
        self._array("category", self._repeated(b"0,", n))
        self.text(b'"length":%d' % n)

    def _counters(self, counters: list[int], placed: dict[int, tuple[int, int]]) -> None:
        w = self._w
        self.text(b',"counters":[')
        for place, k in enumerate(counters):
            t = w.threads[k]
            name = self._readable(self.model.string(t.name))
            thread, pid = placed[t.thread]
            value = {"type": "value", "source": "accumulated", "format": {"unit": "number"}, "label": name}
            self.text(b"," if place else b"")
            self._object(
                {
                    "name": name,
                    "category": "",
                    "description": "",
                    "pid": str(pid),
                    "mainThreadIndex": thread,
                    "display": {**_COUNTER, "label": name, "tooltipRows": [value]},
                }
            )
            first = lib.FP_FIREFOX_SHARED + k * lib.FP_FIREFOX_STRIDE
            self.text(b',"samples":{')
            self._array("time", self._times(first + lib.FP_FIREFOX_MARKER_TIME))
            self._array("count", self._spilled(first + lib.FP_FIREFOX_COUNT))
            self.text(b'"length":%d}}' % t.samples)
        self.text(b"]")

    def _readable(self, name: bytes) -> str:
        text = name.decode("utf-8", "surrogateescape")
        bad = {c for c in text if "\udc80" <= c <= "\udcff"}
        self._w.replaced += sum(map(text.count, bad))
        return text.translate(dict.fromkeys(map(ord, bad), "\ufffd"))

    def _shared(self) -> None:
        w = self._w

        def table(name: str, n: int, columns: dict[str, int | bytes]) -> None:
            """Write a table.  A column is an array of numbers or one repeated item."""
            self.text(b'"%b":{' % name.encode())
            for key, column in columns.items():
                self._array(key, self._repeated(column, n) if isinstance(column, bytes) else self._spilled(column))
            self.text(b'"length":%d},' % n)

        table(
            "stackTable",
            w.n_stacks,
            {"frame": lib.FP_FIREFOX_STACK_FRAME, "prefix": lib.FP_FIREFOX_STACK_PREFIX},
        )
        table(
            "frameTable",
            w.n_frames,
            {
                "address": lib.FP_FIREFOX_FRAME_ADDRESS,
                "inlineDepth": lib.FP_FIREFOX_FRAME_DEPTH,
                "category": lib.FP_FIREFOX_FRAME_CATEGORY,
                "subcategory": b"0,",
                "func": lib.FP_FIREFOX_FRAME_FUNC,
                "nativeSymbol": b"null,",
                "innerWindowID": b"0,",
                "line": lib.FP_FIREFOX_FRAME_LINE,
                "column": b"null,",
            },
        )
        table(
            "funcTable",
            w.n_funcs,
            {
                "name": lib.FP_FIREFOX_FUNC_NAME,
                "isJS": b"false,",
                "relevantForJS": b"false,",
                "resource": lib.FP_FIREFOX_FUNC_RESOURCE,
                "source": lib.FP_FIREFOX_FUNC_SOURCE,
                "lineNumber": lib.FP_FIREFOX_FUNC_LINE,
                "columnNumber": b"null,",
            },
        )
        self.text(b'"resourceTable":{')
        self._array("lib", self._numbers(w.n_resources))
        self._array("name", self._spilled(lib.FP_FIREFOX_RESOURCE_NAME))
        self._array("host", self._repeated(b"null,", w.n_resources))
        self._array("type", self._repeated(b"1,", w.n_resources))
        self.text(b'"length":%d},' % w.n_resources)
        table("sources", w.n_sources, {"uuid": b"null,", "filename": lib.FP_FIREFOX_SOURCE_NAME})
        self.text(b'"nativeSymbols":{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0},')
        self._array("stringArray", self._spilled(lib.FP_FIREFOX_STRINGS))
        self._trim()

    def _libs(self) -> bytes:
        libs = []
        for path, build_id, from_base in self._objects():
            name = path.rpartition("/")[2]
            libs.append(
                {
                    "arch": "",
                    "name": name,
                    "path": path,
                    "debugName": name,
                    "debugPath": path,
                    "breakpadId": "",
                    "codeId": build_id or None,
                    **({"addresses": "base"} if from_base else {}),  # for reading back: others are file offsets
                }
            )
        return _text(libs)

    def _objects(self) -> Iterator[tuple[str, str, bool]]:
        """Of each resource the path, the build id, and whether addresses count from its base."""
        model = self.model
        for i in range(self._w.n_resources):
            name, build_id = (
                model.string(id_).decode("utf-8", "replace") for id_ in model.row("objects", self._w.libraries[i] >> 1)
            )
            yield name, build_id, bool(self._w.libraries[i] & 1)

    def _meta(self, part: Part) -> dict[str, Any]:
        timeline = self.view == "timeline"
        names = [path.rpartition("/")[2] for path, *_ in self._objects()]
        categories = [("Other", "grey"), *zip(names, _COLOURS, strict=False)]
        texts = [(key or b"Comment", text) for key, text in descriptions_of(part)]
        texts += [(b"Comment", text) for text in (*comments_of(part), *remarks_of(part))]
        if part.command:
            texts.append((b"Command", part.command))
        entries = [
            {"label": self._readable(key), "format": "string", "value": self._readable(text)} for key, text in texts
        ]
        if not timeline and not self._start:
            entries.append({"label": "Times", "format": "string", "value": "none: samples are numbered from 0 on"})
        return {
            "interval": 0.001 if timeline else self._interval(part),
            "startTime": part.extra.get("time_ns", 0) / 1e6,
            "preprocessedProfileVersion": _VERSION,
            "version": 30,
            "processType": 0,
            "stackwalk": 0,
            "symbolicated": True,
            "product": f"fastprof-{__version__}",
            "categories": [{"name": name, "color": colour, "subcategories": ["Other"]} for name, colour in categories],
            "markerSchema": [_EVENT],
            **self._default(part),
            "extra": [{"label": "fastprof", "entries": entries}],
        }

    def _default(self, part: Part) -> dict[str, Any]:
        """The default value type, whose longest thread the viewer selects."""
        types, threads = self._types or [], self._w.threads
        if len(types) < 2:
            return {}
        default = default_value(part, "stacks")
        longest = max(range(default, self._w.n_threads, len(types)), key=lambda k: threads[k].samples, default=0)
        return {"defaultValueType": types[default].name, "initialSelectedThreads": [longest]}

    def _interval(self, part: Part) -> float:
        """Milliseconds from a sample to the next."""
        _, unit = part.extra.get("period_type", ("", ""))
        is_time = self._start and unit == "nanoseconds" and part.extra.get("period", 0) > 0
        return part.extra["period"] / 1e6 if is_time else 1

    # ---- arrays ---------------------------------------------------------

    def _object(self, fields: dict[str, Any]) -> None:
        """Write an object without its closing brace."""
        self.text(_text(fields)[:-1])

    def _array(self, key: str, pieces: Iterable[None]) -> None:
        """Write "key":[...].  Each piece appends items, each followed by a comma."""
        self.text(b'"%b":[' % key.encode())
        before = self.sink.written + self.out.n
        for _ in pieces:
            if self.out.n >= DRAIN:
                self._drain_but_one()
        if self.sink.written + self.out.n > before:
            self._trim()
        self.text(b"],")

    def _drain_but_one(self) -> None:
        """Drain the output except its last byte, which may be a trailing comma."""
        last = self.out.p[self.out.n - 1]
        self.out.n -= 1
        self.drain()
        self.text(bytes([last]))

    def _trim(self) -> None:
        """Remove the trailing comma."""
        self.out.n -= 1

    def _spilled(self, column: int) -> Iterator[None]:
        for in_ in self._packed.windows(column, self._w.columns[column]):
            enough(lib.fp_buf_reserve(self.out, in_.n))
            ffi.memmove(self.out.p + self.out.n, in_.p, in_.n)
            self.out.n += in_.n
            yield

    def _times_at(self, times: Pointer[int], n: int) -> Iterator[None]:
        """Write times in nanoseconds as milliseconds since the earliest time of all threads."""
        enough(lib.fp_firefox_times(ffi.cast("uint8_t *", times), n, self._start, self.out))
        yield

    def _times(self, column: int) -> Iterator[None]:
        for in_ in self._packed.windows(column, self._w.columns[column]):
            yield from self._times_at(in_.p, in_.n // 8)

    def _repeated(self, item: bytes, n: int) -> Iterator[None]:
        for at in range(0, n, DRAIN // 8):
            enough(lib.fp_firefox_repeat(item, len(item), min(DRAIN // 8, n - at), self.out))
            yield

    def _numbers(self, n: int) -> Iterator[None]:
        for at in range(0, n, DRAIN // 8):
            enough(lib.fp_firefox_count(at, min(at + DRAIN // 8, n), self.out))
            yield


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
