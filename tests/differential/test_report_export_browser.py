"""What a page exports, read back: pictures, tables and stacks."""

from __future__ import annotations

import base64
import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from fastprof import convert, report, top
from tests.differential.test_report_browser import FOLDED, click_box, drive, tab, value
from tests.support.paths import CORPUS

CPU = CORPUS / "pprof/good/go-cpulabels.pb.gz"
POOL = CORPUS / "xray/good/fdr5-pool-clang19.xray"
SVG = "{http://www.w3.org/2000/svg}"
PNG = """fastprof.exports.png().then(blob => blob.arrayBuffer())
    .then(bytes => btoa(Array.from(new Uint8Array(bytes), byte => String.fromCharCode(byte)).join('')))"""
# the name and the text of the file that a button saves
SAVED = """(async kind => {{
    const saved = {{}}, make = URL.createObjectURL, click = HTMLAnchorElement.prototype.click;
    URL.createObjectURL = blob => {{ saved.blob = blob; return make(blob); }};
    HTMLAnchorElement.prototype.click = function () {{ saved.name = this.download; }};
    document.querySelector(`#exports [data-kind="${{kind}}"]`).click();
    for (let i = 0; i < 50 && !saved.name; i++) await new Promise(done => setTimeout(done, 20));
    [URL.createObjectURL, HTMLAnchorElement.prototype.click] = [make, click];
    return [saved.name, await saved.blob.text()];
}})({!r})"""


def export(kind: str) -> dict[str, Any]:
    return value(f"fastprof.exports[{kind!r}]()")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "a.folded").write_text(FOLDED + 'x<T>&"y";#z 3\n')
    report(tmp_path / "a.folded", tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.parametrize("view", ["heavy", "inverted", "sandwich", "graph"])
def test_the_picture_as_svg(view: str, page: Path) -> None:
    """Well-formed, with the names that are seen."""
    _, text = drive(page, tab(view), export("svg"))
    root = ET.fromstring(text)
    words = " ".join(e.text or "" for e in root.iter(f"{SVG}text"))
    assert "work" in words and len([*root.iter(f"{SVG}rect")]) > 3
    if view == "heavy":
        boxes = [e for e in root.iter(f"{SVG}rect") if e.get("height") == "18"]
        assert max(float(box.get("width", 0)) for box in boxes) <= float(root.get("width", 0))


@pytest.mark.parametrize("view", ["heavy", "graph"])
def test_the_picture_as_png(view: str, page: Path) -> None:
    _, text = drive(page, tab(view), value(PNG))
    data = base64.b64decode(text)
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and width > 200 and height > 50 and len(data) > 2000


def test_all_rows_of_a_deep_graph(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text(";".join(f"f{i}" for i in range(100)) + " 5\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    text, drawn = drive(tmp_path / "page.html", export("svg"), value("fastprof.flame.drawn.length"), height=500)
    assert "f99" in text and drawn < 40


def test_the_table_as_csv_and_markdown(tmp_path: Path) -> None:
    """Exact figures of `top`, of the rows that the search left."""
    report(CPU, tmp_path / "page.html", prune=0)
    table, search, (name, found), markdown = _kept(
        drive(
            tmp_path / "page.html",
            export("csv"),
            value("(s => { s.value = '^sort'; s.dispatchEvent(new Event('input')); return 1; })(search)"),
            value(SAVED.format("csv")),
            export("md"),
        )
    )
    head, *rows = csv.reader(io.StringIO(table))
    assert head == ["self (cpu nanoseconds)", "inclusive (cpu nanoseconds)", "function", "file", "line", "object"]
    expected = {(row.name, row.self, row.inclusive) for row in top(CPU, n=0).rows}
    assert {(row[2], int(row[0]), int(row[1])) for row in rows} == expected
    assert name == "go-cpulabels.pb.gz.csv" and search == 1
    matching = [*csv.reader(io.StringIO(found))][1:]
    assert len(matching) > 3 and all("sort" in row[2] + row[3] for row in matching)
    lines = markdown.splitlines()
    assert len(lines) == len(matching) + 2 and lines[1].startswith("| ---: | ---: | --- |")


def _kept(values: list[Any]) -> list[Any]:
    return [one for one in values if one is not None]


def _read(text: str, folder: Path, name: str) -> dict[str, int]:
    (folder / name).write_text(text)
    convert(folder / name, folder / "again.folded")
    return dict(_line(line) for line in (folder / "again.folded").read_text().splitlines())


def _line(line: str) -> tuple[str, int]:
    stack, _, cost = line.rpartition(" ")
    return stack, int(cost)


def test_stacks_are_read_back(tmp_path: Path) -> None:
    """All of them, and those of a zoomed box."""
    (tmp_path / "a.folded").write_text(FOLDED)
    report(tmp_path / "a.folded", tmp_path / "page.html")
    folded, scope, part = _kept(
        drive(tmp_path / "page.html", export("folded"), export("speedscope.json"), click_box("leaf"), export("folded"))
    )
    expected = dict(map(_line, FOLDED.splitlines()))
    assert _read(folded, tmp_path, "x.folded") == _read(scope, tmp_path, "x.speedscope.json") == expected
    assert _read(part, tmp_path, "y.folded") == {stack: cost for stack, cost in expected.items() if "leaf" in stack}


def test_names_that_would_be_misread(tmp_path: Path) -> None:
    """They become those of `convert`."""
    frames = [{"name": name} for name in ("a;b", "c\nd ", "#x", "e 5", "<T>&")]
    profile = {"type": "sampled", "name": "x", "unit": "none", "startValue": 0, "endValue": 10,
               "samples": [[0, 1], [2], [3], [4]], "weights": [1, 2, 3, 4]}  # fmt: skip
    document = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}}
    (tmp_path / "a.speedscope.json").write_text(json.dumps(document | {"profiles": [profile]}))
    report(tmp_path / "a.speedscope.json", tmp_path / "page.html")
    text, picture = drive(tmp_path / "page.html", export("folded"), export("svg"))
    convert(tmp_path / "a.speedscope.json", tmp_path / "a.folded")
    assert sorted(text.splitlines()) == sorted((tmp_path / "a.folded").read_text().splitlines())
    assert "<T>&" in [e.text for e in ET.fromstring(picture).iter(f"{SVG}text")]


def test_stacks_of_a_profile_are_those_of_convert(tmp_path: Path) -> None:
    report(CPU, tmp_path / "page.html", prune=0, value="cpu")
    (text,) = drive(tmp_path / "page.html", export("folded"))
    convert(CPU, tmp_path / "b.folded", value="cpu")
    shown = {stack: cost // 1000 for stack, cost in _read(text, tmp_path, "x.folded").items()}  # convert: microseconds
    assert shown == dict(map(_line, (tmp_path / "b.folded").read_text().splitlines()))


def test_stacks_of_times(tmp_path: Path) -> None:
    """The self times of all calls; and of a comparison both sides."""
    report(POOL, tmp_path / "page.html", prune=0)
    _, folded, scope = drive(tmp_path / "page.html", tab("time"), export("folded"), export("speedscope.json"))
    total = top(POOL, n=0).total
    assert sum(cost for _, cost in map(_line, folded.splitlines())) == pytest.approx(total, rel=0.001)
    (profile,) = json.loads(scope)["profiles"]
    assert profile["unit"] == "nanoseconds" and profile["endValue"] == pytest.approx(total, rel=0.001)
    (tmp_path / "old.folded").write_text("main;a 5\n")
    (tmp_path / "new.folded").write_text("main;a 7\nmain;b 1\n")
    report([tmp_path / "old.folded", tmp_path / "new.folded"], tmp_path / "diff.html")
    both, table = drive(tmp_path / "diff.html", export("folded"), export("csv"))
    assert sorted(both.splitlines()) == ["main;a 5 7", "main;b 0 1"]
    assert table.splitlines()[0].startswith("old self (samples count),new self (samples count),old inclusive")
