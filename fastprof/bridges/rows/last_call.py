"""Stacks -> the calls that Go's compiler counts, for its default.pgo (csrc/bridges/rows/last_call.h).

    main:9 > f:20 > g:31   5         f:20 > g   12
    main:8 > f:20 > g:33   7

Kept: all values; of the last call of each stack, and of the functions that are inlined there, the names, the first
lines, and the caller's line.  A sample counts for each of its calls, as it does for Go.  Lost: all else.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.engine import CAPACITY, EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, empty, set_values
from fastprof.core.options import Options


def last_call(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    model.has_last_calls = True
    c = owned(lib.fp_last_call_new(model.c), "the last calls of stacks")
    err = ffi.new("struct fp_err *")
    out = Batch("stacks", CAPACITY["stacks"])
    for batch in batches:
        set_values(out, batch.c.n_values)
        status = lib.FP_FULL
        while status == lib.FP_FULL:
            status = lib.fp_last_call_batch(c, batch.c, out.c, err)
            check_sums(status, err, model, "the last calls of stacks")
            if len(out):
                yield out
            empty(out)
    log.count(REPORTED["cut-callers"], c.cut)
