"""Signals for processes under test."""

from __future__ import annotations

import signal


def heard() -> None:
    """To be called in a new process: what runs in the background, or under nohup, inherits signals that are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
