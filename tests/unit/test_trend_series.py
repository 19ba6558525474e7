"""The table `series` in SQL, in notebooks and from Python: the values of all functions at all points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from tests.support.trends import graph, written

pytest.importorskip("duckdb", reason="pip install duckdb")

OPTIONS = {"over": "point", "label_path": "{point}.{host}.folded"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = written(tmp_path_factory.mktemp("series") / "runs", 12, {"f4": (8, 1.5)}, hosts=2)
    (folder / "003.host1.folded").unlink()
    return str(folder)


def asked(inputs: Any, query: str, **options: Any) -> list[tuple[Any, ...]]:
    with fastprof.sql(inputs, query, **options) as answer:
        return [*answer.rows()]


def test_rows_are_those_of_the_trend(runs: str) -> None:
    """In SQL it has all rows, with the values of findings."""
    query = "select name, list(value order by place), list(inclusive order by place) from series group by 1 order by 1"
    found = fastprof.trend([runs], rows=1000, **OPTIONS)  # type: ignore[arg-type]
    expected = sorted((row.name, row.values, row.inclusive) for row in found.rows)
    assert asked(runs, query, **OPTIONS) == expected
    assert len(expected) == 34
    main_ = next(row for row in expected if row[0] == "main")
    assert main_[1] == [0.0] * 12
    assert all(0.9 < value < 1.1 for value in main_[2] or [])


def test_options(runs: str, tmp_path: Path) -> None:
    """--by, --per and --order are those of trend; one of them without the table is an error, not ignored."""
    query = "select label, count(value), count(*) from series group by 1 order by 1"
    assert asked(runs, query, by="label:host", per="1", **OPTIONS) == [("host0", 12, 12), ("host1", 11, 12)]
    (tmp_path / "list").write_text("\n".join(f"{i:03d}" for i in range(12)))  # newest first
    points = asked(
        runs, "select distinct place, point from series order by place", order=str(tmp_path / "list"), **OPTIONS
    )
    assert points == [(i, f"{11 - i:03d}") for i in range(12)]
    for other in ("select count(*) from samples", "with series as (select 1) from series", "from generate_series(3)"):
        with pytest.raises(fastprof.UsageError, match="over= is for the table series, which the query does not read"):
            asked(runs, other, **OPTIONS)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("with series as (select 7 as a) select a from series", [(7,)]),
        ("with series as (select * from series) select count(*) from series", [(34 * 23,)]),
        ("with a as (from series), b as (select count(*) as n from A) select n from b", [(34 * 23,)]),
        ("select max(generate_series) from generate_series(1, 3)", [(3,)]),
        ("select count(*) from (select distinct name from SERIES)", [(34,)]),
        ("select count(distinct s.name) from series s join samples t on t.function = s.name", [(30,)]),
        ("select count(distinct profile) from profiles, series", [(23,)]),
        ("summarize select value from series", None),
    ],
)
def test_queries(runs: str, query: str, answer: list[tuple[int]] | None) -> None:
    """By default each input is a point.  A name of the query's own is not the table."""
    found = asked(runs, query)
    assert found == answer if answer else found[0][0] == "value"


def test_errors(runs: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for query, error in [
        ("select nam from series", 'Candidate bindings: "name"'),
        ("from series join nothing using (name)", "(tables: series)"),
        ("from series order by place", "no input has a label commit"),
    ]:
        assert main(["sql", runs, query, "--over", "commit" if "label" in error else "order"]) == 2
        assert error in capfd.readouterr().err
    (tmp_path / "a.folded").write_text("main;f 3\n")
    (tmp_path / "b.folded").write_text("nothing\n")
    assert main(["sql", str(tmp_path), "select name, value from series"]) == 1
    capfd.readouterr()
    assert main(["sql", str(tmp_path), "--csv", "select name, value from series", "--keep-going"]) == 3
    assert capfd.readouterr().out == "name,value\nf,1.0\nmain,0.0\n"
    both = "select count(*) from series, samples"
    with fastprof.sql(str(tmp_path), both, keep_going=True) as answer:  # each input is skipped by two readers, once
        assert ([tuple(row) for row in answer.first()], dict(answer.log.losses)) == ([(2,)], {"skipped-inputs": 1})


def test_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches, the first without a missing value; only columns that the query names are built."""
    monkeypatch.setattr("fastprof.verbs.trend.table.CAPACITY", 8)
    for i in range(6):
        graph(tmp_path / f"{i}.callgrind", {f"g{k}": 10 + k for k in range(5)} | ({"new": 9} if i > 3 else {}))
    query = "select name, sum(value)::int as all from series group by 1 order by 1"
    assert asked(str(tmp_path), query, per="1") == [*((f"g{k}", 60 + 6 * k) for k in range(5)), ("new", 18)]
    assert asked(str(tmp_path), "select count(*) from series") == [(36,)]


def test_notebook_and_text(runs: str) -> None:
    """A trend prints as its table, and is a page in a notebook."""
    found = fastprof.trend([runs], **OPTIONS)  # type: ignore[arg-type]
    assert str(found).splitlines()[0].startswith("23 profiles at 12 points over point, 000 to 011: 1 finding")
    assert "f4" in str(found)
    shown = found._repr_html_()
    assert shown.startswith("<iframe")
    assert "f4" in shown
