"""Stacks -> stacks of bounded depth, for formats that write all frames of a stack in each row (rows/limit_depth.h).

    main > f > f > f > g  3
    main > f > f > f      2    becomes    main > f > f > [deeper]  5    with --max-depth 3

Lost: which functions below the limit have the cost.  It is counted, with a warning.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges import MAX_DEPTH
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import inputs_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def limit_depth(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches, with their stacks replaced in place.  Memory: 8 bytes per stack."""
    limit = options[MAX_DEPTH]
    c = owned(lib.fp_limit_depth_new(model.c, limit), "the depths of stacks")
    c.named = holds.names
    for batch in batches:
        while enough(lib.fp_limit_depth_put(c, batch.c)) == lib.FP_NEEDS:
            c.deeper = model.frame(0, 0, lines=model.line(model.function("[deeper]")))
        yield batch
    if c.n_cut:
        log.count(REPORTED["deep-stacks"], c.n_cut)
        log.warn(REPORTED["cut-stacks"], inputs=inputs_of(model), deepest=c.deepest, limit=limit)
