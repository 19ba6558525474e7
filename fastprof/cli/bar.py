"""A progress bar."""

from __future__ import annotations

import time

from fastprof.cli import print_raw
from fastprof.cli.text import terminal_width
from fastprof.core.errors import printable

_EVERY = 0.1  # minimum time between two drawings, in seconds
_FIRST = 0.5  # seconds until the first one: shorter work needs no bar
_WIDTH = 20  # of the bar itself


class Bar:
    """Progress of `total` bytes, or other items, in a line on standard error that is redrawn.

    day1.prof:  42% [########            ] 16.8 of 40.0 MB, 8.4 MB/s, 0:02 left
    50% [##########          ] 1,000 of 2,000 profiles, 310 profiles/s, 0:03 left
    """

    def __init__(self, total: int, label: str = "", *, unit: str = "") -> None:
        self.total, self._label, self._unit = total, printable(label), unit
        self._done, self._note = 0, ""
        self._begun = time.monotonic()
        self._next = self._begun + _FIRST
        self._is_shown = False

    def move(self, done: int, note: str = "") -> None:
        """Set the number done; `note` follows the figures."""
        self._done, self._note = max(0, min(done, self.total)), note
        now = time.monotonic()
        if now >= self._next:
            self._draw(now)

    def _draw(self, now: float) -> None:
        self._next = now + _EVERY
        share, seconds = self._done / max(self.total, 1), now - self._begun
        speed = self._done / seconds if seconds > 0 else 0.0
        full = int(share * _WIDTH)
        text = f"{self._label}: " * bool(self._label) + f"{share:4.0%} [{'#' * full}{' ' * (_WIDTH - full)}] "
        if self._unit:
            text += f"{self._done:,} of {self.total:,} {self._unit}, {speed:,.0f} {self._unit}/s"
        else:
            text += f"{self._done / 1e6:,.1f} of {self.total / 1e6:,.1f} MB, {speed / 1e6:,.1f} MB/s"
        if self._done:
            minutes, left = divmod(int((self.total - self._done) / speed) if speed else 0, 60)
            text += f", {minutes}:{left:02} left"
        text += f", {self._note}" * bool(self._note)
        self._write(text[: (terminal_width(fd=2) or 80) - 1])
        self._is_shown = True

    def _write(self, text: str) -> None:
        print_raw(f"\r{text}\x1b[K")

    def clear(self) -> None:
        """Erase the bar before another line is printed; the next `move` draws it again."""
        if self._is_shown:
            self._write("")
            self._is_shown = False
            self._next = 0.0

    def close(self) -> None:
        self.clear()
