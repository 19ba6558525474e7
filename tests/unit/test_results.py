"""Results: text as the terminal has it, Arrow streams, HTML with units and notes."""

from __future__ import annotations

import html
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest

import fastprof
from fastprof.cli import main
from tests.support.paths import CORPUS

LABELLED = str(CORPUS / "pprof/good/go-cpulabels.pb.gz")
TRACE = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
GRAPH, OTHER = (str(CORPUS / f"callgrind/good/{name}.callgrind") for name in ("cfi", "tab"))
QUERY = "select function, count(*) as n from samples group by 1 order by 2 desc, 1"


RESULTS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "top": (lambda: fastprof.top(LABELLED, n=4), ["top", LABELLED, "-n", "4"]),
    "tree": (lambda: fastprof.top(GRAPH, tree="both"), ["top", GRAPH, "--tree", "both"]),
    "stats": (lambda: fastprof.top(TRACE, stats=True), ["top", TRACE, "--stats"]),
    "thread": (
        lambda: fastprof.top(TRACE, by=("thread", "function")),
        ["top", TRACE, "--by", "thread,function"],
    ),
    "matrix": (lambda: fastprof.top(LABELLED, matrix="kind"), ["top", LABELLED, "--matrix", "kind"]),
    "diff": (lambda: fastprof.diff(GRAPH, OTHER, union=True), ["diff", GRAPH, OTHER, "--union"]),
    "no rows": (lambda: fastprof.diff(GRAPH, GRAPH), ["diff", GRAPH, GRAPH]),
    "annotate": (lambda: fastprof.annotate(GRAPH), ["annotate", GRAPH]),
    "sql": (lambda: fastprof.sql(LABELLED, QUERY), ["sql", LABELLED, QUERY]),
}
PRINTED = RESULTS | {"info": (lambda: fastprof.info(LABELLED), ["info", LABELLED])}


@pytest.mark.parametrize("name", PRINTED)
def test_a_result_is_printed_as_by_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    make, words = PRINTED[name]
    assert main([*words, "-q"]) == 0
    assert str(make()) == capfd.readouterr().out.rstrip("\n") != ""


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_an_arrow_stream(name: str) -> None:
    """polars takes it as it is, with the values of `columns`."""
    found = RESULTS[name][0]()
    frame = polars.DataFrame(found)
    if name == "sql":
        assert frame.rows() == [*found.rows()] != []
        return
    columns = found.columns()
    assert frame.columns == [*columns]
    for column, cells in columns.items():
        assert [*frame[column]] == cells, column


def test_columns_of_lines_and_addresses(tmp_path: Path) -> None:
    (tmp_path / "b.c").write_text("int\ng(void)\n{ return 9; }\n")
    found = fastprof.annotate(GRAPH, source=tmp_path)
    assert polars.DataFrame(found).filter(polars.col("Ir") > 0).select("line", "text", "Ir").rows() == [
        (3, "{ return 9; }", 9)
    ]
    assert "{ return 9; }" in found._repr_html_() and "14 Ir" in found._repr_html_()
    assert polars.DataFrame(fastprof.annotate(GRAPH)).schema["text"] == polars.Categorical


def test_large_and_missing_values() -> None:
    from fastprof.core.arrow_column import stream_of

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            table: dict[str, list[Any]] = {
                "a": [(1 << 64) - 1, None, 0],
                "b": [-(1 << 63), 1, None],
                "c": [None, 0.5, 1],
                "name": ["x", None, ""],
                "d": [None] * 3,
                "inclusive_share": [None] * 3,
            }
            return stream_of(table, {"a": "bytes"})

    frame = polars.DataFrame(Stream())
    assert frame.rows() == [
        ((1 << 64) - 1, -(1 << 63), None, "x", None, None),
        (None, 1, 0.5, None, None, None),
        (0, None, 1.0, "", None, None),
    ]
    assert frame.schema["inclusive_share"] == polars.Float64
    nothing = polars.DataFrame(fastprof.top(GRAPH, focus="nosuch")).schema
    assert nothing["self_share"] == nothing["inclusive_share"] == polars.Float64


def test_an_answer_keeps_the_rows_that_it_has_shown() -> None:
    query = "select stack_id from samples"
    with fastprof.sql(LABELLED, query) as answer:
        text, shown = str(answer), answer._repr_html_()
        assert str(answer) == text and text.endswith("\n...") and shown.count("<tr>") == 102
        assert len([*answer.rows()]) == 171 and [*answer.rows()] == []
        assert len(polars.DataFrame(answer)) == 171
    with fastprof.sql(LABELLED, query) as answer:
        assert next(answer.rows()) and len(polars.DataFrame(answer)) == 171
    with fastprof.sql(LABELLED, "create table t as select 1") as answer, pytest.raises(fastprof.UsageError):
        polars.DataFrame(answer)


def test_html_has_units_and_notes(tmp_path: Path) -> None:
    shown = html.unescape(fastprof.top(LABELLED, n=2)._repr_html_())
    assert ">self ms<" in shown and ">inclusive ms<" in shown
    other = fastprof.open(LABELLED).where(labels={"kind": "text"})
    changed = html.unescape(fastprof.diff(LABELLED, other)._repr_html_())
    assert ">old ms<" in changed and "<p>OLD" not in changed
    found = fastprof.top(TRACE)
    (note, *_) = found.log.repairs.lines()
    assert f"<p>{note}</p>" in html.unescape(found._repr_html_())


def test_results_are_values() -> None:
    found = fastprof.top(GRAPH)
    again = pickle.loads(pickle.dumps(found))
    assert again.rows == found.rows and again._replace(total=1).total == 1 and found._asdict()["total"] == 14
    assert found == found._replace() != found._replace(total=0) and repr(found).startswith("Top(by='function', value=")
    with pytest.raises(TypeError):
        found._replace(wrong=1)
