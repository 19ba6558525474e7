"""The drawn boxes of a page add up to the profile: five kinds of profiles, each at three zooms."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from fastprof import convert, report
from tests.differential.test_report_browser import COVERED, drive, value
from tests.support.paths import CORPUS

POOL = CORPUS / "xray/good/fdr5-pool-clang19.xray"
HEAP = CORPUS / "pprof/good/go-heap.pb.gz"  # with labels
GRAPH = CORPUS / "callgrind/good/xdebug.callgrind"
# Under load a picture may come later than the size of the window that is asked for next, so each step paints first.
PAINTED = "(() => { fastprof.flame.paint();"
COVERS = COVERED.replace("(() => {", PAINTED, 1)
# by row: the sum of the costs of its boxes, old and new
SUMS = """(() => {
    const {flame, state} = fastprof, {old, new: now} = state.event, sums = [];
    flame.paint();
    for (const d of flame.drawn) {
        sums[d.row] ??= [0, 0];
        sums[d.row][0] += flame.boxes.cost(d, old);
        if (now >= 0 && now !== old) sums[d.row][1] += flame.boxes.cost(d, now);
    }
    return sums;
})()"""
# to the largest box of the row below the box that fills the view
ZOOM = """(() => {
    const {flame} = fastprof, whole = flame.holder.clientWidth - 2;
    flame.paint();
    const row = Math.max(...flame.drawn.filter(d => d.w > whole).map(d => d.row));
    const below = flame.drawn.filter(d => d.row === row + 1).sort((a, b) => b.w - a.w);
    if (below.length) flame.click(below[0]);
})()"""


def sums_of(profile: Path, folder: Path, event: str, **options: Any) -> list[int]:
    """By row of the flame graph, the root first: the cost of the stacks that are at least as deep."""
    convert(profile, folder / "rows.folded", value=event, **options)
    by_depth: Counter[int] = Counter()
    for line in (folder / "rows.folded").read_text().splitlines():
        stack, _, cost = line.rpartition(" ")
        by_depth[stack.count(";") + 1] += int(cost)
    return [*accumulate(by_depth[depth] for depth in range(max(by_depth), -1, -1))][::-1]


def many(path: Path) -> None:
    """100,000 stacks with 475,000 contexts."""
    rng = random.Random(1)
    lines = [
        f"main;a{i % 50};b{i % 1999};c{i % 31};{'d;' if i % 4 else ''}e{i % 7};f{i % 13} {rng.randrange(1, 1000)}\n"
        for i in range(100_000)
    ]
    path.write_text("".join(lines))


def drawn(page: Path) -> tuple[list[list[int]], list[tuple[list[float], list[float], int]]]:
    """The sums of the rows at first, and the shares that they cover at three zooms."""
    steps = value(SUMS), value(COVERS), value(ZOOM), value(COVERS), value(ZOOM), value(ZOOM), value(COVERS)
    sums, *covered = drive(page, *steps, height=3000)  # rows beyond the window are not drawn
    return sums, [covered[i] for i in (0, 2, 5)]


def check(covered: list[tuple[list[float], list[float], int]]) -> None:
    for boxes, real, _ in covered:
        assert boxes == pytest.approx(real, abs=0.005)
        assert real[0] == 1


@pytest.mark.parametrize(
    ("profile", "event", "options"),
    [(POOL, "time", {"time_unit": "ticks"}), (HEAP, "inuse_space", {}), (GRAPH, "Time_(10ns)", {})],
)
def test_what_is_drawn_of_a_profile(profile: Path, event: str, options: dict[str, Any], tmp_path: Path) -> None:
    report(profile, tmp_path / "page.html", value=event, **options)
    sums, covered = drawn(tmp_path / "page.html")
    check(covered)
    rows = [row[0] for row in sums]
    expected = sums_of(profile, tmp_path, event, **options)
    # below a cycle, the estimate depends on the unit: functions here, names in folded stacks
    assert (rows[0] if profile == GRAPH else rows) == (expected[0] if profile == GRAPH else expected)
    assert len(rows) == len(expected)


def test_what_is_drawn_of_a_difference(tmp_path: Path) -> None:
    """Boxes are as wide as the larger of both costs, so widths do not add up, but costs do."""
    convert(HEAP, tmp_path / "old.folded", value="alloc_space", function="^runtime")
    convert(HEAP, tmp_path / "new.folded", value="inuse_space")
    report([tmp_path / "old.folded", tmp_path / "new.folded"], tmp_path / "page.html", pair="exact")
    sums, covered = drawn(tmp_path / "page.html")
    check(covered)
    for side, name in enumerate(("old", "new")):
        expected = sums_of(tmp_path / f"{name}.folded", tmp_path, "samples")
        assert [row[side] for row in sums][: len(expected)] == expected


def test_what_is_drawn_of_half_a_million_contexts(tmp_path: Path) -> None:
    """All of them fit into the page, and only the visible ones are drawn."""
    many(tmp_path / "a.folded")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 2_000_000
    sums, *covered, n, boxes = drive(
        tmp_path / "page.html",
        *(value(SUMS), value(COVERS), value(ZOOM), value(ZOOM), value(COVERS), value(ZOOM), value(COVERS)),
        *(value("fastprof.view.tree.n"), value("fastprof.flame.drawn.length")),
    )
    check([covered[i] for i in (0, 3, 5)])
    assert [row[0] for row in sums] == sums_of(tmp_path / "a.folded", tmp_path, "samples")
    assert n == 1 + 1 + 50 + 99_950 + 100_000 + 75_000 + 100_000 + 100_000
    assert boxes < 10_000
