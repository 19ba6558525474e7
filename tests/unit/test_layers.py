"""The layers of docs/architecture.md: a file's folder is its layer; no file names a layer above or next to its own."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from fastprof import formats
from fastprof.formats.heads import HEADS
from tests.support.paths import REPO

# The other folders that each folder may use.  A folder that is not named here is a mistake.  Any other folder of csrc
# is a format, which uses the core.
C_LAYERS = {
    "core": set(),
    "symbols": {"core"},
    "chrome": {"core"},
    "bridges": {"core"},
    "ends": {"core", "bridges"},
}
# The same for the packages of the bridges, in C and in Python.
PACKAGES = {
    "rows": set(),
    "sums": set(),
    "fold": {"rows", "sums"},
    "project": {"sums"},
    "estimate": {"rows"},
    "budget": {"sums"},
}
PY_LAYERS = {
    "core": set(),
    "symbols": {"core"},
    "chrome": {"core"},
    "formats": {"core", "symbols", "chrome"},
    "bridges": {"core", "symbols"},
    "inputs": {"core", "formats", "bridges", "plan"},
    "store": {"core", "formats", "bridges", "plan", "inputs"},
    "verbs": {"core", "symbols", "formats", "bridges", "plan", "inputs", "store"},
    "cli": {"core", "formats", "plan", "inputs", "store", "verbs"},
}
PY_FILES = {"__init__": {"core", "verbs"}, "__main__": {"cli"}, "plan": {"core", "symbols", "formats", "bridges"}}
LONGEST = 600  # lines
LONGEST_FUNCTION = 60  # from its name to its last line
MOST_BRANCHES = 30  # of a function; a switch counts as one, with any number of cases

C_FILES = sorted((REPO / "csrc").rglob("*.[ch]"))
PY_SOURCES = sorted(p for s in ("py", "pyx", "pxd") for p in (REPO / "fastprof").rglob(f"*.{s}"))


# Hand-written files: neither generated code nor data.
OUR_FILES = sorted(
    path
    for folder, suffixes in {
        "csrc": ("c", "h", "py"),
        "fastprof": ("py", "pyx", "pxd"),
        "tests": ("py", "c", "h"),
        "bench": ("py",),
        "docs": ("py",),
    }.items()
    for suffix in suffixes
    for path in (REPO / folder).rglob(f"*.{suffix}")
    if path.name not in ("c.pxd", "counted.py", "fp.pxd", "keywords.py")
)


def test_no_file_is_longer_than_one_can_keep_in_mind() -> None:
    lengths = {str(path.relative_to(REPO)): path.read_text().count("\n") for path in OUR_FILES}
    assert len(lengths) > 200
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


def c_functions(path: Path) -> Iterator[tuple[str, int, int]]:
    """Name, lines and branches of each function: clang-format puts its closing brace at the margin."""
    code = re.sub(
        r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""",
        lambda found: "\n" * found[0].count("\n"),
        path.read_text(),
        flags=re.DOTALL,
    )
    # the name is the word before the parenthesis that ends the function's head
    for found in re.finditer(r"^\w[^;{}#]*?(\w+)\([^;{}]*\) \{\n.*?^\}", code, re.DOTALL | re.MULTILINE):
        branches = re.findall(r"\b(?:if|for|while|switch)\b|&&|\|\||\?", found[0])
        yield found[1], found[0].count("\n") + 1, len(branches)


def python_functions(path: Path) -> Iterator[tuple[str, int, int]]:
    """The same for Python and Cython, whose words and indentation are those of Python."""
    blocks: list[tuple[str, int]] = []  # the open ones: the name if it is a function, the first line
    branches = [0]  # of each open block, and outside of all
    head: list[tokenize.TokenInfo] = []  # the preceding line
    line: list[tokenize.TokenInfo] = []
    last = 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.INDENT:
                found = re.match(r"\s*(?:async )?c?p?def (?!class)[^=(]*?(\w+)\(", head[0].line)
                blocks.append((found[1] if found else "", head[0].start[0]))
                branches.append(0)
            elif token.type == tokenize.DEDENT:
                name, first = blocks.pop()
                n = branches.pop()
                branches[-1] += n
                if name:
                    yield name, last - first + 1, n
            elif token.type == tokenize.NEWLINE:
                head, line, last = line, [], token.end[0]
            elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
                line.append(token)
                branches[-1] += token.string in ("if", "elif", "for", "while", "except", "and", "or", "match")


def test_no_function_is_longer_than_one_can_keep_in_mind() -> None:
    functions = [
        (path.relative_to(REPO), *found)
        for path in OUR_FILES
        for found in (c_functions(path) if path.suffix in (".c", ".h") else python_functions(path))
    ]
    assert len(functions) > 6000
    assert [
        f"{path}: {name} has {lines} lines and {branches} branches"
        for path, name, lines, branches in functions
        if lines > LONGEST_FUNCTION or (branches > MOST_BRANCHES and path.parts[0] in ("csrc", "fastprof"))
    ] == []


def without_comments(path: Path) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)


def test_struct_tags_are_unique() -> None:
    """Two structs with one tag would link into one library and be confused silently."""
    tags = [
        tag
        for path in C_FILES
        for tag in re.findall(r"^\s*(?:typedef )?(?:struct|enum|union) (\w+) \{", without_comments(path), re.MULTILINE)
    ]
    assert len(tags) > 200
    assert [tag for tag, n in Counter(tags).items() if n > 1] == []


# The prefix of names in a folder, if it is not the folder's name.
PREFIXES = {"valgrind": "dhat"}


def test_names_begin_with_their_format() -> None:
    """Functions and structs of headers: the folder's name, or outside of formats a header's."""
    wrong = []
    for path in C_FILES:
        layer, *_ = path.relative_to(REPO / "csrc").parts
        if layer == "core" or path.suffix != ".h":
            continue
        folder = path.parent.name
        allowed = [PREFIXES.get(folder, folder)]
        if layer in C_LAYERS:
            allowed += [word for header in path.parent.glob("*.h") for word in (header.stem, header.stem.split("_")[0])]
        code = without_comments(path)
        names = re.findall(r"^(?!return)\w[\w *]*?\b(fp_\w+)\([^;{}]*\)(?: \{|;)", code, re.MULTILINE)
        names += re.findall(r"^(?:static inline|FP_INLINE) [\w *]*?\b(?!__)(\w+)\(", code, re.MULTILINE)
        names += re.findall(r"\bstruct (\w+) \{", code)
        wrong += [f"{path.name}: {name}" for name in names if not name.startswith(tuple(f"fp_{a}" for a in allowed))]
        wrong += [f"{path.name}: enum {tag}" for tag in re.findall(r"\benum (?!fp_)(\w+) \{", code)]
    assert wrong == []


def test_constants_of_headers_begin_with_the_prefix() -> None:
    """Enumerators and macros; those within functions are nobody else's."""
    wrong, right = [], 0
    for path in C_FILES:
        if path.suffix != ".h":
            continue
        code = without_comments(path)
        names = re.findall(r"^ *# *define (\w+)", code, re.MULTILINE)
        code = re.sub(r"FP_COUNT\((\w+)[^)]*\)", r"\1", re.sub('"[^"]*"', '""', code))
        for body in re.findall(r"^(?:typedef )?enum\b[^{};]*\{([^}]*)\}", code, re.MULTILINE):
            names += re.findall(r"(?:^|,)\s*(\w+)", body)
        right += len(names)
        wrong += [f"{path.name}: {name}" for name in names if not name.startswith("FP_")]
    assert right > 900
    assert wrong == []


def includes() -> Iterator[tuple[Path, str]]:
    for path in C_FILES:
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            yield path.relative_to(REPO / "csrc"), name


def test_includes_lead_down() -> None:
    edges = list(includes())
    assert len(edges) > 50
    wrong = []
    for file, included in edges:
        mine, theirs = file.parts[0], included.split("/")[0]
        if theirs != mine and theirs not in C_LAYERS.get(mine, {"core", "symbols", "chrome"}):
            wrong.append(f"{file} -> {included}")
    assert wrong == []


def test_packages_of_bridges_lead_down() -> None:
    edges = {(file.parent.as_posix(), name.rpartition("/")[0]) for file, name in includes()}
    for path in PY_SOURCES:
        folder = path.relative_to(REPO / "fastprof").parent.as_posix()
        edges |= {(folder, "/".join(imported.split(".")[:2])) for imported, _ in imports(path)}
    packages = {f"bridges/{package}": package for package in PACKAGES}
    inside = {(packages[mine], packages[theirs]) for mine, theirs in edges if mine in packages and theirs in packages}
    assert {(mine, theirs) for mine, theirs in inside if mine != theirs} == {
        (mine, theirs) for mine, below in PACKAGES.items() for theirs in below
    }


def test_the_page_lists_what_packages_use() -> None:
    page = (REPO / "docs" / "architecture.md").read_text()
    table = page.partition("| package of `bridges/` |")[2].partition("\n\n")[0]
    rows = [
        [set(re.findall(r"`(\w+)`", cell)) for cell in (row.split("|")[1], row.split("|")[3])]
        for row in table.splitlines()[2:]
    ]
    assert {package: uses for [package], uses in rows} == PACKAGES


def test_every_c_file_stands_in_a_folder() -> None:
    folders = {(path.name,) for path in (REPO / "fastprof" / "formats").iterdir() if path.is_dir()}
    folders = {path.relative_to(REPO / "csrc").parts[:-1] for path in C_FILES}
    layers = {(name,) for name in C_LAYERS.keys() - {"bridges"}} | {("bridges", package) for package in PACKAGES}
    assert folders <= folders | layers


def test_the_core_knows_neither_python_nor_files() -> None:
    for path in C_FILES:
        text = without_comments(path)
        if path.name == "memory.c":  # maps memory to a file that Python opened
            text = text.replace("#include <fcntl.h>", "", 1)
        assert not re.search(r"Python\.h|<stdio\.h>|\bf?printf\(|\bfopen\(|<unistd\.h>|<fcntl\.h>", text), path.name


class Names(NamedTuple):
    """What a file of Python names."""

    imports: list[tuple[str, bool]]  # as `imports`
    texts: list[tuple[str, int]]  # constants, and their lines
    attributes: list[tuple[str, int]]


@cache
def names_in(path: Path) -> Names:
    tree = ast.parse(path.read_text())
    checks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    typed = {id(node) for check in checks for statement in check.body for node in ast.walk(statement)}
    found = Names([], [], [])
    for node in ast.walk(tree):
        runs = id(node) not in typed
        if isinstance(node, ast.Import):
            found.imports.extend((a.name[9:], runs) for a in node.names if a.name.startswith("fastprof."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "fastprof":
            module = node.module.removeprefix("fastprof").lstrip(".")
            found.imports.extend((f"{module}.{a.name}" if module else a.name, runs) for a in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.texts.append((node.value, node.lineno))
        elif isinstance(node, ast.Attribute):
            found.attributes.append((node.attr, node.lineno))
    return found


def imports(path: Path) -> list[tuple[str, bool]]:
    """fastprof modules that a file imports, without the leading `fastprof.`, and whether as it runs: not for types."""
    if path.suffix == ".py":
        return names_in(path).imports
    found = re.findall(r"^\s*from fastprof(?:\.([\w.]+))? c?import (\w+)", path.read_text(), re.MULTILINE)
    return [(f"{module}.{name}" if module else name, True) for module, name in found]


def layer(path: Path) -> str:
    return path.relative_to(REPO / "fastprof").with_suffix("").parts[0]


# Jobs that are done for all in one place each: a pattern, and the files that may contain it.
ONE_PLACE = {
    "the model's tables are entered into": (r"\blib\.fp_model_", {"core/model.py"}),
    "C objects get their owner": (r"\bffi\.gc\(", {"core/c_memory.py", "core/model.py"}),
}


@pytest.mark.parametrize("what", ONE_PLACE)
def test_one_thing_is_done_in_one_place(what: str) -> None:
    pattern, where = ONE_PLACE[what]
    found = {p.relative_to(REPO / "fastprof").as_posix() for p in PY_SOURCES if re.search(pattern, p.read_text())}
    assert found == where


def test_every_module_has_a_layer() -> None:
    assert {layer(p) for p in PY_SOURCES} <= PY_LAYERS.keys() | PY_FILES.keys()


def test_imports_lead_down() -> None:
    wrong = []
    for path in PY_SOURCES:
        mine = layer(path)
        for imported, _ in imports(path):
            theirs = imported.split(".")[0]
            if theirs != mine and theirs not in PY_LAYERS.get(mine, PY_FILES.get(mine, set())):
                wrong.append(f"{path.relative_to(REPO)} -> {imported}")
    assert wrong == []


def test_a_format_names_no_other_format() -> None:
    """A format is a folder of `formats`."""
    wrong = []
    for path in PY_SOURCES:
        folder, *inside = path.relative_to(REPO / "fastprof").with_suffix("").parts
        if folder != "formats" or len(inside) < 2:
            continue
        for imported, _ in imports(path):
            other = imported.split(".")
            if other[0] == folder and (len(other) < 2 or other[1] != inside[0]):
                wrong.append(f"{path.relative_to(REPO)} -> {imported}")
    assert wrong == []


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(REPO / "fastprof").with_suffix("").parts).removesuffix(".__init__")


def assert_no_circle(edges: dict[str, set[str]]) -> None:
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name in done:
            return
        for other in sorted(edges[name]):
            walk(other, (*path, name))
        done.add(name)

    for name in sorted(edges):
        walk(name, ())


def test_no_cycle_of_files() -> None:
    """The imports of a file, also those in its functions, never lead back to it.  core/_c.py only stands in for a
    module that is not compiled; methods of a Profile call verbs, which may open others."""
    files = {module_of(p): p for p in PY_SOURCES if p.suffix == ".py" and module_of(p) != "core._c"}
    edges: dict[str, set[str]] = {}
    for name, path in files.items():
        found = set()
        for imported, runs in imports(path):
            if runs:
                found.add(imported if imported in files else imported.rpartition(".")[0])
        edges[name] = (found & files.keys()) - {name}
    edges["verbs.profile"].remove("verbs.sql")
    for p in C_FILES:
        edges.setdefault(str(p.relative_to(REPO / "csrc").with_suffix("")), set())
    for file, included in includes():
        if file.suffix == ".h":
            edges[str(file.with_suffix(""))].add(included.removesuffix(".h"))
    assert_no_circle(edges)


def test_no_two_c_files_call_each_other() -> None:
    """Neither two of them nor a longer chain."""
    text = {path: without_comments(path) for path in C_FILES}
    home = {
        name: path
        for path, code in text.items()
        if path.suffix == ".c"
        for name in re.findall(r"^(?!static)\w[\w *]*?\b(fp_\w+)\([^;{]*\) \{", code, re.MULTILINE)
    }
    assert len(home) > 100
    edges = {
        str(path.relative_to(REPO)): {
            str(home[name].relative_to(REPO)) for name in re.findall(r"\bfp_\w+(?=\()", code) if name in home
        }
        for path, code in text.items()
        if path.suffix == ".c"
    }
    assert_no_circle({name: others - {name} for name, others in edges.items()})


@pytest.mark.parametrize("folder", HEADS)
def test_only_the_registry_knows_a_format(folder: str) -> None:
    """Code, not prose: a name or a string of the format, outside its own folder."""
    names = {f.name for f in formats.formats() if f.package.endswith(f".{folder}")}
    wrong = []
    for path in PY_SOURCES:
        module = module_of(path)
        registry = ("formats", "formats.heads", "verbs.keywords")
        if module in registry or module.startswith(f"formats.{folder}") or path.suffix != ".py":
            continue
        prefix = f"fp_{PREFIXES.get(folder, folder)}_"
        wrong += [f"{module}:{line}" for text, line in names_in(path).texts if text in names]
        wrong += [f"{module}:{line}" for name, line in names_in(path).attributes if name.startswith(prefix)]
    verbs = (f"cli.{folder}", "cli.batch")  # a verb may have the name of a format
    assert [w for w in wrong if w.split(":")[0] not in verbs and not w.startswith("cli:")] == []


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python 3.11.2, Debian 12's, matches `(?:a|b)*+` wrongly; of single characters, `[ab]*+`, it does not."""
    found = {
        f"{path.relative_to(REPO)}:{number}"
        for path in OUR_FILES
        if path.suffix == ".py" and path.is_relative_to(REPO / "fastprof")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\)(?:[?*+]|\{[\d,]+\})\+|\(\?>", line.partition("# ")[0])
    }
    assert found == set()
