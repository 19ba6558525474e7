"""docs/first-change.md, step by step in a copy of the repository: a contributor's first hour works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import PYTHON, REPO

PAGE = (REPO / "docs" / "first-change.md").read_text()
STEPS = dict(re.findall(r"^## (\d)\. .*?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".viewers", "fuzz", "__pycache__", "*.egg-info", ".*_cache", "bench")
# Commands that the copy skips: it uses this checkout's build.
NOT_HERE = ("git clone", "make build", "make docs", "make lint", "make new-format")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def python(folder: Path, *arguments: str) -> str:
    done = run(folder, sys.executable, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def outcome_of(folder: Path, *arguments: str) -> str:
    return run(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments).stdout


def blocks(step: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", STEPS[step], re.MULTILINE | re.DOTALL)


def apply_c(text: str, part: str) -> str:
    """Replace the function, table or struct of C, or the enums next to each other, that begins like the part."""
    begin = re.match(r"enum \{|[\w ]+(?:\*?\w+\(|\[|\{)", part)
    assert begin, part
    rest = r"\n(?:enum.*\n)*" if part.startswith("enum") else r"\n(?:.*\n)*?\}.*\n"
    old = rf"^{re.escape(begin[0])}.*{rest}"
    text, n = re.subn(old, lambda _: part + "\n", text, count=1, flags=re.MULTILINE)
    assert n == 1, begin[0]
    return text


def apply(folder: Path, block: str) -> None:
    """Replace the imports, constants and functions of a file by those of a block with the same first words."""
    head, _, new = block.partition("\n")
    name, _, table = head.lstrip("#/ ").partition(", in ")
    path = folder / name
    text = path.read_text()
    if table:
        text, n = re.subn(rf"^{table}\b.* = {{\n", lambda match: match[0] + new, text, flags=re.MULTILINE)
        assert n == 1, head
        path.write_text(text)
        return
    for part in re.split(r"\n{2,}(?=\S)", new.strip("\n")):
        if path.suffix == ".c":
            text = apply_c(text, part)
            continue
        begin = re.match(r"\s*(?:import re$|from \S+ import|[A-Z]+ = |(?:def|cdef int) \w+\()", part, re.MULTILINE)
        assert begin, part
        indent = len(part) - len(part.lstrip(" "))
        if part == "import re":
            text = text.replace("\nfrom fastprof", "\nimport re\n\nfrom fastprof", 1)
            continue
        # to the next line with the same or less indentation, unless it ends the parameters
        old = rf"^{re.escape(begin[0])}.*\n(?:\n*(?: {{{indent + 1},}}).*\n)*"
        text, n = re.subn(old, lambda _, part=part: part + "\n", text, flags=re.MULTILINE)  # type: ignore[misc]
        assert n == 1, f"{path}: {begin[0]}"
    path.write_text(text)


def shell(folder: Path, step: str) -> None:
    for block in blocks(step, "sh"):
        for line in block.splitlines():
            if not line.startswith(NOT_HERE):
                done = run(folder, "sh", "-c", line.replace(".venv/bin/python", PYTHON))
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


BUILD = (sys.executable, "setup.py", "-q", "build_clib", "build_ext", "--inplace")


def laid_out(folder: Path, step: str) -> list[str]:
    """Copy the repository, run the page's `make new-format` in it and build.  Returns the names of the new files."""
    shutil.copytree(REPO, folder, ignore=LEFT_OUT, symlinks=True)
    (line,) = re.findall(r"\bmake new-format NAME=\w+(?: KIND=\w+)?", STEPS[step])
    make = line.split()
    made = run(folder, *make, f"PYTHON={PYTHON}")
    assert made.returncode == 0, made.stderr
    again = run(folder, *make, f"PYTHON={PYTHON}")
    assert again.returncode and "is there already" in again.stderr
    named = re.findall(r"^(?:csrc|fastprof|docs|tests)/\S+$", made.stdout, re.MULTILINE)
    assert all((folder / name).is_file() for name in named)
    assert run(folder, *BUILD).returncode == 0
    return named


def keeps_the_rules(folder: Path, name: str) -> None:
    files = (f"fastprof/formats/{name}", f"tests/unit/test_{name}.py")
    python(folder, "-m", "ruff", "check", *files)
    python(folder, "-m", "mypy", "--strict", files[0])
    tests = [f"tests/unit/test_{of}.py" for of in ("layers", "registrations", "docs")]
    house = outcome_of(folder, *tests, "-k", f"{name} or layer or index or names or tags or cycle or folder")
    assert "passed" in house and "failed" not in house, house


@pytest.mark.exhaustive
def test_a_format_in_an_hour(tmp_path: Path) -> None:
    folder = tmp_path / "fastprof"
    assert len(laid_out(folder, "2")) == 7

    # The tests fail, and their messages state the next step.
    assert "put a small real profile at" in outcome_of(folder, "tests/unit/test_bpftrace.py")
    owed = outcome_of(folder, "tests/contract/test_contract.py", "-k", "corpus and bpftrace")
    assert "no file in tests/corpus/bpftrace/good" in owed
    shell(folder, "3")
    failed = outcome_of(folder, "tests/unit/test_bpftrace.py")
    assert "4 failed" in failed
    assert "UnrecognizedError" in failed and "what read_line of _lexer.pyx will read" in failed

    # The page's blocks make them pass.
    for step in ("4", "5", "6", "7"):
        for language in ("python", "cython"):
            for block in blocks(step, language):
                apply(folder, block)
    assert run(folder, *BUILD).returncode == 0
    shell(folder, "6")
    shell(folder, "7")
    assert "vfs_read" in python(folder, "-m", "fastprof", "top", "tests/corpus/bpftrace/good/small.bpftrace")
    keeps_the_rules(folder, "bpftrace")


@pytest.mark.exhaustive
def test_a_format_in_json(tmp_path: Path) -> None:
    folder = tmp_path / "fastprof"
    assert len(laid_out(folder, "8")) == 9
    assert "put a small real profile at" in outcome_of(folder, "tests/unit/test_graalvm.py")
    for language in ("c", "python"):
        for block in blocks("8", language):
            apply(folder, block)
    (table,) = blocks("8", "c")
    assert len(table.splitlines()) <= 60
    assert run(folder, *BUILD).returncode == 0
    shell(folder, "8")
    keeps_the_rules(folder, "graalvm")


@pytest.mark.exhaustive
def test_a_binary_format(tmp_path: Path) -> None:
    folder = tmp_path / "fastprof"
    assert len(laid_out(folder, "9")) == 9
    corpus = folder / "tests" / "corpus" / "hitlog"
    file = bytes.fromhex("78563412 01000000 0500000000000000 66 02000000 0700000000000000 6767")
    (corpus / "good" / "small.hitlog").write_bytes(file)
    (corpus / "bad" / "damaged.hitlog").write_bytes(file[:-1])
    (corpus / "bad" / "other.hitlog").write_bytes(b"\x01" + file)
    (corpus / "bad" / "name.hitlog").write_bytes(file[:4] + b"\xff" * 20)
    tests = folder / "tests" / "unit" / "test_hitlog.py"
    tests.write_text(tests.read_text().replace('FOLDED = ""', 'FOLDED = "f 5\\ngg 7\\n"'))
    registration = folder / "fastprof" / "formats" / "hitlog" / "__init__.py"
    magic = 'return SURE if head[:4] == b"\\x78\\x56\\x34\\x12" else NO'
    registration.write_text(
        registration.read_text().replace("return NO", magic).replace("import NO", "import NO, SURE")
    )
    assert "4 passed" in outcome_of(folder, "tests/unit/test_hitlog.py")
    python(folder, "-m", "tests.contract.dump")
    assert (corpus / "bad" / "expected.tsv").read_text().count("\n") == 3
    assert " failed" not in outcome_of(folder, "tests/contract/test_contract.py", "-k", "hitlog")
    keeps_the_rules(folder, "hitlog")


@pytest.mark.parametrize("name", ["", "Big", "a b", "x-y", "_x", "9x"])
def test_names_that_are_no_folder(name: str) -> None:
    done = run(REPO, sys.executable, "-m", "docs.make_new_format", name)
    assert done.returncode == 1 and "expected small letters" in done.stderr


def test_a_kind_that_there_is_not() -> None:
    done = run(REPO, sys.executable, "-m", "docs.make_new_format", "new", "xml")
    assert done.returncode == 1 and "expected text, json, binary" in done.stderr
