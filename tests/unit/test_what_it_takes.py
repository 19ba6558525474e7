"""The table "What it takes to add something" of docs/architecture.md, tried in a copy: an option, an operator, a verb.

The row of a format is tried by test_new_format.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import CORPUS, REPO

COPIED = ("fastprof", "docs", "tests/support")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "pictures")
PROFILE = str(CORPUS / "folded" / "good" / "plain.folded")


def row(what: str) -> tuple[str, str]:
    """The own and the shared files of a row."""
    page = (REPO / "docs" / "architecture.md").read_text()
    (found,) = re.findall(rf"^\| {what} \| (.*) \| (.*) \|$", page, re.MULTILINE)
    own, shared = found
    return own, shared


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in COPIED:
        shutil.copytree(REPO / name, tmp_path / name, ignore=LEFT_OUT, symlinks=True)
    for name in ("README.md", "tests/__init__.py", "tests/unit/__init__.py", "tests/unit/test_verbs.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (REPO / name).exists():
            shutil.copy(REPO / name, tmp_path / name)
    return tmp_path


def python(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert text.count(old) == 1, (name, old)
    (folder / name).write_text(text.replace(old, new))


def changed(folder: Path) -> set[str]:
    """The files that differ from the repository."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {
        name
        for name in names
        if "__pycache__" not in name
        and not ((REPO / name).exists() and (REPO / name).read_bytes() == (folder / name).read_bytes())
    }


def make_docs(folder: Path) -> set[str]:
    """The files that `make docs` renews, `docs/man` for any number of man pages; without the matrix of formats, which
    is slow and does not depend on options and verbs."""
    before = changed(folder)
    for name in ("make_options", "make_python", "make_man"):
        python(folder, "-m", f"docs.{name}")
    return {"docs/man" if name.startswith("docs/man/") else name for name in changed(folder) - before}


def test_an_option_of_a_format(folder: Path) -> None:
    registration = "fastprof/formats/folded/__init__.py"
    edit(
        folder,
        registration,
        "\nFORMATS = (",
        '\nUPPER = Option.switch("upper", format="folded", help="write names in capitals")\n\nFORMATS = (',
    )
    edit(folder, registration, "writes=(ROOT, NANOSECONDS)", "writes=(ROOT, NANOSECONDS, UPPER)")
    assert changed(folder) == {registration}
    assert "write names in capitals" in python(folder, "-m", "fastprof", "formats", "folded")
    python(folder, "-m", "fastprof", "convert", PROFILE, "-O", "upper", "-o", "out.folded")
    (folder / "out.folded").unlink()
    renewed = make_docs(folder)
    assert renewed == OF_OPTIONS
    assert row("an option of a format") == ("its declaration in the registration", "0" + RENEWED)


OF_OPTIONS = {"docs/options.md", "docs/man"}
RENEWED = f"; `make docs` renews {len(OF_OPTIONS) - 1} and man pages"
OPERATOR = '''
"""Every row twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.core.engine import Capabilities
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def twice(batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities) -> Iterator[Batch]:
    for batch in batches:
        yield batch
        yield batch
'''


def test_an_operator(folder: Path) -> None:
    table, code = "fastprof/bridges/__init__.py", "fastprof/bridges/rows/twice.py"
    (folder / code).write_text(OPERATOR.lstrip("\n"))
    edit(
        folder,
        table,
        "BEFORE = (",
        'DOUBLE = ValueOption.switch("double", help="add every row twice")\n'
        'TWICE = _in("any", "rows.twice:twice", "any format", (DOUBLE,), switches=(DOUBLE,))\n'
        "BEFORE = (TWICE, ",
    )
    assert changed(folder) == {table, code}
    convert = ("-m", "fastprof", "convert", PROFILE, "-t", "folded")
    once, doubled = python(folder, *convert), python(folder, *convert, "--double")
    assert [line.split(" ")[0] for line in doubled.splitlines()] == [line.split(" ")[0] for line in once.splitlines()]
    assert counts(doubled) == [2 * count for count in counts(once)]
    assert "--double" in python(folder, "-m", "fastprof", "top", "--help")
    assert make_docs(folder) == OF_OPTIONS
    assert row("an operator") == ("a file in a package", f"1: `bridges/__init__.py`{RENEWED} for its options")


def counts(folded: str) -> list[int]:
    return [int(line.rpartition(" ")[2]) for line in folded.splitlines()]


OWN = {
    "fastprof/verbs/count.py": '''
"""Counts the rows of a profile."""

from __future__ import annotations

from collections.abc import Sequence

from fastprof import plan
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.verbs.run import run

END = plan.End("count", code="verbs.count:counted")


def count(path: str) -> int:
    """The number of rows."""
    n: int = run(END, [[path]], Options(), None, None)
    return n


def counted(pipelines: Sequence[plan.Pipeline], model: Model, options: Options, log: Log) -> int:
    return sum(len(batch) for pipeline in pipelines for batch in pipeline.rows(model, log))
''',
    "fastprof/cli/count.py": '''
"""fastprof count: count rows."""

from __future__ import annotations

import argparse

from fastprof.cli.parser import Parser
from fastprof.verbs.count import count

DESCRIPTION = "Count the rows of a profile."
EXAMPLES = "examples:\\n  fastprof count trace.xray"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("input", metavar="INPUT", help="a file")


def run(args: argparse.Namespace) -> int:
    print(count(args.input))
    return 0
''',
    "docs/count.md": "# count\n\n    fastprof count trace.xray\n",
    "tests/unit/test_count.py": "# count\n",
}
SHARED = {
    "fastprof/cli/__init__.py": ('    "info": "describe a profile",\n', '    "count": "count rows",\n'),
    "fastprof/__init__.py": ('    "convert": "verbs.convert",\n', '    "count": "verbs.count",\n'),
    "README.md": ("fastprof top callgrind.out.4711 ", "fastprof count callgrind.out.4711 # rows\n"),
    "docs/README.md": ("| get names for addresses |", "| count rows | [count.md](count.md) |\n"),
}


def test_a_verb(folder: Path) -> None:
    lacks = "from tests.unit.test_verbs import lacks; print(len(lacks('count')))"
    assert python(folder, "-c", lacks) == "1\n"  # a module of the command line; then the others
    for name, text in OWN.items():
        (folder / name).write_text(text.lstrip("\n"))
    assert python(folder, "-c", lacks) == "2\n"  # a Python name, and README.md
    for name, (at, new) in SHARED.items():
        edit(folder, name, at, new + at)
    assert python(folder, "-c", lacks) == "0\n"
    assert changed(folder) == OWN.keys() | SHARED.keys()
    assert int(python(folder, "-m", "fastprof", "count", PROFILE)) > 1
    assert python(folder, "-m", "fastprof", "count", "--help").startswith("usage: fastprof count")
    renewed = make_docs(folder)
    assert renewed == {"docs/options.md", "docs/python.md", "docs/man"}
    own, shared = row("an end, a verb")
    assert len(own.split(", ")) == len(OWN)
    assert re.findall(r"^\d|renews .*", shared) == [str(len(SHARED)), f"renews {len(renewed) - 1} and man pages"]
    assert all(f"`{name}`" in shared or f"`{name.removeprefix('fastprof/')}`" in shared for name in SHARED)
