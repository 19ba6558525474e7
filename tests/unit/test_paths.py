"""Outputs below one folder: two with the same path, or a path outside, are refused before any file is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.store import adding
from fastprof.store.listing import members
from fastprof.verbs import output_collisions
from fastprof.verbs.batch.shards import FileList

DUMP = "events: Ir\nfl=a.c\nfn=f\n1 7\n"


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "dump.callgrind"
    path.write_text(DUMP)
    return path


def store_of(dump: Path, *names: str) -> str:
    with adding.adding("s.fpa") as session:
        for name in names:
            session.add(str(dump), name)
    return "s.fpa"


CLASHES = [
    (("a", "./a"), "the profile 'a' and the profile './a' would both become out/a.folded"),
    (("a", "b", "./././b"), "'b' and the profile './././b' would both become out/b.folded"),
    (("a/b", "a//b"), "would both become out/a/b.folded"),
    (("x/a", "y/a"), "would both become out/y/a.folded"),  # out/y is a link to out/x
    (("a", "a.folded/b"), "the profile 'a' would become out/a.folded, which is the folder of another output"),
    (("a.folded/b/c", "./a"), "the profile './a' would become out/./a.folded, which is the folder of another output"),
    (("a", "b/../a"), "the name 'b/../a' leads out of the output folder"),
    (("a", "/a"), "the name '/a' leads out of the output folder"),
    (("a", "../../a"), "the name '../../a' leads out of the output folder"),
    (("a", "b\0"), r"the name 'b\x00' has a NUL byte"),
]


@pytest.mark.parametrize(("names", "says"), CLASHES)
def test_members_without_a_place_each(
    names: tuple[str, ...], says: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_of(dump, *names)
    os.makedirs("out/x")
    os.symlink("x", "out/y")
    assert main(["archive", "extract", "s.fpa", "*", "-t", "folded", "-o", "out"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("fastprof: s.fpa: ") and says in said
    assert sorted(os.listdir("out")) == ["x", "y"] and os.listdir("out/x") == []
    # each name alone gets a path
    for n, name in enumerate(names):
        if "\0" not in name:
            assert main(["archive", "extract", "s.fpa", name, "-o", f"{n}.folded"]) == 0
            assert Path(f"{n}.folded").read_text() == "f 7\n"


@pytest.mark.parametrize(
    ("names", "fold", "clashes"),
    [
        (("a", "A"), output_collisions._as_it_is, False),
        (("a", "A"), output_collisions._case, True),
        (("\u00e9", "e\u0301"), output_collisions._as_it_is, False),
        (("\u00e9", "e\u0301"), output_collisions._case, False),
        (("\u00e9", "e\u0301"), output_collisions._composed, True),
        (("\u00c9", "e\u0301"), output_collisions.folded, True),
        (("stra\u00dfe/a", "STRASSE/a"), output_collisions.folded, True),
        (("A.folded/b", "a"), output_collisions.folded, True),
    ],
)
def test_what_the_file_system_ignores(
    names: tuple[str, ...], fold: Callable[[str], str], clashes: bool, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_of(dump, *names)
    monkeypatch.setattr(output_collisions, "_folding_of", lambda outdir: fold)
    code = main(["archive", "extract", "s.fpa", "*", "-t", "folded", "-o", "out"])
    assert code == (1 if clashes else 0)
    assert len([path for path in Path("out").rglob("*") if path.is_file()]) == (0 if clashes else len(names))


def test_what_this_file_system_ignores_is_found_out_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "\u00e9").touch()
    fold = output_collisions._folding_of(str(tmp_path / "not/yet/there"))
    assert sorted(os.listdir(tmp_path)) == ["a", "\u00e9"]
    assert (fold("a") == fold("A")) == (tmp_path / "A").exists()
    assert (fold("\u00e9") == fold("e\u0301")) == (tmp_path / "e\u0301").exists()


def test_a_profile_does_not_replace_its_archive(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_of(dump, "s", "t")
    before = Path("s.fpa").read_bytes()
    assert main(["archive", "extract", "s.fpa", "*", "-t", "archive", "-o", "."]) == 1
    assert "the profile 's' would replace the archive" in capsys.readouterr().err
    assert Path("s.fpa").read_bytes() == before and not os.path.exists("t.fpa")


def test_a_batch_refuses_members_without_a_place_each(dump: Path) -> None:
    store_of(dump, "a", "./a", "b\0")
    with pytest.raises(UsageError, match=r"s\.fpa:a would both become out/a\.folded: pass a folder that has both"):
        fastprof.batch_convert(["s.fpa:a", "s.fpa:./a"], "out", to="folded")
    with pytest.raises(UsageError, match="its output name has a NUL byte"):
        fastprof.batch_convert(["s.fpa:b*"], "out", to="folded")
    with pytest.raises(UsageError, match="its output name has a NUL byte"):
        fastprof.batch_plan(["s.fpa:b*"], "plan")
    with pytest.raises(UsageError, match="would both be named 'a'"):
        fastprof.batch_plan(["s.fpa:a", "s.fpa:./a"], "plan")
    assert sorted(os.listdir()) == ["dump.callgrind", "s.fpa"]


def plan(*files: tuple[str, str]) -> str:
    lines: list[dict[str, Any]] = [{"plan": 1, "files": len(files)}]
    lines += [{"path": path, "name": name, "size": 1, "mtime_ns": 1} for path, name in files]
    Path("plan").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "plan"


@pytest.mark.parametrize(
    ("path", "name", "says"),
    [
        ("dump.callgrind", "../../x", "line 2: the name '../../x' leads out of the output folder"),
        ("dump.callgrind", "a/../../x", "line 2: the name 'a/../../x' leads out of the output folder"),
        ("dump.callgrind", "/x", "line 2: the name '/x' leads out of the output folder"),
        ("dump.callgrind", "a\0b", r"line 2: the name 'a\x00b' has a NUL byte"),
        ("dump.callgrind", "a\ud800", r"line 2: the name 'a\ud800' has a character that no file name can have"),
        ("dump\0", "a", r"line 2: 'dump\x00' cannot be a path"),
        ("dump\ud800", "a", r"line 2: 'dump\ud800' cannot be a path"),
        ("s.fpa:\ud800", "a", r"line 2: 's.fpa:\ud800' cannot be a path"),
    ],
)
@pytest.mark.parametrize("verb", ["convert", "archive"])
def test_a_hostile_plan(
    verb: str, path: str, name: str, says: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_of(dump, "a")
    before = sorted(os.listdir())
    more = ["-t", "folded"] if verb == "convert" else []
    assert main(["batch", verb, "--plan", plan((path, name)), *more, "-o", "out"]) == 1
    assert capsys.readouterr().err == f"fastprof: plan: {says}\n"
    assert sorted(os.listdir()) == sorted([*before, "plan"])


def test_names_of_a_plan_that_are_one(dump: Path) -> None:
    store_of(dump, "a\0b")
    with pytest.raises(FastprofError, match="plan: line 3: the name 'a' repeats line 2"):
        [*FileList(plan(("dump.callgrind", "a"), ("dump.callgrind", "a")))]
    with pytest.raises(UsageError, match=r"would both become out/a\.folded"):
        fastprof.batch_convert([], "out", to="folded", plan=plan(("dump.callgrind", "a"), ("s.fpa:a", "./a")))
    assert not os.path.exists("out")
    # the name of a profile in a store may contain a NUL byte
    fastprof.batch_archive([], "t.fpa", plan=plan(("s.fpa:a\0b", "b")))
    assert [member["name"] for member in members("t.fpa")] == ["b"]
