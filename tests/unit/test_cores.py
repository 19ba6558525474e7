"""For any --cores the output, the log and the errors are the same, and no thread is left."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.bridges.fold import accumulators, arc_runs, divided, ranges
from fastprof.bridges.sums import sorted_runs
from fastprof.core import engine, sink, source, workers
from fastprof.core.errors import FastprofError
from fastprof.core.sink import Sink
from fastprof.formats.xray import pieces
from tests.support.xraylog import FdrLog

CORPUS = Path(__file__).parents[1] / "corpus" / "xray"
FILES = sorted(CORPUS.glob("*/*.xray"))
CORES = (1, 2, 3, 8)


SUFFIXES = (".gz", ".zst", ".xz", ".bz2", ".lz4")


@pytest.fixture(autouse=True)
def everything_is_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads from the second batch on, batches of few rows, tables that spill soon and often."""
    monkeypatch.setattr(workers, "FEW_ROWS", 1)
    monkeypatch.setattr(divided, "_ROWS", 37)
    monkeypatch.setattr(accumulators, "_LEAST_ARCS", 8)
    monkeypatch.setattr(accumulators, "_STREAM", 256)
    monkeypatch.setattr(ranges, "_LEAST", 5)
    monkeypatch.setattr(ranges, "_PIECE", 256)
    monkeypatch.setattr(sorted_runs, "MOST_RUNS", 3)
    monkeypatch.setattr(arc_runs, "_RECORDS", 11)
    monkeypatch.setattr(sink, "_FEW", 1000)
    monkeypatch.setattr(source, "_FEW", 1000)
    monkeypatch.setattr(source, "WINDOW", 4096)
    monkeypatch.setattr(engine, "DRAIN", 1000)
    monkeypatch.setitem(engine.CAPACITY, "timeline", 37)
    monkeypatch.setattr(pieces, "_BYTES", 3000)  # some buffers are larger
    monkeypatch.setattr(pieces, "_PIECES", 3)
    monkeypatch.setattr(pieces, "_FEW", 2)
    monkeypatch.setattr(pieces, "_FIRST", 2000)
    yield
    assert not ours_left()


def ours_left() -> list[threading.Thread]:
    """Threads of other libraries, or of tests before, may end at any time."""
    return [thread for thread in threading.enumerate() if thread.name == "fastprof"]


def outcome(log: Path, output: Path, **options: Any) -> tuple[Any, ...]:
    """The output and its log."""
    output.unlink(missing_ok=True)
    try:
        report = fastprof.convert(log, output, **options)
    except FastprofError as error:
        assert not output.exists()
        return type(error), str(error)
    return output.read_bytes(), report.as_dict()


def same_for_all(log: Path, folder: Path, suffix: str, several: tuple[int, ...] = CORES, **options: Any) -> Any:
    output = folder / f"out{suffix}"
    first, *others = (outcome(log, output, cores=n, **options) for n in several)
    for n, other in zip(several[1:], others, strict=True):
        assert other == first, f"{log.name}{suffix} {options}: --cores {n}"
    return first


@pytest.mark.parametrize("log", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("lenient", [False, True])
def test_corpus(log: Path, lenient: bool, tmp_path: Path) -> None:
    for suffix in (".callgrind", ".pb"):
        same_for_all(log, tmp_path, suffix, lenient=lenient)
    for suffix in (".callgrind", ".folded"):
        same_for_all(log, tmp_path, suffix, (1, 3), lenient=lenient, max_memory=1)


def random_log(seed: int, n_threads: int, n_records: int) -> FdrLog:
    """Threads in turn call one of 300 functions, return or lose their way; occasionally they move to another CPU."""
    chance = random.Random(seed)
    log = FdrLog(5)
    stacks: list[list[int]] = [[] for _ in range(n_threads)]
    now = [1000 + chance.randrange(100) for _ in range(n_threads)]
    for wall in range(n_records // 200):
        i = chance.randrange(n_threads)
        buffer = log.buffer(100 + i, 7, 1, wall)
        buffer.cpu(chance.randrange(3), now[i])
        for _ in range(chance.randrange(400)):
            delta = chance.randrange(50)
            now[i] += delta
            if stacks[i] and (len(stacks[i]) > 20 or chance.random() < 0.5):
                function = stacks[i].pop()
                buffer.exit(function if chance.random() < 0.98 else chance.randrange(1, 300), delta)
            else:
                stacks[i].append(chance.randrange(1, 300))
                buffer.enter(stacks[i][-1], delta)
    return log


@pytest.mark.parametrize("suffix", [".callgrind", ".pb"])
def test_threads_are_divided_by_how_much_there_is_of_them(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second thread is busy, as if each had another that watches it."""
    log, path = FdrLog(5), tmp_path / "log.xray"
    for wall in range(200):
        for i in range(4):
            buffer = log.buffer(100 + i, 7, 1, wall).cpu(i, 1000 * wall)
            for _ in range(20 if i % 2 else 1):
                buffer.enter(1 + i, 2).exit(1 + i, 3)
    path.write_bytes(log.bytes())
    calls: list[int] = []
    join = accumulators.Accumulator.join
    monkeypatch.setattr(
        accumulators.Accumulator, "join", lambda self, other: calls.append(other.fold.stats.calls) or join(self, other)
    )
    fastprof.convert(path, tmp_path / f"o{suffix}", cores=2)
    assert sorted(calls) == [200 * 20, 200 * (20 + 2)]


def test_what_is_mostly_new_functions_is_decoded_by_who_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new function makes threads wait for each other."""
    log, path = FdrLog(5), tmp_path / "log.xray"
    for wall in range(400):
        buffer = log.buffer(100 + wall % 2, 7, 1, wall).cpu(0, 1000 * wall)
        for i in range(10):
            function = 1 + min(10 * wall + i, 2000)  # new functions in the first half
            buffer.enter(function, 2).exit(function, 3)
    path.write_bytes(log.bytes())
    monkeypatch.setattr(pieces, "_RARE", 2)
    firsts: list[int] = []
    decoded = pieces._Piece.decoded
    monkeypatch.setattr(
        pieces._Piece,
        "decoded",
        lambda self, batch: firsts.append(self._buffers[0].offset) or decoded(self, batch),
    )
    same_for_all(path, tmp_path, ".callgrind", (1, 2))
    assert firsts
    assert path.stat().st_size // 2 < min(firsts) < path.stat().st_size * 3 // 4


@pytest.fixture(scope="module")
def big_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cores") / "log.xray"
    path.write_bytes(random_log(1, 7, 40_000).bytes())
    return path


OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_memory": 1},
    {"per_thread": True},
    {"per_thread": True, "max_memory": 1},
    {"threads": (101, 104)},
    {"time_range": (2000, 60_000)},
    {"function": "#1"},
    {"time_unit": "ticks"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_threads(big_log: Path, options: dict[str, Any], tmp_path: Path) -> None:
    for suffix in (".callgrind", ".pb", ".folded"):
        if "per_thread" not in options or suffix != ".folded":
            found = same_for_all(big_log, tmp_path, suffix, **options)
            assert isinstance(found[0], bytes)


@pytest.mark.parametrize("labels", [("cpu",), ("thread",), ("process", "cpu")])
def test_labels(big_log: Path, labels: tuple[str, ...], tmp_path: Path) -> None:
    assert b"100" in same_for_all(big_log, tmp_path, ".pb", labels=labels, max_memory=1)[0]


@pytest.mark.parametrize("options", [{"by": "function"}, {"by": "thread"}, {"by": "function", "threads": (101, 104)}])
def test_top(big_log: Path, options: dict[str, Any]) -> None:
    first, *others = (fastprof.top(big_log, cores=n, n=0, **options) for n in CORES)
    assert len(first.rows) > 1
    assert all(other.rows == first.rows and other.total == first.total for other in others)


@pytest.mark.parametrize("capacity", [1, 2, 36, 8192])
def test_cpus_in_batches_of_any_size(
    big_log: Path, capacity: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a batch begins with a record without a CPU, the time before it counts for the CPU of the preceding record."""
    found = outcome(big_log, tmp_path / "o.pb", labels=("cpu",), cores=1)
    monkeypatch.setitem(engine.CAPACITY, "timeline", capacity)
    assert outcome(big_log, tmp_path / "o.pb", labels=("cpu",), cores=1) == found


def odd_log(seed: int) -> FdrLog:
    """Most functions are called once.  Some buffers have records of two threads, some have none, and some are large."""
    chance = random.Random(seed)
    log = FdrLog(5)
    now, function = 1000, 1
    for wall in range(150):
        tid = chance.randrange(100, 105)
        buffer = log.buffer(tid, 7, 1, wall)
        for again in range(chance.choice((0, 1, 1, 1, 1, 1, 1, 1, 2))):
            if again:
                buffer.new_buffer(chance.randrange(100, 105)).wall(1, wall).pid(7)
            buffer.cpu(chance.randrange(3), now)
            for _ in range(chance.choice((1, 5, 20, 200))):
                now += chance.randrange(50)
                function += chance.random() < 0.7
                buffer.enter(function, 3000).argument(1).exit(chance.choice((function, function, 1)), 7)
    return log


@pytest.mark.parametrize("seed", range(6))
def test_functions_are_numbered_as_by_one_thread(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_BUFFERS", 1 + 3 * seed)
    path = tmp_path / "log.xray"
    path.write_bytes(odd_log(seed).bytes())
    for suffix in (".callgrind", ".pb"):
        assert isinstance(same_for_all(path, tmp_path, suffix, per_thread=suffix == ".pb")[0], bytes)


def test_pieces_are_decoded_in_threads(big_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: dict[str, int] = {}
    feed = accumulators.Accumulator.feed

    def counted(self: Any, rows: Any) -> int:
        before, status = rows.n_rows, feed(self, rows)
        decoded[threading.current_thread().name] = (
            decoded.get(threading.current_thread().name, 0) + rows.n_rows - before
        )
        return status

    monkeypatch.setattr(accumulators.Accumulator, "feed", counted)
    fastprof.convert(big_log, tmp_path / "o.callgrind", cores=2)
    assert decoded.keys() == {"fastprof"}
    assert decoded["fastprof"] > 20_000


def test_pieces_are_given_back_at_once(big_log: Path, tmp_path: Path) -> None:
    gc.disable()
    try:
        fastprof.convert(big_log, tmp_path / "o.callgrind", cores=2)
        assert not any(isinstance(found, pieces._Piece) for found in gc.get_objects())
    finally:
        gc.enable()


@pytest.mark.parametrize("cut", [5000, 70_000, 100_001])
@pytest.mark.parametrize("lenient", [False, True])
def test_damage_behind_rows_of_several_threads(big_log: Path, cut: int, lenient: bool, tmp_path: Path) -> None:
    data = bytearray(big_log.read_bytes())
    data[cut : cut + 64] = b"\xff" * 64
    path = tmp_path / "damaged.xray"
    path.write_bytes(data)
    for suffix in (".callgrind", ".pb"):
        found = same_for_all(path, tmp_path, suffix, lenient=lenient)
        assert isinstance(found[0], bytes) is lenient


def test_several_inputs(big_log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.xray"
    other.write_bytes(random_log(2, 3, 10_000).bytes())
    found = []
    for n in CORES:
        fastprof.convert([big_log, other], tmp_path / "o.callgrind", cores=n)
        found.append((tmp_path / "o.callgrind").read_bytes())
    assert len({*found}) == 1


def test_the_earliest_error_of_the_tables_is_told(
    big_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables fail in piece 20 and later, in any order."""
    feed, numbers = accumulators.Accumulator.feed, iter(range(1 << 30))

    def failing(self: Any, rows: Any) -> int:
        status = feed(self, rows)
        if next(numbers) >= 20:
            raise FastprofError(f"no room at row {rows.n_rows}")
        return status

    monkeypatch.setattr(accumulators.Accumulator, "feed", failing)
    with pytest.raises(FastprofError, match="no room at row"):
        fastprof.convert(big_log, tmp_path / "o.callgrind", cores=3)
    assert not (tmp_path / "o.callgrind").exists()


@pytest.mark.parametrize("where", ["feed", "read", "decode", "write"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, FastprofError])
def test_interrupted(
    big_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, kind: type[BaseException]
) -> None:
    """While rows are folded, and while the sums are merged and written."""
    from fastprof.formats.callgrind.write import CallgrindWriter
    from fastprof.formats.xray.read import XRayReader

    places: dict[str, tuple[Any, str, int]] = {
        "feed": (XRayReader, "feed", 5),
        "read": (pieces._Piece, "_read", 7),
        "decode": (pieces._Shares, "define", 20),
        "write": (CallgrindWriter, "put", 1),
    }
    target, name, when = places[where]
    original, calls = getattr(target, name), iter(range(1 << 30))

    def interrupted(self: Any, *arguments: Any) -> Any:
        if next(calls) == when:
            raise kind("now")
        return original(self, *arguments)

    monkeypatch.setattr(target, name, interrupted)
    monkeypatch.setitem(engine.CAPACITY, "graph", 50)
    with pytest.raises(kind, match="now") as found:
        fastprof.convert(big_log, tmp_path / "o.callgrind", cores=3, max_memory=1)
    assert not ours_left(), f"a thread is left by {found}"
    assert not any(tmp_path.iterdir())


# ---- compression ----


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the names of functions that run in threads."""
    given: dict[tuple[int, str], workers.Workers] = {}
    give = workers.Workers.give

    names: list[str] = []  # one for each of the Workers, which live as long as `given`

    def counted(self: workers.Workers, call: Any) -> None:
        name = getattr(call, "func", call).__qualname__
        if (id(self), name) not in given:
            given[id(self), name] = self
            names.append(name)
        give(self, call)

    monkeypatch.setattr(workers.Workers, "give", counted)
    return names


def compressed(log: Path, folder: Path, suffix: str) -> Path:
    path = folder / f"{log.name}{suffix}"
    with Sink(path) as sink:
        sink.write(log.read_bytes())
        sink.commit()
    return path


@pytest.mark.parametrize("several", [1, 2])
def test_call_arcs_are_merged_beside_their_writing(
    several: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: list[str]
) -> None:
    """Including those of a log of one thread, once they were spilled."""
    log = tmp_path / "one.xray"
    log.write_bytes(random_log(3, 1, 20_000).bytes())
    fastprof.convert(log, tmp_path / "o.callgrind", cores=several, max_memory=1)
    assert {*threads} == ({"Ranges._all_sums", "Background._write"} if several > 1 else set())


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_writing_beside_fails_where_it_is_written(suffix: str, tmp_path: Path, threads: list[str]) -> None:
    """A file that must not grow, like one on a full disk."""
    code = f"""
import random, resource, sys
from fastprof.core import sink
from fastprof.core.errors import FastprofError
from fastprof.core.sink import Sink
sink._FEW = 1000
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    with Sink("o{suffix}", cores=2) as sink:
        for i in range(200):
            sink.write(random.randbytes(1000))
        sink.commit()
except FastprofError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"o{suffix}: File too large\n")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compression_in_threads(big_log: Path, suffix: str, tmp_path: Path, threads: list[str]) -> None:
    path = compressed(big_log, tmp_path, suffix)
    same_for_all(path, tmp_path, f".callgrind{suffix}", (1, 2))
    assert {*threads} == {"Divided._take_or_fail", "Divided._end_table", "Prefetch._next", "Background._write"}
    assert threads.count("Background._write") == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("lenient", [False, True])
def test_damaged_compression(big_log: Path, suffix: str, lenient: bool, tmp_path: Path) -> None:
    path = compressed(big_log, tmp_path, suffix)
    data = bytearray(path.read_bytes())
    for damaged in (data[: len(data) // 2], data + b"garbage", data[:-500] + bytes([data[-500] ^ 255]) + data[-499:]):
        path.write_bytes(damaged)
        found = same_for_all(path, tmp_path, ".folded", lenient=lenient)
        # no data of a bzip2 block can be read before its end
        assert isinstance(found[0], bytes) is lenient or suffix == ".bz2"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", [OSError(28, "No space left on device"), KeyboardInterrupt("now"), BrokenPipeError()])
def test_a_target_that_fails(
    big_log: Path, suffix: str, kind: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails in the calling thread, and no output is left."""
    import fastprof.core.sink

    whole, calls = fastprof.core.sink._write_whole, iter(range(1 << 30))

    def failing(raw: Any, view: memoryview) -> None:
        assert threading.current_thread() is threading.main_thread()
        if next(calls) == 1:
            raise kind
        whole(raw, view)

    monkeypatch.setattr(fastprof.core.sink, "_write_whole", failing)
    with pytest.raises((FastprofError, KeyboardInterrupt, BrokenPipeError)) as found:
        fastprof.convert(big_log, tmp_path / f"o.trace.json{suffix}", cores=2)
    if isinstance(kind, OSError) and kind.errno:
        assert str(found.value).endswith(": No space left on device")
    assert not any(tmp_path.iterdir())


def test_a_compressor_that_fails(big_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = workers.Background._write

    def failing(self: Any, data: Any) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            monkeypatch.setattr(self, "_stream", None)
        return write(self, data)

    monkeypatch.setattr(workers.Background, "_write", failing)
    with pytest.raises(AttributeError):
        fastprof.convert(big_log, tmp_path / "o.trace.json.gz", cores=2)
    assert not any(tmp_path.iterdir())
