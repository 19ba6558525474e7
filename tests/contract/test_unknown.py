"""What is unknown has one form in every machine-readable output, whatever the format spells on disk: no name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from tests.support.paths import CORPUS

PLACES = {"file", "object", "path"}
INPUTS = {
    "callgrind": b"positions: line\nevents: Ir\nob=???\nfl=???\nfn=f\n0 5\ncfn=g\ncalls=1 0\n0 3\nfl=a.c\nfn=g\n1 3\n",
    "empty names": b"events: Ir\nob=\nfl=\nfn=f\n0 5\ncfn=g\ncalls=1 0\n0 3\nfl=a.c\nfn=g\n1 3\n",
    "folded": b"f;g 5\nf 2\n",
    "gperftools": (CORPUS / "gperftools/good/small.prof").read_bytes(),
    "xray": (CORPUS / "xray/good/basic1-swapped.xray").read_bytes(),
}
COMMANDS = [
    "top -n 0 --by function --tree both",
    "top -n 0 --by line",
    "top -n 0 --by file",
    "top -n 0 --by object",
    "top -n 0 --by label:input,function --label-input",
    "top -n 0 --matrix input",
    "diff input -n 0 --by function",
    "diff input -n 0 --by line",
    "diff input -n 0 --by file",
    "diff input -n 0 --by object",
    "annotate",
]


def places(value: Any) -> Iterator[Any]:
    """The values of all keys for a file or an object, at any depth."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key in PLACES:
            yield inner
        yield from places(inner)
    for inner in value if isinstance(value, list) else ():
        yield from places(inner)


@pytest.fixture(params=INPUTS)
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.c").write_text("int f;\n")
    (tmp_path / "input").write_bytes(INPUTS[request.param])
    return Path("input")


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_files_and_objects_have_no_name(file: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb, *options = command.split()
    if file.read_bytes() == INPUTS["xray"] and "line" in options:
        return  # a timeline has none
    found = list(places(json.loads(printed([verb, str(file), *options, "--json"], capsys))))
    assert "???" not in found
    if verb != "annotate":  # which prints no CSV
        rows = [*csv.DictReader(io.StringIO(printed([verb, str(file), *options, "--csv"], capsys)))]
        assert rows and "???" not in {row[place] for row in rows for place in PLACES & row.keys()}
        if verb == "diff" and options[-1] in PLACES:  # such a row has the name of its file or object
            assert "???" not in {row["name"] for row in rows}


def test_in_tables_they_have_no_value(file: Path) -> None:
    with fastprof.open(file) as profile:
        rows = [row for table in profile.tables for row in profile.rows(table)]
        found = [row[place] for row in rows for place in PLACES & row.keys()]
    assert "???" not in found and "" not in found
    assert None in found or not found  # a timeline's tables have no files


def test_in_python_they_are_empty(file: Path) -> None:
    found = fastprof.top(file, n=0, tree="both")
    rows = [*found.rows, *(call for row in found.rows for call in (*row.callers, *row.callees))]
    assert "" in {row.file for row in rows} and "???" not in {name for row in rows for name in (row.file, row.object)}


def test_in_sql_they_are_null(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    (tmp_path / "in").write_bytes(INPUTS["callgrind"])
    words = ["sql", "--json", str(tmp_path / "in"), "select distinct file, object from graph order by file"]
    found = json.loads(printed(words, capfd))["rows"]
    assert found == [{"file": "a.c", "object": None}, {"file": None, "object": None}]
