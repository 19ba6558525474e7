"""memray's captures against memray's own reader."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lz4.frame
import pytest

import fastprof
from tests.support.paths import CORPUS, SHARED, shared_data
from tests.support.stackdump import dump

memray = pytest.importorskip("memray", reason="install memray")
COLUMNS = {"leaked": 4, "peak": 6}


PROGRAM = """
import json, sqlite3, threading, zlib
def make(n): return [bytearray(n) for _ in range(3)]
def work(keep):
    for _ in range(20):
        keep += make(3000)
        zlib.compress(json.dumps({"a": [1.5] * 50}).encode())
    sorted([3, 1, 2] * 1000, key=lambda v: str(v))
keep = []
thread = threading.Thread(target=work, args=(keep,), name="worker")
thread.start()
thread.join()
work(keep)
sqlite3.connect(":memory:").execute("create table t(a, b)")
"""


def plain(stack: Iterable[str]) -> str:
    """Without what tells clones and functions of the same name apart, and frames without a name."""
    names = (re.sub(r"(\.(part|constprop|isra|cold)(\.\d+)?)+|( \([^()]*:?\d*\)$)", "", name) for name in stack)
    return ";".join(name for name in names if name != "<unknown>" and not re.match(r"\[.*\+0x", name))


@pytest.mark.skipif(
    b".symtab" not in Path(sys.executable).read_bytes(), reason="a Python that is not stripped is missing"
)
@pytest.mark.parametrize("options", [(), ("--aggregate",)])
def test_native_stacks_are_those_of_memray(options: tuple[str, ...], tmp_path: Path) -> None:
    path, program = tmp_path / "a.bin", tmp_path / "a.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "memray", "run", "--native", "-q", *options, "-o", str(path), str(program)]
    subprocess.run(command, check=True, capture_output=True)
    theirs: Counter[str] = Counter()
    with memray.FileReader(path) as reader:
        for record in reader.get_high_watermark_allocation_records(merge_threads=False):
            theirs[plain(name for name, _, _ in reversed(record.hybrid_stack_trace()))] += record.size
    fastprof.convert(path, tmp_path / "a.folded", value="peak_space")
    lines = (line.rpartition(" ") for line in (tmp_path / "a.folded").read_text().splitlines())
    ours: Counter[str] = Counter()
    for stack, _, value in lines:
        ours[plain(stack.split(";"))] += int(value)
    assert ours == +theirs and any("deflate" in stack or "compress" in stack for stack in ours)


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
        key = tuple((f[3][0][0].decode(), f[3][0][2].decode(), f[3][0][4]) for f in stack if f[3])
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
