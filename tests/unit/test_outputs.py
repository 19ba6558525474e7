"""Output for viewers: files within a budget, several files, and errors."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.bridges.budget.fit_timeline import Fit
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.sink import Sink
from tests.reference import perfetto
from tests.support.paths import CORPUS
from tests.support.xraylog import BasicLog, FdrLog

BUSY = CORPUS / "xray" / "good" / "fdr5-interp-args-clang14.xray"
POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"


def trace(path: Path, calls: list[tuple[str, int]]) -> Path:
    """Calls and events, each with the nanoseconds since the one before."""
    log = FdrLog(5, frequency=10**9)
    buffer = log.buffer(tid=3, pid=2).cpu(0, 0)
    open_: list[int] = []
    for what, step in calls:
        if what == ")":
            buffer.exit(open_.pop(), step)
        elif what == "!":
            buffer.custom(b"hello", step)
        else:
            open_.append(int(what))
            buffer.enter(open_[-1], step)
    path.write_bytes(log.bytes())
    return path


def slices(path: Path) -> list[tuple[str, int, int | None]]:
    (track,) = perfetto.read(path.read_bytes())
    return [(s.name, s.begin, s.end) for s in track.slices]


def test_short_calls_become_their_callers_own_time(tmp_path: Path) -> None:
    short = [("2", 1), (")", 2), ("4", 1), ("!", 1), (")", 2), ("3", 50), (")", 1000)]
    source = trace(tmp_path / "in.xray", [("1", 1), *short * 40, (")", 5)])
    whole = fastprof.convert(source, tmp_path / "whole.pftrace")
    budget = whole.facts["output_bytes"] * 9 // 10
    log = fastprof.convert(source, tmp_path / "out.pftrace", budget=budget)
    assert log.facts["output_bytes"] <= budget
    # calls of #4 are as short as those of #2, but contain events
    assert slices(tmp_path / "out.pftrace") == [s for s in slices(tmp_path / "whole.pftrace") if s[0] != "#2"]
    assert log.facts["merged_calls"] == {"merged_calls": 40, "merged_below": 3, "merged_share": 80 / (40 * 1057 + 5)}
    (said,) = log.not_representable.entries()
    assert (said["code"], said["count"]) == ("short-calls", 40)
    assert "shorter than 3 ns (with 0.19% of the time)" in said["text"]


def test_a_budget_that_nothing_fits_into_is_refused(tmp_path: Path) -> None:
    for name in ("o.speedscope.json", "o.trace.json", "o.pftrace", "o.profile.json"):
        with pytest.raises(UsageError, match="budget"):
            fastprof.convert(BUSY, tmp_path / name, budget=9)
    assert not [*tmp_path.iterdir()]


def sampled(path: Path) -> dict[tuple[str, ...], int]:
    """The stacks of the only profile of a file, as written by speedscope's writer."""
    said = json.loads(path.read_bytes())
    names = [frame["name"] for frame in said["shared"]["frames"]]
    (profile,) = said["profiles"]
    stacks = [tuple(names[i] for i in sample) for sample in profile["samples"]]
    return dict(zip(stacks, profile["weights"], strict=True))


def test_stacks_that_cost_little_are_pruned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "in.folded", tmp_path / "o.speedscope.json"
    rare = "".join(f"main;g;f{i};h 1\n" for i in range(1000))
    source.write_text(f"main;f 5000\n{rare}main;g 7\n")
    log = fastprof.convert(source, output, budget=10 << 10)
    assert sampled(output) == {("main", "f"): 5000, ("main", "g"): 7, ("main", "g", "[pruned]"): 1000}
    said = log.facts["pruned_stacks"]
    assert said["pruned_stacks"] == 1000 and said["pruned_share"] == {"samples": 1000 / 6007}
    assert 1 / 6007 < said["pruned_below"] < 1007 / 6007
    (entry,) = log.not_representable.entries()
    assert (entry["code"], entry["count"]) == ("pruned-stacks", 1000)
    assert "(16.6 % of samples together)" in entry["text"] and "10,240 bytes" in entry["text"]
    first = output.read_bytes()
    with source.open("rb") as pipe:
        command = [sys.executable, "-m", "fastprof", "convert", "-q", "-", "-o", output, "--budget", "10K"]
        subprocess.run(command, stdin=pipe, check=True)
    assert output.read_bytes() == first
    assert main(["convert", str(source), "-o", str(tmp_path / "o.profile.json.gz"), "--budget", "10K"]) == 0
    assert "stacks that cost less than" in capsys.readouterr().err
    assert fastprof.convert(source, output, budget=1 << 20).not_representable == {}
    assert len(sampled(output)) == 1002


def test_what_was_pruned_in_the_source_stays_one_frame(tmp_path: Path) -> None:
    source, output = tmp_path / "in.folded", tmp_path / "o.speedscope.json"
    source.write_text("main 9000\nmain;[pruned] 50\n" + "".join(f"main;[pruned];f{i} 1\n" for i in range(500)))
    fastprof.convert(source, output, budget=2 << 10)
    assert sampled(output) == {("main",): 9000, ("main", "[pruned]"): 550}


def test_values_of_no_cost_have_no_share(tmp_path: Path) -> None:
    """One value type is 0 everywhere; no cost is divided by its total."""
    source, output = tmp_path / "in.folded", tmp_path / "o.profile.json"
    source.write_text("main;f 900 0\n" + "".join(f"main;g{i} 1 0\n" for i in range(500)))
    log = fastprof.convert(source, output, budget=5 << 10, counts=2)
    shares = [*log.facts["pruned_stacks"]["pruned_share"].values()]
    assert shares == [500 / 1400, 0]


def test_the_budget_is_of_what_the_viewer_unpacks(tmp_path: Path) -> None:
    log = fastprof.convert(BUSY, tmp_path / "o.trace.json.gz", budget=100 << 10)
    data = gzip.decompress((tmp_path / "o.trace.json.gz").read_bytes())
    assert len(data) <= 100 << 10 and json.loads(data)
    assert log.facts["output_bytes"] < len(data)


def test_standard_output_gets_nothing_of_what_is_refused(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["convert", str(BUSY), "-t", "speedscope", "--budget", "10"]) == 2
    assert capfdbinary.readouterr().out == b""
    assert main(["convert", str(BUSY), "-t", "speedscope", "--budget", "10K"]) == 0
    out = capfdbinary.readouterr().out
    fastprof.convert(BUSY, tmp_path / "o.speedscope.json", budget=10 << 10)
    assert out == (tmp_path / "o.speedscope.json").read_bytes()


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fastprof", "convert", "-q", "-", "-o", tmp_path / "o.speedscope.json"]
    subprocess.run([*command, "--budget", "10K"], input=BUSY.read_bytes(), check=True)
    fastprof.convert(BUSY, tmp_path / "p.speedscope.json", budget=10 << 10)
    piped, read = (json.loads((tmp_path / f"{name}.speedscope.json").read_bytes()) for name in "op")
    assert piped["profiles"][0]["events"] == read["profiles"][0]["events"] != []


def test_what_fits_is_written_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's size shows that it fits; the output equals that of buffered rows."""
    kept = []
    read = Fit.read
    monkeypatch.setattr(Fit, "read", lambda self, rows: kept.append(self) or read(self, rows))
    for name in ("trace.json", "speedscope.json", "pftrace", "profile.json"):
        fastprof.convert(BUSY, tmp_path / f"o.{name}")
        assert not kept
        with BUSY.open("rb") as file:
            fastprof.convert(file, tmp_path / f"p.{name}", from_="xray")
        assert len(kept) == 1
        kept.clear()
        assert (tmp_path / f"o.{name}").read_bytes() == (tmp_path / f"p.{name}").read_bytes()


def test_what_was_thought_to_fit_is_done_again(tmp_path: Path) -> None:
    """Names occur once in the source, and in each row of the output."""
    events = [
        {"type": what, "frame": 0, "at": at} for i in range(500) for what, at in (("O", 10 * i), ("C", 10 * i + i % 9))
    ]
    profile = {"type": "evented", "name": "x", "unit": "nanoseconds", "startValue": 0, "endValue": 5000}
    said = {"profiles": [profile | {"events": events}], "shared": {"frames": [{"name": "long" * 150}]}}
    source, output = tmp_path / "in.speedscope.json", tmp_path / "o.trace.json"
    source.write_text(json.dumps(said))
    assert fastprof.convert(source, output, budget=1 << 20).not_representable == {}
    whole = output.stat().st_size
    log = fastprof.convert(source, output, budget=whole * 2 // 3)
    assert output.stat().st_size <= whole * 2 // 3
    (entry,) = log.not_representable.entries()
    assert entry["code"] == "short-calls" and log.rows["rows_written"] == 1000 - 2 * entry["count"]
    assert json.loads(output.read_bytes())["traceEvents"]


def test_a_file_for_each_thread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(POOL), "-o", str(tmp_path / "o.speedscope.json.gz"), "--split", "thread"]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"o.thread-{tid}.speedscope.json.gz" for tid in (29280, 29283, 29284, 29285)]
    said = capsys.readouterr().err
    assert "wrote 4 files: " in said and all(f"{name}: " in said for name in names)
    for name in names:
        (profile,) = json.loads(gzip.decompress((tmp_path / name).read_bytes()))["profiles"]
        assert profile["name"].endswith(name.split(".")[1].replace("-", " "))


def test_stacks_for_each_thread(tmp_path: Path) -> None:
    """Including a graph whose parts are threads."""
    cases = (("oprofile/good/threads.tar", (19863, 19865, 19866)), ("callgrind/good/everything.callgrind", (1, 2)))
    for source, threads in cases:
        folder = tmp_path / source.partition("/")[0]
        folder.mkdir()
        log = fastprof.convert(CORPUS / source, folder / "o.speedscope.json", split="thread")
        assert sorted(path.name for path in folder.iterdir()) == [f"o.thread-{tid}.speedscope.json" for tid in threads]
        for file, tid in zip(log.facts["files"], threads, strict=True):
            profiles = json.loads(Path(file["path"]).read_bytes())["profiles"]
            assert profiles and all(f"thread {tid}: " in profile["name"] for profile in profiles)


def test_threads_with_equal_numbers_are_told_apart(tmp_path: Path) -> None:
    for name, pid in (("one", 7), ("two", 8), ("three", 8)):
        log = BasicLog().enter(1, 10, tid=5, pid=pid).exit(1, 20, tid=5, pid=pid)
        (tmp_path / name).write_bytes(log.bytes())
    two, three = ["7-thread-5", "8-thread-5"], ["7-thread-5", "8-three-thread-5", "8-two-thread-5"]
    for inputs, names in ((("one", "two"), two), (("one", "two", "three"), three)):
        folder = tmp_path / str(len(inputs))
        folder.mkdir()
        paths = [tmp_path / name for name in inputs]
        fastprof.convert(paths, folder / "o", to="perfetto", from_="xray", time_unit="ticks", split="thread")
        assert sorted(path.name for path in folder.iterdir()) == [f"o.process-{name}" for name in names]


def test_files_have_the_names_of_threads(tmp_path: Path) -> None:
    names = {1: "worker A", 2: "../worker/B (2)", 3: "Å" * 60, 4: None, 5: "worker A"}
    events: list[dict[str, object]] = []
    for tid, name in names.items():
        events.append({"ph": "X", "name": "f", "ts": 0, "dur": 1, "pid": 7, "tid": tid})
        if name:
            events.append({"ph": "M", "name": "thread_name", "pid": 7, "tid": tid, "args": {"name": name}})
    source = tmp_path / "in.json"
    source.write_text(json.dumps(events))
    fastprof.convert(source, tmp_path / "o.pftrace", split="thread")
    found = {path.name.removeprefix("o.").removesuffix(".pftrace") for path in tmp_path.glob("o.*")}
    assert found == {"worker-A-1", "..-worker-B-2", "Å" * 24 + "-" + "Å" * 21 + "-3", "thread-4", "worker-A-5"}


def test_calls_end_at_the_edge_of_a_slice_and_begin_again(tmp_path: Path) -> None:
    source = trace(
        tmp_path / "in.xray", [("1", 0), ("2", 100), (")", 900), ("!", 0), ("3", 1500), (")", 100), (")", 100)]
    )
    log = fastprof.convert(source, tmp_path / "o.pftrace", split="time:0.000001")
    first = slices(tmp_path / "o.slice-1.pftrace")[0][1]
    found = [
        [(name, begin - first, end and end - first) for name, begin, end in slices(tmp_path / f"o.slice-{i}.pftrace")]
        for i in (1, 2, 3)
    ]
    assert found == [
        [("#1", 0, 1000), ("#2", 100, 1000)],
        [("#1", 1000, 2000), ("custom event", 1000, None)],
        [("#1", 2000, 2700), ("#3", 2500, 2600)],
    ]
    assert [Path(file["path"]).name for file in log.facts["files"]] == [f"o.slice-{i}.pftrace" for i in (1, 2, 3)]


def test_splits_that_cannot_be_are_refused(tmp_path: Path) -> None:
    stacks = tmp_path / "in.folded"
    stacks.write_text("main;f 1\n")
    (tmp_path / "there.pftrace").mkdir()
    here = {*tmp_path.iterdir()}
    with pytest.raises(UsageError, match="standard output"):
        fastprof.convert(BUSY, "-", to="perfetto", split="thread")
    with pytest.raises(UsageError, match="not a file"):
        fastprof.convert(BUSY, tmp_path / "there.pftrace", split="thread")
    with pytest.raises(UsageError, match="no sample has a thread"):
        fastprof.convert(stacks, tmp_path / "o.speedscope.json", split="thread")
    with pytest.raises(UsageError, match=r"becomes stacks, which have no times: choose split=thread"):
        fastprof.convert(stacks, tmp_path / "o.profile.json", split="time:1")
    with pytest.raises(UsageError, match="split= has no effect"):
        fastprof.convert(BUSY, tmp_path / "o.callgrind", split="thread")
    with pytest.raises(UsageError, match="budget= has no effect"):
        fastprof.convert(BUSY, tmp_path / "o.pb.gz", budget=1 << 20)
    for wrong in ("process", "time", "time:", "time:0", "time:-1", "time:nan", "time:inf", "time:x", ""):
        with pytest.raises(UsageError, match=r"split: .* is neither thread nor time:SECONDS"):
            fastprof.convert(BUSY, tmp_path / "o.pftrace", split=wrong)
    with pytest.raises(FastprofError, match="the number of files exceeds 500"):
        fastprof.convert(BUSY, tmp_path / "o.pftrace", split="time:0.000001")
    assert {*tmp_path.iterdir()} == here


def test_calls_still_open_end_in_their_own_input(tmp_path: Path) -> None:
    for name, pid in (("one", 7), ("two", 8)):
        log = BasicLog().enter(1, 10, tid=pid, pid=pid).enter(2, 20, tid=pid, pid=pid)
        (tmp_path / name).write_bytes(log.bytes())
    output = tmp_path / "o.speedscope.json"
    report = fastprof.convert([tmp_path / "one", tmp_path / "two"], output, from_="xray", time_unit="ticks")
    assert report.repairs == {"unfinished-calls": 4}
    start = {"start-time": 1}
    assert report.not_representable == {"thread-numbers": 2, **start}
    one, two = json.loads(output.read_bytes())["profiles"]
    assert (one["name"], two["name"]) == ("one (7): thread 7", "two (8): thread 8")
    assert [event["type"] for event in one["events"]] == [event["type"] for event in two["events"]] == [*"OOCC"]


def test_threads_that_were_not_chosen_are_not_counted(tmp_path: Path) -> None:
    for threads, said in (((), b"desc: Threads: 4\n"), ((29283, 29284), b"desc: Threads: 2\n")):
        fastprof.convert(POOL, tmp_path / "o.callgrind", threads=threads)
        assert said in (tmp_path / "o.callgrind").read_bytes()


def test_ticks_cannot_be_cut_by_seconds(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ticks"):
        fastprof.convert(BUSY, tmp_path / "o.pftrace", split="time:1", time_unit="ticks")


def test_a_sink_writes_no_more_than_its_budget(tmp_path: Path) -> None:
    with Sink(tmp_path / "o", 10) as sink:
        sink.write(b"12345")
        sink.write(b"67890x")
        assert sink.is_over and sink.written == 11
        with pytest.raises(FastprofError, match="11 bytes, but budget= allows 10"):
            sink.commit()
    assert not [*tmp_path.iterdir()]
