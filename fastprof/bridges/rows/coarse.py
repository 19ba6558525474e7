"""Graph -> graph of functions, lines, files, objects or arcs; and negated samples for differences (rows/coarse.h).

    main  a.c:10  cost 5           main  cost 8
    main  a.c:11  cost 3     ->    f     cost 40
    main  a.c:11  1 call of f 40
    f     b.c:3   cost 40

Kept: every self cost; by arc also calls, with their number as an additional value.  Lost: positions, jumps and, unless
by arc, calls.  Batches are changed in place: adjacent equal rows are merged; an equal row may come again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Pointer
from fastprof.core.c_memory import owned
from fastprof.core.errors import check_sums
from fastprof.core.model import Batch, Model, ValueType, set_values

BY = {
    "function": lib.FP_COARSE_BY_FUNCTION,
    "line": lib.FP_COARSE_BY_LINE,
    "file": lib.FP_COARSE_BY_FILE,
    "object": lib.FP_COARSE_BY_OBJECT,
    "arc": lib.FP_COARSE_BY_ARC,
}

# By arc, the last value.
CALLS = ValueType("calls", "count", "Number of calls")


def coarse(batches: Iterable[Batch], model: Model, by: str) -> Iterator[Batch]:
    """Graph rows grouped by a word of BY.  Errors: FastprofError for a sum that does not fit into 64 bits."""
    c = owned(lib.fp_coarse_new(model.c, BY[by]), "the functions of a graph")
    err = ffi.new("struct fp_err *")
    for batch in batches:
        n_values = int(batch.c.n_values)
        if by == "arc":
            set_values(batch, n_values + 1)
        types = [*model.parts[batch.part].value_types, CALLS]
        check_sums(lib.fp_coarse_batch(c, batch.c, err), err, model, f"costs by {by}", types)
        yield batch
        set_values(batch, n_values)


def by_function(seen: bytes, model: Model) -> Pointer[int]:
    """By function of the model: the one that rows by function have for it; 0 if its byte in `seen` is 0."""
    c = owned(lib.fp_coarse_new(model.c, BY["function"]), "the functions of a graph")
    err, found = ffi.new("struct fp_err *"), ffi.new("uint32_t[]", len(seen))
    check_sums(lib.fp_coarse_functions(c, seen, len(seen), found, err), err, model, "costs by function", [])
    return found


def subtracted(batches: Iterable[Batch], model: Model) -> Iterator[Batch]:
    """Negated samples with the label pprof::base, as pprof's -diff_base adds them to those of the other profile."""
    err = ffi.new("struct fp_err *")
    key, text = model.intern("pprof::base"), model.intern("true")
    for batch in batches:
        status = lib.fp_coarse_base(model.c, batch.c, key, text, err)
        check_sums(status, err, model, "the old profile", model.parts[batch.part].value_types)
        yield batch
