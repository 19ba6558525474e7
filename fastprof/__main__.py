"""The command `fastprof`."""

from __future__ import annotations

import atexit
import os
import signal
import sys

_INTERRUPTED = 130  # what cli.main returns then, and what a shell shows of a process that SIGINT ended


def main() -> int:
    """Run the command line.

    Ctrl-C ends the process by SIGINT itself, after everything is cleaned up, because a shell continues its loop if the
    command exits normally.  While modules are imported, and at the end, it ends the process immediately: there is
    nothing to clean up, and Python would print a traceback.  (It does so before this module is found.)
    """
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it is ignored
    if handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = 0

    def end() -> None:
        if handled and code == _INTERRUPTED:
            os.kill(os.getpid(), signal.SIGINT)

    atexit.register(end)  # registered first, so called last
    from fastprof import cli

    code = cli.main()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # others are ignored
            signal.signal(number, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(main())
