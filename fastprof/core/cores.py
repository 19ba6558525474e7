"""Work beside the thread that asked for it, on other cores.

What takes long here is C code, which runs without the interpreter lock.  All threads are ended by who began them, with
`stop` at the latest.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from fastprof.core._typing import Any
from fastprof.core.options import CORES, Options


def cores_of(options: Options) -> int:
    """How many threads may work at a time."""
    return options[CORES] or available()


def available() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def begin(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    # a daemon: should a process have to end at once, it does not wait for a thread
    thread = threading.Thread(target=work, args=arguments, name="fastprof", daemon=True)
    thread.start()
    return thread


class Ahead:
    """What `make` returns piece by piece, b"" at the end, made a few pieces ahead in a thread of its own.

    What `make` raises is raised in its place by `take`.
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

    def take(self, into: memoryview) -> int:
        """Fill `into` with what comes next; the number of bytes, 0 at the end."""
        if not self._piece and not self._ended:
            got = self._made.get()
            self._room.release()
            if isinstance(got, BaseException):
                self._ended = True
                raise got
            self._ended = not got
            self._piece = memoryview(got)
        n = min(len(into), len(self._piece))
        into[:n] = self._piece[:n]
        self._piece = self._piece[n:]
        return n

    def stop(self) -> None:
        """End the thread, whether it is done or not."""
        self._stopped = self._ended = True
        self._room.release()
        self._thread.join()
