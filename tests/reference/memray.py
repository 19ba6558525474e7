"""Writes captures of memray, and adds up their events slowly."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

PYMALLOC_FREE, FREE, MALLOC, MMAP, MUNMAP = 1, 5, 6, 14, 15
FREES = {PYMALLOC_FREE, FREE}
COLUMNS = 8  # objects and bytes: all, temporary ones, those left, those at the peak
OLD = {6: 1, 5: 2, 14: 10, 15: 11, 2: 12, 1: 15}  # numbers of version 11
MAIN, HIDDEN = 1, 1


class Event(NamedTuple):
    thread: int
    stack: tuple[tuple[str, int], ...]  # functions with lines, outermost first
    allocator: int
    address: int  # a multiple of 8
    size: int


def number(v: int) -> bytes:
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def delta(v: int) -> bytes:
    return number(v << 1 if v >= 0 else (-v << 1) - 1)


def header(version: int, form: int = 0) -> bytes:
    out = b"memray\0" + struct.pack("<i", version) + (struct.pack("<i", 0x030B0FF0) if version > 11 else b"")
    out += (
        struct.pack("<BBQQqq", 0, form, 0, 0, 1000, 2000) + b"a.py b\0" + struct.pack("<iQQBB", 7, MAIN, HIDDEN, 1, 1)
    )
    return out + b"\0" * (version > 11) + (b"lib\0" + b"a\0b\0\0" + b"\0") * (version > 12)


def write(version: int, events: Iterable[Event]) -> bytes:
    """A capture without native frames.  Line tables of code objects have an entry for each of 8 lines from 10 on."""
    out, stacks, code, of_thread = [header(version)], defaultdict[int, tuple[tuple[str, int], ...]](tuple), {}, None
    pointer, line, frame, ring = 0, 0, 0, [0] * 15
    for event in events:
        if event.thread != of_thread:
            out.append(b"\x0c" + struct.pack("<Q", event.thread))
            of_thread = event.thread
        for one in event.stack:
            if version == 11 and one not in code:
                code[one] = len(code) + 3
                text = f"{one[0]}\0a.py\0".encode()
                out.append(b"\x03" + delta(code[one] - frame) + text + delta(one[1] - line))
                frame, line = code[one], one[1]
            elif version > 11 and (one[0], 0) not in code:
                code[one[0], 0] = len(code) + 3
                table = b"".join(bytes([0x80 | 13 << 3, 0 if k == 0 else 2]) for k in range(8))
                text = number(code[one[0], 0]) + f"{one[0]}\0a.py\0".encode()
                out.append(b"\x0e" + text + delta(10 - line) + number(len(table)) + table)
                line = 10
        had, want = stacks[of_thread], event.stack
        same = next((k for k, (a, b) in enumerate(zip(had, want, strict=False)) if a != b), min(len(had), len(want)))
        for start in range(same, len(had), 16):
            n = min(16, len(had) - start)
            out.append(bytes([9 | n - 1 << 4 if version == 11 else 0x10 | n - 1]))
        for one in want[same:]:
            if version == 11:
                out.append(b"\x04" + delta(code[one] - frame))
                frame = code[one]
            else:
                out.append(b"\x41" + number(code[one[0], 0]) + delta((one[1] - 10) * 2))
        stacks[of_thread] = want
        size = b"" if event.allocator in FREES else number(event.size)
        if version == 11:
            out.append(bytes([1 | OLD[event.allocator] << 4]) + delta(event.address - pointer) + size)
            pointer = event.address
            continue
        slot = ring.index(event.address) if event.address in ring else 15
        kind = event.allocator & 7 if event.allocator < 8 else 0
        record = bytes([0x80 | slot << 3 | kind])
        if slot == 15:
            record += delta((event.address >> 3) - pointer)
            pointer = event.address >> 3
            ring = [event.address, *ring[:-1]]
        out.append(record + (b"" if kind else bytes([event.allocator])) + size)
    return b"".join(out) + (b"\x10" if version == 11 else b"\1")


def sums(events: Iterable[Event]) -> dict[tuple[int, tuple[tuple[str, int], ...]], tuple[int, ...]]:
    """By thread and stack."""
    found: dict[tuple[int, tuple[tuple[str, int], ...]], list[int]] = {}
    blocks: dict[int, tuple[list[int], int]] = {}
    maps: list[tuple[int, int, list[int]]] = []
    latest = defaultdict[int, list[tuple[int, int, list[int]]]](list)
    live = peak = 0
    for e in events:
        stack = e.stack[HIDDEN:] if e.thread == MAIN else e.stack
        mine = found.setdefault((e.thread, stack), [0] * COLUMNS)
        if e.allocator in {*FREES, MUNMAP}:
            again = [one for one in latest[e.thread] if one[0] == e.address]
            again = [one for one in again if e.allocator != MUNMAP or one[1] == e.size][:1]
            for _, size, of in again:
                of[2], of[3] = of[2] + 1, of[3] + size
        if e.allocator in FREES and e.address in blocks:
            of, size = blocks.pop(e.address)
            of[4], of[5], live = of[4] - 1, of[5] - size, live - size
        elif e.allocator == MUNMAP:
            rest = []
            for start, end, of in maps:
                a, b = max(start, e.address), min(end, e.address + e.size)
                parts = [(start, end)] if a >= b else [p for p in ((start, a), (b, end)) if p[0] < p[1]]
                gone = end - start - sum(y - x for x, y in parts)
                of[4], of[5], live = of[4] + len(parts) - 1, of[5] - gone, live - gone
                rest += [(x, y, of) for x, y in parts]
            maps = rest
        elif e.allocator not in FREES:
            latest[e.thread] = [(e.address, e.size, mine), *latest[e.thread][:1]]
            if e.allocator == MMAP:
                maps.append((e.address, e.address + e.size, mine))
            else:
                if e.address in blocks:
                    of, size = blocks[e.address]
                    of[4], of[5] = of[4] - 1, of[5] - size
                blocks[e.address] = mine, e.size
            mine[0], mine[1], mine[4], mine[5] = mine[0] + 1, mine[1] + e.size, mine[4] + 1, mine[5] + e.size
            live += e.size
            if live >= peak:
                peak = live
                for one in found.values():
                    one[6:] = one[4:6]
    return {key: tuple(values) for key, values in found.items() if any(values)}


def added(rows: Iterable[tuple[int, tuple[tuple[str, int], ...], tuple[int, ...]]]) -> Counter[object]:
    found: Counter[object] = Counter()
    for thread, stack, values in rows:
        found.update({(thread, stack, k): v for k, v in enumerate(values)})
    return Counter({key: v for key, v in found.items() if v})
