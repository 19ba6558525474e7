"""Reads profiles of the Firefox Profiler (csrc/firefox/read.h)."""

from collections.abc import Iterator

from fastprof.core import lazy_re as re
from fastprof.core._c import lib
from fastprof.core._typing import (
    Any,
    fp_batch,
    fp_err,
    fp_firefox_lib,
    fp_firefox_read,
    fp_firefox_table,
    fp_firefox_thread_in,
    fp_window,
)
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Reader
from fastprof.core.model import MAX_VALUE_TYPES, Part, ValueType
from fastprof.core.options import LENIENT, MAX_MEMORY
from fastprof.core.reported import counts_of
from fastprof.core.spill import MOST_ROUNDS, Groups, Spilled
from fastprof.formats.firefox import MARKERS
from fastprof.formats.firefox.reported import REPORTED

_NONE = -(1 << 63)
_OF_MARKERS = (  # counted with each view
    "counters",
    "counter-values",
    "overlapping-markers",
    "shortened-markers",
    "unpaired-markers",
    "unreadable-values",
)
_NEWEST = 70  # the last version whose changes are known
_MOST_ID = (1 << 31) - 1  # of processes and threads; viewers accept no larger ones
_PLACE = 1 << 40  # size of the address range of each library
_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){4,64}")
_BREAKPAD_ID = re.compile(r"([0-9A-F]{8})([0-9A-F]{4})([0-9A-F]{4})([0-9A-F]{16})[0-9A-F]{0,8}")
_CPU = {  # by unit: value type; the divisor of numbers with 3 decimals
    "ns": (ValueType("cpu", "nanoseconds"), 1000),
    "µs": (ValueType("cpu", "nanoseconds"), 1),
    "us": (ValueType("cpu", "nanoseconds"), 1),
    "variable CPU cycles": (ValueType("cpu_cycles", "count"), 1000),
}
_UNITS = {"Memory": b"bytes", "Bandwidth": b"bytes", "power": b"pWh"}  # of counters, by category
_JS = ValueType("js_alloc_space", "bytes")
_NATIVE = ValueType("native_alloc_space", "bytes")
_RETAINED = ValueType("native_inuse_space", "bytes")
_OURS = "fastprof-"  # the product of profiles written by fastprof begins with this


def _build_id(code_id: str, breakpad_id: str) -> str:
    """The build id of an ELF file, or its first 16 bytes; "" if there is none.

    A Breakpad id is a GUID, whose first three groups are numbers, followed by an age.
    """
    if _BUILD_ID.fullmatch(code_id.lower()):
        return code_id.lower()
    if not (match := _BREAKPAD_ID.fullmatch(breakpad_id.upper())) or not breakpad_id.strip("0"):
        return ""
    numbers = (bytes.fromhex(group)[::-1] for group in match.groups()[:3])
    return (b"".join(numbers) + bytes.fromhex(match[4])).hex()


class FirefoxReader(Reader):
    """Samples and allocations with their value types, or markers as a timeline."""

    format = "firefox"
    other_view = "timeline"
    has_tracks = True
    renews_stacks = True

    def start(self) -> None:
        self._r = self._new()
        self.view = "timeline" if self.options[MARKERS] else "stacks"
        self.addresses = self.view == "stacks"
        self._columns, self._spilled = Groups(), Spilled()
        self._windows: dict[int, Iterator[fp_window]] = {}  # by column of the current table
        self._window: dict[int, fp_window] = {}
        self._tables: Iterator[tuple[int, bool]] | None = None  # to be read; None during the scan
        self._types: list[ValueType] = []
        self._thread_of: dict[int, int] = {}  # by counter: its thread + 1, beyond those of the file for `counters`
        self._part = -1
        self._unread_cpu = 0

    def _new(self) -> fp_firefox_read:
        r = owned(lib.fp_firefox_read_new(self.model.c, self.options[LENIENT]), "the reader of Firefox profiles")
        r.rounds.most = min(self.options[MAX_MEMORY], MOST_ROUNDS)
        return r

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        if b'"preprocessedProfileVersion"' not in self.source.head:  # raw: rows may come before their schema
            self.source.spool()
        self._r.again = self.source.seekable
        yield 0, None
        if self._r.counts.early:
            first, self._r = self._r, self._new()
            self._r.before = first
            self._columns = Groups()
            yield 0, None

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        r.timeline = self.view == "timeline"
        if self._tables is None:
            while (status := int(lib.fp_firefox_scan(r, in_, err))) == lib.FP_NEEDS:
                self._spill()
            if status != lib.FP_DONE or r.counts.early:
                return status
            self._plan()
            self._tables = self._order()
            if not self._begin_next(err):
                return int(err.code)
        if self._part < 0:
            return int(lib.FP_DONE)
        batch.part = self._part
        if self._types:
            enough(lib.fp_batch_set_values(batch, len(self._types)))
        while self._table >= 0:
            status = int(lib.fp_firefox_rows(r, batch, err))
            if status == lib.FP_NEEDS:
                self._answer()
            elif status != lib.FP_DONE:
                return status
            elif not self._begin_next(err):
                return int(err.code)
        return int(lib.FP_DONE)

    # ---- tables

    def _order(self) -> Iterator[tuple[int, bool]]:
        """The tables in reading order: the shared ones, then those of each thread with its counters.  True: markers
        and values of counters become rows after this one."""
        r = self._r
        of_threads: dict[int, list[tuple[int, int]]] = {}
        for i in range(r.n_tables):
            kind, thread = r.tables[i].kind, r.tables[i].thread
            if kind == lib.FP_FIREFOX_COUNTERS:
                thread = self._thread_of.get(thread - 1, 0)
            of_threads.setdefault(thread, []).append((kind, i))
        shared = {kind for kind, _ in of_threads.get(0, ())}
        for thread, tables in sorted(of_threads.items()):
            wanted = [(kind, i) for kind, i in tables if self._is_wanted(kind) and not (thread and kind in shared)]
            if thread <= r.n_threads:
                lib.fp_firefox_use_thread(r, thread)
            wanted.sort()
            last = len(wanted) - 1
            yield from ((i, k == last and kind >= lib.FP_FIREFOX_MARKERS) for k, (kind, i) in enumerate(wanted))

    def _is_wanted(self, kind: int) -> bool:
        if self.view == "timeline":
            return kind == lib.FP_FIREFOX_STRING_TABLE or kind >= lib.FP_FIREFOX_MARKERS
        return kind < lib.FP_FIREFOX_MARKERS

    def _begin_next(self, err: fp_err) -> bool:
        """Start the next table.  False: an error."""
        assert self._tables is not None
        self._windows, self._window = {}, {}
        self._table, pulls = next(self._tables, (-1, False))
        return self._table < 0 or lib.fp_firefox_begin(self._r, self._table, pulls, err) >= 0

    def _spill(self) -> None:
        r, n = self._r, lib.FP_FIREFOX_COLUMNS
        for i in range(r.n_dirty):
            table, column = divmod(int(r.dirty[i]), n)
            self._columns.take(table * n + column, r.tables[table].kept[column])
        lib.fp_firefox_kept(r)

    def _answer(self) -> None:
        r = self._r
        if r.request == lib.FP_FIREFOX_WINDOW:
            column = int(r.requested_column)
            if column not in self._windows:
                kept = r.tables[self._table].kept[column]
                self._windows[column] = self._columns.windows(self._table * lib.FP_FIREFOX_COLUMNS + column, kept)
            self._window[column] = window = next(self._windows[column])
            lib.fp_firefox_window(r, window.p, window.n)
            return
        self._spilled.answer(r.rounds)

    # ---- threads, libraries and values

    def _text(self, string: int) -> str:
        return self.model.string(string).decode("utf-8", "replace")

    def _plan(self) -> None:
        """Define threads, libraries and value types of the model."""
        r, model = self._r, self.model
        processes = [r.processes[i] for i in range(r.n_processes)]
        self._check_version(processes[0].preprocessed if processes else -1)
        self._ours = bool(processes) and self._text(processes[0].product).startswith(_OURS)
        if self.view == "stacks":
            self._place_libs()
        part = Part(extra={"ticks_per_second": 1_000_000_000} if self.view == "timeline" else {})
        if processes and processes[0].start_ns > 0:
            part.extra["time_ns"] = int(processes[0].start_ns)
        self._name_threads(part)
        if self.view == "stacks":
            self._choose_types()
            part.value_types = self._types
            if len(self._types) > 1:  # without this the last one is the default
                stated = self._text(processes[0].default_value) if self._ours else ""
                part.extra["default_sample_type"] = stated or self._types[0].name
            if processes and processes[0].interval_ns > 0 and not self._ours:
                part.extra |= {"period": int(processes[0].interval_ns), "period_type": ("time", "nanoseconds")}
        self._part = model.add_part(part)

    def _check_version(self, version: int) -> None:
        if version > _NEWEST:
            self.log.warn(REPORTED["newer-version"], file=self.source.name, version=version, newest=_NEWEST)

    def _name_threads(self, part: Part) -> None:
        """Add a thread of the model for each thread of the file.  Its ids may be texts, missing or reused."""
        r, model = self._r, self.model
        input_ = model.input()
        free = _MOST_ID
        used: dict[tuple[int, int], str] = {}
        texts: dict[str, int] = {}  # numbers for process ids that are not numbers
        process_names: dict[int, bytes] = {}
        names = self._thread_names = dict[tuple[int, int], bytes]()
        ids = self._ids = dict[int, bytes]()  # of the file, by our number
        start = self._start_of(0)
        for i in range(r.n_threads):
            thread = r.threads[i]
            pid_text, tid_text = self._text(thread.pid), self._text(thread.tid)
            pid, tid = self._number(pid_text), self._number(tid_text)
            name = self._text(thread.name)
            if not pid_text:
                pid = 0
            if pid < 0:
                if pid_text not in texts:
                    texts[pid_text], free = free, free - 1
                    ids[texts[pid_text]] = pid_text.encode()
                pid = texts[pid_text]
            # fastprof writes a thread once for each value type
            mine = f"{tid_text} {name if not thread.has_value else ''}"
            if tid < 0 or used.get((pid, tid), mine) != mine or ((pid, tid) in used and not thread.has_value):
                tid, free = free, free - 1
                ids[tid] = tid_text.encode()
            used[pid, tid] = mine
            thread.thread = model.thread(pid, tid, input_)
            if self._ours and self.view == "stacks":
                thread.start_ns = self._own_start(self._text(thread.times_from))
            else:
                thread.start_ns = self._times_from(thread.process, start)
            self._add_name(thread, pid, tid, name)
            if thread.process_name:
                process_names.setdefault(pid, model.string(thread.process_name))
        self._place_counters(start, free, input_)
        model.names.put(part, input_, process_names, names, ids)

    def _place_counters(self, start: int, free: int, input_: int) -> None:
        """Give each counter the thread that its process begins with, or one named `counters` if it has none."""
        r, model = self._r, self.model
        first: dict[tuple[int, int], int] = {}  # by process and the text of its id
        for i in reversed(range(r.n_threads)):
            first[r.threads[i].process, r.threads[i].pid] = first[r.threads[i].process, 0] = i
        # by the text of a process's id: its place after the threads of the file, its thread
        lanes: dict[str, tuple[int, int]] = {}
        for i in range(r.n_of_counters if self.view == "timeline" else 0):
            counter = r.of_counters[i]
            counter.start_ns = self._times_from(counter.process, start)
            if unit := _UNITS.get(self._text(counter.category)):
                model.counter_unit(counter.name or counter.category, unit)
            thread = counter.main_thread if 0 <= counter.main_thread < r.n_threads else -1
            thread = first.get((counter.process, counter.pid), thread) if thread < 0 else thread
            if thread >= 0:
                self._thread_of[i], counter.thread = thread + 1, r.threads[thread].thread
                continue
            pid_text = self._text(counter.pid)
            if pid_text not in lanes:
                pid = max(0, self._number(pid_text))
                lanes[pid_text] = r.n_threads + 1 + len(lanes), model.thread(pid, free, input_)
                self._thread_names[pid, free], self._ids[free] = b"counters", b""
                free -= 1
            self._thread_of[i], counter.thread = lanes[pid_text]

    def _add_name(self, thread: fp_firefox_thread_in, pid: int, tid: int, name: str) -> None:
        if thread.has_value:  # "cpu, main"
            kind, _, name = name.partition(", ")
            if kind != self._text(thread.value) or not name:
                return
        if name:
            self._thread_names[pid, tid] = name.encode()

    @staticmethod
    def _number(text: str) -> int:
        """The number of a process or thread, or -1."""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= _MOST_ID else -1

    def _start_of(self, process: int) -> int:
        r = self._r
        return int(r.processes[process].start_ns) if process < r.n_processes else _NONE

    def _times_from(self, process: int, start: int) -> int:
        """The origin of a process's times: the start of the profile for a timeline, otherwise 1970."""
        own = self._start_of(process)
        if self.view == "timeline":
            return own - start if _NONE not in (own, start) else 0
        return own

    @staticmethod
    def _own_start(text: str) -> int:
        """The origin of times that fastprof wrote."""
        is_time = text.isascii() and text.isdigit() and len(text) < 20 and int(text) < 1 << 63
        return int(text) if is_time else _NONE

    # ---- libraries

    def _place_libs(self) -> None:
        """Define objects and mappings.  Addresses are relative to their library, so each library gets its own range.
        In profiles written by fastprof they are file offsets, unless the library states otherwise."""
        r, model = self._r, self.model
        lib.fp_firefox_sort_libs(r)
        places: dict[tuple[int, int], tuple[int, int]] = {}  # by object and flags: mapping and base
        for i in range(r.n_libs):
            one = r.libs[i]
            one.object = self._object(one)
            in_file = self._ours and self._text(one.addresses) != "base"
            flags = 0 if in_file else lib.FP_MAPPING_FROM_BASE
            if one.start == _NONE or one.end == _NONE:
                key = one.object, flags
                if key not in places and len(places) + 1 < (1 << 63) // _PLACE:
                    base = (len(places) + 1) * _PLACE
                    places[key] = model.mapping(one.object, base, base + _PLACE, 0, flags), base
                one.mapping, one.base = places.get(key, (0, 0))
            elif 0 <= one.start < one.end:
                offset = max(0, one.offset)
                one.mapping = model.mapping(one.object, one.start, one.end, offset, flags)
                one.base = max(0, one.start - offset)

    def _object(self, one: fp_firefox_lib) -> int:
        path, name = self._text(one.path), self._text(one.debug_name) or self._text(one.name)
        build_id = _build_id(self._text(one.code_id), self._text(one.breakpad_id))
        return self.model.object(path or name, build_id)

    # ---- value types

    def _choose_types(self) -> None:
        r = self._r
        types: dict[ValueType, int] = {}

        def column(value_type: ValueType) -> int:
            return types.setdefault(value_type, len(types))

        samples = [
            r.tables[i] for i in range(r.n_tables) if r.tables[i].thread and r.tables[i].kind < lib.FP_FIREFOX_MARKERS
        ]
        for table in samples:
            table.value_column = table.second_column = -1
            thread = r.threads[table.thread - 1]
            if table.kind == lib.FP_FIREFOX_SAMPLES:
                self._choose_sample_types(table, thread, column)
        for table in samples:
            if table.kind == lib.FP_FIREFOX_JS:
                table.value_column = column(_JS)
            elif table.kind == lib.FP_FIREFOX_NATIVE:
                table.value_column, table.second_column = column(_NATIVE), column(_RETAINED)
        if len(types) > MAX_VALUE_TYPES:
            raise self.damaged(f"samples have {len(types):,} value types, expected up to {MAX_VALUE_TYPES:,}")
        self._types = list(types) or [ValueType("samples", "count")]

    def _choose_sample_types(self, table: fp_firefox_table, thread: fp_firefox_thread_in, column: Any) -> None:
        kind = self._text(table.weight_type)
        has_weights = bool(table.has >> lib.FP_FIREFOX_IN_WEIGHT & 1)
        is_time = has_weights and kind == "tracing-ms"
        table.weights = lib.FP_FIREFOX_MS if is_time else lib.FP_FIREFOX_WHOLE
        if thread.has_value:
            unit = "nanoseconds" if is_time else self._text(thread.value_unit)
            value_type = ValueType(self._text(thread.value), unit)
        elif is_time:
            value_type = ValueType("time", "nanoseconds")
        elif has_weights and kind == "bytes":
            value_type = ValueType("size", "bytes")
        else:
            value_type = ValueType("samples", "count")
        table.value_column = column(value_type)
        if not table.has >> lib.FP_FIREFOX_IN_CPU & 1 or not table.numbers[lib.FP_FIREFOX_IN_CPU]:
            return
        unit = self._text(self._r.processes[thread.process].cpu_unit) or "ns"
        if unit in _CPU:
            cpu, table.cpu_divisor = _CPU[unit]
            table.second_column = column(cpu)
        else:
            self._unread_cpu += 1

    # ---- the end

    def has_other_rows(self) -> bool:
        return bool(self._r.counts.markers or self._r.counts.counters)

    def finish(self) -> None:
        r, log = self._r, self.log
        is_timeline = self.view == "timeline"
        samples = (lib.FP_FIREFOX_SAMPLES, lib.FP_FIREFOX_JS, lib.FP_FIREFOX_NATIVE)
        found = counts_of(r.counts)
        if self.reads_second_view and not self.is_second:
            found["counters"] = 0
        if self.is_second:
            log.count_all(REPORTED, {code: found[code] for code in _OF_MARKERS})
            return
        if is_timeline:
            tables = (r.tables[i] for i in range(r.n_tables))
            log.count(REPORTED["samples"], sum(max(table.numbers) for table in tables if table.kind in samples))
        if is_timeline or self.reads_second_view:
            found["markers"] = 0
        log.count_all(REPORTED, found | {"cpu-units": self._unread_cpu})
        facts = log.facts
        facts["threads_in_file"] = int(r.n_threads)
        if r.n_processes:
            first = r.processes[0]
            version = first.preprocessed if first.preprocessed >= 0 else first.version
            facts["version"] = f"{'processed' if first.preprocessed >= 0 else 'Gecko'} {version}"
            facts["processes"] = int(r.n_processes)
            if first.product:
                self.stated = {"product": self._text(first.product)}
