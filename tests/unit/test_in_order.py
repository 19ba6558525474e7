"""A Cachegrind file whose positions occur once and in order is not summed; any other is, with the same result."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof.bridges.sums import aggregate
from fastprof.core import engine
from fastprof.core.errors import FastprofError

HEAD = "desc: I1 cache: none\ncmd: x\nevents: Ir Dr\n"
IN_ORDER = "fl=a.c\nfn=g\n3 1 2\n7 1 0\nfl=b.c\nfn=f\n1 5 5\nfn=g\n1 1 1\n"
OUT_OF_ORDER = {
    "a line again": "fl=a.c\nfn=f\n3 1 1\n3 2 2\n",
    "a line before": "fl=a.c\nfn=f\n3 1 1\n2 2 2\n",
    "a function again": "fl=a.c\nfn=f\n3 1 1\nfn=g\n1 1 1\nfn=f\n9 1 1\n",
    "a file again": "fl=a.c\nfn=f\n3 1 1\nfl=b.c\nfn=f\n1 1 1\nfl=a.c\nfn=g\n9 1 1\n",
    "a file inside a function": "fl=a.c\nfn=f\n3 1 1\nfi=b.c\n1 1 1\nfe=a.c\n9 1 1\n",
}


def piped(path: Path) -> bytes:
    """Converted in one pass: a pipe cannot be read twice."""
    command = [sys.executable, "-m", "fastprof", "convert", "-", "-o", "-", "--to", "cachegrind", "-q"]
    with path.open("rb") as file, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        found, _ = process.communicate(file.read())
    assert process.returncode == 0
    return found


@pytest.mark.parametrize("body", [IN_ORDER, *OUT_OF_ORDER.values()], ids=["in order", *OUT_OF_ORDER])
def test_a_file_and_a_pipe_give_the_same(body: str, tmp_path: Path) -> None:
    path, out = tmp_path / "in.cachegrind", tmp_path / "out.cachegrind"
    path.write_text(HEAD + body + "summary: 9 9\n")
    log = fastprof.convert(path, out)
    assert out.read_bytes() == piped(path)
    assert log.facts["output_bytes"] == out.stat().st_size
    assert sorted(os.listdir(tmp_path)) == ["in.cachegrind", "out.cachegrind"]


def test_what_is_in_order_is_given_out_as_it_is(tmp_path: Path) -> None:
    path, out = tmp_path / "in.cachegrind", tmp_path / "out.cachegrind"
    path.write_text(HEAD + IN_ORDER + "summary: 8 8\n")
    fastprof.convert(path, out)
    assert out.read_text() == path.read_text()


def test_the_log_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "in.cachegrind"
    path.write_text(HEAD + OUT_OF_ORDER["a function again"] + "summary: 3 4\n")
    log = fastprof.convert(path, tmp_path / "out.cachegrind")
    assert log.rows["rows_written"] == 3
    assert sum("summary" in warning for warning in log.warnings) <= 1


# ---- several inputs: sums are written while all are read ------------------------


def profile(lines: list[tuple[str, str, int, int, int]], events: str = "Ir Dr") -> str:
    text, last = HEAD.replace("Ir Dr", events), ("", "")
    for file, function, line, ir, dr in lines:
        text += f"fl={file}\n" * (file != last[0]) + f"fn={function}\n" * ((file, function) != last)
        text += f"{line} {ir} {dr}\n"
        last = file, function
    return text + "summary: 0 0\n"


def some_lines(dice: random.Random, n: int) -> list[tuple[str, str, int, int, int]]:
    places = {(dice.choice("abc") + ".c", dice.choice("fgh"), dice.randrange(1, 30)) for _ in range(n)}
    return [(*place, dice.randrange(100), dice.randrange(3)) for place in sorted(places)]


def merged(paths: list[Path], out: Path) -> tuple[bytes, bytes]:
    """Merged into a file, and into a file object, which cannot be restarted."""
    fastprof.merge(paths, out)
    whole = io.BytesIO()
    fastprof.merge(paths, whole, to="cachegrind")
    return out.read_bytes(), whole.getvalue()


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_inputs_in_order(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    inputs = [some_lines(dice, dice.choice((0, 3, 60))) for _ in range(dice.randrange(2, 6))]
    paths = [tmp_path / f"{k}.cachegrind" for k in range(len(inputs))]
    for path, lines in zip(paths, inputs, strict=True):
        path.write_text(profile(lines))
    monkeypatch.setitem(engine.CAPACITY, "graph", dice.choice((2, 3, 7, 2040)))
    out, whole = merged(paths, tmp_path / "sum.cachegrind")
    assert out == whole
    expected: Counter[tuple[str, str, int]] = Counter()
    for file, function, line, ir, dr in (row for lines in inputs for row in lines):
        expected[file, function, line] += ir * 1000 + dr
    found, file, function = {}, "", ""
    for text in out.decode().splitlines():
        key, _, value = text.partition("=")
        file, function = value if key == "fl" else file, value if key == "fn" else function
        if text[:1].isdigit():
            line, *counts = map(int, text.split())
            ir, dr = [*counts, 0, 0][:2]
            found[file, function, line] = ir * 1000 + dr
    assert found == dict(expected)


def test_inputs_in_order_are_not_summed_up_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("packed")

    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(HEAD + IN_ORDER + "summary: 8 8\n")
    monkeypatch.setattr(aggregate.Table, "put", refused)
    fastprof.merge(paths, tmp_path / "sum.cachegrind")
    assert (tmp_path / "sum.cachegrind").read_text().endswith("fn=g\n1 2 2\nsummary: 16 16\n")


@pytest.mark.parametrize("body", OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_one_input_out_of_order(body: str, tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, text in zip(paths, (IN_ORDER, body), strict=True):
        path.write_text(HEAD + text + "summary: 9 9\n")
    out, whole = merged(paths, tmp_path / "sum.cachegrind")
    assert out == whole


def test_events_in_another_order(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_text(profile([("a.c", "f", 1, 5, 7)]))
    other.write_text(profile([("a.c", "f", 1, 7, 5)], "Dr Ir"))
    out, whole = merged([one, other], tmp_path / "sum.cachegrind")
    assert out == whole and b"\n1 14 10\n" in out  # Dr Ir: the lesser order


def test_a_sum_that_is_too_large(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(profile([("a.c", "f", 1, (1 << 63) - 1, 0)]))
    with pytest.raises(FastprofError, match=r"sums of a graph.*2\^63"):
        fastprof.merge(paths, tmp_path / "sum.cachegrind")
    assert not (tmp_path / "sum.cachegrind").exists()
