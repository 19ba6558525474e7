"""Instructions of whole commands, of this revision and of an earlier one, as Cachegrind counts them.

    git worktree add ../earlier REVISION && make -C ../earlier build
    python -m bench.instructions ../earlier FOLDER [WORD ...]

FOLDER is where the inputs are made, 20 MB each (some 300 MB in total, kept for the next time).  Words select commands:
`diff callgrind` are those that have both in their name.  Each command runs once in each revision, with one thread and
compiled modules; the instructions of `--version`, which are those of Python's start, are subtracted.  Ratios of two
runs differ by 0.2 %, whatever else the machine does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import inputs
from fastprof import convert
from tests.support.paths import REPO, SHARED

MB = 20
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
        for to in ("perfetto", "firefox", "speedscope", "parquet")
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
    **{f"info of small {of}": f"info -q {REPO / 'tests' / 'corpus' / file}" for of, file in SMALL.items()},
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


def make(folder: Path) -> None:
    if SHARED is None:
        raise SystemExit("no shared/tools next to the repository")
    tools = SHARED / "tools"
    folder.mkdir(parents=True, exist_ok=True)

    def made(name: str, tool: str, *options: str) -> None:
        if not (folder / name).exists():
            run = [sys.executable, str(tools / tool), str(folder / name), *options]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)

    size = ("--size", f"{MB}M")
    for seed in ("1", "2"):
        for style in ("line", "instr"):
            made(f"{style}{seed}.callgrind", "make_big_callgrind.py", *size, "--style", style, "--seed", seed)
        made(f"seed{seed}.cachegrind", "make_big_cachegrind.py", *size, "--seed", seed)
    made("dropped.cachegrind", "make_big_cachegrind.py", *size, "--seed", "1", "--drop", "0.1")
    made("oprofile", "make_big_oprofile.py", "--elf", "--cg", "--images", "10")
    for name, seed in (("cpu.prof", "1"), ("cpu2.prof", "2")):
        made(name, "make_big_gperf.py", *size, "--seed", seed)
    if not (folder / "walk.prof").exists():
        inputs.walked(folder / "walk.prof", MB * 10**6)
    if not (folder / "trace.xray").exists():
        subprocess.run(["cc", "-O2", "-o", folder / "synth_xray", tools / "synth_xray.c"], check=True)
        subprocess.run([folder / "synth_xray", folder / "trace.xray", str(MB), "32"], check=True, capture_output=True)
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


def instructions(checkout: Path, arguments: str, folder: Path) -> int:
    """Of `python -m fastprof` with these arguments, the modules and packages of `checkout`."""
    [packages] = checkout.resolve().glob(".venv/lib/python*/site-packages")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{checkout.resolve()}:{packages}",
        "PYTHONHASHSEED": "0",
    }
    tool = "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null"
    command = f"exec taskset -c {min(os.sched_getaffinity(0))} {tool} {sys.executable} -S -m fastprof "
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command += arguments.replace("{}", f"{out}/out")
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    found = re.search(r"I +refs: +([0-9,]+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{arguments}, {checkout}: {done.stderr[-2000:]}")
    return int(found[1].replace(",", ""))


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    checkouts, folder, words = (Path(sys.argv[1]), REPO), Path(sys.argv[2]), sys.argv[3:]
    make(folder)
    for checkout in checkouts:
        subprocess.run([sys.executable, "-m", "compileall", "-q", checkout / "fastprof"], check=True)
    start = [instructions(checkout, "--version", folder) for checkout in checkouts]
    print("| command | before, 10^6 instructions | today | today : before |\n|---|---:|---:|---:|")
    print(f"| `--version` | {start[0] / 1e6:,.0f} | {start[1] / 1e6:,.0f} | {start[1] / start[0]:.2f} |")
    for name, arguments in COMMANDS.items():
        if all(word in name for word in words):
            before, today = (
                instructions(one, arguments, folder) - its for one, its in zip(checkouts, start, strict=True)
            )
            print(f"| {name} | {before / 1e6:,.0f} | {today / 1e6:,.0f} | {today / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
