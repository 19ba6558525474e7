"""The command `fastprof`."""

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # without the enumerations of `signal`, which take a tenth of a start

_INTERRUPTED = 130  # the result of cli.main after an interrupt; shells report it for a process ended by SIGINT


def main() -> int:
    """Run the command line.

    After cleaning up, Ctrl-C ends the process by SIGINT, because a shell loop would continue after a normal exit.
    During imports and at the end it does so immediately: there is nothing to clean up, and Python would print a
    traceback (as it does before this module is loaded).
    """
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background
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
