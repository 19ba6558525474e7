"""Labels of samples -> frames of their stacks, as pprof's tagroot and tagleaf (csrc/bridges/rows/tag.h).

    main > f  {host: a, size: 8 bytes}     --tagroot host --tagleaf size      a > main > f > 8 bytes

So every viewer shows costs by host, and every verb ranks them.  The frame's function has the label's value as its name
and the key as its file.  Samples without the label get the frame (none).  Kept: everything, including the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.bridges import TAGLEAF, TAGROOT
from fastprof.core._c import ffi, lib
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import check_sums
from fastprof.core.labels import NONE, values_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.owner import owned


def tag(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The batches with their new stacks.  Memory is linear in distinct stacks with labels, and distinct labels."""
    c = owned(lib.fp_tag_new(model.c), lib.fp_tag_free, "stacks with labels")
    frames = _Frames(model)
    roots, leaves = (keys.split(",") if keys else [] for keys in (options[TAGROOT], options[TAGLEAF]))
    err = ffi.new("struct fp_err *")
    seen = 0
    for batch in batches:
        while seen < model.count("labels"):
            values = values_of(model, seen)
            added = [frames.of(key, values.get(key, NONE)) for key in (*roots, *leaves)]
            if lib.fp_tag_label(c, seen, added, len(roots), len(leaves)):
                raise MemoryError("no memory for stacks with labels")
            seen += 1
        check_sums(lib.fp_tag_batch(c, batch.c, err), err, model, "stacks with labels")
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
