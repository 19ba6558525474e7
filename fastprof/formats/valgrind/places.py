"""The text of a frame, as Valgrind prints it in Massif's trees and DHAT's frame table."""

from __future__ import annotations

import re

from fastprof.core.model import Model

_ADDRESS = re.compile(rb"0x([0-9A-Fa-f]{1,16}): ")
_LINE = re.compile(rb"(.*?):(\d{1,9})(?::\d{1,9})?", re.DOTALL)


def split(text: bytes) -> tuple[int, bytes, bytes, bytes, int]:
    """(address, function, object, file, line) of `0x109611: main (mem.cc:9)`, `0x4017B: ??? (in /lib/ld.so)` or
    `in 3 places, all below massif's threshold (1.00%)`, which is used as the function's name.

    >>> split(b"0x109611: operator+<char, std::char_traits<char> > (string.h:35)")
    (1086993, b'operator+<char, std::char_traits<char> >', b'', b'string.h', 35)
    """
    m = _ADDRESS.match(text)
    if not m:
        return 0, text, b"", b"", 0
    address, rest = int(m[1], 16), text[m.end() :]
    at = rest.rfind(b" (")
    if at < 0 or not rest.endswith(b")"):
        return address, rest, b"", b"", 0
    name, place = rest[:at], rest[at + 2 : -1]
    if place.startswith(b"in "):
        return address, name, place[3:], b"", 0
    if found := _LINE.fullmatch(place):
        return address, name, b"", found[1], int(found[2])
    return address, name, place, b"", 0  # heaptrack writes only the object


class Places:
    """Adds frames to a model.  Most functions have several frames, so their ids are kept."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._functions: dict[tuple[bytes, bytes, bytes], int] = {}

    def enter(self, text: bytes) -> tuple[int, int, int]:
        """Add a frame.  Returns (address, function, line); function 0: only an address is known."""
        address, name, object_, file, line = split(text)
        if name in (b"???", b"") and address and not object_:
            return address, 0, 0
        key = name, object_, file
        if key not in self._functions:
            object_id = self._model.object(object_) if object_ else 0
            self._functions[key] = self._model.function(name or b"???", file, object_id)
        return address, self._functions[key], line
