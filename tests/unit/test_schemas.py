"""JSON documents: each names its schema first, docs/schemas is up to date, and what verbs print validates."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from docs import make_schemas
from fastprof.cli import main
from fastprof.cli.as_json import SCHEMAS, schema_of
from fastprof.cli.documents import DOCUMENTS
from tests.support.paths import CORPUS, REPO

GOOD = sorted(path for path in CORPUS.glob("*/good/*") if path.stat().st_size < 300_000)
DAMAGED = sorted(CORPUS.glob("*/bad/*"))
POOL = str(CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray")
GO = str(CORPUS / "pprof" / "good" / "go-cpulabels.pb")
ASM = str(CORPUS / "callgrind" / "good" / "unloaded.callgrind")
PLAIN = str(CORPUS / "folded" / "good" / "plain.folded")
CFI = str(CORPUS / "callgrind" / "good" / "cfi.callgrind")


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(make_schemas.file_of(name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def checked(text: str, name: str) -> Any:
    """The document `name` in `text`, which is valid."""
    found = json.loads(text)
    assert next(iter(found.items())) == ("schema", schema_of(name))
    problem = next(iter(validator(name).iter_errors(found)), None)
    assert problem is None, f"{problem.json_path}: {problem.message:.300}"
    return found


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int | None = 0) -> str:
    """What is printed on standard output, or on standard error if nothing else is."""
    capsys.readouterr()
    done = main([*words, "--json"])
    assert code is None or done == code, capsys.readouterr().err
    found = capsys.readouterr()
    return found.out or found.err


def test_up_to_date() -> None:
    """`make docs` writes them."""
    assert SCHEMAS.keys() == DOCUMENTS.keys()
    for name in SCHEMAS:
        assert make_schemas.file_of(name).read_text() == make_schemas.text_of(name)


def test_every_document_has_a_schema() -> None:
    """And nothing in the command line prints JSON without one."""
    source = "".join(path.read_text() for path in sorted((REPO / "fastprof" / "cli").glob("*.py")))
    assert not [name for name in SCHEMAS if source.count(f'"{name}"') < 2], "never printed"
    for line in source.splitlines():
        assert not re.search(r"print\w*\(json_text\((?!document)", line), line


@pytest.mark.parametrize("verb", ["info", "top", "annotate", "explain", "diff", "trend"])
def test_outputs_of_the_corpus(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = 0
    several = verb in ("diff", "trend")
    for path in GOOD[::4] if several or verb == "explain" else GOOD:
        more = [shutil.copy(path, tmp_path)] if several else ["-n3"] * (verb == "top")
        text = printed(capsys, verb, str(path), *more, code=None)
        error = '{"schema": "fastprof/error/' in text
        checked(text, "error" if error else verb)
        seen += not error
    assert seen > 70


def test_errors_of_the_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    offsets = 0
    for path in DAMAGED:
        text = printed(capsys, "info", str(path), code=None)
        if '{"schema": "fastprof/error/' in text:
            found = checked(text, "error")
            assert found["file"].startswith(str(path)) or found["code"] == "usage", found
            offsets += found["offset"] is not None
    assert offsets > 150


TABLES = [
    ("top", POOL, "--stats"),
    ("top", GO, "--by", "label:kind", "--tree", "both"),
    ("top", GO, "--matrix", "kind"),
    ("top", CFI, "--sort", "Dr"),
    ("diff", PLAIN, str(CORPUS / "folded" / "good" / "recursion.folded"), "--union"),
    ("diff", GO, GO, "--by", "label:kind,function"),
    ("diff", PLAIN, str(CORPUS / "folded" / "good" / "chain.folded"), "--union", "--by", "arc"),
    ("annotate", ASM, "--asm"),
    ("trend", PLAIN, PLAIN.replace("plain", "chain")),
    ("formats",),
]


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_tables(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    checked(printed(capsys, *words), words[0])


def test_other_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, store = str(tmp_path / "out.folded"), str(tmp_path / "all.fpa")
    checked(printed(capsys, "formats", "folder", code=2), "error")
    checked(printed(capsys, "formats", "pprof"), "format")
    checked(printed(capsys, "info", PLAIN, CFI), "info-list")
    checked(printed(capsys, "convert", PLAIN, "-o", out), "convert")
    checked(printed(capsys, "merge", PLAIN, "-o", out), "merge")
    checked(printed(capsys, "report", PLAIN, "-o", str(tmp_path / "out.html")), "report")
    checked(printed(capsys, "diff", PLAIN, PLAIN, "-o", out), "diff-output")
    checked(printed(capsys, "archive", "add", store, PLAIN, CFI), "archive-add")
    members = checked(printed(capsys, "archive", "list", store), "archive-list")["profiles"]
    assert [one["name"] for one in members] == ["cfi.callgrind", "plain.folded"]
    checked(printed(capsys, "archive", "list", store, "--sort", "size"), "archive-list")
    checked(printed(capsys, "archive", "extract", store, "plain.folded", "-o", out), "archive-extract")
    checked(printed(capsys, "explain", PLAIN, PLAIN), "explain-changes")
    rm = checked(printed(capsys, "archive", "rm", store, "plain*"), "archive-rm")
    assert rm["removed"] == ["plain.folded"]
    sizes = checked(printed(capsys, "archive", "compact", store), "archive-compact")
    assert sizes["bytes_before"] > sizes["bytes_after"] == (tmp_path / "all.fpa").stat().st_size
    assert checked(printed(capsys, "archive", "verify", store), "archive-verify")["errors"] == []
    checked(printed(capsys, "batch", "convert", PLAIN, CFI, "-t", "pprof", "-o", str(tmp_path / "made")), "batch")
    plan = checked(printed(capsys, "batch", "plan", PLAIN, CFI, "-o", str(tmp_path / "plan")), "batch")
    assert plan["files"] == 2
    checked(printed(capsys, "batch", "status", str(tmp_path / "made")), "batch-status")
    checked(printed(capsys, "batch", "merge", PLAIN, "-o", out), "batch-merge")


def test_answers_to_queries(capfd: pytest.CaptureFixture[str]) -> None:
    """They are printed by another process."""

    def asked(query: str) -> Any:
        capfd.readouterr()
        assert main(["sql", PLAIN, query, "--json"]) == 0
        return checked(capfd.readouterr().out, "sql")

    found = asked("select 1 as a, 'x' as a, null as b")
    assert found["columns"][:2] == [{"name": "a", "type": "INTEGER"}, {"name": "a_1", "type": "VARCHAR"}]
    assert found["rows"] == [{"a": 1, "a_1": "x", "b": None}]
    assert asked("select 1 as a where false")["rows"] == []
    assert len(asked("from samples")["rows"]) > 1


def test_errors_have_a_place_and_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def failed(*words: str, code: int = 1) -> Any:
        text = printed(capsys, *words, code=code)
        assert text.count("\n") == 1
        return checked(text, "error")

    (tmp_path / "cut.callgrind").write_bytes(b"events: Ir\nfn=f\n1 x\n")
    found = failed("top", str(tmp_path / "cut.callgrind"))
    assert (found["code"], found["format"], found["offset"], found["line"]) == ("damaged", "callgrind", 16, 3)
    assert found["file"] == str(tmp_path / "cut.callgrind") and "--lenient" in found["advice"]
    (tmp_path / "odd; name").write_bytes(b"\x00\x01\x02")
    found = failed("top", str(tmp_path / "odd; name"))
    assert found["code"] == "unrecognized" and found["file"] == str(tmp_path / "odd; name")
    found = failed("top", str(tmp_path / "none"))
    assert (found["code"], found["file"], found["advice"]) == ("file", str(tmp_path / "none"), None)
    found = failed("top", PLAIN, "--sort", "nothing", code=2)
    assert found["code"] == "usage"
    with pytest.raises(SystemExit):
        main(["top", PLAIN, "--json", "--unknown"])
    found = checked(capsys.readouterr().err, "error")
    assert found["code"] == "usage" and "--unknown" in found["message"] and found["advice"]
