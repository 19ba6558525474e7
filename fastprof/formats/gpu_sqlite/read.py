"""Reads SQLite databases of GPU profilers: rows become calls of threads and streams (csrc/core/span_sink.h)."""

import sqlite3
import struct
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Reader
from fastprof.core.errors import FormatError
from fastprof.core.model import Part
from fastprof.core.options import LENIENT, MAX_MEMORY
from fastprof.core.spill import MOST_ROUNDS, Spilled
from fastprof.formats.gpu_sqlite.database import CALL, EVENT, SKIPPED, Database, Query, copy_of
from fastprof.formats.gpu_sqlite.nsys import Nsys, is_nsys
from fastprof.formats.gpu_sqlite.reported import REPORTED
from fastprof.formats.gpu_sqlite.rocpd import Rocpd, is_rocpd

_SPAN = struct.Struct("=QQIIHHI")  # struct fp_span
_ROWS = 4096
_MOST = (1 << 63) - 1
_OWN = 1 << 30  # numbers from here on are not of the system


class GpuSqliteReader(Reader):
    """A timeline in nanoseconds: streams and threads are threads, objects are categories.

    Loses sizes, correlations and further columns of rows; tables with times of other kinds are counted."""

    format = "gpu-sqlite"
    view = "timeline"

    def start(self) -> None:
        self.part = self.model.add_part(Part(extra={"ticks_per_second": 10**9}))
        self._s = owned(lib.fp_span_sink_new(self.model.c), "the calls of a database")
        self._s.rounds.most = min(self.options[MAX_MEMORY], MOST_ROUNDS)
        self._spilled = Spilled()
        self._lenient: bool = self.options[LENIENT]
        self._is_read = False
        self._counts = dict.fromkeys(("broken-rows", "unreadable-rest", "other-tables", "unnamed-calls"), 0)
        self._numbers = dict[object, int]()  # of processes and threads that are not of the system
        self._names: tuple[dict[int, bytes], dict[tuple[int, int], bytes], dict[int, bytes]] = {}, {}, {}

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        self._input = self.model.input()
        self.source.spool()
        yield 0, 0  # SQLite reads the file

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        if not self._is_read:
            self._read()
            self._is_read = True
        batch.part = self.part
        while (status := lib.fp_span_sink_pull(self._s, batch)) == lib.FP_NEEDS:
            self._spilled.answer(self._s.rounds)
        return int(status)

    # ---- rows

    def _read(self) -> None:
        table, db, copy = "", None, copy_of(self.source)
        try:
            db = Database(self.source, copy.name if copy else str(self.source.path))
            if not is_nsys(db) and not is_rocpd(db):
                tables = ", ".join(sorted(db.tables)[:8])
                raise self._fail(f"has no tables of Nsight Systems or rocpd, but {tables or 'none'}")
            meaning: Any = Nsys(db) if is_nsys(db) else Rocpd(db)
            self.log.facts["profiler"] = "nsys" if is_nsys(db) else "rocpd"
            queries = [*meaning.queries()]
            used = {query.table for query in queries}
            others = [table for table in db.tables.keys() - used if "start" in db.tables[table]]
            self._counts["other-tables"] = sum(next(db.select(table, "start"), None) is not None for table in others)
            for query in queries:
                table = query.table
                self._read_table(db, query)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # that of a name of a column in a message
            if not self._lenient or not table:
                what = (f"table {table}: " if table else "") + str(error)
                what += f", in the temporary copy {copy.name}" if copy else ""
                raise self._fail(what, db, table) from None
            self._counts["unreadable-rest"] = 1
        finally:
            for opened in filter(None, (db, copy)):
                opened.close()

    def _fail(self, what: str, db: Database | None = None, table: str = "") -> FormatError:
        """With the offset of the table's first page."""
        offset = db.places.get(table, 0) if db is not None else 0
        return self.damaged(what, offset)

    def _read_table(self, db: Database, query: Query) -> None:
        """Errors: FormatError with the number of the row; sqlite3.Error."""
        spans, n, row = bytearray(_ROWS * _SPAN.size), 0, None
        functions, threads = dict[object, tuple[int, int, int]](), dict[object, int]()
        k = 2 + len(query.names)
        try:
            for number, row in enumerate(self._rows(db, query), 1):
                names, places = row[2:k], row[k:]
                try:
                    if (found := functions.get(names)) is None:
                        found = functions[names] = self._function(query, names)
                    kind, function, string = found
                    if kind == SKIPPED:
                        continue
                    if (thread := threads.get(places)) is None:
                        thread = threads[places] = self._thread(query, places)
                    begin, end = row[:2]
                    is_open = kind == EVENT or ((end is None or end < begin) and query.kind is not None)
                    if not 0 <= begin <= _MOST or (not is_open and not begin <= end <= _MOST):
                        raise ValueError
                    of = (string, thread, 1) if is_open else (function, thread, 0)
                    _SPAN.pack_into(spans, n * _SPAN.size, begin, begin if is_open else end, *of, 0, 0)
                except (TypeError, ValueError, struct.error):
                    if not self._lenient:
                        values = ", ".join(
                            f"{name} {value!r:.40}" for name, value in zip(_columns(query), row, strict=True)
                        )
                        raise self._fail(f"table {query.table}: row {number:,}: {values}", db, query.table) from None
                    self._counts["broken-rows"] += 1
                    continue
                n += 1
                if n == _ROWS:
                    self._put(spans, n)
                    self.model.check_memory()
                    n = 0
        finally:
            self._put(spans, n)

    def _rows(self, db: Database, query: Query) -> Iterator[tuple[Any, ...]]:
        return db.select(query.table, *_columns(query))

    def _put(self, spans: bytearray, n: int) -> None:
        data = ffi.cast("struct fp_span *", ffi.from_buffer(spans))
        while enough(lib.fp_span_sink_put(self._s, data, n)) == lib.FP_NEEDS:
            self._spilled.answer(self._s.rounds)

    def _function(self, query: Query, values: tuple[Any, ...]) -> tuple[int, int, int]:
        """The kind of rows with these names, the function, and the string of the name."""
        kind = query.kind(*values) if query.kind else CALL
        name = query.name(*values) if kind != SKIPPED else b""
        self._counts["unnamed-calls"] += not name and kind != SKIPPED
        name = name or b"[unknown]"
        object_id = self.model.object(query.category)
        return kind, self.model.function(name, b"", object_id), self.model.intern(name)

    def _thread(self, query: Query, values: tuple[Any, ...]) -> int:
        found, (processes, threads, ids) = query.place(*values), self._names
        pid, tid = self._number(found.process), self._number(found.thread)
        if not isinstance(found.process, int):
            ids[pid] = b""
        if not isinstance(found.thread, int):
            ids[tid] = found.id
        if found.process_name:
            processes[pid] = found.process_name
        if found.name:
            threads[pid, tid] = found.name
        return self.model.thread(pid, tid, self._input)

    def _number(self, key: object) -> int:
        if isinstance(key, int):
            if not 0 <= key < _OWN:
                raise ValueError
            return key
        return self._numbers.setdefault(key, _OWN + len(self._numbers))

    def finish(self) -> None:
        self.model.names.put(self.model.parts[self.part], self._input, *self._names)
        self._counts |= {"overlapping-calls": int(self._s.lanes), "shortened-calls": int(self._s.cut)}
        self.log.count_all(REPORTED, self._counts)


def _columns(query: Query) -> tuple[str, ...]:
    return *query.times, *query.names, *query.threads
