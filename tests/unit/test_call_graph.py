"""The call graph as a picture shows the figures of `top --tree`."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.core.messages import counted
from tests.support.paths import CORPUS

POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"
PROGRAM = CORPUS / "xray" / "pool-clang19"
SVG = "{http://www.w3.org/2000/svg}"


def titles(path: Path) -> tuple[list[str], list[str]]:
    """Titles of functions, and of arcs."""
    root = ElementTree.fromstring(path.read_text())
    assert not [e for e in root.iter() if e.tag in (f"{SVG}script", f"{SVG}image") or "href" in e.attrib]
    boxes = [e.findtext(f"{SVG}title") or "" for e in root.iter(f"{SVG}g")]
    return boxes, [
        e.findtext(f"{SVG}title") or "" for e in root.iter(f"{SVG}path") if e.find(f"{SVG}title") is not None
    ]


def test_long_names_lose_their_arguments_first(tmp_path: Path) -> None:
    fastprof.report(POOL, tmp_path / "graph.svg", symbols=[PROGRAM])
    root = ElementTree.parse(tmp_path / "graph.svg").getroot()
    assert "Sorter<int>::quick(...)" in [text.text for text in root.iter(f"{SVG}text")]


def test_figures_are_those_of_top(tmp_path: Path) -> None:
    picture = tmp_path / "pool.graph.svg"
    fastprof.report(POOL, picture, symbols=[PROGRAM], time_unit="ticks")  # in nanoseconds each thread would be rounded
    boxes, arcs = titles(picture)
    found = fastprof.top(POOL, symbols=[PROGRAM], n=0, tree="callees", time_unit="ticks")
    large = [row for row in found.rows if (row.inclusive or 0) >= 0.005 * found.total]
    assert {*boxes} == {
        f"{row.name}: self {row.self:,}, inclusive {row.inclusive:,} ticks; {counted(row.calls or 0, 'call')}"
        for row in large
    }
    names = {row.name for row in large}
    expected = {
        (f"{row.name} → {call.name}", f"{call.cost:,}", f"{call.calls:,}")
        for row in large
        for call in row.callees
        if call.cost >= 0.005 * found.total and call.name in names
    }
    shown = {re.fullmatch(r"(.*): ([\d,]+) ticks \(.*\), ([\d,]+) calls?", arc).groups() for arc in arcs}  # type: ignore[union-attr]
    assert shown == expected and len(shown) > 5


def test_callees_stand_below_and_recursion_is_drawn(tmp_path: Path) -> None:
    profile = tmp_path / "x.folded"
    profile.write_text('main;even;odd;even 5\nmain;self;self 3\nmain;<b>&"x" 2\n')
    fastprof.report(profile, tmp_path / "graph.svg")
    text = (tmp_path / "graph.svg").read_text()
    boxes, arcs = titles(tmp_path / "graph.svg")
    assert '<b>&"x": self 2, inclusive 2 count' in boxes
    assert {arc.split(":")[0] for arc in arcs} >= {"even → odd", "main → even"}
    places = dict(re.findall(r'y="([\d.]+)" text-anchor="middle">(\w+)<', text)[::-1])
    at = {name: float(y) for y, name in re.findall(r'y="([\d.]+)" text-anchor="middle">(\w+)<', text)}
    assert at["main"] < at["even"] < at["odd"] and places
    fastprof.report(profile, tmp_path / "again.graph.svg")
    assert (tmp_path / "again.graph.svg").read_text().replace("again.", "") == text


def test_large_profiles_show_the_most_expensive(tmp_path: Path) -> None:
    profile = tmp_path / "x.folded"
    profile.write_text("".join(f"main;g{i % 50};f{i} {10_000 + i}\n" for i in range(150)))
    fastprof.report(profile, tmp_path / "graph.svg")
    boxes, _ = titles(tmp_path / "graph.svg")
    assert len(boxes) == 60 and any(box.startswith("main: self 0") for box in boxes)
    assert "the 60 most expensive of 201 functions" in (tmp_path / "graph.svg").read_text()


def test_what_has_no_call_graph_is_refused(tmp_path: Path) -> None:
    flat = CORPUS / "cachegrind" / "good" / "newer.cachegrind"
    with pytest.raises(UsageError, match="only self costs; a call graph needs calls"):
        fastprof.report(flat, tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()


def test_calls_of_a_function_to_itself_are_a_loop(tmp_path: Path) -> None:
    """With their cost: of several calls in one stack only the outermost counts."""
    (tmp_path / "x.folded").write_text("main;f;f;f;g 5\nmain;f;g;f 3\nmain;f 2\n")
    fastprof.report(tmp_path / "x.folded", tmp_path / "graph.svg")
    _, arcs = titles(tmp_path / "graph.svg")
    assert {"f → f: 5 count (50.0 %), 1 call", "f → g: 8 count (80.0 %), 1 call"} <= {*arcs} or {
        "f → f: 5 count (50.0 %)",
        "f → g: 8 count (80.0 %)",
        "main → f: 10 count (100.0 %)",
    } == {*arcs}


def test_a_difference(tmp_path: Path) -> None:
    for name, cost in (("old", 10), ("new", 40)):
        (tmp_path / name).write_text(f"main;f;g {cost}\nmain;h 30\nmain;{name} 20\n")
    fastprof.report([tmp_path / "old", tmp_path / "new"], tmp_path / "graph.svg", from_="folded")
    boxes, arcs = titles(tmp_path / "graph.svg")
    text = (tmp_path / "graph.svg").read_text()
    assert {box.partition(";")[0] for box in boxes} == {
        "main: self 0 → 0, inclusive 60 → 90 count",
        "f: self 0 → 0, inclusive 10 → 40 count",
        "g: self 10 → 40, inclusive 10 → 40 count",
        "h: self 30 → 30, inclusive 30 → 30 count",
        "old: self 20 → 0, inclusive 20 → 0 count",
        "new: self 0 → 20, inclusive 0 → 20 count",
    }
    assert "f → g: 10 → 40 count" in arcs and "main → old: 20 → 0 count" in arcs
    assert "old and new inclusive cost" in text and text.count("#dfe2e7") == 1  # h is unchanged
