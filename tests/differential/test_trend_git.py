"""trend finds the commit that made a function slower: a repository of 30 commits, each built and recorded."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need

COMMITS, SLOWER = 30, 19
ROUNDS = 400_000  # of the program's loop: about 0.9 s, 18,000 samples
EVENT = "cpu-clock:u"  # without the kernel, whose part depends on what else the machine does
FREQUENCY = 20_000  # samples a second
PROGRAM = """\
#include <stdio.h>
static unsigned mix(unsigned x, int n) {{ for (int i = 0; i < n; i++) x = x * 1664525u + 1013904223u; return x; }}
__attribute__((noinline)) static unsigned parse(unsigned x) {{ return mix(x, 300); }}
__attribute__((noinline)) static unsigned fill(unsigned x) {{ return mix(x, {fill}); }}
__attribute__((noinline)) static unsigned draw(unsigned x) {{ return mix(x, 700); }}
/* {comment} */
int main(void) {{
    unsigned x = 1;
    for (int i = 0; i < {rounds}; i++) x = draw(fill(parse(x)));
    printf("%u\\n", x);
}}
"""


def built(clone: Path, rounds: int, *options: str) -> Iterator[tuple[str, Path]]:
    """The hash of each commit, oldest first, and its program.  The twentieth makes `fill` 5 % slower, each other one
    changes only a comment."""
    clone.mkdir()

    def git(*words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = [need("git"), *names, *words]
        return subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for i in range(COMMITS):
        text = PROGRAM.format(fill=420 if i >= SLOWER else 400, comment=f"change {i}", rounds=rounds)
        (clone / "program.c").write_text(text)
        git("add", "program.c")
        git("commit", "-q", "-m", f"change {i}")
        commit = git("rev-parse", "HEAD").strip()
        program = clone.parent / commit / "program"
        program.parent.mkdir()
        subprocess.run([need("gcc"), "-O1", *options, "program.c", "-o", program], cwd=clone, check=True)
        yield commit, program


def recorded(file: Path, program: Path, event: str = EVENT, frequency: int = FREQUENCY) -> None:
    command = [need("perf"), "record", "-q", "-e", event, "-F", str(frequency), "-o", file, program]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.exhaustive
def test_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callgrind counts exactly."""
    clone, runs = tmp_path / "clone", tmp_path / "runs"
    runs.mkdir()
    commits = []
    for commit, program in built(clone, 200, "-g"):
        commits.append(commit)
        tool = [need("valgrind"), "-q", "--tool=callgrind", f"--callgrind-out-file={runs / commit}.callgrind", program]
        subprocess.run(tool, check=True, capture_output=True)
    monkeypatch.chdir(clone)
    found = fastprof.trend(
        str(runs), over="commit", order="git", label_path="{commit}.callgrind", fail_over=2, window=15, bisect=True
    )
    (one,) = [one for one in found.findings if one.cost == "self"]
    assert (one.name, one.since, one.kind, one.left) == ("fill", commits[SLOWER], "step", (commits[SLOWER],))
    assert one.change is not None
    assert 4.5 < one.change < 5.5
    assert [failure.name for failure in found.failed] == ["fill"]
    (line,) = [cause for cause in one.causes if cause.kind == "line"]
    assert line.text.endswith("program.c:2")


@pytest.mark.exhaustive
def test_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf samples: 5 % are 7 standard errors over all commits.  bench/trend_git.py has ten seeds."""
    clone, runs = tmp_path / "clone", tmp_path / "runs"
    runs.mkdir()
    commits = []
    for commit, program in built(clone, ROUNDS):
        commits.append(commit)
        recorded(runs / f"{commit}.data", program)
    monkeypatch.chdir(clone)
    found = fastprof.trend(str(runs), over="commit", order="git", label_path="{commit}.data", explain=0)
    assert found.sampled
    (one,) = [one for one in found.findings if one.name == "fill"]
    assert one.kind == "step"
    assert one.p < 0.01
    assert one.change is not None
    assert one.change > 0
    assert abs(one.since_index - SLOWER) <= 3
