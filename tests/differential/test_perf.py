"""perf.data against ../shared/tools/perf/perfref.py, which reproduces the output of `perf script`: sample by sample."""

from __future__ import annotations

import gzip
import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from tests.differential.peers import need
from tests.support.paths import SHARED, needs_shared, shared_folder

pytestmark = needs_shared

MOST_FRAMES = 127  # that perf prints
# perfref.py does not unwind copied stacks, and gives no stack for a chain with unknown markers
MORE_FRAMES = {"cxx-dwarf.data", "perf.data.PerfFormatLost.gz", "perf.data.true.v2", "fibo.compressed2.pipe.data"}
NO_TIME = {"time-zero.data"}  # here a time of 2^64 - 1 means none

Sample = tuple[str, int, int, int, int, str, list[str]]  # comm, pid, tid, time, period, event, frames


def recordings() -> list[Path]:
    folders = ("generated", "recorded", "quipper", "converter", "linux-perf-data", "hotspot")
    found = [path for folder in folders for path in sorted(shared_folder("perf-data", folder).glob("*"))]
    return [p for p in found if p.is_file() and ".data" in p.name and p.suffix != ".buildids"]


def hostile() -> list[Path]:
    found = sorted(shared_folder("perf-data/hostile").rglob("*"))
    return [path for path in found if path.is_file() and "expected" not in path.parts]


@cache
def perfref() -> Any:
    assert SHARED is not None
    spec = importlib.util.spec_from_file_location("perfref", SHARED / "tools/perf/perfref.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["perfref"] = module
    spec.loader.exec_module(module)
    return module


def expected(path: Path) -> list[Sample]:
    found: list[Sample] = []

    def take(_: Any, attr: Any, sample: Any, thread: Any, frames: Any) -> None:
        shown = [f"{address:x} ({mapped[3] if mapped else ''})" for _, mapped, address in frames]
        comm = thread.comm or ""
        time = sample["time"] or 0
        found.append((comm, sample["pid"], sample["tid"], time, sample["period"], attr.nm(), shown))

    data = path.read_bytes()
    try:
        perfref().Reader(gzip.decompress(data) if path.suffix == ".gz" else data, take).run()
    except perfref().Bad as error:  # after all samples
        assert "stderr of perf record" in str(error)
    return found


def signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def comm_of(model: Any, label: int) -> str:
    while label:
        label, key, text, *_ = model.row("labels", label)
        if model.string(key) == b"comm":
            found: str = model.string(text).decode("utf-8", "surrogateescape")
            return found
    return ""


def frames_of(model: Any, stack: int) -> list[str]:
    found = []
    while stack:
        stack, frame = model.row("stacks", stack)
        mapping, low, high, *_ = model.row("frames", frame)
        object_ = model.row("mappings", mapping)[0]
        name = model.string(model.row("objects", object_)[0]).decode("utf-8", "surrogateescape")
        found.append(f"{low | high << 32:x} ({name})")
    return found[:MOST_FRAMES]


def read(path: Path, **options: Any) -> list[Sample]:
    found: list[Sample] = []
    with fastprof.open(path, **(options or {"symbolize": False})) as profile:
        model = profile._model
        for batch in profile.batches(reuse=True):
            types = model.parts[batch.part].value_types
            columns = [batch.values(k) for k in range(len(types))]
            times, threads, labels, stacks = (batch[name] for name in ("time", "thread", "label", "stack"))
            off_cpu = columns[-1] if types[-1].name == "off-cpu" else [0] * len(batch)
            for i in (i for i in range(len(batch)) if not off_cpu[i]):
                (k,) = (k for k in range(0, len(types) - 1, 2) if columns[k][i])
                _, pid, tid = model.row("threads", threads[i]) if threads[i] else (0, 0xFFFFFFFF, 0xFFFFFFFF)
                comm, frames = comm_of(model, labels[i]), frames_of(model, stacks[i])
                period, event = columns[k + 1][i], types[k + 1].name
                found.append((comm, signed(pid), signed(tid), times[i], period, event, frames))
    return found


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_samples_are_those_of_perf(path: Path) -> None:
    """In the same order, with the same thread, period and event, and each frame with its object."""
    if "corrupted" in path.name:
        with pytest.raises(FastprofError, match="the size of a record is 0"):
            read(path)
        return
    ours, theirs = read(path), expected(path)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        if path.name in NO_TIME:
            other = (*other[:3], other[3] % ((1 << 64) - 1), *other[4:])
        if path.name in MORE_FRAMES:
            assert mine[:6] == other[:6] and mine[6][: len(other[6])] == other[6]
        else:
            assert mine == other


def test_copies_of_stacks_are_unwound() -> None:
    """unwind_ref.py stops at libc, which has no file here; it prints addresses of calls in the file."""
    assert SHARED is not None
    folder = SHARED / "data/perf-data/recorded"
    tool, file = SHARED / "tools/perf/unwind_ref.py", folder / "cxx-dwarf.data"
    command = [sys.executable, str(tool), "--symfs", str(folder / "symfs"), "--script", str(file)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = [re.findall(r"\t(\w+) \(/srv/demo/cxx\)", sample) for sample in printed.split("\n\n")]
    ours = read(file, symbols=[folder / "symfs"], sysroot="/nowhere")
    assert len(ours) == 20
    for (*_, frames), other in zip(ours, theirs, strict=False):
        here = [
            int(address, 16) for address, _, name in map(str.partition, frames, " " * len(frames)) if "/cxx" in name
        ]
        start = here[0] - int(other[0], 16)
        assert [f"{address - start - (i > 0):x}" for i, address in enumerate(here)][: len(other)] == other


SWITCHED = re.compile(
    r"prev_comm=(.*) prev_pid=(\d+) prev_prio=(\d+) prev_state=\S+ ==> next_comm=(.*) next_pid=(\d+) next_prio=(\d+)"
)
OPENED = re.compile(r"dfd: 0x(\w+), filename: 0x(\w+), flags: 0x(\w+), mode: 0x(\w+)")


@pytest.mark.parametrize(
    ("name", "event", "printed", "keys", "base"),
    [
        ("sched-own", "sched_switch", SWITCHED, "prev_comm prev_pid prev_prio next_comm next_pid next_prio", 10),
        ("tracepoints", "sys_enter_openat", OPENED, "dfd filename flags mode", 16),
        ("tracepoints", "sys_enter", re.compile(r"NR (\d+) "), "id", 10),
    ],
)
def test_fields_of_tracepoints_are_those_of_perf_script(
    name: str, event: str, printed: re.Pattern[str], keys: str, base: int
) -> None:
    file = shared_folder("perf-data/recorded") / f"{name}.data"
    command = [need("perf"), "script", "--ns", "-F", "time,event,trace", "-i", str(file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = []
    for line in lines:
        if f":{event}: " in line and (match := printed.search(line)):
            time = int(line.split(":")[0].strip().replace(".", ""))
            values = [
                text if "comm" in key else int(text, base)
                for key, text in zip(keys.split(), match.groups(), strict=True)
            ]
            theirs.append((time, values))
    ours = []
    with fastprof.open(file, symbolize=False) as profile:
        for batch in profile.batches():
            types = profile._model.parts[batch.part].value_types
            off_cpu = batch.values(len(types) - 1) if types[-1].name == "off-cpu" else [0] * len(batch)
            for time, label, wait in zip(batch["time"], batch["label"], off_cpu, strict=True):
                found = fields_of(profile._model, label)
                if not wait and all(key in found for key in keys.split()):
                    ours.append((time, [found[key] for key in keys.split()]))
    assert ours == theirs and ours


def fields_of(model: Any, label: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while label:
        label, key, text, low, high, _ = model.row("labels", label)
        found[model.string(key).decode()] = model.string(text).decode() if text else low | high << 32
    return found


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("path", hostile(), ids=lambda path: path.name)
def test_hostile_recordings_are_read_or_an_error(path: Path, lenient: bool) -> None:
    try:
        log = fastprof.info(path, from_="perf", lenient=lenient)
    except FastprofError as error:
        assert "perf" in str(error) or "perf" in path.name
    else:
        assert log.facts["format"] == "perf"
