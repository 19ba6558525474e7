"""Doors are light: recognizing an input imports each format's door and no other module of the format."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fastprof import formats
from tests.contract.dump import files
from tests.support.conversions import format_of
from tests.support.paths import CORPUS, REPO

DOORS = {f"fastprof.formats.{room}" for room in formats.ROOMS}
# Modules before any door is opened, and those added by recognizing the input.  Doors may share `re`.
DETECT = """
import re
import sys
from fastprof import formats, plan
from fastprof.core.source import Source
with Source(sys.argv[1]) as source:
    before = set(sys.modules)
    found = formats.detect(source)
    assert found.name == sys.argv[2], found.name
print(*before)
print(*(set(sys.modules) - before))
"""
INFO = """
import sys
from fastprof.verbs.info import info
info(sys.argv[1], from_=sys.argv[2])
print(*sys.modules)
"""


def modules(code: str, file: str) -> list[set[str]]:
    """The output of a fresh process; without imports of `site`."""
    paths = os.pathsep.join([str(REPO), *sys.path])
    command = [sys.executable, "-S", "-c", code, str(CORPUS / file), format_of(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    return [set(line.split()) for line in done.stdout.splitlines()]


# Modules of the standard library that take milliseconds to import.
HEAVY = {"typing", "dataclasses", "inspect", "json", "tempfile", "subprocess", "argparse", "lzma", "bz2", "gzip"}
# one file per format; a compressed file needs its decompressor
FILES = [*{format_of(file): file for file in files("good") if not file.endswith(".gz")}.values()]


@pytest.mark.parametrize("file", FILES)
def test_recognizing_imports_the_doors_alone(file: str) -> None:
    """So each further format adds one module, its door; Perfetto's reads tags of messages, perf's has an option."""
    before, opened = modules(DETECT, file)
    assert opened == DOORS | {"fastprof.core.varint", "fastprof.core.branches"}
    assert {name.partition(".")[0] for name in before} - sys.stdlib_module_names == {
        "__main__",
        "fastprof",
        "_cffi_backend",
    }
    assert not HEAVY & before
    ours = {name for name in before if name.startswith("fastprof")}
    floors = {"fastprof", "fastprof.plan", "fastprof.formats", "fastprof.symbols", "fastprof.bridges"}
    floors.add("fastprof.bridges.transforms")  # its operators' options
    assert {name for name in ours if not name.startswith("fastprof.core")} == floors


@pytest.mark.parametrize("file", FILES)
def test_reading_imports_no_other_format(file: str) -> None:
    room = formats.get(format_of(file)).room
    (loaded,) = modules(INFO, file)
    others = {name for name in loaded if name.startswith("fastprof.formats.") and not name.startswith(f"{room}.")}
    assert others == DOORS
    assert not {"pycxxfilt", "isal", "fastprof.bridges.rows.unrepresentable"} & loaded
