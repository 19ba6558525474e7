"""Counts how many of the parts merged into one have each text; of many different texts it keeps those that sort first.

    pids 7, 7, 12 and 9      all are kept: 4 parts have one; 7: 2 of them, 9: 1, 12: 1       "7; 9; 12"
                             if there is room for two: 4 parts; 7: 2, 9: 1                   "7; 9; and 1 more"

The result does not depend on the order or grouping of merges: a text among the first of all is among the first of each
group that has it, so its count is exact, and so is the number of parts with any text.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST = 32  # distinct texts kept

# (parts with a text, [(text, parts with it, first position in a list)])
TextCounts = tuple[int, list[tuple[bytes, int, int]]]
SHAPE = (int, [(bytes, int, int)])  # core/schema.py


def counted(texts: Iterable[bytes], n: int) -> TextCounts:
    """The counts of `n` parts with equal texts."""
    counts = [(text, n, at) for at, text in enumerate(dict.fromkeys(texts))]
    return n * len(counts), _least(counts)


def add_up(all_counts: Iterable[TextCounts]) -> TextCounts:
    total = 0
    counts: dict[bytes, tuple[bytes, int, int]] = {}
    for n, texts in all_counts:
        total += n
        for text, count, at in texts:
            _, had, first = counts.get(text, (text, 0, at))
            counts[text] = text, had + count, min(at, first)
    return total, _least(counts.values())


def _least(counts: Iterable[tuple[bytes, int, int]]) -> list[tuple[bytes, int, int]]:
    return sorted(counts, key=lambda one: _number_or_text(one[0]))[:MOST]


def _number_or_text(text: bytes) -> tuple[bool, int, bytes]:
    """Sort key: numbers by value, before other texts."""
    return (False, len(text), text) if text.isdigit() else (True, 0, text)


def more(it: TextCounts) -> list[bytes]:
    """The entry "and N more" for parts whose text is not kept; empty if all are kept."""
    total, counts = it
    n = total - sum(count for _, count, _ in counts)
    return [b"and %d more" % n] if n > 0 else []


def listed(it: TextCounts) -> bytes:
    """The texts in one line."""
    return b"; ".join([*(text for text, _, _ in it[1]), *more(it)])


def lines(it: TextCounts) -> list[tuple[int, bytes]]:
    """The texts in the order of their positions, each with its position."""
    counts = sorted(((at, text) for text, _, at in it[1]), key=lambda one: (one[0], _number_or_text(one[1])))
    return counts + [(counts[-1][0] if counts else 0, text) for text in more(it)]
