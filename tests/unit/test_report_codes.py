"""Codes of report entries: scripts rely on them, so each is spelled in one way and means one thing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.core.report import Counts, Report
from fastprof.core.words import speak_of_flags
from fastprof.plan import known_options
from tests.support.paths import CORPUS, REPO

KINDS = ("repairs", "losses", "not_representable")
SOURCES = sorted((REPO / "fastprof").rglob("*.py"))


def kind_of(node: ast.expr) -> str | None:
    """Of `report.repairs`, or of a variable that is called so."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name if name in KINDS else None


def added(tree: ast.Module) -> Iterator[tuple[str, ast.expr, ast.expr, int]]:
    """(kind, code, text, line) of every `.add(code, text, n)`, and of the rows of a loop that does nothing else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and (call := loop_body(node)) is not None:
            assert isinstance(node.iter, ast.Tuple) and isinstance(call.func, ast.Attribute)
            for row in node.iter.elts:
                assert isinstance(row, ast.Tuple)
                *counter, code, text, _ = row.elts
                kind = kind_of(counter[0] if counter else call.func.value)
                assert kind, f"line {row.lineno}: counted as nothing"
                yield kind, code, text, row.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add":
            kind = kind_of(node.func.value)
            if kind and not (isinstance(node.args[0], ast.Name) and node.args[0].id == "code"):
                yield kind, node.args[0], node.args[1], node.lineno


def loop_body(loop: ast.For) -> ast.Call | None:
    """`COUNTER.add(code, text, n)`, if that is what is done with each row."""
    (*_, last) = loop.body
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "add":
        return None
    names = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
    return call if names == ["code", "text", "n"] else None


def shown(node: ast.expr) -> str:
    """A text; what is put into it, one of a few words, is `*`."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "*" for v in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "*"


ENTRIES = [
    (f"{path.relative_to(REPO)}:{line}", kind, shown(code), shown(text))
    for path in SOURCES
    for kind, code, text, line in added(ast.parse(path.read_text()))
    if path.name != "report.py"
]


def test_all_are_found() -> None:
    """As many calls as there are, and nothing is counted without a code."""
    assert len(ENTRIES) > 60
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                assert kind_of(node.target.value) is None, f"{path}:{node.lineno}: counted without a code"


@pytest.mark.parametrize(("place", "kind", "code", "text"), ENTRIES)
def test_a_code_is_words_joined_by_dashes(place: str, kind: str, code: str, text: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-([a-z0-9]+|[*]))*", code), place


def test_a_code_belongs_to_one_kind() -> None:
    kinds: dict[str, set[str]] = {}
    for _, kind, code, _ in ENTRIES:
        kinds.setdefault(code, set()).add(kind)
    assert {code: its for code, its in kinds.items() if len(its) > 1} == {}


def test_a_text_has_one_code() -> None:
    """Texts are what is counted by."""
    codes: dict[tuple[str, str], set[str]] = {}
    for _, kind, code, text in ENTRIES:
        if text != "*":
            codes.setdefault((kind, text), set()).add(code)
    assert {text: its for text, its in codes.items() if len(its) > 1} == {}


def test_entries_for_json() -> None:
    counts, others = Counts(), Counts()
    counts.add("odd-lines", "odd lines", 2)
    counts.add("no-lines", "no lines", 0)
    others.add("odd-lines", "odd lines", 3)
    others.add("cut-lines", "cut lines")
    counts.take(others)
    assert counts.entries() == [
        {"code": "cut-lines", "text": "cut lines", "count": 1},
        {"code": "odd-lines", "text": "odd lines", "count": 5},
    ]
    assert [*Report().as_dict()] == ["rows", "repairs", "losses", "left_out", "not_representable", "warnings", "facts"]


def test_the_command_says_them(tmp_path: Path) -> None:
    source = CORPUS / "callgrind" / "good" / "contexts.callgrind"
    command = [
        sys.executable,
        "-m",
        "fastprof",
        "convert",
        "--json",
        str(source),
        "-o",
        str(tmp_path / "out.cachegrind"),
    ]
    report = json.loads(subprocess.run(command, cwd=REPO, check=True, capture_output=True).stderr)
    assert {entry["code"] for entry in report["not_representable"]} == {"caller-contexts", "calls-and-jumps", "objects"}
    for name in ("repairs", "losses", "not_representable"):
        assert all([*entry] == ["code", "text", "count"] for entry in report[name])


def test_losses_are_worded_when_they_are_told(tmp_path: Path) -> None:
    """What is said of options is said as whoever asks knows them, not as it was when a loss was counted."""
    assert known_options()  # declares their words
    counts, others, report = Counts(), Counts(), Report()
    others.add("x", "calls (--args writes them)", 2)
    counts.take(others)
    report.warn("see --args")
    assert dict(counts) == {"calls (args=True writes them)": 2} and report.warnings == ["see args=True"]
    before = speak_of_flags(True)
    try:
        assert counts.said() == ["2 calls (--args writes them)"] and report.warnings == ["see --args"]
        assert counts["calls (--args writes them)"] == 2 and counts["others"] == 0
        with pytest.raises(UsageError) as error:
            fastprof.convert(CORPUS / "trace-event/good/devtools.json", tmp_path / "x.prof")
        assert "--samples reads" in str(error.value)
    finally:
        speak_of_flags(before)
    assert "samples=True reads" in str(error.value)
