"""A database of SQLite that is not trusted: opened read-only, and only ordinary tables are read."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from urllib.parse import quote

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.source import WINDOW, Source
from fastprof.core.streams import temporary_failed

_MOST = 64 << 20  # bytes of a text
_CACHE = -2000  # KiB
_NEEDED = 2 * _MOST  # bytes, more than SQLite takes
_ORDINARY = re.compile(r"CREATE TABLE\b", re.IGNORECASE)


class Place(NamedTuple):
    """A thread: its process (a key and a name) and itself (a key, a name, and the id to show)."""

    process: object
    process_name: bytes
    thread: object
    name: bytes = b""
    id: bytes = b""


class Query(NamedTuple):
    """Rows of a table.  Columns: begin, end, those of names and those of threads."""

    table: str
    category: bytes
    times: tuple[str, str]
    names: tuple[str, ...]
    threads: tuple[str, ...]
    name: Callable[..., bytes]  # of the values of `names`; empty: unknown
    place: Callable[..., Place]  # of the values of `threads`
    kind: Callable[..., int] | None = None  # of the values of `names`, if the rows are of several kinds


CALL, EVENT, SKIPPED = 0, 1, 2


def copy_of(source: Source) -> Any:
    """A temporary file with what is not a file, because SQLite opens files by path; None for a file."""
    source.spool()
    if source.path is not None and not source.compression and source.compressed_size and not source.pinned:
        return None
    try:
        copy, at = tempfile.NamedTemporaryFile(prefix="fastprof-", suffix=".sqlite"), 0
        while data := source.read_at(at, WINDOW):
            at += copy.write(data)
        copy.flush()
    except OSError as error:
        raise temporary_failed(error) from None
    return copy


@contextmanager
def _asking() -> Iterator[None]:
    """SQLite also reports that memory is out if a length in the file is too large for it.  Errors: MemoryError only
    if there is no memory for what it may take."""
    try:
        yield
    except MemoryError:
        bytes(_NEEDED)
        raise sqlite3.DatabaseError("has a length that SQLite cannot allocate") from None


class Database:
    """The tables of the file at `path`, whose content `source` has, too.  Errors: sqlite3.Error."""

    @_asking()
    def __init__(self, source: Source, path: str) -> None:
        self._most_rows = source.size or 0
        self._db = sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        self._db.text_factory = bytes
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("query_only=1", "trusted_schema=0", "cell_size_check=1", "mmap_size=0", f"cache_size={_CACHE}"):
            self._db.execute(f"PRAGMA {pragma}")
        found = self._db.execute("SELECT name, sql, rootpage FROM sqlite_master WHERE type = 'table'").fetchall()
        ordinary = [(_str(name), root) for name, sql, root in found if _ORDINARY.match(_str(sql))]
        self._keys = set[tuple[str, str]]()  # columns by which a row is found at once
        self.tables = {name: self._columns(name) for name, _ in ordinary}
        page = int.from_bytes(source.head[16:18], "big")
        size = 65_536 if page == 1 else page
        self.places = {name: (root - 1) * size for name, root in ordinary if isinstance(root, int)}  # offsets

    def close(self) -> None:
        self._db.close()

    def _columns(self, table: str) -> frozenset[str]:
        """Without generated and hidden ones."""
        found = self._db.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        self._keys |= {(table, _str(name)) for _, name, *_, place in found if place == 1}
        return frozenset(_str(name) for _, name, *_ in found)

    def select(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """The rows, in the table's order; texts are bytes.  Rows are counted: pages may be linked again and again."""
        with _asking():
            rows = self._db.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table)}")
            yield from islice(rows, self._most_rows)
            if next(rows, None) is not None:
                raise sqlite3.DatabaseError("has more rows than the file has bytes")

    def mapped(self, table: str, key: str, *columns: str) -> dict[Any, Any]:
        """The first of the columns that the table has, by key; {} without the table."""
        there = [column for column in columns if column in self.tables.get(table, ())]
        if not there or key not in self.tables[table]:
            return {}
        return {row[0]: row[1] for row in self.select(table, key, there[0])}

    def names(self, table: str, key: str, *columns: str) -> Callable[[object], bytes]:
        """The name of a key; a key other than a number is itself a name.  A row is read only when a caller wants its
        name: RPD also has a string for the arguments of each call."""
        there = [column for column in columns if column in self.tables.get(table, ())]
        if not there or (table, key) not in self._keys:
            found = self.mapped(table, key, *columns)
            return lambda id: text(found.get(id)) if isinstance(id, int) else text(id)
        query = f"SELECT {_quoted(there[0])} FROM {_quoted(table)} WHERE {_quoted(key)} = ?"

        @_asking()
        def of(id: object) -> bytes:
            row = self._db.execute(query, (id,)).fetchone() if isinstance(id, int) else (id,)
            return text(row[0]) if row else b""

        return of


def _str(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: object) -> bytes:
    """A name; empty if it is none."""
    return value if isinstance(value, bytes) else b"%d" % value if isinstance(value, int) else b""
