"""The sums of profiles on disk (--cache), so that the next run reads only profiles that are new.

A database of SQLite with a row for each profile, by a digest of its identity (path, inode, size and times; of a profile
in a store its entry in the index) and of all options that its sums depend on.  A file that is damaged or of another
version is made anew: an answer never depends on the cache.

Profiles that follow each other are kept a second time, together (`Run`): a night of many profiles is then read at once.

Without --cache it is a hidden file next to a store or folder (`automatic`), if nobody else can write there.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, groupby
from math import isfinite
from types import NoneType
from zlib import crc32

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, Pointer
from fastprof.core.errors import FastprofError, faulty, raise_as
from fastprof.core.log import Log
from fastprof.core.options import Options
from fastprof.core.version import __version__
from fastprof.inputs.stored import Stored, in_store
from fastprof.verbs.trend.keys import Costs, Entry, Key, packed, together, unpacked, unversioned

_APPLICATION = 0x46507452  # "FPtR"
_LAYOUT = 5
_PAGE = 1 << 14  # bytes: costs of many profiles are long
_WAIT = 2  # seconds, for another run
_TABLES = (
    "CREATE TABLE names (id INTEGER PRIMARY KEY, name BLOB, file BLOB, object BLOB, line INTEGER, label TEXT, "
    "digest BLOB)",
    "CREATE TABLE profiles (key BLOB PRIMARY KEY, facts TEXT, costs BLOB, digest BLOB) WITHOUT ROWID",
    "CREATE TABLE runs (key BLOB PRIMARY KEY, options BLOB, facts TEXT, costs BLOB, digest BLOB)",
)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_LEAST = 32  # profiles of which sums are kept without --cache
_SETTLED = 20_000_000  # nanoseconds: a file that was written later may change again without another time
_COARSE = 2_000_000_000  # the same, of file systems that have only whole seconds
_LENGTH = 128  # the mean number of profiles of a run
_MOST_BYTES = 1 << 26  # of a run
_COMMON = ("value", "calls", "inclusive", "idle", "first")  # facts that are the same for all profiles of a run
# The other facts, and the types that they may have.
_OWN: dict[str, set[type]] = {
    "name": {str},
    "labels": {dict},
    "time": {int, NoneType},
    "total": {int},
    "samples": {int, float},
    "unit": {int, float},
    "log": {dict, NoneType},
}
_ONCE = ("time", "unit", "log", "written")  # columns of a run that may be one value, if all are equal
_OF_RUN = _OWN | {"written": {int, NoneType}, "size": {int}}
_NO_LOG = Log().data()


class Run(NamedTuple):
    """Profiles that are kept together: what they have in common, and lists with an item for each."""

    facts: dict[str, Any]
    costs: (
        bytearray  # first the rows that all share, if any, then of one profile after the other; with names of the cache
    )
    names: list[str]
    labels: list[dict[str, str]]
    times: list[int | None]
    totals: list[int]
    samples: list[float]
    units: list[float]
    logs: list[dict[str, Any] | None]  # None: empty
    written: list[int | None]  # when the file was, in nanoseconds since 1970
    sizes: list[int]  # in `costs`


def automatic(path: Any, n: int) -> str | None:
    """The cache next to a store or folder of `n` profiles; None: there are few, or others could change it.

    The folder has to be the user's own and not writable by others, and so has a file that is there already.
    """
    if n < _LEAST or not isinstance(path, str) or not hasattr(os, "geteuid") or "://" in path:
        return None
    try:
        folder, name = os.path.split(os.path.realpath(path))
        found = os.path.join(folder, f".{name}.sums")
        at, of = os.stat(folder), os.stat(path)
        if not name or at.st_uid != os.geteuid() or of.st_uid != at.st_uid or at.st_mode & 0o022:
            return None
        if not os.access(folder, os.W_OK):
            return None
        with suppress(FileExistsError):
            os.close(os.open(found, os.O_CREAT | os.O_EXCL | os.O_WRONLY, of.st_mode & 0o666))
        its = os.lstat(found)
        is_own = its.st_uid == at.st_uid and its.st_nlink == 1 and not its.st_mode & 0o022
        return found if stat.S_ISREG(its.st_mode) and is_own else None
    except (OSError, ValueError):
        return None


class Cache:
    """Sums by profile.  `options`: those that sums depend on.

    Errors: FastprofError for a file that cannot be written, or that is something else.  If it `may_fail`, as one that
    nobody named, nothing more is kept after such an error.
    """

    def __init__(self, path: str, options: Options, facts: Mapping[str, Any], *, may_fail: bool = False) -> None:
        self.path, self._may_fail = path, may_fail
        self._options = json.dumps([__version__, _LAYOUT, sorted(options.given.items(), key=str), facts], default=str)
        if os.path.lexists(path) and not _is_ours(path):
            raise faulty(path, "is not a cache of fastprof trend; it is left as it is")
        self._used: list[bytes] = []  # keys of runs
        self._has_new_run = False
        self._is_new = self.is_busy = False  # busy: another run has it
        self._names: list[Key] = []
        self._numbers: dict[Key, int] = {}
        try:
            self._open()
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            self.is_busy = _is_lock(error)
            if self.is_busy:
                self._db.close()
            else:
                self._renew()

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
        self._db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        self._db.execute("PRAGMA trusted_schema=OFF")
        self._db.execute(f"PRAGMA page_size={_PAGE}")  # of a new file
        self._db.execute("BEGIN IMMEDIATE")
        if not self._db.execute("PRAGMA application_id").fetchone()[0]:
            for statement in (f"PRAGMA application_id={_APPLICATION}", f"PRAGMA user_version={_LAYOUT}", *_TABLES):
                self._db.execute(statement)
        if self._db.execute("PRAGMA user_version").fetchone()[0] != _LAYOUT:
            raise ValueError("another layout")
        for number, (*row, digest) in enumerate(self._db.execute("SELECT * FROM names ORDER BY id")):
            if row[0] != number or digest != _digest(*row):
                raise ValueError("damaged names")
            self._names.append((row[1], row[2], row[3], row[4], row[5]))
        self._numbers = {key: number for number, key in enumerate(self._names)}

    def _renew(self) -> None:
        """Begin again with an empty file.  Errors: FastprofError."""
        with suppress(AttributeError, sqlite3.Error):
            self._db.close()
        self._names, self._numbers = [], {}
        try:
            for suffix in ("", "-journal"):
                with suppress(FileNotFoundError):
                    os.remove(self.path + suffix)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise faulty(self.path, f"the cache cannot be written: {error}") from None

    def key(self, path: Any) -> bytes | None:
        """The identity of an input and the options; None: it is not kept."""
        (found,) = self._identities([path])
        return None if found is None else _digest(found, self._options)

    def _identities(self, paths: Sequence[Any]) -> Iterator[bytes | None]:
        """What changes if inputs do; None: it is not kept."""
        for state, some in groupby(paths, lambda path: path.state if isinstance(path, Stored) else None):
            if state is None:
                yield from map(self._of_file, some)
            else:  # the store itself is none of its profiles
                yield from state.identities([path.name for path in some], _absolute(state.path))

    def _of_file(self, path: Any) -> bytes | None:
        try:
            if isinstance(path, str) and in_store(path) is None and path != "-":
                its = os.stat(path)
                of = b"%d %d %d %d %d" % (its.st_dev, its.st_ino, its.st_size, its.st_mtime_ns, its.st_ctime_ns)
                age = time.time_ns() - max(its.st_mtime_ns, its.st_ctime_ns)
                is_coarse = its.st_mtime_ns % 1_000_000_000 == 0 == its.st_ctime_ns % 1_000_000_000
                if stat.S_ISREG(its.st_mode) and age >= (_COARSE if is_coarse else _SETTLED):
                    return b"%b\0%b" % (_absolute(path), of)
        except (OSError, ValueError, FastprofError):
            pass
        return None

    def runs(self, paths: Sequence[Any]) -> Iterator[tuple[range, bytes | None]]:
        """Inputs that are kept together: numbers of paths, and their key; None: that of no run.

        They end where the identity of an input says so, so that a new one changes only the run it is in.
        """
        first, of = 0, [*self._identities(paths)]
        for number, found in enumerate(of, 1):
            if (found is not None and not crc32(found) % _LENGTH) or number - first == 4 * _LENGTH:
                yield range(first, number), self._key_of_run(of[first:number])
                first = number
        if first < len(paths):
            yield range(first, len(paths)), None

    def _key_of_run(self, identities: list[bytes | None]) -> bytes | None:
        known = [one for one in identities if one is not None]
        return _digest(b"".join(known), self._options) if len(known) == len(identities) else None

    def run(self, key: bytes) -> Run | None:
        """What is kept of a run; None: nothing, or it is damaged."""
        try:
            row = self._db.execute("SELECT facts, costs, digest FROM runs WHERE key = ?", (key,)).fetchone()
            if row is None or row[2] != _digest(key, row[0], crc32(row[1])):
                return None
            facts, columns = json.loads(row[0])
            each = _whole(columns)
            if not _are_valid(facts, each, _OF_RUN) or not _are_costs(facts, each["size"], row[1], len(self._names)):
                return None
            self._used.append(key)
            return Run(facts, bytearray(row[1]), *(each[name] for name in _OF_RUN))
        except _DAMAGED:
            return None

    def keep_run(self, paths: Sequence[Any], times: Mapping[int, int]) -> None:
        """Keep profiles together that are kept one by one, if they have much in common.

        `times`: when they were written, by number.
        """
        identities = [*self._identities(paths)]
        key = self._key_of_run(identities)
        entries = [self.get(_digest(one, self._options)) for one in identities if one is not None]
        found = [entry for entry in entries if entry is not None]
        if key is None or len(found) < len(paths):
            return
        common = {name: found[0].facts[name] for name in _COMMON}
        if any(entry.facts[name] != common[name] for entry in found for name in _COMMON if name != "first"):
            return
        names, data = self._together([entry.costs for entry in found])
        each = {name: [entry.facts[name] for entry in found] for name in _OWN}
        each["log"] = [None if one == _NO_LOG else one for one in each["log"]]
        each["written"] = [times.get(number) for number in range(len(paths))]
        each["size"] = [*map(len, data)]
        facts = json.dumps([common | {"rows": len(names) // 4}, _short(each)], separators=(",", ":"))
        costs = names + b"".join(data)
        if len(costs) < _MOST_BYTES:
            row = facts, costs, _digest(key, facts, crc32(costs))
            self._write("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", (key, _digest(self._options), *row))
            self._used.append(key)
            self._has_new_run = True

    def _together(self, all_: list[Costs]) -> tuple[bytes, list[bytes]]:
        """The rows that profiles share, b"" if these would take more room or be the same function, and their costs."""
        names = sorted({*chain.from_iterable(costs[0] for costs in all_)})
        is_dense = 2 * len(names) * len(all_) <= 3 * sum(len(costs[0]) for costs in all_)
        if is_dense and len({unversioned(self._names[name]) for name in names}) == len(names):
            found = together(all_, names, len(self._names))
            if found is not None:
                return found
        return b"", [packed(costs) for costs in all_]

    def _forget_runs(self) -> None:
        """Those of the same options that this run of the program did not use: a profile of each was changed."""
        self._db.execute("CREATE TEMP TABLE used (key BLOB PRIMARY KEY)")
        self._db.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((key,) for key in self._used))
        options = (_digest(self._options),)
        self._db.execute("DELETE FROM runs WHERE options = ? AND key NOT IN (SELECT key FROM used)", options)

    def get(self, key: bytes) -> Entry | None:
        """What is kept of a profile; None: nothing, or it is damaged."""
        try:
            row = self._db.execute("SELECT facts, costs, digest FROM profiles WHERE key = ?", (key,)).fetchone()
            if row is None or row[-1] != _digest(key, *row[:-1]):
                return None
            facts, costs = json.loads(row[0]), unpacked(row[1], len(self._names))
            each = {name: [facts[name]] for name in _OWN}
            is_valid = _are_valid(facts, each, _OWN) and len({*costs[0]}) == len(costs[0])
            return Entry(facts, costs) if is_valid else None
        except _DAMAGED:
            return None

    @property
    def n_names(self) -> int:
        return len(self._names)

    def name(self, number: int) -> Key:
        return self._names[number]

    def number(self, key: Key) -> int:
        """The number of a name, which is added if it is new."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._names)
            self._names.append(key)
            self._write("INSERT INTO names VALUES (?, ?, ?, ?, ?, ?, ?)", (found, *key, _digest(found, *key)))
        return found

    def put(self, key: bytes, entry: Entry) -> None:
        row = key, json.dumps(entry.facts), packed(entry.costs)
        self._write("INSERT OR REPLACE INTO profiles VALUES (?, ?, ?, ?)", (*row, _digest(*row)))

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        """Does nothing after damage was met: the file is begun again, and filled by the next run."""
        if self._is_new:
            return
        try:
            self._db.execute(sql, values)
        except (sqlite3.OperationalError, UnicodeEncodeError) as error:
            self._is_new = True
            if not self._may_fail:
                raise faulty(self.path, f"the cache cannot be written: {error}") from None
        except sqlite3.DatabaseError:
            self._renew()
            self._is_new = True

    def close(self) -> None:
        try:
            if self._has_new_run and not self._is_new:
                self._forget_runs()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if not _is_lock(error):  # damage that no other statement met
                with suppress(FastprofError):
                    self._renew()
        self._db.close()


def _absolute(path: str) -> bytes:
    return os.path.abspath(path).encode("utf-8", "surrogateescape")


def _is_lock(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _LOCKED


def _is_ours(path: str) -> bool:
    """Whether this is an empty file or a database of this application, damaged or not."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError as error:
        raise_as(path, error)
    return not head or (head.startswith(b"SQLite format 3\0") and head[68:72] == _APPLICATION.to_bytes(4, "big"))


def _digest(*values: Any) -> bytes:
    """Of one row, against damage that leaves it readable."""
    found = blake2b(digest_size=12)
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        found.update(b"%d:" % len(data) + data)
    return found.digest()


_DAMAGED = (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def _are_valid(common: dict[str, Any], each: dict[str, list[Any]], kinds: Mapping[str, set[type]]) -> bool:
    """Whether these are facts of profiles.  Errors: those of _DAMAGED."""
    value, idle, switches = common["value"], common["idle"], [common[name] for name in ("calls", "inclusive", "first")]
    if {*map(type, switches)} != {bool} or not _are_texts(idle) or not (value is None or _are_texts(value)):
        return False
    if each.keys() != kinds.keys() or any(not {*map(type, column)} <= kinds[name] for name, column in each.items()):
        return False
    if len({*map(len, each.values())}) != 1 or (value is not None and not 1 <= len(value) <= 4):
        return False
    for log in filter(None, each["log"]):
        made = Log()
        made.take_data(log)
        made.as_dict()
    return (
        {*map(type, chain.from_iterable(labels.values() for labels in each["labels"]))} <= {str}
        and max(map(abs, each["total"]), default=0) < 1 << 63
        and all(map(isfinite, chain(each["samples"], each["unit"])))
    )


def _are_texts(texts: Any) -> bool:
    return isinstance(texts, list) and {*map(type, texts)} <= {str}


def _short(each: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Columns of a run as they are kept: equal values once, labels by key if all profiles have the same keys."""
    found: dict[str, Any] = {**each}
    keys = {tuple(labels) for labels in each["labels"]}
    if len(keys) == 1:
        found["labels"] = {key: _once([labels[key] for labels in each["labels"]]) for key in keys.pop()}
    return {name: _once(column) if name in _ONCE else column for name, column in found.items()}


def _once(column: list[Any]) -> list[Any]:
    is_once = column.count(column[0]) == len(column) and len({*map(type, column)}) == 1
    return column[:1] if is_once else column


def _whole(columns: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns of `_short`.  Errors: those of _DAMAGED."""
    n, labels = len(columns["size"]), columns["labels"]
    found = {name: column * n if len(column) == 1 and name in _ONCE else column for name, column in columns.items()}
    if isinstance(labels, dict):
        values = zip(*(column * n if len(column) == 1 else column for column in labels.values()), strict=True)
        found["labels"] = [dict(zip(labels, one, strict=True)) for one in values] if labels else [{}] * n
    return found


def _are_costs(facts: dict[str, Any], sizes: list[int], costs: bytes, most: int) -> bool:
    """Whether the costs of profiles have these sizes, and rows below `most`."""
    rows = facts["rows"]
    if not sizes or min(sizes) < 0 or type(rows) is not int or not 0 <= 4 * rows <= len(costs):
        return False
    its: Pointer[int] = ffi.from_buffer("uint32_t[]", array("I", sizes))
    return bool(lib.fp_trend_check(costs, len(costs), rows, its, len(sizes), most) == lib.FP_DONE)
