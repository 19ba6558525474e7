"""fastprof merge: the inputs that are merged, and its messages."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from tests.support.paths import CORPUS

BOTH = b"events: Ir Dr\nfl=a.c\nfn=f\n1 5 2\n2 7 1\nsummary: 12 3\n"
ONE = b"events: Ir\nfl=a.c\nfn=f\n1 10\n3 20\nsummary: 30\n"
OTHER = b"events: Dr I1mr\nfl=a.c\nfn=f\n1 100 9\nsummary: 100 9\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, data in (("both", BOTH), ("one", ONE), ("other", OTHER)):
        (tmp_path / f"{name}.cachegrind").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def merged(*inputs: str, to: str = "cachegrind", **options: Any) -> list[str]:
    """The lines of the result, from events: on."""
    fastprof.merge([f"{name}.cachegrind" for name in inputs], "out", to=to, **options)
    text = Path("out").read_text()
    return text[text.index("events:") :].splitlines()


def test_sums(files: Path) -> None:
    assert merged("both", "both") == ["events: Ir Dr", "fl=a.c", "fn=f", "1 10 4", "2 14 2", "summary: 24 6"]


# ---- value types


@pytest.mark.parametrize("verb", [fastprof.merge, fastprof.convert])
@pytest.mark.parametrize("to", ["cachegrind", "callgrind", "pprof", "folded", "archive"])
def test_inputs_that_count_different_things_are_refused(verb: Any, to: str, files: Path) -> None:
    with pytest.raises(
        UsageError,
        match=r"one.cachegrind: has Ir, but both.cachegrind has Ir, Dr; .* union=True .* intersect=True .* value=",
    ):
        verb(["both.cachegrind", "one.cachegrind"], "out", to=to)
    assert not (files / "out").exists()


MIXED = [
    ("xray/good/fdr5-busy.xray", "callgrind/good/cfi.callgrind", "callgrind", "time/nanoseconds, calls/count", "Ir"),
    ("xray/good/fdr5-busy.xray", "folded/good/plain.folded", "pprof", "time/nanoseconds, calls/count", "samples/count"),
    ("pprof/good/go-heap.pb.gz", "gperftools/good/plain.prof", "callgrind", "alloc_objects/count", "cpu/nanoseconds"),
    ("xray/good/profile-bare.xray", "xray/good/fdr5-busy.xray", "callgrind", "time/ticks", "time/nanoseconds"),
]


@pytest.mark.parametrize(("one", "other", "to", "mine", "theirs"), MIXED)
def test_of_any_formats(one: str, other: str, to: str, mine: str, theirs: str, tmp_path: Path) -> None:
    for pair in ((one, other), (other, one)):
        with pytest.raises(UsageError, match="union=True") as caught:
            fastprof.merge([CORPUS / file for file in pair], tmp_path / "out", to=to)
        for text in (one, other, mine, theirs):
            assert text in str(caught.value)
    log = fastprof.merge([CORPUS / one, CORPUS / other], tmp_path / "out", to=to, union=True)
    assert not log.losses


def test_union(files: Path) -> None:
    lines = ["events: Ir Dr", "fl=a.c", "fn=f", "1 15 2", "2 7 1", "3 20 0", "summary: 42 3"]
    assert merged("both", "one", union=True) == lines


def test_intersect(files: Path) -> None:
    for inputs in (("both", "one"), ("one", "both")):
        assert merged(*inputs, intersect=True) == ["events: Ir", "fl=a.c", "fn=f", "1 15", "2 7", "3 20", "summary: 42"]
    lines = ["events: Dr", "fl=a.c", "fn=f", "1 102", "2 1", "summary: 103"]
    for inputs in (("both", "other"), ("other", "both")):
        assert merged(*inputs, intersect=True) == lines
    with pytest.raises(UsageError, match="no value type is common to all inputs"):
        merged("one", "other", intersect=True)
    with pytest.raises(UsageError, match="choose one"):
        merged("one", "other", intersect=True, union=True)


def test_intersect_of_stacks(tmp_path: Path) -> None:
    """gperftools: samples and cpu; folded stacks: samples."""
    inputs = [CORPUS / "gperftools/good/plain.prof", CORPUS / "folded/good/plain.folded"]
    totals = [fastprof.info(path).facts["totals"]["samples"] for path in inputs]
    for order in (inputs, inputs[::-1]):
        for to in ("pprof", "callgrind"):
            fastprof.merge(order, tmp_path / "out", to=to, intersect=True)
            assert fastprof.info(tmp_path / "out").facts["totals"] == {"samples": sum(totals)}


def test_value_is_all_that_has_to_be_there(files: Path) -> None:
    assert merged("both", "one", value="Ir")[-1] == "summary: 42"
    with pytest.raises(
        UsageError,
        match=r"other.cachegrind: has no such value type, but one.cachegrind has Ir; use union=True \(missing .* 0\)$",
    ):
        merged("one", "other", value="Ir")


def test_one_input_has_its_parts_added_up(files: Path) -> None:
    part = "part: {0}\nevents: Ir\nfn=f\n1 {0}\n"
    (files / "parts.cachegrind").write_text("version: 1\n" + "".join(map(part.format, (1, 2, 3))))
    assert merged("parts", to="callgrind").count("1 6") == 1


# ---- which inputs


def test_a_list_of_names(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = merged("one", "one", "one")
    (files / "names").write_bytes(b"one.cachegrind\0one.cachegrind")
    assert main(["merge", "-q", "one.cachegrind", "--files0-from", "names", "-o", "x.cachegrind"]) == 0
    assert (files / "x.cachegrind").read_text().endswith("\n".join(expected) + "\n")
    command = [sys.executable, "-m", "fastprof", "merge", "--files0-from", "-", "-o", "y.cachegrind"]
    subprocess.run(
        command, input=b"one.cachegrind\0" * 3, check=True, env=os.environ | {"PYTHONPATH": str(CORPUS.parents[1])}
    )
    assert (files / "y.cachegrind").read_bytes() == (files / "x.cachegrind").read_bytes()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (b"one.cachegrind\0\0one.cachegrind\0", "names: name 2 is empty"),
        (b"", "no input given"),
        (None, "names: No such file"),
    ],
)
def test_a_list_of_names_that_is_none(
    names: bytes | None, message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if names is not None:
        (files / "names").write_bytes(names)
    assert main(["merge", "--files0-from", "names", "-o", "x.cachegrind"]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (files / "x.cachegrind").exists()


# ---- --keep-going

GOOD = (
    "callgrind/good/cfi.callgrind",
    "cachegrind/good/head.cachegrind",
    "folded/good/plain.folded",
    "gperftools/good/plain.prof",
    "pprof/good/go-heap.pb.gz",
    "xray/good/fdr5-busy.xray",
    "archive/good/stacks.fpa",
    "archive/good/timeline.fpa",
)


def spoilt(file: str) -> bytes:
    """Damaged in the middle."""
    data = bytearray((CORPUS / file).read_bytes())
    if b"events:" in data or file.endswith("folded"):
        return bytes(data[: data.index(b"\n", len(data) // 2)]) + b"\nwhat is this\n" + bytes(data[len(data) // 2 :])
    return bytes(data[:75] if file.endswith(".prof") else data[: len(data) // 3])


@pytest.mark.parametrize("file", GOOD)
@pytest.mark.parametrize("way", ["file", "pipe"])
def test_an_input_that_fails_in_the_middle_leaves_nothing(file: str, way: str, tmp_path: Path) -> None:
    """The result is that of the other inputs."""
    good, bad, out = CORPUS / file, tmp_path / "bad", tmp_path / "out.pb"
    if way == "file":
        bad.write_bytes(spoilt(file))
    else:
        os.mkfifo(bad)
        writer = threading.Thread(target=bad.write_bytes, args=(spoilt(file),))
        writer.start()
    log = fastprof.merge([good, bad, good, tmp_path / "absent"], out, keep_going=True)
    if way == "pipe":
        writer.join()
    assert log.losses == {"skipped-inputs": 2}
    assert len(log.warnings) >= 2
    assert any(warning.startswith(f"{bad}: ") for warning in log.warnings)
    assert any(warning.startswith(f"{tmp_path / 'absent'}: ") for warning in log.warnings)
    fastprof.merge([good, good], tmp_path / "expected.pb")
    assert out.read_bytes() == (tmp_path / "expected.pb").read_bytes()


def test_keep_going_exits_with_3(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "runs").mkdir()
    (files / "runs" / "damaged").write_bytes(ONE + b"what is this\n")
    (files / "runs" / "good").write_bytes(ONE)
    (files / "empty").mkdir()
    command = ["merge", "runs", "empty", "-o", "x.cachegrind"]
    assert main(command) == 1
    assert main([*command, "--keep-going"]) == 3
    errors = capsys.readouterr().err
    assert "runs/damaged: " in errors and "empty: the directory has no files" in errors
    assert (files / "x.cachegrind").read_text().endswith("summary: 30\n")


def test_nothing_that_can_be_read_is_an_error(files: Path) -> None:
    (files / "damaged").write_bytes(b"what is this")
    with pytest.raises(FastprofError, match=r"none of the inputs can be read; the last one: damaged: unknown format"):
        fastprof.merge(["damaged", "absent"], "out.callgrind", keep_going=True)
    assert not (files / "out.callgrind").exists()


def test_a_wrong_wish_is_an_error_even_so(files: Path) -> None:
    for options in ({}, {"time_range": (0, 1)}):
        with pytest.raises(UsageError):
            fastprof.merge(["one.cachegrind", "both.cachegrind"], "out.callgrind", keep_going=True, **options)
