"""Profiles of StackProf against what they were written from, as dumps of Ruby and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import stackprof
from tests.reference.stackprof import Symbol
from tests.support.stackdump import dump

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
FRAME = st.fixed_dictionaries(
    {"name": TEXT, "file": TEXT, "line": st.none() | st.integers(1, 1 << 20), "samples": st.integers(0, 1 << 40)}
)
FRAMES = st.dictionaries(st.integers(0, (1 << 62) - 1), FRAME, min_size=1, max_size=4)
OTHER = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats(-1e300, 1e300) | TEXT,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v, max_size=3),
    max_leaves=6,
)


@given(FRAMES, st.data(), OTHER, st.none() | st.integers(1, 64), st.none() | st.integers(1, 5))
def test_stacks_are_those_written(
    frames: dict[int, Any], data: st.DataObject, other: Any, chunk: int | None, capacity: int | None
) -> None:
    raw: list[int] = []
    times: list[int] = []
    stack = st.lists(st.sampled_from(sorted(frames)), max_size=5)
    for ids, weight in data.draw(st.lists(st.tuples(stack, st.integers(0, 4)), max_size=6)):
        times += [1000 * len(times) + 7] * weight
        raw += [len(ids), *ids, weight]
    profile = {"version": 1.2, "mode": Symbol("cpu"), "interval": 500, "metadata": other, "frames": frames, "raw": raw}
    profile |= {"raw_sample_timestamps": times, "last": other}
    symbols = {Symbol(key): value for key, value in profile.items()}
    symbols[Symbol("frames")] = {id_: {Symbol(k): v for k, v in f.items()} for id_, f in frames.items()}
    for text in (stackprof.write(symbols), json.dumps(profile).encode()):
        found: Counter[Any] = Counter()
        for frames_of, _, (time, samples) in dump(text, "stackprof", chunk=chunk, capacity=capacity).rows:
            assert time == samples * 500_000
            lines = [frame[3][0] for frame in reversed(frames_of)]
            found[tuple((line[0].decode(), line[2].decode(), line[3]) for line in lines)] += samples
        assert +found == +stackprof.stacks(profile)
