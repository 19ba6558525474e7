"""Writes recordings of Austin in its format MOJO."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Frame = tuple[str, str, int]  # file, function, line


class Sample(NamedTuple):
    pid: int
    thread: int
    frames: tuple[Frame, ...]  # outermost first
    time: int
    memory: int
    is_gc: bool = False
    is_idle: bool = False


def number(v: int) -> bytes:
    sign, v = (64, -v) if v < 0 else (0, v)
    out, v = [v & 63 | sign], v >> 6
    while v:
        out[-1] |= 128
        out.append(v & 127)
        v >>= 7
    return bytes(out)


def write(version: int, mode: str, samples: Iterable[Sample]) -> bytes:
    """Strings and frames are numbered for each process."""
    out = [b"MOJ", number(version), b"\1austin\x003.7.0\0\1mode\0", mode.encode(), b"\0"]
    strings, frames = dict[tuple[int, str], int](), dict[tuple[int, Frame], int]()
    for one in samples:
        out += [b"\2", number(one.pid), number(0) * (version > 2), b"%x\0" % one.thread]
        for frame in one.frames:
            for text in frame[:2]:
                if (one.pid, text) not in strings:
                    strings[one.pid, text] = key = 1000 * len(strings) + 2
                    out += [b"\x0b", number(key), text.encode(), b"\0"]
            if (one.pid, frame) not in frames:
                frames[one.pid, frame] = key = (1 << 64) - 1 - len(frames)
                names = [number(strings[one.pid, text]) for text in frame[:2]]
                out += [b"\3", number(key), *names, number(frame[2]), number(0) * 3 * (version > 1)]
            out += [b"\5", number(frames[one.pid, frame])]
        out += [b"\7" * one.is_gc, b"\x08" * one.is_idle]
        out += [b"\x09", number(one.time), b"\x0a", number(one.memory)]
    return b"".join(out)
