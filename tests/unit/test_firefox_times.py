"""Profiles for the Firefox Profiler: samples with their times."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core._c import lib
from fastprof.core.options import Options
from tests.reference import firefox
from tests.support.conversions import convert_bytes
from tests.support.paths import CORPUS


def samples(profile: str | Path | bytes, from_: str | None = None) -> Counter[tuple[Any, ...]]:
    """The sum of each value by value type, stack and time."""
    found: Counter[tuple[Any, ...]] = Counter()
    with fastprof.open(profile, from_=from_) as opened:
        model = opened._model
        for batch in opened:
            for k, value_type in enumerate(model.parts[batch.part].value_types):
                for stack, time, value in zip(batch["stack"], batch["time"], batch.values(k), strict=True):
                    path = tuple(names(model, stack)) or (b"[no stack]",)
                    found[value_type.name, path, int(time)] += int(value)
    return +found


def names(model: Any, stack: int) -> Iterator[bytes]:
    """Innermost first."""
    while stack:
        stack, frame = model.row("stacks", stack)
        line = model.row("frames", frame)[lib.FP_FRAME_LINES]
        while line:
            row = model.row("lines", line)
            yield model.get_function(row[lib.FP_LINE_FUNCTION]).name
            line = row[lib.FP_LINE_OUTER]


def text(times: list[int]) -> bytes:
    """A text of perf script with a sample at each time, in microseconds."""
    sample = "app 7/{} [000] {}.{:06}: {} cycles:\n\t1 f{} (/app)\n\n"
    lines = (sample.format(8 + t % 2, t // 10**6, t % 10**6, 1 + t % 3, t % 5) for t in times)
    return "".join(lines).encode()


@pytest.mark.parametrize(
    "file",
    [
        "jfr/good/real-async.jfr.gz",
        "cpuprofile/good/node20.cpuprofile",
        "perf-script/good/real-default-multi-freq.perf",
        "otlp/good/v1.10-timestamps.otlp",
    ],
)
def test_stacks_values_and_times_come_back(file: str, tmp_path: Path) -> None:
    path = tmp_path / "out.profile.json"
    fastprof.convert(CORPUS / file, path, symbolize=False)
    assert samples(path) == samples(CORPUS / file)


def test_samples_of_a_thread_are_in_order_and_spilled_ones_too() -> None:
    """Half of --max-memory is for samples."""
    times = random.Random(1).sample(range(5_000_000, 9_000_000), 40_000)
    data = text(times)
    done = convert_bytes(data, "perf-script", "firefox", Options(max_memory=1 << 20))
    threads = firefox.read(done.data)  # checks that times are in order
    assert sum(len(thread.samples) for thread in threads) == 2 * len(times)  # numbers and cycles
    assert {t.times_from + int(time * 10**6) for t in threads for time, _, _ in t.samples} == {t * 1000 for t in times}
    assert done.data == convert_bytes(data, "perf-script", "firefox").data
    assert samples(done.data, "firefox") == samples(data, "perf-script")


def test_a_sample_is_in_the_threads_of_the_values_that_it_has() -> None:
    data = text([5_000_000, 5_000_001]).replace(b"cycles", b"faults", 1)
    threads = firefox.read(convert_bytes(data, "perf-script", "firefox").data)
    assert {t.name.split(",")[0]: [float(time) for time, _, _ in t.samples] for t in threads if t.samples} == {
        "faults_samples": [0],
        "faults": [0],
        "cycles_samples": [0.001],
        "cycles": [0.001],
    }


def test_times_that_do_not_fit_are_dropped_before_stacks_are(tmp_path: Path) -> None:
    source, path = tmp_path / "a.perf", tmp_path / "out.profile.json"
    source.write_bytes(text([*range(5_000_000, 5_020_000)]))
    log = fastprof.convert(source, path, budget=100_000)
    assert log.not_representable["dropped-times"] == 20_000 and "pruned-stacks" not in log.not_representable
    sums: Counter[tuple[Any, ...]] = Counter()
    for (*key, _), value in samples(source).items():
        sums[*key, 0] += value
    assert samples(path) == sums and path.stat().st_size < 100_000
    assert "dropped-times" not in fastprof.convert(source, path).not_representable


def test_a_sample_without_a_time_is_drawn_at_another() -> None:
    profile = json.loads(convert_bytes(text([5_000_000, 5_000_002]), "perf-script", "firefox").data)
    del profile["threads"][1:], profile["threads"][0]["samples"]["timeDeltas"]
    profile["threads"][0]["samples"]["time"] = [None, 0.002]
    done = convert_bytes(json.dumps(profile).encode(), "firefox", "firefox")
    (thread,) = firefox.read(done.data)
    assert done.log.repairs["values-without-time"] == 1
    assert (thread.times_from, [time for time, _, _ in thread.samples]) == (5_000_002_000, [Decimal(0)] * 2)


def test_merged_samples_have_no_times() -> None:
    folded = convert_bytes(b"a;b 2\nc 1\n", "folded", "firefox")
    (thread,) = json.loads(folded.data)["threads"]
    assert thread["samples"]["time"] == [0, 1] and "timesFrom" not in thread
    assert not any(time for *_, time in samples(folded.data, "firefox"))


def test_threads_and_processes_have_the_names_that_linux_gives_them() -> None:
    """The last ones: a program begins with the name of the one that started it."""
    data = text([5_000_000, 5_000_002, 5_000_003]).replace(b"app 7/8", b"perf 8/8", 1).replace(b"app 7/8", b"app 8/8")
    threads = firefox.read(convert_bytes(data.replace(b"app 7/9", b"pool-1 8/9"), "perf-script", "firefox").data)
    assert {(t.process, t.name.partition(", ")[2], t.tid) for t in threads} == {("app", "app", 8), ("app", "pool-1", 9)}


@pytest.mark.parametrize(
    ("command", "object_", "name"),
    [
        (b"main 8", b"/opt/app", "main"),
        (b"8", b"[kernel.kallsyms]", "input"),
        (b"8", b"/opt/app", "app"),
    ],
)
def test_a_process_without_a_number_has_a_name(command: bytes, object_: bytes, name: str) -> None:
    """That of its thread, else of its only file, else of the input."""
    data = text([5_000_000]).replace(b"app 7/8", command).replace(b"/app", object_)
    assert {t.process for t in firefox.read(convert_bytes(data, "perf-script", "firefox").data)} == {name}
