"""Writes many profiles of a store, each to its own file."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, errors_of, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import Message
from fastprof.core.options import LENIENT
from fastprof.formats.archive.read import ArchiveReader
from fastprof.inputs import pinned
from fastprof.inputs.stored import shown_input
from fastprof.verbs.convert import convert, target_of
from fastprof.verbs.output_collisions import clash, invalid_because, is_at

if TYPE_CHECKING:
    from fastprof.store.compact import Done


def extract(
    path: str,
    names: Sequence[str],
    outdir: str,
    *,
    to: str | None,
    done: Done = lambda name, n, of: None,
    **options: Any,
) -> Log:
    """Write the profiles of these names to OUTDIR/NAME.SUFFIX, as `to`.  Creates missing folders.

    Errors: FastprofError and its subclasses, also for a name that leads out of `outdir` and for two names with one
    output; then nothing is written.

    >>> from fastprof.store.adding import add
    >>> log = add("all.fpa", ["tests/corpus/callgrind/good/cfi.callgrind"])
    >>> log = extract("all.fpa", ["cfi.callgrind"], "out", to="folded")
    >>> open("out/cfi.callgrind.folded").read()
    'f 5\\nf;g 9\\n'
    """
    if to is None:
        raise usage_error("several profiles need {--to:=}FORMAT (see `fastprof formats`)")
    suffix = target_of("", to).suffixes[0]
    _refuse(path, names, outdir, suffix)
    store = pinned(path, options.get(LENIENT.name) is True)
    log = Log()
    how: dict[str, Any] = {"from_": ArchiveReader.format, "to": to}
    for n, name in enumerate(names, 1):
        output = os.path.join(outdir, name + suffix)
        with errors_of(output):
            os.makedirs(os.path.dirname(output), exist_ok=True)
        log.take(convert([store], output, member=name, **how, **options))
        done(name, n, len(names))
    return log


def _refuse(path: str, names: Sequence[str], outdir: str, suffix: str) -> None:
    """Check that each profile has its own path below `outdir`; names are untrusted.  Errors: FastprofError."""
    shown = shown_input(path)
    for name in names:
        if why := invalid_because(name):
            raise FastprofError(
                Message(
                    "{path}: the name {name!r:.80} {why}; extract this profile alone, with {-o} FILE",
                    path=shown,
                    name=name,
                    why=why,
                )
            )
        if is_at(os.path.join(outdir, name + suffix), path):
            raise FastprofError(f"{shown}: the profile {name!r:.80} would replace the archive; choose another folder")
    if found := clash([(name + suffix, f"the profile {name!r:.80}") for name in names], outdir):
        raise FastprofError(f"{shown}: {found}; extract them one by one")
