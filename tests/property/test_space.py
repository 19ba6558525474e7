"""Maps of processes against plain lists."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.core._c import ffi, lib
from tests.reference.space import TOP, Map, Space

PIDS = st.sampled_from([0, 1, 2, lib.FP_SPACE_KERNEL])
ADDRESSES = st.integers(0, 40) | st.integers(TOP - 20, TOP)
LENGTHS = st.integers(0, 12) | st.sampled_from([TOP, TOP - 20, 1 << 63])
WORDS = st.integers(0, 3)
STEPS = st.lists(
    st.tuples(st.just("map"), PIDS, ADDRESSES, LENGTHS, st.sampled_from([0, 7, TOP]), WORDS, WORDS)
    | st.tuples(st.just("unmap"), PIDS, ADDRESSES, LENGTHS)
    | st.tuples(st.just("fork"), PIDS, PIDS)
    | st.tuples(st.just("exec"), PIDS),
    max_size=40,
)


class Compiled:
    """csrc/symbols/space.h with the methods of the reference."""

    def __init__(self) -> None:
        self._c = ffi.gc(lib.fp_space_new(), lib.fp_space_free)
        self._hit = ffi.new("struct fp_space_hit *")

    def do(self, what: str, *arguments: int) -> None:
        assert getattr(lib, f"fp_space_{what}")(self._c, *arguments) == 0

    def find(self, pid: int, address: int) -> Map | None:
        hit = self._hit
        found = lib.fp_space_find(self._c, pid, address, hit)
        return Map(hit.start, hit.limit, hit.pgoff, hit.word, hit.flags) if found else None

    def generation(self, pid: int) -> int:
        return int(lib.fp_space_generation(self._c, pid))


def places(space: Space) -> list[int]:
    """Addresses at the ends of all maps, and others."""
    maps = [known for maps in space.maps.values() for known in maps]
    ends = {at + by for known in maps for at in (known.start, known.limit) for by in (-1, 0, 1)}
    return sorted(at for at in {0, 20, TOP, *ends} if 0 <= at <= TOP)


@given(STEPS)
def test_every_address_as_in_plain_lists(steps: list[Any]) -> None:
    slow, fast = Space(), Compiled()
    answers: dict[int, set[Any]] = defaultdict(set)  # by generation
    for what, *arguments in steps:
        getattr(slow, what)(*arguments)
        fast.do(what, *arguments)
        at = places(slow)
        for pid in (0, 1, 2, 3, lib.FP_SPACE_KERNEL):
            assert [fast.find(pid, address) for address in at] == [slow.find(pid, address) for address in at]
            known = answers[fast.generation(pid)]
            known.add(tuple(sorted(slow.maps.get(pid, []))))
            assert len(known) == 1
    assert answers.get(0, {()}) == {()}


def test_what_is_left_of_a_map_keeps_its_place_in_the_file() -> None:
    """The header's example."""
    space = Compiled()
    space.do("map", 1, 0x1000, 0x4000, 0, 10, 0)
    space.do("map", 1, 0x2000, 0x1000, 0x700, 11, 0)
    assert space.find(1, 0x1FFF) == Map(0x1000, 0x2000, 0, 10, 0)
    assert space.find(1, 0x2000) == Map(0x2000, 0x3000, 0x700, 11, 0)
    assert space.find(1, 0x4FFF) == Map(0x3000, 0x5000, 0x2000, 10, 0)
    assert space.find(1, 0x5000) is None


def test_a_map_that_is_there_changes_nothing() -> None:
    space = Compiled()
    space.do("map", 1, 0x1000, 0x1000, 0, 1, 0)
    before = space.generation(1)
    space.do("map", 1, 0x1000, 0x1000, 0, 1, 0)
    assert space.generation(1) == before
    space.do("map", 1, 0x1000, 0x1000, 0x1000, 1, 0)
    assert space.generation(1) != before


@pytest.mark.parametrize("order", [1, -1])
def test_many_maps_and_many_forks_that_change_one_each(order: int) -> None:
    """No fork copies the maps: 10^9 of them would not fit into memory."""
    space, n = Compiled(), 30_000
    for i in range(n)[::order]:
        space.do("map", 1, i << 12, 1 << 12, 0, i, 0)
    for pid in range(2, n):
        space.do("fork", pid, pid - 1)
        space.do("map", pid, pid << 12, 1 << 11, 0, 0, 0)
    for pid in (1, 2, n // 2, n - 2):
        for i in (0, pid, pid + 1, n - 1):
            hit = space.find(pid, i << 12)
            assert hit is not None and hit.word == (0 if 2 <= i <= pid else i)
            rest = space.find(pid, (i << 12) + (1 << 11))
            assert rest is not None and (rest.word, rest.pgoff) == (i, 1 << 11 if 2 <= i <= pid else 0)
