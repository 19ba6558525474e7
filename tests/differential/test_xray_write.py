"""XRay -> archive -> XRay, judged by llvm-xray: the same records."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fastprof import pipeline
from tests.paths import needs_shared, shared_data

CASES = (
    "fdr5-events-clang19/trace.xray",
    "fdr5-interp-args-clang14/trace.xray",
    "fdr5-lua-clang19/trace.xray",
    "fdr5-pool-clang19/trace.xray",
    "basic3-interp-args-clang19/trace.xray",
    "fdr1to4-rewritten/events-v4.xray",
    # not v1 to v3: llvm-xray shows a pid of its own for v1 and v2, and a wrong CPU for events of v3
)


def records(log: Path) -> str:
    """llvm-xray's records; the header before them names the version."""
    tool = shutil.which("llvm-xray-19") or shutil.which("llvm-xray")
    if tool is None:
        if os.environ.get("FASTPROF_ALLOW_MISSING_PEERS") == "1":
            pytest.skip("no llvm-xray")
        pytest.fail("llvm-xray is not installed")
    done = subprocess.run([tool, "convert", "-f", "yaml", str(log)], capture_output=True, text=True, check=True)
    return done.stdout.partition("records:")[2]


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_llvm_reads_the_same_records(case: str, tmp_path: Path) -> None:
    log = shared_data("xray", *case.split("/"))
    stored, again = tmp_path / "x.fpa", tmp_path / "x.xray"
    pipeline.convert([str(log)], str(stored))
    report = pipeline.convert([str(stored)], str(again))
    want = records(log)
    assert want.count("type:") > 100
    assert records(again) == want
    assert not report.unsaid


@needs_shared
@pytest.mark.parametrize("case", ["mt_default", "mt_instr_jumps", "shapes_combined", "xz_stripped"])
def test_callgrind_through_the_archive_is_the_same(case: str, tmp_path: Path) -> None:
    """Callgrind -> archive -> Callgrind equals Callgrind -> Callgrind, byte for byte."""
    profile = shared_data("callgrind", f"{case}.callgrind")
    pipeline.convert([str(profile)], str(tmp_path / "direct.callgrind"))
    pipeline.convert([str(profile)], str(tmp_path / "x.fpa"))
    pipeline.convert([str(tmp_path / "x.fpa")], str(tmp_path / "through.callgrind"))
    assert (tmp_path / "through.callgrind").read_bytes() == (tmp_path / "direct.callgrind").read_bytes()


@needs_shared
@pytest.mark.parametrize("case", ["heap", "cpulabels", "block", "goroutine"])
def test_pprof_through_the_archive_is_the_same(case: str, tmp_path: Path) -> None:
    """pprof -> archive -> pprof equals pprof -> pprof under go tool pprof -raw."""
    go = shutil.which("go")
    if go is None:
        if os.environ.get("FASTPROF_ALLOW_MISSING_PEERS") == "1":
            pytest.skip("no go")
        pytest.fail("go is not installed")
    profile = shared_data("pprof", f"go-{case}.pb.gz")

    def raw(path: Path) -> str:
        done = subprocess.run([go, "tool", "pprof", "-raw", str(path)], capture_output=True, text=True, check=True)
        return done.stdout

    pipeline.convert([str(profile)], str(tmp_path / "direct.pb.gz"))
    pipeline.convert([str(profile)], str(tmp_path / "x.fpa"))
    pipeline.convert([str(tmp_path / "x.fpa")], str(tmp_path / "through.pb.gz"))
    assert raw(tmp_path / "through.pb.gz") == raw(tmp_path / "direct.pb.gz")
