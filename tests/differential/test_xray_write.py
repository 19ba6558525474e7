"""XRay -> archive -> XRay, read by llvm-xray: the same records."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need
from tests.support.paths import needs_shared, shared_data

CASES = (
    "fdr5-events-clang19/trace.xray",
    "fdr5-interp-args-clang14/trace.xray",
    "fdr5-lua-clang19/trace.xray",
    "fdr5-pool-clang19/trace.xray",
    "basic3-interp-args-clang19/trace.xray",
    "fdr1to4-rewritten/pool-v1.xray",
    "fdr1to4-rewritten/pool-v2.xray",
    "fdr1to4-rewritten/events-v3.xray",
    "fdr1to4-rewritten/events-v4.xray",
)
# Fields that llvm-xray invents for a version; the version 5 that is written cannot have them.
MADE_UP = {
    "pool-v2": re.compile(r", process: \d+"),  # version 2 has no pid: it shows the thread's id
    "events-v3": re.compile(r"cpu: \d+(?=, thread: \d+, process: \d+, kind: custom)"),  # it reads two bytes too many
}


def records(log: Path) -> str:
    """llvm-xray's records; the header, which precedes them, names the version."""
    tool = need("llvm-xray-19", "llvm-xray")
    done = subprocess.run([tool, "convert", "-f", "yaml", str(log)], capture_output=True, text=True, check=True)
    return done.stdout.partition("records:")[2]


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_llvm_reads_the_same_records(case: str, tmp_path: Path) -> None:
    log = shared_data("xray", *case.split("/"))
    stored, again = tmp_path / "x.fpa", tmp_path / "x.xray"
    fastprof.convert([str(log)], str(stored))
    report = fastprof.convert([str(stored)], str(again))
    want, got = records(log), records(again)
    assert want.count("type:") > 100
    made_up = MADE_UP.get(log.stem)
    if made_up:
        assert want != got
        want, got = made_up.sub("", want), made_up.sub("", got)
    assert got == want
    assert not report.not_representable


@needs_shared
@pytest.mark.parametrize("case", ["fdr5-pool-clang19", "fdr5-lua-clang19", "basic3-interp-args-clang19"])
def test_function_ids_are_kept_with_the_names_of_a_binary(case: str, tmp_path: Path) -> None:
    """-s names the functions, and llvm-xray still shows the ids."""
    folder = shared_data("xray", case)
    (binary,) = (path for path in folder.iterdir() if path.read_bytes()[:4] == b"\x7fELF")
    stored, again = tmp_path / "x.fpa", tmp_path / "x.xray"
    fastprof.convert([str(folder / "trace.xray")], str(stored), symbols=[binary])
    fastprof.convert([str(stored)], str(tmp_path / "named.callgrind"))
    assert b") #" not in (tmp_path / "named.callgrind").read_bytes()
    log = fastprof.convert([str(stored)], str(again))
    assert records(again) == records(folder / "trace.xray")
    assert not log.not_representable
