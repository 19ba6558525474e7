"""Results as a notebook shows them: tables with escaped names, and the page of a report in a frame."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import fastprof
from fastprof.core import html as shown
from tests.support.paths import CORPUS, REPO

HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m</td>"
CGI = CORPUS / "callgrind/good/cfi.callgrind"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Its name, functions, files, objects, events and header contain markup."""
    path = tmp_path / "<img src=x onerror=alert(1)>.callgrind"
    path.write_text(
        f"creator: {HOSTILE}\ncmd: {HOSTILE}\ndesc: {HOSTILE}: {HOSTILE}\nevents: <b>Ir</b>\n\n"
        f"ob={HOSTILE}\nfl={HOSTILE}\nfn={HOSTILE}\n1 7\n"
    )
    return path


def tags(text: str) -> set[str]:
    return set(re.findall(r"</?(\w+)", text))


TABLE = {"table", "caption", "thead", "tbody", "tr", "th", "td"}


def test_no_name_is_markup(hostile: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.callgrind"
    other.write_text(hostile.read_text().replace("1 7", "1 9"))
    results = fastprof.top(hostile), fastprof.diff(hostile, other), fastprof.info(hostile)
    for result in (*results, fastprof.convert(hostile, tmp_path / "out.folded")):
        text = result._repr_html_()
        assert tags(text) <= TABLE and "\x1b" not in text, text
        assert "&lt;b&gt;Ir" in text or "out.folded" not in text


def test_tables_have_the_rows() -> None:
    found = fastprof.top(CGI)
    text = found._repr_html_()
    assert re.findall(r"<th [^>]*>([^<]*)", text) == [
        "self",
        "self %",
        "inclusive",
        "incl. %",
        "calls",
        "function",
        "file",
    ]
    assert [row[-2] for row in cells(text)] == [row.name for row in found.rows]
    changed = fastprof.diff(CGI, CORPUS / "callgrind/good/tab.callgrind", union=True)._repr_html_()
    assert re.findall(r"<th [^>]*>([^<]*)", changed)[:4] == ["old", "new", "difference", "inclusive old"]
    facts = dict(cells(fastprof.info(CGI)._repr_html_()))
    assert (facts["format"], facts["totals: Ir"], facts["totals: Dr"]) == ("callgrind", "14", "6")


def test_facts_are_in_one_line_and_equal_profiles_have_no_empty_table() -> None:
    text = fastprof.info(CGI)._repr_html_()
    assert "text-align:right" not in text and dict(cells(text))["records"]
    same = fastprof.diff(CGI, CGI)._repr_html_()
    assert "<th" not in same.replace("<thead", "") and "no function differs" in same


def cells(text: str) -> list[list[str]]:
    return [
        [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(<td.*?)</tr>", text)
    ]


def test_a_long_table_and_long_names_are_cut() -> None:
    text = shown.table(["a"], [["x" * 1000]] * 1001)
    assert text.count("<tr>") == 1001 and "1 more" in text and len(text) < 400_000


def test_a_page_is_shown_in_a_frame(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    page = fastprof.report(hostile, out)
    assert page.rows["functions"] == 1 and isinstance(page, fastprof.Log)
    text = page._repr_html_()
    frame = re.fullmatch(r'<iframe sandbox="allow-scripts" style="[^"<>]*" srcdoc="([^"<>]*)"></iframe>', text)
    assert frame and html.unescape(frame[1]) == out.read_text()
    out.unlink()
    assert tags(page._repr_html_()) <= TABLE  # the summary of the output
    drawn = fastprof.report(CGI, tmp_path / "x.svg")._repr_html_()
    assert drawn.startswith("<iframe ") and "&lt;svg" in drawn


def test_a_table_is_a_data_frame_of_pandas() -> None:
    with fastprof.open(CGI) as profile:
        assert list(profile.table("graph")) == list(profile.rows("graph")) != []


def test_the_notebook_of_the_documentation() -> None:
    """It runs, and its pictures are those of docs/python.md: `python -m docs.make_notebook`."""
    for package in ("matplotlib", "ipykernel", "nbclient"):
        pytest.importorskip(package, reason=f"pip install {package}")
    from docs.make_notebook import executed, pictures

    notebook = executed()
    shown = [
        output["data"].get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "data" in output
    ]
    assert ["<iframe" in text or "<table" in text for text in shown] == [True, True, True, False, False, True]
    made = pictures(notebook)
    page, folder = (REPO / "docs/python.md").read_text(), REPO / "docs/pictures"
    assert [*made] == ["notebook-1.png", "notebook-2.svg"] and all(f"](pictures/{name})" in page for name in made)
    assert (folder / "notebook-2.svg").read_bytes() == made["notebook-2.svg"]
    # fonts differ between machines
    plot = (folder / "notebook-1.png").read_bytes()
    assert plot[:8] == made["notebook-1.png"][:8] and len(plot) > 10_000


def test_info_is_labelled_as_in_a_terminal() -> None:
    rows = dict(cells(fastprof.info(CORPUS / "pprof/good/go-cpulabels.pb.gz")._repr_html_()))
    assert (rows["totals: cpu"], rows["period"], rows["duration"]) == ("1.74 s", "10.0 ms of cpu", "4.11 s")
    assert "units: cpu" not in rows and "duration ns" not in rows
