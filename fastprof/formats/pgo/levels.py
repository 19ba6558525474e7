"""Sample profiles as trees: a function, its counts by place, and in it the inlined functions by place.

    main                          total 7,778,785, head 1
      offset 4, discriminator 2   300,000
      offset 4.3  classify        total 4,777,001            main's copy of `classify`, inlined in this line
        offset 2.1                64,697

A place is the line as an offset from the line in which its function is declared, modulo 2^16, and the base
discriminator.  Source: LLVM's SampleProf.h, FunctionSamples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.core._typing import TYPE_CHECKING
from fastprof.symbols.dwarf import DEEPEST

if TYPE_CHECKING:
    from fastprof.symbols.dwarf import Place

Location = tuple[int, int]  # offset, base discriminator
_MOST = (1 << 63) - 1


def base_discriminator(value: int) -> int:
    """The first of three numbers that LLVM packs into a discriminator.

    A component is 0 (the bit 1), has 5 bits (2, 4, 6 -> 1, 2, 3), or 12: bit 6 of it, after the first shift bit 5, says
    that 7 more bits follow.  Source: LLVM's DebugInfoMetadata.h, getUnsignedFromPrefixEncoding.
    """
    if value & 1:
        return 0
    value >>= 1
    return (value >> 1 & 0xFE0) | (value & 0x1F) if value & 0x20 else value & 0x1F


def copies(value: int) -> int:
    """The second number of a discriminator: how many executions of the source one execution of an instruction of an
    unrolled or vectorized loop is."""
    rest = value >> (1 if value & 1 else 14 if value & 0x40 else 7)
    return base_discriminator(rest) or 1


def location(place: Place) -> Location:
    return (place.line - place.declared) & 0xFFFF, base_discriminator(place.discriminator)


class Level:
    """A function, or one of its inlined copies."""

    __slots__ = ("body", "head", "nested", "targets", "total")

    def __init__(self) -> None:
        self.total = 0  # of all instructions in it and in what is nested
        self.head = 0  # how often it was entered
        self.body: dict[Location, int] = {}  # the largest count of an instruction
        self.targets: dict[Location, dict[str, int]] = {}  # calls by callee
        self.nested: dict[Location, dict[str, Level]] = {}

    def inside(self, at: Location, name: str) -> Level:
        """The level of a function that is inlined here."""
        levels = self.nested.setdefault(at, {})
        found = levels.get(name)
        if found is None:
            found = levels[name] = Level()
        return found

    def count(self, at: Location, count: int) -> None:
        if count > self.body.get(at, -1):
            self.body[at] = count

    def call(self, at: Location, name: str, count: int) -> None:
        targets = self.targets.setdefault(at, {})
        targets[name] = targets.get(name, 0) + count
        self.body.setdefault(at, 0)

    def add(self, other: Level) -> None:
        """Add the counts of another copy of the function."""
        self.total += other.total
        self.head += other.head
        for at, count in other.body.items():
            self.body[at] = self.body.get(at, 0) + count
        for at, targets in other.targets.items():
            for callee, calls in targets.items():
                self.call(at, callee, calls)
        for at, levels in other.nested.items():
            for callee, level in levels.items():
                self.inside(at, callee).add(level)

    @staticmethod
    def sum(copies: Iterable[Level]) -> Level:
        whole = Level()
        for copy in copies:
            whole.add(copy)
        return whole

    def all(self) -> Iterator[Level]:
        """This level and those inside it."""
        waiting = [self]
        while waiting:
            level = waiting.pop()
            yield level
            waiting += (inner for levels in level.nested.values() for inner in levels.values())

    def sorted_targets(self, at: Location) -> list[tuple[str, int]]:
        """By falling count, then by name."""
        return sorted(self.targets.get(at, {}).items(), key=lambda item: (-item[1], item[0]))

    def limit(self) -> None:
        """Keep sums within the numbers that readers of profiles have."""
        for level in self.all():
            level.total, level.head = min(level.total, _MOST), min(level.head, _MOST)
            level.body = {at: min(count, _MOST) for at, count in level.body.items()}
            for targets in level.targets.values():
                targets.update({name: min(count, _MOST) for name, count in targets.items()})


def _is_name(name: str) -> bool:
    """Whether the text of a profile can hold a name: it separates by lines and blanks, and numbers begin places."""
    return bool(name) and not name[0].isdigit() and min(name) > " "


def enter(level: Level, places: tuple[Place, ...], count: int, size: int = 1) -> tuple[Level, Location] | None:
    """Add an instruction to a function; `places` are the functions there, innermost first.  The level and the place it
    belongs to, or None if a function has no line or name, or there are too many.  Totals count `size`
    times."""
    if len(places) > DEEPEST or any(not place.line or not _is_name(place.name) for place in places):
        return None
    level.total += count * size
    for outer, inner in zip(places[:0:-1], places[-2::-1], strict=True):
        level = level.inside(location(outer), inner.name)
        level.total += count * size
    at = location(places[0])
    level.count(at, count * copies(places[0].discriminator) if places[0].is_packed else count)
    return level, at


class Profile:
    """The functions of a profile."""

    def __init__(self) -> None:
        self.functions: dict[str, Level] = {}

    def function(self, name: str) -> Level:
        found = self.functions.get(name)
        if found is None:
            found = self.functions[name] = Level()
        return found

    def sorted(self) -> list[tuple[str, Level]]:
        """Functions by falling total, then by name."""
        return sorted(self.functions.items(), key=lambda item: (-item[1].total, item[0]))

    def names(self) -> dict[str, int]:
        """The index of each name, of functions, inlined functions and targets."""
        names = {*self.functions}
        for function in self.functions.values():
            for level in function.all():
                names.update(name for targets in level.targets.values() for name in targets)
                names.update(name for levels in level.nested.values() for name in levels)
        return {name: index for index, name in enumerate(sorted(names))}

    def limit(self) -> None:
        for level in self.functions.values():
            level.limit()
