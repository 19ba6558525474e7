"""Pairs the functions of two profiles and gives both the same ids (csrc/bridges/rows/pair.h).

    old                                       new                                       paired by
    main  /src/a.c          /opt/app-1.4      main  /src/a.c          /opt/app-1.5      base name of the object
    f     /build1/lib/b.c   libx.so           f     /build2/lib/b.c   libx.so           base name of the file
    [app-1.4+0x1136]        /opt/app-1.4      [app-1.5+0x1136]        /opt/app-1.5      not paired: other build

The rules, strongest first.  Each pairs, one to one, what the stronger rules left unpaired:

1. Objects: equal; build id; path; base name without version and hash.
2. Functions of paired objects: name and path of the file; name and base name of the file; name alone, if one side lacks
   the file.  Finally, functions whose object one side lacks: name and base name of the file.

Of several candidates, the two whose paths share the longest suffix are paired, unless another pair shares one as long.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import NamedTuple, Pointer, T
from fastprof.core.c_memory import enough, owned
from fastprof.core.errors import check_sums
from fastprof.core.labels import GROUP_END
from fastprof.core.model import Batch, Model
from fastprof.core.unknown_names import UNKNOWN_BYTES

# The names of the rules in the log.  A function is counted under its object's rule, unless its own rule is weaker.
BUILD_ID = "build id"
PATH = "path of the object"
BASE_NAME = "base name of the object"
FILE = "base name of the file"
NO_FILE = "name alone, without a file"
NO_OBJECT = "name and file, without an object"
RULES = (BUILD_ID, PATH, BASE_NAME, FILE, NO_FILE, NO_OBJECT)

_LONGEST = 4096  # bytes of a name compared


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Addresses as names, and versions.  Compiled when they are used: few profiles need them."""
    # -1.4.2, _v2, .so.6, -2.0-rc1, -3f2a9bc1: at the end or followed by a separator
    version = (
        rb"[-_.](?:v?[0-9]+(?:[._][0-9]+)*(?:[-._]?(?:alpha|beta|rc|dev|post|pre)[0-9.]*)?"
        rb"|g?(?=[a-f]*[0-9])[0-9a-f]{7,64})(?=$|[-_.])"
    )
    return re.compile(rb"(?is)(?:\[.*\+)?0x[0-9a-f]+\]?"), re.compile(version, re.IGNORECASE)


def stem(path: bytes) -> bytes:
    """The base name of a program or library without version and hash: libx.so of /opt/lib/libx-1.4.so.2."""
    name = path[-_LONGEST:].removesuffix(b" (deleted)").rpartition(b"/")[2]
    return _patterns()[1].sub(b"", name) or name


def _base(path: bytes) -> bytes:
    return path[-_LONGEST:].replace(b"\\", b"/").rpartition(b"/")[2]


def _is_address(name: bytes) -> bool:
    return name[:1] in (b"[", b"0") and _patterns()[0].fullmatch(name) is not None


class _Object(NamedTuple):
    name: bytes
    build_id: bytes


class _Function(NamedTuple):
    """Functions by name, file and object; `_replace` pairs those of several lines."""

    object: int
    file: bytes
    name: bytes


def _unversioned(f: _Function) -> bytes:
    """The name without the version of its object: [app-1.4+0x1136] becomes [app+0x1136]."""
    label, end, name = f.name[:_LONGEST].rpartition(GROUP_END)
    return label + end + name.rpartition(b"+")[2] if _is_address(name) else f.name


class Pairs:
    """Pairs functions: pass all rows of both sides through `noted`, call `find`, then pass them through `replaced`.

    `counts`: how many functions (files, objects) were paired by each rule.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._c = owned(lib.fp_pair_new(model.c), "the functions of two profiles")
        self._err = ffi.new("struct fp_err *")
        self.counts: Counter[str] = Counter()

    def __bool__(self) -> bool:
        """Whether rows need new ids."""
        return bool(self._c.n_replaced)

    @property
    def counterparts(self) -> tuple[Pointer[int], int]:
        """By function: its counterpart, 0 for none; and the number of these.  Call it after `find`."""
        return self._c.to_function, int(self._c.n_to_function)

    def noted(self, batches: Iterable[Batch], side: int) -> Iterator[Batch]:
        """The same rows; records their functions for side 0 or 1."""
        for batch in batches:
            self._check(lib.fp_pair_note(self._c, batch.c, side, self._err))
            yield batch

    def replaced(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Replaces the ids in rows by those of their counterparts.  Call it after `find`."""
        for batch in batches:
            self._check(lib.fp_pair_batch(self._c, batch.c, self._err))
            yield batch

    def replace(self, functions: Pointer[int]) -> None:
        """Replaces functions of the old side by their counterparts.  Call it after `find`."""
        lib.fp_pair_functions(self._c, functions, len(functions))

    def _check(self, status: int) -> None:
        check_sums(status, self._err, self._model, "functions of two profiles", [])

    # ---- pairs

    def find(self, by: str = "function") -> None:
        """Pair the functions, files or objects by which rows are grouped (`coarse.BY`)."""
        self._find(by)
        self._check(lib.fp_pair_frames(self._c))

    def _find(self, by: str) -> None:
        if by == "file":
            self._files()
            return
        if by == "object":
            olds, news = _sides(_marked(self._c.functions, self._c.n_functions), self._function)
            objects = self._objects({f.object for f in olds}, {f.object for f in news})
            by_object = {f.object: ids for f, ids in news.items()}
            for f, ids in olds.items():
                to, rule = objects.get(f.object, (0, ""))
                self._replace(ids, by_object[to], rule) if to != f.object and to in by_object else None
            return
        self._check(lib.fp_pair_same(self._c, self._err))
        objects = self._objects(*map(set, _sides(_marked(self._c.objects, self._c.n_objects, first=0), int)))
        left = ((i, self._c.functions[i]) for i in ffi.unpack(self._c.left, self._c.n_left))
        self._functions(*_sides(left, self._function), objects)
        if by == "line":
            self._files(counted=False)

    def _function(self, i: int) -> _Function:
        object_, file, name, *_ = self._model.row("functions", i)
        return _Function(object_, self._model.string(file), self._model.string(name))

    def _replace(self, olds: list[int], news: list[int], rule: str, *, files: bool = False) -> None:
        """Replace ids of the old side by the new side's id."""
        replace = lib.fp_pair_file if files else lib.fp_pair_function
        counterparts = dict.fromkeys(olds, news[0]) if files else self._by_line(olds, news)
        for i, to in counterparts.items():
            if i not in news:
                enough(replace(self._c, i, to))
        if rule:
            self.counts[rule] += 1

    def _by_line(self, olds: list[int], news: list[int]) -> dict[int, int]:
        """The counterparts of functions with the same name and file, as fp_pair_same finds them."""
        sides = [defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)]
        for by_line, ids in zip(sides, (olds, news), strict=True):
            for i in ids:
                by_line[self._model.row("functions", i)[4]].append(i)
        old, new = sides
        pairs = [(line, line) for line in old if line in new]
        left = [sorted(line for line in one if line not in other) for one, other in ((old, new), (new, old))]
        pairs += zip(*left, strict=True) if len(left[0]) == len(left[1]) else ()
        return {i: new[to][0] for line, to in pairs for i in old[line]}

    def _objects(self, olds: set[int], news: set[int]) -> dict[int, tuple[int, str]]:
        """The new side's object for each object of the old side, and the rule."""
        found = {i: (i, "") for i in olds & news}
        texts = {i: _Object(*map(self._model.string, self._model.row("objects", i))) for i in olds | news if i}
        left = [i for i in sorted(olds - news) if i], [i for i in sorted(news - olds) if i]
        rules: tuple[tuple[str, Callable[[_Object], bytes]], ...] = (
            (BUILD_ID, lambda one: one.build_id),
            (PATH, lambda one: one.name),
            (BASE_NAME, lambda one: stem(one.name)),
        )
        for rule, key in rules:
            pairs = _paired(left[0], left[1], lambda i, key=key: key(texts[i]), lambda i: texts[i].name)  # type: ignore[misc]
            found |= {old: (new, rule) for old, new in pairs.items()}
            left = [i for i in left[0] if i not in pairs], [i for i in left[1] if i not in pairs.values()]
        return found

    def _functions(
        self, olds: dict[_Function, list[int]], news: dict[_Function, list[int]], objects: dict[int, tuple[int, str]]
    ) -> None:
        left = [*olds], [*news]
        no_file = {_unversioned(f) for side in left for f in side if f.file in UNKNOWN_BYTES}
        paired: set[_Function] = set()

        def moved(f: _Function) -> int:
            """The counterpart of the function's object in the new profile."""
            return objects[f.object][0] if f in olds else f.object

        rules: tuple[tuple[str, Callable[[_Function], Hashable], Callable[[_Function], bool]], ...] = (
            ("", lambda f: (moved(f), _unversioned(f), f.file), lambda f: True),
            (FILE, lambda f: (moved(f), _unversioned(f), _base(f.file)), lambda f: f.file not in UNKNOWN_BYTES),
            (NO_FILE, lambda f: (moved(f), _unversioned(f)), lambda f: _unversioned(f) in no_file),
        )
        for rule, key, applies in rules:
            free = [
                f
                for f in left[0]
                if f not in paired and f.object in objects and applies(f) and self._has_name(f, objects[f.object][1])
            ]
            pairs = _paired(free, [f for f in left[1] if f not in paired and applies(f)], key, lambda f: f.file)
            if rule == NO_FILE:
                pairs = {old: new for old, new in pairs.items() if {old.file, new.file} & {*UNKNOWN_BYTES}}
            for old, new in pairs.items():
                self._replace(olds[old], news[new], rule or objects[old.object][1])
            paired.update(pairs, pairs.values())
        without = [[f for f in side if f not in paired and self._has_name(f, "")] for side in left]
        for old, new in _paired(without[0], without[1], lambda f: (f.name, _base(f.file)), lambda f: f.file).items():
            if not old.object or not new.object:
                self._replace(olds[old], news[new], NO_OBJECT)

    @staticmethod
    def _has_name(f: _Function, rule: str) -> bool:
        """False for addresses: they are comparable only within a build."""
        return rule == BUILD_ID or not _is_address(f.name[:_LONGEST].rpartition(GROUP_END)[2])

    def _files(self, *, counted: bool = True) -> None:
        """Pair files by the longest suffix of their paths that is unique on the other side."""
        olds, news = _sides(_marked(self._c.files, self._c.n_files), self._model.string)
        left = [
            [f for f in one if f not in other and f not in UNKNOWN_BYTES] for one, other in ((olds, news), (news, olds))
        ]
        for old, new in _paired(left[0], left[1], _base, lambda f: f).items():
            self._replace(olds[old], news[new], FILE if counted else "", files=True)
        if counted:  # a row by file has a function named after the file
            marks = _marked(self._c.functions, self._c.n_functions)
            functions = _sides(marks, lambda i: self._function(i).name)
            for old, new in _paired(left[0], left[1], _base, lambda f: f).items():
                self._replace(functions[0][old], functions[1][new], "")


def _marked(marks: Pointer[int], n: int, first: int = 1) -> list[tuple[int, int]]:
    """The ids that are marked, from `first` on, and the sides that they are marked for."""
    return [(i, sides) for i, sides in enumerate(ffi.buffer(marks, n)[first:] if n else b"", first) if sides]


def _sides(marked: Iterable[tuple[int, int]], key: Callable[[int], T]) -> tuple[dict[T, list[int]], dict[T, list[int]]]:
    """The ids of each side, by key."""
    olds: dict[T, list[int]] = {}
    news: dict[T, list[int]] = {}
    for i, sides in marked:
        its = key(i)
        for bit, side in ((1, olds), (2, news)):
            if sides & bit:
                side.setdefault(its, []).append(i)
    return olds, news


def _paired(
    olds: Iterable[T], news: Iterable[T], key: Callable[[T], Hashable], path: Callable[[T], bytes]
) -> dict[T, T]:
    """Pair items with equal keys, one to one.  Empty keys do not match."""
    groups = defaultdict[Hashable, tuple[list[T], list[T]]](lambda: ([], []))
    for side, items in enumerate((olds, news)):
        for item in items:
            if k := key(item):
                groups[k][side].append(item)
    found: dict[T, T] = {}
    for one, other in groups.values():
        if len(one) == len(other) == 1:
            found[one[0]] = other[0]
        elif one and other and len(one) * len(other) <= _MOST_CANDIDATES:
            found |= _by_ends(one, other, path)
    return found


_MOST_CANDIDATES = 1 << 16  # pairs per key; names with more are too ambiguous


def _by_ends(olds: list[T], news: list[T], path: Callable[[T], bytes]) -> dict[T, T]:
    """Pair the candidates whose paths share the longest suffix, if each is the other's best."""
    ends = {item: path(item)[-_LONGEST:].split(b"/")[::-1] for item in (*olds, *news)}

    def shared(old: T, new: T) -> int:
        n = 0
        for a, b in zip(ends[old], ends[new], strict=False):
            if a != b:
                break
            n += 1
        return n

    scores = {(old, new): shared(old, new) for old in olds for new in news}
    found: dict[T, T] = {}
    for old in olds:
        best = max(scores[old, new] for new in news)
        first, *others = [new for new in news if scores[old, new] == best]
        if others or any(scores[other, first] >= best for other in olds if other != old):
            continue
        found[old] = first
    return found
