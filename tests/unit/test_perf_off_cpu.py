"""perf.data: off-CPU time from switches of threads."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.support.perfdata import (
    BPF_OUTPUT,
    CALLCHAIN,
    CONTEXT_SWITCH,
    CONTEXT_SWITCHES,
    IP,
    PERIOD,
    RAW,
    TID,
    TIME,
    USER,
    PerfData,
    Switches,
)

ALL = IP | TID | TIME | CALLCHAIN | PERIOD


def rows(data: PerfData, name: str = "off-cpu") -> list[tuple[int, int, int, list[int]]]:
    """Thread, time, value and addresses, for samples with a value."""
    found = []
    with fastprof.open(io.BytesIO(data.bytes()), symbolize=False) as profile:
        model = profile._model
        for batch in profile.batches():
            names = [type_.name for type_ in model.parts[batch.part].value_types]
            values = batch.values(names.index(name))
            for thread, time, stack, value in zip(batch["thread"], batch["time"], batch["stack"], values, strict=True):
                if value:
                    found.append((model.row("threads", thread)[2], time, value, addresses(model, stack)))
    return found


def addresses(model: Any, stack: int) -> list[int]:
    found = []
    while stack:
        stack, frame = model.row("stacks", stack)
        _, low, high, *_ = model.row("frames", frame)
        found.append(low | high << 32)
    return found


def info(data: PerfData) -> Any:
    return fastprof.info(io.BytesIO(data.bytes()))


@pytest.mark.parametrize("order", "<>")
def test_a_thread_is_off_cpu_from_one_switch_to_the_next_at_the_stack_of_the_first(order: str) -> None:
    data = Switches(order).switched(7, 0, 1000, [0x70, 0x71]).switched(0, 9, 1500, cpu=1)
    data.switched(0, 7, 3000).switched(9, 0, 3100, [0x90]).switched(7, 9, 4000, [0x72]).round()
    assert rows(data) == [(7, 1000, 2000, [0x70, 0x71]), (9, 3100, 900, [0x90])]
    assert info(data).not_representable["unended-waits"] == 1


def test_the_idle_task_has_no_off_cpu_time() -> None:
    data = Switches().switched(0, 7, 1000).switched(7, 0, 2000).switched(0, 8, 3000)
    assert rows(data) == []


def test_labels_are_those_of_the_switch(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(Switches().switched(7, 9, 1000, [0x70]).switched(9, 7, 3000).bytes())
    kept = [fastprof.top(file, symbolize=False, value="off-cpu", label=[f"next_pid={pid}"]) for pid in (9, 7)]
    assert [top.total for top in kept] == [2000, 0]


def test_a_switch_is_reported_by_a_sample_and_a_record_but_counts_once() -> None:
    data = Switches(flags=CONTEXT_SWITCH).switched(7, 9, 1000, [0x70]).switch(7, 7, 1001, out=True)
    data.switch(9, 9, 1002, out=False).switch(7, 7, 5000, out=False).switch(7, 7, 6000, out=False)
    assert rows(data) == [(7, 1000, 4000, [0x70])]
    assert "unended-waits" not in info(data).not_representable


def test_records_alone_have_no_stacks() -> None:
    data = PerfData(ALL, flags=CONTEXT_SWITCH).comm(7, 8, b"app").sample(7, [0x70], 900, tid=8)
    data.switch(7, 8, 1000, out=True).switch(7, 8, 1250, out=False)
    assert rows(data) == [(8, 1000, 250, [])]
    assert rows(data, "cpu-clock") == [(8, 900, 250_000, [0x70])]


def test_every_context_switch_that_was_sampled_has_a_stack() -> None:
    data = PerfData(ALL, period=1, event=CONTEXT_SWITCHES, flags=CONTEXT_SWITCH).sample(7, [0x70], 1000, 1)
    data.switch(7, 7, 1010, out=True).switch(7, 7, 2000, out=False)
    assert rows(data) == [(7, 1000, 1000, [0x70])]


def test_not_every_context_switch_is_a_sample_if_they_are_counted() -> None:
    data = PerfData(ALL, period=2, event=CONTEXT_SWITCHES, flags=CONTEXT_SWITCH).sample(7, [0x70], 1000, 2)
    data.switch(7, 7, 1010, out=True).switch(7, 7, 2000, out=False)
    assert rows(data) == [(7, 1010, 990, [])]


def test_without_the_return_of_a_thread_nothing_is_added_and_that_is_reported() -> None:
    data = Switches().switched(7, 0, 1000, [0x70]).switched(7, 0, 9000, [0x71]).switched(0, 7, 9500)
    assert rows(data) == [(7, 9000, 500, [0x71])]
    log = info(data)
    assert log.not_representable["unended-waits"] == 1
    assert any("1 of 2 switches" in text for text in log.warnings)


def test_threads_that_end_wait_for_nothing() -> None:
    data = Switches().exit(7, 7, 900).switched(7, 0, 1000, [0x70])
    assert rows(data) == [] and not info(data).not_representable
    data.fork(7, 1, 2000).switched(7, 0, 3000, [0x70]).switched(0, 7, 3200)
    assert rows(data) == [(7, 3000, 200, [0x70])]


def test_recordings_without_switches_have_no_such_value() -> None:
    assert "off-cpu" not in info(PerfData(ALL).sample(7, [0x70], 900)).facts["totals"]


@pytest.mark.parametrize("order", "<>")
def test_off_cpu_times_that_perf_summed_up(order: str) -> None:
    """Since Linux 6.15 the sample is in its raw data: pid, tid, nanoseconds, chain, control group."""
    data = PerfData(IP | TID | TIME | PERIOD | RAW, order, period=1, event=BPF_OUTPUT).named(b"offcpu-time")
    raw = data.pack("IIQQQQQQ", 7, 8, 5_000_000, 3, USER, 0x70, 0x71, 1)
    data.sample(0, [0], ~0 << 32 & (1 << 64) - 1, 1, raw=raw)
    assert rows(data, "offcpu-time") == [(8, 0, 5_000_000, [0x70, 0x71])]
    assert info(data).facts["totals"]["offcpu-time"] in (5_000_000, "5 ms", "5.00 ms")


@pytest.mark.parametrize("n", [0, 3, 5, 1 << 61, (1 << 64) - 1])
def test_chains_beyond_their_raw_data_are_errors(n: int) -> None:
    data = PerfData(IP | TID | TIME | PERIOD | RAW, period=1, event=BPF_OUTPUT).named(b"offcpu-time")
    data.sample(0, [0], 1000, 1, raw=data.pack("IIQQQQQ", 7, 8, 5, n, USER, 0x70, 1))
    if n < 4:
        assert rows(data, "offcpu-time")[0][:3] == (8, 1000, 5)
    else:
        with pytest.raises(fastprof.FastprofError, match="too short"):
            rows(data, "offcpu-time")


def test_a_thread_waits_longer_than_stacks_are_kept(tmp_path: Path) -> None:
    """`top` drops most of a hundred thousand distinct stacks while it reads."""
    data = Switches().switched(7, 9, 1000, [0x70, 0x71, 0x72])
    for n in range(30_000):
        data.switched(9, 9, 2000 + n, [0x1000 + n, 0x200000 + n, 0x400000 + n])
    file = tmp_path / "perf.data"
    file.write_bytes(data.round().switched(9, 7, 101_000).bytes())
    found = fastprof.top(file, symbolize=False, value="off-cpu", n=3)
    assert [(row.name, row.self) for row in found.rows if row.self][:1] == [("0x70", 100_000)]


def test_off_cpu_times_of_older_versions_are_ordinary_samples_without_a_time() -> None:
    data = PerfData(ALL, period=1, event=BPF_OUTPUT).named(b"offcpu-time").sample(7, [0x70], 1000, 3, tid=8)
    data.sample(7, [0x71], (1 << 64) - (1 << 32) + 1, 5_000_000, tid=8)
    assert rows(data, "offcpu-time") == [(8, 1000, 3, [0x70]), (8, 0, 5_000_000, [0x71])]
    facts = info(data).facts
    assert "period" not in facts and facts["last_time_ns"] == 1000


def test_the_text_of_perf_script_has_nanoseconds_too() -> None:
    text = b"app 7/8 [000] 12.000000:  5000000 offcpu-time: \n\t  70 wait+0x1 (/bin/app)\n\n"
    with fastprof.open(io.BytesIO(text)) as profile:
        assert list(profile.batches())
        assert [type_.unit for type_ in profile._model.parts[0].value_types] == ["count", "nanoseconds"]
