"""Off-CPU time against the wait times of `perf sched timehist`."""

from __future__ import annotations

import random
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import fastprof
from tests.differential.peers import need
from tests.support.perfdata import Switches

_LINE = re.compile(r"\s*[\d.]+ \[\d+\]\s+\S*\[(\d+)\]\s+([\d.]+)\s")  # task[tid], wait time in milliseconds


def simulated(seed: int) -> bytes:
    """Six threads on two CPUs, with idle times: all switches."""
    chance, now, running = random.Random(seed), 1_000_000, [0, 0]
    threads = [7, 8, 9, 10, 11, 12]
    data = Switches()
    for pid in threads:
        data.comm(pid, pid, b"app")
    for _ in range(1000):
        now += chance.randrange(1000, 5_000_000)
        cpu = chance.randrange(2)
        free = [pid for pid in threads if pid not in running] + [0] * (running[cpu] != 0)
        prev, running[cpu] = running[cpu], chance.choice(free)
        data.switched(prev, running[cpu], now, cpu=cpu)
    return data.round().file()


def test_off_cpu_time_is_the_wait_time_of_perf_sched(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(simulated(1))
    command = [need("perf"), "sched", "timehist", "-i", str(file)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = defaultdict(list)
    for line in printed.splitlines():
        if (match := _LINE.match(line)) and float(match[2]):
            theirs[int(match[1])].append(float(match[2]))
    ours = defaultdict(list)
    with fastprof.open(file, symbolize=False) as profile:
        for batch in profile.batches():
            values = batch.values(len(profile._model.parts[batch.part].value_types) - 1)
            for thread, value in zip(batch["thread"], values, strict=True):
                if value:
                    ours[profile._model.row("threads", thread)[2]].append(value // 1000 / 1000)
    assert len(theirs) == 6 and min(map(len, theirs.values())) > 50
    for tid, waits in theirs.items():  # perf prints these when the thread leaves again
        assert ours[tid][: len(waits)] == waits and len(ours[tid]) - len(waits) in (0, 1)
