"""Flight recordings against a slow reader: every sample, with its time, thread, stack and values."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import fastprof
from fastprof.core.engine import read
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats.jfr.read import JfrReader
from tests.reference import jfr as reference
from tests.support.jfrfile import Chunk

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
FRAMES = st.tuples(
    NAMES,
    NAMES,
    st.sampled_from(["()V", "(I)J"]),
    st.integers(-1, 1 << 20),
    st.integers(-1, 70_000),
    st.just("Inlined"),
)
STACKS = st.lists(FRAMES, max_size=12)
KEYS = st.one_of(st.integers(1, 200), st.integers(1, (1 << 64) - 1))
SAMPLES = st.lists(st.tuples(st.integers(-(10**6), 1 << 40), STACKS, NAMES, st.integers(1, 50)), max_size=8)
SHAPES = st.tuples(
    st.booleans(),
    st.sampled_from([1, 3, 1 << 20]),
    st.sampled_from([10**9, 2_893_201_000, 1_000_000]),
    st.integers(20, 1 << 40),
)


def chunk_of(shape: tuple[bool, int, int, int], samples: list[Any], keys: list[int]) -> Chunk:
    compressed, every, rate, first = shape
    chunk = Chunk(compressed=compressed, every=every, ticks_per_second=rate, first_id=first)
    fresh = iter(keys)
    for ticks, frames, name, id_ in samples:
        stack = chunk.constant("jdk.types.StackTrace", False, [chunk.frame(*one) for one in frames], key=next(fresh))
        thread = chunk.thread(name, id_, 100 + id_)
        chunk.event("jdk.ExecutionSample", ticks, thread, stack, chunk.state("STATE_RUNNABLE"))
        class_ = chunk.class_(f"a/{name}")
        chunk.event("jdk.ObjectAllocationInNewTLAB", ticks, thread, stack, class_, id_, 1000 * id_)
        chunk.event("jdk.CPULoad", ticks, 0.5)
    return chunk


def expected(data: bytes) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for event in reference.events(data):
        values = event.values
        if "stackTrace" not in values:
            continue
        thread = values.get("eventThread") or values["sampledThread"]
        frames = tuple(
            (
                f"{frame['method']['type']['name']['string']}.{frame['method']['name']['string']}",
                max(frame["lineNumber"], 0),
                max(frame["bytecodeIndex"] + 1, 0),
            )
            for frame in values["stackTrace"]["frames"]
        )
        amounts = (1, 0, 0) if event.type == "jdk.ExecutionSample" else (0, 1, values["tlabSize"])
        found[max(event.time, 0), thread["osThreadId"], thread["javaName"], frames, amounts] += 1
    return found


def actual(data: bytes) -> Counter[Any]:
    model, found = Model(), Counter[Any]()

    def frame(id_: int) -> tuple[str, int, int]:
        function, line, column, _ = model.row("lines", model.row("frames", id_)[-1])
        return model.string(model.row("functions", function)[2]).decode(), line, column

    def stack(node: int) -> tuple[Any, ...]:
        parent, last = model.row("stacks", node)
        return (frame(last), *(stack(parent) if parent else ()))

    def name(label: int) -> str:
        while label:
            row = model.row("labels", label)
            if model.string(row[1]) == b"thread_name":
                return model.string(row[2]).decode()
            label = row[0]
        return ""

    for batch in read(JfrReader(Source(data), model, Options(), Log())):
        columns = [batch.values(k) for k in range(batch.c.n_values)]
        for i in range(len(batch)):
            node, tid = batch["stack"][i], model.row("threads", batch["thread"][i])[2]
            values = tuple(column[i] for column in columns)
            frames = stack(node) if node else ()
            found[batch["time"][i], tid, name(batch["label"][i]), frames, values] += 1
    return found


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(SHAPES, SAMPLES), min_size=1, max_size=2), st.lists(KEYS, min_size=16, max_size=16, unique=True)
)
def test_samples_are_those_of_the_slow_reader(chunks: list[Any], keys: list[int]) -> None:
    data = b"".join(chunk_of(shape, samples, keys).bytes() for shape, samples in chunks)
    assert actual(data) == expected(data)


@settings(deadline=None, max_examples=20)
@given(SHAPES, SAMPLES, st.data())
def test_a_changed_byte_is_an_error_or_a_recording(shape: Any, samples: list[Any], data: st.DataObject) -> None:
    made = bytearray(chunk_of(shape, samples, [*range(1, 9)]).bytes())
    at = data.draw(st.integers(0, len(made) - 1))
    made[at] = data.draw(st.integers(0, 255))
    for lenient in (False, True):
        for to in ("folded", "perfetto"):
            try:
                fastprof.convert(io.BytesIO(bytes(made)), io.BytesIO(), from_="jfr", to=to, lenient=lenient)
            except fastprof.FastprofError:
                continue
