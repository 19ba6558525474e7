"""Addresses of stacks to functions, files and lines, over the whole model.

    frame 0x55d0c0401196 in /usr/bin/app    becomes    lerp geo.h:12, inlined into move game.cpp:88

Kept: the address, its mapping and its flags; frames that already have lines.
Each distinct address is looked up once, together with the other new addresses of its batch.  A warning per object
states how many addresses have no symbol, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.bridges.rows.only_names import new_restack
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.c_memory import owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS, SYMBOLS, SYSROOT

if TYPE_CHECKING:
    from fastprof.bridges.rows.new_addresses import Names


def symbolize(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches, changed in place: frames get lines if symbols were found.

    A frame must have its mapping when it is added to the model.  Errors: SymbolError for a file given by the user
    that does not match.
    """
    restack = new_restack(model, "symbols", lib.FP_FRAMES_NAMED, ahead=holds.replaces_frames)
    err = ffi.new("struct fp_err *")
    unnamed = owned(lib.fp_unnamed_new(), "symbols")
    # given options are checked even if no frame needs them
    is_needed = any(option in options for option in (SYMBOLS, SYSROOT, DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS))
    names: Names | None = None
    seen = 1
    for batch in batches:
        if not is_needed and int(model.c.frames.n) != seen:  # of profiles with names, all frames have lines
            check_sums(lib.fp_unnamed_find(unnamed, model.c, seen, err), err, model, "symbols")
            seen, is_needed = int(model.c.frames.n), bool(unnamed.n)
        if is_needed:
            if names is None:
                from fastprof.bridges.rows.new_addresses import Names

                names = Names(model, options)
            names.replace_new(restack)
        check_sums(lib.fp_restack_batch(restack, batch.c, err), err, model, "symbols")
        yield batch
    if names:
        names.log_to(log)
