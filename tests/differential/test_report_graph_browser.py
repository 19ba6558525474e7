"""The call graph, single calls, and callers and callees by label, in a page in a real browser: the figures of `top`."""

from __future__ import annotations

import re
from pathlib import Path

from fastprof import convert, info, report, top
from tests.differential.test_report_browser import choose, click, drive, tab, text_of, value
from tests.support.paths import CORPUS

POOL, PROGRAM = CORPUS / "xray/good/fdr5-pool-clang19.xray", CORPUS / "xray/pool-clang19"
CPU = CORPUS / "pprof/good/go-cpulabels.pb.gz"
GRAPH = tab("graph")
NODES = "fastprof.graph.nodes.map(n => [fastprof.view.name(n.fn), n.self, n.all])"
ARCS = (
    "fastprof.graph.arcs.map(({from, to, costs, calls}) => "
    "[...[from, to].map(i => fastprof.view.name(fastprof.graph.nodes[i].fn)), costs, calls])"
)
OVERLAP = """(() => {
    const {nodes} = fastprof.graph, isOver = (a, b) => a.y === b.y && Math.abs(a.x - b.x) < (a.width + b.width) / 2;
    return nodes.flatMap((a, i) => nodes.slice(i + 1).filter(b => isOver(a, b))).length;
})()"""
COVERED = """(() => {
    const all = which => [...document.querySelectorAll(`#callgraph ${which}`)].map(at => at.getBoundingClientRect());
    const labels = all('text.label'), boxes = all('.node rect'), apart = (a, b) => a <= b + 2;
    const isOver = (a, b) => !apart(a.right, b.left) && !apart(b.right, a.left) &&
        !apart(a.bottom, b.top) && !apart(b.bottom, a.top);
    const covered = labels.flatMap((a, i) => [...labels.slice(i + 1), ...boxes].filter(b => isOver(a, b)));
    return [labels.length, covered.length];
})()"""
CALLS = (
    "[...document.querySelectorAll('#details .calls')].map(t => "
    "[...t.querySelectorAll('tbody tr')].map(r => [...r.children].map(c => c.textContent)))"
)
TEXTS = "[...document.querySelectorAll('#callgraph .node text')]"


def test_the_call_graph_is_that_of_top(tmp_path: Path) -> None:
    """Also of a comparison, whose arcs have both costs."""
    report(CPU, tmp_path / "page.html", value="cpu")
    enlarge = click("#answer button")
    _, fewer, few_covered, size, nodes, arcs, overlapping, covered, drawn, address, hint, legend = drive(
        tmp_path / "page.html",
        GRAPH,
        value(NODES),
        value(COVERED),
        value(f"Math.min(...{TEXTS}.map(text => text.getBoundingClientRect().height))"),
        enlarge,
        value(NODES),
        value(ARCS),
        value(OVERLAP),
        value(COVERED),
        value("['.node', '.arc'].map(one => document.querySelectorAll(`#callgraph ${one}`).length)"),
        value("location.hash"),
        text_of("#answer"),
        value("document.querySelector('#flame').hidden"),
    )
    found = top(CPU, value="cpu", n=0, tree="callees")
    rows = {row.name: row for row in found.rows}
    assert 24 <= len(fewer) < 60 and fewer == nodes[: len(fewer)] and size >= 8
    assert len(nodes) == 60 and len(arcs) > 50 and overlapping == 0 and drawn == [60, len(arcs)]
    assert {name: (own[0], all_[0]) for name, own, all_ in nodes} == {
        name: (rows[name].self, rows[name].inclusive) for name, *_ in nodes
    }
    assert few_covered[0] > 15 and covered[0] > 25 and few_covered[1] == covered[1] == 0
    least = min(all_[0] for _, _, all_ in nodes)
    assert all((row.inclusive or 0) <= least for row in found.rows if row.name not in {name for name, *_ in nodes})
    expected = {(row.name, call.name): call.cost for row in found.rows for call in row.callees}
    shown = {(caller, callee): costs[0] for caller, callee, costs, _ in arcs}
    itself = {pair for pair in shown if pair[0] == pair[1]}  # top shows no cost within a recursion
    assert {pair: cost for pair, cost in shown.items() if pair not in itself} == {
        pair: expected[pair] for pair in shown if pair not in itself
    }
    assert ("main.(*tree).put", "main.(*tree).put") in itself and expected[next(iter(itself))] == 0
    assert (
        address == "#view=graph&nodes=all"
        and hint.startswith("The 60 most expensive functions below their callers")
        and legend is True
    )


def test_the_call_graph_of_a_difference_and_of_a_label(tmp_path: Path) -> None:
    convert(CPU, tmp_path / "sort.pb.gz", label=["kind=sort"])
    report([CPU, tmp_path / "sort.pb.gz"], tmp_path / "page.html", value="cpu")
    _, nodes, arcs, colours = drive(
        tmp_path / "page.html",
        GRAPH,
        click("#answer button"),
        value(NODES),
        value(ARCS),
        value("[...document.querySelectorAll('#callgraph .node rect')].map(r => r.getAttribute('fill').slice(0, 7))"),
    )
    old, new = (
        {row.name: row.inclusive for row in top(p, value="cpu", n=0).rows} for p in (CPU, tmp_path / "sort.pb.gz")
    )
    assert all(all_ == [old.get(name, 0), new.get(name, 0)] for name, _, all_ in nodes) and len(nodes) == 60
    assert ["main.job", "main.(*tree).put", 0] in [[a, b, costs[1]] for a, b, costs, _ in arcs]
    assert {*colours} == {"#dfe2e7", "hsl(213"}

    report(CPU, tmp_path / "page.html", value="cpu")
    _, _, _, nodes, arcs = drive(
        tmp_path / "page.html", GRAPH, choose("#key", "kind"), choose("#label", "sort"), value(NODES), value(ARCS)
    )
    of_sort = top(CPU, value="cpu", n=0, tree="callees", label=["kind=sort"])
    expected = {row.name: row.inclusive for row in of_sort.rows}
    assert {name: all_[0] for name, _, all_ in nodes}.items() <= expected.items()
    calls = {(row.name, call.name): call.cost for row in of_sort.rows for call in row.callees}
    assert all(calls[a, b] == costs[0] for a, b, costs, _ in arcs if a != b) and len(arcs) > 5


def test_callers_and_callees_follow_the_label(tmp_path: Path) -> None:
    report(CPU, tmp_path / "page.html", value="cpu")
    chosen = value(
        "(fastprof.table.choose([...fastprof.table.order].find(i => fastprof.view.name(i) === 'main.job')), 0)"
    )
    *_, all_, _, _, tree, says = drive(
        tmp_path / "page.html",
        chosen,
        value(CALLS),
        choose("#key", "kind"),
        choose("#label", "tree"),
        value(CALLS),
        text_of("#details"),
    )
    for shown, options in ((all_, {}), (tree, {"label": ["kind=tree"]})):
        rows = {row.name: row for row in top(CPU, value="cpu", n=0, tree="both", **options).rows}  # type: ignore[arg-type]
        for listed, calls in zip(shown, (rows["main.job"].callers, rows["main.job"].callees), strict=True):
            names = {call.name: call.cost for call in calls if call.cost}
            assert {row[-1] for row in listed} >= {*list(names)[:5]} and len(listed) <= max(15, len(names))
    assert all_ != tree and "In contexts of kind tree:" in says and "690 ms (100.0 %)" in says


def test_single_calls_are_those_of_top(tmp_path: Path) -> None:
    report(POOL, tmp_path / "page.html", symbols=[PROGRAM])
    *_, rows, titles, details, _, labels = drive(
        tmp_path / "page.html",
        tab("table"),
        choose("#figures", "single calls"),
        value(
            "fastprof.table.order.map(i => [fastprof.view.name(i), "
            "...['ended', 'min', 'median', 'p90', 'p99', 'max'].map(n => fastprof.data.column(`row ${n}`)[i])])"
        ),
        value("[...document.querySelectorAll('#table .head .cell')].map(c => c.textContent)"),
        value("(fastprof.table.choose(fastprof.table.order[0]), document.querySelector('#details').textContent)"),
        GRAPH,
        value("fastprof.graph.nodes.map(n => n.lines[0])"),
    )
    expected = {row.name: row.durations for row in top(POOL, symbols=[PROGRAM], n=0, stats=True).rows}
    assert {name: tuple(figures) for name, *figures in rows} == {
        name: tuple(durations or [0] * 6) for name, durations in expected.items()
    }
    assert [re.sub(r" (ns|µs|ms)", "", title) for title in titles] == [
        "ended ▾",
        "min",
        "median",
        "90 %",
        "99 %",
        "max",
        "Function",
    ]
    assert "Single calls" in details and "median" in details
    assert {"Sorter<…>::quick(…)", "insert(Tree*, unsigned int)"} <= {*labels}  # long names lose their arguments


def test_profiles_without_calls_have_neither(tmp_path: Path) -> None:
    report(CORPUS / "cachegrind/good/newer.cachegrind", tmp_path / "page.html")
    ((views, figures),) = drive(
        tmp_path / "page.html",
        value(
            "[[...document.querySelectorAll('#tabs button')].map(o => o.textContent), fastprof.data.has('row ended')]"
        ),
    )
    assert views == ["Treemap", "Flame", "Table", "Details"] and figures is False


def test_the_chart_of_massif_shows_all_snapshots(tmp_path: Path) -> None:
    """Heap, extra heap and stacks of `info`, one line for each snapshot."""
    path = CORPUS / "massif" / "good" / "inlined.massif"
    report(path, tmp_path / "page.html")
    label, lines, shown, hidden = drive(
        tmp_path / "page.html",
        value("document.querySelector('#series svg').getAttribute('aria-label')"),
        value("[...document.querySelectorAll('#series line title')].map(t => t.textContent)"),
        value("document.querySelectorAll('#series .shown').length"),
        value("document.querySelector('#series').hidden"),
    )
    snapshots = info(path).facts["snapshots"]
    assert [line.split(" at ")[0] for line in lines] == [f"snapshot {one['number']}" for one in snapshots]
    peak = max(snapshots, key=lambda one: one["total_bytes"])
    assert label.endswith(f"in snapshot {peak['number']}") and shown == 1 and hidden is False


def test_texts_of_the_graph_can_be_read_beside_thick_arcs(tmp_path: Path) -> None:
    """On a laptop: the most expensive calls make thick arcs through the clusters of one object."""
    calls = [(f"library_number_{i}", f"library_number_{i + 1}") for i in range(14)]
    lines = ["events: Ir", "ob=a.so", "fl=a.c"]
    for i, (caller, callee) in enumerate(calls):
        lines += [f"fn={caller}", f"1 {i + 1}", f"cfn={callee}", "calls=9 1", f"1 {5000 - 90 * i}"]
        lines += [f"cfn=beside_{i}", "calls=9 1", "1 90", f"fn=beside_{i}", "1 90"]
    (tmp_path / "a.callgrind").write_text("\n".join([*lines, f"fn={calls[-1][1]}", "1 3700", ""]))
    report(tmp_path / "a.callgrind", tmp_path / "page.html")
    crossed = """(() => {
        const svg = document.querySelector('#callgraph svg'), scale = svg.getScreenCTM();
        const texts = [...svg.querySelectorAll('text.label, text.title')].map(t => t.getBBox());
        const points = [...svg.querySelectorAll('.arc')].filter(arc => arc.getAttribute('stroke-width') > 2)
            .flatMap(arc => Array.from({length: 200}, (_, i) => arc.getPointAtLength(arc.getTotalLength() * i / 199)));
        const inside = b => points.some(({x, y}) => x > b.x && x < b.x + b.width &&
            y > b.y + 2 && y < b.y + b.height - 2);
        const sizes = [...svg.querySelectorAll('text')].map(t => parseFloat(t.getAttribute('font-size')) * scale.a);
        return [svg.querySelectorAll('text.title').length, texts.length, points.length,
            texts.filter(inside).length, Math.min(...sizes)];
    })()"""
    _, (titles, texts, points, inside, size) = drive(
        tmp_path / "page.html", GRAPH, value(crossed), width=1366, height=768
    )
    assert titles and texts > titles + 5 and points > 1000 and inside == 0 and size > 8.9
