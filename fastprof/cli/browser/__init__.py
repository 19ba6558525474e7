"""`fastprof view --tui`: browse a profile, or two compared, in the terminal (verbs/browse.py), with textual."""

import sys

from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.messages import install
from fastprof.verbs.browse import Browsed


def start(read: Any) -> Browsed:
    """Show what `read` returns until the user quits.

    Errors: those of `read`; UsageError without textual or a terminal, before anything is read.
    """
    try:
        import textual  # noqa: F401
    except ImportError:
        raise UsageError(f"--tui needs textual: {install('tui')}") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--tui needs a terminal: standard input or output is none; without it the page is written")
    browsed: Browsed = read()
    from fastprof.cli.browser.app import Browser

    Browser(browsed).run()
    return browsed
