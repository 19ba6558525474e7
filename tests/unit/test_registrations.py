"""A start is light: recognizing an input imports the registrations that it may lead to, `info` and `top` what they
use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache

import pytest

from fastprof import formats
from fastprof.core.source import Source
from fastprof.formats.heads import HEADS
from tests.contract.dump import files
from tests.support.conversions import format_of
from tests.support.paths import CORPUS, REPO

# Modules before any registration is opened, and those added by recognizing the input.
DETECT = """
import sys
from fastprof import formats, plan
from fastprof.core.source import Source
with Source(sys.argv[1]) as source:
    before = set(sys.modules)
    found = formats.detect(source)
    assert found.name == sys.argv[2], found.name
print(*before)
print(*(set(sys.modules) - before))
"""
INFO = """
import sys
from fastprof.verbs.info import info
info(sys.argv[1], from_=sys.argv[2])
print(*sys.modules)
"""


def modules(code: str, file: str) -> list[set[str]]:
    """The output of a fresh process; without imports of `site`."""
    paths = os.pathsep.join([str(REPO), *sys.path])
    command = [sys.executable, "-S", "-c", code, str(CORPUS / file), format_of(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    return [set(line.split()) for line in done.stdout.splitlines()]


# Modules of the standard library that take milliseconds to import.
HEAVY = {"typing", "dataclasses", "inspect", "json", "tempfile", "subprocess", "argparse", "lzma", "bz2", "gzip"}
# one file per format; a compressed file needs its decompressor
FILES = [*{format_of(file): file for file in files("good") if not file.endswith(".gz")}.values()]


def registrations(file: str) -> set[str]:
    """The registrations that an input of a corpus file may lead to."""
    with Source(str(CORPUS / file)) as source:
        head = source.head
    return {f"fastprof.formats.{folder}" for folder in HEADS if any(one.fits(head) for one in HEADS[folder][1])}


@pytest.mark.parametrize("file", FILES)
def test_recognizing_imports_the_registrations_alone(file: str) -> None:
    """Perfetto's reads tags of messages, perf's has an option, uftrace's and OProfile's look into archives."""
    before, opened = modules(DETECT, file)
    ours = {name for name in opened if name.startswith("fastprof")}
    assert ours - registrations(file) <= {f"fastprof.core.{name}" for name in ("varint", "branches", "tar", "folder")}
    assert formats.get(format_of(file)).package in ours
    assert {name.partition(".")[0] for name in before} - sys.stdlib_module_names == {
        "__main__",
        "fastprof",
        "_cffi_backend",
    }
    assert not HEAVY & before
    ours = {name for name in before if name.startswith("fastprof")}
    layers = {"fastprof", "fastprof.plan", "fastprof.formats", "fastprof.symbols", "fastprof.bridges"}
    layers |= {f"fastprof.{name}" for name in ("bridges.selected", "bridges.transforms", "formats.heads")}
    assert {name for name in ours if not name.startswith("fastprof.core")} == layers


@pytest.mark.parametrize("file", FILES)
def test_reading_imports_no_other_format(file: str) -> None:
    folder = formats.get(format_of(file)).package
    (loaded,) = modules(INFO, file)
    others = {name for name in loaded if name.startswith("fastprof.formats.") and not name.startswith(f"{folder}.")}
    assert others <= {"fastprof.formats.heads", "fastprof.formats.archive"} | registrations(file)
    assert not {"pycxxfilt", "isal", "fastprof.bridges.rows.unrepresentable"} & loaded


# What `info` and `top` of a small pprof file import besides fastprof's `core`, which both use.
STANDARD = {
    *("__future__", "_bisect", "_cffi_backend", "_collections", "_functools", "_operator", "atexit", "bisect"),
    *("collections", "collections.abc", "contextlib", "functools", "gc", "isal", "isal._isal", "isal._version"),
    *("isal.igzip_lib", "itertools", "keyword", "math", "operator", "reprlib", "types"),
}
COMMON = {
    *("fastprof", "fastprof.__main__", "fastprof.plan", "fastprof.symbols", "fastprof.bridges", "fastprof.verbs"),
    *("fastprof.bridges.selected", "fastprof.bridges.transforms"),
    *("fastprof.bridges.rows", "fastprof.bridges.rows.loss_watch", "fastprof.bridges.rows.reported"),
    *("fastprof.cli", "fastprof.cli.arguments", "fastprof.cli.as_json", "fastprof.cli.budget", "fastprof.cli.messages"),
    *("fastprof.cli.quick", "fastprof.cli.text", "fastprof.formats", "fastprof.formats.archive"),
    *("fastprof.formats.heads", "fastprof.formats.pprof.read", "fastprof.formats.pprof.reported"),
    *("fastprof.inputs", "fastprof.inputs.expand", "fastprof.inputs.reported", "fastprof.inputs.stored"),
    *("fastprof.verbs.reads", "fastprof.verbs.reported", "fastprof.verbs.run"),
}
OWN = {
    "info": {"fastprof.cli.info", "fastprof.verbs.info", "fastprof.bridges.room"},
    "top": {
        *("_struct", "array", "struct", "fastprof.cli.top", "fastprof.verbs.top", "fastprof.verbs.branches"),
        *("fastprof.verbs.function_costs", "fastprof.verbs.groups", "fastprof.bridges.room"),
        *("fastprof.bridges.project", "fastprof.bridges.project.project", "fastprof.bridges.project.reported"),
        *("fastprof.bridges.sums", "fastprof.bridges.sums.aggregate", "fastprof.bridges.sums.reported"),
        *("fastprof.bridges.sums.sorted_runs", "fastprof.bridges.rows.allocator", "fastprof.bridges.rows.coarse"),
        *("fastprof.bridges.rows.only_names", "fastprof.bridges.rows.symbolize"),
        "fastprof.bridges.rows.unrepresentable",
    },
}
CORE = {
    *("_c", "_typing", "allocators", "branches", "counted", "elided", "engine", "errors", "figures", "lazy_re"),
    *(
        "loaded",
        "log",
        "model",
        "named_alike",
        "native",
        "options",
        "c_memory",
        "parts",
        "reported",
        "source",
        "streams",
    ),
    *("text_counts", "thread_names", "units", "urls", "chosen_value", "version", "messages"),
}
OWN_CORE = {"info": {"varint"}, "top": {"function_names", "held", "labels", "spill", "unknown_names"}}
# Prints the modules that were imported, and the files that were opened, except modules.
START = """
import sys
before, opened = {*sys.modules}, []
sys.addaudithook(lambda name, args: opened.append(args[0]) if name == "open" else None)
sys.argv[0] = "fastprof"
out, sys.stdout = sys.stdout, open("/dev/null", "w")
opened.clear()
from fastprof.__main__ import main
main()
print(*{*sys.modules} - before, file=out)
print(*[one for one in opened if not str(one).endswith((".py", ".pyc", ".so", ".pyx"))], sep="\\n", file=out)
"""


@pytest.mark.parametrize("verb", OWN)
def test_what_a_start_imports_and_reads(verb: str) -> None:
    """Nothing that the verb does not use.  A change here changes the time of every `info` and `top`."""
    file = str(CORPUS / "pprof/good/go-cpulabels.pb.gz")
    paths = os.pathsep.join([str(REPO), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": "/tmp"}
    command = [sys.executable, "-S", "-c", START, verb, "-q", file]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    imported, *opened = done.stdout.splitlines()
    core = {f"fastprof.core.{name}" for name in CORE | OWN_CORE[verb]} | {"fastprof.core", "fastprof.core._c.lib"}
    found = {*imported.split()} - registrations("pprof/good/go-cpulabels.pb.gz") - {"os", "os.path", "stat", "_stat"}
    assert found - {"posixpath", "genericpath", "_collections_abc"} - STANDARD - COMMON - OWN[verb] - core == set()
    assert {one for one in opened if one not in ("/tmp", "None") and not one.isdigit()} == {file}


@pytest.mark.parametrize("verb", OWN)
@pytest.mark.parametrize("file", ["folded/good/plain.folded", "callgrind/good/cfi.callgrind"])
def test_text_formats_start_without_patterns(file: str, verb: str) -> None:
    """Importing `re` and compiling patterns would be a seventh of the start."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO), *sys.path])}
    command = [sys.executable, "-S", "-c", START, verb, "-q", str(CORPUS / file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    imported = {*done.stdout.splitlines()[0].split()}
    assert "fastprof.core.lazy_re" in imported
    assert not imported & {"re", "json", "fastprof.cli.budget"}


# Readers without a property test of their own: perf.data is compared with perf itself, by every field, and profiles for
# compilers with LLVM's tools.
NO_PROPERTY = {"perf", "llvm-profile", "bolt"}


@cache
def text_of(folder: str, pattern: str) -> str:
    return "".join(path.read_text() for path in (REPO / "tests" / folder).glob(pattern))


def test_a_reader_has_a_page_a_property_test_and_a_fuzz_target() -> None:
    lacks = {}
    for format_ in formats.formats():
        if not format_.reader:
            continue
        room, name = format_.package.rpartition(".")[2], re.escape(format_.name)
        module = name.replace(r"\-", "_")
        lacks[format_.name] = [
            what
            for what, found in {
                "page": (REPO / "docs" / "formats" / f"{format_.name}.md").exists() or format_.name == "cpuprofile",
                "property test": re.search(
                    rf'"{name}"|\bimport ([\w ]+, )*{module}\b', text_of("property", "test_*.py")
                ),
                "fuzz target": re.search(rf'"{room}/|"{name}["/]', text_of("fuzz", "*_fuzz.*")),
            }.items()
            if not found
        ]
    assert {name for name, what in lacks.items() if what == ["property test"]} == NO_PROPERTY
    assert {name: what for name, what in lacks.items() if what and name not in NO_PROPERTY} == {}
