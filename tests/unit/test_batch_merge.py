"""fastprof batch merge: a tree of merges gives the bytes of a single merge, with any engine and after any failure."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.verbs.batch import engines, merge
from fastprof.verbs.batch.jobs import Job, Record
from tests.support.crashing import MERGING
from tests.support.paths import CORPUS

# Files of all views; timelines of several clocks.
FILES = (
    "callgrind/good/cfi.callgrind",
    "callgrind/good/contexts.callgrind",
    "cachegrind/good/newer.cachegrind",
    "folded/good/plain.folded",
    "folded/good/recursion.folded",
    "gperftools/good/plain.prof",
    "gperftools/good/duplicates.prof",
    "pprof/good/go-heap.pb.gz",
    "pprof/good/go-cpulabels.pb.gz",
    "speedscope/good/01_evented.json",
    "speedscope/good/02_sampled.json",
    "xray/good/fdr5-busy.xray",
    "xray/good/fdr3-busy.xray",
    "xray/good/basic3-busy.xray",
)
TARGETS = ("callgrind", "cachegrind", "pprof", "folded", "archive")


class InTurn:
    """An engine that runs jobs in this process.  `done`: its merges."""

    def __init__(self, fails_after: int = sys.maxsize) -> None:
        self.done: list[Job] = []
        self._fails_after = fails_after

    def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
        for job in jobs:
            if len(self.done) >= self._fails_after:
                raise FastprofError("interrupted")
            if "look" not in job:
                self.done.append(job)
            yield merge.merge_one(job)

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def named(files: Iterable[Path], folder: Path, rng: random.Random) -> Path:
    folder.mkdir()
    for k, file in enumerate(rng.sample([*files], len([*files]))):
        shutil.copyfile(file, folder / f"{k:02}.{file.name}")
    return folder


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_gives_the_bytes_of_one_merge(
    seed: int, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{seed}{to}")
    files = [CORPUS / rng.choice(FILES) for _ in range(rng.randint(3, 12))]
    options: dict[str, Any] = {"union": True, **({"nanoseconds": True} if to == "folded" else {})}
    fastprof.merge(named(files, tmp_path / "flat", rng), tmp_path / "expected", to=to, **options)
    engine = InTurn()
    monkeypatch.setattr(merge, "begun", lambda *_, **__: engine)
    inputs = named(files, tmp_path / "tree", rng)
    log = fastprof.batch_merge(inputs, tmp_path / "out", to=to, jobs=2, fan_in=rng.randint(2, 4), **options)
    assert len(engine.done) >= 2 and not log.losses
    assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()
    assert not (tmp_path / "out.partials").exists()


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    return named([CORPUS / "callgrind/good/cfi.callgrind"] * 10, tmp_path / "in", random.Random(0))


def test_what_is_there_is_not_merged_again(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def merge_again(fails_after: int = sys.maxsize) -> None:
        engine = InTurn(fails_after)
        monkeypatch.setattr(merge, "begun", lambda *_, **__: engine)
        try:
            fastprof.batch_merge(inputs, tmp_path / "out.callgrind", jobs=2, fan_in=2)
        finally:
            made.append(len(engine.done))

    with pytest.raises(FastprofError, match="interrupted"):
        merge_again(fails_after=4)
    assert not (tmp_path / "out.callgrind").exists()
    path = sorted(inputs.iterdir())[0]
    os.utime(path, ns=(0, 0))  # it now looks like another file
    merge_again()
    merge_again()
    # 10 files: 5 partials, merged by 3 and 2; one of the first four had a changed file
    assert made == [4, 2 + 3 + 2, 5 + 3 + 2]
    fastprof.merge(inputs, tmp_path / "expected.callgrind")
    assert (tmp_path / "out.callgrind").read_bytes() == (tmp_path / "expected.callgrind").read_bytes()


def test_a_merge_waits_for_its_inputs_only(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the slowest file is read, all merges that do not need it are done."""

    class Slow(InTurn):
        def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
            slow = None
            for job in jobs:
                if slow is None and "look" not in job:
                    slow = job  # the first of five
                else:
                    yield from super().run([job])
            if slow:
                yield from super().run([slow])
                yield from super().run(jobs)

    engine = Slow()
    monkeypatch.setattr(merge, "begun", lambda *_, **__: engine)
    fastprof.batch_merge(inputs, tmp_path / "out.callgrind", jobs=2, fan_in=2)
    merged = [sum(path.endswith(".fpa") for path in job["inputs"]) for job in engine.done]
    assert merged == [0, 0, 0, 0, 2, 1, 1, 0, 2, 2]  # 5 become 3, these 2
    fastprof.merge(inputs, tmp_path / "expected.callgrind")
    assert (tmp_path / "out.callgrind").read_bytes() == (tmp_path / "expected.callgrind").read_bytes()


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _zero(path: Path) -> None:
    """Zero a file, as a file system may do in a crash: it keeps its length but loses its bytes."""
    path.write_bytes(bytes(path.stat().st_size))


def _hole(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [_cut, _zero, _hole, Path.unlink])
def test_a_partial_that_a_power_cut_left_is_made_again(
    harm: Callable[[Path], None], inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for fails_after in (4, sys.maxsize):
        engine = InTurn(fails_after)
        monkeypatch.setattr(merge, "begun", lambda *_, engine=engine, **__: engine)
        with suppress(FastprofError):
            fastprof.batch_merge(inputs, tmp_path / "out.callgrind", jobs=2, fan_in=2)
        made.append(len(engine.done))
        if fails_after == 4:
            harm(sorted((tmp_path / "out.callgrind.partials").glob("*.fpa"))[1])
    assert made == [4, 5 - 3 + 3 + 2]  # of the five of the first level, three exist and are intact
    fastprof.merge(inputs, tmp_path / "expected.callgrind")
    assert (tmp_path / "out.callgrind").read_bytes() == (tmp_path / "expected.callgrind").read_bytes()


def test_losses_and_errors_of_leaves_are_told(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inputs / "05.bad").write_bytes((CORPUS / "callgrind/good/cfi.callgrind").read_bytes() + b"what is this\n")
    monkeypatch.setattr(merge, "begun", lambda *_, **__: InTurn())
    with pytest.raises(FastprofError, match=r"05.bad: callgrind: line 14"):
        fastprof.batch_merge(inputs, tmp_path / "out.callgrind", jobs=2, fan_in=3)
    log = fastprof.batch_merge(inputs, tmp_path / "out.callgrind", jobs=2, fan_in=3, lenient=True)
    assert sum(log.losses.values()) == 1


@pytest.mark.parametrize(
    "source, to, options",
    [
        ("callgrind/good/cfi.callgrind", "callgrind", {"mod_funcname": ("s/a/aa/g",), "function": "."}),
        ("folded/good/plain.folded", "folded", {"tagroot": "host", "label_path": "{host}.plain.*"}),
        ("folded/good/plain.folded", "pprof", {"tagleaf": "k,v", "set_label": ("k=1", "v=2")}),
        ("callgrind/good/quirks_inherit.callgrind", "callgrind", {"compute_events": True}),
    ],
)
def test_filters_and_tags_apply_once(
    source: str, to: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = named([CORPUS / source] * 10, tmp_path / "in", random.Random(0))
    expected = fastprof.merge(inputs, tmp_path / "expected", to=to, **options)
    monkeypatch.setattr(merge, "begun", lambda *_, **__: InTurn())
    log = fastprof.batch_merge(inputs, tmp_path / "out", to=to, jobs=2, fan_in=2, **options)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()
    assert len(log.warnings) == len(expected.warnings)


def test_options_that_nothing_uses_are_reported(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "begun", lambda *_, **__: InTurn())
    log = fastprof.batch_merge(inputs, tmp_path / "out.callgrind", jobs=2, fan_in=2, tagroot="k")
    assert [warning.partition(" ")[0] for warning in log.warnings] == ["tagroot="]


def test_processes(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "merge", str(inputs), "-o", str(tmp_path / "one.callgrind")]) == 0
    assert main(["batch", "merge", str(inputs), "-o", str(tmp_path / "two.callgrind"), "-j", "2", "--fan-in", "4"]) == 0
    assert (tmp_path / "one.callgrind").read_bytes() == (tmp_path / "two.callgrind").read_bytes()
    assert "one.callgrind: 3 rows (30 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fan_in": 8}, "fan_in= has no effect without jobs= or engine: one"),
        ({"jobs": 2, "per_thread": True}, "per_thread=True keeps separate what a merge tree adds up"),
        ({"engine": "slurm"}, "'slurm' is not an engine, expected local, dask or dask://HOST:PORT"),
        ({"include": ("*.none",)}, "no input files match"),
    ],
)
def test_wishes_that_cannot_be(options: dict[str, Any], message: str, inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message.replace("*", r"\*")):
        fastprof.batch_merge(inputs, tmp_path / "out.callgrind", **options)
    assert not (tmp_path / "out.callgrind").exists()


def test_timelines_are_not_for_a_tree(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a merge tree does not merge timelines"):
        fastprof.batch_merge(CORPUS / "xray/good/fdr5-busy.xray", tmp_path / "out.fpa", jobs=2)


# ---- Dask


def test_without_dask(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    for verb, output in ((fastprof.batch_merge, "out.callgrind"), (fastprof.batch_convert, "outdir")):
        with pytest.raises(
            UsageError, match=r"engine=dask needs Dask: run `pip install (?:-e )?'(?:\.|fastprof-tools)\[dask\]'`"
        ):
            verb([inputs], tmp_path / output, to="callgrind", engine="dask")
    assert [path.name for path in tmp_path.iterdir()] == [inputs.name]


def test_a_scheduler_that_does_not_answer(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engines, "_SECONDS_TO_CONNECT", 0.2)
    command = ["batch", "merge", str(inputs), "-o", str(tmp_path / "out.callgrind"), "--engine", "dask://127.0.0.1:1"]
    assert main(command) == 1
    assert "--engine=dask://127.0.0.1:1: no Dask scheduler answers" in capsys.readouterr().err


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed: Any = pytest.importorskip("distributed", reason="pip install distributed")
    made = distributed.LocalCluster(n_workers=2, host="127.0.0.1", threads_per_worker=1, dashboard_address=None)
    yield made
    made.close()


def killing(cluster: Any, when: Iterable[Path]) -> threading.Thread:
    """Kill a worker of the cluster as soon as one of these files exists."""

    def kill() -> None:
        paths = [*when]
        for _ in range(600):
            if any(path.exists() and any(path.iterdir()) for path in paths):
                os.kill(cluster.workers[0].pid, signal.SIGKILL)
                killed.append(True)
                return
            time.sleep(0.01)

    killed: list[bool] = []
    thread = threading.Thread(target=kill)
    thread.killed = killed  # type: ignore[attr-defined]
    thread.start()
    return thread


@pytest.mark.exhaustive
def test_a_worker_that_is_lost_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    engine = cluster.scheduler_address.replace("tcp://", "dask://")
    files = [CORPUS / name for name in FILES] * 8
    inputs = named(files, tmp_path / "in", random.Random(1))
    fastprof.merge(inputs, tmp_path / "expected.callgrind", union=True)
    thread = killing(cluster, [tmp_path / "out.callgrind.partials"])
    log = fastprof.batch_merge(inputs, tmp_path / "out.callgrind", union=True, engine=engine, fan_in=4)
    thread.join()
    assert thread.killed and not log.losses  # type: ignore[attr-defined]
    assert (tmp_path / "out.callgrind").read_bytes() == (tmp_path / "expected.callgrind").read_bytes()

    fastprof.batch_convert(inputs, tmp_path / "local", to="callgrind", jobs=2)
    thread = killing(cluster, [tmp_path / "outdir"])
    found = fastprof.batch_convert(inputs, tmp_path / "outdir", to="callgrind", engine=engine)
    thread.join()
    assert thread.killed and found.errors == 0 and found.files == len(files)  # type: ignore[attr-defined]
    for path in sorted((tmp_path / "local").glob("*.callgrind")):
        assert (tmp_path / "outdir" / path.name).read_bytes() == path.read_bytes()


def test_a_folder_of_partial_sums_that_cannot_be_made(tmp_path: Path) -> None:
    output = tmp_path / "out.callgrind"
    (tmp_path / "out.callgrind.partials").touch()
    with pytest.raises(
        FastprofError, match=f"^{output}.partials: temporary files need this name, but fastprof has not made"
    ):
        fastprof.batch_merge([CORPUS / file for file in FILES[:2]], output, jobs=2, union=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("e-segfault", "{}: the process that read it was killed by SIGKILL, perhaps for lack of memory"),
        (
            "e-killed",
            "{a} or one of 2 other files: the process that read it was killed by SIGKILL, perhaps for lack of memory",
        ),
    ],
)
def test_a_crash_names_its_file(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When workers look at many files together, and when they merge them."""
    for each in ("a", name, "f"):
        shutil.copy(CORPUS / "folded/good/plain.folded", tmp_path / each)

    def dying(*given: Any, **how: Any) -> Any:
        return engines.begun(*given, **how | {"function": MERGING, "retries": 0})

    monkeypatch.setattr(merge, "begun", dying)
    with pytest.raises(FastprofError) as raised:
        fastprof.batch_merge(tmp_path, tmp_path.parent / "all.folded", jobs=2, fan_in=4)
    assert str(raised.value) == message.format(tmp_path / name, a=tmp_path / "a")
