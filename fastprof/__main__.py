"""The command `fastprof`."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line.  An interrupt while modules are imported, or at the end, ends the process and says nothing:
    there is nothing to be cleared up, and Python would show a traceback."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it is ignored
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fastprof import cli

    code = cli.main()
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(main())
