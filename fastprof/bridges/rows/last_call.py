"""Stacks -> their last calls, for Go's default.pgo (csrc/bridges/rows/last_call.h).

    main:9 > f:20 > g:31   5         f:20 > g   12
    main:8 > f:20 > g:33   7

Kept: all values, the last call, and functions that are inlined in it.  Lost: its callers, addresses, and the line of
the innermost function.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def last_call(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Batches changed in place."""
    c = owned(lib.fp_last_call_new(model.c), "the last calls of stacks")
    err = ffi.new("struct fp_err *")
    for batch in batches:
        check_sums(lib.fp_last_call_batch(c, batch.c, err), err, model, "the last calls of stacks")
        yield batch
    log.count(REPORTED["cut-callers"], c.cut)
