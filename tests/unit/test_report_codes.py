"""Codes of report entries: scripts rely on them, so each is declared in its room's table, and has one meaning."""

from __future__ import annotations

import ast
import json
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core._c import ffi, lib
from fastprof.core.counted import COUNTED
from fastprof.core.errors import UsageError
from fastprof.core.log import Counts, Log
from fastprof.core.messages import ARGUMENTS, Message
from fastprof.core.reported import SHARED, Entry
from fastprof.plan import known_options
from tests.support.paths import CORPUS, REPO

SOURCES = sorted((REPO / "fastprof").rglob("*.py"))
TABLES = [path for path in SOURCES if path.name == "reported.py"]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(REPO).with_suffix("").parts)


def table_of(path: Path) -> dict[str, Entry]:
    table: dict[str, Entry] = import_module(module_of(path)).REPORTED
    return table


def constants(node: ast.AST) -> Iterator[str]:
    yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def keys(node: ast.AST) -> Iterator[str]:
    """The keys of dictionary literals."""
    for each in ast.walk(node):
        if isinstance(each, ast.Dict):
            yield from (text for key in each.keys if key is not None for text in constants(key))


def structs(table: Path) -> Iterator[str]:
    """What declares counts in the C core."""
    for node in ast.walk(tree(table)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reported":
            yield from (text for each in node.args for text in constants(each))


def lexed(path: Path) -> list[str]:
    """The fields of the counts of a lexer."""
    found = re.search(r"cdef struct Counts:\n((?:    .*\n)+)", path.read_text())
    return re.findall(r"^    \w+ (\w+)", found[1], re.MULTILINE) if found else []


def is_table(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "REPORTED"


@cache
def used(path: Path) -> list[tuple[str, int]]:
    """(code, line) of each code that a file uses from its table: REPORTED["x"], and the keys of counts added
    together."""
    return [*_used(path)]


def _used(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Subscript) and is_table(node.value):
            of = (node.slice.body, node.slice.orelse) if isinstance(node.slice, ast.IfExp) else (node.slice,)
            yield from ((code, node.lineno) for each in of for code in constants(each))
        elif isinstance(node, ast.Call) and any(map(is_table, node.args)):
            yield from ((code, node.lineno) for code in keys(node))
        elif isinstance(node, ast.For) and any(
            isinstance(each, ast.Subscript) and is_table(each.value) for each in ast.walk(node)
        ):
            yield from ((code, node.lineno) for code in keys(node.iter))


@cache
def imported_from(path: Path) -> str:
    """The module of the table that a file uses, "" for none."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and any(name.name == "REPORTED" for name in node.names):
            return node.module or ""
    return ""


def users(table: Path) -> list[Path]:
    return [path for path in SOURCES if imported_from(path) == module_of(table)]


def test_all_are_found() -> None:
    assert len(TABLES) > 15 and sum(len(table_of(path)) for path in TABLES) > 150
    assert {module_of(path) for path in TABLES} == {*map(imported_from, SOURCES)} - {""}


@pytest.mark.parametrize("table", TABLES, ids=module_of)
def test_what_is_used_is_declared_and_what_is_declared_is_used(table: Path) -> None:
    declared = table_of(table)
    for path in users(table):
        undeclared = [f"{path}:{line}: {code}" for code, line in used(path) if code not in declared]
        assert not undeclared
        assert table.parent in path.parents or table.parent.name == "core", f"{path} uses the table of another room"
    texts = {text for path in users(table) for text in constants(tree(path))}
    texts |= {text.replace("_", "-") for path in table.parent.glob("*.p[yx][xd]") for text in lexed(path)}
    texts |= {code for struct in structs(table) for code in COUNTED[struct]}
    below = table_of(REPO / "fastprof" / "chrome" / "reported.py") if "formats" in table.parts else {}
    assert not declared.keys() - texts - below.keys(), "declared, and never used"


def test_what_c_declares_is_of_one_format_and_has_words() -> None:
    found = [(struct, path) for path in TABLES for struct in structs(path)]
    assert sorted(struct for struct, _ in found) == sorted(COUNTED)
    for struct, path in found:
        assert COUNTED[struct].keys() <= table_of(path).keys()
        is_enum = struct == "fp_perfetto_counts"
        fields = {*dir(lib)} if is_enum else {name for name, _ in ffi.typeof(f"struct {struct}").fields}
        assert {field for field, *_ in COUNTED[struct].values()} <= fields, struct


def test_codes_stay() -> None:
    """Scripts rely on them.  A new one is added to the list."""
    found = sorted(f"{entry.kind} {code}" for path in TABLES for code, entry in table_of(path).items())
    assert sorted({*found}) == (REPO / "tests" / "unit" / "report_codes.txt").read_text().splitlines()


def test_no_module_outside_a_format_names_its_codes() -> None:
    own = {code for path in TABLES if "formats" in path.parts for code in table_of(path)}
    own -= {code for path in TABLES if "formats" not in path.parts for code in table_of(path)}
    for path in SOURCES:
        if {"verbs", "cli", "store", "inputs"} & {*path.parts}:
            assert not own & {text for text in constants(tree(path)) if "-" in text}, path


def test_what_is_shared_has_several_users() -> None:
    for code, entry in SHARED.items():
        assert sum(entry in table_of(path).values() for path in TABLES) > 1, f"{code} is of one room"


def test_nothing_is_declared_twice() -> None:
    """Neither a code within a table, nor shared texts."""
    words = {(entry.code, entry.several) for entry in SHARED.values()}
    for path in TABLES:
        codes = [code for code in keys(tree(path)) if re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", code)]
        assert path.parent.name == "core" or len(codes) == len({*codes}), path
        own = [entry for entry in table_of(path).values() if entry not in SHARED.values()]
        assert not [entry for entry in own if (entry.code, entry.several) in words], path


ENTRIES = sorted({*SHARED.values(), *(entry for path in TABLES for entry in table_of(path).values())})


def test_a_code_is_of_one_kind() -> None:
    kinds: dict[str, set[str]] = {}
    for entry in ENTRIES:
        kinds.setdefault(entry.code, set()).add(entry.kind)
    assert {code: its for code, its in kinds.items() if len(its) > 1} == {}


def test_words() -> None:
    assert known_options()  # declares them, like each verb
    for verb in ("annotate", "diff", "explain", "report", "sql", "top", "trend", "batch.archive", "batch.merge"):
        import_module(f"fastprof.verbs.{verb}")
    for entry in ENTRIES:
        check(entry)


def check(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", entry.code)
    fields, of_one = (
        {field for _, field, _, _ in string.Formatter().parse(text) if field} for text in (entry.several, entry.one)
    )
    assert {field for field in fields if field.startswith("-")} <= ARGUMENTS.keys()
    if entry.kind != "warnings":
        assert fields == of_one
        one = entry.one.partition(", too")[0]
        assert not re.search(r"\b(were|they|their)\b|that (have|end|name|tell|cost|stand|say)\b", one)
        assert one != entry.several or one.startswith(("byte order", "summary or"))


def test_an_archive_counts_its_damage_as_losses() -> None:
    """It has no report yet when it is opened: the only place that does not look up the kind in the table."""
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add":
                for of in node.args[:1]:
                    if isinstance(of, ast.Subscript) and is_table(of.value):
                        (code,) = constants(of.slice)
                        assert isinstance(node.func.value, ast.Attribute) and path.name == "index.py"
                        assert table_of(path.parent / "reported.py")[code].kind == node.func.value.attr == "losses"


def test_the_table_of_a_format() -> None:
    table = formats.reported_by("gperftools")
    assert table["duplicated-leaves"].counted(1) == "1 duplicated leaf removed"
    assert {f.name for f in formats.formats() if not formats.reported_by(f.name)} == {"arrow", "parquet"}


ODD = Entry("odd-lines", "repairs", "odd line", "odd lines")
CUT = Entry(
    "cut-lines", "repairs", "line cut at {most:,} ({--args} keeps it)", "lines cut at {most:,} ({--args} keeps them)"
)


SEE = Entry("see", "warnings", "", "{file}: see {--args}, {--args:=} or {--args:name}")


def test_entries_for_json() -> None:
    counts, others = Counts(), Counts()
    counts.add(ODD, 2)
    counts.add(CUT, 0, most=7)
    others.add(ODD, 3)
    others.add(CUT, most=1000)
    counts.take(others)
    assert counts.entries(flags=True) == [
        {"code": "cut-lines", "text": "lines cut at 1,000 (--args keeps them)", "count": 1},
        {"code": "odd-lines", "text": "odd lines", "count": 5},
    ]
    assert counts.lines(flags=True) == ["1 line cut at 1,000 (--args keeps it)", "5 odd lines"]
    assert counts.lines() == ["1 line cut at 1,000 (args=True keeps it)", "5 odd lines"]
    assert counts.texts() == {"lines cut at 1,000 (args=True keeps them)": 1, "odd lines": 5}
    assert counts["odd-lines"] == 5 and counts["others"] == 0
    assert [*Log().as_dict()] == ["rows", "repairs", "losses", "left_out", "not_representable", "warnings", "facts"]


def test_reports_go_to_another_process() -> None:
    """As data: options are spelled where they are printed."""
    log, other = Log(), Log()
    log.count(CUT, 3, most=2)
    log.count(ODD, 4, by=Message("{--thread}, {--label}"))
    log.warn(SEE, file=Message("{name} {--thread}", name="a"))
    for _ in range(2):
        other.take_data(json.loads(json.dumps(log.data())))
    assert [*other.repairs.counted()] == [(entry, values, 2 * n) for entry, values, n in log.repairs.counted()]
    assert other.warned(flags=True) == log.warned(flags=True)


def test_the_command_says_them(tmp_path: Path) -> None:
    source = CORPUS / "callgrind" / "good" / "contexts.callgrind"
    out = str(tmp_path / "out.cachegrind")
    command = [sys.executable, "-m", "fastprof", "convert", "--json", str(source), "-o", out]
    log = json.loads(subprocess.run(command, cwd=REPO, check=True, capture_output=True).stderr)
    assert {entry["code"] for entry in log["not_representable"]} == {"caller-contexts", "calls-and-jumps", "objects"}
    for name in ("repairs", "losses", "not_representable"):
        assert all([*entry] == ["code", "text", "count"] for entry in log[name])


def test_options_are_spelled_where_they_are_printed() -> None:
    """In the caller's notation, not in that of the moment of counting."""
    assert known_options()  # declares their texts
    log = Log()
    log.count(CUT, 2, most=1)
    log.warn(SEE, file="a")
    assert log.repairs.texts() == {"lines cut at 1 (args=True keeps them)": 2}
    assert log.warnings == ["a: see args=True, args= or args"]
    assert log.repairs.lines(flags=True) == ["2 lines cut at 1 (--args keeps them)"]
    assert log.warned(flags=True) == [{"code": "see", "text": "a: see --args, --args= or --args"}]
    with pytest.raises(UsageError) as error:
        fastprof.convert(CORPUS / "trace-event/good/devtools.json", "x.prof")
    assert "--samples reads" in error.value.text(flags=True)
    assert "samples=True reads" in str(error.value)
