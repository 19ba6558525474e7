"""pprof profiles: MB of uncompressed input per CPU-second and peak memory, compared with go tool pprof.

python -m pytest bench/bench_pprof.py            100 MB, three labels per sample
FASTPROF_BENCH_SIZE=1G python -m pytest ...      any other size
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.bench_gperf import _record
from bench.peers import big_profile, fastprof, peer


@pytest.fixture(scope="module", params=["go", "tables-first"])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("--format", "pprof", "--labels", "--order", request.param)
    return big_profile(tmp_path_factory.mktemp("bench"), "big.pb", *options)


@pytest.mark.parametrize("target", ["out.pb.gz", "out.pb"])
def test_convert(benchmark: Any, profile: Path, target: str, tmp_path: Path) -> None:
    _record(benchmark, profile, fastprof("convert", "-q", profile, "-o", tmp_path / target))


def test_go_tool_pprof(benchmark: Any, profile: Path, tmp_path: Path) -> None:
    command = ["go", "tool", "pprof", "-proto", "-symbolize=none", f"-output={tmp_path / 'out.pb.gz'}", str(profile)]
    _record(benchmark, profile, peer(command))
