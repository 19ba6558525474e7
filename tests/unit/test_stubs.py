"""The stubs of the compiled modules, on which mypy relies, match the modules."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from functools import cache
from keyword import iskeyword
from pathlib import Path

import pytest

from fastprof.core._c import ffi, lib
from tests.support.paths import REPO

STUBS = sorted((REPO / "fastprof").rglob("*.pyi"))


def public(names: Iterable[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def declared(body: list[ast.stmt]) -> set[str]:
    """Names of functions, classes and annotated values, without those that only the type checker sees."""
    found = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not only_types(node)}
    found |= {ast.unparse(node.target) for node in body if isinstance(node, ast.AnnAssign)}
    return public(found)


def only_types(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return "type_check_only" in map(ast.unparse, node.decorator_list)


def test_every_compiled_module_has_a_stub() -> None:
    cython = {path.with_suffix(".pyi") for path in (REPO / "fastprof").rglob("*.pyx")}
    assert cython | {REPO / "fastprof" / "core" / "_c.pyi"} == set(STUBS)


@pytest.mark.parametrize("path", STUBS, ids=lambda p: p.stem)
def test_a_stub_has_the_names_of_its_module(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(REPO).with_suffix("").parts))
    tree = ast.parse(path.read_text())
    assert declared(tree.body) == public(vars(module))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not only_types(node):
            assert declared(node.body) == public(vars(getattr(module, node.name))), node.name


def test_the_stub_of_the_core_is_as_it_was_built() -> None:
    tree = ast.parse((REPO / "fastprof" / "core" / "_c.pyi").read_text())
    classes = {node.name: declared(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}
    assert classes["Lib"] == public(dir(lib))
    structs = ffi.list_types()[1]
    assert len(structs) > 50
    assert {name: classes[name] for name in structs} == {name: fields_of(name) for name in structs}


@pytest.mark.parametrize("path", STUBS, ids=lambda p: p.stem)
def test_nothing_that_compiled_code_gives_to_python_is_of_any_type(path: Path) -> None:
    """mypy would accept everything that is made of it."""
    assert re.findall(r".*\bAny\b.*", path.read_text()) == []


def test_nothing_that_holds_a_c_object_is_of_any_type() -> None:
    wrong = []
    for path, tree in files_with("Any"):
        nodes = list(ast.walk(tree))
        holding = {
            ast.unparse(target)
            for node in nodes
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and is_of_c(node.value)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        for node in nodes:
            if isinstance(node, ast.AnnAssign) and untyped(node.annotation) and ast.unparse(node.target) in holding:
                wrong.append(f"{path.name}:{node.lineno}: {ast.unparse(node.target)}")
            elif isinstance(node, ast.FunctionDef) and node.returns and "Any" in ast.unparse(node.returns):
                given = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value]
                wrong += [f"{path.name}:{value.lineno}: {node.name}" for value in given if is_of_c(value)]
    assert wrong == []


def is_of_c(value: ast.expr) -> bool:
    """Whether it is what C returned or allocated, or a tuple or choice of that."""
    if isinstance(value, ast.Tuple):
        return any(map(is_of_c, value.elts))
    if isinstance(value, ast.IfExp):
        return is_of_c(value.body) or is_of_c(value.orelse)
    if not isinstance(value, (ast.Call, ast.Attribute)):
        return False
    return bool(re.match(r"(?:owned\(|lib\.fp_|ffi\.(?:new|cast|gc|addressof|from_buffer|NULL)\b)", ast.unparse(value)))


def test_python_does_not_see_how_c_keeps_its_tables() -> None:
    """Private fields of a struct follow `private from here on`; options and counts precede it."""
    made = {name.removesuffix("_new") for name in dir(lib) if name.endswith("_new")} & {*ffi.list_types()[1]}
    assert len(made) > 30
    assert {name: own for name in made if (own := {f for f in fields_of(name) if f.startswith("cap_")})} == {}


def test_structs_that_python_allocates_own_nothing() -> None:
    """They are options and counts, or tables that are empty when zeroed, which `owned` clears.  C allocates all
    others."""
    freed = {name: end for name in dir(lib) for end in ("_new", "_free", "_clear") if name.endswith(end)}
    found, wrong = set(), []
    for path, tree in files_with("ffi.new"):
        cleared = {id(call.args[0]) for call in calls(tree, "owned")}
        for call in calls(tree, "ffi.new"):
            kind, _, name = str(getattr(call.args[0], "value", "")).removesuffix(" *").partition(" ")
            if kind != "struct" or "[" in name:
                continue
            found.add(name)
            ends = {freed[each] for each in (f"{name}_new", f"{name}_free", f"{name}_clear") if each in freed}
            if "_new" in ends or (ends and id(call) not in cleared):
                wrong.append(f"{path.name}:{call.lineno}: {name}")
    assert len(found) > 15
    assert wrong == []


def test_private_fields_are_hidden() -> None:
    """A comment next to a field cannot hide it."""
    for path in (REPO / "csrc").rglob("*.h"):
        for part in re.findall(r"/\* cffi-begin.*? \*/(.*?)(?:/\* cffi-end|\Z)", path.read_text(), re.DOTALL):
            assert re.findall(r"/\* private(?! from here on)[^*]*", part) == [], path.name


def test_what_python_gives_to_c_has_a_type() -> None:
    """mypy accepts `Any`: a pointer to a wrong struct would only fail at run time."""
    wrong = []
    for path, tree in files_with("Any"):
        attributes = {
            ast.unparse(node.target)
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and untyped(node.annotation)
        }
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            given = {ast.unparse(arg) for call in c_calls(function) for arg in call.args}
            names = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs) if untyped(arg.annotation)}
            wrong += [f"{path.name}:{function.lineno}: {name}" for name in sorted((names | attributes) & given)]
            if function.name == "feed":
                wrong += [f"{path.name}:{function.lineno}: {arg}" for arg in ("in_", "batch", "err") if arg in names]
    assert wrong == []


@cache
def files_with(word: str) -> list[tuple[Path, ast.Module]]:
    """Modules whose text has a word."""
    texts = {path: path.read_text() for path in (REPO / "fastprof").rglob("*.py")}
    return [(path, ast.parse(text)) for path, text in texts.items() if word in text]


def untyped(annotation: ast.expr | None) -> bool:
    """Whether it is Any, or a list or dictionary of Any."""
    return annotation is not None and ast.unparse(annotation) in ("Any", "list[Any]", "dict[int, Any]", "Any | None")


def c_calls(tree: ast.AST) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if ast.unparse(call.func).startswith(("lib.", "ffi.from_buffer"))]


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == name]


def fields_of(struct: str) -> set[str]:
    try:
        ffi.sizeof(f"struct {struct}")
    except ffi.error:  # opaque: reading its fields would end the process
        return set()
    return public(field for field, _ in ffi.typeof(f"struct {struct}").fields if not iskeyword(field))
