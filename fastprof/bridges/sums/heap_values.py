"""Gives the first heap of a program and a later one the same value types.

pprof's value types of a heap have other names if all that was allocated is still in use, as in the first dump:

    first heap    objects, space
    later heap    alloc_objects, alloc_space, inuse_objects, inuse_space

As the old side, the first heap is compared with what the later one has in use.  As the new side, its values are both
what was allocated and what is in use.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges import INTERSECT, UNION
from fastprof.bridges.sums.reported import REPORTED
from fastprof.core._c import ffi
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType, set_values
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options

_IN_USE = {"objects": "inuse_objects", "space": "inuse_space"}
_EQUAL = {"inuse_objects": "objects", "inuse_space": "space", "alloc_objects": "objects", "alloc_space": "space"}


class Heaps:
    """The value types of the first heap for all others, unless an option chooses them."""

    def __init__(self, model: Model, options: Options, log: Log) -> None:
        self._model, self._log = model, log
        self._is_off = bool(options[UNION] or options[INTERSECT])
        self._first: tuple[str, list[ValueType]] | None = None

    def paired(self, batches: Iterable[Batch], name: str) -> Iterator[Batch]:
        """The rows of the input `name`."""
        last, columns = -1, list[int]()
        changed = Changed(self._model)
        for batch in batches:
            if batch.part != last:
                last = batch.part
                columns = self._columns(self._model.parts[last], name)
            if not columns:
                yield batch
                continue
            c, n_values, n = batch.c, int(batch.c.n_values), len(columns)
            set_values(batch, n_values + n)
            for to, k in enumerate(columns, n_values):
                ffi.memmove(c.values + to * c.cap, c.values + k * c.cap, 8 * c.n)
            ffi.memmove(c.values, c.values + n_values * c.cap, 8 * n * c.cap)
            set_values(batch, n)
            yield from changed.lend(batch, self._as_first)
            set_values(batch, n_values)
        changed.end()

    def _columns(self, part: Part, name: str) -> list[int]:
        """The column for each value type of the first heap; none if the names are the same or not those of heaps."""
        if self._is_off or not part.value_types:
            return []
        if self._first is None:
            self._first = name, part.value_types
        names, expected = [t.name for t in part.value_types], [t.name for t in self._first[1]]
        other = _EQUAL if {*names} == {*_IN_USE} else _IN_USE if {*expected} == {*_IN_USE} else {}
        columns = [names.index(other[name]) for name in expected if other.get(name) in names]
        if not columns or len(columns) < len(expected):
            return []
        if other is _IN_USE:
            self._log.warn(REPORTED["in-use-alone"], first=self._first[0], name=name)
        return columns

    def _as_first(self, part: Part) -> Part:
        assert self._first is not None
        other = copied(part)
        other.value_types, other.summary = [*self._first[1]], None
        return other
