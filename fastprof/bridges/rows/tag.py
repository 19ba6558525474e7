"""Labels of samples -> frames of their stacks, as pprof's tagroot and tagleaf (csrc/bridges/rows/tag.h).

    main > f  {host: a, size: 8 bytes}     --tagroot host --tagleaf size      a > main > f > 8 bytes

So every viewer shows costs by host, and every verb ranks them.  The frame's function has the label's value as its name
and the key as its file.  Samples without the label get the frame (none).  Kept: everything, including the labels.

Threads likewise, with `--per-thread`, for formats that hold neither labels nor threads of samples:

    main > f  {thread 8 of srv, 7}         srv (7): thread 8 > main > f
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from fastprof.bridges import TAGLEAF, TAGROOT
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.labels import NONE, values_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.thread_names import ThreadNames


def tag(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches with their new stacks.  Memory is linear in distinct stacks with labels, and distinct labels."""
    frames = _Frames(model)
    roots, leaves = (keys.split(",") if keys else [] for keys in (options[TAGROOT], options[TAGLEAF]))

    def added(label: int) -> list[int]:
        values = values_of(model, label)
        return [frames.of(key, values.get(key, NONE)) for key in (*roots, *leaves)]

    yield from _tagged(batches, model, "labels", added, len(roots))


def thread_roots(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches, with the name of each row's process and thread as outermost frame.

    It follows what adds up rows, because readers may find names after rows."""
    frames, names = _Frames(model), ThreadNames(model)
    batches = iter(batches)
    first = next(batches, None)
    if first is not None and model.count("threads") > 1:
        yield from _tagged(chain([first], batches), model, "threads", lambda i: [frames.of("", names.text(i))], 1)
    elif first is not None:
        log.warn(REPORTED["no-threads"])
        yield from chain([first], batches)


def _tagged(
    batches: Iterable[Batch], model: Model, table: str, added: Callable[[int], Sequence[int]], n_roots: int
) -> Iterator[Batch]:
    """`added`: the frames of an entry of the `table` of keys, labels or threads; first the roots."""
    what = f"stacks with {table}"
    c = owned(lib.fp_tag_new(model.c, table == "threads"), what)
    err = ffi.new("struct fp_err *")
    seen = 0
    for batch in batches:
        while seen < model.count(table):
            found = added(seen)
            enough(lib.fp_tag_key(c, seen, found, n_roots, len(found) - n_roots))
            seen += 1
        check_sums(lib.fp_tag_batch(c, batch.c, err), err, model, what)
        yield batch


class _Frames:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[tuple[str, str], int] = {}

    def of(self, key: str, value: str) -> int:
        if (key, value) not in self._known:
            model = self._model
            function = model.function(value, key, 0, "", 0)
            self._known[key, value] = model.frame(0, 0, 0, model.line(function, 0, outer=0))
        return self._known[key, value]
