"""Workers: results in the order of the calls, one error in its place, no thread left, no polling."""

from __future__ import annotations

import gc
import re
import signal
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from fastprof.core.errors import FastprofError
from fastprof.core.workers import Background, Collected, Prefetch, Workers, begin
from tests.support.paths import REPO
from tests.unit.test_cores import ours_left


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not ours_left()


@pytest.fixture
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    made = Workers(getattr(request, "param", 1))
    yield made
    made.stop()


@pytest.mark.parametrize("workers", [1, 2, 5], indirect=True)
def test_results_come_in_the_order_of_the_calls(workers: Workers) -> None:
    """Although the first call ends last."""
    last = threading.Event()
    n_others = workers._n - 1
    first = (lambda: last.wait(60)) if n_others else (lambda: True)
    workers.give(first)
    for i in range(20):
        workers.give(partial(int, i))
    if n_others:
        assert not workers.n_ready()
        workers.give(lambda: last.set())
    assert [workers.result() for _ in range(21)] == [True, *range(20)]
    assert len(workers) == bool(n_others)
    assert 1 <= len(workers._threads) <= workers._n


def test_one_worker_makes_one_call_at_a_time(workers: Workers) -> None:
    busy, seen = threading.Lock(), []

    def alone(i: int) -> None:
        assert busy.acquire(blocking=False)
        seen.append(i)
        busy.release()

    for i in range(100):
        workers.give(partial(alone, i))
    while len(workers):
        workers.result()
    assert seen == [*range(100)] and len(workers._threads) == 1


@pytest.mark.parametrize("workers", [1, 3], indirect=True)
@pytest.mark.parametrize("kind", [FastprofError, KeyboardInterrupt, MemoryError])
def test_an_error_comes_in_its_place(workers: Workers, kind: type[BaseException]) -> None:
    begun: list[int] = []

    def failing(i: int) -> int:
        begun.append(i)
        if i == 3:
            raise kind("third")
        return i

    for i in range(3):
        workers.give(partial(failing, i))
    assert [workers.result() for _ in range(3)] == [0, 1, 2]
    for i in range(3, 50):
        workers.give(partial(failing, i))
    with pytest.raises(kind, match="third"):
        workers.result()
    assert len(workers) == 0
    workers.stop()
    assert workers._n > 1 or begun == [0, 1, 2, 3]


def test_stop_lets_the_call_at_hand_end_and_begins_no_other(workers: Workers) -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        go_on.wait(60)
        done.append(1)

    workers.give(slow)
    workers.give(lambda: done.append(2))
    assert begun.wait(60)
    threading.Timer(0.01, go_on.set).start()
    workers.stop()
    assert done == [1]


def test_what_was_given_is_not_kept() -> None:
    class Thing:
        """An object that a weak reference can refer to."""

    thing, workers = Thing(), Workers()
    gone = weakref.ref(thing)
    gc.disable()
    try:
        workers.give(partial(id, thing))
        del thing
        workers.result()
        workers.stop()
        assert gone() is None
    finally:
        gc.enable()


def test_without_a_thread_there_is_no_call(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    with pytest.raises(FastprofError, match="the system's limit is reached"):
        workers.give(int)
    assert len(workers) == 0


def test_ahead_asks_for_nothing_after_the_end() -> None:
    pieces = iter([b"abc", b"de", b""])
    ahead = Prefetch(lambda: next(pieces))
    assert ahead.read(2) + ahead.read(2) + ahead.read(9) + ahead.read(9) == b"abcde"
    ahead.stop()
    assert next(pieces, None) is None


def test_ahead_fails_where_its_piece_would_be() -> None:
    def made() -> Iterator[bytes]:
        yield b"abc"
        raise FastprofError("damaged")

    ahead = Prefetch(partial(next, made()))
    assert ahead.read(9) == b"abc"
    with pytest.raises(FastprofError, match="damaged"):
        ahead.read(9)
    assert ahead.read(9) == b""
    ahead.stop()


def test_beside_passes_on_in_order_and_in_the_callers_thread() -> None:
    made, written = Collected(), []

    class Target:
        def write(self, data: bytes) -> None:
            assert threading.current_thread() is threading.main_thread()
            written.append(data)

    class Stream:
        def write(self, data: bytes | memoryview) -> None:
            made.write(bytes(data) * 2)

        def close(self) -> None:
            made.write(b"end")

    beside = Background(Stream(), made, Target(), 3)
    for i in range(100):
        beside.write(memoryview(b"%d," % i))
    beside.close()
    assert b"".join(written) == b"".join(b"%d,%d," % (i, i) for i in range(100)) + b"end"


def test_nobody_polls() -> None:
    """A waiting thread is woken; timeouts are only for other processes and clocks."""
    waiting = re.compile(r"\.(?:wait|wait_for|get|put|join|acquire)\([^()]*timeout|\.wait\([^()\s]+\)|sleep\(")
    found: dict[str, Any] = {}
    for folder in ("core", "bridges", "formats"):
        for path in (REPO / "fastprof" / folder).rglob("*.py"):
            if lines := [line.strip() for line in path.read_text().splitlines() if waiting.search(line)]:
                found[path.relative_to(REPO / "fastprof").as_posix()] = lines
    # an upload must notice a failure on the server's side; a folder may be in the hands of another process
    assert found.keys() == {"core/remote.py", "core/made_folders.py"}


@pytest.mark.parametrize("nth", range(3))
def test_an_interrupt_leaves_no_signals_blocked(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python raises it at the end of any of the calls that block signals and unblock them."""
    change, before = signal.pthread_sigmask, signal.pthread_sigmask(signal.SIG_BLOCK, ())
    calls = iter(range(3))

    def interrupted(how: int, numbers: Iterable[int]) -> set[int]:
        blocked_before = change(how, numbers)
        if next(calls) == nth:
            raise KeyboardInterrupt
        return blocked_before

    with monkeypatch.context() as patch:
        patch.setattr(signal, "pthread_sigmask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            begin(int)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    while ours_left():
        time.sleep(0.001)
