"""Profiles with any number of distinct rows but few names: only the tables in memory grow with them.

Functions are those of a large program (2,000), for any number of rows.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.perfdata import USER, PerfData

FUNCTIONS = 2000
SOURCE = "a.c"  # the file of all functions, if it is known
DEPTH = 12  # functions per stack


def timeline(path: Path, rows: int) -> None:
    """An XRay log of `rows` calls by 64 threads, nearly each with a distinct call path and arc."""
    noise = random.Random(1)
    function = struct.Struct("<II").pack
    with path.open("wb") as out:
        out.write(struct.pack("<HHIQQ8x", 5, 1, 3, 10**6, 1 << 16))  # FDR 5, a tick is a microsecond
        done = buffer = 0
        while done < rows:
            body, tid = bytearray(), buffer % 64
            for number, layout, values in (
                (0, "I", (tid,)),
                (4, "QI", (buffer, 0)),
                (9, "I", (1,)),
                (2, "HQ", (0, buffer << 32)),
            ):
                body += bytes([number << 1 | 1]) + struct.pack("<" + layout, *values).ljust(15, b"\0")
            for _ in range(min(3600, rows - done) // DEPTH + 1):
                stack = [noise.randrange(1, FUNCTIONS + 1) for _ in range(DEPTH)]
                body += b"".join(function(f << 4, 3) for f in stack)
                body += b"".join(function(f << 4 | 2, 2) for f in reversed(stack))
                done += DEPTH
            out.write(bytes([7 << 1 | 1]) + struct.pack("<Q7x", len(body)) + body)
            buffer += 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _pprof(path: Path, samples: Iterator[tuple[list[int], int]]) -> None:
    """Locations 1 to FUNCTIONS, each an address in a separate function, at a line of SOURCE; a sample is its stack and
    a number as its label."""
    texts = ["", "samples", "count", "request", SOURCE, *(f"function_{n}" for n in range(FUNCTIONS))]
    with path.open("wb") as out:
        out.write(b"".join(_field(6, text.encode()) for text in texts))
        out.write(_field(1, b"\x08\x01\x10\x02"))
        for n in range(1, FUNCTIONS + 1):
            number = _varint(n)
            out.write(_field(5, b"\x08" + number + b"\x10" + _varint(n + 4) + b"\x20\x04"))
            line = _field(4, b"\x08" + number + b"\x10" + number)
            out.write(_field(4, b"\x08" + number + b"\x18" + _varint(n << 8) + line))
        for stack, label in samples:
            body = _field(1, b"".join(map(_varint, stack))) + b"\x12\x01\x07"
            if label:
                body += _field(3, b"\x08\x03\x18" + _varint(label))
            out.write(_field(2, body))


def stacks(path: Path, rows: int) -> None:
    """A pprof profile of `rows` stacks; near the root they are alike, as in real programs."""
    noise = random.Random(1)
    widths = [min(FUNCTIONS, 4**k) for k in range(DEPTH)]
    _pprof(path, (([noise.randrange(width) + 1 for width in reversed(widths)], 0) for _ in range(rows)))


def recording(path: Path, rows: int) -> None:
    """A perf.data of the same stacks.  It has no round marks, so all of it is sorted; times are nearly in order."""
    noise = random.Random(1)
    widths = [min(FUNCTIONS, 4**k) for k in range(DEPTH)]
    sample = struct.Struct(f"<IHH Q II QQ QQ {DEPTH}Q").pack
    with path.open("wb") as out:
        out.write(PerfData().mmap(7, 0, FUNCTIONS + 1 << 8, b"/bin/app").bytes())
        for n in range(rows):
            chain = [noise.randrange(width) + 1 << 8 for width in reversed(widths)]
            time = 1000 * n + noise.randrange(100_000)
            out.write(sample(9, 2, 56 + 8 * DEPTH, chain[0], 7, 7, time, 1000, DEPTH + 1, USER, *chain))


def labelled(path: Path, rows: int) -> None:
    """A pprof profile of 1,000 stacks, each with `rows` / 1,000 labels."""
    _pprof(path, (([n % 1000 + 1, 1], n // 1000 + 1) for n in range(rows)))


def graph(path: Path, rows: int) -> None:
    """A Callgrind profile of `rows` costs, of which every second is a call's; each at a distinct place."""
    noise, each = random.Random(1), rows // FUNCTIONS
    with path.open("wb") as out:
        out.write(b"version: 1\npositions: line\nevents: Ir\nfl=(1) " + SOURCE.encode() + b"\n")
        out.write(b"".join(b"fn=(%d) function_%d\n1 1\n" % (n, n) for n in range(1, FUNCTIONS + 1)))
        for n in range(1, FUNCTIONS + 1):
            out.write(b"fn=(%d)\n" % n)
            for line in range(2, each, 2):
                out.write(b"%d 7\ncfn=(%d)\ncalls=1 1\n%d 9\n" % (line, noise.randint(1, FUNCTIONS), line + 1))


INPUTS: dict[str, Callable[[Path, int], None]] = {
    "timeline": timeline,
    "stacks": stacks,
    "recording": recording,
    "labelled": labelled,
    "graph": graph,
}
