"""trend finds the commit that made a function slower: a repository of 30 commits, each built and recorded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need

COMMITS, SLOWER = 30, 19
PROGRAM = """\
#include <stdio.h>
static unsigned mix(unsigned x, int n) {{ for (int i = 0; i < n; i++) x = x * 1664525u + 1013904223u; return x; }}
__attribute__((noinline)) static unsigned parse(unsigned x) {{ return mix(x, {parse}); }}
__attribute__((noinline)) static unsigned fill(unsigned x) {{ return mix(x, {fill}); }}
__attribute__((noinline)) static unsigned draw(unsigned x) {{ return mix(x, 700); }}
/* {comment} */
int main(void) {{
    unsigned x = 1;
    for (int i = 0; i < 200; i++) x = draw(fill(parse(x)));
    printf("%u\\n", x);
}}
"""


@pytest.mark.exhaustive
def test_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One commit makes `fill` 5 % slower; each other one changes only a comment.  Callgrind counts exactly."""
    clone, runs = tmp_path / "clone", tmp_path / "runs"
    clone.mkdir()
    runs.mkdir()

    def git(*words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = [need("git"), *names, *words]
        return subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for i in range(COMMITS):
        text = PROGRAM.format(parse=300, fill=420 if i >= SLOWER else 400, comment=f"change {i}")
        (clone / "program.c").write_text(text)
        git("add", "program.c")
        git("commit", "-q", "-m", f"change {i}")
        subprocess.run([need("gcc"), "-g", "-O1", "program.c", "-o", tmp_path / "program"], cwd=clone, check=True)
        out = runs / f"{git('rev-parse', 'HEAD').strip()}.callgrind"
        tool = [need("valgrind"), "-q", "--tool=callgrind", f"--callgrind-out-file={out}", tmp_path / "program"]
        subprocess.run(tool, check=True, capture_output=True)
    commits = git("log", "--reverse", "--format=%H").split()
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
