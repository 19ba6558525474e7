"""Tables of many profiles: the rows of each, with the name and the labels of its input as columns.

    profile        host  function  cpu          select host, sum(cpu) from samples
    web1/mon.prof  web1  main       10          where profile like '%/mon.prof' group by 1
    web2/mon.prof  web2  main       20

Profiles are read one after the other.  Conditions on `profile` and labels select the profiles to read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from threading import Lock

from fastprof import plan
from fastprof.bridges import INPUT_LABELS, TABLES
from fastprof.bridges.rows.as_table import CAPACITY, LAYOUTS, Rows, unused, utf8
from fastprof.bridges.rows.label import InputLabels
from fastprof.core._c import ffi
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.arrow_column import ArrowColumn, Texts
from fastprof.core.c_memory import address_of
from fastprof.core.engine import Scan
from fastprof.core.errors import FastprofError, NothingLeft, UsageError, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.options import Option, Options, checked
from fastprof.core.streams import name_of
from fastprof.core.urls import shown
from fastprof.inputs.expand import skipped, with_advice
from fastprof.inputs.stored import Given, Stored, distinct_names
from fastprof.verbs.profile import Profile, Table, table_end
from fastprof.verbs.run import none_can_be_read

if TYPE_CHECKING:
    from fastprof.formats.archive.sections import Member
    from fastprof.inputs.state import State

PROFILE = "profile"
_MOST_KEYS = 1000  # of labels: each is a column
_KEPT = 64 << 20  # bytes of rows that are kept from the first reading
_VIEWS = {"samples": "stacks", "graph": "graph"}  # tables with a row for each row of a profile of this view
NAME = ""  # the key of the name among the keys of labels, which are not empty


class _One(Profile):
    """One of many profiles.  Options unused here may apply to others; filters must apply, but may leave no row."""

    def __init__(self, of: Together, number: int) -> None:
        self._of = of
        self.nothing_left: NothingLeft | None = None
        super().__init__(of._paths[number], from_=of._from)  # type: ignore[arg-type]

    def _checked(self, options: Mapping[str, Any]) -> Options:
        return self._of._options

    def _rows(self, end: plan.End) -> Generator[Any]:
        try:
            yield from super()._rows(end)
        except NothingLeft as error:
            self.nothing_left = error

    def _refuse_idle(self) -> None:
        one = self._reader
        facts = one.format, one.view, one.other_view, one.addresses, one.formulas, not one.resolved
        if facts not in self._of._idle_of:
            idle: set[Option[Any]] = set()
            plan.checked(table_end(None), [[one]], self._options, idle=idle.add)
            self._of._idle_of[facts] = idle
        self.idle = self._of._idle_of[facts]


class Together:
    """Many profiles as tables with a column `profile`, and one for each label of inputs.

    `log` adds up the logs of the profiles that were read to their end.
    """

    def __init__(self, paths: list[Any], from_: str | None, options: Mapping[str, Any], *, keep_going: bool) -> None:
        self._from, self._keep_going = from_, keep_going
        self._options = checked(options, plan.known_options())
        self._paths = paths
        self.names = [*distinct_names((_name(path), path) for path in paths)]
        labels = InputLabels(self._options)
        self.log = Log()
        recorded: dict[int, Mapping[str, str]] = {}
        self._indexed: dict[int, tuple[str, int]] = {}  # by number, of stores: the view and its rows
        for n, member in _members(paths):
            recorded[n], self._indexed[n] = member.about.get("labels", {}), (member.view, member.rows)
        self._labels = [{**recorded.get(n, {}), **labels.of(name, self.log)} for n, name in enumerate(self.names)]
        self.keys = [NAME, *sorted({key for found in self._labels for key in found if key != NAME})]
        if len(self.keys) > _MOST_KEYS:
            raise UsageError(f"labels of {len(self.keys) - 1:,} keys, at most {_MOST_KEYS - 1:,} can be columns")
        self._logged: set[int] = set()
        self.seen: set[str] = set()  # names of tables that an opened profile has
        self._tables: dict[int, tuple[str, ...]] = defaultdict(tuple)
        self._idle: Counter[Option[Any]] = Counter()
        self._idle_of: dict[tuple[object, ...], set[Option[Any]]] = {}  # by what the plan of a profile depends on
        self._scans: Mapping[str, Scan] = {}  # by table
        self._lock = Lock()
        self._without: list[NothingLeft] = []  # profiles of which filters leave no row
        self._kept: dict[tuple[int, str], Rows] = {}  # whole tables
        self._counted: dict[tuple[int, str], int] = {}  # rows of tables of which no more is needed
        self._room = _KEPT

    def constants(self, table: str) -> dict[str, str]:
        """The columns of a table that are constant in each profile: their names, and the keys of their values."""
        taken = {kind.name for kind in LAYOUTS.get(table, ())} | {PROFILE}
        return {PROFILE if key == NAME else _unused(key, taken): key for key in self.keys}

    def values(self, key: str) -> list[str | None]:
        """The values of such a column, by profile."""
        found = [self.constants_of(number).get(key) for number in range(len(self.names))]
        return [value if value is None else utf8(value) for value in found]

    def look(self, names: Mapping[str, list[int]], scans: Mapping[str, Scan]) -> dict[str, JoinedTable]:
        """The named tables over the profiles with these numbers.  Opens these profiles.

        A table without profiles has the columns of the first profile with such a table.
        Errors: FastprofError and its kinds: those of opening, NothingLeft, and UsageError for columns of one name in
        different units.
        """
        self._scans = scans
        counted = {name: self._count(name, names[name]) for name in names if self._only_counts(name)}
        tables = {name: JoinedTable(self, name, numbers, []) for name, numbers in counted.items() if numbers}
        return tables | self._look({name: numbers for name, numbers in names.items() if name not in tables})

    def _look(self, names: Mapping[str, list[int]]) -> dict[str, JoinedTable]:
        """The tables that profiles must be opened for."""
        columns: dict[str, dict[bytes, ArrowColumn]] = {name: {} for name in names}
        first: dict[tuple[str, bytes], int] = {}
        chosen = {name: {*numbers} for name, numbers in names.items()}
        failed: list[FastprofError] = []
        n_read = 0
        for number in range(len(self._paths)):
            rows_of = {name for name in names if number in chosen[name]}
            wanted = [name for name in names if name in rows_of or not (chosen[name] or columns[name])]
            try:
                found = self._columns(number, wanted, rows_of) if wanted else {}
                n_read += bool(wanted)
            except FastprofError as error:
                if not self._keep_going or isinstance(error, UsageError):
                    raise with_advice(error, len(self._paths), self._keep_going) from None
                if rows_of:
                    skipped(error, self.log)
                failed.append(error)
                continue
            for name, column in ((name, column) for name, new in found.items() for column in new):
                known = columns[name].setdefault(column.name, column)
                self._compare(known, column, self.names[first.setdefault((name, column.name), number)], number)
        self._refuse(n_read, failed)
        return {
            name: JoinedTable(self, name, [one for one in names[name] if name in self._tables[one]], [*found.values()])
            for name, found in columns.items()
            if found
        }

    def _refuse(self, n_read: int, failed: list[FastprofError]) -> None:
        """Errors: FastprofError if all profiles have failed; UsageError if filters leave no row of those read, or an
        option has no effect on any."""
        if failed and not n_read:
            raise none_can_be_read(failed[-1].message())
        if self._without and len(self._without) == n_read:
            raise self._without[-1]
        for option, times in self._idle.items():
            if times == n_read and option not in INPUT_LABELS:
                raise usage_error("{option} has no effect on any input", option=spelled(option.flag))

    def _only_counts(self, name: str) -> bool:
        """Whether a query needs no more of a table than its number of rows, the names of profiles and their labels."""
        scan, own = self._scans[name], {column.casefold() for column in self.constants(name)}
        selects = scan._replace(columns=None, all_values=False) != Scan()
        given = self._options.given.keys() - {option.name for option in INPUT_LABELS}
        return name in _VIEWS and scan.columns is not None and scan.columns <= own and not selects and not given

    def _count(self, name: str, numbers: list[int]) -> list[int]:
        """Note how many rows a table has in these profiles, which the index of their store says.  Returns those with
        the table; none if some are not in a store."""
        found, known = [], [number for number in numbers if number in self._indexed]
        for number in known:
            view, rows = self._indexed[number]
            self.seen.update(TABLES.get(view, ()))
            if view == _VIEWS[name]:
                found.append(number)
                self._counted[number, name] = rows
        return found if len(known) == len(numbers) else []

    def _columns(self, number: int, names: list[str], rows_of: set[str]) -> dict[str, list[ArrowColumn]]:
        """The columns of a profile's tables.  Reads all rows if profiles with errors are skipped.
        `rows_of`: the tables whose rows the query reads; only their losses are counted."""
        found: dict[str, list[ArrowColumn]] = {}
        profile = self.open(number)
        with profile:
            self.seen.update(profile.tables)
            for name in names:
                if name in profile.tables:
                    rows = Table(profile, name, self._scans[name])._rows()
                    first = next(rows)
                    found[name] = [_without_memory(column) for column in first.columns]
                    is_whole = len(first) < CAPACITY
                    for _ in rows if self._keep_going or is_whole else ():
                        pass
                    rows.close()
                    if is_whole and name in rows_of:
                        self._keep(number, name, first, profile)
            self._tables[number] = (*found,)
            self._idle.update(profile.idle)
            if profile.nothing_left:
                self._without.append(profile.nothing_left)
        return found

    def _keep(self, number: int, name: str, rows: Rows, profile: Profile) -> None:
        """Keep a whole table, so that a small profile is read once, if there is room for it."""
        nbytes = _nbytes(rows)
        if nbytes <= self._room:
            self._room -= nbytes
            self._kept[number, name] = rows.compact()
            self._log_once(number, profile)

    def _log_once(self, number: int, profile: Profile) -> None:
        with self._lock:
            if number not in self._logged:
                self._logged.add(number)
                self.log.take(profile.log)

    def _compare(self, known: ArrowColumn, column: ArrowColumn, other: str, number: int) -> None:
        """Errors: UsageError if values of one column have different units."""
        units = [(one.metadata or {}).get(b"unit", b"").decode() or "no unit" for one in (known, column)]
        if units[0] != units[1]:
            name = column.name.decode("utf-8", "replace")
            raise usage_error(
                "column {name} has {unit} in {other} and {found} in {path}: convert one with {--rename-value}, or "
                "query them one by one",
                name=name,
                unit=units[0],
                other=other,
                found=units[1],
                path=self.names[number],
            )

    def open(self, number: int) -> _One:
        return _One(self, number)

    def read(self, number: int, table: str) -> Iterator[Rows]:
        """The rows of a profile, whose log counts once."""
        if (kept := self._kept.get((number, table))) is not None:
            yield kept
            return
        if (n := self._counted.get((number, table))) is not None:
            yield from (Rows(None, min(CAPACITY, n - at), [], {}) for at in range(0, n, CAPACITY))
            return
        with self.open(number) as profile:
            yield from Table(profile, table, self._scans[table])._rows()
            self._log_once(number, profile)

    def constants_of(self, number: int) -> dict[str, str]:
        """The name and the labels of a profile."""
        return {**self._labels[number], NAME: self.names[number]}


class JoinedTable:
    """One table of many profiles, as an Arrow stream.  Each stream reads the profiles anew."""

    def __init__(self, of: Together, name: str, numbers: list[int], columns: list[ArrowColumn]) -> None:
        self._of, self.name, self._numbers = of, name, numbers
        self.constants = of.constants(name)
        fixed = {kind.name for kind in LAYOUTS[name]}
        taken = {name.casefold() for name in self.constants} | fixed
        self._columns: list[tuple[bytes, ArrowColumn]] = []
        for column in columns:
            text = column.name.decode()  # a value type may be named like a label
            found = column if text in fixed else column._replace(name=_unused(text, taken).encode())
            self._columns.append((column.name, found))
        self.error: BaseException | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from fastprof.core import _arrow

        def failed(error: BaseException) -> None:
            self.error = error

        return _arrow.stream(self._items(), self._placed({}, [], 0), None, failed)

    def _items(self) -> Iterator[tuple[object, int, list[ArrowColumn]]]:
        zeros = ffi.new("uint8_t[]", 8 * CAPACITY)
        address = address_of(zeros)
        for number in self._numbers:
            texts = {key: Texts.of([utf8(text)]) for key, text in self._of.constants_of(number).items()}
            for rows in self._of.read(number, self.name):
                if len(rows):
                    placed = self._placed(texts, rows.columns, address, self._of.names[number])
                    yield (rows.c, zeros, texts), len(rows), placed

    def _placed(
        self, texts: Mapping[str, Texts], columns: Iterable[ArrowColumn], zeros: int, input_: str = ""
    ) -> list[ArrowColumn]:
        """All columns of the table: those that a profile lacks are NULL.  Errors: FastprofError for another column."""
        own = {column.name: column for column in columns}
        placed = [
            ArrowColumn(name.encode(), b"i", zeros, True, 0 if key in texts else zeros, texts.get(key, _NOTHING))
            for name, key in self.constants.items()
        ]
        for name, column in self._columns:
            there = own.pop(name, column._replace(items=zeros, valid=zeros))
            placed.append(there._replace(name=column.name, nullable=True))
        if own:
            raise FastprofError(f"{input_}: the file was changed while it was read")
        return placed


_NOTHING = Texts.of([])


def _name(path: Any) -> str:
    return shown(path) if isinstance(path, str) else path.name if isinstance(path, Given) else name_of(path)


def _members(paths: list[Any]) -> Iterator[tuple[int, Member]]:
    """The profiles of stores as the index has them, and the numbers of their paths."""
    by_store: dict[State, list[tuple[str, int]]] = defaultdict(list)
    for number, path in enumerate(paths):
        if isinstance(path, Stored):
            by_store[path.state].append((path.name or "", number))
    for state, named in by_store.items():
        named.sort()
        members = state.members(name for name, _ in named)
        yield from ((number, one) for (_, number), one in zip(named, members, strict=True) if one is not None)


def _nbytes_of(texts: Texts) -> int:
    offsets = ffi.cast("int64_t *", texts.offsets)
    return int(8 * texts.n + offsets[texts.n])


def _nbytes(rows: Rows) -> int:
    """About the memory of rows and their names."""
    texts = {id(column.texts): column.texts for column in rows.columns if column.texts}
    return (9 * len(rows) + 600) * len(rows.columns) + 2 * sum(map(_nbytes_of, texts.values())) + 2000


def _without_memory(column: ArrowColumn) -> ArrowColumn:
    return column._replace(items=0, valid=0, texts=column.texts and _NOTHING)


def _unused(name: str, taken: set[str]) -> str:
    """An unused name of a column, added to `taken`."""
    found = unused(utf8(name), taken)
    taken.add(found.casefold())
    return found
