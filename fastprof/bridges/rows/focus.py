"""Stacks and timelines -> what is below functions or one path, which become roots (csrc/bridges/rows/focus.h).

    main > f > g > f > h  3,  main > x  2     --root-at '^f$'         f > g > f > h  3
                                              --subtree 'main;f;g'    g > f > h  3

docs/filters.md has the rule, tests/support/transforms.json examples.  Several --root-at apply one after the other, then
--subtree.  Dropped rows are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator

from fastprof.bridges import LONGEST_NAME
from fastprof.bridges.rows.filter import Mask, matching
from fastprof.bridges.transforms import ROOT_AT, ROOTS, SUBTREE, names_of_path
from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_focus, fp_mask
from fastprof.core.c_memory import owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def stacks(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The rows below the roots that the options choose.  Batches are changed in place; empty ones are left out.

    Memory is linear in distinct functions, frames and stacks.
    """
    yield from _counted(batches, model, options, log, _stacks)


def calls(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The same for a timeline."""
    yield from _counted(batches, model, options, log, _calls)


def _counted(
    batches: Iterable[Batch],
    model: Model,
    options: Options,
    log: Log,
    step: Callable[[Iterable[Batch], Model, Log, str | None, list[bytes]], Generator[Batch, None, int]],
) -> Iterator[Batch]:
    """The batches after each step; what all of them drop is one count."""
    left_out = [0]

    def counted(rows: Iterable[Batch], pattern: str | None, path: list[bytes]) -> Iterator[Batch]:
        left_out[0] += yield from step(rows, model, log, pattern, path)

    for pattern in options[ROOT_AT]:
        batches = counted(batches, pattern, [])
    place = options[SUBTREE]
    if place is not None:
        batches = counted(batches, None, names_of_path(place))
    yield from batches
    log.leave_out(left_out[0], ROOTS, options)


def _calls(
    batches: Iterable[Batch], model: Model, log: Log, pattern: str | None, path: list[bytes]
) -> Generator[Batch, None, int]:
    patterns = {} if pattern is None else {lib.FP_FILTER_NAME: re.compile(pattern)}
    return (yield from matching(batches, model, patterns, log, path))


def _stacks(
    batches: Iterable[Batch], model: Model, log: Log, pattern: str | None, path: list[bytes]
) -> Generator[Batch, None, int]:
    c = owned(lib.fp_focus_new(model.c), "the functions in focus")
    err = ffi.new("struct fp_err *")
    for name in path:
        check_sums(lib.fp_focus_path(c, name, len(name)), err, model, "the functions in focus")
    masks = [] if pattern is None else _masks(model, c, re.compile(pattern))
    for batch in batches:
        had = len(batch)
        for mask, of in masks:
            mask.show(of)
        check_sums(lib.fp_focus_stacks(c, batch.c, err), err, model, "the functions in focus")
        if len(batch) or not had:
            yield batch
    return int(c.left_out)


def _masks(model: Model, c: fp_focus, pattern: re.Pattern[str]) -> list[tuple[Mask, fp_mask]]:
    """Which functions match, and which addresses of frames without a function."""
    known: dict[int, bool] = {}  # by string
    scratch = owned(ffi.new("struct fp_buf *"), "a name")

    def matches(string: int) -> bool:
        if string not in known:
            name = model.string(string)[:LONGEST_NAME].decode("utf-8", "surrogateescape")
            known[string] = pattern.search(name) is not None
        return known[string]

    def frame(i: int) -> bool:
        return not model.row("frames", i)[-1] and matches(lib.fp_frame_name(model.c, i, scratch))

    functions = Mask(model, "functions", lambda i: matches(model.row("functions", i)[2]))
    return [(functions, c.functions), (Mask(model, "frames", frame), c.frames)]
