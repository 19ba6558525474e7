"""Sums of stacks are the same for any limit, and for any order of several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof.bridges.sums import sorted_runs, sum
from fastprof.core.engine import EVERYTHING
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, ValueType
from fastprof.core.options import Options
from tests.property.test_bridges import frames
from tests.support import profiles
from tests.support.profiles import Fn, Frame, Sample

TYPES = [ValueType("samples", "count"), ValueType("cpu", "nanoseconds"), ValueType("space", "bytes")]
VALUES = st.integers(-(2**40), 2**40) | st.sampled_from([2**63 - 1, -(2**63), 2**62])
CAPACITIES = st.sampled_from([1, 2, 7, 1000])


@st.composite
def inputs(draw: Any) -> Any:
    """Some inputs: value types and samples of each."""
    pool = draw(st.lists(frames(), min_size=1, max_size=4))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
        sample = st.builds(
            Sample,
            st.lists(st.sampled_from(pool), max_size=5).map(tuple),
            st.tuples(*[VALUES] * len(types)),
            st.sampled_from([0, 5, 6]),
            st.sampled_from(["", "a", "b"]),
            st.just(0),
        )
        found.append((types, draw(st.lists(sample, max_size=12))))
    return found


def batches(model: Model, given_: Any, capacity: int) -> Iterator[Batch]:
    return chain.from_iterable(profiles.stacks(model, samples, capacity, types) for types, samples in given_)


def rows(model: Model, summed: Iterator[Batch]) -> list[Any]:
    """The fields of each row, in order."""
    found = []
    for batch in summed:
        names = model.parts[batch.part].value_types
        for i, (stack, thread, label) in enumerate(zip(batch["stack"], batch["thread"], batch["label"], strict=True)):
            path = []
            while stack:
                stack, frame = model.row("stacks", stack)
                path.append(said(model, frame))
            text = model.string(model.row("labels", label)[2])
            values = [(t.name, batch.values(k)[i]) for k, t in enumerate(names)]
            found.append((tuple(path), model.row("threads", thread)[1:], text, tuple(values)))
    return found


def said(model: Model, frame: int) -> Any:
    mapping, *rest, line = model.row("frames", frame)
    lines = []
    while line:
        function, number, _, line = model.row("lines", line)
        lines.append((model.get_function(function), number))
    object_, *addresses = model.row("mappings", mapping)
    return model.string(model.row("objects", object_)[0]), tuple(addresses), tuple(rest), tuple(lines)


def summed(given_: Any, capacity: int, operator: Any, **options: Any) -> Any:
    model = Model()
    try:
        return rows(model, operator(batches(model, given_, capacity), model, Options(**options), Log(), EVERYTHING))
    except FastprofError as error:
        return str(error)


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sum, "_LEAST_KEYS", 1)
        patch.setattr(sorted_runs, "MOST_RUNS", 2)
        yield


_F, _G = Frame(((Fn(""), 0),)), Frame(())


@given(inputs(), CAPACITIES, st.sampled_from([1, 300, 2000]))
@example([(TYPES, [Sample(frames, (0, 0, 0)) for frames in [(_F,), (_F, _F), (_F, _G), (_F, _G, _F)]])], 1, 300)
def test_the_limit_changes_nothing(given_: Any, capacity: int, limit: int) -> None:
    for operator in (sum.repeated, sum.to_sum):
        assert summed(given_, capacity, operator, max_memory=limit) == summed(given_, 1000, operator)


@given(inputs(), st.randoms(), CAPACITIES)
def test_the_order_of_inputs_changes_nothing(given_: Any, random: Any, capacity: int) -> None:
    whole = summed(given_, 1000, sum.to_sum)
    shuffled = [(types, random.sample(samples, len(samples))) for types, samples in given_]
    random.shuffle(shuffled)
    assert summed(shuffled, capacity, sum.to_sum, max_memory=1) == whole or isinstance(whole, str)


@given(inputs(), CAPACITIES)
def test_every_sum_is_there_once(given_: Any, capacity: int) -> None:
    for types, samples in given_:
        found, expected = Counter[Any](), Counter[Any]()
        one = summed([(types, samples)], capacity, sum.repeated, max_memory=1)
        keys = [row[:3] for row in one]
        for row in one:
            for name, value in row[3]:
                found[row[:3], name] += value
        for row in rows(model := Model(), profiles.stacks(model, samples, 1000, types)):
            for name, value in row[3]:
                expected[row[:3], name] += value
        assert found == expected
        # several rows only for a sum that exceeds one row
        beyond = {key for (key, _), value in expected.items() if not -(2**63) <= value < 2**63}
        assert {key for key in keys if keys.count(key) > 1} == beyond
