"""Programs that are asked for something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof.core._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import Popen


@contextmanager
def running(command: list[str], **streams: Any) -> Iterator[Popen[bytes]]:
    """A process that is gone at the end of the `with` block, however that is left.

    Popen's own block waits for the process, which may have nothing to say for a long time, and after an interrupt it
    does not wait at all.  `streams` are Popen's.  Errors: OSError if it cannot begin.
    """
    from subprocess import Popen

    process = Popen(command, env=os.environ | {"LC_ALL": "C"}, **streams)
    try:
        yield process
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()
