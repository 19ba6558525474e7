"""The reference reader and stack machine against independent readings of real logs."""

from __future__ import annotations

import ast
import csv
import gzip
from collections import Counter
from pathlib import Path

import pytest

from tests.differential import account, llvm_yaml
from tests.reference import fold, xray
from tests.reference.xray import Record
from tests.support.paths import SHARED, needs_shared, shared_data


def logs() -> list[str]:
    """`case/name` of every log that has expected records."""
    if SHARED is None:
        return []
    found = SHARED.glob("data/xray/*/expected.*.ref-records.txt.gz")
    return sorted(f"{p.parent.name}/{p.name.split('.')[1]}" for p in found)


def expected_file(log: str, what: str) -> Path:
    case, name = log.split("/")
    return shared_data("xray", case, f"expected.{name}.{what}")


def read(log: str, **options: bool) -> xray.Log:
    case, name = log.split("/")
    return xray.read(shared_data("xray", case, f"{name}.xray").read_bytes(), **options)


def parse_expected(line: str) -> Record:
    pid, tid, cpu, tsc, op, function, *rest = line.rstrip("\n").split(" ", 6)
    op = {"enter-arg": xray.ENTER_ARGS}.get(op, op)
    data = ast.literal_eval(rest[0]) if rest and op == xray.CUSTOM else b""
    return Record(int(pid), int(tid), int(cpu), int(tsc), op, int(function), data=data)


@needs_shared
def test_there_are_logs() -> None:
    assert len(logs()) >= 9


@needs_shared
@pytest.mark.parametrize("log", logs())
def test_records(log: str) -> None:
    expected: dict[int, list[Record]] = {}
    with gzip.open(expected_file(log, "ref-records.txt.gz"), "rt") as file:
        for line in file:
            record = parse_expected(line)
            expected.setdefault(record.tid, []).append(record)
    ours = read(log)
    assert {tid for _, tid in ours.threads} == set(expected)
    for (pid, tid), records in ours.threads.items():
        # Version 2 does not record the process: 0 here, a copy of the thread's id there.
        wanted = [r._replace(pid=pid) if ours.header.version == 2 else r for r in expected[tid]]
        assert [r._replace(args=()) for r in records] == wanted
    assert not ours.repairs and not ours.losses


@needs_shared
@pytest.mark.parametrize("log", logs())
def test_llvm_yaml(log: str) -> None:
    with gzip.open(expected_file(log, "yaml.gz"), "rt") as file:
        theirs = llvm_yaml.parse(file.read())
    assert llvm_yaml.differences(read(log, repair=False), theirs) == []


@needs_shared
@pytest.mark.parametrize("log", logs())
def test_verdict(log: str) -> None:
    words = expected_file(log, "ref-check.txt").read_text().split()
    check = {key: int(value) for key, value in zip(words[::2], words[1::2], strict=True)}
    ours = read(log)
    folded = fold.fold(ours)
    assert ours.header[1:3] == (check["version"], check["type"])
    assert ours.header.frequency == check["freq"]
    assert sum(ours.buffers.values()) == check["buffers"]
    assert len(ours.threads) == check["threads"]
    assert sum(1 for _ in ours.records()) == check["events"]
    assert folded.max_depth == check["max-depth"]
    assert folded.repairs["unfinished"] == check["still-open"]


@needs_shared
@pytest.mark.parametrize("case", ["fdr5-interp-args-clang14", "basic3-interp-args-clang19"])
def test_account(case: str) -> None:
    """Only logs of a single buffer: llvm orders several buffers of a thread wrongly."""
    log = read(f"{case}/trace")
    assert list(log.buffers.values()) == [1]
    rows = account.parse(shared_data("xray", case, "expected.trace.account-k-d.csv").read_text())
    durations = fold.fold(log).durations
    assert set(durations) == set(rows)
    for function, ticks in durations.items():
        ours = account.from_durations(ticks, log.header.frequency)
        assert ours == pytest.approx(rows[function][:7], rel=1e-6)


@needs_shared
def test_profile() -> None:
    case = "profiling-pool-clang19"
    profile = xray.read_profile(shared_data("xray", case, "trace.xray").read_bytes())
    names = function_names(shared_data("xray", case, "expected.instr-map.yaml"))
    with shared_data("xray", case, "expected.profile.tsv").open(newline="") as file:
        first, _, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert first == [f"# version {profile.version:#x} pid {profile.pid} records {len(profile.rows)}"]
    ours = [
        [str(r.block), str(r.tid), str(r.calls), str(r.ticks), ";".join(names[f] for f in r.path)] for r in profile.rows
    ]
    assert ours == rows


def function_names(instr_map: Path) -> dict[int, str]:
    names = {}
    for line in instr_map.read_text().splitlines():
        if line.startswith("- { id: "):
            function = int(line.split(",", 1)[0].removeprefix("- { id: "))
            name = line.split(", function-name: ", 1)[1].rsplit(", version: ", 1)[0]
            names[function] = llvm_yaml.scalar(name).decode()
    return names


def test_to_ns_rounds_half_up() -> None:
    assert [fold.to_ns(t, 2_000_000_000) for t in (0, 1, 2, 3)] == [0, 1, 1, 2]
    assert fold.to_ns(10**19, 3) == (10**28 + 1) // 3
    assert fold.to_ns(7, 0) == 7


def worked_example() -> xray.Log:
    """main calls f, f calls f and g; g is left by an exception that main's f catches."""
    steps = [
        (0, "exit", 9), (10, "enter", 1), (20, "enter", 2), (25, "enter", 2), (31, "enter", 3),
        (40, "exit", 2), (50, "tail", 2), (50, "enter", 3), (60, "custom", 0),
    ]  # fmt: skip
    records = [Record(1, 1, 0, tsc, op, function) for tsc, op, function in steps]
    return xray.Log(xray.Header("<", 5, 1, True, True, 10**9, 0), {(1, 1): records})


def test_fold() -> None:
    folded = fold.fold(worked_example())
    assert folded.repairs == {"orphan-exits": 1, "unwound": 1, "unfinished": 2}
    assert folded.self_ticks == {1: 10, 2: 5 + 6 + 10, 3: 9 + 10}
    assert folded.calls == {1: 1, 2: 2, 3: 2}
    assert folded.inclusive_ticks == {1: 50, 2: 30, 3: 19}
    assert folded.inclusive_calls == {1: 5, 2: 3, 3: 2}
    assert folded.arc_calls == {(None, 1): 1, (1, 2): 1, (2, 2): 1, (2, 3): 1, (1, 3): 1}
    assert folded.arc_inclusive_ticks == {
        (None, 1): 50, (1, 2): 30, (2, 2): 15, (2, 3): 9, (1, 3): 10,
    }  # fmt: skip
    assert folded.arc_inclusive_calls == {
        (None, 1): 5, (1, 2): 3, (2, 2): 2, (2, 3): 1, (1, 3): 1,
    }  # fmt: skip
    assert folded.context_calls == Counter({(1,): 1, (1, 2): 1, (1, 2, 2): 1, (1, 2, 2, 3): 1, (1, 3): 1})
    assert folded.context_ticks == {
        (1,): 10, (1, 2): 15, (1, 2, 2): 6, (1, 2, 2, 3): 9, (1, 3): 10,
    }  # fmt: skip
    assert dict(folded.durations) == {1: [50], 2: [15, 30], 3: [9, 10]}
