"""A verb of the command line needs more than its module: this lists what is missing, by the table of verbs."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import fastprof
from fastprof import cli, formats
from fastprof.plan import End, writing
from fastprof.verbs.outputs import CODE
from fastprof.verbs.profile import table_end
from tests.support.paths import REPO

# Verbs whose Python name differs.
PYTHON = {
    "archive": "store.adding.add",
    "batch": "batch_convert",
    "completion": "cli.completion.script",
    "formats": "formats.formats",
    "mcp": "cli.mcp.serve",
    "view": "verbs.view.view",
}
# Verbs whose tests are in a file of another name.
TESTS = {"convert": "test_cli.py"}
COMMAND = re.compile(r"(?:^ *|`|-m )fastprof (\w+)", re.MULTILINE)  # in a block or in a line
PAGES = {
    verb
    for page in (REPO / "docs").rglob("*.md")
    if page.name != "options.md"  # that page is generated
    for verb in COMMAND.findall(page.read_text())
}


def python_of(verb: str) -> str:
    return f"fastprof.{PYTHON.get(verb, verb)}"


def exists(name: str) -> bool:
    """Whether it is a documented public name of fastprof or a function of one of its modules."""
    module, _, attribute = name.rpartition(".")
    if module == "fastprof" and attribute not in fastprof.__all__:
        return False
    try:
        return bool(getattr(import_module(module), attribute, None).__doc__)
    except ImportError:
        return False


def files_of(verb: str) -> list[Path]:
    return [
        path
        for pattern in (TESTS.get(verb, f"test_{verb}*.py"),)
        for path in (REPO / "tests" / "unit").glob(pattern)
        if re.search(rf"\b{verb}\b", path.read_text())
    ]


def lacks(verb: str) -> list[str]:
    """The steps missing for a verb of VERBS, in words."""
    found = []
    module = REPO / "fastprof" / "cli" / f"{verb}.py"
    if not module.exists():
        return [f"fastprof/cli/{verb}.py with DESCRIPTION, EXAMPLES, add_arguments and run"]
    names = re.findall(r"^(?:def )?(\w+)(?: = |\()", module.read_text(), re.MULTILINE)
    if missing := [name for name in ("DESCRIPTION", "EXAMPLES", "add_arguments", "run") if name not in names]:
        found.append(f"in fastprof/cli/{verb}.py: {', '.join(missing)}")
    if not exists(python_of(verb)):
        found.append(f"a Python name with a docstring: {python_of(verb)}, or one in PYTHON of {Path(__file__).name}")
    if verb not in PAGES:
        found.append(f"a page in docs/ with a command `fastprof {verb} ...`")
    if not files_of(verb):
        found.append(f"tests/unit/test_{verb}.py")
    if f"fastprof {verb} " not in (REPO / "README.md").read_text():
        found.append(f"`fastprof {verb} ...` in README.md")
    return found


def test_every_verb_has_a_page_a_python_name_and_tests() -> None:
    assert {verb: missing for verb in cli.VERBS if (missing := lacks(verb))} == {}


def test_a_new_verb_is_told_what_it_lacks() -> None:
    assert lacks("fold") == ["fastprof/cli/fold.py with DESCRIPTION, EXAMPLES, add_arguments and run"]


@pytest.mark.parametrize("verb", ["text", "bar"])  # modules of cli/ that are not verbs
def test_what_a_module_alone_lacks(verb: str) -> None:
    said = " | ".join(lacks(verb))
    assert "DESCRIPTION, EXAMPLES, add_arguments, run" in said
    assert f"a Python name with a docstring: fastprof.{verb}" in said
    assert f"a page in docs/ with a command `fastprof {verb} ...`" in said
    assert f"`fastprof {verb} ...` in README.md" in said


def test_exceptions_are_of_verbs_that_are_there() -> None:
    assert PYTHON.keys() | TESTS.keys() <= cli.VERBS.keys()
    assert not [verb for verb in PYTHON if verb in fastprof.__all__]


ENDS = {
    path.stem: end
    for path in (REPO / "fastprof" / "verbs").iterdir()  # modules, and packages with modules of their own
    if path.suffix == ".py" or (path / "__init__.py").exists()
    for end in [getattr(import_module(f"fastprof.verbs.{path.stem}"), "END", None)]
    if end is not None
}


@pytest.mark.parametrize(
    "end", [*ENDS.values(), table_end(None), writing(formats.get("pprof"), CODE)], ids=lambda e: e.name
)
def test_every_end_has_code(end: End) -> None:
    first = [*inspect.signature(end.load()).parameters.values()][:4]
    assert [str(p.annotation) for p in first] == ["Sequence[plan.Pipeline]", "Model", "Options", "Log"]
    assert {"annotate", "info", "report", "top"} <= ENDS.keys()
