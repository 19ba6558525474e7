"""Data directories of uftrace against `uftrace report`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) long inner(long n) { long s = 0; for (long i = 0; i < n; i++) s += i * i; return s; }
__attribute__((noinline)) long rec(int n) { return n < 2 ? inner(5) : rec(n - 1) + rec(n - 2); }
void *run(void *p) { sink += rec(9 + (long)p); usleep(2000); return 0; }
int main(void) {
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    sink += rec(12);
    puts("done");
    return 0;
}
"""


@pytest.mark.parametrize("options", [[], ["-a"], ["-A", "inner@arg1", "-R", "rec@retval", "-A", "puts@arg1/s"]])
def test_times_and_calls_are_those_of_the_report(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "w.c").write_text(PROGRAM)
    folder = tmp_path / "w.uftrace"
    subprocess.run([need("gcc", "cc"), "-g", "-O1", "-pg", "-o", "w", "w.c", "-lpthread"], cwd=tmp_path, check=True)
    record = [need("uftrace"), "record", "-d", folder, *options, "./w"]
    subprocess.run(record, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    report = [need("uftrace"), "report", "-d", folder, "-f", "total,self,call"]
    text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 6e10}
    theirs = {}
    for line in text.splitlines()[2:]:
        total, unit, own, own_unit, calls, name = line.split(maxsplit=5)
        theirs[name] = (float(total) * units[unit], float(own) * units[own_unit], int(calls))
    ours = {str(row.name): row for row in fastprof.top(folder, n=0).rows}
    assert ours.keys() == theirs.keys() and {"rec", "inner", "linux:schedule"} <= ours.keys()
    for name, (total, own, calls) in theirs.items():
        row = ours[name]
        assert row.calls == calls, name
        assert row.inclusive == pytest.approx(total, rel=0.002, abs=1), name
        assert row.self == pytest.approx(own, rel=0.002, abs=1), name
