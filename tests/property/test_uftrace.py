"""Data of uftrace against a slow reader."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fastprof import formats
from fastprof.core.engine import read
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference import uftrace
from tests.reference.uftrace import ENTRY, EXIT, LOST, Record, Switch

KIND = st.sampled_from([ENTRY, ENTRY, EXIT, EXIT, LOST])
RECORD = st.builds(lambda *of: Record(*of), st.integers(1, 60), KIND, st.integers(0, 3), st.integers(0, 7))
RECORDS = st.lists(RECORD, max_size=12).map(lambda found: sorted(found, key=lambda one: one.time))
SWITCH = st.builds(Switch, st.integers(1, 60), st.sampled_from([7, 9]), st.sampled_from(["in", "out", "preempted"]))


def replayed(data: bytes, capacity: int | None) -> tuple[Counter[str], Counter[str]]:
    """Times and calls by stack: each exit leaves the innermost call, and all are left at the end."""
    own, calls = Counter[str](), Counter[str]()
    model, log = Model(), Log()
    stacks: dict[int, tuple[list[str], int]] = {}
    with Source(data) as source:
        reader = formats.get("uftrace").reader_class()(source, model, Options(), log)
        for batch in read(reader, capacity):
            columns = (batch[name].tolist() for name in ("time", "op", "function", "thread"))
            for time, op, function, thread in zip(*columns, strict=True):
                stack, last = stacks.get(thread, ([], time))
                assert time >= last
                own[";".join(stack)] += time - last
                name = model.string(model.row("functions", function)[2]).decode()
                if op:
                    assert stack.pop() == name
                else:
                    stack.append(name)
                    calls[";".join(stack)] += 1
                stacks[thread] = (stack, time)
    assert not any(stack for stack, _ in stacks.values())
    own.pop("", None)
    return +own, calls


@given(
    st.dictionaries(st.sampled_from([7, 9]), RECORDS, min_size=1),
    st.lists(SWITCH, max_size=8, unique_by=lambda one: (one.tid, one.time)),
    st.none() | st.integers(1, 5),
)
def test_times_and_calls_are_those_of_a_slow_reader(
    threads: dict[int, list[Record]], switches: list[Switch], capacity: int | None
) -> None:
    data = uftrace.write({tid: uftrace.data(records) for tid, records in threads.items()}, uftrace.perf(switches))
    assert replayed(data, capacity) == uftrace.sums(threads, switches)
