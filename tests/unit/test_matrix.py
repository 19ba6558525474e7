"""`top --matrix`: functions by values of a label, outliers first."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from statistics import median

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import UsageError
from fastprof.core.model import Model
from fastprof.verbs.top.matrix import Matrix, Row, matrix_of

PATTERN = "{host}.folded"


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dumps"
    folder.mkdir()
    for host, f, g in (("a", 10, 30), ("b", 20, 60), ("c", 5, 15), ("d<&", 60, 20), ("idle", 0, 0)):
        (folder / f"{host}.folded").write_text(f"main;f<int> {f}\nmain;g {g}\n")
    return folder


def found(**options: object) -> Matrix:
    result = fastprof.top("dumps", matrix="host", label_path=PATTERN, **options)  # type: ignore[arg-type]
    assert not result.rows and result.matrix
    return result.matrix


def test_the_outlier_is_first(dumps: Path) -> None:
    one = found()
    assert [(c.name, c.total, round(c.difference, 3)) for c in one.columns] == [
        ("d<&", 80, 0.5),
        ("a", 40, 0),
        ("b", 80, 0),
        ("c", 20, 0),
    ]
    assert [(r.name, r.median, r.outlier, r.share, r.difference, r.costs) for r in one.rows] == [
        ("f<int>", 0.25, "d<&", 0.75, 0.5, (60, 10, 20, 5)),
        ("g", 0.75, "d<&", 0.25, -0.5, (20, 30, 60, 15)),
    ]
    assert [row.name for row in found(focus="g").rows] == ["g"]
    assert [row.name for row in found(ignore="g", n=1).rows] == ["f<int>"]
    assert not found(threshold=0.6).rows
    assert found(n=1).n_rows == 2


def test_any_costs_agree_with_a_plain_computation() -> None:
    choose = random.Random(3)
    for _ in range(60):
        all_hosts = [f"h{i}" for i in range(choose.randrange(1, 8))]
        model, costs = Model(), {}
        functions = [model.function(f"f{i}") for i in range(6)]
        for function in functions:
            for host in all_hosts:
                costs[function, host] = choose.choice((0, 0, 0, 7, choose.randrange(-20, 100)))
        cells = [(host, function, cost) for (function, host), cost in costs.items()]
        one = matrix_of("host", model, iter(cells), lambda name: True, 0, 0)
        totals = {host: sum(costs[function, host] for function in functions) for host in all_hosts}
        hosts = [host for host in all_hosts if totals[host]]
        moved = dict.fromkeys(hosts, 0.0)
        for function in functions:
            shares = {host: costs[function, host] / totals[host] for host in hosts}
            middle = median(shares.values()) if hosts else 0
            for host in hosts:
                moved[host] += abs(shares[host] - middle) / 2
            rows = [row for row in one.rows if row.name == f"f{functions.index(function)}"]
            if not rows:
                assert not any(shares.values())
                continue
            (row,) = rows
            assert row.median == pytest.approx(middle)
            assert abs(row.difference) == pytest.approx(max(abs(share - middle) for share in shares.values()))
            assert row.share == pytest.approx(shares[row.outlier])
            assert [shares[c.name] for c in one.columns] == pytest.approx(one.shares(row))
        assert {c.name: c.difference for c in one.columns} == pytest.approx(moved)
        assert {c.name: c.total for c in one.columns} == {host: totals[host] for host in hosts}


def test_only_rows_that_are_shown_have_columns(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr("fastprof.verbs.top.matrix._row", lambda *found: made.append(found) or Row(*found[0], *[0] * 5))  # type: ignore[arg-type,func-returns-value]
    assert found(n=1).n_rows == 2 and len(made) == 1


def test_printed(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["top", "dumps", "--label-path", PATTERN, "--matrix", "host"]
    assert main([*words, "--demangle", "full"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 inputs: 2 functions by 4 values of host"
    assert lines[3].split() == ["d<&", "80", "50.0"]
    assert lines[9].split() == ["25.0", "+50.0", "d<&", "75.0", "25.0", "25.0", "25.0", "f<int>"]
    assert main([*words, "--csv"]) == 0
    head, first, _ = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["name", "file", "object", "median", "outlier", "share", "difference", "d<&", "a", "b", "c"]
    assert first == ["f<int>", "", "", "0.25", "d<&", "0.75", "0.5", "60", "10", "20", "5"]
    assert main([*words, "-o", "x.json"]) == 0
    written = json.loads(Path("x.json").read_text())["matrix"]
    assert written["rows"][0]["shares"] == [0.75, 0.25, 0.25, 0.25] and written["columns"][0]["name"] == "d<&"
    assert main([*words, "--markdown"]) == 0
    assert "| a | 40 | 0.0 |" in capsys.readouterr().out


def test_the_heat_map(dumps: Path) -> None:
    words = ["top", "dumps", "--label-path", PATTERN, "--matrix", "host", "-n", "1", "--demangle", "full"]
    assert main([*words, "-o", "x.html"]) == 0
    page = Path("x.html").read_text()
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n")
    assert ">f&lt;int&gt;</th><td>25.0</td>" in page and "d&lt;&amp;" in page
    assert '<td style="background:rgb(220 50 30/80%)" title="d&lt;&amp;: 60, +50.0">75.0</td>' in page
    assert "... 1 more functions" in page and "<script" not in page and "<h1>5 inputs: functions by host</h1>" in page
    result = fastprof.top("dumps", matrix="host", label_path=PATTERN)
    assert "<iframe sandbox" in result._repr_html_()


def test_inputs_and_inputs_without_the_label(dumps: Path) -> None:
    by_input = fastprof.top("dumps", matrix="input").matrix
    assert fastprof.top("dumps", matrix="label:input").matrix == by_input
    assert by_input and by_input.columns[0].name == "dumps/d<&.folded"
    without = fastprof.top("dumps", matrix="zone").matrix
    assert without and [(column.name, column.total) for column in without.columns] == [("(none)", 220)]
    (dumps / "idle.folded").write_text("")
    nothing = fastprof.top("dumps/idle.folded", matrix="zone", from_="folded").matrix
    assert nothing == Matrix("zone", [], [], 0)


def test_what_does_not_apply(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in (["--sort", "calls"], ["--by", "line"], ["--tree", "both"], ["--stats"], ["--cumulative"]):
        assert main(["top", "dumps", "--matrix", "host", *flag]) == 2
        assert f"{flag[0]} does not apply to --matrix" in capsys.readouterr().err
    for key in ("", "function", "a,b"):
        with pytest.raises(UsageError, match="is not the key of one label"):
            fastprof.top("dumps", matrix=key)
    assert main(["top", "dumps", "-o", "x.html"]) == 2
    assert "only of --matrix" in capsys.readouterr().err
    assert not Path("x.html").exists()
    for words in (["--matrix", "host", "-o", "x.xray"], ["-o", "x.pb.gz"]):
        assert main(["top", "dumps", *words]) == 2
        assert f"{words[-1]}: top writes tables (.csv, .json, .md, .txt); `" in capsys.readouterr().err
        assert not Path(words[-1]).exists()
