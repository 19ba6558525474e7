"""Stacks -> stacks whose frames have only names of functions (csrc/bridges/rows/restack.h).

    main a.c:3 > f b.c:7, inlined into g b.c:9     becomes    main > g > f
    main a.c:4 > [libx.so at 0x7f001136]                      main > [libx.so+0x1136]

For formats without places: stacks that differ only in these become equal and are then added up.  Functions stay those
that they are (fp_same_function); `Model.function_texts` tells those with equal names apart if the target has no files.
Lost: addresses, lines and, in a target with files, objects, which are counted; which functions were inlined.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_restack
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.function_names import marks, place_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def only_names(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches, with their stacks replaced in place.  Memory is linear in distinct frames and stacks."""
    restack = new_restack(model, "the names of stacks", lib.FP_FRAMES_ONLY_NAMES, ahead=holds.replaces_frames)
    restack.files = holds.files
    err, any_rows = ffi.new("struct fp_err *"), False
    for batch in batches:
        any_rows = True
        check_sums(lib.fp_restack_names(restack, err), err, model, "stacks of names")
        check_sums(lib.fp_restack_batch(restack, batch.c, err), err, model, "stacks of names")
        yield batch
    if any_rows:  # frames made after the last batch count too, as they do if it has room for all rows
        check_sums(lib.fp_restack_names(restack, err), err, model, "stacks of names")
    log.count(REPORTED["places"], restack.placed)
    functions = restack.alike[0 : restack.n_alike]
    places = {i: place_of(model.get_function(i)) for i in functions}
    found = marks(places.values())
    model.function_texts |= {i: f"{at.name} ({found[at]})" for i, at in places.items() if at in found}


def new_restack(model: Model, what: str, step: int, *, ahead: bool) -> fp_restack:
    """`ahead`: the model replaces frames before it adds stacks (fp_restack_ahead)."""
    restack = owned(lib.fp_restack_new(model.c), what)
    if ahead:
        enough(lib.fp_restack_ahead(restack, step))
    return restack
