"""Whole commands side by side: CPU seconds and peak memory, as the operating system counts them.

    python bench/compare.py FILE COMMAND [COMMAND ...]      in a command, {} stands for FILE

Commands are run in turn, A B A B ..., so that a machine that slows down slows all of them.  Prints for each the
median and least CPU seconds (user and system, children included), MB of FILE per CPU-second, the peak memory, and
how many times the first command's CPU it took.  FASTPROF_BENCH_ROUNDS (default 5) sets the number of rounds.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys


def run(command: list[str]) -> tuple[float, int]:
    """(CPU seconds, peak KiB) of one run, whose output is discarded."""
    with open(os.devnull, "w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {shlex.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    file = sys.argv[1]
    megabytes = os.path.getsize(file) / 1e6
    commands = [[part.replace("{}", file) for part in shlex.split(text)] for text in sys.argv[2:]]
    seconds: list[list[float]] = [[] for _ in commands]
    peaks = [0] * len(commands)
    for _ in range(int(os.environ.get("FASTPROF_BENCH_ROUNDS", "5"))):
        for i, command in enumerate(commands):
            cpu, peak = run(command)
            seconds[i].append(cpu)
            peaks[i] = max(peaks[i], peak)
    print(f"{os.path.basename(file)}: {megabytes:,.1f} MB")
    print("| command | CPU s, median | least | MB per CPU-s | peak MiB | CPU, first = 1 |\n|---|---|---|---|---|---|")
    first = statistics.median(seconds[0])
    for command, times, peak in zip(commands, seconds, peaks, strict=True):
        median = statistics.median(times)
        shown = " ".join(os.path.basename(part) if "/" in part else part for part in command)
        print(
            f"| `{shown}` | {median:.2f} | {min(times):.2f} | {megabytes / median:,.0f} | {peak / 1024:,.0f}"
            f" | {median / first:,.2f} |"
        )


if __name__ == "__main__":
    main()
