"""LLVM sample profiles as input: levels, contexts, targets, damage."""

from __future__ import annotations

import io
import json
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FormatError
from fastprof.formats.pgo.binary import _magic, binary, extbinary
from fastprof.formats.pgo.levels import Level, Profile
from fastprof.formats.pgo.text import text
from tests.support.paths import CORPUS

Stack = tuple[tuple[str, int, int], ...]  # function, line, column


def rows(data: bytes, **options: Any) -> dict[str, Counter[Stack]]:
    """By value type: the sums of stacks, outermost frame first."""
    found: dict[str, Counter[Stack]] = {}
    with fastprof.open(io.BytesIO(data), from_="llvm-profile", **options) as profile:
        model = profile._model
        for batch in profile.batches():
            for k, type_ in enumerate(model.parts[batch.part].value_types):
                for stack, value in zip(batch["stack"], batch.values(k), strict=True):
                    frames = []
                    while stack:
                        stack, frame = model.row("stacks", stack)
                        function, line, column, _ = model.row("lines", model.row("frames", frame)[4])
                        frames.append((model.get_function(function).name.decode(), line, column))
                    found.setdefault(type_.name, Counter())[tuple(reversed(frames))] += value
    return {name: +sums for name, sums in found.items()}


def slowly(profile: Profile) -> dict[str, Counter[Stack]]:
    found: dict[str, Counter[Stack]] = {name: Counter() for name in ("samples", "calls", "entries")}

    def add(level: Level, callers: Stack, name: str) -> None:
        for (offset, discriminator), count in level.body.items():
            at = (*callers, (name, offset, discriminator))
            found["samples"][at] += count
            for target, calls in level.targets.get((offset, discriminator), {}).items():
                found["calls"][*at, (target, 0, 0)] += calls
        for (offset, discriminator), levels in level.nested.items():
            for inlinee, inner in levels.items():
                add(inner, (*callers, (name, offset, discriminator)), inlinee)

    for name, level in profile.functions.items():
        found["entries"][(name, 0, 0),] += level.head
        add(level, (), name)
    return {name: +sums for name, sums in found.items()}


places = st.tuples(st.integers(0, 65535), st.integers(0, 40))
names = st.sampled_from(["main", "_ZN3AddC2Ev", "a:b", "f.llvm.12", "_R1x"])
counts = st.integers(0, (1 << 63) - 1)


@st.composite
def levels(draw: st.DrawFn, depth: int = 3) -> Level:
    level = Level()
    level.total, level.head = draw(counts), draw(counts)
    level.body = draw(st.dictionaries(places, counts, max_size=4))
    for at in level.body:
        if targets := draw(st.dictionaries(names, counts, max_size=3)):
            level.targets[at] = targets
    if depth:
        for at in draw(st.lists(places, max_size=2)):
            level.nested[at] = {draw(names): draw(levels(depth - 1))}
    return level


@given(st.dictionaries(names, levels(), min_size=1, max_size=3))
def test_what_is_written_is_read(functions: dict[str, Level]) -> None:
    profile = Profile()
    profile.functions = functions
    expected = slowly(profile)
    found = rows(b"".join(text(profile)))
    assert {name: found.get(name, Counter()) for name in expected} == expected


@pytest.mark.parametrize("encode", [binary, extbinary])
@given(functions=st.dictionaries(names, levels(), min_size=1, max_size=3))
def test_what_is_written_in_binary_is_read(encode: Any, functions: dict[str, Level]) -> None:
    profile = Profile()
    profile.functions = functions
    expected = slowly(profile)
    found = rows(b"".join(encode(profile)))
    assert {name: found.get(name, Counter()) for name in expected} == expected


FILES = ["binary.llvmprof", "contexts-md5.llvmprof", "compressed.llvmprof", "sections.llvmprof"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("step", [1, 7])
def test_any_window_gives_the_same_rows(name: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import fastprof.core.source as module

    data = (CORPUS / "llvm-profile/good" / name).read_bytes()
    whole = rows(data)
    monkeypatch.setattr(module, "WINDOW", step)
    monkeypatch.setattr(module, "_LEAST", step)
    assert rows(data) == whole and sum(whole["samples"].values()) > 40


@pytest.mark.parametrize("name", FILES)
def test_every_cut_is_an_error(name: str) -> None:
    """Or a whole file; `lenient` keeps what is before it."""
    data = (CORPUS / "llvm-profile/good" / name).read_bytes()
    whole = rows(data)
    for n in range(20, len(data), 3):
        try:
            found = rows(data[:n])
        except FormatError as error:
            assert error.offset is not None
        else:
            assert all(sums <= whole[type_] for type_, sums in found.items())
        log = fastprof.info(io.BytesIO(data[:n]), from_="llvm-profile", lenient=True) if n > 300 else None
        assert log is None or log.losses or log.facts["records"] <= sum(map(len, whole.values()))


def _sections(data: bytes) -> dict[int, tuple[int, int, int]]:
    """By type: where the entry of the table is, offset, size."""
    import struct

    n = int.from_bytes(data[10:18], "little")
    entries = [(18 + 32 * k, *struct.unpack_from("<4Q", data, 18 + 32 * k)) for k in range(n)]
    return {kind: (at, offset, size) for at, kind, _, offset, size in entries}


def _patched(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (lambda data, s: _patched(data, 9, b"\x66"), "the version is 102"),
        (lambda data, s: _patched(data, 10, b"\xff" * 8), "the number of sections is"),
        (lambda data, s: _patched(data, s[32][0] + 16, b"\xff" * 8), "expected within"),
        (lambda data, s: _patched(data, s[32][0], b"\x25"), "a profile of type 37"),
        (lambda data, s: _patched(data, s[2][1], b"\x01"), "the rest of a table, expected its end"),
        (lambda data, s: _patched(data, s[2][1], b"\x7f"), "a name, expected a zero byte"),
        (lambda data, s: _patched(data, s[32][1] + 1, b"\x7f"), "the index of a name, expected one in the table"),
        (lambda data, s: _patched(data, s[32][1], b"\xff" * 10), "the calls of a function, expected a number below"),
        (lambda data, s: _patched(data, s[2][0] + 8, b"\x01"), "a compressed section"),
    ],
)
def test_damaged_sections(patch: Any, reason: str) -> None:
    data = (CORPUS / "llvm-profile/good/sections.llvmprof").read_bytes()
    damaged = patch(data, _sections(data))
    with pytest.raises(FormatError, match=reason) as caught:
        rows(damaged)
    assert caught.value.offset is not None
    if "version" not in reason and "number of sections" not in reason:
        log = fastprof.info(io.BytesIO(damaged), from_="llvm-profile", lenient=True)
        assert log.losses


def test_levels_of_binary_profiles_have_a_limit() -> None:
    from fastprof.core.varint import varint

    head = b"\xff\xe5\xd0\xb1\xf4\xc9\x94\xa8\x53\x67" + b"\0" * 6 + b"\x01f\0"
    deep = b"\0\0\0\0" + (b"\x01" + b"\0\0\0\0\0") * 5000 + b"\0" * 5001
    with pytest.raises(FormatError, match="the depth of inlined functions, expected at most 4096"):
        rows(head + deep)
    assert rows(head + b"\x05\0\0\x01\x02\x03" + varint(7) + b"\0\0")["samples"] == {(("f", 2, 3),): 7}


def test_contexts_are_stacks() -> None:
    found = rows((CORPUS / "llvm-profile/good/contexts.llvmprof").read_bytes())
    walk = (("main", 3, 0), ("walk", 1, 0))
    assert found["samples"][walk] == 20 and found["entries"] == {
        (("main", 3, 0), ("walk", 0, 0)): 2,
        (("main", 0, 0),): 1,
        (("leaf", 0, 0),): 5,
    }
    assert found["calls"] == {
        (("main", 3, 0), ("walk", 2, 1), ("leaf", 0, 0)): 5,
        (("main", 3, 0), ("walk", 2, 1), ("other", 0, 0)): 3,
    }
    assert found["samples"][("main", 3, 0), ("walk", 3, 0), ("size", 0, 0)] == 12


def test_functions_and_what_is_hot() -> None:
    log = fastprof.info(CORPUS / "llvm-profile/lbr.llvmprof")
    assert log.facts["profiled_functions"] == 15
    found = fastprof.top(CORPUS / "llvm-profile/small.llvmprof", n=2, sort="inclusive")
    assert (found.rows[0].name, found.rows[0].self, found.rows[0].inclusive) == ("main", 900444, 2794503)


def test_two_releases_are_compared(tmp_path: Path) -> None:
    old, new = tmp_path / "a.llvmprof", tmp_path / "b.llvmprof"
    old.write_text("main:30:1\n 1: 20\n 2: get:10\n  0: 10\n")
    new.write_text("main:30:1\n 1: 20\n 2: get:40\n  0: 40\n")
    found = fastprof.diff(old, new)
    assert [(row.name, row.old[0], row.new[0]) for row in found.rows] == [("get", 10, 40), ("main", 20, 20)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"   4: 1\n", "a function, a place or a count"),  # no such level
        (b" 4 1\n", "a function, a place or a count"),
        (b" 4: 1x\n", "a function, a place or a count"),
        (b" 4: 1 f:x\n", "a function, a place or a count"),
        (b" 4: 9223372036854775808\n", "a function, a place or a count"),
        (b" 4294967296: 1\n", "a function, a place or a count"),
        (b" 4: f\n", "a function, a place or a count"),
        (b"f:1\n", "a function, a place or a count"),
        (b":1:1\n", "a function, a place or a count"),
        (b"[main @ f]:1:1\n", "a function, a place or a count"),
        (b" 4: 1", "a newline"),
    ],
)
def test_damage(line: bytes, reason: str) -> None:
    data = b"main:5:1\n 1: 5\n" + line + (b"g:1:1\n 1: 7\n" if line.endswith(b"\n") else b"")
    with pytest.raises(FormatError, match=reason) as caught:
        rows(data)
    assert caught.value.offset == 15
    log = fastprof.info(io.BytesIO(data), from_="llvm-profile", lenient=True)
    assert log.losses["unreadable-lines"] == 1
    assert log.facts["totals"]["samples"] == 5 + 7 * line.endswith(b"\n")


def test_lines_inside_a_damaged_function_are_lost_with_it() -> None:
    data = b"main:5:1\n 1: 5\nbroken\n 1: 100\ng:1:1\n 1: 7\n"
    log = fastprof.info(io.BytesIO(data), from_="llvm-profile", lenient=True)
    assert log.losses["unreadable-lines"] == 2 and log.facts["totals"]["samples"] == 12


def test_a_line_goes_on_in_the_next_batch() -> None:
    """Each batch once read the line from its start."""
    data = b"main:1:1\n 1: 7" + b" a:1" * 4_000_000 + b" \n 2: 5 b:2  c:3\n"
    facts = fastprof.info(io.BytesIO(data), from_="llvm-profile").facts
    assert facts["totals"] == {"samples": 12, "calls": 4_000_005, "entries": 1}


def test_rows_of_deep_contexts() -> None:
    """Each row once cost as much as its depth."""
    data = b"[" + b":1 @ ".join([b"f"] * 4096) + b"]:1:1\n" + b" 1: 1\n" * 400_000
    facts = fastprof.info(io.BytesIO(data), from_="llvm-profile").facts
    assert facts["totals"]["samples"] == 400_000


def test_deep_contexts_of_many_functions_have_a_limit() -> None:
    """A context of 12 KB was opened anew by each function of 5 bytes."""
    sections = [
        (1, 2 << 32, b"\0"),
        (2, 0, b"\1f\0"),
        (6, 0, b"\1\x80\x20" + bytes(3 * 4096)),
        (32, 0, bytes(5 * 40_000)),
    ]
    head = _magic(4) + (len(sections)).to_bytes(8, "little")
    at = len(head) + 32 * len(sections)
    for kind, flags, content in sections:
        head += struct.pack("<4Q", kind, flags, at, len(content))
        at += len(content)
    data = head + b"".join(content for _, _, content in sections)
    with pytest.raises(FormatError, match="the sum of the depths of contexts"):
        rows(data)
    assert fastprof.info(data, lenient=True).losses == {"unreadable-rest": 1}


def test_deep_levels_have_a_limit() -> None:
    data = b"f:1:1\n" + b"".join(b" " * k + b"1: f:1\n" for k in range(1, 5000))
    with pytest.raises(FormatError, match="a function, a place or a count"):
        rows(data)


def test_overlap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The figures of llvm-profdata 19 for these profiles."""
    old, new = tmp_path / "a.llvmprof", tmp_path / "b.llvmprof"
    old.write_text("main:9:0\n 4: 534\n 4.2: 534\n 5: 1075\n 6: 2080\n 10: get:1000\n  1: 1000\n")
    new.write_text("main:9:0\n 4: 534\n 4.2: 5\n 5: 1075\n 10: get:2000\n  1: 1000\n  2: 3\nother:100:3\n 1: 100\n")
    assert main(["diff", str(old), str(new), "--stats"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"similarity +47\.409\n", text) and re.search(r"functions +50\.000 +1 +0 +1\n", text), text
    found = fastprof.diff(old, old, stats=True).overlap
    assert found and (found.similarity, found.samples, found.only_old) == (1.0, 1.0, 0.0)
    assert "overlap" not in json.loads(run_json(capsys, "diff", str(old), str(new)))
    assert json.loads(run_json(capsys, "diff", str(old), str(new), "--stats"))["overlap"]["functions"]["both"] == 1
    for words, reason in (
        (["-", str(new)], "reads profiles twice"),
        ([str(old), str(CORPUS / "callgrind/good/cfi.callgrind")], "this is no profile for compilers"),
        ([str(old), str(new), "--csv"], "prints rows only"),
        ([str(old), str(new), "-o", str(tmp_path / "c.pb")], "chooses printed rows"),
    ):
        assert main(["diff", *words, "--stats", "--union"]) in (1, 2)
        assert reason in capsys.readouterr().err


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--json"]) == 0
    return capsys.readouterr().out
