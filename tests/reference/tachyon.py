"""Writes recordings of Python 3.15's profiling.sampling by their published layout."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import zstandard

Frame = tuple[str, str, int, int]  # file, function, line, column


class Sample(NamedTuple):
    thread: int
    interpreter: int
    time: int  # microseconds since the start, of a thread not falling
    state: int
    frames: tuple[Frame, ...]  # innermost first


def varint(v: int) -> bytes:
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    return bytes([*out, v])


def zigzag(v: int) -> bytes:
    return varint(v << 1 if v >= 0 else ~(v << 1))


class Writer:
    """Samples as CPython's writer encodes them: each in the shortest of the four kinds."""

    def __init__(self, order: str = "<") -> None:
        self.order = order
        self.strings: dict[str, int] = {}
        self.frames: dict[Frame, int] = {}
        self.threads: dict[tuple[int, int], tuple[int, list[int]]] = {}

    def _frame(self, frame: Frame) -> int:
        for text in frame[:2]:
            self.strings.setdefault(text, len(self.strings))
        return self.frames.setdefault(frame, len(self.frames))

    def samples(self, samples: Sequence[Sample]) -> bytes:
        out, at = [], 0
        while at < len(samples):
            one = samples[at]
            last, stack = self.threads.get((one.thread, one.interpreter), (0, None))
            ids = [self._frame(frame) for frame in one.frames]
            run = [one]
            if stack == ids:
                run = [s for s in samples[at:] if s[:2] == one[:2] and s.frames == one.frames]
                n = next((k for k, s in enumerate(run) if s is not samples[at + k]), len(run))
                run = run[:n]
            head = struct.pack(self.order + "QI", one.thread, one.interpreter)
            states = []
            for sample in run:
                states.append(varint(sample.time - last) + bytes([sample.state]))
                last = sample.time
            shared = 0
            while stack and shared < min(len(stack), len(ids)) and stack[-1 - shared] == ids[-1 - shared]:
                shared += 1
            fresh = ids[: len(ids) - shared]
            tail = b"".join(map(varint, fresh))
            if stack == ids:
                out.append(head + b"\0" + varint(len(run)) + b"".join(states))
            elif stack is None or not shared:
                out.append(head + b"\1" + states[0] + varint(len(ids)) + b"".join(map(varint, ids)))
            elif shared == len(stack):
                out.append(head + b"\2" + states[0] + varint(shared) + varint(len(fresh)) + tail)
            else:
                out.append(head + b"\3" + states[0] + varint(len(stack) - shared) + varint(len(fresh)) + tail)
            self.threads[one.thread, one.interpreter] = (last, ids)
            at += len(run)
        return b"".join(out)


def write(
    samples: Sequence[Sample], *, compressed: bool = False, order: str = "<", mode: int = 1, interval: int = 1000,
    start: int = 5_000_000, data: bytes | None = None,
) -> bytes:  # fmt: skip
    writer = Writer(order)
    body = writer.samples(samples) if data is None else data
    if compressed:
        body = zstandard.ZstdCompressor(5).compress(body)
    strings = b"".join(varint(len(text.encode())) + text.encode() for text in writer.strings)
    frames = b"".join(
        varint(writer.strings[file])
        + varint(writer.strings[name])
        + zigzag(line)
        + zigzag(0)
        + zigzag(column)
        + zigzag(0 if column < 0 else 3)
        + b"\xff"
        for file, name, line, column in writer.frames
    )
    statistics = struct.pack(order + "ddddII", 1.5, 1000.0, 0.0, 0.0, 3, 0) + b"TACHSTAT"
    statistics += struct.pack(order + "II", 1, 56)
    places = (64 + len(body), 64 + len(body) + len(strings))
    size = places[1] + len(frames) + len(statistics) + 32
    head = struct.pack(order + "II4BQQQIQQII", 0x54414348, 1, 3, 15, 0, 0, start, interval, len(samples),
                       len(writer.threads), *places, compressed, mode)  # fmt: skip
    foot = struct.pack(order + "IIQ16x", len(writer.strings), len(writer.frames), size)
    return head + body + strings + frames + statistics + foot
