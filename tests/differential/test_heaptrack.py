"""heaptrack's recordings against heaptrack_print."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import zstandard

import fastprof
from tests.differential.peers import need
from tests.support.paths import CORPUS, SHARED, needs_shared, shared_data

# heaptrack_print's cost types
COSTS = {
    "allocations": "alloc_objects",
    "peak": "peak_space",
    "leaked": "leaked_space",
    "temporary": "temporary_objects",
}


def recordings() -> list[Path]:
    found = [CORPUS / "heaptrack" / "good" / "small.heaptrack"]
    return found + ([shared_data("heaptrack") / "ht.zst"] if SHARED else [])


def without_arguments(name: str) -> str:
    """A name without template arguments."""
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name


@pytest.mark.parametrize("path", recordings(), ids=lambda p: p.name)
def test_stacks_are_those_of_heaptrack_print(path: Path, tmp_path: Path) -> None:
    """Its inlined functions stand the wrong way round, and template arguments are shortened."""
    tool, data = need("heaptrack_print"), path.read_bytes()
    (tmp_path / "a.zst").write_bytes(data if path.suffix == ".zst" else zstandard.compress(data))
    for cost, value in COSTS.items():
        command = [tool, "-F", "f", "--flamegraph-cost-type", cost, "a.zst"]
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        theirs: Counter[tuple[str, ...]] = Counter()
        for line in (tmp_path / "f").read_text().splitlines():
            stack, _, n = line.rpartition(" ")
            frames = [re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";") if frame]
            theirs[tuple(sorted(map(without_arguments, frames)))] += int(n)
        ours: Counter[tuple[str, ...]] = Counter()
        out = tmp_path / "o.folded"
        fastprof.convert(path, out, value=value)
        for line in out.read_text().splitlines():
            stack, _, n = line.rpartition(" ")
            ours[tuple(sorted(map(without_arguments, stack.split(";"))))] += int(n)
        assert ours.total() == theirs.total() > 0 or cost == "temporary"
        assert ours == theirs
        if cost == "allocations":
            assert f"calls to allocation functions: {ours.total()} " in printed


@needs_shared
def test_sums_of_the_shared_recording() -> None:
    totals = fastprof.info(shared_data("heaptrack") / "ht.zst").facts["totals"]
    assert totals == {
        "alloc_objects": 70201, "alloc_space": 12442604, "temporary_objects": 1, "temporary_space": 72704,
        "leaked_objects": 200, "leaked_space": 219900, "peak_objects": 1202, "peak_space": 433994,
    }  # fmt: skip
