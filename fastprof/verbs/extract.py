"""Writing many profiles of a store, each to a file of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.report import Report
from fastprof.formats.archive.read import ArchiveReader
from fastprof.verbs.convert import convert, target_of

Done = Callable[[str, int, int], None]  # is told of each profile that is done: its name, which it is, of how many


def extract(
    path: str,
    names: Sequence[str],
    outdir: str,
    *,
    to: str | None,
    done: Done = lambda name, n, of: None,
    **options: Any,
) -> Report:
    """Write the profiles of these names to OUTDIR/NAME.SUFFIX, as `to`.  Folders are made.

    Errors: FastprofError and its subclasses, also for a name that leads out of `outdir`; then nothing is written.

    >>> from fastprof.verbs.adding import add
    >>> report = add("all.fpa", ["tests/corpus/callgrind/good/cfi.callgrind"])
    >>> report = extract("all.fpa", ["cfi.callgrind"], "out", to="folded")
    >>> open("out/cfi.callgrind.folded").read()
    'f 5\\nf;g 9\\n'
    """
    if to is None:
        raise UsageError("several profiles need --to=FORMAT, see `fastprof formats`")
    suffix = target_of("", to).suffixes[0]
    for name in names:
        # a name is any text, and may be by somebody else
        if os.path.isabs(name) or ".." in name.split("/") or "\0" in name:
            raise FastprofError(
                f"{path}: the profile {name!r} would be written outside of {outdir}; extract it by itself"
            )
    report = Report()
    for n, name in enumerate(names, 1):
        output = os.path.join(outdir, name + suffix)
        try:
            os.makedirs(os.path.dirname(output), exist_ok=True)
        except OSError as error:
            raise FastprofError(f"{output}: {error.strerror}") from None
        report.take(convert([path], output, from_=ArchiveReader.format, to=to, member=name, **options))
        done(name, n, len(names))
    return report
