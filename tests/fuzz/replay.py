"""The corpus through Python, and the actions of tests/support/faults.py when memory runs out: for `make fuzz-coverage`.

`python -m tests.fuzz.replay SHIM`, with tests/support/shim.c preloaded.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import fastprof
from fastprof import formats
from tests.contract.dump import files
from tests.support.conversions import format_of
from tests.support.faults import PLANS
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import CORPUS
from tests.support.shim import Faults, Shim


def convert_all(folder: Path) -> None:
    """Each file as each format; damaged files leniently."""
    targets = [known.name for known in formats.formats() if known.writer]
    for kind in ("good", "bad"):
        for file in files(kind):
            for to in targets:
                with suppress(fastprof.FastprofError):
                    fastprof.convert(CORPUS / file, folder / "out", from_=format_of(file), to=to, lenient=kind == "bad")


def without_vectors() -> None:
    """Callgrind's text as read and written by a machine without AVX-512, and by one without AVX2."""
    for file in files("good"):
        if format_of(file) == "callgrind":
            for wide in (1, 0):
                with suppress(fastprof.FastprofError):
                    read_parts(CORPUS / file, wide=wide, from_="callgrind")
                    rewrite((CORPUS / file).read_bytes(), wide=wide)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, shim = Path(name), Shim(sys.argv[1])
        convert_all(folder)
        without_vectors()
        for what, (plan, of) in PLANS.items():
            if what.endswith("without memory"):
                plan(Faults(shim, folder / "faults"), of)


if __name__ == "__main__":
    main()
