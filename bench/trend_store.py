"""The first and the next day of `fastprof trend` over a store of 18,000 profiles: CPU seconds and memory.

    python -m bench.trend_store [FOLDER]        makes the store in FOLDER (a temporary one), 1 GB free

50 hosts, 360 nights and one more, 300 functions; hosts differ by 10 %, and by 3 % from night to night.  A function of
1.6 % of the cost is 5 % slower since night 300.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path

import numpy as np

HOSTS, NIGHTS, FUNCTIONS, SAMPLES = 50, 360, 300, 100_000
FASTPROF = (sys.executable, "-m", "fastprof")


def write(folder: Path) -> None:
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(2, FUNCTIONS + 2) ** 1.05
    shares /= shares.sum()
    slower = int(np.argmin(abs(shares - 0.016)))
    offset = np.exp(0.1 * rng.standard_normal((HOSTS, FUNCTIONS)))
    for night in range(NIGHTS + 1):
        place = folder / ("runs" if night < NIGHTS else "next") / str(date(2025, 1, 1) + timedelta(night))
        place.mkdir(parents=True)
        for host in range(HOSTS):
            level = shares * offset[host] * np.maximum(0, 1 + 0.03 * rng.standard_normal(FUNCTIONS))
            level[slower] *= 1.05 if night >= 300 else 1
            counts = enumerate(rng.poisson(level / level.sum() * SAMPLES))
            text = "".join(f"main;mod{i % 17};f{i} {n}\n" for i, n in counts if n)
            (place / f"web{host}.folded").write_text(text)


def run(name: str, *words: str) -> None:
    def used() -> float:
        its = resource.getrusage(resource.RUSAGE_CHILDREN)
        return its.ru_utime + its.ru_stime

    before = used()
    done = subprocess.run([*FASTPROF, *words], capture_output=True, text=True, check=True)
    n = done.stdout.partition("\n")[0] if words[0] == "trend" else ""
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{name}: {used() - before:.2f} s of CPU, at most {most} MB so far  {n}", flush=True)


def main(folder: Path) -> None:
    write(folder)
    store = str(folder / "s.fpa")
    add = ["batch", "archive", "--label-path", "{date}/{host}.folded", "-o", store, "--cores", "1"]
    trend = ["trend", store, "--over", "label:date", "--explain", "0"]
    run("store", *add, f"{folder}/runs/")
    run("trend from scratch", *trend, "--cache", "none")
    run("trend that keeps sums", *trend)
    run("one more night", *add, f"{folder}/next/")
    run("the next day", *trend)
    run("the same again", *trend)
    run("with causes", *trend[:-2])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
