"""Names of code without a symbol (csrc/core/address.h)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fastprof
from fastprof.bridges.project.project import to_graph
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from tests.reference import gperftools, profile_proto
from tests.support import profiles
from tests.support.paths import REPO
from tests.support.profiles import Frame, Sample

MAPS = b"""00400000-00410000 r-xp 00002000 08:01 4711       /srv/my demo/prog
7f0000000000-7f0000100000 r-xp 00001000 08:01 12  /lib/libx.so.6
7fff00000000-7fff00002000 r-xp 00000000 00:00 0   [vdso]
"""
CHAIN = (0x7FFF00000200, 0x7FFF00000300, 0x401000, 0x7F0000000010, 0x55)
NAMES = {"[vdso+0x200]", "[vdso+0x2ff]", "[prog+0x2fff]", "[libx.so.6+0x100f]", "0x54"}


def names(source: Path) -> tuple[set[str], set[str]]:
    """Functions of a profile in a Callgrind and in a pprof file."""
    graph, stacks = source.with_suffix(".callgrind"), source.with_suffix(".pb")
    fastprof.convert([str(source)], str(graph), symbolize=False, compress_names=False)
    fastprof.convert([str(source)], str(stacks), symbolize=False, name_addresses=True)
    p = profile_proto.parse(stacks.read_bytes())
    in_graph = set(re.findall(r"^c?fn=(.*)$", graph.read_text(), re.MULTILINE))
    in_stacks = {p.string_table[f.name] for f in p.function}
    return in_graph, in_stacks


def test_an_address_has_one_name_in_all_formats(tmp_path: Path) -> None:
    (tmp_path / "in.prof").write_bytes(gperftools.write([(3, CHAIN)], text=MAPS))
    assert names(tmp_path / "in.prof") == (NAMES, NAMES)


@pytest.mark.parametrize("path", sorted((REPO / "tests/corpus/gperftools/good").glob("*.prof")), ids=lambda p: p.name)
def test_names_of_real_profiles_are_the_same_in_all_formats(path: Path, tmp_path: Path) -> None:
    (tmp_path / "in.prof").write_bytes(path.read_bytes())
    in_graph, in_stacks = names(tmp_path / "in.prof")
    assert in_graph == in_stacks


@pytest.mark.parametrize(
    ("object_", "name"),
    [
        ("/lib/libx.so", "[libx.so+0x10f]"),
        ("libx.so", "[libx.so+0x10f]"),
        ("/tmp/a [b]", "[a [b]+0x10f]"),
        ("/tmp/[b]", "[b+0x10f]"),
        ("[vdso]", "[vdso+0x10f]"),
        ("[anon:a/b]", "[anon:a/b+0x10f]"),
        ("[]", "[[]+0x10f]"),
        ("/lib/", "0x100f"),
        ("x" * 300, f"[{'x' * 300}+0x10f]"),
    ],
)
def test_name_of_the_object(object_: str, name: str) -> None:
    frame = Frame((), 0x1010, (object_, 0x1000, 0x2000, 0x100), returns=True)
    model = Model()
    batches = profiles.stacks(model, [Sample((frame,), (1,))])
    for batch in to_graph(batches, model, Options(), Log()):
        assert [model.get_function(f).name.decode() for f in batch["function"]] == [name]


def test_a_function_named_after_an_address_begins_there() -> None:
    """At a leaf's address, and at the return address of a preceding call."""
    leaf, caller = Frame((), 0x100F), Frame((), 0x1010, returns=True)
    model = Model()
    batches = profiles.stacks(model, [Sample((caller, leaf), (1,)), Sample((leaf, caller), (1,))])
    found = [row for _, row in profiles.graph_rows(model, to_graph(batches, model, Options(), Log()))]
    assert {row.at.function.name for row in found} == {"0x100f"}
    assert {row.target_address for row in found if row.callee} == {0x100F}
