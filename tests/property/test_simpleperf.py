"""Samples of simpleperf against the `protobuf` package."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import simpleperf
from tests.support.stackdump import dump

ADDRESS = st.integers(0, 1 << 12) | st.integers(0, (1 << 64) - 1)
FILE = st.tuples(st.text(min_size=1, max_size=3), st.lists(st.text(min_size=1, max_size=3), max_size=4))


@given(st.data(), st.lists(FILE, min_size=1, max_size=4), st.integers(1, 3), st.none() | st.integers(1, 3))
def test_samples_are_read_in_order(data: st.DataObject, files: list[Any], n_events: int, capacity: int | None) -> None:
    records: list[dict[str, Any]] = [{"meta_info": {"event_type": [f"event{k}" for k in range(n_events)]}}]
    for _ in range(data.draw(st.integers(0, 8))):
        chain = []
        for _ in range(data.draw(st.integers(0, 4))):
            file = data.draw(st.integers(0, len(files) - 1))
            chain.append((data.draw(ADDRESS), file, data.draw(st.integers(-1, len(files[file][1]) - 1))))
        count, error = data.draw(st.integers(0, 1 << 40)), data.draw(st.integers(0, 4))
        event = data.draw(st.integers(0, n_events - 1))
        records.append(simpleperf.sample(chain, count=count, event=event, error=error))
        records.append({"context_switch": {"switch_on": True, "time": 5, "thread_id": 7}})
    for k, (path, names) in enumerate(files):
        records.append({"file": {"id": k, "path": path, "symbol": names, "mangled_symbol": [f"_{n}" for n in names]}})
    written = simpleperf.write(records)
    found = []
    for stack, labels, values in dump(written, "simpleperf", capacity=capacity).rows:
        frames = [(f[0] and f[0][0], f[1], tuple(line[:2] for line in f[3])) for f in stack]
        found.append((tuple(frames), tuple(label[:2] for label in labels), values))
    assert found == simpleperf.rows(written)
