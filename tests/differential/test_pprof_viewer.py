"""Every report of go tool pprof on our output, from every kind of source."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from tests.contract.dump import CORPUS, files
from tests.differential.peers import need

REPORTS = ["-weblist=.", "-list=.", "-top", "-peek=.", "-tree", "-traces", "-callgrind", "-raw"]
# Provokes pprof's panic, which needs an existing object file: lines, addresses and another file's inlined code.
OBJECT = f"""# callgrind format
cmd: {sys.executable} -c pass
positions: instr line
events: Ir
ob=/lib/ld.so
fl=rtld.c
fn=start
0x5 1 1
cob={sys.executable}
cfi=main.c
cfn=main
calls=1 0x10 1
0x5 1 107
ob={sys.executable}
fl=main.c
fn=main
0x10 1 7
cfn=bump
calls=1 0x20 2
0x10 1 100
fn=bump
0x20 2 60
fi=bump.h
0x24 3 40
"""


def pprof(*arguments: str | Path) -> str:
    done = subprocess.run([need("go"), "tool", "pprof", *arguments], capture_output=True, text=True, errors="replace")
    # no function has a name, or the source was empty: pprof has nothing to list
    nothing = ("no matches found for regexp: .\n", "profile has no samples\n")
    assert done.returncode == 0 or done.stderr in nothing, done.stderr[:2000]
    return done.stdout


def one_of_each() -> list[str]:
    """Of each format the first, the middle and the last good file."""
    found = []
    for room in sorted({file.split("/")[0] for file in files("good")}):
        its = [file for file in files("good") if file.split("/")[0] == room]
        found += sorted({its[0], its[len(its) // 2], its[-1]})
    return found


@pytest.fixture(params=[*one_of_each(), "object", "object by address", "object by function", "program of a log"])
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    output = tmp_path / "x.pb.gz"
    if request.param.startswith("object"):
        source = tmp_path / "x.callgrind"
        source.write_text(OBJECT)
        fastprof.convert(source, output, frames=request.param.partition(" by ")[2] or "line")
    elif request.param == "program of a log":
        log = CORPUS / "xray/good/fdr5-pool-clang19.xray"
        fastprof.convert(log, output, symbols=[CORPUS / "xray/pool-clang19"])
        assert pprof("-top", output).splitlines()[0] == "File: pool-clang19"
    else:
        fastprof.convert(CORPUS / request.param, output, from_=request.param.split("/")[0])
    return output


def test_every_report(profile: Path, tmp_path: Path) -> None:
    for report in REPORTS:
        pprof(report, "-symbolize=none", f"-output={tmp_path / 'out'}", profile)


def test_title_and_frames(tmp_path: Path) -> None:
    source, output = tmp_path / "x.callgrind", tmp_path / "x.pb.gz"
    source.write_text(OBJECT)
    fastprof.convert(source, output)
    program = Path(sys.executable).name
    assert pprof("-top", output).splitlines()[0] == f"File: {program}"
    traces = pprof("-traces", "-symbolize=none", output)
    assert not re.search(r"bump\s+bump", traces)
    # the object that costs most, for commands that name none
    source.write_text(OBJECT.replace("cmd:", "# "))
    fastprof.convert(source, output)
    assert pprof("-top", output).splitlines()[0] == f"File: {program}"
    # objects are kept: in a round trip, and for -focus
    back = tmp_path / "back.callgrind"
    fastprof.convert(output, back)
    objects = set(re.findall(r"^c?ob=\(\d+\) (.*)", back.read_text(), re.MULTILINE))
    assert objects == {"/lib/ld.so", sys.executable}
    focused = pprof("-top", "-focus=ld.so", "-symbolize=none", output)
    assert "start" in focused
    again = tmp_path / "again.pb.gz"
    fastprof.convert(output, again)
    assert pprof("-raw", again) == pprof("-raw", output)


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """pprof shortens names that look like C++ if system_name equals name."""
    names = ["<module>", "<lambda>", "<genexpr>", "<built-in method builtins.print>", "operator<", "operator<=>"]
    names += ["std::vector<int, std::allocator<int> >::push_back(int&&)", "f(int)", "a::b(char const*)", "operator()"]
    names += ["main.(*T).f", "main.F[go.shape.int_0]", "x.(*Y[...]).Z", "com.a.B.<init>", "-[NSView draw:]", "a[0](b)"]
    source, output, back = tmp_path / "x.folded", tmp_path / "x.pb.gz", tmp_path / "back.pb.gz"
    source.write_text("".join(f"{name} {100 - i}\n" for i, name in enumerate([*names, "_ZN1a1bEv"])))
    fastprof.convert(source, output, from_="folded")
    top = pprof("-top", "-nodecount=0", output).partition("cum%\n")[2]
    assert [line.split(maxsplit=5)[5] for line in top.splitlines()] == [*names, "a::b"]
    for name in names:
        assert name in pprof("-tree", output) and name in pprof("-traces", output)
    dot = pprof("-dot", "-nodecount=0", output)
    assert all(f'tooltip="{name} (' in dot for name in names) and "unknown" not in dot
    fastprof.convert(output, back)
    assert back.read_bytes() == output.read_bytes()
