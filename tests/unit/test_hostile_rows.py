"""Rows, columns and recorders whose objects run anything while they are read: they are refused, and no memory is read
after it was freed, which `make asan` would report."""

from __future__ import annotations

import contextlib
import gc
import io
import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import fastprof

REFUSED = (fastprof.FastprofError, ValueError, KeyError, TypeError, MemoryError, OverflowError)


class World:
    """Random objects, some of which change the data, collect garbage, re-enter the maker or fail when they are used."""

    def __init__(self, seed: int) -> None:
        self.random, self.lists, self.recorders = random.Random(seed), list[list[Any]](), list[fastprof.Recorder]()
        world = self

        class Number:
            def __index__(self) -> Any:
                world.act()
                return world.random.choice([0, 1, -1, 1 << 31, 1 << 63, "x", 3.5, 7])

        class Name(str):
            __slots__ = ()

            def __del__(self) -> None:
                world.act(may_fail=False)

            def __hash__(self) -> int:
                return hash(str.__str__(self))

            def __eq__(self, other: object) -> bool:
                world.act()
                return world.random.random() < 0.5

        class Items:
            left = 4

            def __iter__(self) -> Iterator[Any]:
                world.act()
                return self

            def __next__(self) -> Any:
                world.act()
                self.left -= 1
                if self.left < 0:
                    raise StopIteration
                return world.name()

            def __len__(self) -> int:
                return world.random.choice([0, 5, -1])

        class Column:
            def tolist(self) -> Any:
                world.act()
                return world.random.choice([[1, 2, Number()], None, "x", [Name("a")], (1, 2)])

        self._kinds: list[Callable[[], Any]] = [Number, lambda: Name("n"), Items, Column, object]

    def act(self, *, may_fail: bool = True) -> None:
        kind = self.random.randrange(7)
        if kind == 0 and may_fail:
            raise KeyError("mine")
        if kind == 1 and self.lists:
            self.random.choice(self.lists).clear()
        if kind == 2 and self.lists:
            self.random.choice(self.lists).extend([None] * self.random.randrange(2000))
        if kind == 3:
            gc.collect(0)
        if kind == 4 and self.recorders:
            recorder, name = self.random.choice(self.recorders), self.name()
            use: list[Callable[[], Any]] = [lambda: recorder.enter(name), recorder.exit, recorder.profile]
            with contextlib.suppress(REFUSED):
                self.random.choice([*use, lambda: recorder.sample([name])])()

    def name(self) -> Any:
        names = ["main", f"f{self.random.randrange(30)}", "\udc80", "\ud800", "", b"\xff", ("f", "f.c", 3), None]
        return self.random.choice([*names, *names, self.random.choice(self._kinds)()])

    def value(self) -> Any:
        plain = [0, 1, 1.0, None, 1 << 64, numpy.int64(4), "x", (1, 2), {1}, float("nan")]
        return self.random.choice([*plain, self.random.choice(self._kinds)()])

    def row(self, *extra: Any) -> Any:
        stack = [self.name() for _ in range(self.random.randrange(6))]
        self.lists.append(stack)
        row = [self.random.choice([stack, tuple(stack), self.name()]), self.value(), *extra]
        self.lists.append(row)
        return self.random.choice([row, tuple(row)])

    def column(self, n: int) -> Any:
        cells = [self.value() for _ in range(n)]
        self.lists.append(cells)
        numbers = range(n)
        even = numpy.arange(2 * n)[::2]
        other = self.random.choice(self._kinds)()
        return self.random.choice([cells, array("q", numbers), even, even.astype("M8[s]"), other])


@pytest.mark.parametrize("seed", range(8))
def test_objects_that_run_anything(seed: int) -> None:
    world = World(seed)

    def recorded() -> fastprof.Profile:
        world.recorders.append(recorder := fastprof.Recorder())
        for _ in range(20):
            try:
                if seed % 2:
                    recorder.sample(world.name(), world.value(), thread=world.random.choice([None, 1, world.value()]))
                else:
                    recorder.enter(world.name(), thread=world.random.choice([None, "t", world.value()]))
                    recorder.exit()
            except REFUSED:
                pass
        return recorder.profile()

    makers: list[Callable[[], fastprof.Profile]] = [
        lambda: fastprof.from_stacks(world.row(world.value(), 3) for _ in range(9)),
        lambda: fastprof.from_stacks((world.row(world.value()) for _ in range(3)), labels=["thread"]),
        lambda: fastprof.from_calls([(world.name(), 1), (world.name(), world.name(), world.value(), 2)] * 2),
        lambda: fastprof.from_spans([(world.name(), 1, world.value()), world.value()][: world.random.randrange(3)]),
        lambda: fastprof.from_spans({"name": ["f"] * 3, "start": world.column(3), "end": world.column(3)}),
        lambda: fastprof.from_tables(samples={"stack_id": world.column(2), "n": world.column(2)}),
        recorded,
    ]
    made = 0
    for _ in range(300):
        try:
            profile = world.random.choice(makers)()
            profile.convert(io.BytesIO(), to="archive")
            made += 1
        except REFUSED:
            pass
    assert made > 20
