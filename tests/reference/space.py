"""Maps of processes, address by address: csrc/symbols/space.h, slowly."""

from __future__ import annotations

from typing import NamedTuple

TOP = (1 << 64) - 1


class Map(NamedTuple):
    start: int
    limit: int
    pgoff: int
    word: int
    flags: int


class Space:
    """All maps of all processes as plain lists."""

    def __init__(self) -> None:
        self.maps: dict[int, list[Map]] = {}

    def map(self, pid: int, start: int, length: int, pgoff: int, word: int, flags: int) -> None:
        limit = min(start + length, TOP)
        if start < limit:
            self.unmap(pid, start, length)
            self.maps.setdefault(pid, []).append(Map(start, limit, pgoff, word, flags))

    def unmap(self, pid: int, start: int, length: int) -> None:
        limit = min(start + length, TOP)
        left: list[Map] = []
        for known in self.maps.pop(pid, []):
            front = known._replace(limit=min(known.limit, start))
            at = max(known.start, limit)
            tail = known._replace(start=at, pgoff=(known.pgoff + at - known.start) & TOP)
            left += [piece for piece in (front, tail) if piece.start < piece.limit] if start < limit else [known]
        if left:
            self.maps[pid] = left

    def fork(self, pid: int, parent: int) -> None:
        self.maps[pid] = list(self.maps.get(parent, []))

    def exec(self, pid: int) -> None:
        self.maps.pop(pid, None)

    def find(self, pid: int, address: int) -> Map | None:
        return next((known for known in self.maps.get(pid, []) if known.start <= address < known.limit), None)
