"""Flight recordings whose chunks repeat stacks."""

from __future__ import annotations

import io
import random
from collections import Counter
from typing import Any

import pytest

import fastprof
from tests.support.jfrfile import Chunk, Field


def changed_chunk(noise: random.Random) -> bytes:
    """Three stacks, whose bytes are most often those of other chunks, but not always the methods of their keys."""
    more = noise.random() < 0.1
    chunk = Chunk({"a.Other": (Field("startTime", "long"),)} if more else None)
    kinds = noise.choice((("Inlined", "Native"), ("Native", "Inlined"))) if noise.random() < 0.3 else ("Inlined",)
    for kind in kinds:
        chunk.constant("jdk.types.FrameType", kind)
    frames = [("a/B", f"m{i}", "()V", i + 1, 2, "Inlined") for i in range(4)]
    keys = [chunk.stack(frames[i:]) for i in range(3)]
    chunk.stack(frames[:1])  # no sample has it
    for pool, odds in (("Symbol", 0.1), ("Method", 0.1)):
        values = chunk.pools[f"jdk.types.{pool}"]
        for key in [*values]:
            if noise.random() < odds:
                values[key] = values[noise.choice([*values])]
            if noise.random() < odds:
                del values[key]
    if noise.random() < 0.2:
        stacks = chunk.pools["jdk.types.StackTrace"]
        chunk.pools["jdk.types.StackTrace"] = dict(reversed(stacks.items()))
    for key in noise.choices(keys, k=noise.randrange(4)):
        chunk.event("jdk.ExecutionSample", 1, chunk.thread("t", 1, 2), key, chunk.state("S"))
    return chunk.bytes()


@pytest.mark.parametrize("options", [{}, {"kinds": True}])
def test_stacks_of_earlier_chunks_have_the_methods_of_their_own_chunk(options: Any) -> None:
    def counted(data: bytes) -> tuple[Counter[str], int]:
        summary = fastprof.convert(io.BytesIO(data), out := io.BytesIO(), to="folded", jfr=options)
        lines = (line.rpartition(" ") for line in out.getvalue().decode().splitlines())
        found = Counter({stack: int(n) for stack, _, n in lines})
        return found, sum(n for text, n in summary.repairs.items() if "did not write" in text)

    noise = random.Random(1)
    chunks = [changed_chunk(noise) for _ in range(30)]
    alone = [counted(chunk) for chunk in chunks]
    stacks = sum((found for found, _ in alone), Counter[str]())
    assert len(stacks) > 20
    assert counted(b"".join(chunks)) == (stacks, sum(missing for _, missing in alone))


# ---- damaged streams


class Pipe(io.RawIOBase):
    """Bytes that can be read once."""

    def __init__(self, data: bytes) -> None:
        self._rest = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        return self._rest.readinto(into)


def test_of_a_damaged_stream_the_same_is_read_and_lost_as_of_the_file() -> None:
    def read(source: Any) -> tuple[list[str], str]:
        log = fastprof.convert(source, out := io.BytesIO(), to="folded", lenient=True)
        return sorted(out.getvalue().decode().splitlines()), str(log.losses)

    noise, lost = random.Random(2), set[str]()
    chunks = [changed_chunk(noise) for _ in range(4)]
    starts = [sum(map(len, chunks[:i])) for i in range(4)]
    for i in range(24):
        changed = bytearray(b"".join(chunks))
        at = noise.choice(starts) + noise.randrange(32) if i % 2 else noise.randrange(len(changed))
        changed[at] ^= 1 << noise.randrange(8)
        data = bytes(changed)
        try:
            expected = read(io.BytesIO(data))
        except fastprof.FastprofError as error:
            with pytest.raises(type(error)):
                read(Pipe(data))
            continue
        assert read(Pipe(data)) == expected
        lost.add(expected[1])
    assert len(lost) > 5
