"""heaptrack's recordings against a slow reader."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core.options import Options
from tests.reference import heaptrack
from tests.support.stackdump import dump

CHUNK = st.none() | st.integers(1, 64)
CAPACITY = st.none() | st.integers(1, 5)
NAMES = ["f", "main", "g(int)", "operator new(unsigned long)", "a.c", "a function, with blanks"]


@st.composite
def recordings(draw: st.DrawFn) -> str:
    """A recording with definitions before their use, in any order otherwise."""
    version = draw(st.integers(1, 3))
    lines = [draw(st.sampled_from([f"v 10400 {version}"] + ["v 10200"] * (version == 1))), "X ./a", "I 1000 5"]
    n = {"s": 1, "i": 1, "t": 1, "a": 0}

    def below(kind: str) -> int:
        return draw(st.integers(0, n[kind] - 1))

    for kind in draw(st.lists(st.sampled_from("sitaaacR#+++---"), max_size=60)):
        if kind == "s":
            name = draw(st.sampled_from(NAMES))
            lines.append(f"s {len(name):x} {name}" if version == 3 else f"s {name}")
        elif kind == "i":
            depth = draw(st.integers(0, 3))
            one = [f"{below('s'):x} {below('s'):x} {draw(st.integers(0, 99)):x}" for _ in range(depth)]
            alone = [f"{below('s'):x}"] * (not one and draw(st.booleans()))
            address = draw(st.integers(0, 1 << 48))
            lines.append(" ".join([f"i {address:x} {below('s'):x}", *one, *alone]))
        elif kind == "t":
            lines.append(f"t {below('i'):x} {below('t'):x}")
        elif kind == "a":
            lines.append(f"a {draw(st.integers(0, 3)):x} {below('t'):x}")
        elif kind in "+-":
            if n["a"]:
                lines.append(f"{kind} {below('a'):x}")
            continue
        else:
            lines.append({"c": "c 5", "R": "R 7", "#": "# strings: 3"}[kind])
            continue
        n[kind] += 1
    return "\n".join([*lines, ""])


@given(recordings(), CHUNK, CAPACITY)
def test_recordings_read_as_by_the_slow_reader(text: str, chunk: int | None, capacity: int | None) -> None:
    found: dict[Any, Counter[int]] = {}
    read = dump(text.encode(), "heaptrack", chunk=chunk, capacity=capacity, options=Options(lenient=True))
    for stack, _, values in read.rows:
        key: list[heaptrack.Place] = []
        for _, address, _, lines in reversed(stack):
            places = [(line[0].decode(), line[2].decode(), line[4]) for line in reversed(lines)]
            key += places or [(hex(address), "", 0)]
        found.setdefault(tuple(key), Counter()).update(dict(enumerate(values)))
    sums = {stack: tuple(of[k] for k in range(heaptrack.COLUMNS)) for stack, of in found.items()}
    assert {stack: values for stack, values in sums.items() if any(values)} == heaptrack.read(text)
