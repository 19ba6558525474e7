"""Recordings of Python's sampling profiler against the samples that they were written from."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import tachyon
from tests.support.stackdump import dump

FRAME = st.tuples(st.sampled_from(["a.py", "é"]), st.sampled_from("fgh"), st.integers(-1, 300), st.integers(-1, 90))
THREAD = st.sampled_from([(7, 0), (7, 2), (1 << 60, 0)])
SAMPLE = st.tuples(THREAD, st.integers(0, 1 << 30), st.integers(0, 31), st.lists(FRAME, max_size=4) | st.just([]))


def labels_of(sample: tachyon.Sample) -> set[Any]:
    found = [(1, b"gil", b"held"), (2, b"on cpu", b"yes"), (4, b"state", b"unknown"), (8, b"gil", b"waiting")]
    found.append((16, b"exception", b"yes"))
    return {(key, value) for bit, key, value in found if sample.state & bit}


@given(
    st.lists(SAMPLE, max_size=12),
    st.booleans(),
    st.sampled_from("<>"),
    st.none() | st.integers(1, 5),
    st.integers(1, 3),
)
def test_samples_are_read_in_order(
    drawn: list[Any], compressed: bool, order: str, capacity: int | None, repeat: int
) -> None:
    times: dict[Any, int] = {}
    samples = []
    for thread, delta, state, frames in drawn:
        for _ in range(repeat):
            times[thread] = times.get(thread, 0) + delta
            samples.append(tachyon.Sample(*thread, times[thread], state, tuple(frames)))
    data = tachyon.write(samples, compressed=compressed, order=order)
    found = []
    for stack, labels, values in dump(data, "tachyon", capacity=capacity).rows:
        lines = [frame[3][0] for frame in stack]
        place = tuple((line[2].decode(), line[0].decode(), line[4], line[5]) for line in lines)
        found.append((place, {label[:2] for label in labels if label[0] != b"interpreter"}, values))
    assert found == [
        (
            tuple((f, n, max(line, 0), column + 1 if line > 0 else 0) for f, n, line, column in one.frames),
            labels_of(one),
            (1_000_000, 1),
        )
        for one in samples
    ]
