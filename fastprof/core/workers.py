"""Work beside the thread that asked for it, on other cores.

What takes long here is C code, which runs without the interpreter lock.  All threads are ended by who began them, with
`stop` at the latest.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError

FEW_ROWS = 1 << 18  # of a timeline, for which threads are not worth while


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # what a user ends a process with


def begin(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    """Errors: FastprofError where the system allows no more threads."""
    # a daemon: should a process have to end at once, it does not wait for a thread
    thread = threading.Thread(target=work, args=arguments, name="fastprof", daemon=True)
    # Signals are for the main thread: one that it keeps off for a moment must not come in by another.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        thread.start()
    except RuntimeError:
        raise FastprofError("a thread could not begin: the system allows no more; --threads=1 needs fewer") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread


class Ahead:
    """What `make` returns piece by piece, b"" at the end, made a few pieces ahead in a thread of its own.

    What `make` raises is raised in its place by `readinto`.
    """

    def __init__(self, make: Callable[[], bytes], pieces: int = 4) -> None:
        self._make = make
        self._made: SimpleQueue[Any] = SimpleQueue()
        self._room = threading.Semaphore(pieces)
        self._stopped = False
        self._piece = memoryview(b"")
        self._ended = False
        self._thread = begin(self._work)

    def _work(self) -> None:
        piece: Any = b"."
        while piece:
            self._room.acquire()
            if self._stopped:
                return
            try:
                piece = self._make()
            except BaseException as error:
                self._made.put(error)
                return
            self._made.put(piece)

    def readinto(self, into: memoryview) -> int:
        """Fill `into` with what comes next; the number of bytes, 0 at the end."""
        if not self._piece and not self._ended:
            got = self._made.get()
            self._room.release()
            if isinstance(got, BaseException):
                self._ended = True
                try:
                    raise got
                finally:
                    del got  # its traceback refers to this
            self._ended = not got
            self._piece = memoryview(got)
        n = min(len(into), len(self._piece))
        into[:n] = self._piece[:n]
        self._piece = self._piece[n:]
        return n

    def read(self, n: int) -> bytes:
        data = bytearray(n)
        return bytes(data[: self.readinto(memoryview(data))])

    def stop(self) -> None:
        """End the thread, whether it is done or not."""
        self._stopped = self._ended = True
        self._room.release()
        self._thread.join()
        self._make, self._made = bytes, SimpleQueue()  # what it needed, and errors nobody read, may refer to this


class Beside:
    """A compressor or a file, to which is written in a thread of its own once there is much to write.

    A compressor appends what it makes to `made`, and the caller's thread passes that on to `target`: so whatever
    happens there happens in the caller's thread.  All errors are raised there, by `write` or `close`.
    """

    _PIECES = 8  # that are given and not yet written

    def __init__(self, stream: Any, made: deque[bytes], target: Any, few: int) -> None:
        self._stream, self._made, self._target, self._few = stream, made, target, few
        self._given: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(self._PIECES)
        self._nbytes = 0
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._error: BaseException | None = None

    def write(self, data: memoryview) -> None:
        if self._thread is None:
            self._stream.write(data)
            self._nbytes += len(data)
            if self._nbytes > self._few:
                self._thread = begin(self._work)
        else:
            self._room.acquire()
            self._given.put(bytes(data))
        self._pass_on()

    def _work(self) -> None:
        while (piece := self._given.get()) is not None:
            try:
                if not self._stopped:
                    self._stream.write(piece)
            except BaseException as error:
                self._error, self._stopped = error, True
            self._room.release()

    def _pass_on(self) -> None:
        if self._error:
            raise self._error
        while self._made:
            self._target.write(self._made.popleft())

    def _wait(self) -> None:
        if self._thread is not None:
            self._given.put(None)
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """Write what is left."""
        self._wait()
        self._pass_on()
        self._stream.close()
        self._pass_on()

    def stop(self) -> None:
        """End the thread; nobody wants the rest."""
        self._stopped = True
        self._wait()


class Made(deque[bytes]):
    """What a compressor writes to, see Beside."""

    def write(self, data: bytes | memoryview) -> int:
        self.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """There is nothing behind it."""
