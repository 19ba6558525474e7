"""Labels in the page of `fastprof report`, in a real browser: figures are those of `fastprof top --label`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastprof import report, top
from tests.differential.test_report_browser import AT, choose, click, drive, text_of, value
from tests.support.paths import CORPUS
from tests.unit.test_report_labels import labelled

FIGURES = (
    "fastprof.table.order.map(i => [fastprof.view.name(i), ...[0, 2].map(k => fastprof.table.columns[k].value(i))])"
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
    steps = [choose("#key", key)]
    for label in labels:
        steps += [choose("#label", label), value(FIGURES), value("fastprof.view.tree.total.map(total => total[0])")]
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
    assert [row[:4] for row in of_both] == [["40", "100.0", "40", "100.0"], ["0", "0.0", "40", "100.0"]]
    assert address == "#by=kind&label=tenant%3Da&label=kind%3Dy"
    assert all_kinds == [["40", "53.3", "y"], ["30", "40.0", "x"], ["5", "6.7", "(none)"]]
    assert chips == "tenant: a \u2715"
    assert back == of_both
    assert [row[0] for row in none] == ["5", "0"]


def test_a_page_without_labels_has_no_chooser(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main;work 30\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    hidden = drive(tmp_path / "page.html", value("['labels', 'split'].map(id => document.getElementById(id).hidden)"))
    assert hidden == [[True, True]]
