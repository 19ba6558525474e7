"""memray's captures against memray's own reader."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lz4.frame
import pytest

from tests.support.paths import CORPUS, SHARED, shared_data
from tests.support.stackdump import dump

memray = pytest.importorskip("memray", reason="install memray")
COLUMNS = {"leaked": 4, "peak": 6}


def captures() -> list[Path]:
    """Of the version that memray reads."""
    found = [CORPUS / "memray" / "good" / f"{name}.memray" for name in ("small", "aggregated")]
    if SHARED:
        names = ("m", "m.native", "threads", "threads.native", "threads.raw", "threads.pymalloc", "threads.agg")
        found += [shared_data("memray") / f"{name}.bin" for name in names]
    return found


def stack_of(record: Any) -> tuple[Any, ...]:
    return tuple((name, file, line) for name, file, line in record.stack_trace())


@pytest.mark.parametrize("path", captures(), ids=lambda p: p.name)
def test_sums_are_those_of_memray(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    found = dump(lz4.frame.decompress(data) if data[:4] == b"\x04\x22\x4d\x18" else data, "memray")
    first = 8 - len(found.part.value_types)
    ours: Counter[Any] = Counter()
    for stack, _, values in found.rows:
        key = tuple((f[3][0][0].decode(), f[3][0][2].decode(), f[3][0][4]) for f in stack)
        for what, column in COLUMNS.items():
            ours[what, key] += values[column + 1 - first]
            if not first:  # memray adds up the counts of merged records wrong
                ours[f"{what}, objects", key] += values[column - first]
    theirs: Counter[Any] = Counter()
    with memray.FileReader(path) as reader:
        records = {"peak": reader.get_high_watermark_allocation_records, "leaked": reader.get_leaked_allocation_records}
        for what, each in records.items():
            for record in each(merge_threads=True):
                theirs[what, stack_of(record)] += record.size
                if not first:
                    theirs[f"{what}, objects", stack_of(record)] += record.n_allocations
    assert +ours == +theirs and theirs
