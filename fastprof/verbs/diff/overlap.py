"""How much two profiles for compilers overlap: the figures of `llvm-profdata overlap --sample`.

A *block* is a place of a function: offset of the line and discriminator.  A function's share of a profile counts its
blocks and those of the functions that are inlined in it.

    similarity of a function     (2 - sum of |share of a block in old - in new|) / 2, times 1 - |share of the function
                                 in old - in new|
    similarity of the profiles   the mean of these, by the functions' mean share in both
    overlap of samples           sum of the smaller counts / sum of the larger counts, by block
    hot                          counts that the largest ones reach before 99 % of the sum

Source: LLVM's llvm-profdata.cpp, SampleOverlapAggregator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.compiled import NAMES
from fastprof.core.errors import usage_error
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.unknown_names import text_of
from fastprof.inputs import Inputs

_HOT = 990_000  # parts of a million
_EPSILON = 0.000005
Place = tuple[int, int]  # offset, discriminator


class Shared(NamedTuple):
    """Numbers of functions or blocks."""

    both: int
    only_old: int
    only_new: int
    share: float  # of `both` in all


class Overlap(NamedTuple):
    """How much two profiles for compilers overlap; shares are from 0 to 1."""

    similarity: float
    samples: float
    only_old: float  # the share of the samples of OLD that NEW has not
    only_new: float
    old_samples: int
    new_samples: int
    functions: Shared
    hot_functions: Shared
    hot_blocks: Shared


class Level:
    """A function, or a copy of it that is inlined in another one."""

    __slots__ = ("blocks", "hot", "inlined", "largest", "total")

    def __init__(self) -> None:
        self.blocks: dict[Place, int] = {}
        self.inlined: dict[tuple[Place, str], Level] = {}
        self.total = self.largest = self.hot = 0  # with what is inlined: sum, maximum and number of hot blocks

    def inside(self, at: Place, name: str) -> Level:
        found = self.inlined.get((at, name))
        if found is None:
            found = self.inlined[at, name] = Level()
        return found

    def below(self) -> Iterator[Level]:
        """This level and those inside it, outer ones first."""
        waiting = [self]
        while waiting:
            level = waiting.pop()
            yield level
            waiting += level.inlined.values()

    def sum_up(self, hot: int) -> None:
        for level in reversed([*self.below()]):
            level.total, level.largest = sum(level.blocks.values()), max(level.blocks.values(), default=0)
            level.hot = sum(count >= hot for count in level.blocks.values())
            for inner in level.inlined.values():
                level.total += inner.total
                level.largest = max(level.largest, inner.largest)
                level.hot += inner.hot


class Side:
    """One of the profiles: its functions, and the smallest hot count."""

    def __init__(self, path: Any, from_: str | None, options: Options) -> None:
        self.functions: dict[str, Level] = {}
        self._model = Model()
        self._frames: dict[int, tuple[str, Place]] = {}
        with Inputs([path], from_, self._model, options, Log()) as opened:
            (input_,) = opened.all
            for batch in input_.rows():
                self._add(batch)
            if input_.view != "stacks" or (self._model.parts and not self._is_compiled(0)):
                what = "{file}: {--stats:name}: this is no profile for compilers (llvm-profile)"
                raise usage_error(what, file=input_.name)
        found = Counter(n for one in self.functions.values() for level in one.below() for n in level.blocks.values())
        self.hot = _hot(found)
        for one in self.functions.values():
            one.sum_up(self.hot)
        self.total = sum(one.total for one in self.functions.values())
        if not self.total:
            raise usage_error("{file}: {--stats:name}: the sum of its counts is 0", file=input_.name)

    def _is_compiled(self, part: int) -> bool:
        return tuple(one.name for one in self._model.parts[part].value_types) == NAMES

    def _add(self, batch: Batch) -> None:
        if batch.view != "stacks" or not self._is_compiled(batch.part):
            return
        samples, calls, entries = (batch.values(k) for k in range(len(NAMES)))
        for i, stack in enumerate(batch["stack"]):
            if calls[i]:
                continue
            level, at = self._place(stack)
            if not entries[i]:
                level.blocks[at] = level.blocks.get(at, 0) + samples[i]

    def _place(self, stack: int) -> tuple[Level, Place]:
        model, frames = self._model, []
        while stack:
            stack, frame = model.row("stacks", stack)
            if frame not in self._frames:
                function, line, column, _ = model.row("lines", model.row("frames", frame)[4])
                self._frames[frame] = text_of(model.get_function(function).name), (line, column)
            frames.append(self._frames[frame])
        name, at = frames.pop()
        level = self.functions.get(name)
        if level is None:
            level = self.functions[name] = Level()
        while frames:
            name, inner = frames.pop()
            level, at = level.inside(at, name), inner
        return level, at


def _hot(counts: Counter[int]) -> int:
    """The smallest of the counts that make up 99 %."""
    total, seen, least = sum(count * n for count, n in counts.items()), 0, 0
    for count in sorted(counts, reverse=True):
        if seen >= total * _HOT // 1_000_000:
            break
        seen, least = seen + count * counts[count], count
    return least


class _Sums:
    def __init__(self, old: Side, new: Side) -> None:
        self._old, self._new = old, new
        self.smaller = self.larger = self.only_old = self.only_new = 0  # samples
        self.hot = [0, 0, 0]  # blocks: both, only old, only new

    def blocks(self, old: int, new: int, hot: int, present: tuple[bool, bool]) -> None:
        """Add a block, or all blocks of a function that only one of the profiles has."""
        self.smaller += min(old, new)
        self.larger += max(old, new)
        self.only_old += old * (not present[1])
        self.only_new += new * (not present[0])
        is_hot = old >= self._old.hot, new >= self._new.hot
        if any(is_hot):
            self.hot[0 if all(is_hot) else 1 if is_hot[0] else 2] += hot

    def similarity(self, old: Level, new: Level) -> float:
        """Of a function, by its blocks."""
        difference = 0.0

        def add(a: int, b: int, hot: int, present: tuple[bool, bool]) -> None:
            nonlocal difference
            self.blocks(a, b, hot, present)
            difference += abs((a / old.total if old.total else 0.0) - (b / new.total if new.total else 0.0))

        waiting = [(old, new)]
        while waiting:
            one, other = waiting.pop()
            for at in one.blocks.keys() | other.blocks.keys():
                add(one.blocks.get(at, 0), other.blocks.get(at, 0), 1, (at in one.blocks, at in other.blocks))
            for key in one.inlined.keys() | other.inlined.keys():
                a, b = one.inlined.get(key), other.inlined.get(key)
                if a and b:
                    waiting.append((a, b))
                elif a:
                    add(a.total, 0, a.hot, (True, False))
                elif b:
                    add(0, b.total, b.hot, (False, True))
        found = (2.0 - difference) / 2
        return 0.0 if abs(found) < _EPSILON else found


def overlap(old: Any, new: Any, from_: str | None, options: Options) -> Overlap:
    """The overlap of two profiles.  Errors: UsageError for other profiles, and those without counts."""
    one, other = Side(old, from_, options), Side(new, from_, options)
    sums, similarity, both = _Sums(one, other), 0.0, 0
    for name in one.functions.keys() | other.functions.keys():
        a, b = one.functions.get(name), other.functions.get(name)
        if a and b:
            both += 1
            shares = a.total / one.total, b.total / other.total
            similarity += sums.similarity(a, b) * (1 - abs(shares[0] - shares[1])) * (sum(shares) / 2)
        else:
            found = a or b
            assert found is not None
            sums.blocks(a.total if a else 0, b.total if b else 0, found.hot, (a is not None, b is not None))
    hot = [{name for name, level in side.functions.items() if level.largest >= side.hot} for side in (one, other)]
    return Overlap(
        1.0 if abs(similarity - 1) < _EPSILON else similarity,
        sums.smaller / sums.larger if sums.larger else 0.0,
        sums.only_old / one.total,
        sums.only_new / other.total,
        one.total,
        other.total,
        _shared(both, len(one.functions) - both, len(other.functions) - both),
        _shared(len(hot[0] & hot[1]), len(hot[0] - hot[1]), len(hot[1] - hot[0])),
        _shared(*sums.hot),
    )


def _shared(both: int, only_old: int, only_new: int) -> Shared:
    union = both + only_old + only_new
    return Shared(both, only_old, only_new, both / union if union else 0.0)
