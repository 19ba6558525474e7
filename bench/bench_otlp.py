"""OpenTelemetry profiles: CPU time and peak memory, compared with the pprof profile with the same samples.

python -m pytest bench/bench_otlp.py             of 100 MB of pprof, three labels per sample
FASTPROF_BENCH_SIZE=1G python -m pytest ...      any other size
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.bench_gperf import _record
from bench.peers import Run, big_profile, fastprof


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("bench")
    pprof = big_profile(folder, "big.pb", "--format", "pprof", "--labels", "--order", "go")
    otlp = folder / "big.otlp"
    Run(fastprof("convert", "-q", "--no-symbols", pprof, "-o", otlp))
    return pprof, otlp


@pytest.mark.parametrize("which", [0, 1], ids=["pprof", "otlp"])
@pytest.mark.parametrize("target", ["out.pb", "out.otlp", "out.otlp.json"])
def test_convert(benchmark: Any, profiles: tuple[Path, Path], which: int, target: str, tmp_path: Path) -> None:
    source = profiles[which]
    _record(benchmark, source, fastprof("convert", "-q", "--no-symbols", source, "-o", tmp_path / target))
