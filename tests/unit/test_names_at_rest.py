"""Many names leave memory for a temporary file: the same output, and little memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core import model, spill
from fastprof.core._c import lib
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model
from tests.support.distinct import INPUTS
from tests.support.peak import peak

MIB = 1 << 20


def graph(path: Path, functions: int, name: str, calls: int = 1) -> str:
    """Each function has `calls` calls of the next ones, at lines of their own."""
    with path.open("w") as out:
        out.write("events: Ir\n")
        for f in range(functions):
            out.write(f"fn=({f + 1}) {name}{f}\n1 {f + 1}\n")
            for k in range(calls):
                out.write(f"cfn=({(f + k + 1) % functions + 1}) {name}{(f + k + 1) % functions}\n")
                out.write(f"calls=1 1\n{k + 2} 1\n")
    return str(path)


def converted(paths: list[str], to: Path) -> bytes:
    fastprof.convert(paths, str(to))
    return to.read_bytes()


@pytest.mark.parametrize("suffix", ["callgrind", "cachegrind", "pb", "folded", "fpa", "parquet"])
@pytest.mark.parametrize("several", [False, True])
def test_the_same_output(suffix: str, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [graph(tmp_path / f"callgrind.out.{i}", 300, f"{i % 2}", 3) for i in range(3 if several else 1)]
    whole = converted(paths, tmp_path / f"whole.{suffix}")
    moved = []
    move = spill.names_to_file
    monkeypatch.setattr(spill, "names_to_file", lambda *args: moved.append(args) or move(*args))
    monkeypatch.setattr(model, "_NAMES", 1)
    assert converted(paths, tmp_path / f"moved.{suffix}") == whole
    assert moved


def test_without_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names stay in memory, and no other file is tried."""
    path = graph(tmp_path / "callgrind.out.1", 2_000, "f")
    whole = converted([path], tmp_path / "whole.callgrind")
    tried: list[int] = []

    def none() -> Any:
        tried.append(1)
        raise FastprofError("none")

    monkeypatch.setattr(model, "_NAMES", 1)
    with open(os.devnull, "rb") as unwritable:
        for file in (none, lambda: unwritable):
            monkeypatch.setattr(spill, "temporary_file", file)
            assert converted([path], tmp_path / "kept.callgrind") == whole
    assert tried == [1]


def test_names_of_a_profile_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process may fork, and the file would be shared."""
    monkeypatch.setattr(model, "_NAMES", 1)
    with fastprof.open(graph(tmp_path / "callgrind.out.1", 2, "f")) as profile:
        assert [batch.part for batch in profile.batches()] == [0]
        assert profile._tables.names_file is None


def test_names_come_back() -> None:
    names = Model()
    ids = [names.intern(b"%d" % i * 1_000) for i in range(1_000)]
    assert lib.fp_model_rest_names(names.c, 1 << 30) == 0
    names_file: list[Any] = []
    spill.names_to_file(names._strings, names_file)
    more = [names.intern(b"%d" % i * 1_000) for i in range(4_000)]
    assert lib.fp_model_rest_names(names.c, 1) == 0
    assert more[:1_000] == ids
    assert [names.string(i) for i in more] == [b"%d" % i * 1_000 for i in range(4_000)]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names stay in memory")
def test_a_disk_that_becomes_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a file that was closed.  The error names its folder, not memory."""
    move = spill.names_to_file

    def moved(strings: Any, file: list[Any]) -> None:
        is_first = not file
        move(strings, file)
        if is_first:
            with open(os.devnull, "rb") as unwritable:
                os.dup2(unwritable.fileno(), file[0].fileno())

    monkeypatch.setattr(spill, "names_to_file", moved)
    monkeypatch.setattr(model, "_NAMES", 1)
    path = graph(tmp_path / "callgrind.out.1", 20_000, "f" * 200)
    with pytest.raises(FastprofError, match=r"temporary file in .*: "):
        fastprof.convert([path], str(tmp_path / "out.callgrind"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names stay in memory")
@pytest.mark.parametrize("verb", [["info"], ["convert", "-o", os.devnull, "-t", "callgrind"]])
def test_long_names_take_little(verb: list[str], tmp_path: Path) -> None:
    few, many = graph(tmp_path / "few", 100, "f" * 2_000), graph(tmp_path / "many", 20_000, "f" * 2_000)
    assert peak(*verb, "-q", many) < peak(*verb, "-q", few) + 24 * MIB


def test_an_estimate_keeps_arcs_with_stacks_only(tmp_path: Path) -> None:
    for name, rows in (("few", 1_000), ("many", 600_000)):
        INPUTS["graph"](tmp_path / name, rows)
    verb = ("convert", "-o", os.devnull, "-t", "folded", "-q")
    assert peak(*verb, str(tmp_path / "many")) < peak(*verb, str(tmp_path / "few")) + 80 * MIB
