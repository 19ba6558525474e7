"""Queries profiles with SQL, through DuckDB."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from types import TracebackType

from fastprof import plan
from fastprof.core._typing import IO, TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.log import Log
from fastprof.core.options import Option
from fastprof.core.streams import standard_stream, temporary_failed, temporary_file
from fastprof.core.words import install
from fastprof.verbs.profile import Profile, Table, table_end
from fastprof.verbs.run import listed

if TYPE_CHECKING:
    from typing import Unpack

    from fastprof.verbs.keywords import OpenOptions

_ROWS = 4096  # rows fetched at a time


@cache
def options() -> list[Option[Any]]:
    """The options of `sql`."""
    return plan.options_of(table_end(None))


class Answer:
    """The result of a query: names of `columns`, whether each holds numbers, and `rows` while it is open.

    `log` adds up what the logs of the profiles have; it is complete when all rows were read.
    """

    def __init__(
        self,
        query: str,
        paths: Iterable[Any],
        from_: str | None,
        options: Mapping[str, Any],
        *,
        spill: str | None = None,
    ) -> None:
        """`spill`: the directory for data that exceeds memory; by default a private one, removed at the end."""
        try:
            import duckdb
        except ImportError:
            raise UsageError(f"sql needs DuckDB: {install('sql')}") from None
        # the last three: values that cannot be converted to Python, e.g. an interval of 10^8 years
        self._errors = (duckdb.Error, RuntimeError, OverflowError, ValueError)
        self._stack = ExitStack()
        self._tables: list[Table] = []
        self._profiles: list[Profile] = []
        try:
            for path in paths:
                given = self._stack.enter_context(_copy_of_input()) if path == "-" else path
                self._profiles.append(self._stack.enter_context(Profile(given, from_=from_, **options)))
            if not self._profiles:
                raise UsageError("no input given")
            if spill is None:
                spill = private_folder()
                self._stack.callback(shutil.rmtree, spill, ignore_errors=True)
            self._db = self._stack.enter_context(duckdb.connect(config=_CONFIG | {"temp_directory": spill}))
            try:
                self._ask(query)
            except self._errors as error:
                raise self._failed(error) from None
        except BaseException:
            self._stack.close()
            raise

    def _ask(self, query: str) -> None:
        if not query.isascii() and any(0xD800 <= ord(c) < 0xE000 for c in query):
            raise UsageError("the query is not in UTF-8")
        self._offer(query)
        # queries are untrusted: they can read the profiles, but no files
        self._db.execute("set enable_external_access = false; set lock_configuration = true")
        answer = self._db.execute(query)
        if answer is None:
            raise UsageError("the query is empty")
        found = answer.description or []
        self.columns = [str(column[0]) for column in found]
        self.numeric = [str(column[1]) in _NUMBERS or str(column[1]).startswith("DECIMAL") for column in found]

    def _offer(self, query: str) -> None:
        """Register the tables named in the query, or all if it names none (`show tables`): DuckDB reads the beginning
        of each registered table."""
        words = set(re.findall(r"\w+", query.casefold()))
        named = words & {name for profile in self._profiles for name in profile.tables}
        several = len(self._profiles) > 1
        for number, profile in enumerate(self._profiles, 1):
            schema = f"p{number}"
            if several:
                self._db.execute(f"create schema {schema}")
            for name in profile.tables:
                if named and name not in named:
                    continue
                table = profile.table(name)
                self._tables.append(table)
                if several:
                    self._db.register(f"{schema}_{name}", table)
                    self._db.execute(f"create view {schema}.{name} as from {schema}_{name}")
                else:
                    self._db.register(name, table)

    def _failed(self, error: Exception) -> BaseException:
        """Convert an error of DuckDB: an interrupt, a profile's error, or the query's, in one line."""
        for table in self._tables:
            if table.error is not None:
                return table.error
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # by Ctrl-C, which it handles itself
            return KeyboardInterrupt()
        several = len(self._profiles) > 1
        there = [(f"p{n}." if several else "") + name for n, p in enumerate(self._profiles, 1) for name in p.tables]
        what = str(error).partition(", due to the following Python exception")[0]
        what = " ".join(what.partition("\n\nLINE ")[0].split())  # the rest is the line of the query with a marker below
        return UsageError(f"{what} (tables: {', '.join(there)})" if "does not exist" in what else what)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        try:
            while found := self._db.fetchmany(_ROWS):
                yield from found
        except self._errors as error:
            raise self._failed(error) from None

    @property
    def log(self) -> Log:
        log = Log()
        for profile in self._profiles:
            log.take(profile.log)
        return log

    def __enter__(self) -> Answer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def private_folder() -> str:
    """A new directory that only this user can list or write, for DuckDB, whose files everybody may read.

    Errors: FastprofError.
    """
    try:
        return tempfile.mkdtemp(prefix="fastprof-sql-")
    except OSError as error:
        raise temporary_failed(error) from None


def _copy_of_input() -> Any:
    """Standard input as a file: DuckDB opens several streams of it."""
    copy = temporary_file()
    copy.name = "<stdin>"  # for messages
    with standard_stream(sys.stdin, "<stdin>", "rb") as source:
        while part := _read(source):
            try:
                while part := part[copy.write(part) :]:  # a full disk accepts a part first
                    pass
            except OSError as error:
                raise FastprofError(f"<stdin>: {temporary_failed(error)}") from None
    return copy


def _read(source: Any) -> bytes:
    try:
        part: bytes = source.read(1 << 18)
    except OSError as error:
        raise FastprofError(f"<stdin>: {error.strerror}") from None
    return part


_CONFIG: dict[str, Any] = {"python_enable_replacements": False}  # the program's variables are not tables
_NUMBERS = {"NUMBER", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"}
_NUMBERS |= {f"U{name}" for name in _NUMBERS}


def sql(
    inputs: str | os.PathLike[str] | bytes | IO[bytes] | Iterable[str | os.PathLike[str] | bytes | IO[bytes]],
    query: str,
    *,
    from_: str | None = None,
    **options: Unpack[OpenOptions],
) -> Answer:
    """Run `query` on the tables of one profile (docs/tables.md), or of several as p1.NAME, p2.NAME ...

    The query sees only these tables: no files, no network.
    Errors: UsageError for a wrong query, or without DuckDB; those of `open`.

    >>> import fastprof
    >>> query = "select function, sum(Ir) from graph where kind = 'cost' group by 1 order by 2 desc"
    >>> with fastprof.sql("tests/corpus/callgrind/good/cfi.callgrind", query) as answer:
    ...     print(list(answer.rows()))
    [('g', 9), ('f', 5)]
    """
    return Answer(query, listed(inputs), from_, options)
