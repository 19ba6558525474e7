r"""Rows -> the same rows with other names of functions, files and objects (csrc/bridges/rows/rename.h).

    --mod-funcname 's/\.part\.[0-9]+$//'      sort, sort.part.0      become    sort
    --mod-filename 's/^\/build\/(\w+)/$1/'    /build/app/main.c                app/main.c
    --mod-object 's/-[0-9.]+$//'              /opt/app-1.4                     /opt/app

Functions that get the same name in the same file and object are merged.  Lost: the mangled name and the first line of
a renamed function.
"""

from collections.abc import Callable, Iterable, Iterator

from fastprof.bridges import LONGEST_NAME, MOD_FILENAME, MOD_FUNCNAME, MOD_OBJECT
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.substitution import parse


def rename(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches, with their ids replaced in place.  Memory is linear in distinct functions, frames and stacks."""
    changes = {
        what: [parse(text) for text in options[option]]
        for what, option in (
            (lib.FP_RENAME_FUNCTION, MOD_FUNCNAME),
            (lib.FP_RENAME_FILE, MOD_FILENAME),
            (lib.FP_RENAME_OBJECT, MOD_OBJECT),
        )
        if options[option]
    }
    c = owned(lib.fp_rename_new(model.c, sum(changes)), "other names")
    err = ffi.new("struct fp_err *")
    for batch in batches:
        while check_sums(lib.fp_rename_batch(c, batch.c, err), err, model, "other names") == lib.FP_NEEDS:
            name = renamed(bytes(ffi.buffer(c.text, c.text_n)), changes[c.request])
            enough(lib.fp_rename_answer(c, name, len(name)))
        for k in range(0, c.n_made, 2):
            old, new = c.made[k], c.made[k + 1]
            if old in model.numbers:
                model.numbers.setdefault(new, model.numbers[old])
        c.n_made = 0
        yield batch


def renamed(name: bytes, changes: Iterable[Callable[[str], str]]) -> bytes:
    """A name after all changes, in this order; `???` if nothing is left."""
    text = name[:LONGEST_NAME].decode("utf-8", "surrogateescape")
    for change in changes:
        text = change(text)
    return text.encode("utf-8", "surrogateescape") + name[LONGEST_NAME:] or b"???"
