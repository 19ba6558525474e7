"""What --cores gains: wall time, and the CPU seconds of each thread, which say what bounds it on a quiet machine.

    python bench/cores.py FILE SUFFIX [ROUNDS]      such as: python bench/cores.py synth1g.xray .callgrind 5

One and two threads are run in turn, and the round with the least CPU of each is shown.  `bound` is the least wall time
that the CPU seconds allow on two cores: of reading and of writing the larger of half of all and the busiest thread's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time


def run(file: str, suffix: str, threads: int) -> None:
    """One conversion in this process; prints what it took as JSON."""
    import fastprof
    from fastprof.bridges.fold import fold
    from fastprof.core import workers

    phases: dict[str, list[float]] = {"read": [], "write": []}
    phase, begin, read = "read", workers.begin, fold._Machine.read

    def timed(work, *arguments):  # type: ignore[no-untyped-def]
        def inner(*inner_arguments):  # type: ignore[no-untyped-def]
            began = phase
            work(*inner_arguments)
            phases[began].append(time.thread_time())

        return begin(inner, *arguments)

    def timed_read(self, batches):  # type: ignore[no-untyped-def]
        nonlocal phase
        began = time.thread_time()
        read(self, batches)
        phases["read"].append(time.thread_time() - began)
        phase = "write"

    workers.begin = timed
    fold._Machine.read = timed_read  # type: ignore[method-assign]
    wall, main = time.perf_counter(), time.thread_time()
    with tempfile.TemporaryDirectory() as folder:
        fastprof.convert(file, os.path.join(folder, f"o{suffix}"), cores=threads)
        wall = time.perf_counter() - wall
    phases["write"].append(time.thread_time() - main - phases["read"][-1])
    bound = sum(max(sum(phase) / 2, *phase) for phase in phases.values())
    print(json.dumps({"wall": wall, "cpu": sum(map(sum, phases.values())), "bound": bound, "phases": phases}))


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    file, suffix, *rest = sys.argv[1:]
    if rest and rest[0] == "--one":
        run(file, suffix, int(rest[1]))
        return
    found: dict[int, list[dict[str, object]]] = {1: [], 2: []}
    for _ in range(int(rest[0]) if rest else 3):
        for threads, runs in found.items():
            command = [sys.executable, __file__, file, suffix, "--one", str(threads)]
            runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print("| threads | wall s, least | CPU s, least | bound s | reading: CPU s of each thread | writing |")
    print("|---|---|---|---|---|---|")
    for threads, runs in found.items():
        best = min(runs, key=lambda one: float(str(one["cpu"])))
        phases: dict[str, list[float]] = best["phases"]  # type: ignore[assignment]
        shown = [", ".join(f"{s:.2f}" for s in sorted(phase, reverse=True) if s >= 0.02) for phase in phases.values()]
        wall = min(float(str(one["wall"])) for one in runs)
        bound = f"{best['bound']:.2f}" if threads > 1 else f"{best['cpu']:.2f}"
        print(f"| {threads} | {wall:.2f} | {best['cpu']:.2f} | {bound} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
