"""Merged rows -> the same rows with a model that has only the entries used, in order of use (csrc/core/remap.h).

Without it, ids that a writer takes from the model would depend on the order of the inputs.
"""

from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.errors import check_sums
from fastprof.core.model import Batch, Model


def renumbered(batches: Iterable[Batch], model: Model) -> tuple[Iterator[Batch], Model]:
    """The batches with ids of a new model, which has the same parts, and that model."""
    to = Model()
    to.parts, to.inputs, to.titles = model.parts, model.inputs, model.titles
    return _renumbered(batches, model, to), to


def _renumbered(batches: Iterable[Batch], model: Model, to: Model) -> Iterator[Batch]:
    c = owned(lib.fp_remap_new(model.c, to.c), "the tables of merged profiles")
    err = ffi.new("struct fp_err *")
    n_emptied = int(model.c.n_emptied)
    for batch in batches:
        if model.c.n_emptied != n_emptied:
            n_emptied = int(model.c.n_emptied)
            to.empty_stacks()  # the writer of its stacks may have to write those so far
        check_sums(lib.fp_remap_batch(c, batch.c, err), err, model, "merge")
        yield batch
