"""What it takes to make stacks of a graph, and to open them: CPU seconds, peak memory, samples and size.

python bench/estimate_cost.py FILE...        (graphs: Callgrind files of 100 MB)

For each file fastprof's `info`, which only reads it, the conversion to pprof with the default options, and
`go tool pprof -top` on what it wrote, in turn.  Of CPU seconds the median and the least; FASTPROF_BENCH_ROUNDS
(default 5) sets the number of rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from compare import run

HEADS = ("file", "MB", "command", "CPU s, median", "least", "peak MiB", "samples", "output MB", "under [pruned]")


def measure(file: Path, output: Path) -> None:
    program = [sys.executable, "-m", "fastprof"]
    commands = {
        "info": [*program, "info", "-q", str(file)],
        "convert": [*program, "convert", "-q", str(file), "-o", str(output)],
        "pprof -top": ["go", "tool", "pprof", "-top", str(output)],
    }
    if not shutil.which("go"):
        del commands["pprof -top"]
    runs: dict[str, list[tuple[float, int]]] = {name: [] for name in commands}
    for _ in range(int(os.environ.get("FASTPROF_BENCH_ROUNDS", "5"))):
        for name, command in commands.items():
            runs[name].append(run(command))
    # not in this process: its memory would count as that of the commands
    said = subprocess.run([*commands["convert"], "--json"], capture_output=True, text=True, check=True).stderr
    log = json.loads(said)
    pruned = [one["text"].split(" of the cost")[0] for one in log["warnings"] if one["code"] == "pruned-cost"]
    made = f"{log['rows']['samples_written']:,} | {output.stat().st_size / 1e6:.1f} | {', '.join(pruned)}"
    for name, found in runs.items():
        seconds = [cpu for cpu, _ in found]
        print(
            f"| `{file.name}` | {file.stat().st_size / 1e6:.0f} | {name} | {statistics.median(seconds):.2f} "
            f"| {min(seconds):.2f} | {max(peak for _, peak in found) / 1024:.0f} "
            f"| {made if name == 'convert' else ' | | '} |",
            flush=True,
        )


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    with tempfile.TemporaryDirectory() as folder:
        for argument in sys.argv[1:]:
            measure(Path(argument), Path(folder) / "o.pb.gz")


if __name__ == "__main__":
    main()
