"""Rows -> the same rows without hidden functions, and with adjacent frames as one (csrc/bridges/rows/transform.h).

    main > f > g > g > memcpy > memmove  3     --hide '^f$'                 main > g > g > memcpy > memmove  3
                                               --collapse-object libc       main > f > g > g > libc.so  3
                                               --collapse-recursion         main > f > g > memcpy > memmove  3

docs/filters.md has the rule, tests/support/transforms.json examples.  Of a graph, `hidden_arcs.py` divides the costs of
hidden functions among their callers.
"""

import re
from collections.abc import Iterable, Iterator

from fastprof.bridges import LONGEST_NAME
from fastprof.bridges.rows.filter import Mask
from fastprof.bridges.rows.hidden_arcs import HiddenArcs
from fastprof.bridges.rows.reported import REPORTED
from fastprof.bridges.transforms import COLLAPSE_OBJECT, COLLAPSE_RECURSION, HIDE, HIDE_OBJECT, MERGE_LINES
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.c_memory import owned
from fastprof.core.engine import CAPACITY, EVERYTHING, Capabilities
from fastprof.core.errors import check_sums, inputs_of
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.model import Batch, Model, empty
from fastprof.core.options import Option, Options


def transform(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches with what the options leave.  Those of stacks and graphs are changed in place.

    Memory is linear in distinct functions, frames and stacks; of a graph, also in the arcs of hidden functions.
    Errors: FastprofError if hiding a function of a graph would make too many arcs.
    """
    c = owned(lib.fp_transform_new(model.c), "the hidden functions")
    c.recursion, c.merge_lines = options[COLLAPSE_RECURSION], options[MERGE_LINES]
    err, at = ffi.new("struct fp_err *"), ffi.new("uint32_t *")
    matches = _Matches(model, options, c)
    arcs, out = HiddenArcs(model, c), None

    def check(status: int) -> int:
        return check_sums(status, err, model, "hiding functions")

    for batch in batches:
        had = len(batch)
        matches.show()
        if batch.view == "stacks":
            check(lib.fp_transform_stacks(c, batch.c, err))
        elif batch.view == "graph":
            yield from arcs.ended(batch.part)
            check(lib.fp_transform_graph(c, batch.c, err))
            arcs.take(batch)
        elif had:
            out, at[0] = out or Batch("timeline", 2 * CAPACITY["timeline"]), 0
            out.c.part = batch.part
            status = lib.FP_FULL
            while status == lib.FP_FULL:
                status = check(lib.fp_transform_calls(c, batch.c, at, out.c, err))
                if len(out):
                    yield out
                empty(out)
            continue
        if len(batch) or not had:
            yield batch
    if out is not None:
        while lib.fp_transform_end(c, out.c) == lib.FP_FULL:
            yield out
            empty(out)
        if len(out):
            yield out
    yield from arcs.ended(-1)
    matches.log_to(log)
    arcs.log_to(log)
    log.count(REPORTED["hidden-samples"], c.n_hidden)
    log.count(REPORTED["hidden-jumps"], c.n_jumps)
    log.count(REPORTED["orphan-exits"], c.orphans)
    log.count(REPORTED["unwound-frames"], c.unwound)
    log.count(REPORTED["unfinished-calls"], c.unfinished)


class _Matches:
    """Which functions, objects and addresses match; each name is looked up once."""

    def __init__(self, model: Model, options: Options, c: Any) -> None:
        self._model, self._c = model, c
        self._given = [(option, text) for option in (HIDE, HIDE_OBJECT, COLLAPSE_OBJECT) for text in options[option]]
        self._left = {*self._given}
        self._patterns = {
            option: [(text, re.compile(text)) for text in options[option]]
            for option in (HIDE, HIDE_OBJECT, COLLAPSE_OBJECT)
        }
        self._known: dict[tuple[Option[Any], int], bool] = {}  # by string
        self._scratch = owned(ffi.new("struct fp_buf *"), "a name")
        self._masks = {
            "functions": Mask(model, "functions", self._function),
            "objects": Mask(model, "objects", self._object),
            "frames": Mask(model, "frames", self._frame),
        }
        if not options[HIDE]:
            del self._masks["frames"]

    def show(self) -> None:
        for table, mask in self._masks.items():
            mask.show(getattr(self._c, table))

    def log_to(self, log: Log) -> None:
        """Warn of patterns that matched no name."""
        for option, text in self._given:
            if (option, text) not in self._left:
                continue
            code = "no-hidden-function" if option is HIDE else "no-such-object"
            log.warn(REPORTED[code], inputs=inputs_of(self._model), option=spelled(option.flag, "="), pattern=text)

    def _is(self, option: Option[Any], string: int) -> bool:
        key = option, string
        if key not in self._known:
            name = self._model.string(string)[:LONGEST_NAME].decode("utf-8", "surrogateescape")
            found = {text for text, pattern in self._patterns[option] if pattern.search(name)}
            self._left -= {(option, text) for text in found}
            self._known[key] = bool(found)
        return self._known[key]

    def _function(self, function: int) -> int:
        if not function or lib.fp_transform_is_own(self._c, function):
            return 0
        return lib.FP_TRANSFORM_HIDES * self._is(HIDE, self._model.row("functions", function)[2])

    def _object(self, number: int) -> int:
        name = self._model.row("objects", number)[0]
        if not name:
            return 0
        hides, collapses = self._is(HIDE_OBJECT, name), self._is(COLLAPSE_OBJECT, name)
        return lib.FP_TRANSFORM_HIDES * hides | lib.FP_TRANSFORM_COLLAPSES * collapses

    def _frame(self, frame: int) -> int:
        """Frames without a function are named by their address."""
        if self._model.row("frames", frame)[-1]:
            return 0
        return lib.FP_TRANSFORM_HIDES * self._is(HIDE, lib.fp_frame_name(self._model.c, frame, self._scratch))
