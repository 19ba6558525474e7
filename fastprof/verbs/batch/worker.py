"""The main loop of a pool worker: reads jobs and writes records, one line of JSON each."""

import json
import os
import signal
import sys
from importlib import import_module

from fastprof.core.workers import ENDING

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(function: str, parent: int) -> None:
    """Do jobs until standard input ends.  `function` is MODULE:NAME; `parent` is the process that started this one."""
    begin(parent)
    # prints go to standard error, so that they cannot mix with records
    jobs, records = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    module, _, name = function.partition(":")
    work = getattr(import_module(module), name)
    records.write(b"\n")  # ready
    records.flush()
    for line in jobs:
        records.write(json.dumps(work(json.loads(line)), default=str).encode() + b"\n")
        records.flush()


def begin(parent: int) -> None:
    """Make this process end with `parent`, which starts and ends it."""
    for number in ENDING:  # a terminal sends these to all processes; the parent ends this one
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    # the end of standard input ends a waiting worker; this signal ends one in the middle of a file
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before this call
        os._exit(1)
