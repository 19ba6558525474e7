"""Switches of the scheduler in Perfetto traces: states of threads, and off-CPU time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.options import Options
from tests.support import perfettotrace as t
from tests.support.product import batches, open_input

S, D, Z, PREEMPTED = 1, 2, 32, 2048
CALLS = [t.atrace(120, 11, "B|10|load\n"), t.atrace(190, 11, "E|10\n")]
SWITCHES = [(100, 0, 0, 11), (130, 11, S, 12), (180, 12, PREEMPTED, 11), (200, 11, D, 0)]  # of CPU 0
OTHERS = [(160, 0, 0, 13), (210, 13, Z, 12)]  # of CPU 1
WAKINGS = [(150, 11)]
TREE = t.tree((10, 11, "worker"), (10, 12, ""))
LONG = (
    TREE
    + t.bundle(1, *(t.switch(*one) for one in OTHERS))
    + t.bundle(0, *(t.switch(*one) for one in SWITCHES), *(t.waking(*one) for one in WAKINGS), *CALLS)
)
# the trace processor starts no state at the first compact switch of a CPU
SHORT = (
    TREE
    + t.bundle(1, t.compact([(50, 0, 0), *((time, state, tid) for time, _, state, tid in OTHERS)], []))
    + t.bundle(0, t.compact([(50, 0, 0), *((time, state, tid) for time, _, state, tid in SWITCHES)], WAKINGS), *CALLS)
)


def states(data: bytes) -> list[tuple[int, int, str, str, int, int | None]]:
    """Pid, tid, state, letter, begin and end of each state."""
    opened = open_input(data, Options(**{"perfetto.data": "states"}), from_="perfetto")
    model, found, open_ = opened.model, [], {}
    for batch in batches(opened):
        for op, time, thread, function in zip(
            *(batch[column] for column in ("op", "time", "thread", "function")), strict=True
        ):
            object_, _, name = model.row("functions", function)[:3]
            letter = model.string(model.row("objects", object_)[0]).decode()
            state = (*model.row("threads", thread)[1:3], model.string(name).decode(), letter)
            if op == 1:
                assert open_[thread][0] == state
                found.append((*state, open_.pop(thread)[1], time))
            else:
                assert thread not in open_
                open_[thread] = state, time
    found += [(*state, begin, None) for state, begin in open_.values()]
    return sorted(found, key=lambda one: (one[1], one[4]))


def off_cpu(data: bytes) -> Counter[tuple[int, str]]:
    opened = open_input(data, Options(**{"perfetto.data": "off-cpu"}), from_="perfetto")
    model, found = opened.model, Counter[tuple[int, str]]()
    for batch in batches(opened):
        for i, stack in enumerate(batch["stack"]):
            names: list[str] = []
            while stack:
                stack, frame = model.row("stacks", stack)
                function = model.row("lines", model.row("frames", frame)[-1])[0]
                names.append(model.string(model.row("functions", function)[2]).decode())
            found[model.row("threads", batch["thread"][i])[2], ";".join(reversed(names))] += batch.values(0)[i]
    return found


@pytest.mark.parametrize("data", [LONG, SHORT], ids=["events", "compact"])
def test_states_of_threads(data: bytes) -> None:
    assert states(data) == [
        (10, 11, "running", "", 100, 130),
        (10, 11, "blocked", "S", 130, 150),
        (10, 11, "runnable", "R", 150, 180),
        (10, 11, "running", "", 180, 200),
        (10, 11, "blocked", "D", 200, None),
        (10, 12, "running", "", 130, 180),
        (10, 12, "runnable", "R+", 180, 210),
        (10, 12, "running", "", 210, None),
        (0, 13, "running", "", 160, 210),
    ]


@pytest.mark.parametrize("data", [LONG, SHORT], ids=["events", "compact"])
def test_off_cpu_time_by_open_calls(data: bytes) -> None:
    assert off_cpu(data) == {(11, "load;blocked"): 20, (11, "load;runnable"): 30, (12, "runnable"): 30}


def test_names_of_threads_are_those_of_the_process_tree_or_of_switches() -> None:
    opened = open_input(LONG, Options(**{"perfetto.data": "states"}), from_="perfetto")
    assert [*batches(opened)]
    names = opened.model.parts[0].extra["thread_names"]
    assert {tid: name for _, tid, name in names} == {11: b"worker", 12: b"t12", 13: b"t13"}


def test_states_are_the_default_of_a_trace_with_switches_only(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(t.bundle(0, *(t.switch(*one) for one in SWITCHES)))
    assert {row.name for row in fastprof.top(tmp_path / "in", n=0).rows} == {"running", "blocked", "runnable"}
    (tmp_path / "in").write_bytes(LONG)
    assert {row.name for row in fastprof.top(tmp_path / "in", n=0).rows} == {"load"}


def test_a_lost_switch_ends_the_state_of_its_thread() -> None:
    data = t.bundle(0, t.switch(100, 0, 0, 11), t.switch(150, 12, S, 13), t.switch(160, 13, S, 0))
    assert states(data) == [
        (0, 11, "running", "", 100, 150),
        (0, 12, "blocked", "S", 150, None),
        (0, 13, "running", "", 150, 160),
        (0, 13, "blocked", "S", 160, None),
    ]


@pytest.mark.parametrize("kind", ["states", "off-cpu"])
def test_any_capacity_of_a_batch_gives_the_same_rows(kind: str) -> None:
    def rows(capacity: int) -> list[Any]:
        opened = open_input(LONG, Options(**{"perfetto.data": kind}), from_="perfetto")
        names = ("time", "thread", "stack") if kind == "off-cpu" else ("op", "time", "thread", "function")
        return [
            row
            for batch in batches(opened, capacity=capacity)
            for row in zip(*(list(batch[name]) for name in names), strict=True)
        ]

    assert rows(1) == rows(1000)


def test_waits_that_have_no_end_are_counted() -> None:
    data = LONG + t.bundle(0, t.switch(220, 0, 0, 14), t.switch(230, 14, PREEMPTED, 0))  # 11 and 14; 13 has ended
    found = [fastprof.info(data, from_="perfetto", perfetto={"data": kind}) for kind in ("off-cpu", "states")]
    assert [log.not_representable["unended-waits"] for log in found] == [2, 0]


@pytest.mark.parametrize("kind", ["calls", "states", "off-cpu"])
def test_a_malformed_compact_form_leaves_the_other_events_of_its_packet(kind: str) -> None:
    number, lists = t.compact([(50, 0, 0), (100, 0, 11)], [])
    broken = (number, lists.replace(t.message((3, t.varint(0) + t.varint(11))), t.message((3, b"\0\x8b"))))
    assert broken[1] != lists
    switches = [t.switch(*one) for one in SWITCHES]
    data, whole = (TREE + t.bundle(0, *CALLS, *more, *switches) for more in ([broken], []))
    log = fastprof.info(data, from_="perfetto", perfetto={"data": kind})
    assert log.losses == {"damaged-switches": 1}
    if kind == "calls":
        assert log.facts["records"] == 2
    elif kind == "states":
        assert states(data) == states(whole) != []
    else:
        assert off_cpu(data) == off_cpu(whole) == {(11, "load;blocked"): 50}


def test_states_of_other_kernels() -> None:
    """As the trace processor shows them: a thread whose CPU runs another one has no state until its next event."""

    def task(time: int, cpu: int, tid: int, state: int) -> bytes:
        one = t.message((1, cpu), (2, f"t{tid}"), (3, tid), (4, state), (5, 100))
        return t.packet((117, one), time=time, seq=None)

    created, runnable, running, sleeps, waits, stopped, dead, destroyed = range(1, 9)
    events = [(10, 0, 11, created), (15, 0, 11, runnable), (20, 0, 11, running), (30, 0, 11, sleeps)]
    events += [(40, 0, 12, running), (45, 1, 11, running), (50, 0, 13, running), (60, 0, 12, waits)]
    events += [(70, 0, 13, stopped), (80, 1, 11, dead), (85, 0, 13, destroyed), (90, 0, 14, 99), (95, 0, 0, running)]
    data = b"".join(task(*one) for one in events)
    assert [one[1:] for one in states(data)] == [
        (11, "created", "", 10, 15),
        (11, "runnable", "R", 15, 20),
        (11, "running", "", 20, 30),
        (11, "blocked", "S", 30, 45),
        (11, "running", "", 45, 80),
        (12, "running", "", 40, 50),
        (12, "blocked", "D", 60, None),
        (13, "running", "", 50, 70),
        (13, "stopped", "T", 70, 85),
    ]
    assert off_cpu(data) == {(11, "runnable"): 5, (11, "blocked"): 15, (13, "stopped"): 15}
    with pytest.raises(fastprof.FormatError, match="a packet is malformed"):
        states(task(10, 1 << 20, 11, running))
