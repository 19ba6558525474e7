"""The text of a frame, as Valgrind prints it in Massif's trees and DHAT's frame table."""

from fastprof.core import lazy_re as re
from fastprof.core.model import Model

_ADDRESS = re.compile(rb"0x([0-9A-Fa-f]{1,16}): ")
_LINE = re.compile(rb":(\d{1,9})(?::\d{1,9})?\Z")  # heaptrack adds the column


def split(text: bytes) -> tuple[int, bytes, bytes, bytes, int]:
    """(address, function, object, file, line) of `0x109611: main (mem.cc:9)`, `0x4017B: ??? (in /lib/ld.so)` or
    `in 3 places, all below massif's threshold (1.00%)`, which is used as the function's name.

    >>> split(b"0x109611: operator+<char, std::char_traits<char> > (string.h:35)")
    (1086993, b'operator+<char, std::char_traits<char> >', b'', b'string.h', 35)
    """
    m = _ADDRESS.match(text)
    if m is None:
        return 0, text, b"", b"", 0
    address, rest = int(m[1], 16), text[m.end() :]
    # the place follows the last blank and parenthesis
    name, bracket, place = rest.rpartition(b" (")
    if not bracket or not place.endswith(b")"):
        return address, rest, b"", b"", 0
    place = place[:-1]
    if place.startswith(b"in "):
        return address, name, place[3:], b"", 0
    if line := _LINE.search(place):
        return address, name, b"", place[: line.start()], int(line[1])
    return address, name, place, b"", 0  # heaptrack writes only the object


class Places:
    """Adds frames to a model.  Most functions have several frames, and most names several functions, so their ids are
    kept.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._strings: dict[bytes, int] = {b"": 0}
        self._objects: dict[bytes, int] = {b"": 0}
        self._functions: dict[tuple[bytes, bytes, bytes], int] = {}

    def _string(self, text: bytes) -> int:
        found = self._strings.get(text)
        if found is None:
            found = self._strings[text] = self._model.intern(text)
        return found

    def _function(self, name: bytes, object_: bytes, file: bytes) -> int:
        if object_ not in self._objects:
            self._objects[object_] = self._model.object(object_)
        file_id, name_id = self._string(file), self._string(name or b"???")
        return self._model.function_of(name_id, file_id, self._objects[object_])

    def enter(self, text: bytes) -> tuple[int, int, int]:
        """Add a frame.  Returns (address, function, line); function 0: only an address is known."""
        address, name, object_, file, line = split(text)
        if name in (b"???", b"") and address and not object_:
            return address, 0, 0
        key = name, object_, file
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._function(*key)
        return address, function, line
