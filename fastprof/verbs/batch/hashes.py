"""Sets of 64-bit hashes in 8 bytes each.

A set of a million paths takes 150 MB, and most batches only need to know that no two are equal.
"""

from array import array
from collections.abc import Set

_BUCKETS = 256  # only one at a time becomes a set


class Hashes:
    """The results of `hash` for many texts."""

    def __init__(self) -> None:
        self._buckets = [array("q") for _ in range(_BUCKETS)]

    def add(self, key: int) -> None:
        self._buckets[key % _BUCKETS].append(key)

    def repeated(self) -> set[int]:
        """The keys that were added more than once."""
        found: set[int] = set()
        for bucket in self._buckets:
            if len({*bucket}) < len(bucket):
                seen: set[int] = set()
                for key in bucket:
                    (found if key in seen else seen).add(key)
        return found

    def distinct(self) -> int:
        """The number of different keys."""
        return sum(len({*bucket}) for bucket in self._buckets)

    def any_of(self, keys: Set[int]) -> bool:
        """Whether any of these was added."""
        return any(not keys.isdisjoint(bucket) for bucket in self._buckets)

    def missing(self, keys: Set[int]) -> set[int]:
        """The part of `keys` that was not added."""
        found = {*keys}
        for bucket in self._buckets:
            found.difference_update(bucket)
        return found
