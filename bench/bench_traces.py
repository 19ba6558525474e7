"""Traces of PyTorch and Chrome, profiles of the Firefox Profiler, Perfetto traces: CPU time and peak memory.

python -m pytest bench/bench_traces.py           250 MB each
FASTPROF_BENCH_SIZE=10M python -m pytest ...     any other size
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bench import inputs
from bench.bench_gperf import _record
from bench.peers import fastprof

# By name: what makes the file, and what is read of it.
_TRACES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "kineto.json": (inputs.kineto, ()),
    "spans.json": (inputs.spans, ()),
    "profile.json": (inputs.firefox, ()),
    "calls.pftrace": (inputs.perfetto, ()),
    "v8.pftrace": (inputs.v8, ("-O", "perfetto.data=v8")),
}


@pytest.fixture(scope="module", params=_TRACES)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...]]:
    size = os.environ.get("FASTPROF_BENCH_SIZE", "250M")
    path = tmp_path_factory.mktemp("bench") / request.param
    make, options = _TRACES[request.param]
    make(path, int(size[:-1]) * {"M": 10**6, "G": 10**9}[size[-1]])
    return path, options


@pytest.mark.parametrize("verb", ["info", "top"])
def test_read(benchmark: Any, trace: tuple[Path, tuple[str, ...]], verb: str) -> None:
    path, options = trace
    _record(benchmark, path, fastprof(verb, "-q", *options, path))
