"""Sessions of pyinstrument and profiles of StackProf against what these print of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.differential.peers import need
from tests.support.paths import CORPUS
from tests.support.stackdump import dump

SESSION = """
import asyncio, time, sys
from pyinstrument import Profiler

def work(n):
    return sum(i * i for i in range(n)) if n % 2 else work(n + 1)

async def task(n):
    for _ in range(8):
        work(n)
        await asyncio.sleep(0.002)

profiler = Profiler(interval=0.0005)
with profiler:
    asyncio.run(asyncio.wait_for(task(20000), 9))
profiler.last_session.save(sys.argv[1])
"""
PROGRAM = """
require "stackprof"
def leaf(n) a = []; n.times { |i| a << i.to_s + "x" }; a.size end
def mid(n) n > 0 ? mid(n - 1) + leaf(40) : leaf(2000) end
StackProf.run(mode: ARGV[1].to_sym, interval: ARGV[2].to_i, raw: ARGV[3] == "raw", out: ARGV[0]) {
  200.times { mid(3); StackProf.sample if ARGV[1] == "custom" }
}
"""


def test_a_session_has_the_sums_of_its_speedscope_output(tmp_path: Path) -> None:
    """Without the processors that hide frames; a frame of speedscope has the line of the call or its first one."""
    session = pytest.importorskip("pyinstrument.session", reason="pip install pyinstrument")
    renderers = pytest.importorskip("pyinstrument.renderers")
    file = tmp_path / "app.pyisession"
    subprocess.run([sys.executable, "-c", SESSION, file], check=True)
    loaded = session.Session.load(str(file))
    renderer = renderers.SpeedscopeRenderer(show_all=True)
    renderer.processors = []
    theirs: Counter[Any] = Counter()
    found = json.loads(renderer.render(loaded))
    names = [frame["name"] for frame in found["shared"]["frames"]]
    (profile,), path, last = found["profiles"], list[str](), 0.0
    for event in profile["events"]:
        theirs[tuple(name.rpartition(".")[2] for name in path if name != "[self]")] += round((event["at"] - last) * 1e9)
        last = event["at"]
        if event["type"] == "O":
            path.append(names[event["frame"]])
        else:
            path.pop()
    ours: Counter[Any] = Counter()
    for stack, _, (ns, _) in dump(file.read_bytes(), "pyinstrument").rows:
        ours[tuple(f[3][0][0].decode().rpartition(".")[2] for f in reversed(stack))] += ns
    assert sum(ours.values()) == pytest.approx(sum(theirs.values()), abs=len(loaded.frame_records))
    assert ours
    for stack, ns in ours.items():
        assert theirs[stack] == pytest.approx(ns, abs=len(loaded.frame_records)), stack


@pytest.mark.parametrize("mode", ["cpu 1000 raw", "wall 1000 raw", "object 3 raw", "cpu 1000 flat", "custom 1 raw"])
def test_methods_have_the_samples_of_stackprof(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.rb").write_text(PROGRAM)
    file = tmp_path / "app.stackprof"
    subprocess.run([need("ruby"), tmp_path / "a.rb", file, *mode.split()], check=True)
    command = [need("stackprof"), "--text", "--limit=999", file]
    text = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs: Counter[str] = Counter()
    inclusive: Counter[str] = Counter()
    for total, own, name in re.findall(r"^ +(\d+) +\([\d.]+%\) +(\d+) +\([\d.]+%\) +(.*)$", text.stdout, re.MULTILINE):
        theirs[name] += int(own)
        inclusive[name] = max(inclusive[name], int(total))
    ours: Counter[str] = Counter()
    for row in fastprof.top(file, value="samples", n=0).rows:
        name = re.sub(r" (?:<cycle \d+>|\(.*:?.*\))$", "", row.name) if row.name[0] != "(" else row.name
        ours[name] += row.self * (not row.name.startswith("<cycle"))
        if "flat" not in mode:
            assert row.inclusive <= inclusive[name]
    assert theirs.total() and +ours == +theirs
    as_json = subprocess.run([need("stackprof"), "--json", file], capture_output=True, check=True).stdout
    format_ = "stackprof"
    if "raw" in mode:
        assert dump(as_json, format_).summed() == dump(file.read_bytes(), format_).summed()


def test_the_corpus_has_equal_sums() -> None:
    folder = CORPUS / "stackprof" / "good"
    one, other = (dump((folder / name).read_bytes(), "stackprof") for name in ("wall.stackprof", "wall.stackprof.json"))
    assert one.rows == other.rows
