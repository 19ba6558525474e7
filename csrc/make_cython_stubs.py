"""The stubs of Cython modules, NAME.pyi next to NAME.pyx, for mypy: their public classes, functions and constants.

C types of parameters become those of Python.  What a function returns, and what is in a list, dictionary or object,
is stated by annotations of the module, which Cython ignores; of a field by a comment: `cdef readonly list a  #:
list[int]`.  A struct that is returned is a dictionary.  Errors: ValueError for a type that is not stated.
"""

import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from Cython.Compiler.TreeFragment import parse_from_strings

HERE = Path(__file__).parents[1]
PYTHON = {
    **dict.fromkeys(("Callable", "Iterable", "Iterator", "Sequence"), "collections.abc"),
    "ArrowColumn": "fastprof.core.arrow_column",
    "TypedDict": "typing",
    "type_check_only": "typing",
}
OF_C = {None: "object", "bint": "bool"} | {name: name for name in ("bytes", "object", "str")}
OF_C |= dict.fromkeys((f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)), "int")
OF_C |= dict.fromkeys(("int", "size_t", "Py_ssize_t"), "int")


def of_c(name: str | None, stated: str, where: str) -> str:
    """The type for mypy of what has a C type, unless one is `stated`."""
    if not stated and name in ("dict", "list", "tuple"):
        raise ValueError(f"{where}: what is in it is not stated")
    return stated or OF_C.get(name) or str(name)


def marks(node: Any) -> list[Any]:
    return getattr(node, "decorators", None) or []


def text_of(annotation: Any) -> str:
    return str(annotation.string.value) if annotation else ""


def parameters(node: Any, where: str) -> Iterator[str]:
    keywords = False
    for one in node.args:
        name = one.declarator.name or one.base_type.name
        if one.kw_only and not keywords:
            keywords = True
            yield "*"
        if name == "self":
            yield name
            continue
        of = of_c(one.base_type.name if one.declarator.name else None, text_of(one.annotation), f"{where}, {name}")
        yield f"{name}: {of}{' = ...' if one.default else ''}"
    if (rest := getattr(node, "star_arg", None)) and rest.annotation:
        yield f"*{rest.name}: {text_of(rest.annotation)}"


def function(node: Any, indent: str, where: str) -> str:
    """One that is made of C has its type: `cpdef bint f(...)`."""
    is_c = hasattr(node, "declarator")
    of, name = (node.declarator, node.declarator.base.name) if is_c else (node, node.name)
    name = name.replace("__cinit__", "__init__")
    where = f"{where}: {name}"
    returns = OF_C[node.base_type.name] if is_c else text_of(node.return_type_annotation)
    if not returns and name != "__init__":
        raise ValueError(f"{where}: what it returns is not stated")
    above = "".join(f"{indent}@{mark.decorator.name}\n" for mark in marks(node))
    return f"{above}{indent}def {name}({', '.join(parameters(of, where))}) -> {returns or None}: ...\n"


def of_class(node: Any, lines: list[str], where: str) -> str:
    name = getattr(node, "class_name", None) or node.name
    base = ", ".join(one.name for one in node.bases.args)
    made: list[str] = []
    own: dict[str, str] = {}
    setters = {m.decorator.obj.name for one in node.body.stats for m in marks(one) if not m.decorator.is_name}
    for one in node.body.stats:
        kind = type(one).__name__
        if kind == "CVarDefNode" and one.visibility in ("readonly", "public"):
            stated = lines[one.pos[1] - 1].partition("#: ")[2]
            of = of_c(one.base_type.name, stated, f"{where}: {name}, a field")
            form = "    {}: {}\n" if one.visibility == "public" else "    @property\n    def {}(self) -> {}: ...\n"
            made += [form.format(each.name, of) for each in one.declarators]
        elif kind == "DefNode" and one.name in setters:
            own.setdefault(one.name, f"    {one.name}: {text_of(one.return_type_annotation)}\n")  # the getter is first
        elif kind == "DefNode" and one.name != "__dealloc__":
            own[one.name.replace("__cinit__", "__init__")] = function(one, "    ", f"{where}: {name}")
    text = "".join([*made, *own.values()])
    return f"\nclass {name}{f'({base})' if base else ''}:" + (f"\n{text}" if text else " ...\n")


def struct(name: str, path: Path) -> str:
    """A struct of a module, or of what it includes, as a dictionary."""
    for one in sorted(path.parent.glob("*.p[xy][dx]")):
        if found := re.search(rf"^cdef struct {name}:\n((?:    .*\n)+)", one.read_text(), re.MULTILINE):
            fields = re.findall(r"\w+(?=,|$)", re.sub(r" *#.*", "", found[1]), re.MULTILINE)
            return f"\n@type_check_only\nclass {name}(TypedDict):\n" + "".join(f"    {one}: int\n" for one in fields)
    raise ValueError(f"{path}: no struct {name}")


def stub(path: Path, modules: dict[str, str]) -> str:
    """`modules`: the module of each public class that Cython modules share."""
    source, made = path.read_text(), ""
    for node in parse_from_strings(path.stem, source).body.stats:
        kind = type(node).__name__
        name = getattr(node, "class_name", None) or getattr(node, "name", None) or "_"
        if kind in ("CClassDefNode", "PyClassDefNode") and name[0] != "_":
            made += of_class(node, source.split("\n"), path.name)
        elif kind in ("DefNode", "CFuncDefNode") and (kind == "DefNode" or node.overridable):
            made += function(node, "", path.name)
        elif kind == "SingleAssignmentNode":
            names = [node.lhs] if node.lhs.is_name else [*node.lhs.args]
            stated = text_of(names[0].annotation) or "int"
            made += "".join(f"{one.name}: {stated}\n" for one in names if one.name[0] != "_")
    known = {*PYTHON, *modules, *dir(builtins), *re.findall(r"class (\w+)", made)}
    used = {*re.findall(r"[ \[]([A-Z]\w+)", re.sub(r"(?m)^[A-Z].*", "", made))} - known
    made = "".join(struct(name, path) for name in sorted(used)) + made
    imports: dict[str, list[str]] = {}
    for name in sorted({*re.findall(r"\b[A-Za-z]\w+", made)} - {*re.findall(r"class (\w+)", made)}):
        if module := (PYTHON | modules).get(name):
            imports.setdefault(module, []).append(name)
    head = "".join(f"from {module} import {', '.join(names)}\n" for module, names in sorted(imports.items()))
    return f"# Made by csrc/make_cython_stubs.py from {path.name}.\n{head}{made}"


def main() -> None:
    paths = sorted((HERE / "fastprof").rglob("_*.pyx"))
    shared: dict[str, str] = {}
    for path in paths:
        for name in re.findall(r"^cdef class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
            shared[name] = "" if name in shared else ".".join(path.relative_to(HERE).with_suffix("").parts)
    for path in paths:
        text, made = stub(path, {name: module for name, module in shared.items() if module}), path.with_suffix(".pyi")
        if not made.exists() or made.read_text() != text:
            made.write_text(text)


main()
