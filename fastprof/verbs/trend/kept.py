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
from zlib import crc32

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError, faulty, raise_as
from fastprof.core.options import Options
from fastprof.core.version import __version__
from fastprof.inputs.stored import Stored, in_store
from fastprof.verbs.trend.keys import Entry, Key, packed, unpacked

_APPLICATION = 0x46507452  # "FPtR"
_LAYOUT = 3
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
_COMMON = ("value", "calls", "inclusive", "idle")  # facts that are the same for all profiles of a run
_OWN = ("name", "labels", "time", "total", "samples", "unit", "log")


class Run(NamedTuple):
    """Profiles that are kept together: `each` has the facts of _OWN, the time of the file and the length in `costs`."""

    facts: dict[str, Any]
    each: list[list[Any]]
    costs: bytearray  # of one profile after the other, as packed, with names of the cache


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
        self._path, self._may_fail = path, may_fail
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
        self._db = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)
        self._db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        self._db.execute("PRAGMA trusted_schema=OFF")
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
                    os.remove(self._path + suffix)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise faulty(self._path, f"the cache cannot be written: {error}") from None

    def key(self, path: Any) -> bytes | None:
        """The identity of an input and the options; None: it is not kept."""
        found = self.identity(path)
        return None if found is None else _digest(found, self._options)

    def identity(self, path: Any) -> bytes | None:
        """What changes if an input does; None: it is not kept."""
        found: list[Any]
        try:
            if isinstance(path, Stored) and path.name is not None:
                found = [os.path.abspath(path.state.path), path.name, path.state.identity(path.name)]
                if found[-1] is None:
                    return None
            elif isinstance(path, str) and not isinstance(path, Stored) and in_store(path) is None and path != "-":
                its = os.stat(path)
                found = [os.path.abspath(path), its.st_dev, its.st_ino, its.st_size, its.st_mtime_ns, its.st_ctime_ns]
                age = time.time_ns() - max(its.st_mtime_ns, its.st_ctime_ns)
                is_coarse = its.st_mtime_ns % 1_000_000_000 == 0 == its.st_ctime_ns % 1_000_000_000
                if not stat.S_ISREG(its.st_mode) or age < (_COARSE if is_coarse else _SETTLED):
                    return None
            else:
                return None
        except (OSError, ValueError, FastprofError):
            return None
        return repr(found).encode()

    def runs(self, paths: Sequence[Any]) -> Iterator[tuple[range, bytes | None]]:
        """Inputs that are kept together: numbers of paths, and their key; None: that of no run.

        They end where the identity of an input says so, so that a new one changes only the run it is in.
        """
        first, of = 0, list[bytes | None]()
        for number, path in enumerate(paths, 1):
            found = self.identity(path)
            of.append(found)
            if (found is not None and not crc32(found) % _LENGTH) or len(of) == 4 * _LENGTH:
                yield range(first, number), self._key_of_run(of)
                first, of = number, []
        if of:
            yield range(first, len(paths)), None

    def _key_of_run(self, identities: list[bytes | None]) -> bytes | None:
        known = [one for one in identities if one is not None]
        return _digest(b"".join(known), self._options) if len(known) == len(identities) else None

    def run(self, key: bytes) -> Run | None:
        """What is kept of a run; None: nothing, or it is damaged."""
        try:
            row = self._db.execute("SELECT facts, costs, digest FROM runs WHERE key = ?", (key,)).fetchone()
            if row is None or row[-1] != _digest(key, *row[:-1]):
                return None
            facts, each = json.loads(row[0])
            if not _is_run(facts, each, len(row[1])):
                return None
            self._used.append(key)
            return Run(facts, each, bytearray(row[1]))
        except (sqlite3.Error, ValueError, TypeError, KeyError):
            return None

    def keep_run(self, paths: Sequence[Any], times: Mapping[int, int]) -> None:
        """Keep profiles together that are kept one by one, if they have much in common.

        `times`: when they were written, by number.
        """
        identities = [self.identity(path) for path in paths]
        key = self._key_of_run(identities)
        entries = [self.get(_digest(one, self._options)) for one in identities if one is not None]
        found = [entry for entry in entries if entry is not None]
        if key is None or len(found) < len(paths):
            return
        common = {name: found[0].facts[name] for name in _COMMON}
        if any(entry.facts[name] != common[name] for entry in found for name in _COMMON):
            return
        data = [packed(entry.costs) for entry in found]
        each = [
            [*(entry.facts[name] for name in _OWN), times.get(number), len(costs)]
            for number, (entry, costs) in enumerate(zip(found, data, strict=True))
        ]
        facts = json.dumps([common | {"first": found[0].facts["first"]}, each], separators=(",", ":"))
        costs = b"".join(data)
        if len(costs) < _MOST_BYTES:
            row = facts, costs, _digest(key, facts, costs)
            self._write("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", (key, _digest(self._options), *row))
            self._used.append(key)
            self._has_new_run = True

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
            return Entry(facts, costs) if _is_valid(facts, costs[0]) else None
        except (sqlite3.Error, ValueError, TypeError, KeyError):
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
                raise faulty(self._path, f"the cache cannot be written: {error}") from None
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


_FACTS = {"name": str, "labels": dict, "total": int, "samples": float, "unit": float, "inclusive": bool, "log": dict}


def _is_valid(facts: Any, rows: array[int]) -> bool:
    return (
        isinstance(facts, dict)
        and all(isinstance(facts.get(name), kind) for name, kind in _FACTS.items())
        and all(isinstance(one, str) for pair in facts["labels"].items() for one in pair)
        and len({*rows}) == len(rows)
    )


def _is_run(facts: dict[str, Any], each: list[list[Any]], n: int) -> bool:
    """Whether a run has the facts of profiles whose costs have n bytes.  Errors: KeyError, TypeError, ValueError."""
    whole = all(
        _is_valid(facts | dict(zip(_OWN, one, strict=False)), _NO_ROWS) and len(one) == len(_OWN) + 2 and one[-1] >= 0
        for one in each
    )
    return whole and "first" in facts and sum(one[-1] for one in each) == n


_NO_ROWS = array("I")
