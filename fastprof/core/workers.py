"""Work in other threads, in order: everything that uses several cores is built on this (docs/cores.md).

The expensive work is C code, which runs without the interpreter lock.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError
from fastprof.core.messages import Message

FEW_ROWS = 1 << 18  # of a timeline; threads do not pay for fewer


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that ask a process to end


@contextmanager
def blocked() -> Iterator[None]:
    """Block these signals.

    A signal that arrives in the meantime is handled, usually by an exception, when the block ends.
    """
    # Python handles waiting signals within this call.  If the first call blocked signals, an exception of their
    # handlers would leave them blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    """Start a thread.  Errors: FastprofError if the system allows no more threads."""
    # a daemon, so that a process can exit immediately without waiting for it
    thread = threading.Thread(target=work, args=arguments, name="fastprof", daemon=True)
    # Signals belong to the main thread: a signal that it blocks must not be delivered to another thread.
    with blocked():
        try:
            thread.start()
        except RuntimeError:
            raise FastprofError(
                Message("cannot start a thread, the system's limit is reached; {--cores:=}1 needs fewer")
            ) from None
    return thread


class _Call:
    __slots__ = ("call", "error", "is_done", "result")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call: Callable[[], Any] | None = call
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False

    def run(self) -> None:
        assert self.call is not None
        try:
            self.result = self.call()
        except BaseException as error:
            self.error = error
        self.call = None  # releases its references immediately


class Workers:
    """Up to `n` threads that execute calls in the order of `give`; `result` returns the results in that order.

    A failing call ends the work: later calls are not started, and `result` raises the error in place of its result.
    Only one thread, the owner, uses the methods; it calls `stop` at the end.
    """

    def __init__(self, n: int = 1) -> None:
        self._n = n
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition(threading.Lock())  # protects the fields below
        self._waiting: deque[_Call] = deque()  # not started yet
        self._given: deque[_Call] = deque()  # results not taken yet; the earliest first
        self._n_idle = 0
        self._ended = False  # no more calls are started

    def __len__(self) -> int:
        """The number of calls with results not taken yet."""
        return len(self._given)

    def give(self, call: Callable[[], Any]) -> None:
        """Queue a call.  Errors: FastprofError if the system allows no more threads."""
        with self._changed:
            are_enough = self._ended or self._n_idle > len(self._waiting) or len(self._threads) == self._n
        if not are_enough:
            self._threads.append(begin(self._work))
        one = _Call(call)
        with self._changed:
            self._waiting.append(one)
            self._given.append(one)
            self._changed.notify_all()

    def _work(self) -> None:
        while (one := self._next()) is not None:
            one.run()
            self._done(one)
            del one  # the next call may come much later

    def _next(self) -> _Call | None:
        with self._changed:
            self._n_idle += 1
            while not self._waiting and not self._ended:
                self._changed.wait()
            self._n_idle -= 1
            return None if self._ended else self._waiting.popleft()

    def _done(self, one: _Call) -> None:
        with self._changed:
            one.is_done = True
            if one.error is not None:
                self._ended = True
            self._changed.notify_all()

    def n_ready(self) -> int:
        """The number of results that `result` returns without waiting."""
        return sum(1 for _ in takewhile(lambda one: one.is_done, self._given))

    def result(self) -> Any:
        """Wait for the earliest call and return its result.  Errors: that of the call, which is then the last."""
        with self._changed:
            while not self._given[0].is_done:
                self._changed.wait()
        one = self._given.popleft()
        if one.error is None:
            return one.result
        self._given.clear()
        error, one.error = one.error, None
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame

    def stop(self) -> None:
        """End the threads: finish started calls and drop the others."""
        threads = [*self._threads]
        self.drop()
        for thread in threads:
            thread.join()

    def drop(self) -> None:
        """As `stop`, but without waiting for started calls, whose results are lost."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._changed.notify_all()
        self._threads.clear()
        self._given.clear()  # results and errors that were not taken may refer to the owner


def side_by_side(call: Callable[[Any], Any], items: Iterable[Any], n: int) -> Iterator[Any]:
    """The results of a call for each item, in their order, by `n` threads; a few are made ahead.

    An exception here, as an interrupt, does not wait for started calls.  Errors: those of the calls.
    """
    workers = Workers(n)
    try:
        for item in items:
            workers.give(partial(call, item))
            if len(workers) > 4 * n:
                yield workers.result()
        while workers:
            yield workers.result()
    finally:
        workers.drop()


class Prefetch:
    """A stream of the pieces that `make` returns, b"" at the end; another thread makes a few pieces ahead.

    `readinto` raises errors of `make` at their position.
    """

    def __init__(self, make: Callable[[], bytes], pieces: int = 4) -> None:
        self._make = make
        self._piece = memoryview(b"")
        self._is_made = self._ended = False  # all pieces are made; all are read
        self._workers = Workers()
        for _ in range(pieces):
            self._workers.give(self._next)

    def _next(self) -> bytes:
        piece = b"" if self._is_made else self._make()
        self._is_made = not piece
        return piece

    def readinto(self, into: memoryview) -> int:
        """Fill `into` with the next bytes; returns their number, 0 at the end."""
        if not self._piece and not self._ended:
            self._ended = True  # also if this fails
            self._piece = memoryview(self._workers.result())
            self._ended = not self._piece
            if not self._ended:
                self._workers.give(self._next)
        n = min(len(into), len(self._piece))
        into[:n] = self._piece[:n]
        self._piece = self._piece[n:]
        return n

    def read(self, n: int) -> bytes:
        data = bytearray(n)
        return bytes(data[: self.readinto(memoryview(data))])

    def stop(self) -> None:
        """End the thread, even if pieces are left."""
        self._ended = True
        self._workers.stop()
        self._make = bytes  # the old function may refer to this object


class Collected(list[bytes]):
    """The file that a compressor writes to, see Background."""

    def write(self, data: bytes | memoryview) -> int:
        self.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing to flush."""

    def take(self) -> bytes:
        data = b"".join(self)
        self.clear()
        return data


class Background:
    """A compressor or a file, to which another thread writes once there is enough data.

    A compressor writes to `made`, and the caller's thread passes that on to `target`.  So all errors are raised in the
    caller's thread, by `write` or `close`.
    """

    _PIECES = 8  # maximum number of pieces not written yet

    def __init__(self, stream: Any, made: Collected, target: Any, few: int) -> None:
        self._stream, self._made, self._target, self._few = stream, made, target, few
        self._nbytes = 0
        self._workers = Workers()

    def write(self, data: memoryview) -> None:
        if self._nbytes <= self._few:
            self._nbytes += len(data)
            self._pass_on(self._write(data))
            return
        self._pass_all_on(self._PIECES - 1)
        self._workers.give(partial(self._write, bytes(data)))

    def _write(self, data: bytes | memoryview) -> bytes:
        self._stream.write(data)
        return self._made.take()

    def _pass_on(self, data: bytes) -> None:
        if data:
            self._target.write(data)

    def _pass_all_on(self, most: int) -> None:
        """Wait until at most `most` pieces are unwritten."""
        while len(self._workers) > most or self._workers.n_ready():
            self._pass_on(self._workers.result())

    def close(self) -> None:
        """Write the rest."""
        self._pass_all_on(0)
        self._workers.stop()
        self._stream.close()
        self._pass_on(self._made.take())

    def stop(self) -> None:
        """End the thread and drop the rest."""
        self._workers.stop()
