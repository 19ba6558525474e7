"""fastprof formats NAME: everything about one format, from its registration and its table of counts."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest

from fastprof import formats
from fastprof.cli import main
from tests.support.paths import REPO

NAMES = [f.name for f in formats.formats()]


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_described(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    f = formats.get(name)
    assert main(["formats", name, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert main(["formats", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name}: {f.title}") and max(map(len, text.splitlines()[1:])) <= 80
    assert (REPO / data["docs"]).is_file() and data["docs"] in text
    assert {one["name"] for one in data["options"]} == {o.key for o in (*f.reads, *f.selects, *f.writes)}
    for one in data["options"]:
        assert (f"-O {one['name'].partition('.')[2]}" if "." in one["name"] else one["flag"]) in text
        assert one["help"] and one["for"]
    table = {} if name in ("parquet", "arrow") else import_module(f"{f.package}.reported").REPORTED
    told = {
        (kind, one["code"]) for kind in ("repairs", "losses", "not_representable", "warnings") for one in data[kind]
    }
    assert told == {(entry.kind, code) for code, entry in table.items()}
    assert all(f"\n  {code}" in text for code in table)
    assert "{-" not in text and "{}" not in text


def test_all_formats_have_the_same_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "--json"]) == 0
    all_ = json.loads(capsys.readouterr().out)["formats"]
    assert [one["name"] for one in all_] == NAMES
    assert main(["formats", "pprof", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("schema") == "fastprof/format/1" and found in all_


def test_options_in_words_are_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "trace-event"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "call arguments (--args writes them)" in text and "nested deeper than DEPTH" in text


def test_an_unknown_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "KCachegrind"]) == 2
    assert "unknown format 'KCachegrind' (did you mean callgrind?)" in capsys.readouterr().err


def test_the_readme_has_the_same_views(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    shown = dict(re.findall(r"^(\S+) +([a-z]+(?:, [a-z]+)?) +(?:yes|-) ", capsys.readouterr().out, re.MULTILINE))
    row = re.compile(r"^\| (.+?) \| ((?:any|timeline|stacks|graph)[a-z, ]*) \|", re.MULTILINE)
    rows = row.findall((REPO / "README.md").read_text())
    listed = {name: view for names, view in rows for name in re.findall(r"`([a-z-]+)`", names) if name in shown}
    assert listed == shown
