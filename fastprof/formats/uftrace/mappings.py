"""The mappings of a session, by address."""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush

from fastprof.core._typing import NamedTuple


class Mapping(NamedTuple):
    start: int
    end: int
    path: str
    build_id: str


class Mappings:
    """Of those at an address, the one that was added first counts."""

    def __init__(self) -> None:
        self.all: list[Mapping] = []
        self._starts: list[int] = []  # of pieces that do not overlap
        self._pieces: list[Mapping | None] = []

    def add(self, start: int, end: int, path: str, build_id: str = "") -> None:
        self.all.append(Mapping(start, end, path, build_id))
        self._starts, self._pieces = [], []

    def at(self, address: int) -> Mapping | None:
        if not self._starts:
            self._cut()
        k = bisect_right(self._starts, address) - 1
        return self._pieces[k] if k >= 0 else None

    def _cut(self) -> None:
        order = sorted(range(len(self.all)), key=lambda i: -self.all[i].start)
        begun: list[int] = []
        for at in sorted({border for one in self.all for border in one[:2]}):
            while order and self.all[order[-1]].start <= at:
                heappush(begun, order.pop())
            while begun and self.all[begun[0]].end <= at:
                heappop(begun)
            self._starts.append(at)
            self._pieces.append(self.all[begun[0]] if begun else None)
