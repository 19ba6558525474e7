"""BOLT's fdata as input: branches, counts, what is skipped, damage."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.core.errors import FormatError
from tests.support.paths import CORPUS

FOLDER = CORPUS / "bolt/good"


def rows(data: bytes) -> Counter[tuple[Any, ...]]:
    """The values of stacks of functions with offsets, outermost first."""
    found: Counter[tuple[Any, ...]] = Counter()
    with fastprof.open(io.BytesIO(data), from_="bolt") as profile:
        model = profile._model
        for batch in profile.batches():
            for k in range(len(model.parts[batch.part].value_types)):
                for stack, value in zip(batch["stack"], batch.values(k), strict=True):
                    frames = []
                    while stack:
                        stack, frame = model.row("stacks", stack)
                        function, line, _, _ = model.row("lines", model.row("frames", frame)[4])
                        frames.append((model.get_function(function).name.decode(), line))
                    found[*reversed(frames), k] += value
    return +found


names = st.text("ab\\\\ /.@", min_size=1, max_size=4)
places = st.tuples(names, st.integers(0, (1 << 32) - 1))
counts = st.integers(0, (1 << 63) - 1)


def written(place: tuple[str, int]) -> str:
    name = place[0].replace("\\", "\\\\").replace(" ", "\\ ")
    return f"1 {name} {place[1]:x}"


@given(st.dictionaries(st.tuples(places, places), st.tuples(counts, counts), min_size=1, max_size=6))
def test_branches(edges: dict[Any, tuple[int, int]]) -> None:
    """Against a slow writer."""
    lines = [f"{written(a)} {written(b)} {missed} {taken}\n" for (a, b), (taken, missed) in edges.items()]
    expected = Counter({(a, b, k): n for (a, b), both in edges.items() for k, n in enumerate(both)})
    assert rows("".join(lines).encode()) == +expected


@given(st.dictionaries(places, counts, min_size=1, max_size=6))
def test_counts_without_branches(found: dict[Any, int]) -> None:
    data = "no_lbr cycles:u\n" + "".join(f"{written(place)} {n}\n" for place, n in found.items())
    assert rows(data.encode()) == +Counter({(place, 0): n for place, n in found.items()})


def test_files_of_bolt() -> None:
    log = fastprof.info(FOLDER / "branches.fdata")
    assert log.facts["totals"] == {"taken": 8762, "mispredicted": 313, "straight": 0}
    top = fastprof.top(FOLDER / "branches.fdata", by="branch", n=1)
    assert (top.rows[0].name, top.rows[0].self) == ("longest_match+0xb1 -> longest_match+0x80", 55)
    assert [*fastprof.info(FOLDER / "counts.fdata").facts["totals"]] == ["Ir"]
    log = fastprof.info(FOLDER / "memory.fdata")
    assert log.facts["totals"]["taken"] == 99 and log.repairs["blank-lines"] == 1
    assert log.not_representable["memory-loads"] == 1
    assert fastprof.top(FOLDER / "memory.fdata", n=1).rows[0].name == "a b/walk/1"


def test_two_profiles_are_compared(tmp_path: Path) -> None:
    old, new = tmp_path / "a.fdata", tmp_path / "b.fdata"
    old.write_text("1 f 1 1 g 0 0 10\n")
    new.write_text("1 f 1 1 g 0 0 40\n")
    (row,) = (row for row in fastprof.diff(old, new).rows if row.name == "g")
    assert (row.old[0], row.new[0]) == (10, 40)


@pytest.mark.parametrize(
    "line",
    [
        b"1 f 1 1 g 0 0\n",
        b"1 f 1 1 g 0 0 1 \n",
        b"1 f x 1 g 0 0 1\n",
        b"6 f 1 1 g 0 0 1\n",
        b"1  1 1 g 0 0 1\n",
        b"1 f 1 4 g 0 0 1\n",
        b"4 f 1 1 g 0 1\n",
        b"1 f 1 1 g 0 0 9223372036854775808\n",
        b"1 f 12345678901234567 1 g 0 0 1\n",
        b"no_lbr\n",
        b"1 f 1 1 g 0 0 1",
    ],
)
def test_damage(line: bytes) -> None:
    data = b"1 f 1 1 g 0 0 1\n" * 2 + line
    with pytest.raises(FormatError) as caught:
        rows(data)
    assert caught.value.offset == 32
    log = fastprof.info(io.BytesIO(data + b"1 f 1 1 g 0 0 5\n" * line.endswith(b"\n")), from_="bolt", lenient=True)
    assert log.losses["unreadable-lines"] == 1 and log.facts["totals"]["taken"] == 2 + 5 * line.endswith(b"\n")
