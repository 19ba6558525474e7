"""Each fenced block of README.md and docs/ runs in a test, or names what readers need for it: `<!-- own: WHAT -->`.

A block is text only if it is marked as that: ```text.  Commands without an output run in test_docs.py, others in
tests/differential/test_documents.py, those after `<!-- ci: NAME -->` in .ci/newcomer, and Python here.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

import fastprof
from fastprof.cli import main
from fastprof.core import options
from tests.support.paths import CORPUS, REPO

BLOCK = re.compile(r"(?:^<!-- (\w+): [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ["README.md", *(str(path.relative_to(REPO)) for path in sorted((REPO / "docs").rglob("*.md")))]
ELSEWHERE = {
    "docs/batch.md": "#!/bin/sh apiVersion: seq import",  # tests/differential/test_batch_shards.py
    "docs/first-change.md": "",  # test_new_format.py
    "docs/pgo.md": "",  # tests/differential/test_llvm_profile.py
    "docs/tables.md": "",  # test_docs_tables.py
}
INPUTS = {
    "trace.xray": "xray/good/fdr5-pool-clang19.xray",
    "program": "xray/pool-clang19",
    "more.prof": "gperftools/good/plain.prof",
    "dumps/more.prof": "gperftools/good/plain.prof",
    "callgrind.out.101": "callgrind/good/cfi.callgrind",
    "cpu.pb.gz": "pprof/good/go-cpulabels.pb.gz",
}
# By page: the number of its blocks of Python, and what they print
PYTHON = {
    "README.md": (1, ["{'unwound-frames': 3}", "\nmain 4008599 ", "'format': 'archive'"]),
    "docs/annotate.md": (1, ["23 [21000] ", "('hash', 3000)"]),
    "docs/architecture.md": (1, []),
    "docs/batch.md": (1, ["Counter({'ok': 1})"]),
    "docs/get-started.md": (4, [" main\n", "{'unwound-frames': 3} ", " find\n"]),
    "docs/own-data.md": (
        3,
        ["('work', 3)]\n", "('work', 0)]\n", "\nmain 0 2500000 0"],
    ),
    "docs/python.md": (
        14,
        [
            *("main", "done\n", "(*tree).put", "29285  Pool::worker() ", "  parse\n", "'threads-be64': ", " calls\n"),
            "tuesday', 7)]\n",
        ],
    ),
    "docs/store.md": (1, ["added 23\n", "\nremoved ['small.prof'"]),
}


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Mark, language and lines of each."""
    yield from BLOCK.findall((REPO / page).read_text())


def python_of(page: str) -> list[str]:
    return [code for _, language, code in blocks(page) if language == "python" and "import ray" not in code]


def test_every_block_runs_or_names_what_it_needs() -> None:
    installing = {part for mark, _, code in blocks("README.md") if mark == "ci" for part in code.strip().split(" && ")}
    installing.add(". .venv/bin/activate")
    left = []
    for page in PAGES:
        for mark, language, code in blocks(page):
            if mark in ("own", "ci") or language == "text" or (language == "python" and page in PYTHON):
                continue
            if page in ELSEWHERE and (not ELSEWHERE[page] or code.split()[0] in ELSEWHERE[page].split()):
                continue
            if code.startswith("$ ") or {*code.strip().split(" && ")} <= installing:
                continue
            if not code.startswith("fastprof ") or "://" in code:
                left.append(f"{page}: {code.splitlines()[0]}")
    assert left == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the pages name."""
    (tmp_path / "tests").symlink_to(REPO / "tests")
    for name, source in INPUTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(CORPUS / source, tmp_path / name)
    shutil.copytree(CORPUS / "gperftools" / "good", tmp_path / "runs")
    for n, name in enumerate(("old/1.folded", "old/2.folded", "new/1.folded", "new/2.folded")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"main;parse {100 + 50 * (n > 1) + n}\nmain;print {70 + n}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if page == "README.md":
        fastprof.merge(["more.prof"], "old.pb.gz")
        assert main(["archive", "add", "-q", "nightly.fpa", "callgrind.out.101"]) == 0
    # tests do without pandas; both make data frames of Arrow streams
    names = vars(options) | {"fastprof": fastprof, "pandas": polars, "polars": polars}
    code = python_of(page)
    exec("".join(code), names)
    n, printed = PYTHON[page]
    said = capsys.readouterr().out
    assert len(code) == n and [text for text in printed if text not in said] == [], said


def defined(name: str, folder: Path) -> Any:
    """A function of the block of docs/python.md that defines it."""
    names: dict[str, Any] = {"fastprof": fastprof}
    exec(next(code for code in python_of("docs/python.md") if f"def {name}(" in code), names)
    return names[name]


def test_the_web_service(folder: Path) -> None:
    service = defined("convert_upload", folder)
    data, told = (folder / "cpu.pb.gz").read_bytes(), list[str]()

    def answer(body: bytes, query: str) -> tuple[str, bytes]:
        environ = {"QUERY_STRING": query, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        (content,) = service(environ, lambda status, headers: told.append(status))
        return told[-1][:3], content

    status, folded = answer(data, "to=folded")
    fastprof.convert("cpu.pb.gz", "cpu.folded")
    assert (status, folded) == ("200", Path("cpu.folded").read_bytes())
    assert answer(data, "to=nothing")[0] == answer(data, "to=perfetto")[0] == "400"
    status, text = answer(data[:3000], "to=folded")
    assert status == "422" and b"ends at byte 3000" in text
    assert answer(b"hello", "")[0] == "422"


def test_the_fixture(folder: Path) -> None:
    code = next(code for code in python_of("docs/python.md") if "def no_slower(" in code)
    Path("test_it.py").write_text("import fastprof\n" + code)
    graph = (CORPUS / "callgrind/good/cfi.callgrind").read_text()
    Path("baseline.callgrind").write_text(graph)
    environ = {**os.environ, "PYTHONPATH": str(REPO), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for cost, told in (("5", "1 passed"), ("7", "difference")):
        Path("parser.callgrind").write_text(graph.replace("\n1 5", f"\n1 {cost}"))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_it.py"]
        done = subprocess.run(command, capture_output=True, text=True, env=environ)
        assert told in done.stdout and done.returncode == (cost == "7"), done.stdout
