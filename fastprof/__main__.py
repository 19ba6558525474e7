"""The command `fastprof`."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line.  An interrupt while modules are imported, or at the end, ends the process and says nothing:
    there is nothing to be cleared up, and Python would show a traceback.  (Before this module is found it does; that is
    while Python itself begins.)"""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it is ignored
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fastprof import cli

    code = cli.main()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # others are ignored
            signal.signal(number, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(main())
