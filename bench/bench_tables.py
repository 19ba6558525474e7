"""Tables with names, as a consumer of Arrow streams gets them: millions of rows per CPU second.

    pytest bench/bench_tables.py --benchmark-columns=min,median

FASTPROF_BENCH_TRACE is a trace, FASTPROF_BENCH_SYMBOLS its program; by default the Lua trace of shared/data is used,
which has 45,000 records: the figures are then those of a start.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import fastprof
from tests.support.paths import SHARED


@pytest.fixture(scope="module")
def profile() -> Any:
    trace, program = os.environ.get("FASTPROF_BENCH_TRACE"), os.environ.get("FASTPROF_BENCH_SYMBOLS")
    if not trace and SHARED is None:
        pytest.skip("no shared/data next to the repository")
    path = Path(trace) if trace else Path(str(SHARED), "data/xray/fdr5-lua-clang19/trace.xray")
    with fastprof.open(path, **({"symbols": [program]} if program else {})) as opened:
        yield opened


@pytest.mark.parametrize("name", ["events", "spans"])
def test_table(benchmark: Any, profile: fastprof.Profile, name: str) -> None:
    table = profile.table(name)
    rates = []

    def read() -> None:
        began = time.process_time()
        n = sum(len(batch) for batch in pyarrow.RecordBatchReader.from_stream(table))
        rates.append(n / (time.process_time() - began) / 1e6)

    benchmark.pedantic(read, rounds=5)
    benchmark.extra_info["M rows per CPU-s"] = round(max(rates), 1)


@pytest.mark.parametrize("reuse", [True, False])
def test_batches(benchmark: Any, profile: fastprof.Profile, reuse: bool) -> None:
    """Ids alone: what it costs that each batch has memory of its own."""
    rates = []

    def read() -> None:
        began = time.process_time()
        n = sum(len(batch) for batch in profile.batches(reuse=reuse))
        rates.append(n / (time.process_time() - began) / 1e6)

    benchmark.pedantic(read, rounds=5)
    benchmark.extra_info["M rows per CPU-s"] = round(max(rates), 1)
