"""`top` of frames with many inlined functions."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import fastprof
from tests.reference import profile_proto


def profile(locations: list[list[int]], stacks: list[list[int]]) -> bytes:
    """Functions by location, innermost first, and locations by stack, innermost first.  Stack i costs i + 1."""
    made = profile_proto.Profile(string_table=["", "cpu", "count"])
    made.sample_type.add(type=1, unit=2)
    for function in range(1 + max(max(functions) for functions in locations)):
        made.string_table.append(f"f{function}")
        made.function.add(id=function + 1, name=function + 3)
    for i, functions in enumerate(locations):
        location = made.location.add(id=i + 1)
        for function in functions:
            location.line.add(function_id=function + 1, line=function % 3 + 1)
    for i, stack in enumerate(stacks):
        made.sample.add(location_id=[at + 1 for at in stack], value=[i + 1])
    return made.SerializeToString()


@pytest.mark.parametrize("seed", range(20))
def test_costs(seed: int) -> None:
    """Functions of one frame alone, of several frames, twice in a frame, and frames that call themselves."""
    rng = random.Random(seed)
    locations = [[rng.randrange(80) for _ in range(rng.choice((1, 2, 17, 40)))] for _ in range(6)]
    stacks = [[rng.randrange(6) for _ in range(rng.randint(1, 5))] for _ in range(30)]
    own: Counter[str] = Counter()
    inclusive: Counter[str] = Counter()
    for i, stack in enumerate(stacks):
        own[f"f{locations[stack[0]][0]}"] += i + 1
        for name in {f"f{function}" for at in stack for function in locations[at]}:
            inclusive[name] += i + 1
    rows = fastprof.top(profile(locations, stacks), n=0).rows
    assert {row.name: row.self for row in rows if row.self} == own
    assert {row.name: row.inclusive for row in rows} == inclusive


N = 100_000


@pytest.mark.parametrize(
    ("locations", "stacks"),
    [
        ([[0] * N], [[0] * N]),
        ([[i % 2 for i in range(N)], *([1] for _ in range(N))], [[0, 1 + i] for i in range(N)]),
        ([[*range(1, N)], *([0] for _ in range(N))], [[0, 1 + i] for i in range(N)]),
        ([[0, *range(2, N)], [0, *range(N - 1, 1, -1)], *([1] for _ in range(N))], [[i % 2, 2 + i] for i in range(N)]),
    ],
    ids=["calls itself", "two functions", "many functions", "two frames with the same functions"],
)
def test_many_stacks_with_a_frame_of_many_inlined_functions(
    locations: list[list[int]], stacks: list[list[int]]
) -> None:
    """To add each stack to each of them would take 10^10 steps."""
    (first, *_) = fastprof.top(profile(locations, stacks)).rows
    assert first.self == first.inclusive == len(stacks) * (len(stacks) + 1) // 2
