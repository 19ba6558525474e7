"""Time order in the page of `fastprof report`, in a real browser: ranges, collapsed threads, keys."""

from __future__ import annotations

import json
from pathlib import Path

import fastprof
from fastprof import report
from tests.differential.test_report_browser import ROWS, choose, drive, tab, text_of, value
from tests.support.paths import CORPUS
from tests.unit.test_report_page import timeline
from tests.unit.test_report_samples import SAMPLES, text

# name, self, inclusive and calls of a range
FIGURES = """(({table, state, view}) => table.order.map(i => [view.name(i),
    ...state.ranged ? ["row self", "row inclusive", "calls"].map(name => state.ranged[name][i]) : []]))(fastprof)"""


def test_dragging_in_order_of_time_chooses_a_range(tmp_path: Path) -> None:
    """Self, inclusive and calls within the range: from 20 to 40 of 100 of two threads, which collapse."""
    (tmp_path / "t.xray").write_bytes(timeline())
    report(tmp_path / "t.xray", tmp_path / "page.html")
    drag = """(c => [c.left + 0.2 * c.width, c.top + 90, c.left + 0.4 * c.width, c.top + 90])
        (document.getElementById('canvas').getBoundingClientRect())"""
    title = "(c => [c.left + 20, c.top + 22 + 9])(document.getElementById('canvas').getBoundingClientRect())"
    zoom = value("[fastprof.flame.from, fastprof.flame.to]")
    hashed = value("new Promise(done => setTimeout(done, 400)).then(() => decodeURIComponent(location.hash))")
    n_rows = value("fastprof.flame.boxes.rows")
    _, rows, hint, zoomed, address, collapsed, both, of_both, _, back, expanded, all_rows, _, counted = drive(
        tmp_path / "page.html",
        tab("time"),
        {"drag": drag},
        value(FIGURES),
        text_of("#answer"),
        zoom,
        hashed,
        {"click": title},
        n_rows,
        {"keys": ["g", "c"]},
        n_rows,
        hashed,
        value("history.back()"),
        value("new Promise(done => setTimeout(done, 100)).then(() => fastprof.flame.boxes.rows)"),
        {"click": title},
        n_rows,
        {"keys": ["Escape"]},
        value(ROWS),
        {"drag": drag},
        choose("#value", "calls"),
        value("[fastprof.flame.range, [...document.querySelectorAll('.rows .row')].length]"),
    )
    figures = {name: [round(cell) for cell in cells] for name, *cells in rows}
    one, two, three = (f"#{n}" for n in (1, 2, 3))
    assert figures == {one: [9, 20, 1], two: [11, 11, 2]}
    assert hint.startswith("20 ns to 40 ns: 20 ns with 3 calls, 20 ns in all threads shown")
    assert zoomed == [0, 1] and "range=0." in address
    assert (collapsed, both, back, expanded) == (3, 2, 3, 5)
    assert of_both.endswith("&folded=process+1,+thread+7&folded=process+1,+thread+8")
    assert counted == [None, 3]  # the sums of a range are times
    assert sorted(row[-1].split()[0] for row in all_rows) == [one, two, three]


def test_calls_of_other_categories_are_faint_and_do_not_count(tmp_path: Path) -> None:
    calls = [("main", "a", 0, 100), ("f", "b", 10, 40), ("g", "a", 20, 10), ("h", "b", 60, 20), ("f", "b", 65, 5)]
    events = [
        {"ph": "X", "pid": 7, "tid": 8, "name": name, "cat": category, "ts": ts, "dur": duration}
        for name, category, ts, duration in calls
    ]
    (tmp_path / "t.json").write_text(json.dumps(events))
    report(tmp_path / "t.json", tmp_path / "page.html", from_="trace-event")
    drag = """(c => [c.left, c.top + 90, c.left + 0.7 * c.width, c.top + 90])
        (document.getElementById('canvas').getBoundingClientRect())"""
    rows_of_functions = value(FIGURES)
    faint = value("fastprof.flame.drawn.filter(box => fastprof.flame.boxes.isFaint(box)).length")
    _, all_faint, _, _, rows, hint, n_faint, _, all_rows = drive(
        tmp_path / "page.html",
        tab("time"),
        faint,
        {"drag": drag},
        choose("#key", "category"),
        choose("#label", "b"),
        rows_of_functions,
        text_of("#answer"),
        faint,
        choose("#label", "all 2"),
        rows_of_functions,
    )
    figures = {name: [*(round(cell / 1000) for cell in cells[:2]), cells[2]] for name, *cells in rows}
    # of 70 us: f 30 and 5, h 5, in main all of them
    assert figures == {
        "f": [35, 35, 2],
        "h": [5, 10, 1],
        "main": [0, 40, 0],
    }
    assert "with 3 calls, 40.0 µs in all threads shown, category b." in hint
    assert (all_faint, n_faint) == (0, 2)
    assert {row[0] for row in all_rows} == {"main", "f", "g", "h"}


def test_keys_zoom_and_move_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "t.xray").write_bytes(timeline())
    report(tmp_path / "t.xray", tmp_path / "page.html")
    seen = value("[fastprof.flame.from, fastprof.flame.to]")
    _, inside, right, out = drive(
        tmp_path / "page.html",
        tab("time"),
        {"keys": ["g", "w", "w"]},
        seen,
        {"keys": ["d"]},
        seen,
        {"keys": ["s", "s", "s"]},
        seen,
    )
    assert (inside, right, out) == ([0.375, 0.625], [0.4375, 0.6875], [0, 1])


def test_all_threads_are_visible_at_first(tmp_path: Path) -> None:
    """Rows of calls get as low as that takes; hovering and titles follow, and `e` enlarges them."""
    events = [
        {"ph": "X", "pid": 1, "tid": tid, "name": f"f{depth}", "ts": depth, "dur": 100 - 2 * depth}
        for tid in range(10)
        for depth in range(8)
    ]
    (tmp_path / "t.json").write_text(json.dumps(events))
    report(tmp_path / "t.json", tmp_path / "page.html", from_="trace-event")
    drawn = value(
        "[new Set(fastprof.flame.drawn.map(d => d.row)).size, Math.max(...fastprof.flame.drawn.map(d => d.h))]"
    )
    point = """(({canvas, drawn}) => (c => d => [c.left + d.x + d.w / 2, c.top + d.y + d.h / 2])
        (canvas.getBoundingClientRect())(drawn.findLast(d => d.fn === drawn.at(-1).fn)))(fastprof.flame)"""
    title = """(flame => (c => [c.left + 20, c.top + flame.y(flame.boxes.titles[9][0], 0) + 9])
        (flame.canvas.getBoundingClientRect()))(fastprof.flame)"""
    _, fitted, hover, folded, full, address = drive(
        tmp_path / "page.html",
        tab("time"),
        drawn,
        {"move": point},
        text_of("#hover"),
        {"click": title},
        value("fastprof.flame.boxes.rows"),
        {"keys": ["g", "e"]},
        drawn,
        value("new Promise(done => setTimeout(done, 400)).then(() => location.hash)"),
        height=760,
    )
    assert fitted[0] == 80 and fitted[1] < 10
    assert "f7" in hover and folded == 10 * 9 - 8
    assert full[0] < 80 and full[1] == 19 and "rows=full" in address


def test_a_range_of_samples_has_their_costs(tmp_path: Path) -> None:
    """The table of a range equals `top --time-range`, and functions are drawn from sample to sample."""
    (tmp_path / "in.perf").write_text(text(SAMPLES))
    report(tmp_path / "in.perf", tmp_path / "page.html")
    figures = """(({table, state, view}) => table.order.map(i => [view.name(i), state.ranged["row self"][i],
        state.ranged["row inclusive"][i]]))(fastprof)"""
    boxes = """(b => [...b.fn].map((fn, i) => [fastprof.view.name(fn), b.begin[i] / 1e6, b.duration[i] / 1e6])
        .filter(([name]) => name === "a"))(fastprof.flame.boxes)"""
    _, drawn, _, rows, hint = drive(
        tmp_path / "page.html",
        tab("time"),
        value(boxes),
        value("fastprof.flame.on.range([165 / 630, 405 / 630])"),
        value(figures),
        text_of("#answer"),
    )
    # of two threads, each with four samples of `a`, 20 ms apart, then four of `b`
    assert drawn == [["a", begin + 160 * k, 80] for begin in (0, 10) for k in range(4)]
    top = fastprof.top(tmp_path / "in.perf", time_range="165ms:405ms", n=0)
    assert {name: (own, all_) for name, own, all_ in rows} == {r.name: (r.self, r.inclusive) for r in top.rows}
    assert "with 24 samples, 72 in all threads shown" in hint


def test_the_last_sample_is_visible(tmp_path: Path) -> None:
    """It has no duration, as the page ends with it."""
    report(CORPUS / "perf-script/good/real-default-sched-own.perf", tmp_path / "page.html")
    find = "fastprof.flame.drawn.filter(d => !d.width).map(d => [d.w, d.x + d.w <= fastprof.flame.canvas.clientWidth])"
    assert drive(tmp_path / "page.html", tab("time"), value(find))[-1] == [[1, True]]


def test_low_rows_of_the_selected_function_keep_their_colour(tmp_path: Path) -> None:
    """Frames of low rows, one next to the other if it is recursive, would cover them all."""
    (tmp_path / "in.perf").write_text(text([(7, 1000 + 10 * i, ";".join(["f"] * 60)) for i in range(9)]))
    report(tmp_path / "in.perf", tmp_path / "page.html")
    paint = """(() => {
        const {flame} = fastprof, {pen} = flame, heights = [], tints = [], {strokeRect, fillRect} = pen;
        pen.strokeRect = (x, y, w, h) => heights.push(h);
        pen.fillRect = (...box) => { if (pen.globalAlpha < 0.5) tints.push(box[3]); fillRect.apply(pen, box); };
        flame.paint();
        Object.assign(pen, {strokeRect, fillRect});
        return [flame.low, heights.length, tints.length];
    })()"""
    low, frames, tints = drive(tmp_path / "page.html", tab("time"), value(paint), height=600)[-1]
    assert low < 12 and frames == 0 and tints >= 50
