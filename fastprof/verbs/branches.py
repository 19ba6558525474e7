"""Branches as rows of `top`: each stack of a source and a target becomes one function, named after both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.branches import NAMES
from fastprof.core.errors import inputs_of, usage_error
from fastprof.core.unknown_names import text_of

if TYPE_CHECKING:
    from fastprof.core.model import Batch, Model


_MOST = 1 << 14  # branches and places that are remembered: others are in the model's tables, too


class Branches:
    """Replaces stacks of branches by functions `f a.c:12 -> g a.c:3`; runs of code are left out."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._functions: dict[tuple[int, int], int] = {}  # by both frames: a frame
        self._places: dict[int, str] = {}  # by frame

    def replaced(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Batches changed in place.  Errors: UsageError for rows that are not branches."""
        model = self._model
        for batch in batches:
            if len(self._places) > _MOST:
                self._functions.clear()
                self._places.clear()
            if tuple(t.name for t in model.parts[batch.part].value_types) != NAMES:
                what = "{inputs}{--by:=}branch: there are no branch stacks; `perf record -b` records them"
                raise usage_error(what, inputs=inputs_of(model))
            runs = batch.values(NAMES.index("straight"))
            keep = bytes(not runs[i] for i in range(len(batch)))
            stacks: dict[int, int] = {}
            for i, stack in enumerate(batch["stack"]):
                if keep[i]:
                    if stack not in stacks:
                        stacks[stack] = model.stack(0, self._frame(stack))
                    batch.c.stack[i] = stacks[stack]
            batch.c.n = lib.fp_batch_keep(batch.c, 0, 0, ffi.from_buffer("uint8_t[]", keep), len(keep))
            yield batch

    def _frame(self, stack: int) -> int:
        """The frame of the function that stands for a branch; its file, line and object are those of the source."""
        model = self._model
        parent, target = model.row("stacks", stack)
        source = model.row("stacks", parent)[1]
        if (source, target) not in self._functions:
            name = f"{self._place(source)} -> {self._place(target)}"
            mapping, line = model.row("frames", source)[0], model.row("frames", source)[4]
            function = model.row("lines", line)[0] if line else 0
            file, object_ = model.get_function(function).file, model.row("mappings", mapping)[0]
            named = model.function(name.encode("utf-8", "replace"), file, object_, b"", model.row("lines", line)[1])
            self._functions[source, target] = model.frame(0, 0, 0, model.line(named))
        return self._functions[source, target]

    def _place(self, frame: int) -> str:
        """`f a.c:12`, or `app+0x1139` without a name."""
        if frame not in self._places:
            self._places[frame] = self._named(frame)
        return self._places[frame]

    def _named(self, frame: int) -> str:
        model = self._model
        mapping, low, high, _, line = model.row("frames", frame)
        if not line:
            object_, start, start_high, _, _, offset, offset_high, _ = model.row("mappings", mapping)
            address = (low | high << 32) - (start | start_high << 32) + (offset | offset_high << 32)
            name = text_of(model.string(model.row("objects", object_)[0]))
            return f"{os.path.basename(name)}{'+' * bool(name)}{address % (1 << 64):#x}"
        function, number = model.row("lines", line)[:2]
        f = model.get_function(function)
        file = os.path.basename(text_of(f.file)) if number else ""
        of_fdata = f"+{number:#x}" if number else ""
        return f"{text_of(f.name)} {file}:{number}" if file else text_of(f.name) + of_fdata
