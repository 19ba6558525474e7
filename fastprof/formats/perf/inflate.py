"""Records that `perf record -z` has compressed: one zstandard stream, cut anywhere, whose frame never ends."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.core._typing import Any

# A recorder compresses a buffer at a time: so much, and the headers of records, comes out of one record.
_MORE = 64 << 10
_DEFAULT_MMAP = 16 << 20
# 2 KB can become 64 MiB: a record is decompressed in slices, so that little too much was made when that shows.
_SLICE = 512


class Inflate:
    def __init__(self) -> None:
        self.mmap_nbytes = _DEFAULT_MMAP
        self.restart()

    def restart(self) -> None:
        """Another stream begins."""
        self._stream: Any = None
        self.error = ""  # what was wrong with the stream, once it is

    def parts(self, data: memoryview) -> Iterator[bytes]:
        """What a compressed record holds.  Nothing follows after damage."""
        import zstandard

        left = self.mmap_nbytes + _MORE
        for at in range(0, len(data), _SLICE) if not self.error else ():
            if self._stream is None:
                self._stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
            try:
                found = self._stream.decompress(data[at : at + _SLICE])
            except zstandard.ZstdError as error:
                self.error = f"a compressed record is damaged: {error}"
                return
            left -= len(found)
            if left < 0:
                self.error = f"a compressed record expands to more than {self.mmap_nbytes + _MORE} bytes"
                return
            if found:
                yield found
