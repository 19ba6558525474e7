"""Source lines in the page of `fastprof report`, in a real browser."""

from __future__ import annotations

from pathlib import Path

from fastprof import report
from tests.differential.test_report_browser import drive, value
from tests.unit.test_report_source import PROFILE

LINES = "[...document.querySelectorAll('.lines tr')].map(r => [...r.children].map(c => c.textContent))"


def test_a_function_shows_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.callgrind").write_text(PROFILE)
    (tmp_path / "zip").mkdir()
    code = ["", "", "deflate() {", "", "<b>&amp;</b>", "", "", "", "flush() {}", ""]
    (tmp_path / "zip/deflate.c").write_text("\n".join(code))
    report(tmp_path / "a.callgrind", tmp_path / "page.html", source=[tmp_path])
    _, mine, _, all_, _, missing, about = drive(
        tmp_path / "page.html",
        value("fastprof.table.choose(0), 0"),
        value(LINES),
        value("document.querySelector('#details .whole').click()"),
        value(LINES),
        value("fastprof.table.choose(1), 0"),
        value("document.querySelector('#details').textContent"),
        value("document.querySelector('#about').textContent"),
    )
    assert mine[:1] == [["line", "self", "calls", "deflate.c"]]
    assert [row[0] for row in mine[1:]] == [*"12345678"]
    assert [row for row in mine if row[1]][1:] == [["3", "5", "", "deflate() {"], ["5", "700", "90", "<b>&amp;</b>"]]
    assert all_[-1] == ["9", "60", "", "flush() {}"]
    assert "The source file was not found." in missing
    assert "files not found: zip/tree.c" in about
