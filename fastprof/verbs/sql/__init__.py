"""Queries profiles with SQL, through DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from itertools import islice

from fastprof import plan
from fastprof.bridges import TABLES
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.engine import Scan
from fastprof.core.errors import FastprofError, UsageError, usage_error
from fastprof.core.log import Log
from fastprof.core.made_folders import PrivateFolder
from fastprof.core.messages import install, spelled
from fastprof.core.options import LENIENT, Option
from fastprof.core.streams import name_of
from fastprof.formats.archive import MEMBER
from fastprof.inputs.copied import copy_of_input
from fastprof.inputs.expand import expand, skipped
from fastprof.inputs.stored import file_of
from fastprof.verbs.profile import Profile, Table, table_end
from fastprof.verbs.run import listed, none_can_be_read
from fastprof.verbs.series_options import SERIES

if TYPE_CHECKING:
    from fastprof.verbs.keywords import Inputs, Progress, ReadFormat, SqlOptions
    from fastprof.verbs.sql.filter import Conditions
    from fastprof.verbs.sql.joined_tables import JoinedTable, Together
    from fastprof.verbs.trend.table import SeriesTable

_ROWS = 4096  # rows fetched at a time
FIRST = 100  # rows that `str` and a notebook show


@cache
def table_options() -> list[Option[Any]]:
    """The options of tables of single profiles, and of `open`."""
    return plan.options_of(table_end(None))


@cache
def options() -> list[Option[Any]]:
    """The options of `sql`."""
    return [*table_options(), *SERIES]


class Answer:
    """The result of a query: names of `columns`, their types, whether each holds numbers, and `rows` while it is open.

    `log` adds up what the logs of the profiles have; it is complete when all rows were read.
    """

    def __init__(
        self,
        query: str,
        paths: Iterable[Any],
        from_: Any,
        options: Mapping[str, Any],
        *,
        keep_going: bool = False,
        progress: Progress | None = None,
        spill: str | None = None,
    ) -> None:
        """`keep_going`: skip inputs that cannot be read, and count them as losses.
        `spill`: the directory for data that exceeds memory; by default a private one, removed at the end."""
        try:
            import duckdb
        except ImportError:
            raise UsageError(f"sql needs DuckDB: {install('sql')}") from None
        # the last three: values that cannot be converted to Python, e.g. an interval of 10^8 years
        self._errors = (duckdb.Error, RuntimeError, OverflowError, ValueError)
        self._stack = ExitStack()
        self._log, self._log_of_series = Log(), Log()
        self._tables: list[Table | JoinedTable | SeriesTable] = []
        self._profiles: dict[int, Profile] = {}  # those that can be read, by the number of their input
        self._query = query
        self._first: list[tuple[Any, ...]] | None = None
        self._rest = self._fetched()
        self._several, self._progress = False, progress
        self._together: Together | None = None
        self._series: SeriesTable | None = None
        of_series = {option.name: options[option.name] for option in SERIES if option.name in options}
        own = {key: value for key, value in options.items() if key not in of_series}
        try:
            if spill is None:
                # for DuckDB, whose files everybody may read
                spill = self._stack.enter_context(PrivateFolder("fastprof-sql-"))
            self._db = self._stack.enter_context(duckdb.connect(config=_CONFIG | {"temp_directory": spill}))
            inputs, self._conditions = [*paths], self._parsed(query)
            reads_others = any(map(self._conditions.uses, (*_TABLES, "profiles")))
            if self._conditions.reads("series"):
                self._read_series(inputs, options, from_, keep_going, is_alone=not reads_others)
            elif of_series:
                flag = spelled(next(option.flag for option in SERIES if option.name in of_series))
                raise usage_error("{option} is for the table series, which the query does not read", option=flag)
            if self._series is None or reads_others:
                self._open(inputs, query, from_, own, keep_going)
            try:
                self._ask(query)
            except self._errors as error:
                raise self._failed(error) from None
        except BaseException:
            self._stack.close()
            raise

    def _open(self, given: list[Any], query: str, from_: Any, options: Mapping[str, Any], keep_going: bool) -> None:
        """Open each profile separately, or prepare them to be queried together."""

        unread: list[FastprofError] = []

        def failed(error: FastprofError) -> None:
            unread.append(error)
            skipped(error, self._log)

        lenient = bool(options.get(LENIENT.name))
        stores = not {MEMBER.key, MEMBER.name} & options.keys()
        paths = expand(given, self._log.warn, failed if keep_going else None, lenient=lenient, stores=stores)
        if not paths:
            raise none_can_be_read(unread[-1].message()) if unread else UsageError("no input given")
        if paths != given or (len(paths) > 1 and _WITHOUT_NUMBERS.search(query) and not _NUMBERED.search(query)):
            if one := next((path for path in paths if (of := file_of(path)) == "-" or hasattr(of, "read")), None):
                raise UsageError(f"{name_of(file_of(one))}: querying several profiles together needs files or URLs")
            from fastprof.verbs.sql.joined_tables import (
                Together,  # takes a quarter of the start, for several profiles only
            )

            self._together = Together(paths, from_, options, keep_going=keep_going)
            return
        self._several = len(paths) > 1
        for number, path in enumerate(paths, 1):
            try:
                source = self._stack.enter_context(copy_of_input()) if path == "-" else path
                opened = Profile(source, from_=from_, progress=self._progress, **options)
                self._profiles[number] = self._stack.enter_context(opened)
            except FastprofError as error:
                if not keep_going or isinstance(error, UsageError) or not self._several:
                    raise
                failed(error)
        if not self._profiles:
            raise none_can_be_read(unread[-1].message())

    def _parsed(self, query: str) -> Conditions:
        """The query as DuckDB parses it.  Errors: UsageError for something else."""
        from fastprof.verbs.sql.filter import Conditions

        if not isinstance(query, str):
            raise UsageError(f"the query is {query!r:.80}, expected a text")
        if not query.isascii() and any(0xD800 <= ord(c) < 0xE000 for c in query):
            raise UsageError("the query is not in UTF-8")
        return Conditions(self._db, query)

    def _read_series(
        self, paths: list[Any], options: Mapping[str, Any], from_: Any, keep_going: bool, *, is_alone: bool
    ) -> None:
        """The table `series` of all profiles (verbs/trend).  `is_alone`: the query reads no other table."""
        from fastprof.verbs.trend import options as options_of_trend
        from fastprof.verbs.trend import series

        if "-" in paths and not is_alone:
            raise UsageError("-: a query of series and other tables reads inputs twice; it needs files or URLs")
        known = {option.name for option in options_of_trend()}
        of_it = {key: value for key, value in options.items() if is_alone or key in known}
        log = self._log_of_series
        self._series = series(paths, of_it, log, from_=from_, keep_going=keep_going, progress=self._progress)

    def _ask(self, query: str) -> None:
        self._offer(query)
        # queries are untrusted: they can read the profiles, but no files
        self._db.execute("set enable_external_access = false; set lock_configuration = true")
        answer = self._execute(query)
        if answer is None:
            raise UsageError("the query is empty")
        found = answer.description or []
        self.columns = [str(column[0]) for column in found]
        self.types = [str(column[1]) for column in found]
        self.numeric = [kind in _NUMBERS or kind.startswith("DECIMAL") for kind in self.types]

    def _execute(self, query: str) -> Any:
        from duckdb import BinderException

        try:
            return self._db.execute(query)
        except BinderException:
            self._offer(query, whole=True)  # the error lists similar columns
            return self._db.execute(query)

    def _offer(self, query: str, *, whole: bool = False) -> None:
        """Register the tables named in the query, or all if it names none (`show tables`): DuckDB reads the beginning
        of each registered table.  Of a table only what the query reads, or the `whole`."""
        from fastprof.verbs.sql.filter import Conditions

        conditions = Conditions(self._db, "") if whole else self._conditions
        if self._series is not None:
            scan = conditions.scan("series")
            self._add(self._series.of(scan.columns), "series", scan)
        if self._together is not None:
            self._offer_together(self._conditions, self._together, whole=whole)
        if not self._profiles:
            return
        words = set(re.findall(r"\w+", query.casefold()))
        named = words & {name for profile in self._profiles.values() for name in profile.tables}
        for number, profile in self._profiles.items():
            schema = f"p{number}" if self._several else ""
            if schema:
                self._db.execute(f"create schema if not exists {schema}")
            for name in profile.tables:
                if not named or name in named:
                    scan = conditions.scan(name)
                    self._add(Table(profile, name, scan), name, scan, schema)

    def _offer_together(self, conditions: Conditions, together: Together, *, whole: bool) -> None:
        keys = together.keys
        columns = ", ".join(f"unnest(?::varchar[]) as c{i}" for i in range(len(keys)))
        values = [together.values(key) for key in keys]
        self._db.execute(
            "create schema if not exists known; "
            f"create or replace table known.profiles as select unnest(?::bigint[]) as number, {columns}",
            [[*range(len(together.names))], *values],
        )
        shown = together.constants("profiles")
        columns = ", ".join(f"c{keys.index(key)} as {_quoted(name)}" for name, key in shown.items())
        self._db.execute(f"create or replace view profiles as select {columns} from known.profiles order by number")
        names = [name for name in _TABLES if conditions.uses(name)]
        if not names and not conditions.uses("profiles"):
            names = [*_TABLES]  # the query is about tables, or wrong: then the error lists them
        chosen = {
            name: conditions.numbers(
                name,
                {column.casefold(): f"c{keys.index(key)}" for column, key in together.constants(name).items()},
                len(together.names),
            )
            for name in names
        }
        scans = {name: conditions.scan(name)._replace(all_values=True) for name in names}
        if whole:
            scans = {name: scan._replace(columns=None) for name, scan in scans.items()}
        for name, table in together.look(chosen, scans).items():
            self._add(table, name, scans[name])

    def _add(self, table: Table | JoinedTable | SeriesTable, name: str, scan: Scan, schema: str = "") -> None:
        """A table, in a schema if it is one of several profiles."""
        self._tables.append(table)
        rows = self._db.from_arrow(table)
        if name == "samples" and scan.reads("labels"):
            rows = rows.project("* replace (labels::json::map(varchar, varchar) as labels)")
        if not schema:
            rows.create_view(name)
            return
        rows.create_view(f"{schema}_{name}")
        self._db.execute(f"create or replace view {schema}.{name} as from {schema}_{name}")

    def _failed(self, error: Exception) -> BaseException:
        """Convert an error of DuckDB: an interrupt, a profile's error, or the query's, in one line."""
        for table in self._tables:
            if table.error is not None:
                return table.error
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # by Ctrl-C, which it handles itself
            return KeyboardInterrupt()
        there = [(f"p{n}." if self._several else "") + name for n, p in self._profiles.items() for name in p.tables]
        if self._together is not None:
            there = [*sorted(self._together.seen), "profiles"]
        there += ["series"] if self._series else []
        what = str(error).partition(", due to the following Python exception")[0]
        what = " ".join(what.partition("\n\nLINE ")[0].split())  # the rest is the line of the query with a marker below
        if "does not exist" in what:  # DuckDB suggests its own tables
            what = f"{re.sub(_SUGGESTED, '', what)} (tables: {', '.join(there)})"
        return UsageError(what)

    def first(self) -> list[tuple[Any, ...]]:
        """The first rows, which `rows` also yields: at most FIRST and one more; none once `rows` was called."""
        if self._first is None:
            self._first = [*islice(self._rest, FIRST + 1)]
        return self._first

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows that have not been read yet."""
        first, self._first = self._first or [], []
        yield from first
        yield from self._rest

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows for readers of Arrow streams, by another run of the query.  Errors: UsageError if the query is none
        that returns a table."""
        try:
            relation = self._db.cursor().sql(self._query)
        except self._errors as error:
            raise self._failed(error) from None
        if relation is None:
            raise UsageError("the query returns no table")
        return relation.__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        """The table of `fastprof sql`, of the first rows."""
        from fastprof.core.printed import printed

        return printed("cli.sql:text", self)

    def _repr_html_(self) -> str:
        from fastprof.core.html import notes, table

        return table(self.columns, self.first()) + notes(self.log)

    def _fetched(self) -> Iterator[tuple[Any, ...]]:
        try:
            while found := self._db.fetchmany(_ROWS):
                yield from found
        except self._errors as error:
            raise self._failed(error) from None

    @property
    def log(self) -> Log:
        log = Log()
        log.take(self._log)
        for profile in self._profiles.values():
            log.take(profile.log)
        if self._together is not None:
            log.take(self._together.log)
        log.cover(self._log_of_series)
        return log

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


_TABLES = tuple(name for names in TABLES.values() for name in names)
_WITHOUT_NUMBERS = re.compile(rf"(?i)\b(profiles|{'|'.join(_TABLES)})\b")
_SUGGESTED = r' Did you mean "pg_[^"]*"\?'
_NUMBERED = re.compile(rf"""(?i)(?<![\w"])"?p[0-9]+"?\s*\.\s*"?({"|".join(_TABLES)})\b""")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_CONFIG: dict[str, Any] = {"python_enable_replacements": False}  # the program's variables are not tables
_NUMBERS = {"NUMBER", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"}
_NUMBERS |= {f"U{name}" for name in _NUMBERS}


def sql(
    inputs: Inputs,
    query: str,
    *,
    from_: ReadFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    **options: Unpack[SqlOptions],
) -> Answer:
    """Run `query` on the tables of one profile (docs/tables.md), or of several.

    The tables of several files, of folders and of stores have the rows of all of them, with a column `profile`; the
    files' own tables are p1.NAME, p2.NAME ...  The table `series` (docs/trend.md) has the cost of each function at each
    point of `over`: a label, dates or the inputs.  With `keep_going`, unreadable inputs are skipped and counted as
    losses.
    The query sees only these tables: no files, no network.  The answer is an Arrow stream, too.
    `progress` is called with each input that is opened (docs/python.md).
    Errors: UsageError for a wrong query, or without DuckDB; those of `open`.

    >>> import fastprof
    >>> query = "select function, sum(Ir) from graph where kind = 'cost' group by 1 order by 2 desc"
    >>> with fastprof.sql("tests/corpus/callgrind/good/cfi.callgrind", query) as answer:
    ...     print(list(answer.rows()))
    [('g', 9), ('f', 5)]
    """
    return Answer(query, listed(inputs), from_, options, keep_going=keep_going, progress=progress)
