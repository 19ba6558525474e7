"""Flight recordings whose chunks repeat stacks."""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.support.jfrfile import Chunk, Field
from tests.support.peak import DRIVER, peak
from tests.unit.test_jfr import Pipe


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


def two_stacks(tail: int) -> bytes:
    """The stack of a sample and that of a delay, of other types: the bytes of both are equal, but not their order."""
    chunk = Chunk(
        {
            "a.Frame": (
                Field("lineNumber", "int"), Field("method", "jdk.types.Method", pool=True),
                Field("bytecodeIndex", "int"), Field("type", "jdk.types.FrameType", pool=True),
            ),
            "a.Stack": (Field("truncated", "boolean"), Field("frames", "a.Frame", array=True)),
            "jdk.JavaMonitorEnter": (
                Field("startTime", "long", unit="@TICKS"), Field("duration", "long", unit="TICKS"),
                Field("eventThread", "java.lang.Thread", pool=True), Field("stackTrace", "a.Stack", pool=True),
                Field("monitorClass", "java.lang.Class", pool=True),
            ),
        }
    )  # fmt: skip
    kind, none = chunk.constant("jdk.types.FrameType", "Inlined"), chunk.symbol("()V")
    for key, class_, name in ((1, "a/A", "one"), (3, "b/B", "three")):
        chunk.constant("jdk.types.Method", chunk.class_(class_), chunk.symbol(name), none, 1, 0, key=key)
    of_sample, of_delay = (
        chunk.constant(f"{of}", False, [(1, 3, 4, kind)]) for of in ("jdk.types.StackTrace", "a.Stack")
    )
    thread = chunk.thread("main", 1, 4711)
    chunk.event("jdk.ExecutionSample", 5, thread, of_sample, chunk.state("STATE_RUNNABLE"))
    chunk.event("jdk.JavaMonitorEnter", 6, 7 + tail, thread, of_delay, chunk.class_("a/Lock"))
    return chunk.bytes()


def test_equal_bytes_of_several_types_are_several_stacks() -> None:
    data = io.BytesIO(two_stacks(0) + two_stacks(1))
    for value, name in (("samples", "a/A.one"), ("delay", "b/B.three")):
        data.seek(0)
        assert [row.name for row in fastprof.top(data, value=value).rows if row.self] == [name]


def test_long_names_are_kept_once(tmp_path: Path) -> None:
    chunk = Chunk()
    kind, class_ = chunk.constant("jdk.types.FrameType", "Inlined"), chunk.class_("a" * 3_000_000)
    for i in range(60):
        method = chunk.constant("jdk.types.Method", class_, chunk.symbol(f"m{i}"), chunk.symbol("()V"), 1, 0)
        stack = chunk.constant("jdk.types.StackTrace", False, [(method, 3, 4, kind)])
        chunk.event("jdk.ExecutionSample", 5, chunk.thread("t", 1, 2), stack, chunk.state("S"))
    (tmp_path / "long.jfr").write_bytes(chunk.bytes())
    ignored = DRIVER.replace("sys.exit(code)", "")  # the names are too long for the model
    assert peak("info", "-q", "--lenient", str(tmp_path / "long.jfr"), driver=ignored) < 120 << 20


# ---- damaged streams


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
