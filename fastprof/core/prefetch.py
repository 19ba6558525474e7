"""Many objects, requested before they are read, several at a time.

A verb reads its inputs one after the other, first to learn their formats, then for their rows.  One request after the
other would wait for the network twice per object:

    urls           1   2   3   4   5   ...     requested while 1 is read: 2 to 16
                       ----------------        small ones are kept for the second time, up to MOST bytes in all
"""

from collections.abc import Sequence
from threading import Condition

from fastprof.core.errors import FastprofError
from fastprof.core.remote import Download
from fastprof.core.unsized_url import opened
from fastprof.core.workers import begin

AT_ONCE = 16  # requests
SMALL = 2 << 20  # bytes; larger objects are streamed when their turn comes
MOST = 64 << 20  # bytes kept, or expected from requests


class Prefetch:
    """The objects behind `urls`, which are read in about this order, perhaps again and again."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = [*dict.fromkeys(urls)]
        self._position = {url: i for i, url in enumerate(self._urls)}
        self._changed = Condition()
        self._waiting: set[str] = set()
        self._kept: dict[str, Download] = {}  # small objects, whole
        self._failed: dict[str, Exception] = {}
        self._large: dict[str, Download | None] = {}  # open until it is read for the first time
        self._nbytes = 0  # of _kept
        self._read: dict[str, None] = {}  # kept objects that were opened, the last one last
        self._is_closed = False

    def open(self, url: str) -> Download:
        """The object, from its beginning.  Errors: FastprofError."""
        with self._changed:
            self._request(url)
            self._changed.wait_for(lambda: url not in self._waiting)
            if url in self._failed:
                raise self._failed.pop(url)  # the next time it is requested again
            kept = self._kept.get(url)
            if kept is not None:
                self._read.pop(url, None)
                if not kept.is_live:
                    self._read[url] = None
                return kept.again()
            begun = self._large.get(url)
            self._large[url] = None
        return begun or opened(url)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._kept.clear()
            self._large.clear()

    def _request(self, url: str) -> None:
        """Request this object and the next ones, the first ones after the last."""
        at, n = self._position[url], len(self._urls)
        for i in range(at, at + min(AT_ONCE, n)):
            wanted = self._urls[i % n]
            if wanted in self._waiting or wanted in self._kept or wanted in self._large or wanted in self._failed:
                continue
            self._make_room(wanted)
            if i > at and (len(self._waiting) >= AT_ONCE or self._expected > MOST - SMALL):
                return
            try:
                begin(self._fetch, wanted)
            except FastprofError:
                if i == at:
                    raise
                return  # too many threads: it is requested again when its turn comes
            self._waiting.add(wanted)  # before _fetch gets the lock

    @property
    def _expected(self) -> int:
        return self._nbytes + SMALL * len(self._waiting)

    def _make_room(self, wanted: str) -> None:
        """Drop objects that were read, the last one first: it is read again after all others."""
        while self._read and self._expected > MOST - SMALL:
            url, _ = self._read.popitem()
            if url != wanted:
                self._nbytes -= self._kept.pop(url).size

    def _fetch(self, url: str) -> None:
        found: Download | Exception
        try:
            found = opened(url)
            if found.size <= SMALL:
                found.fetch()
        except Exception as error:
            found = error
        with self._changed:
            if isinstance(found, Exception):
                self._failed[url] = found
            elif found.size > SMALL and not found.is_live:
                self._large[url] = found
            elif not self._is_closed:
                self._kept[url] = found
                self._nbytes += 0 if found.is_live else found.size
            self._waiting.discard(url)
            self._changed.notify_all()
