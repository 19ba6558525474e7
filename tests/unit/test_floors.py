"""The floors of docs/architecture.md: nothing names what stands above it or beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastprof import formats
from tests.paths import REPO

C_FLOORS = {"fp": 0, "fp_buf": 0, "fp_digits": 0, "fp_memory": 0, "fp_model": 1, "fp_batch": 1}
C_BRIDGES = {"fp_fold", "fp_stacks", "fp_restack", "fp_estimate", "fp_aggregate", "fp_merge", "fp_sum", "fp_spill"}

PY_FLOORS = {
    "errors": 0,
    "io": 0,
    "_version": 0,
    "_typing": 0,
    "_core": 0,
    "_arrow": 0,
    "names": 0,
    "streams": 0,
    "elf": 1,
    "lines": 1,
    "symbols": 2,
    "model": 1,
    "formulas": 1,
    "engine": 2,
    "sums": 2,
    "formats": 2,
    "bridges": 3,
    "pipeline": 4,
    "profile": 4,
    "archive": 4,
    "cli": 5,
    "__init__": 5,
    "__main__": 6,
}


def room_of(name: str) -> str:
    """The format or bridge a C file or a Python format module belongs to."""
    name = name.removeprefix("fp_").lstrip("_")
    return {"gperf": "gperftools", "cachegrind": "callgrind"}.get(name.split("_")[0], name.split("_")[0])


def c_floor(name: str) -> int:
    if name in C_FLOORS:
        return C_FLOORS[name]
    return 3 if any(name == b or name.startswith(f"{b}_") for b in C_BRIDGES) else 2


def includes() -> Iterator[tuple[str, str]]:
    for path in sorted((REPO / "csrc").glob("*.[ch]")):
        for name in re.findall(r'^#include "(\w+)\.h"', path.read_text(), re.MULTILINE):
            yield path.name, name


def test_includes_lead_down() -> None:
    edges = list(includes())
    assert len(edges) > 10
    wrong = []
    for file, included in edges:
        name = file.rpartition(".")[0]
        mine, theirs = c_floor(name), c_floor(included)
        sideways = mine == theirs and mine >= 2 and room_of(name) != room_of(included)
        if theirs > mine or (sideways and mine == 2):
            wrong.append(f"{file} -> {included}.h")
    assert wrong == []


def test_the_core_knows_neither_python_nor_files() -> None:
    for path in sorted((REPO / "csrc").glob("*.[ch]")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"Python\.h|<stdio\.h>|\bf?printf\(|\bfopen\(|<unistd\.h>|<fcntl\.h>", text), path.name


def modules() -> list[Path]:
    found = sorted((REPO / "fastprof").rglob("*.py")) + sorted((REPO / "fastprof").rglob("*.pyx"))
    return [p for p in found if "__pycache__" not in p.parts]


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(REPO / "fastprof").with_suffix("").parts)


def imports(path: Path) -> Iterator[str]:
    """fastprof modules that a file imports, without the leading `fastprof.`; type-only imports included."""
    if path.suffix == ".pyx":
        for a, b in re.findall(r"^\s*from fastprof(?:\.([\w.]+))? c?import (\w+)", path.read_text(), re.MULTILINE):
            yield f"{a}.{b}" if a else b
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name.removeprefix("fastprof.") for a in node.names if a.name.startswith("fastprof."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "fastprof":
            module = node.module.removeprefix("fastprof").lstrip(".")
            for alias in node.names:
                yield f"{module}.{alias.name}" if module else alias.name


def py_floor(module: str) -> int | None:
    return PY_FLOORS.get(module.split(".")[0])


def test_every_module_has_a_floor() -> None:
    assert [dotted(p) for p in modules() if py_floor(dotted(p)) is None] == []


def test_imports_lead_down() -> None:
    wrong = []
    for path in modules():
        mine = dotted(path)
        if mine == "__init__":
            continue  # names of the public interface, imported when asked for
        for imported in imports(path):
            theirs = py_floor(imported)
            if theirs is not None and theirs > (py_floor(mine) or 0):
                wrong.append(f"{mine} -> {imported}")
    assert wrong == []


def test_a_room_names_no_other_room() -> None:
    """Formats and verbs are rooms; a bridge is one too, though two may share what is in `common`."""
    wrong = []
    for path in modules():
        parts = dotted(path).split(".")
        if parts[0] not in ("formats", "cli") or len(parts) < 2 or parts[1] == "__init__":
            continue
        for imported in imports(path):
            other = imported.split(".")
            if other[0] != parts[0] or len(other) < 2 or other[1] == "common":
                continue
            same = room_of(other[1]) == room_of(parts[1]) if parts[0] == "formats" else other[1] == parts[1]
            if not same and (REPO / "fastprof" / other[0] / f"{other[1]}.py").exists():
                wrong.append(f"{'.'.join(parts)} -> {imported}")
    assert wrong == []


@pytest.mark.parametrize("name", formats.NAMES)
def test_only_the_registry_knows_a_format(name: str) -> None:
    """Code, not prose: a name or a string that is the format's, outside its own files."""
    wrong = []
    for path in modules():
        module = dotted(path)
        inside = module.startswith("formats.") and room_of(module.split(".")[1]) == room_of(name)
        if inside or module == "formats.__init__" or path.suffix == ".pyx":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value == name:
                wrong.append(f"{module}:{node.lineno}")
            if isinstance(node, ast.Attribute) and node.attr.startswith(f"fp_{name}_"):
                wrong.append(f"{module}:{node.lineno}")
    # a verb may be called as a format is
    assert [w for w in wrong if w.split(":")[0] != f"cli.{name}" and not w.startswith("cli.__init__")] == []
