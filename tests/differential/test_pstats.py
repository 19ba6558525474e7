"""Profiles written for Python's viewers, as snakeviz and tuna load them."""

from __future__ import annotations

import math
import pstats
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.support.paths import CORPUS

SOURCES = [
    "pstats/good/py3.13.pstats",
    "callgrind/good/xdebug.callgrind",
    "folded/good/plain.folded",
    "pprof/good/go-heap.pb.gz",
]


@pytest.fixture(params=SOURCES)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "out.pstats"
    fastprof.convert(CORPUS / request.param, path)
    return path


def test_snakeviz(written: Path) -> None:
    stats: Any = pytest.importorskip("snakeviz.stats", reason="pip install snakeviz")
    expected: Any = pstats.Stats(str(written))
    rows, tree = stats.table_rows(expected), stats.json_stats(expected)
    assert len(rows) == len(expected.stats) > 0
    assert math.isclose(sum(float(row[1]) for row in rows), expected.total_tt, rel_tol=0.01)
    assert tree and all(caller in tree for one in tree.values() for caller in one["callers"])


def test_tuna(written: Path) -> None:
    tuna: Any = pytest.importorskip("tuna._runtime_profile", reason="pip install tuna")
    expected: Any = pstats.Stats(str(written))

    def names(node: Any) -> set[str]:
        return {node["text"][0]}.union(*map(names, node.get("children", ())))

    roots = ["::".join(map(str, key)) for key, value in expected.stats.items() if not value[4]]
    tree = tuna.read_runtime_profile(str(written))
    assert names(tree) & {*roots}
