"""Flight recordings: samples that are added up, also by processors without certain instructions."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest

import fastprof
from fastprof.core._c import ffi, lib
from fastprof.core.engine import read
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats.jfr.read import JfrReader
from tests.support.jfrfile import Chunk
from tests.unit.test_jfr import WORK, Stream


def totals(
    data: bytes, *, summed: bool, portable: bool, holds: bool = False, n_stacks: int = 0
) -> tuple[Counter[Any], int, tuple[int, int]]:
    """Values and numbers of samples by stack, labels and thread; the rows; first and last time.

    `n_stacks`: those that the model already has.
    """
    model, log = Model(), Log()
    lib.fp_model_stacks(model.c, ffi.new("uint32_t[]", n_stacks), [n_stacks], 1, ffi.new("uint32_t *"))
    reader = JfrReader(Source(data), model, Options(), log)
    reader.summed, reader._r.is_portable, reader._r.always_holds = summed, portable, holds
    found: Counter[Any] = Counter()
    times, rows = list[int](), 0
    for batch in read(reader):
        rows += len(batch)
        for i in range(len(batch)):
            key = int(batch.c.stack[i]), int(batch.c.label[i]), int(batch.c.thread[i])
            found[key, "samples"] += int(batch.c.count[i]) if summed else 1
            times += [int(batch.c.time[i])]
            for k in range(batch.c.n_values):
                found[key, k] += int(batch.c.values[k * batch.c.cap + i])
    counts = reader._r.counts
    assert counts.rows == sum(n for (_, what), n in found.items() if what == "samples")
    first, last = min(times), max(times)
    return found, rows, (min(first, int(counts.first_time)), max(last, int(counts.last_time)))


def many_samples() -> bytes:
    """Two chunks of samples of several kinds; some have values that differ, stacks that are not there, or long keys."""
    data = b""
    for number in range(2):
        chunk = Chunk(first_id=20 if number else 1 << 40)
        threads = [chunk.thread(f"t{i}", i, 100 + i) for i in range(3)]
        stacks = [chunk.stack([(f"a/B{i}", "m", "()V", i, 2, "Inlined")], truncated=i == 4) for i in range(9)]
        stacks.append(stacks[-1] + 1000)
        class_, state = chunk.class_("a/C"), chunk.state("STATE_RUNNABLE")
        for i in range(3000):
            thread, stack = threads[i % 3], stacks[i * i % 10]
            ticks = i * 1000 % 7919 + (1 << 62 if i % 1000 == 9 else 0)
            if i % 4:
                chunk.event("jdk.ObjectAllocationInNewTLAB", ticks, thread, stack, class_, 16, 1 << 9 * (i % 5))
            else:
                chunk.event("jdk.ExecutionSample", ticks, thread, stack, state)
        data += chunk.bytes()
    return data


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("portable", [False, True])
def test_samples_that_are_added_up_are_those_of_the_recording(portable: bool, holds: bool) -> None:
    data = many_samples()
    expected = totals(data, summed=False, portable=False)
    assert expected[1] == 6000
    assert totals(data, summed=False, portable=portable) == expected
    found = totals(data, summed=True, portable=portable, holds=holds)
    assert (found[0], found[2]) == (expected[0], expected[2])
    assert found[1] < 2500  # missing stacks and times out of range stay single


@pytest.mark.parametrize(
    ("n_threads", "n_stacks", "begins", "n_sizes"),
    [
        (59, 499, False, 0),
        (59, 99, True, 0),  # later samples have contexts of more bits
        (2500, 1500, False, 0),  # too many pairs to count them without sorting
        (59, 499, False, 1),  # the second half has another value, which is always the same
        (59, 499, False, 5),
    ],
)
def test_samples_wait_to_be_added_up(n_threads: int, n_stacks: int, begins: bool, n_sizes: int) -> None:
    chunk, n = Chunk(), 16_000
    threads = [chunk.thread(f"t{i}", i, 100 + i) for i in range(n_threads)]
    stacks = [chunk.stack([(f"a/B{i}", "m", "()V", i, 2, "Inlined")]) for i in range(n_stacks)]
    class_, state = chunk.class_("a/C"), chunk.state("STATE_RUNNABLE")
    for i in range(n):
        where = threads[i * n_threads // n if begins else i * i % n_threads], stacks[i * 7 % n_stacks]
        if n_sizes and i > n / 2:
            chunk.event("jdk.ObjectAllocationInNewTLAB", i, *where, class_, 16, 1 + i % n_sizes)
        else:
            chunk.event("jdk.ExecutionSample", i, *where, state)
    data = chunk.bytes()
    expected = totals(data, summed=False, portable=False)
    found = totals(data, summed=True, portable=False)
    assert (found[0], found[2]) == (expected[0], expected[2])
    assert found[1] < n


@pytest.mark.parametrize("n_sizes", [1, 5])
def test_samples_whose_stack_and_context_have_more_than_32_bits_are_added_up(n_sizes: int) -> None:
    chunk, n_threads, n_stacks = Chunk(), (1 << 11) + 1, (1 << 20) - 2
    threads = [chunk.thread(None, i, i) for i in range(1, n_threads + 1)]
    stacks = [chunk.stack([(f"a/B{i}", "m", "()V", i, 2, "Inlined")]) for i in range(2)]
    class_ = chunk.class_("a/C")
    for i in range(2 * n_threads):  # two of each thread, with the same stack
        where = threads[i % n_threads], stacks[i % n_threads % 2]
        chunk.event("jdk.ObjectAllocationInNewTLAB", i, *where, class_, 16, 1 + i % n_sizes)
    found, rows, _ = totals(chunk.bytes(), summed=True, portable=False, holds=True, n_stacks=n_stacks)
    assert rows == n_threads
    assert {n for (_, what), n in found.items() if what == "samples"} == {2}
    assert Counter(stack - n_stacks for ((stack, _, _), what) in found if what == "samples") == {1: 1025, 2: 1024}
    assert sum(n for (_, what), n in found.items() if what == 1) == sum(1 + i % n_sizes for i in range(2 * n_threads))


def test_counts_beyond_16_bits() -> None:
    chunk, numbers = Chunk(), (140_000, 3, 65_535, 65_536)
    state, stack = chunk.state("STATE_RUNNABLE"), chunk.stack([WORK])
    for i, n in enumerate(numbers):
        chunk.event("jdk.ExecutionSample", 1, chunk.thread(f"t{i}", i, 100 + i), stack, state)
        chunk.events += chunk.events[-1:] * (n - 1)
    found, rows, _ = totals(chunk.bytes(), summed=True, portable=False, holds=True)
    assert rows < 100
    assert sorted(n for (_, what), n in found.items() if what == "samples") == sorted(numbers)
    assert sum(n for (_, what), n in found.items() if what == 0) == sum(numbers)


@pytest.mark.parametrize("holds", [False, True])
def test_sums_of_values_beyond_64_bits_become_several_rows(holds: bool) -> None:
    chunk = Chunk()
    thread, stack, class_ = chunk.thread("t", 1, 7), chunk.stack([WORK]), chunk.class_("a/C")
    for ticks in range(1000):
        chunk.event("jdk.ObjectAllocationInNewTLAB", ticks, thread, stack, class_, 16, (1 << 55) - 1)
    found, rows, _ = totals(chunk.bytes(), summed=True, portable=False, holds=holds)
    assert 4 <= rows < (150 if holds else 8)  # the rest of a group becomes single rows
    assert {what: n for (_, what), n in found.items()} == {"samples": 1000, 0: 1000, 1: 1000 * ((1 << 55) - 1)}


def test_what_the_log_counts_does_not_depend_on_sums() -> None:
    log = fastprof.convert(io.BytesIO(many_samples()), io.BytesIO(), to="folded")
    counted_ = {entry.code: n for entry, _, n in log.not_representable.counted()}
    assert counted_["labels-and-threads"] == counted_["sample-times"] == 6000
    facts = fastprof.info(many_samples()).facts
    assert facts["records"] == 6000
    assert facts["last_time_ns"] > facts["first_time_ns"] > 0


def test_damage_leaves_no_samples_waiting() -> None:
    model, log = Model(), Log()
    reader = JfrReader(Source(Stream(many_samples() + b"FLR")), model, Options(), log)
    reader.summed, reader._r.always_holds = True, True
    waiting = list[int]()
    with pytest.raises(FormatError, match="the head of a chunk has 3 bytes"):
        for batch in read(reader):
            waiting.append(len(batch) and int(model.c.n_waiting))
    assert not model.c.n_waiting
    assert reader._r.counts.rows < 6000  # those that waited have no rows
