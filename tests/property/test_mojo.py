"""Austin's recordings against the samples that they were written from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import mojo
from tests.support.stackdump import dump

CHUNK = st.none() | st.integers(1, 64)
CAPACITY = st.none() | st.integers(1, 5)
FRAME = st.tuples(st.sampled_from(["a.py", "<string>", "é"]), st.sampled_from("fgh"), st.integers(0, 1 << 20))
SAMPLE = st.builds(
    mojo.Sample,
    st.integers(1, 3),
    st.integers(0, (1 << 64) - 1),
    st.lists(FRAME, max_size=5).map(tuple),
    st.integers(0, 1 << 40),
    st.integers(-(1 << 40), 1 << 40),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(SAMPLE, max_size=10), st.sampled_from([1, 2, 3]), CHUNK, CAPACITY)
def test_samples_are_read_in_order(
    samples: list[mojo.Sample], version: int, chunk: int | None, capacity: int | None
) -> None:
    found = []
    for stack, labels, values in dump(
        mojo.write(version, "full", samples), "mojo", chunk=chunk, capacity=capacity
    ).rows:
        frames = tuple((f[3][0][2].decode(), f[3][0][0].decode(), f[3][0][4]) for f in reversed(stack))
        found.append((frames, {label[1] for label in labels}, values))
    assert found == [
        (
            one.frames,
            {*[b"gc"] * one.is_gc, *[b"idle"] * one.is_idle},
            (1, one.memory, max(one.memory, 0), 0 if one.is_idle else one.time * 1000, one.time * 1000),
        )
        for one in samples
    ]
