"""Labels of samples in a pprof file (`--labels`); equal samples are merged."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.log import Log
from tests.reference import profile_proto as reference
from tests.support.paths import REPO
from tests.support.xraylog import BasicLog
from tests.unit.test_cli import run
from tests.unit.test_pprof import message, profile, top_level_fields

CORPUS = REPO / "tests" / "corpus"
Samples = Counter[tuple[tuple[str, ...], tuple[tuple[str, str | int], ...], int]]


def converted(source: Path, tmp_path: Path, *more: Path, **options: Any) -> tuple[Samples, Log, Any]:
    """Sums by (functions leaf first, labels, value type); the profile itself must have no two equal samples."""
    out = tmp_path / "out.pb"
    log = fastprof.convert([str(source), *map(str, more)], str(out), **options)
    p = reference.parse(out.read_bytes())
    reference.check(p)
    found: Samples = Counter()
    rows = reference.rows(p)
    assert len({(stack, labels) for stack, labels, _ in rows}) == len(rows)
    for stack, labels, values in rows:
        names = tuple(frame[3][0][0].decode() if frame[3] else hex(frame[1]) for frame in stack)
        text = tuple((key.decode(), string.decode() or number) for key, string, number, _ in labels)
        for k, value in enumerate(values):
            found[names, text, k] += value
    return found, log, p


# ---- timelines: a slow reference, one thread after the other


def random_log(seed: int) -> tuple[bytes, list[tuple[int, int, int, str, int]]]:
    """A basic-mode log of well-formed calls, and its records (process, thread, CPU, function or "", time)."""
    draw = random.Random(seed)
    log, records, stacks, time = BasicLog(), [], defaultdict(list), 0
    threads = [(1, 11), (1, 12), (2, 11)]
    cpus = dict.fromkeys(threads, 0)
    for _ in range(300):
        thread = draw.choice(threads)
        time += draw.randrange(3)
        if draw.random() < 0.2:
            cpus[thread] = draw.randrange(4)
        pid, tid = thread
        stack = stacks[thread]
        if stack and draw.random() < 0.48:
            log.exit(stack.pop(), time, tid, pid, cpus[thread])
            records.append((pid, tid, cpus[thread], "", time))
        else:
            stack.append(draw.randrange(1, 5))
            log.enter(stack[-1], time, tid, pid, cpus[thread])
            records.append((pid, tid, cpus[thread], f"#{stack[-1]}", time))
    return bytes(log.data), records


def expected(records: list[tuple[int, int, int, str, int]], labels: tuple[str, ...]) -> Samples:
    """The time from each record to the thread's next one belongs to its CPU; a call counts where it began."""
    found: Samples = Counter()
    stacks: dict[tuple[int, int], list[str]] = defaultdict(list)
    since: dict[tuple[int, int], tuple[int, int]] = {}

    def label(pid: int, tid: int, cpu: int) -> tuple[tuple[str, str | int], ...]:
        every = {"cpu": ("cpu", str(cpu)), "process": ("pid", pid), "thread": ("tid", tid)}
        return tuple(every[name] for name in ("cpu", "process", "thread") if name in labels)

    for pid, tid, cpu, function, time in records:
        stack = stacks[pid, tid]
        if stack:
            began, its_cpu = since[pid, tid]
            found[tuple(reversed(stack)), label(pid, tid, its_cpu), 0] += time - began
        since[pid, tid] = time, cpu
        if function:
            stack.append(function)
            found[tuple(reversed(stack)), label(pid, tid, cpu), 1] += 1
        else:
            stack.pop()
    return found


@pytest.mark.parametrize("labels", [(), ("cpu",), ("thread",), ("process",), ("process", "cpu"), ("thread", "cpu")])
@pytest.mark.parametrize("seed", range(5))
def test_timelines_are_kept_apart(seed: int, labels: tuple[str, ...], tmp_path: Path) -> None:
    data, records = random_log(seed)
    (tmp_path / "in.xray").write_bytes(data)
    got, log, _ = converted(tmp_path / "in.xray", tmp_path, labels=labels, time_unit="ticks")
    assert +got == +expected(records, labels)
    assert all("symbols=" in warning for warning in log.warnings)


def test_a_cpu_that_only_an_event_names_changes_nothing(tmp_path: Path) -> None:
    log = BasicLog().enter(1, 10, cpu=3).payload(1, 99).exit(1, 30, cpu=3)
    (tmp_path / "in.xray").write_bytes(bytes(log.data))
    got, _, _ = converted(tmp_path / "in.xray", tmp_path, labels=("cpu",), time_unit="ticks")
    assert got == {(("#1",), (("cpu", "3"),), 0): 20, (("#1",), (("cpu", "3"),), 1): 1}


def test_per_thread_is_threads_processes_and_parts(tmp_path: Path) -> None:
    data, records = random_log(1)
    (tmp_path / "in.xray").write_bytes(data)
    got, _, _ = converted(tmp_path / "in.xray", tmp_path, per_thread=True, time_unit="ticks")
    assert +got == +expected(records, ("thread", "process"))


# ---- graphs: parts and threads of a Callgrind file

CALLGRIND = b"""# callgrind format
version: 1
creator: x

part: 1
pid: 7
thread: 1
events: Ir
fn=main
1 10

part: 1
pid: 7
thread: 2
events: Ir
fn=main
1 20

part: 2
pid: 7
thread: 2
events: Ir
fn=main
1 40
"""
BY = {
    None: {(): 70},
    ("part",): {(("part", 1),): 30, (("part", 2),): 40},
    ("thread",): {(("tid", 1),): 10, (("tid", 2),): 60},
    ("process",): {(("pid", 7),): 70},
    ("part", "thread"): {
        (("part", 1), ("tid", 1)): 10,
        (("part", 1), ("tid", 2)): 20,
        (("part", 2), ("tid", 2)): 40,
    },
}


@pytest.mark.parametrize("labels", BY)
def test_parts_and_threads_of_a_call_graph(labels: tuple[str, ...] | None, tmp_path: Path) -> None:
    (tmp_path / "x.callgrind").write_bytes(CALLGRIND)
    got, _, _ = converted(tmp_path / "x.callgrind", tmp_path, labels=labels)
    assert {text: n for (_, text, _), n in got.items()} == BY[labels]


@pytest.mark.parametrize("line", ["pid: 99999999999", "thread: -1"])
def test_a_thread_beyond_32_bits_is_an_error_that_names_the_input(line: str, tmp_path: Path) -> None:
    (tmp_path / "in.callgrind").write_bytes(CALLGRIND + f"\npart: 2\n{line}\nevents: Ir\nfn=f\n1 10\n".encode())
    with pytest.raises(FastprofError, match=r"in\.callgrind: thread 0, "):
        converted(tmp_path / "in.callgrind", tmp_path, per_thread=True)


def test_per_thread_labels_each_once(tmp_path: Path) -> None:
    (tmp_path / "x.callgrind").write_bytes(CALLGRIND)
    got, _, _ = converted(tmp_path / "x.callgrind", tmp_path, per_thread=True)
    assert {text: n for (_, text, _), n in got.items()} == {
        (("part", 1), ("pid", 7), ("tid", 1)): 10,
        (("part", 1), ("pid", 7), ("tid", 2)): 20,
        (("part", 2), ("pid", 7), ("tid", 2)): 40,
    }


def test_parts_of_merged_inputs_keep_their_labels(tmp_path: Path) -> None:
    (tmp_path / "x.callgrind").write_bytes(CALLGRIND)
    (tmp_path / "p.pb").write_bytes(profile().SerializeToString())
    got, _, _ = converted(tmp_path / "x.callgrind", tmp_path, tmp_path / "p.pb", labels=("own", "part"), union=True)
    by_label: Counter[Any] = Counter()
    for (_, text, _), n in got.items():
        by_label[text] += n != 0
    assert by_label == {
        (("part", 1),): 1,
        (("part", 2),): 1,
        (): 1,
        (("key", "value"), ("size", -77)): 2,
        (("key", "value"),): 2,
    }


# ---- samples that already have labels


def test_own_labels_can_be_left_out_and_what_was_told_apart_by_them_is_summed(tmp_path: Path) -> None:
    (tmp_path / "p.pb").write_bytes(profile().SerializeToString())
    with_labels, _, p = converted(tmp_path / "p.pb", tmp_path)
    assert len(p.sample) == 3
    assert {text for _, text, _ in with_labels} == {(), (("key", "value"),), (("key", "value"), ("size", -77))}
    without, _, p = converted(tmp_path / "p.pb", tmp_path, labels=())
    assert len(p.sample) == 2
    total: Counter[Any] = Counter()
    for (stack, _, k), n in with_labels.items():
        total[stack, (), k] += n
    assert +without == +total


def repeated_samples(path: Path, times: int, values: tuple[int, int]) -> None:
    p = profile()
    del p.sample[1:]
    p.sample[0].value[:] = values
    fields = top_level_fields(p.SerializeToString())
    sample = next(f for f in fields if f[0] == 0x12)
    path.write_bytes(b"".join(f for f in fields if f[0] != 0x12) + sample * times)


def test_equal_samples_are_summed(tmp_path: Path) -> None:
    repeated_samples(tmp_path / "p.pb", 10_000, (1, -3))
    _, _, p = converted(tmp_path / "p.pb", tmp_path)
    assert [list(s.value) for s in p.sample] == [[10_000, -30_000]]


def test_a_sum_that_no_sample_holds_is_several(tmp_path: Path) -> None:
    """Each is as large as possible, so it does not matter which samples were added up first."""
    repeated_samples(tmp_path / "p.pb", 5, ((1 << 62) + 1, 7))
    out = tmp_path / "out.pb"
    fastprof.convert([str(tmp_path / "p.pb")], str(out))
    values = [list(s.value) for s in reference.parse(out.read_bytes()).sample]
    most = (1 << 63) - 1
    assert values == [[most, 35], [most, 0], [5 * ((1 << 62) + 1) - 2 * most, 0]]


def test_what_does_not_fit_in_memory_is_summed_all_the_same(tmp_path: Path) -> None:
    """20,000 distinct label sets, twice."""
    p = profile()
    fields = top_level_fields(p.SerializeToString())
    rest = b"".join(f for f in fields if f[0] != 0x12)
    key = list(p.string_table).index("size")
    samples = b""
    for i in range(40_000):
        sample = p.sample[0].__class__(location_id=[1], value=[1, 2])
        sample.label.add(key=key, num=1 + i // 4 % 20_000 + i % 2)
        samples += message(2, sample.SerializeToString())
    (tmp_path / "p.pb").write_bytes(rest + samples)
    out = tmp_path / "out.pb"
    fastprof.convert([str(tmp_path / "p.pb")], str(tmp_path / "whole.pb"))
    fastprof.convert([str(tmp_path / "p.pb")], str(out), max_memory=200_000)
    assert out.read_bytes() == (tmp_path / "whole.pb").read_bytes()
    sums: Counter[Any] = Counter()
    written = reference.parse(out.read_bytes())
    for sample in written.sample:
        sums[sample.label[0].num] += sample.value[0]
    want = Counter(1 + i // 4 % 20_000 + i % 2 for i in range(40_000))
    assert sums == want
    assert len(written.sample) == len(want)


def test_two_value_types_of_one_name_stay_two(tmp_path: Path) -> None:
    """Also when profiles are merged: the first is added to the first, the second to the second."""
    p = profile()
    p.sample_type[1].type, p.sample_type[1].unit = p.sample_type[0].type, p.sample_type[0].unit
    del p.sample[1:]
    p.sample[0].value[:] = 3, 5
    (tmp_path / "a.pb").write_bytes(p.SerializeToString())
    p.sample_type.add().CopyFrom(p.sample_type[0])
    p.sample[0].value[:] = 10, 100, 1000
    (tmp_path / "b.pb").write_bytes(p.SerializeToString())
    for inputs, values in (("a", [3, 5]), ("ab", [13, 105, 1000]), ("ba", [13, 105, 1000])):
        _, _, out = converted(
            *[(tmp_path / f"{name}.pb") for name in inputs[:1]],
            tmp_path,
            *[tmp_path / f"{name}.pb" for name in inputs[1:]],
            **{"union": True} if inputs[1:] else {},
        )
        assert [list(s.value) for s in out.sample] == [values]
        types = [(out.string_table[t.type], out.string_table[t.unit]) for t in out.sample_type]
        assert types == [("samples", "count")] * len(values)


@pytest.mark.parametrize("to", ["x.callgrind", "x.pb", "x.prof"])
@pytest.mark.parametrize("source", ["gperftools", "callgrind", "pprof"])
def test_a_profile_of_nothing_says_what_it_would_have_counted(source: str, to: str, tmp_path: Path) -> None:
    path = tmp_path / source
    if source == "gperftools":
        path = CORPUS / "gperftools" / "good" / "norecords.prof"
    elif source == "callgrind":
        path.write_bytes(b"# callgrind format\nversion: 1\nevents: samples cpu\n")
    else:
        p = profile()
        del p.sample[:]
        path.write_bytes(p.SerializeToString())
    out = tmp_path / to
    fastprof.convert([str(path)], str(out))
    data = out.read_bytes()
    if to == "x.callgrind":
        assert b"events: samples cpu\n" in data
    elif to == "x.pb":
        written = reference.parse(data)
        assert [written.string_table[t.type] for t in written.sample_type] == ["samples", "cpu"]
    else:
        assert len(data) >= 64


# ---- the command line


def test_the_option(tmp_path: Path) -> None:
    pool = str(CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray")
    out = tmp_path / "out.pb"
    run("convert", pool, "--labels", "thread,cpu", "-o", str(out))
    keys = {key for _, labels, _ in reference.rows(reference.parse(out.read_bytes())) for key, *_ in labels}
    assert keys == {b"tid", b"cpu"}
    run("convert", pool, "--labels", "none", "-o", str(out))
    assert not any(labels for _, labels, _ in reference.rows(reference.parse(out.read_bytes())))
    assert b"'threads' is not one of own, thread" in run("convert", pool, "--labels", "threads", code=2).stderr
    assert b"--labels" in run("convert", "--help").stdout


def test_a_label_that_the_input_does_not_know_is_said(tmp_path: Path) -> None:
    prof = str(CORPUS / "gperftools" / "good" / "small.prof")
    done = run("convert", prof, "--labels", "cpu,thread", "-o", str(tmp_path / "out.pb"))
    assert b"--labels=cpu: the input does not record the cpu" in done.stderr
    assert b"--labels=thread: the input does not record the thread" in done.stderr


@pytest.mark.parametrize(
    ("source", "to", "options", "says"),
    [
        ("gperftools", "callgrind", {"time_ns": 5}, "time_ns= has no effect from gperftools to callgrind"),
        ("gperftools", "archive", {"comments": ("x",)}, "it applies to writing pprof"),
        ("pprof", "callgrind", {"name_addresses": True}, "name_addresses=True"),
        ("pprof", "pprof", {"period_us": 7}, "period_us= .* reading gperftools and writing gperftools"),
        ("gperftools", "pprof", {"inlines": False}, "inlines=False .* applies to converting stacks to a graph"),
        ("gperftools", "callgrind", {"stacks": "self"}, "stacks= .* applies to converting a graph to stacks"),
        ("pprof", "pprof", {"prune": 0.5}, "prune="),
        ("callgrind", "pprof", {"symbols": ("/bin/true",)}, "symbols= .* reading xray, .*and addresses of stacks"),
        ("pprof", "pprof", {"nanoseconds": True}, "nanoseconds=True .* writing folded"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    source: str, to: str, options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    path = next(p for p in sorted((CORPUS / source / "good").iterdir()) if p.name.startswith(("small", "everything")))
    with pytest.raises(UsageError, match=says):
        fastprof.convert([str(path)], str(tmp_path / "out"), to=to, **options)
    assert not list(tmp_path.iterdir())


def test_options_of_one_of_several_inputs_are_taken(tmp_path: Path) -> None:
    prof, pb = CORPUS / "gperftools" / "good" / "small.prof", CORPUS / "pprof" / "good" / "everything.pb"
    for to, options in (
        ("pprof", {"period_us": 7, "keep_signal_frames": True, "time_ns": 5}),
        ("callgrind", {"period_us": 7, "inlines": False, "compress_names": False}),
        ("gperftools", {"period_us": 7}),
    ):
        fastprof.convert([str(prof), str(pb)], str(tmp_path / to), to=to, **options)
    fastprof.convert([str(pb)], str(tmp_path / "x"), to="gperftools", period_us=7)


@pytest.mark.parametrize("to", ["callgrind", "cachegrind", "gperftools", "archive"])
def test_formats_without_labels_refuse_the_option(to: str, tmp_path: Path) -> None:
    prof = str(CORPUS / "gperftools" / "good" / "small.prof")
    with pytest.raises(UsageError, match="labels= has no effect from gperftools"):
        fastprof.convert([prof], str(tmp_path / "out"), to=to, labels=("own",))
    assert not list(tmp_path.iterdir())
