"""Profile.rows: a table as dicts, without Arrow, has the same values as through Arrow."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pyarrow
import pytest

import fastprof
from fastprof.core import arrow_column
from tests.support.paths import CORPUS
from tests.support.xraylog import FdrLog

FILES = {
    "xray/good/fdr5-pool-clang19.xray": ("spans", "events"),
    "xray/good/fdr5-events-clang19.xray": ("spans", "events"),
    "pprof/good/everything.pb": ("samples", "frames"),
    "pprof/good/go-heap.pb.gz": ("samples", "frames"),
    "callgrind/good/everything.callgrind": ("graph",),
    "oprofile/good/threads.tar": ("graph",),
}


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, names in FILES.items() for name in names])
def test_rows_are_those_of_arrow(file: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_column, "_AT_A_TIME", 16)  # rows, so that a table has several batches
    with fastprof.open(CORPUS / file) as profile:
        expected = pyarrow.table(profile.table(name)).to_pylist()
        assert [*profile.rows(name)] == expected != []
        if name == profile.tables[0]:
            assert [*profile.rows()] == expected


def test_texts_that_come_with_later_batches(tmp_path: Path) -> None:
    log = FdrLog()
    buffer = log.buffer().cpu(0, 0)
    for i in range(150_000):
        buffer.enter(1 + i // 1000, 1).exit(1 + i // 1000, 1)
    (tmp_path / "x.xray").write_bytes(log.bytes())
    with fastprof.open(tmp_path / "x.xray") as profile:
        names = [row["function"] for row in profile.rows("spans")]
    assert names == [f"#{1 + i // 1000}" for i in range(150_000)]


def test_what_rows_refuse() -> None:
    with fastprof.open(CORPUS / "callgrind/good/cfi.callgrind") as profile:
        with pytest.raises(fastprof.UsageError, match="a graph profile has no table 'spans'"):
            profile.rows("spans")
        first = [*islice(profile.rows(), 1)]
        assert first[0]["function"] == "f" and len([*profile.rows()]) == 3
    with pytest.raises(fastprof.UsageError, match="is closed"):
        [*profile.rows()]
