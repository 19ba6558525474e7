"""Compressed packets: deflate, in pieces of bounded size."""

import zlib

_PIECE = 1 << 18
_ANY_HEADER = 47  # zlib or gzip


class Inflate:
    """The decompressed bytes of one packet after another."""

    def __init__(self) -> None:
        self._at = -1
        self._stream = zlib.decompressobj(_ANY_HEADER)
        self._rest = b""
        self.error = ""  # the error of the last call

    def next(self, at: int, data: bytes) -> tuple[bytes, bool]:
        """Decompress the next bytes of packet `data` at offset `at`.  Returns them, and whether they are the last."""
        self.error = ""
        if at != self._at:
            self._at, self._rest, self._stream = at, data, zlib.decompressobj(_ANY_HEADER)
        try:
            piece = self._stream.decompress(self._rest, _PIECE)
        except zlib.error as error:
            self._at, self.error = -1, str(error)
            return b"", True
        self._rest = self._stream.unconsumed_tail
        last = self._stream.eof or (not self._rest and len(piece) < _PIECE)
        if last:
            self._at = -1
            self.error = "" if self._stream.eof else "its end is missing"
        return piece, last
