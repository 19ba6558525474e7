"""Labels in the page of `fastprof report`, in a real browser: figures are those of `fastprof top --label`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastprof import report, top
from tests.differential.test_report_browser import AT, choose, click, drive, tab, text_of, value
from tests.support.paths import CORPUS
from tests.support.xraylog import FdrLog
from tests.unit.test_report_labels import labelled

COLUMNS = "(name => fastprof.table.columns.find(column => column.title.startsWith(name)))"
FIGURES = (
    "fastprof.table.order.map(i => "
    f"[fastprof.view.name(i), ...['self', 'incl.'].map(name => {COLUMNS}(name).value(i))])"
)
ROWS = "[...document.querySelectorAll('#table .rows .row')].map(r => [...r.children].map(c => c.textContent))"
VALUES = "[...document.querySelectorAll('#values .rows .row')].map(r => [...r.children].map(c => c.textContent))"
CPU = CORPUS / "pprof/good/go-cpulabels.pb.gz"


def click_value(at: int) -> dict[str, Any]:
    return {"click": f"{AT}(document.querySelectorAll('#values .rows .row')[{at}].getBoundingClientRect())"}


@pytest.mark.parametrize(
    ("path", "key", "labels"),
    [
        (CPU, "kind", ["sort", "tree", "text"]),
        (CPU, "tenant", ["t0", "t1"]),
        (CORPUS / "pprof/good/go-heap.pb.gz", "bytes", ["18432 (18.0 KiB)", "8192 (8.00 KiB)"]),
    ],
)
def test_graph_and_table_of_a_value_are_what_top_says(path: Path, key: str, labels: list[str], tmp_path: Path) -> None:
    report(path, tmp_path / "page.html", prune=0)
    steps = [tab("table"), choose("#key", key)]
    for label in labels:
        totals = value("Array.from(fastprof.view.tree.total, total => total[0])")
        steps += [choose("#label", label), value(FIGURES), totals]
    k = "fastprof.state.event.old"
    found = drive(tmp_path / "page.html", value(k), *steps)
    column, found = found[0], [one for one in found[1:] if one is not None]
    for label, rows, totals in zip(labels, found[::2], found[1::2], strict=True):
        expected = top(path, n=0, label=[f"{key}={label.split()[0]}"], cycles=False)
        assert totals[column] == expected.total > 0
        assert sorted(map(tuple, rows)) == sorted(
            (row.name, row.self, row.inclusive) for row in expected.rows if row.self or row.inclusive
        )


def test_values_of_several_keys_combine_and_stand_in_the_address(tmp_path: Path) -> None:
    samples = [
        ("main;work", {"tenant": "a", "kind": "x"}, 10),
        ("main;work", {"tenant": "b", "kind": "x"}, 20),
        ("main;leaf", {"tenant": "a", "kind": "y"}, 40),
        ("main;leaf", {}, 5),
    ]
    report(labelled(tmp_path / "a.pb", samples), tmp_path / "page.html")  # type: ignore[arg-type]
    found = drive(
        tmp_path / "page.html",
        tab("table"),
        choose("#key", "tenant"),
        value(VALUES),
        click_value(0),  # a
        value(ROWS),
        choose("#key", "kind"),
        value(VALUES),
        choose("#label", "y"),
        value(ROWS),
        value("location.hash"),
        click("#chips button"),  # all tenants again
        value(VALUES),
        {"value": "history.back()"},
        {"value": "new Promise(done => setTimeout(done, 100))"},
        text_of("#chips"),
        value(ROWS),
        choose("#label", "all 2"),
        choose("#key", "tenant"),
        choose("#label", "(none)"),
        value(ROWS),
    )
    tenants, of_a, kinds, of_both, address, all_kinds, chips, back, none = (one for one in found if one is not None)
    assert tenants == [["50", "66.7", "a"], ["20", "26.7", "b"], ["5", "6.7", "(none)"]]
    assert [row[0] for row in of_a] == ["40", "10", "0"]
    assert kinds == [["40", "80.0", "y"], ["10", "20.0", "x"]]
    assert [[*row[:2], *row[3:5]] for row in of_both] == [["40", "100.0", "40", "100.0"], ["0", "0.0", "40", "100.0"]]
    assert address == "#view=table&by=kind&label=tenant%3Da&label=kind%3Dy"
    assert all_kinds == [["40", "53.3", "y"], ["30", "40.0", "x"], ["5", "6.7", "(none)"]]
    assert chips == "tenant: a \u2715kind: y \u2715"
    assert back == of_both
    assert [row[0] for row in none] == ["5", "0"]


def test_threads_and_processes_are_keys(tmp_path: Path) -> None:
    log = FdrLog(version=5)
    for tid, pid, length in ((11, 1, 30), (12, 1, 50), (21, 2, 70)):
        log.buffer(tid=tid, pid=pid).cpu(0, 1000).enter(1, 0).exit(1, length)
    (tmp_path / "t.xray").write_bytes(log.bytes())
    report(tmp_path / "t.xray", tmp_path / "page.html")
    expected = {row.name: row.self for row in top(tmp_path / "t.xray", by="thread").rows}
    keys, threads, processes, of_process, of_thread, selected = (
        one
        for one in drive(
            tmp_path / "page.html",
            value("[...document.querySelectorAll('#key option')].map(o => o.text)"),
            choose("#key", "thread"),
            value(VALUES),
            choose("#key", "process"),
            value(VALUES),
            choose("#label", "2"),
            value("fastprof.view.tree.total[fastprof.state.event.old][0]"),
            choose("#label", "all 2"),
            choose("#key", "thread"),
            click_value(0),
            value("fastprof.view.tree.total[fastprof.state.event.old][0]"),
            value("document.querySelector('#thread').selectedOptions[0].text"),
        )
        if one is not None
    )
    assert keys == ["none", "process", "thread"]
    assert {name: int(cost) for cost, _, name in threads} == expected
    assert {name: int(cost) for cost, _, name in processes} == {"1": 80, "2": 70}
    assert (of_process, of_thread, selected) == (70, 70, "process 2, thread 21")


def test_a_page_without_labels_has_no_chooser(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main;work 30\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    hidden = drive(tmp_path / "page.html", value("['labels', 'split'].map(id => document.getElementById(id).hidden)"))
    assert hidden == [[True, True]]


def test_categories_of_a_trace_are_those_of_top(tmp_path: Path) -> None:
    trace = CORPUS / "trace-event/good/kineto-cpu-stack.json.gz"
    report(trace, tmp_path / "page.html", prune=0)
    k = "fastprof.view.tree.total[fastprof.state.event.old][0]"
    *found, rest, address = drive(
        tmp_path / "page.html",
        tab("table"),
        choose("#key", "category"), value(VALUES), value(k),
        choose("#label", "cpu_op"), value(k), value(FIGURES),
        value("location.hash"),
    )  # fmt: skip
    values, whole, part, rows = (one for one in [*found, rest] if one is not None)
    expected = {row.object: row.self for row in top(trace, by="category", n=0).rows}
    assert {name for *_, name in values} == expected.keys()
    assert whole == sum(expected.values()) and part == expected["cpu_op"]
    of_functions = [row for row in top(trace, n=0, cycles=False).rows if row.object == "cpu_op" and row.self]
    assert sorted((name, own) for name, own, _ in rows if own) == sorted((row.name, row.self) for row in of_functions)
    assert "label=category%3Dcpu_op" in address
