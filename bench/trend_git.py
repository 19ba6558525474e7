"""A git history whose functions are sampled: does `fastprof trend` find the commit that made one slower?

    python -m bench.trend_git                 the table of RESULTS.md; needs git, gcc and perf
    python -m bench.trend_git --seeds 3 --frequency 10000

A temporary repository of 30 commits (tests/differential/test_trend_git.py); the twentieth makes `fill` 5 % slower, each
other one changes a comment.  Each commit is built once and recorded by `perf record -e cpu-clock` for each seed, in an
order of its own.  Without debug information: functions inlined into `fill` count as `fill`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
from pathlib import Path

import fastprof
from tests.differential.test_trend_git import COMMITS, PROGRAM, SLOWER

ROUNDS = 400_000  # of the program's loop: about 0.8 s, 15,000 samples


def built(clone: Path, rounds: int) -> list[str]:
    """The commits, oldest first; each has a folder of its name with the program, next to the repository."""
    clone.mkdir()

    def git(*words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *names, *words], cwd=clone, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    commits = []
    for i in range(COMMITS):
        text = PROGRAM.format(parse=300, fill=420 if i >= SLOWER else 400, comment=f"change {i}")
        (clone / "program.c").write_text(text.replace("i < 200;", f"i < {rounds};"))
        git("add", "program.c")
        git("commit", "-q", "-m", f"change {i}")
        commits.append(git("rev-parse", "HEAD").strip())
        program = clone.parent / commits[-1] / "program"
        program.parent.mkdir()
        subprocess.run(["gcc", "-O1", "program.c", "-o", program], cwd=clone, check=True)
    return commits


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--frequency", type=int, default=20_000, help="samples a second")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the program's loop")
    args = parser.parse_args()
    print("| seed | samples a commit | p | change | found at commit (20 is right) | other findings |", flush=True)
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        commits = built(Path(folder) / "clone", args.rounds)
        order = Path(folder) / "order"
        order.write_text("\n".join(reversed(commits)))
        os.chdir(folder)
        for seed in range(args.seeds):
            runs = Path(folder) / f"runs{seed}"
            runs.mkdir()
            for commit in random.Random(seed).sample(commits, len(commits)):
                perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(args.frequency), "-o"]
                command = [*perf, runs / f"{commit}.data", Path(folder) / commit / "program"]
                subprocess.run(command, check=True, capture_output=True)
            found = fastprof.trend(str(runs), over="commit", order=str(order), label_path="{commit}.data", explain=0)
            samples = sorted(point.samples or 0 for point in found.points)[COMMITS // 2]
            mine = [one for one in found.findings if one.name == "fill"]
            cells = [f"{mine[0].p:.1g}", f"{mine[0].change:+.1f} %", str(mine[0].since_index + 1)] if mine else [""] * 3
            print(f"| {seed} | {samples:,} | {' | '.join(cells)} | {len(found.findings) - len(mine)} |", flush=True)


if __name__ == "__main__":
    main()
