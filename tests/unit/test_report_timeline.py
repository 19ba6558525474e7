"""The page of a timeline: contexts come from the stack machine, callers and callees are collected while it is read."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from fastprof import convert, report, top
from tests.support.pages import Page
from tests.support.paths import CORPUS
from tests.support.peak import peak
from tests.support.xraylog import FdrLog

POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"


def calls(path: Path, n: int, functions: int, seed: int = 1) -> None:
    """Nearly every call has a new context."""
    rng, log = random.Random(seed), FdrLog(version=5, buffer_size=1 << 20)
    for thread in (7, 8):
        buffer = log.buffer(tid=thread, pid=1).cpu(0, 1000)
        stack: list[int] = []
        for _ in range(n):
            if len(stack) > 12 or (stack and rng.random() < 0.5):
                buffer.exit(stack.pop(), rng.randrange(1, 9))
            else:
                stack.append(rng.randrange(1, functions))
                buffer.enter(stack[-1], 1)
        while stack:
            buffer.exit(stack.pop(), 1)
    path.write_bytes(log.bytes())


def stacks_of(profile: Path, tmp_path: Path, value: str) -> Counter[tuple[str, ...]]:
    convert(profile, tmp_path / "a.folded", value=value, time_unit="ticks")
    found: Counter[tuple[str, ...]] = Counter()
    for line in (tmp_path / "a.folded").read_text().splitlines():
        stack, _, cost = line.rpartition(" ")
        found[tuple(stack.replace("_#", "#").split(";"))] += int(cost)
    return found


@pytest.mark.parametrize("cores", [1, 3])
def test_contexts_are_those_of_stacks(cores: int, tmp_path: Path) -> None:
    calls(tmp_path / "t.xray", 6000, 9)
    for path in (POOL, tmp_path / "t.xray"):
        report(path, tmp_path / "page.html", prune=0, time_unit="ticks", cores=cores)
        page = Page(tmp_path / "page.html")
        for k, value in enumerate(("time", "calls")):
            shown: Counter[tuple[str, ...]] = Counter()
            for (_, *stack), cost in page.stacks(k).items():
                shown[tuple(stack)] += int(cost)
            assert shown == stacks_of(path, tmp_path, value) and page.head["totals"][k] == shown.total()


def test_contexts_that_memory_does_not_hold_stay_in_the_total(tmp_path: Path) -> None:
    """The smaller half is cut, and later contexts that are too small are not added; functions stay exact."""
    calls(tmp_path / "t.xray", 100_000, 200)
    report(tmp_path / "t.xray", tmp_path / "page.html", max_memory=1000)
    page, rows = Page(tmp_path / "page.html"), top(tmp_path / "t.xray", n=0, tree="both").rows
    assert page.head["all_contexts"] > 70_000
    for k in (0, 1):
        assert sum(page.stacks(k).values()) == pytest.approx(page.head["totals"][k], rel=1e-4)  # times are rounded
        assert page.head["cut"][k] > 0
    figures = {name: costs for (name, *_), costs in page.rows().items()}
    assert figures == {row.name: (row.self, row.inclusive) for row in rows}
    arcs = page.arcs()
    for row in rows:
        largest = sorted((call.cost for call in row.callers), reverse=True)[:15]
        mine = sorted((cost for (_, callee), cost in arcs.items() if callee == row.name), reverse=True)
        assert mine[: len(largest)] == largest


def test_memory_does_not_follow_contexts_and_arcs(tmp_path: Path) -> None:
    peaks = []
    for n in (100_000, 300_000):
        calls(tmp_path / "t.xray", n, 700)
        peaks.append(peak("report", tmp_path / "t.xray", "-o", tmp_path / "p.html", "-q", "--max-memory", "4M"))
    assert peaks[1] < peaks[0] + (24 << 20)  # including calls in time order, up to 250,000


def test_about_does_not_miss_what_the_time_order_shows(tmp_path: Path) -> None:
    """ "Calls, summed up without their times" are drawn in order of time; inputs with other clocks are not."""
    log = report(POOL, tmp_path / "x.html")
    assert "call-times" not in log.not_representable
    shown = Page(tmp_path / "x.html").head["logged"]["not_shown"]
    assert not [line for line in shown if "without their times" in line]
    convert(POOL, tmp_path / "x.trace.json")
    both = report([POOL, tmp_path / "x.trace.json"], tmp_path / "y.html")
    assert both.not_representable["call-times"] > 0
