"""Signals for processes under test."""

from __future__ import annotations

import signal


def heard() -> None:
    """Restore default signals in a new process: background jobs and nohup ignore some, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
