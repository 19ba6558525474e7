"""Sessions of pyinstrument against a slow reader."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.stackdump import dump

WORD = st.text("ab<>é;. ", min_size=1, max_size=3)
PLACED = st.builds(
    lambda name, file, first, line, class_: f"{name}\0{file}\0{first}\1l{line}" + (f"\1c{class_}" if class_ else ""),
    WORD, WORD, st.integers(0, 99), st.integers(1, 99), st.none() | WORD,
)  # fmt: skip
FRAME = PLACED | st.sampled_from(["[await]", "[out-of-context]", "exec\0<built-in>\x000", "f\0a.py\x003\1h1"])
RECORD = st.tuples(st.lists(FRAME, max_size=5), st.integers(0, 10**12))


def frame(text: str) -> tuple[str, str, int, int]:
    identifier, *attributes = text.split("\1")
    name, file, first = identifier.split("\0") if "\0" in identifier else (identifier, "", "0")
    of = {a[0]: a[1:] for a in attributes}
    return f"{of['c']}.{name}" if "c" in of else name, file, int(first), int(of.get("l", "0"))


@given(st.lists(RECORD, max_size=8), st.none() | st.integers(1, 64), st.none() | st.integers(1, 5))
def test_samples_are_those_written(
    records: list[tuple[list[str], int]], chunk: int | None, capacity: int | None
) -> None:
    thread = "MainThread\0<thread>\x00140636715953024"
    session = {"start_time": 5.5, "duration": 9, "sample_count": len(records), "start_call_stack": [thread]}
    session |= {"frame_records": [[[thread, *stack], ns / 1e9] for stack, ns in records]}
    found: Counter[Any] = Counter()
    for stack, _, values in dump(json.dumps(session).encode(), "pyinstrument", chunk=chunk, capacity=capacity).rows:
        lines = [f[3][0] for f in reversed(stack)]
        key = tuple((name.decode(), file.decode(), first, line) for name, _, file, first, line, _ in lines)
        found[key, values] += 1
    assert found == Counter((tuple(map(frame, stack)), (ns, 1)) for stack, ns in records)
