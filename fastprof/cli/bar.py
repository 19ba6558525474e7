"""A progress bar."""

import sys
import time
from threading import Event, Thread

from fastprof.cli.text import print_raw, terminal_width
from fastprof.core.errors import printable

_EVERY = 0.1  # minimum time between two drawings, in seconds
_FIRST = 0.5  # seconds until the first one: shorter work needs no bar
_WIDTH = 20  # of the bar itself


class Bar:
    """Progress of `total` bytes, or other items, in a line on standard error that is redrawn.

    day1.prof:  42% [########            ] 16.8 of 40.0 MB read, 8.4 MB/s, 0:02 left
    day1.prof:  99% [################### ] 40.0 MB read, processing for 0:12
    day1.prof: 100% [####################] 40.0 MB read and processed
    50% [##########          ] 1,000 of 2,000 profiles, 310 profiles/s, 0:03 left

    Work on an input goes on when its bytes are read: then the line has the time that this takes, redrawn by a thread
    until `close`, which shows 100 % unless the work failed.
    """

    def __init__(self, total: int, label: str = "", *, unit: str = "") -> None:
        self.total, self._label, self._unit = total, printable(label), unit
        self._done, self._note = 0, ""
        self._begun = time.monotonic()
        self._next = self._begun + _FIRST
        self._is_shown = False
        self._is_read_at = 0.0  # when all bytes were read
        self._closed = Event()
        self._thread: Thread | None = None

    def move(self, done: int, note: str = "") -> None:
        """Set the number done; `note` follows the figures."""
        self._done, self._note = max(0, min(done, self.total)), note
        now = time.monotonic()
        if self._done == self.total and self._label and self._thread is None:
            self._is_read_at = now
            self._thread = Thread(target=self._process, daemon=True)
            self._thread.start()
        if now >= self._next and self._thread is None:
            self._draw(now)

    def _process(self) -> None:
        """Redraw the line until the work is done."""
        while not self._closed.wait(_EVERY):
            now = time.monotonic()
            if now >= self._next:
                self._next = now + _EVERY
                minutes, seconds = divmod(int(now - self._is_read_at), 60)
                self._show_read(_WIDTH - 1, 0.99, f", processing for {minutes}:{seconds:02}")

    def _show_read(self, full: int, share: float, text: str) -> None:
        """When all bytes are read."""
        bar = f"{share:4.0%} [{'#' * full}{' ' * (_WIDTH - full)}]"
        self._show(f"{self._label}: {bar} {self.total / 1e6:,.1f} MB read{text}")

    def _show(self, text: str) -> None:
        self._write(text[: (terminal_width(fd=2) or 80) - 1])
        self._is_shown = True

    def _draw(self, now: float) -> None:
        self._next = now + _EVERY
        share, seconds = self._done / max(self.total, 1), now - self._begun
        speed = self._done / seconds if seconds > 0 else 0.0
        full = int(share * _WIDTH)
        text = f"{self._label}: " * bool(self._label) + f"{share:4.0%} [{'#' * full}{' ' * (_WIDTH - full)}] "
        if self._unit:
            text += f"{self._done:,} of {self.total:,} {self._unit}, {speed:,.0f} {self._unit}/s"
        else:
            text += f"{self._done / 1e6:,.1f} of {self.total / 1e6:,.1f} MB read, {speed / 1e6:,.1f} MB/s"
        if self._done:
            minutes, left = divmod(int((self.total - self._done) / speed) if speed else 0, 60)
            text += f", {minutes}:{left:02} left"
        text += f", {self._note}" * bool(self._note)
        self._show(text)

    def _write(self, text: str) -> None:
        print_raw(f"\r{text}\x1b[K")

    def clear(self) -> None:
        """Erase the bar before another line is printed; the next `move` draws it again."""
        if self._is_shown:
            self._write("")
            self._is_shown = False
            self._next = 0.0

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
            if self._is_shown and sys.exc_info()[0] is None:
                self._show_read(_WIDTH, 1.0, " and processed")
        self.clear()
