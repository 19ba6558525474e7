"""Whole commands of this revision and of an earlier one: instructions, or CPU time, elapsed time and peak memory.

    git worktree add ../earlier REVISION && make -C ../earlier build
    python -m bench.instructions ../earlier FOLDER [WORD ...]
    python -m bench.instructions --time 5 --mb 100 ../earlier FOLDER [WORD ...]
    python -m bench.instructions --over-python ../earlier FOLDER small

FOLDER is where the inputs are made, 20 MB each (some 300 MB in total, kept for the next time).  Words select commands:
`diff callgrind` are those that have both in their name.

Cachegrind counts the instructions of one run in each revision, with one thread and compiled modules; those of
`--version`, which are those of Python's start, are subtracted, with --over-python those of `python -c pass` instead:
what a start costs.  Ratios of two runs differ by 0.2 %, whatever else the machine does.  --time runs the two in turn
with all cores, and prints the least of its runs, start included.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import inputs
from bench.bench_batch import KINDS
from bench.peers import Run
from fastprof import convert
from tests.support.paths import REPO, SHARED

PASS = "-c pass"
# what the script of an installed package does; -m would count runpy
SCRIPT = "-c 'import sys; from fastprof.__main__ import main; sys.exit(main())'"
SMALL = {
    "folded": "folded/good/plain.folded",
    "callgrind": "callgrind/good/cfi.callgrind",
    "pprof": "pprof/good/go-cpulabels.pb.gz",
}
# By name: the arguments; {} is a path for the output.
COMMANDS = {
    **{f"xray to {to}": f"convert -q trace.xray -o {{}}.{to}" for to in ("callgrind", "pb.gz", "folded")},
    **{
        f"xray to {to}": f"convert -q trace.xray -t {to} -o {{}}"
        for to in ("perfetto", "firefox", "speedscope", "trace-event", "arrow", "parquet")
    },
    "xray to archive": "archive add -q {}.fpz trace.xray",
    **{f"gperftools to {to}": f"convert -q cpu.prof -t {to} -o {{}}" for to in ("pprof", "firefox", "speedscope")},
    "gperftools to archive": "archive add -q {}.fpz cpu.prof",
    **{f"pprof to {to}": f"convert -q cpu.pb.gz -t {to} -o {{}}" for to in ("callgrind", "folded")},
    "folded to pprof": "convert -q cpu.folded -t pprof -o {}",
    **{
        f"callgrind ({style}) to {to}": f"convert -q {style}1.callgrind -t {to} -o {{}}"
        for style in ("line", "instr")
        for to in ("callgrind", "pprof", "folded")
    },
    "callgrind (line) to archive": "archive add -q {}.fpz line1.callgrind",
    "cachegrind to cachegrind": "convert -q seed1.cachegrind -o {}.cachegrind",
    **{
        f"info of {of}": f"info -q {file}"
        for of, file in (
            ("callgrind", "line1.callgrind"),
            ("cachegrind", "seed1.cachegrind"),
            ("speedscope", "cpu.speedscope.json"),
        )
    },
    **{
        f"{verb} of small {of}": f"{verb} -q {REPO / 'tests' / 'corpus' / file}"
        for verb in ("info", "top")
        for of, file in SMALL.items()
    },
    **{
        f"{verb} of {of}": f"{verb} -q {file}"
        for verb in ("top", "report")
        for of, file in (
            ("xray", "trace.xray"),
            ("gperftools", "cpu.prof"),
            ("pprof", "cpu.pb.gz"),
            ("pprof of a walk", "walk.pb.gz"),
            ("folded", "cpu.folded"),
            ("oprofile", "oprofile"),
            ("cachegrind", "seed1.cachegrind"),
            ("callgrind (line)", "line1.callgrind"),
            ("callgrind (instr)", "instr1.callgrind"),
        )
    },
    "annotate of cachegrind": "annotate -q seed1.cachegrind",
    "sql of pprof": "sql -q cpu.pb.gz 'select count(*) from samples'",
    "sql of xray": "sql -q trace.xray 'select function, sum(self) from spans group by 1'",
    "batch convert": "batch convert dumps -t pprof -o {} -q",
    "batch merge": "batch merge dumps/gperftools -t pprof -o {} -q",
    "batch archive": "batch archive dumps -o {}.fpa -q",
    "archive of 500 files": "archive add -q {}.fpa dumps",
    **{
        f"{verb} of {of}": f"{verb} -q {old} {new}" + (f" -t {to} -o {{}}" if verb == "merge" else "")
        for verb in ("merge", "diff")
        for of, old, new, to in (
            ("cachegrind, two seeds", "seed1.cachegrind", "seed2.cachegrind", "cachegrind"),
            ("cachegrind, functions dropped", "seed1.cachegrind", "dropped.cachegrind", "cachegrind"),
            ("cachegrind, equal names in other files", "line1.cachegrind", "line2.cachegrind", "cachegrind"),
            ("callgrind (line)", "line1.callgrind", "line2.callgrind", "callgrind"),
            ("callgrind (instr)", "instr1.callgrind", "instr2.callgrind", "callgrind"),
            ("gperftools", "cpu.prof", "cpu2.prof", "pprof"),
            ("pprof", "cpu.pb.gz", "cpu2.pb.gz", "pprof"),
            ("pprof of a walk", "walk.pb.gz", "walk.pb.gz", "pprof"),
            ("folded", "cpu.folded", "cpu2.folded", "folded"),
        )
    },
}


def make(folder: Path, megabytes: int) -> None:
    if SHARED is None:
        raise SystemExit("no shared/tools next to the repository")
    tools = SHARED / "tools"
    folder.mkdir(parents=True, exist_ok=True)

    def made(name: str, tool: str, *options: str) -> None:
        if not (folder / name).exists():
            run = [sys.executable, str(tools / tool), str(folder / name), *options]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)

    size = ("--size", f"{megabytes}M")
    for seed in ("1", "2"):
        for style in ("line", "instr"):
            made(f"{style}{seed}.callgrind", "make_big_callgrind.py", *size, "--style", style, "--seed", seed)
        made(f"seed{seed}.cachegrind", "make_big_cachegrind.py", *size, "--seed", seed)
    made("dropped.cachegrind", "make_big_cachegrind.py", *size, "--seed", "1", "--drop", "0.1")
    for number in range(500 if not (folder / "dumps").exists() else 0):
        source = REPO / "tests" / "corpus" / KINDS[number % len(KINDS)]
        copy = folder / "dumps" / source.parts[-3] / f"{number:03}{source.suffix}"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    made("oprofile", "make_big_oprofile.py", "--elf", "--cg", "--images", "10")
    for name, seed in (("cpu.prof", "1"), ("cpu2.prof", "2")):
        made(name, "make_big_gperf.py", *size, "--seed", seed)
    if not (folder / "walk.prof").exists():
        inputs.walked(folder / "walk.prof", megabytes * 10**6)
    if not (folder / "trace.xray").exists():
        subprocess.run(["cc", "-O2", "-o", folder / "synth_xray", tools / "synth_xray.c"], check=True)
        subprocess.run(
            [folder / "synth_xray", folder / "trace.xray", str(megabytes), "32"], check=True, capture_output=True
        )
    for source, copy in (
        ("line1.callgrind", "line1.cachegrind"),
        ("line2.callgrind", "line2.cachegrind"),
        ("cpu.prof", "cpu.pb.gz"),
        ("cpu2.prof", "cpu2.pb.gz"),
        ("walk.prof", "walk.pb.gz"),
        ("cpu.prof", "cpu.folded"),
        ("cpu2.prof", "cpu2.folded"),
        ("cpu.prof", "cpu.speedscope.json"),
    ):
        if not (folder / copy).exists():
            convert(folder / source, folder / copy)


def shell(checkout: Path, before: str, arguments: str, out: str) -> tuple[str, dict[str, str]]:
    """A command for a shell, and its environment: the modules and packages of `checkout`."""
    [packages] = checkout.resolve().glob(".venv/lib/python*/site-packages")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{checkout.resolve()}:{packages}",
        "PYTHONHASHSEED": "0",
    }
    what = f"{SCRIPT} {arguments}" if arguments != PASS else arguments
    return f"exec {before} {sys.executable} -S " + what.replace("{}", f"{out}/out"), environment


def instructions(checkout: Path, arguments: str, folder: Path) -> int:
    """Of `fastprof` with these arguments and one thread."""
    tool = "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null"
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command, environment = shell(checkout, f"taskset -c {min(os.sched_getaffinity(0))} {tool}", arguments, out)
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    found = re.search(r"I +refs: +([0-9,]+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{arguments}, {checkout}: {done.stderr[-2000:]}")
    return int(found[1].replace(",", ""))


def seconds(checkout: Path, arguments: str, folder: Path) -> tuple[float, float, float]:
    """CPU and elapsed seconds, and peak MiB, of one run, with its children."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command, environment = shell(checkout, "", arguments, out)
        run = Run(["sh", "-c", command], folder, environment)
    return run.cpu_seconds, run.seconds, run.peak_bytes / (1 << 20)


def print_instructions(
    checkouts: tuple[Path, Path], commands: dict[str, str], folder: Path, base: str = "--version"
) -> None:
    start = [instructions(checkout, base, folder) for checkout in checkouts]
    print("| command | before, 10^6 instructions | today | today : before |\n|---|---:|---:|---:|")
    print(f"| `{base}` | {start[0] / 1e6:,.0f} | {start[1] / 1e6:,.0f} | {start[1] / start[0]:.2f} |")
    for name, arguments in commands.items():
        before, today = (instructions(one, arguments, folder) - its for one, its in zip(checkouts, start, strict=True))
        print(f"| {name} | {before / 1e6:,.0f} | {today / 1e6:,.0f} | {today / before:.2f} |", flush=True)


def print_times(checkouts: tuple[Path, Path], commands: dict[str, str], folder: Path, runs: int) -> None:
    print("| command | CPU s, before | today | elapsed, before | today | peak MiB, before | today | CPU, ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, arguments in commands.items():
        found = [[seconds(one, arguments, folder) for one in checkouts] for _ in range(runs)]
        before, today = ([min(run[i][what] for run in found) for what in range(3)] for i in range(2))
        cells = [f"{one:.2f}" for pair in zip(before[:2], today[:2], strict=True) for one in pair]
        cells += [f"{before[2]:.0f}", f"{today[2]:.0f}", f"{today[0] / before[0]:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--time", type=int, metavar="RUNS", help="CPU and elapsed time and memory, not instructions")
    parser.add_argument("--over-python", action="store_true", help="less the instructions of `python -c pass`")
    parser.add_argument("--mb", type=int, default=20, metavar="MB", help="the size of the inputs")
    parser.add_argument("earlier", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("word", nargs="*")
    asked = parser.parse_args()
    checkouts = (asked.earlier, REPO)
    make(asked.folder, asked.mb)
    for checkout in checkouts:
        subprocess.run([sys.executable, "-m", "compileall", "-q", checkout / "fastprof"], check=True)
    commands = {name: its for name, its in COMMANDS.items() if all(word in name for word in asked.word)}
    if asked.time:
        print_times(checkouts, commands, asked.folder, asked.time)
    else:
        print_instructions(checkouts, commands, asked.folder, PASS if asked.over_python else "--version")


if __name__ == "__main__":
    main()
