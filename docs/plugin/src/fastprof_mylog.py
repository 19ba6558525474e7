"""A format that fastprof reads through this package: lines of microseconds and stacks.

mylog 1
1500 main/work/hash
20 main/idle
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import fastprof


def sniff(head: bytes) -> bool:
    """Whether the first 4 KiB of an input, decompressed, are of this format."""
    return head.startswith(b"mylog 1\n")


def read(file: IO[bytes]) -> fastprof.Profile:
    """The profile in a binary file, which can be read once, from its beginning."""
    return fastprof.from_stacks(rows(file), values=[("time", "microseconds")])


def rows(file: IO[bytes]) -> Iterator[tuple[list[str], int]]:
    for number, line in enumerate(file, 1):
        if number == 1:
            continue
        value, _, stack = line.decode().rstrip("\n").partition(" ")
        if not value.isdecimal() or not stack:
            raise ValueError(f"line {number} is {line!r:.60}, expected microseconds and a stack")
        yield stack.split("/"), int(value)


PLUGIN = fastprof.Plugin("mylog", (".mylog",), sniff, read, title="mylog: microseconds and stacks")
