"""The sums of each profile: what its functions cost, by numbers that all profiles share.

    profile   point        host    total    samples    rows (function: self, inclusive)
    a.prof    2026-03-01   web1    9,000    900        f: 3,000, 9,000   g: 6,000, 6,000

They are written to a temporary file, so that memory does not grow with profiles.  Functions are those of `diff`: equal
if name, file and object are, else if builds differ only in paths and versions (`Rows`).
"""

from __future__ import annotations

import mmap
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import accumulate, islice, takewhile
from math import gcd, inf
from operator import add

from fastprof import bridges, plan
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple, Pointer
from fastprof.core.chosen_value import ChosenValue
from fastprof.core.errors import faulty, printable, usage_error
from fastprof.core.log import Log
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.unknown_names import UNKNOWN_BYTES
from fastprof.inputs import Inputs, Progress, is_file
from fastprof.verbs.function_costs import FunctionCosts
from fastprof.verbs.groups import keys_of
from fastprof.verbs.trend.keys import Costs, Entry, Key, packed, unpacked, unversioned

if TYPE_CHECKING:
    from fastprof.verbs.trend.kept import Cache, Run


class Profile(NamedTuple):
    """What is known of a profile besides the costs of its rows."""

    name: str
    labels: dict[str, str]
    time_ns: int | None
    total: int
    samples: float  # number of samples; 0: costs are exact, or it is unknown
    unit: float  # what its costs are divided by: its total, or as --per says
    at: int  # of its rows in the file of sums
    path: Any = None  # from which it can be read again
    size: int = 0  # of its rows in that file


_FEW = 64  # rows that are compared one by one
_DEEPEST = 16  # names of a path by which more rows than these are found


class _Alike:
    """Rows of one name, in the order in which they came.  Of many, those are found whose paths end alike."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        # by the last names of the path, each row once; b"": it is unknown
        self._ends: dict[bytes, dict[int, None]] | None = None

    def add(self, row: int, keys: Sequence[Key]) -> None:
        self._rows.append(row)
        if self._ends is not None:
            self.rename(row, keys[row][1])
        elif len(self._rows) > _FEW:
            self._ends = {}
            for one in self._rows:
                self.rename(one, keys[one][1])

    def rename(self, row: int, file: bytes) -> None:
        """The row has this path from now on."""
        if self._ends is not None:
            for end in ends(file):
                self._ends.setdefault(end, {})[row] = None

    def near(self, file: bytes) -> Iterator[tuple[int, Iterable[int]]]:
        """Rows whose paths share at least so many names with that of `file`, most first; unknown ones share 1."""
        if self._ends is None or file in UNKNOWN_BYTES:
            yield 1, self._rows
            return
        its = ends(file)
        for n in range(len(its), 1, -1):
            yield n, self._ends.get(its[n - 1], ())
        yield 1, merge(self._ends.get(its[0], ()), self._ends.get(b"", ()))


def ends(file: bytes) -> list[bytes]:
    """The last name of a path, the last two ..."""
    if file in UNKNOWN_BYTES:
        return [b""]
    names = file.rsplit(b"/", _DEEPEST)[-_DEEPEST:]
    return [b"/".join(names[-n:]) for n in range(1, len(names) + 1)]


class Rows:
    """Numbers of functions (lines, files ...) that stay the same from profile to profile."""

    def __init__(self, *, pair: bool) -> None:
        self._pair = pair
        self.keys: list[Key] = []  # as the last profile with them names them
        self._numbers: dict[Key, int] = {}
        self._alike: dict[tuple[object, ...], _Alike] = {}  # by what another build leaves unchanged
        self._last: dict[int, int] = {}  # by row: the number of the last profile that has it
        self._first_new = 0  # the first row that came with the current profile

    def numbers(self, keys: list[Key], profile: int) -> list[int]:
        """The rows of the keys of one profile."""
        self._first_new = len(self.keys)
        found: list[int | None] = [self._numbers.get(key) for key in keys]
        for row in found:
            if row is not None:
                self._last[row] = profile
        # in an order that does not depend on that of the profile, in which two may be alike
        for i in sorted((i for i, row in enumerate(found) if row is None), key=keys.__getitem__):
            found[i] = self._added(keys[i], profile)
        return [row for row in found if row is not None]

    def _added(self, key: Key, profile: int) -> int:
        if key in self._numbers:
            return self._numbers[key]
        row = self._counterpart(key, profile) if self._pair else None
        if row is None:
            row = len(self.keys)
            self.keys.append(key)
            if self._pair:
                self._alike.setdefault(unversioned(key), _Alike()).add(row, self.keys)
        else:
            self.keys[row] = key
            self._alike[unversioned(key)].rename(row, key[1])
        self._numbers[key] = row
        self._last[row] = profile
        return row

    def _counterpart(self, key: Key, profile: int) -> int | None:
        """The row of the same function in an earlier build: of those that this profile lacks, the one whose file's path
        has the longest common end."""
        alike, file = self._alike.get(unversioned(key)), key[1]
        for least, rows in alike.near(file) if alike else ():
            old = takewhile(lambda row: row < self._first_new, rows)  # later ones are of this profile
            best, most, tied = None, least - 1, False
            for row in islice((row for row in old if self._last.get(row) != profile), _FEW):
                other = self.keys[row][1]
                score = 1 if file in UNKNOWN_BYTES or other in UNKNOWN_BYTES else _common_end(file, other)
                if score > most:
                    best, most, tied = row, score, False
                elif score == most:
                    tied = True
            if best is not None:
                return None if tied else best
        return None


def _merged(ids: array[int], columns: list[array[int]]) -> Costs:
    """Ids and their costs, with the sums of those that come several times: functions of several first lines are one."""
    if len({*ids}) == len(ids):
        return ids, columns[0], columns[1], columns[2]
    sums: dict[int, list[int]] = {}
    for i, *its in zip(ids, *columns, strict=True):
        so_far = sums.get(i)
        sums[i] = its if so_far is None else [*map(add, so_far, its)]
    own, inclusive, calls = (array("q", (its[k] for its in sums.values())) for k in range(3))
    return array("I", sums), own, inclusive, calls


def _common_end(a: bytes, b: bytes) -> int:
    """The number of names that two paths share at their ends."""
    n = 0
    for one, other in zip(reversed(a.split(b"/")), reversed(b.split(b"/")), strict=False):
        if one != other:
            break
        n += 1
    return n


def added(
    pipelines: Sequence[plan.Pipeline], model: Model, options: Options, log: Log, *, costs: FunctionCosts
) -> None:
    """Add the rows of one profile to its costs."""
    for pipeline in pipelines:
        costs.add(pipeline, log)
    costs.end()


class Sums:
    """Reads profiles, one after the other.  `options`: those of the verb; `by`: what rows are."""

    def __init__(
        self,
        end: plan.End,
        by: str,
        options: Options,
        from_: str | None,
        progress: Progress | None,
        per: str | None,
        cache: Cache | None,
    ) -> None:
        self._end, self._by, self._options, self._from, self._progress = end, by, options, from_, progress
        self._model, self._cache = Model(), cache
        self._per = Per(per) if per is not None else None
        self.value = ChosenValue(options[bridges.VALUE], "--value")
        self.rows = Rows(pair=by in ("function", "line", "file", "object", "category") or "function" in keys_of(by))
        self.totals = array("d")  # by row: of self costs, by which rows are chosen if there are too many
        self.inclusive_known = True
        self._file = tempfile.TemporaryFile(prefix="fastprof-")
        self._numbers = array("i")  # by id of the model: its row; -1: unknown
        self._of_names = array("i")  # by name of the cache: its row; -1: unknown
        self.unused: dict[str, int] = {}  # keys of options without effect: on how many profiles
        self.n_read = 0
        self._borrowed: list[Any] = []  # by what renumbers rows
        self._marks = array("I")  # by row: the last profile of a run with it
        self._in_cache = array("i")  # by id of the model: its name of the cache; -1: unknown
        self._map: bytes | mmap.mmap | None = None  # the file
        self._ends: list[Any] = []  # the first and the last input that can be read again

    def close(self) -> None:
        self._file.close()
        if self._cache:
            self._cache.close()

    def read(self, path: Any, time_ns: int | None, labels_of: Callable[[str], dict[str, str]], log: Log) -> Profile:
        """Add one profile.  Errors: FastprofError and its kinds; then nothing of it is kept."""
        own = Log()
        key = self._cache.key(path) if self._cache else None
        entry = self._from_cache(key)
        if entry is None:
            is_first = self.value.type is None
            found, costs = self._summed(path, own)
            facts = found | {"first": is_first, "value": [*self.value.type] if self.value.type else None}
            ids, *columns = _costs_of(costs)
            rows = self._rows_of(costs, ids)
            is_known = not (self._per and self._per.is_missing)  # else it is read again, for the error
            if self._cache and key is not None and is_known and self._cache.key(path) == key:  # not changed meanwhile
                names = self._names_in_cache(costs, ids)
                self._cache.put(key, Entry(facts | {"log": own.data()}, _merged(names, columns)))
        else:
            facts, columns = entry.facts, [*entry.costs[1:]]
            own.take_data(facts["log"])
            rows = self._rows_of_names(entry.costs[0])
        name, total = facts["name"], facts["total"]
        labels = {**facts["labels"], **labels_of(name)}
        unit = self._per.unit(name, labels, facts["unit"], calls_known=facts["calls"]) if self._per else float(total)
        at, size = self._written(rows, columns, total)
        self.inclusive_known &= facts["inclusive"]
        for option in facts["idle"]:
            self.unused[option] = self.unused.get(option, 0) + 1
        self.n_read += 1
        if is_file(path):
            self._ends[1:] = [path]
        log.take(own)
        time = time_ns if facts["time"] is None else facts["time"]
        return Profile(name, labels, time, total, facts["samples"], unit, at, path, size)

    def check_per(self) -> None:
        """Errors: UsageError if no profile has the value type of --per."""
        if self._per and self._per.is_missing and self._per.value and self._per.value.others:
            self._per.value.known(self._model)

    def _summed(self, path: Any, log: Log) -> tuple[dict[str, Any], FunctionCosts]:
        """Read a profile: facts for the cache, and the costs of its rows."""
        model, idle = self._model, list[Any]()
        n_parts = len(model.parts)
        second = self._per.value if self._per else None
        with Inputs([path], self._from, model, self._options, log, self._progress) as inputs:
            made = plan.checked(self._end, [inputs.all], self._options, idle=idle.append)
            costs = FunctionCosts(model, self._by, self.value, second, arcs=False, cycles=True)
            added(made.pipelines, model, self._options, log, costs=costs)
            one = made.inputs[0]
            labels, name, view = {**one.labels}, one.name, one.view
        parts, total = model.parts[n_parts:], costs.sum("self")
        recorded = [part.extra["time_ns"] for part in parts if part.extra.get("time_ns")]
        model.empty_stacks()
        return {
            "name": name,
            "labels": labels,
            "time": min(recorded, default=None),
            "total": total,
            "samples": _samples(parts, self.value, view, total) or _ticks(costs, self.value, view, total),
            "unit": float(costs.sum("second")) if second else 0.0,
            "calls": costs.calls_known,
            "inclusive": costs.inclusive_known,
            "idle": [option.key for option in idle],
        }, costs

    def _from_cache(self, key: bytes | None) -> Entry | None:
        """What is kept of a profile, if it has the value type that reading it would give."""
        entry = self._cache.get(key) if self._cache and key is not None else None
        return entry if entry and self._takes(entry.facts) else None

    def _takes(self, facts: dict[str, Any]) -> bool:
        if not facts["value"]:
            return False
        type_ = ValueType(*facts["value"])
        if self.value.type is None:
            if not facts["first"] and self.value.name is None:
                return False
            self.value.type = self.value.default = type_
        return type_ == self.value.type

    def _names_in_cache(self, costs: FunctionCosts, ids: array[int]) -> array[int]:
        """The name of each id in the cache."""
        assert self._cache
        number, known = self._cache.number, self._in_cache
        if not self._ids_stay:
            return array("I", [number(self._key(costs, i)) for i in ids])
        known.extend([-1] * (max(ids, default=-1) + 1 - len(known)))
        for i in ids:
            if known[i] < 0:
                known[i] = number(self._key(costs, i))
        return array("I", map(known.__getitem__, ids))

    def _rows_of_names(self, names: array[int]) -> array[int]:
        """The row of each name of the cache, which stays the same once it is known."""
        assert self._cache
        known = self._of_names
        if len(known) < self._cache.n_names:
            known.extend([-1] * (self._cache.n_names - len(known)))
        rows = array("i", map(known.__getitem__, names))
        if rows and min(rows) < 0:
            rows = array("i", self.rows.numbers([self._cache.name(number) for number in names], self.n_read))
            for number, row in zip(names, rows, strict=True):
                known[number] = row
        return array("I", rows.tobytes())

    def _written(self, rows: array[int], columns: list[array[int]], total: int) -> tuple[int, int]:
        """Write the costs of rows to the file.  Returns their place and length."""
        costs = _merged(rows, columns)
        rows, own, *_ = costs
        most = len(self.rows.keys)
        if most > len(self.totals):
            self.totals.extend([0.0] * (most - len(self.totals)))
        totals: Pointer[float] = ffi.from_buffer("double[]", self.totals)  # type: ignore[assignment]
        ids, its = ffi.from_buffer("uint32_t[]", rows), ffi.from_buffer("int64_t[]", own)
        lib.fp_trend_total(totals, ids, its, len(rows), 1 / total if total else 0.0)
        data = packed(costs)
        return self._file.seek(0, 2), self._file.write(data)

    def kept(self) -> bytes | mmap.mmap:
        """The packed costs of all profiles, at the places that they have; after the last was read."""
        if self._map is None:
            self._file.flush()
            is_empty = not self._file.seek(0, 2)
            self._map = b"" if is_empty else mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map

    def runs(self, paths: Sequence[Any]) -> Iterator[tuple[range, bytes | None]]:
        """Numbers of paths that may be kept together, and the key of `read_run`."""
        yield from self._cache.runs(paths) if self._cache else [(range(len(paths)), None)]

    def read_run(
        self, key: bytes, paths: Sequence[Any], labels_of: Callable[[str], dict[str, str]], log: Log
    ) -> list[Profile] | None:
        """`read` of profiles that are kept together.  None: they are not."""
        assert self._cache
        run = self._cache.run(key)
        if run is None or len(run.names) != len(paths) or not self._takes(run.facts):
            return None
        places = self._renumbered(run)
        labels = []
        for name, own, notes in zip(run.names, run.labels, run.logs, strict=True):
            labels.append({**own, **labels_of(name)})
            if notes:
                log.take_data(notes)
        units: Iterable[float] = map(float, run.totals)
        if per := self._per:
            known = run.facts["calls"]
            each = zip(run.names, labels, run.units, strict=True)
            units = [per.unit(name, own, second, calls_known=known) for name, own, second in each]
        times = [written if time is None else time for time, written in zip(run.times, run.written, strict=True)]
        columns = run.names, labels, times, run.totals, run.samples, units, places, paths, run.sizes
        profiles = [*map(Profile._make, zip(*columns, strict=True))]
        self.inclusive_known &= run.facts["inclusive"]
        for option in run.facts["idle"]:
            self.unused[option] = self.unused.get(option, 0) + len(paths)
        for path in (paths[0], paths[-1]):
            if is_file(path):
                self._ends[1:] = [path]
        return profiles

    def keep_run(self, paths: Sequence[Any], times: Mapping[int, int]) -> None:
        """Keep what was read together.  `times`: of the paths, by number."""
        assert self._cache
        self._cache.keep_run(paths, times)

    def _renumbered(self, run: Run) -> list[int]:
        """Write the costs of a run.  Returns the places of those of each profile, whose sizes are set."""
        assert self._cache
        n, first = len(run.sizes), self.n_read
        sizes, scales = array("I", run.sizes), array("d", [1 / total if total else 0.0 for total in run.totals])
        places = [*accumulate(run.sizes, initial=4 * run.facts["rows"])]
        apart: dict[int, int] = {}
        done = 0
        while done < n:
            numbers = self._renumbering()
            data, rest = (ffi.from_buffer(kind, of) for kind, of in (("uint8_t[]", run.costs), ("uint32_t[]", sizes)))
            scale: Pointer[float] = ffi.from_buffer("double[]", scales) + done  # type: ignore[assignment]
            more = lib.fp_trend_renumber(
                numbers, data, len(run.costs), places[done], rest + done, scale, n - done, first + done + 1
            )
            self._borrowed.clear()
            if more < 0:
                raise faulty(self._cache.path, "the cache was changed while it was read")
            done += more
            self.n_read = first + done
            if done < n:  # names that are new, or several of one function
                costs = unpacked(run.costs, self._cache.n_names, places[done], run.sizes[done])
                at = self._written(self._rows_of_names(costs[0]), [*costs[1:]], run.totals[done])
                apart[done], run.sizes[done] = at
                done += 1
        self.n_read = first + n
        begin = self._file.seek(0, 2)
        self._file.write(run.costs)
        return [apart.get(i, begin + places[i]) for i in range(n)]

    def _renumbering(self) -> Any:
        assert self._cache
        most = len(self.rows.keys)
        self._of_names.extend([-1] * (self._cache.n_names - len(self._of_names)))
        self.totals.extend([0.0] * (most - len(self.totals)))
        self._marks.extend([0] * (most - len(self._marks)))
        numbers = ffi.new("struct fp_trend_numbers *")
        self._borrowed += [
            ffi.from_buffer("int32_t[]", self._of_names),
            ffi.from_buffer("uint32_t[]", self._marks),
            ffi.from_buffer("double[]", self.totals),
        ]
        numbers.rows, numbers.marks, numbers.totals = self._borrowed
        numbers.n_old, numbers.n_new = self._cache.n_names, most
        return numbers

    def _rows_of(self, costs: FunctionCosts, ids: array[int]) -> array[int]:
        """The row of each id.  Functions and files keep their ids from profile to profile."""
        if not self._ids_stay:
            return array("I", self.rows.numbers([self._key(costs, i) for i in ids], self.n_read))
        numbers = self._numbers
        if ids and (most := max(ids)) >= len(numbers):
            numbers.extend([-1] * (most + 1 - len(numbers)))
        new = [i for i in ids if numbers[i] < 0]
        if new:
            for i in ids:
                if numbers[i] >= 0:
                    self.rows._last[numbers[i]] = self.n_read
            for i, row in zip(new, self.rows.numbers([self._key(costs, i) for i in new], self.n_read), strict=True):
                numbers[i] = row
        return array("I", map(numbers.__getitem__, ids))

    def callees(self) -> dict[int, set[int]] | None:
        """The rows that each row calls in the first and the last profile; None: unknown."""
        found: dict[int, set[int]] = {}
        for path in self._ends:
            with Inputs([path], self._from, self._model, self._options, Log()) as inputs:
                made = plan.checked(self._end, [inputs.all], self._options, idle=lambda option: None)
                costs = FunctionCosts(self._model, self._by, self.value, None, arcs=True, cycles=False)
                added(made.pipelines, self._model, self._options, Log(), costs=costs)
            if not costs.has_arcs:
                return None
            ids = _costs_of(costs)[0]
            for i, row in zip(ids, self._rows_of(costs, ids), strict=True):
                callees = array("I", [arc.callee for arc in costs.arcs(i, into=False)])
                found.setdefault(row, set()).update(self._rows_of(costs, callees))
        return found

    @property
    def _ids_stay(self) -> bool:
        return self._by in ("function", "file", "object", "category")

    def _key(self, costs: FunctionCosts, i: int) -> Key:
        model, by = self._model, self._by
        if keys_of(by):
            label, function = costs.group(i)
            if "function" not in keys_of(by):
                return b"", b"", b"", 0, label
            f = model.get_function(function)
            return f.name, f.file, f.object, 0, label
        if by == "file":
            return b"", model.string(i), b"", 0, ""
        if by in ("object", "category"):
            return b"", b"", model.string(model.row("objects", i)[0]), 0, ""
        if by == "line":
            function, file, line = costs.place(i)
            f = model.get_function(function)
            return f.name, model.string(file), f.object, line, ""
        f = model.get_function(i)
        return f.name, f.file, f.object, 0, ""


def _costs_of(costs: FunctionCosts) -> tuple[array[int], array[int], array[int], array[int]]:
    """Ids of rows with costs; self and inclusive costs and calls."""
    c = costs.sums
    room = c.cap or 1
    ids, *columns = ffi.new("uint32_t[]", room), *(ffi.new("int64_t[]", room) for _ in range(3))
    n = lib.fp_trend_costs(c, ids, *columns)
    found = array("I"), array("q"), array("q"), array("q")
    for part, items in zip(found, (ids, *columns), strict=True):
        part.frombytes(ffi.buffer(items, part.itemsize * n))
    return found


class Per:
    """--per: what the costs of a profile are divided by."""

    def __init__(self, word: str) -> None:
        self.key = word[6:] if word.startswith("label:") else None
        self.value: ChosenValue | None = None
        self.number: float | None = None
        if self.key is not None or word == "calls":
            return
        try:
            self.number = float(word)
        except ValueError:
            self.value = ChosenValue(word, "--per", also=("calls", "label:KEY", "a number"))
        if self.number is not None and not 0 < self.number < inf:
            raise usage_error("{--per:=}{per} is not a number above 0", per=word)

    @property
    def is_missing(self) -> bool:
        """Whether no profile read so far has the value type."""
        return self.value is not None and self.value.type is None

    def unit(self, name: str, labels: dict[str, str], second: float, *, calls_known: bool) -> float:
        """Errors: UsageError for an input without it."""
        if self.number is not None:
            return self.number
        if self.value is not None:
            return second
        if self.key is None:
            if not calls_known:
                raise usage_error("{file}: {--per:=}calls: the profile does not count calls", file=printable(name))
            return 1.0
        text = labels.get(self.key)
        try:
            found = float(text or "")
        except ValueError:
            found = 0.0
        if not 0 < found < inf:
            what = "{file}: {--per:=}label:{key}: the label is {text}, expected a number above 0"
            raise usage_error(what, file=printable(name), key=self.key, text=repr(text) if text else "missing")
        return found


# Names of value types that count samples as they were taken.
_COUNTED = ("samples", "sample", "count")


def _ticks(costs: FunctionCosts, value: ChosenValue, view: str, total: int) -> float:
    """The number of samples of a clock: times that are all multiples of one microsecond or more, its period; else 0."""
    if view != "stacks" or value.type is None or value.type.unit not in ("ns", "nanoseconds"):
        return 0
    period = gcd(*_costs_of(costs)[1])
    return total / period if period >= 1000 else 0


def _samples(parts: list[Part], value: ChosenValue, view: str, total: int) -> float:
    """The number of samples of a total; 0: it is exact, or unknown."""
    type_ = value.type
    if view != "stacks" or type_ is None:
        return 0
    if type_.name in _COUNTED and type_.unit in ("", "count", "samples"):
        return float(max(0, total))
    for part in parts:
        period, of = part.extra.get("period"), part.extra.get("period_type", ())
        if period and of and of[0] == type_.name and of[0] not in ("space", "contentions"):
            return max(0.0, total / float(period))
        if period and of and of[-1] == type_.unit and type_.unit:
            return max(0.0, total / float(period))
    return 0
