"""Merge profiles into one by adding up their costs."""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING, Unpack
from fastprof.core.log import Log
from fastprof.verbs.convert import converted

if TYPE_CHECKING:
    from fastprof.verbs.keywords import Inputs, MergeOptions, Output, Progress, ReadFormat, WrittenFormat


def merge(
    inputs: Inputs,
    output: Output,
    *,
    from_: ReadFormat | None = None,
    to: WrittenFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    **options: Unpack[MergeOptions],
) -> Log:
    """Write the sums of `inputs`, files and directories, to `output` ("-": standard output).

    They must have the same value types, unless `union` or `intersect` handles the others.  Their order does not matter.
    With `keep_going` unreadable inputs are skipped as a whole and counted as losses; each input is then read twice.
    `progress` is called with each input that is opened (docs/python.md).
    Errors: FastprofError and its kinds; then nothing is left at `output`.
    Inputs and output may be file objects, as in `convert`.

    >>> import fastprof
    >>> log = fastprof.merge(["tests/corpus/callgrind/good/cfi.callgrind"] * 2, "both.folded")
    >>> open("both.folded").read()
    'f 10\\nf;g 18\\n'
    """
    return converted(inputs, output, from_, to, progress, options, merge=True, keep_going=keep_going)
