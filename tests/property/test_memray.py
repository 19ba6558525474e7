"""memray's captures against slow sums."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fastprof import formats
from fastprof.core.engine import read
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference import memray
from tests.support.stackdump import Dribble

CHUNK = st.none() | st.integers(1, 64)
CAPACITY = st.none() | st.integers(1, 5)
STACK = st.lists(st.tuples(st.sampled_from("fgh"), st.integers(10, 17)), max_size=20).map(tuple)


@st.composite
def events(draw: st.DrawFn) -> list[memray.Event]:
    found = []
    stacks = draw(st.lists(STACK, min_size=1, max_size=4))
    kinds = [memray.MALLOC, memray.FREE, memray.MMAP, memray.MUNMAP, 2, memray.PYMALLOC_FREE]
    for _ in range(draw(st.integers(0, 40))):
        kind = draw(st.sampled_from(kinds))
        address = draw(st.integers(1, 20)) * 8 if draw(st.booleans()) else draw(st.integers(1, 1 << 45)) * 8
        size = draw(st.integers(1, 100) | st.integers(2**32 - 2, 2**40))
        found.append(memray.Event(draw(st.integers(1, 3)), draw(st.sampled_from(stacks)), kind, address, size))
    return found


@given(events(), st.sampled_from([11, 12, 13]), CHUNK, CAPACITY)
def test_captures_read_as_by_slow_sums(
    found: list[memray.Event], version: int, chunk: int | None, capacity: int | None
) -> None:
    model, rows = Model(), []
    with Source(Dribble(memray.write(version, found), chunk), name="test") as source:
        reader = formats.get("memray").reader_class()(source, model, Options(), Log())
        for batch in read(reader, capacity):
            for i in range(len(batch)):
                stack, node = [], batch["stack"][i]
                while node:
                    node, frame = model.row("stacks", node)
                    function, line, *_ = model.row("lines", model.row("frames", frame)[4])
                    stack.append((model.get_function(function).name.decode(), line))
                thread = model.row("threads", batch["thread"][i])[2] if batch["thread"][i] else 0
                values = tuple(batch.values(k)[i] for k in range(memray.COLUMNS))
                rows.append((thread, tuple(reversed(stack)), values))
    assert memray.added(rows) == memray.added((*key, values) for key, values in memray.sums(found).items())
