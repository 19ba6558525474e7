"""Counters, events and states in the page's time order, in a real browser: texts, table, keys, folding, phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastprof import report
from tests.differential.test_report_browser import drive, tab, text_of, value
from tests.support.paths import CORPUS
from tests.unit.test_report_tracks import call, event, written
from tests.unit.test_report_tracks import value as number

LANES = value("fastprof.flame.boxes.lanes.all.map(lane => [lane.kind, lane.row, lane.high])")
TABLE = value(
    "[...document.querySelectorAll('#tracks-table .rows .row')]"
    ".map(row => [...row.children].map(cell => cell.innerText))"
)


def at(kind: str, share: float) -> dict[str, str]:
    """The mouse, in the first lane of a kind."""
    place = f"[c.left + {share} * flame.holder.clientWidth, c.top + flame.y(lane.row, 0) + 9]"
    lane = f"fastprof.flame.boxes.lanes.all.find(lane => lane.kind === '{kind}')"
    return {"move": f"((flame, lane) => (c => {place})(flame.canvas.getBoundingClientRect()))(fastprof.flame, {lane})"}


def trace(tmp_path: Path) -> Path:
    events = [call(0, 100), call(0, 100, tid=9)]
    events += [number(ts, n) for ts, n in ((10, 1), (20, 5), (60, 2.5))]
    events += [event(ts, name) for ts, name in ((30, "gc"), (70, "flush"), (80, "gc"))]
    written(tmp_path, events)
    return tmp_path / "page.html"


def test_counters_and_events_have_texts_a_table_and_keys(tmp_path: Path) -> None:
    drag = """(c => [c.left + 0.25 * c.width, c.top + 150, c.left + 0.75 * c.width, c.top + 150])
        (document.getElementById('canvas').getBoundingClientRect())"""
    pointed = value("fastprof.flame.boxes.lanes.pointed?.time")
    hidden = value("document.getElementById('tracks').hidden")
    focus = value("document.querySelector('#tracks-table .rows').focus()")
    steps: list[dict[str, Any]] = [hidden, tab("time"), LANES, TABLE]
    steps += [at("counter", 0.4), text_of("#hover"), at("marks", 0.3), text_of("#hover")]
    steps += [{"keys": ["g", "n", "n"]}, pointed, text_of("#hover"), {"keys": ["p"]}, pointed]
    steps += [{"drag": drag}, TABLE, {"keys": ["Escape"]}, focus]
    steps += [{"keys": ["Home", "ArrowDown", "ArrowDown"]}, pointed, {"keys": ["g", "c"]}, LANES, tab("heavy"), hidden]
    seen = iter(drive(trace(tmp_path), *steps))
    assert next(seen) is True
    next(seen)
    assert next(seen) == [["counter", 1, 2], ["marks", 4, 1]]
    assert next(seen) == [
        ["3", "1", "5", "heap process 7, thread 8"],
        ["2", "", "", "gc event"],
        ["1", "", "", "flush event"],
    ]
    assert next(seen).startswith("5 · at ")
    assert next(seen) == "event · at 30.00 µsgc"
    assert next(seen) == 70e3 and next(seen) == "event · at 70.00 µsflush" and next(seen) == 30e3
    assert next(seen) == [  # from 25 to 75, the value at 25 included
        ["2", "2.5", "5", "heap process 7, thread 8"],
        ["1", "", "", "gc event"],
        ["1", "", "", "flush event"],
    ]
    next(seen)
    assert next(seen) == 70e3  # by the table: the counter, gc, flush
    assert next(seen) == []  # all are collapsed
    next(seen)
    assert next(seen) is True


def test_states_beside_samples(tmp_path: Path) -> None:
    """Also on a phone in the dark: bands, legend, and the table in its tab."""
    report(CORPUS / "firefox/good/gecko-24.json", tmp_path / "page.html")
    dark = value("document.querySelector('#theme').click()")
    wide = "document.documentElement.scrollWidth <= innerWidth"
    for width in (390, 1366):
        steps = [dark, tab("time"), LANES, text_of("#legend"), value(wide), tab("table"), TABLE, value(wide)]
        seen = drive(tmp_path / "page.html", *steps, width=width, height=768)
        lanes, legend, fits, rows, fits_too = (one for one in seen if one is not None)
        assert {kind for kind, *_ in lanes} == {"states", "marks"} and "other states" in legend and fits and fits_too
        assert width > 760 or {tuple(row[3].split()) for row in rows} == {("Mark", "event"), ("Mark", "state")}
