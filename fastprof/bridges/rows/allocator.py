"""Stacks of heaps -> stacks without the allocator's frames at the leaf (csrc/bridges/rows/leaves.h).

    main > f > operator new > malloc  24      becomes    main > f  24

For verbs that rank and show: in a heap profile every cost is malloc's.  Conversions keep all frames, and `drop_frames`.
Stacks of nothing but the allocator's frames stay.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import lib
from fastprof.core._typing import Any
from fastprof.core.allocators import KEEP_ALLOCATOR, drops_allocator, is_function, is_object
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def without_allocator(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches, with the stacks of heaps replaced in place.  Memory: 4 bytes for each of the model's stacks."""
    if options[KEEP_ALLOCATOR]:
        yield from batches
        return
    mask: Any = None
    frames = _Frames(model)
    c = owned(lib.fp_leaves_new(model.c), "the stacks of a heap")
    heaps: dict[int, bool] = {}  # by part
    for batch in batches:
        if batch.part not in heaps:
            heaps[batch.part] = drops_allocator(model.parts[batch.part].extra.get("drop_frames"))
        if heaps[batch.part]:
            if mask is None:
                from fastprof.bridges.rows.filter import Mask  # not imported for profiles that are no heaps

                mask = Mask(model, "frames", lambda frame: not frames.is_allocator(frame))
            mask.show(c.keep)
            enough(lib.fp_leaves_cut(c, batch.c))
        yield batch
    log.count(REPORTED["allocator-frames"], c.n_cut)


class _Frames:
    """Which frames belong to an allocator; each object and function is looked up once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._objects: dict[int, bool] = {0: False}
        self._functions: dict[int, bool] = {}

    def is_allocator(self, frame: int) -> bool:
        """Whether its object is an allocator, or all its functions are an allocator's."""
        model = self._model
        mapping, *_, line = model.row("frames", frame)
        if mapping and self._is_object(model.row("mappings", mapping)[0]):
            return True
        found = bool(line)
        while line:
            function, _, _, line = model.row("lines", line)
            if self._is_object(model.row("functions", function)[0]):
                return True
            found = found and self._is_function(function)
        return found

    def _is_object(self, object_id: int) -> bool:
        if object_id not in self._objects:
            self._objects[object_id] = is_object(self._model.string(self._model.row("objects", object_id)[0]))
        return self._objects[object_id]

    def _is_function(self, function: int) -> bool:
        if function not in self._functions:
            self._functions[function] = is_function(self._model.get_function(function).name)
        return self._functions[function]
