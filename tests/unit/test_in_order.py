"""A Cachegrind file whose places each come once and in order is not summed up; any other is, with the same result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof

HEAD = "desc: I1 cache: none\ncmd: x\nevents: Ir Dr\n"
IN_ORDER = "fl=a.c\nfn=g\n3 1 2\n7 1 0\nfl=b.c\nfn=f\n1 5 5\nfn=g\n1 1 1\n"
OUT_OF_ORDER = {
    "a line again": "fl=a.c\nfn=f\n3 1 1\n3 2 2\n",
    "a line before": "fl=a.c\nfn=f\n3 1 1\n2 2 2\n",
    "a function again": "fl=a.c\nfn=f\n3 1 1\nfn=g\n1 1 1\nfn=f\n9 1 1\n",
    "a file again": "fl=a.c\nfn=f\n3 1 1\nfl=b.c\nfn=f\n1 1 1\nfl=a.c\nfn=g\n9 1 1\n",
    "a file inside a function": "fl=a.c\nfn=f\n3 1 1\nfi=b.c\n1 1 1\nfe=a.c\n9 1 1\n",
}


def piped(path: Path) -> bytes:
    """Converted in one go: a pipe cannot be read twice."""
    command = [sys.executable, "-m", "fastprof", "convert", "-", "-o", "-", "--to", "cachegrind", "-q"]
    with path.open("rb") as file, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        found, _ = process.communicate(file.read())
    assert process.returncode == 0
    return found


@pytest.mark.parametrize("body", [IN_ORDER, *OUT_OF_ORDER.values()], ids=["in order", *OUT_OF_ORDER])
def test_a_file_and_a_pipe_give_the_same(body: str, tmp_path: Path) -> None:
    path, out = tmp_path / "in.cachegrind", tmp_path / "out.cachegrind"
    path.write_text(HEAD + body + "summary: 9 9\n")
    report = fastprof.convert(path, out)
    assert out.read_bytes() == piped(path)
    assert report.facts["output bytes"] == out.stat().st_size
    assert sorted(os.listdir(tmp_path)) == ["in.cachegrind", "out.cachegrind"]


def test_what_is_in_order_is_given_out_as_it_is(tmp_path: Path) -> None:
    path, out = tmp_path / "in.cachegrind", tmp_path / "out.cachegrind"
    path.write_text(HEAD + IN_ORDER + "summary: 8 8\n")
    fastprof.convert(path, out)
    assert out.read_text() == path.read_text()


def test_the_report_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "in.cachegrind"
    path.write_text(HEAD + OUT_OF_ORDER["a function again"] + "summary: 3 4\n")
    report = fastprof.convert(path, tmp_path / "out.cachegrind")
    assert report.rows["rows written"] == 3
    assert sum("summary" in warning for warning in report.warnings) <= 1
