"""Records compressed by `perf record -z`: a zstandard stream, cut anywhere, whose frame never ends."""

from collections.abc import Iterator

from fastprof.core._typing import Any

# A recorder compresses a buffer at a time: a record expands to at most a buffer and the headers of records.
_MORE = 64 << 10
_DEFAULT_MMAP = 16 << 20
# 2 KB can expand to 64 MiB: decompress a record in slices, so that the excess is found early.
_SLICE = 512


class Inflate:
    def __init__(self) -> None:
        self.mmap_nbytes = _DEFAULT_MMAP
        self.restart()

    def restart(self) -> None:
        """Begin another stream."""
        self._stream: Any = None
        self.error = ""  # the damage of the stream, if any

    def parts(self, data: memoryview) -> Iterator[bytes]:
        """The decompressed bytes of a record; none after damage."""
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
