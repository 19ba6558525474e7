"""Helper programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.workers import blocked

if TYPE_CHECKING:
    from subprocess import Popen


@contextmanager
def running(command: list[str], **streams: Any) -> Iterator[Popen[bytes]]:
    """A process that is ended when the `with` block is left for any reason.

    Popen's own block waits for the process, which may not end for a long time, but does not wait after an interrupt.
    `streams` are Popen's.  Errors: OSError if it cannot start.
    """
    from subprocess import Popen

    process = None
    try:
        with blocked():  # until the process is known; it inherits the blocked signals, so only SIGKILL ends it
            process = Popen(command, env=os.environ | {"LC_ALL": "C"}, **streams)
        yield process
    finally:
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()
