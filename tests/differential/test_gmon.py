"""gmon.out and the text of gprof against gprof."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need

PROGRAM = r"""
#include <stdlib.h>
volatile unsigned long sink;
__attribute__((noinline)) void burn(int n) { for (int i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) void pong(int n);
__attribute__((noinline)) void ping(int n) { burn(2000); if (n) pong(n - 1); }
__attribute__((noinline)) void pong(int n) { burn(1000); if (n) ping(n - 1); }
__attribute__((noinline)) void a(int n) { for (int i = 0; i < n; i++) ping(6); }
__attribute__((noinline)) void b(int n) { for (int i = 0; i < n; i++) { pong(3); burn(3000); } }
int main(int argc, char **argv) { int n = atoi(argv[1]); a(n); b(3 * n); return 0; }
"""
ROW = re.compile(r"^ *[\d.]+ +[\d.]+ +([\d.]+) +(?:(\d+) +[\d.]+ +[\d.]+ +)?(\w+)$", re.MULTILINE)
INCLUSIVE = re.compile(r"^\[\d+\] +[\d.]+ +([\d.]+) +([\d.]+) .*? (\w+) (?:<cycle 1> )?\[\d+\]$", re.MULTILINE)


@pytest.fixture(scope="module", params=["-no-pie", "-pie"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gmon")
    (folder / "w.c").write_text(PROGRAM)
    flags = [request.param] + ["-fPIE"] * (request.param == "-pie")
    subprocess.run([need("gcc", "cc"), "-g", "-O1", "-pg", *flags, "-o", "w", "w.c"], cwd=folder, check=True)
    subprocess.run(["./w", "3000"], cwd=folder, check=True)
    return folder


def test_times_and_calls_are_those_of_gprof(folder: Path) -> None:
    """gprof prints hundredths of a second, too high if the width of a bin is no whole number of bytes."""
    printed = subprocess.run([need("gprof"), "-b", "w"], cwd=folder, capture_output=True, text=True, check=True).stdout
    flat, graph = printed.split("Call graph")
    found = {row.name: row for row in fastprof.top(folder / "gmon.out", symbols=[folder / "w"], n=0).rows}
    found = {name.removesuffix(" <cycle 1>"): row for name, row in found.items()}
    theirs = ROW.findall(flat)
    assert {name for _, _, name in theirs} == {"burn", "ping", "pong", "a", "b"}
    for seconds, calls, name in theirs:
        assert found[name].calls == int(calls)
        assert abs(found[name].self / 1e9 - float(seconds)) <= 0.011 + 0.01 * float(seconds)
    for own, children, name in INCLUSIVE.findall(graph):
        time = float(own) + float(children)
        assert abs(found[name].inclusive / 1e9 - time) <= 0.021 + 0.01 * time, name


def test_time_of_the_profiler_itself_is_left_out(tmp_path: Path) -> None:
    """A static program has mcount, which gprof leaves out, in its own code."""
    (tmp_path / "w.c").write_text(PROGRAM)
    subprocess.run([need("gcc", "cc"), "-O1", "-pg", "-static", "-o", "w", "w.c"], cwd=tmp_path, check=True)
    subprocess.run(["./w", "3000"], cwd=tmp_path, check=True)
    printed = subprocess.run([need("gprof"), "-b", "-p", "w"], cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = {name: float(seconds) for seconds, _, name in ROW.findall(printed.stdout)}
    log = fastprof.info(tmp_path / "gmon.out", symbols=[tmp_path / "w"])
    rows = {row.name: row for row in fastprof.top(tmp_path / "gmon.out", symbols=[tmp_path / "w"], n=0).rows}
    assert not any("mcount" in name for name in [*rows, *theirs]) and theirs["burn"] > 0
    assert abs(log.facts["totals"]["time"] / 1e9 - sum(theirs.values())) <= 0.021 + 0.02 * sum(theirs.values())
    left_out = log.not_representable["profiler-time"] + log.facts["totals"]["time"]
    assert left_out == pytest.approx(log.facts["samples"] * 10**7, abs=10_000)


def test_the_text_has_the_costs_of_the_file(folder: Path) -> None:
    """In hundredths of a second, which gprof rounds."""
    (folder / "w.gprof.txt").write_bytes(
        subprocess.run([need("gprof"), "w"], cwd=folder, capture_output=True, check=True).stdout
    )
    ours = {row.name: row for row in fastprof.top(folder / "gmon.out", symbols=[folder / "w"], n=0).rows}
    text = {row.name: row for row in fastprof.top(folder / "w.gprof.txt", n=0).rows}
    assert {*text} >= {"main", "a", "b", "burn"}
    for name, row in text.items():
        if row.calls:
            assert row.calls == ours[name].calls, name
            assert abs(row.self - ours[name].self) / 1e9 <= 0.011 + 0.01 * row.self / 1e9, name
            assert abs(row.inclusive - ours[name].inclusive) / 1e9 <= 0.04 + 0.01 * row.inclusive / 1e9, name
