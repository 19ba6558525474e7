"""A slow, obvious reader of the text profiles of allocators, Go and Java, without names: docs/formats/heap.md.

Each row becomes an entry, in file order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

_HEAP = re.compile(r"(-?\d+): *(-?\d+) *\[ *(\d+): *(\d+) *\] *@((?: +0x[0-9a-fA-F]+)*) *")
_HEADER = re.compile(r"heap profile: *(\d+): *(\d+) *\[ *(\d+): *(\d+) *\] *@ *([a-z_0-9]+)(?:/(\d+))?")
_THREAD = re.compile(r"t(\d+): *(-?\d+): *(-?\d+) *\[ *(\d+): *(\d+) *\] *(.*)")


class Read(NamedTuple):
    types: list[str]
    # (addresses from the leaf on, labels) -> values
    samples: Counter[tuple[tuple[int, ...], tuple[tuple[str, object], ...], int]]


def scaled(count: int, size: int, rate: int) -> tuple[int, int]:
    """The estimated total of objects, if a Poisson process with a mean of `rate` bytes sampled these."""
    if count == 0 or size == 0:
        return 0, 0
    if rate <= 1:
        return count, size
    factor = 1 / (1 - math.exp(-(size / count) / rate))
    return int(count * factor), int(size * factor)


def bytes_of(counts: list[int]) -> int:
    count, size = counts[:2] if counts[0] else counts[2:]
    return int(math.copysign(abs(size) // abs(count), size * count)) if count else 0


def read(text: str) -> Read:
    first, *lines = [line.strip() for line in text.splitlines()]
    lines = lines[: next((i for i, line in enumerate(lines) if re.match("MAPPED|---", line)), None)]
    rows = [line for line in lines if line and not line.startswith("#")]
    if m := re.fullmatch(r"(\S+) profile: total \d+", first):
        return added([m[1]], [(addresses(line), (), [int(line.split()[0])]) for line in rows])
    if re.match("--- (contentionz|contention|mutex)", first):
        return contention(rows)
    if m := re.fullmatch(r"heap_v2/(\d+)", first):
        return jemalloc(rows, int(m[1]))
    header = _HEADER.fullmatch(first)
    assert header, first
    rate = {"heap_v2": 1, "heapz_v2": 1, "heap": 2}.get(header[5], 0)
    rate = rate and max(1, int(header[6]) // rate)
    found = []
    for line in rows:
        m = _HEAP.fullmatch(line)
        assert m, line
        found.append((addresses(line), [int(n) for n in m.groups()[:4]], ()))
    totals = [int(n) for n in header.groups()[:4]]
    return heap(
        found, rate, ["objects", "space"], any(a and a != b for a, b in zip(totals[2:], totals[:2], strict=True))
    )


def addresses(line: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in line.partition("@")[2].split())


def heap(
    rows: list[tuple[tuple[int, ...], list[int], tuple[tuple[str, object], ...]]],
    rate: int,
    two: list[str],
    allocated: bool = False,
) -> Read:
    samples = []
    for stack, counts, labels in rows:
        allocated |= any(a and a != b for a, b in zip(counts[2:], counts[:2], strict=True))
        values = [*scaled(*counts[:2], rate), *scaled(*counts[2:], rate)] if rate else counts
        samples.append((stack, (*labels, ("bytes", bytes_of(counts))), values))
    if not allocated:
        return added(two, [(stack, labels, values[:2]) for stack, labels, values in samples])
    four = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    return added(four, [(stack, labels, values[2:] + values[:2]) for stack, labels, values in samples])


def jemalloc(rows: list[str], rate: int) -> Read:
    """Threads, or the row of all threads if there are none."""
    found = []
    stacks: list[tuple[str, list[str]]] = []
    for line in rows:
        if line.startswith("@"):
            stacks.append((line, []))
        elif stacks:
            stacks[-1][1].append(line)
    for line, counts in stacks:
        threads = [m for row in counts if (m := _THREAD.fullmatch(row))]
        for m in threads:
            labels: tuple[tuple[str, object], ...] = (("thread", int(m[1])),)
            if m[6]:
                labels += (("thread_name", m[6]),)
            found.append((addresses(line), [int(n) for n in m.groups()[1:5]], labels))
        for row in [] if threads else counts:
            found.append((addresses(line), [int(n) for n in re.findall(r"-?\d+", row)], ()))
    return heap(found, max(1, rate), ["inuse_objects", "inuse_space"])


def contention(rows: list[str]) -> Read:
    keys = {key.strip(): value.strip() for key, _, value in (row.partition("=") for row in rows if "=" in row)}
    period, hertz = int(keys.get("sampling period", 1)), int(keys.get("cycles/second", 0))
    samples = []
    for row in rows:
        if "=" not in row:
            delay, count = (int(n) for n in row.split()[:2])
            if period and hertz:
                delay = int(delay * float(period) / (hertz / 1e9))
            samples.append((addresses(row), (), [count * (period or 1), delay]))
    return added(["contentions", "delay"], samples)


def added(types: list[str], samples: list[tuple[tuple[int, ...], tuple[tuple[str, object], ...], list[int]]]) -> Read:
    total: Counter[tuple[tuple[int, ...], tuple[tuple[str, object], ...], int]] = Counter()
    for stack, labels, values in samples:
        for k, value in enumerate(values):
            total[stack, tuple(sorted(labels)), k] += value
    return Read(types, total)
