"""Detects compression and decompresses.

A file may hold several compressed streams, as written by `cat a.gz b.gz`.  A truncated or damaged stream, or other
bytes after the last one, are errors; they name the position in the compressed data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from fastprof.core._typing import IO, Any, Self
from fastprof.core.errors import FastprofError, UsageError, file_error, raise_as
from fastprof.core.messages import Message
from fastprof.core.reported import REPORTED

PEEK = 4096
_ROOM = 64 * 1024  # compressed bytes passed to a decompressor at a time

# suffix, magic bytes of the compressed stream
_COMPRESSIONS: tuple[tuple[str, bytes], ...] = (
    (".gz", b"\x1f\x8b"),
    (".zst", b"\x28\xb5\x2f\xfd"),
    (".xz", b"\xfd7zXZ\x00"),
    (".bz2", b"BZh"),
    (".lz4", b"\x04\x22\x4d\x18"),
)


class Closing:
    """What is closed where its `with` block ends."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def compression_of_name(name: str) -> str:
    """The compression suffix of a file name (".gz", ".zst", ".xz", ".bz2", ".lz4") or ""."""
    return next((suffix for suffix, _ in _COMPRESSIONS if name.endswith(suffix)), "")


def compression_of_bytes(head: bytes) -> str:
    return next((suffix for suffix, magic in _COMPRESSIONS if head.startswith(magic)), "")


def layer_of(head: bytes) -> str:
    """What must be undone before a reader sees the bytes: a compression, or UTF-16, which shells of Windows write;
    or ""."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") and head[2:4] != bytes(2):  # not UTF-32
        return ".utf-16"
    return compression_of_bytes(head)


class Damaged(Exception):
    """Damaged compressed data: a Message, and the position in them."""


def decompressed(raw: IO[bytes], kind: str, lost: Callable[..., None] | None) -> Any:
    """A readable stream of the decompressed bytes of `raw`, of a layer (`layer_of`).

    Errors: Damaged.  With `lost`, the stream ends at the damage instead, and `lost` is called with the code
    to count.
    """
    kinds: dict[str, type[_Decompressed]] = {".zst": _Frames, ".utf-16": _Utf16}
    return kinds.get(kind, _Streams)(raw, kind, lost)


def _new_decompressor(kind: str) -> Any:
    """A decompressor of one stream; it has `decompress(data, max_length)`, `needs_input`, `eof`, `unused_data`."""
    if kind == ".gz":
        from isal import igzip_lib

        return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    if kind == ".xz":
        import lzma

        return lzma.LZMADecompressor(lzma.FORMAT_XZ)
    if kind == ".lz4":
        import lz4.frame

        return lz4.frame.LZ4FrameDecompressor()
    import bz2

    return bz2.BZ2Decompressor()


def _damage(error: Exception) -> bool:
    """Whether a decompressor raises this for damaged data."""
    if isinstance(error, (EOFError, OSError, RuntimeError, ValueError)):
        return True
    module = type(error).__module__.partition(".")[0]
    return module in {"_lzma", "lzma", "zstandard", "zstd", "igzip_lib"}


class Readable:
    """A stream whose `readinto` reads what `read` gives."""

    def read(self, n: int = -1) -> bytes:
        raise NotImplementedError

    def readinto(self, into: memoryview) -> int:
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)


class _Decompressed(Readable):
    """Base of decompressed streams.  Damage is an error or, with `lost`, the end: see `decompressed`."""

    def __init__(self, raw: Any, kind: str, lost: Callable[..., None] | None) -> None:
        self._raw = raw
        self._kind = kind
        self._magic = next((magic for suffix, magic in _COMPRESSIONS if suffix == kind), b"")
        self._lost = lost
        self._at = 0  # compressed bytes read
        self._ended = False

    def _fail(self, what: str, at: int) -> bytes:
        if self._lost is None:
            raise Damaged(Message("{what}; {--lenient} reads up to it", what=what), at)
        self._lost(REPORTED["damaged-streams"], kind=self._kind[1:])
        self._ended = True
        return b""

    def _cut(self) -> bytes:
        return self._fail(f"the compressed data ends at byte {self._at}, inside a stream", self._at)

    def _garbage(self, at: int, head: bytes) -> bytes:
        head = head[: len(self._magic)]
        return self._fail(
            f"at byte {at} of the compressed data: the next stream begins with {head.hex(' ')}, "
            f"expected {self._magic.hex(' ')} or the end",
            at,
        )

    def _corrupt(self, error: Exception) -> bytes:
        if not _damage(error):
            raise error
        return self._fail(f"damage at or before byte {self._at} of the compressed data: {error}", self._at)


class _Streams(_Decompressed):
    """Any number of gzip, xz, bzip2 or LZ4 streams, one after the other.

    Zeros between and after them are padding, which tapes and disks add.  Other bytes are damage; Python's own readers
    of xz and bzip2 silently end there.
    """

    def __init__(self, raw: Any, kind: str, lost: Callable[..., None] | None) -> None:
        super().__init__(raw, kind, lost)
        self._one: Any = None  # the decompressor of the current stream
        self._data = b""  # compressed bytes not yet passed to it

    def _more(self) -> bool:
        part = self._raw.read(_ROOM)
        if part is None:
            raise BlockingIOError
        self._data += part
        self._at += len(part)
        return bool(part)

    def _begin(self) -> bool:
        """Whether another stream follows."""
        while True:
            self._data = self._data.lstrip(b"\0")
            if len(self._data) >= len(self._magic) or not self._more():
                break
        if self._data.startswith(self._magic):
            self._one = _new_decompressor(self._kind)
        elif self._data:
            is_cut = self._magic.startswith(self._data)
            _ = self._cut() if is_cut else self._garbage(self._at - len(self._data), self._data)
        return self._one is not None

    def read(self, n: int = -1) -> bytes:
        if n < 0 or self._lost is not None:
            # small steps: an error loses the bytes decompressed in the same call
            n = PEEK if n < 0 else min(n, PEEK)
        while not self._ended and (self._one is not None or self._begin()):
            if self._one.needs_input and not self._data and not self._more():
                return self._cut()
            try:
                got: bytes = self._one.decompress(self._data, n)
            except Exception as error:
                return self._corrupt(error)
            self._data = b""
            if self._one.eof:
                self._data, self._one = self._one.unused_data or b"", None
            if got:
                return got
        return b""


class _Frames(_Decompressed):
    """Any number of zstandard frames."""

    def __init__(self, raw: Any, kind: str, lost: Callable[..., None] | None) -> None:
        import zstandard

        super().__init__(raw, kind, lost)
        frames: Any = _WholeFrames(self._raw_read, self._cut, self._garbage)
        self._reader: Any = zstandard.ZstdDecompressor().stream_reader(frames, read_across_frames=True)

    def _raw_read(self, n: int) -> bytes:
        data: bytes | None = self._raw.read(n)
        if data is None:
            raise BlockingIOError
        self._at += len(data)
        return data

    def read(self, n: int = -1) -> bytes:
        if n < 0 or self._lost is not None:
            n = PEEK if n < 0 else min(n, PEEK)
        try:
            return bytes(self._reader.read(n))
        except (Damaged, BlockingIOError):
            raise
        except Exception as error:
            return b"" if self._ended else self._corrupt(error)


class _Utf16(_Decompressed):
    """Text in UTF-16 with a byte order mark, as UTF-8.  Surrogates without the other half stay as they are."""

    def __init__(self, raw: Any, kind: str, lost: Callable[..., None] | None) -> None:
        import codecs

        super().__init__(raw, kind, lost)
        self._decoder = codecs.getincrementaldecoder("utf-16")("surrogatepass")
        self._data = b""  # text not yet passed on

    def read(self, n: int = -1) -> bytes:
        while not self._data and not self._ended:
            part = self._raw.read(_ROOM)
            if part is None:
                raise BlockingIOError
            self._at += len(part)
            self._ended = not part
            try:
                self._data = self._decoder.decode(part, not part).encode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                return self._fail("the text in UTF-16 ends within a character", self._at)
        data = self._data if n < 0 else self._data[:n]
        self._data = self._data[len(data) :]
        return data


class Rejoined(Readable):
    """A stream whose first bytes, `head`, have been read already; they are read again."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, n: int = -1) -> bytes:
        if self._head:
            part = self._head if n < 0 else self._head[:n]
            self._head = self._head[len(part) :]
            return part + self._rest.read() if n < 0 else part
        return self._rest.read(n)

    def readinto(self, into: memoryview) -> int:
        if not self._head:
            return self._rest.readinto(into)  # type: ignore[attr-defined, no-any-return]
        return super().readinto(into)


class Reading:
    """A file object that has `read` but no `readinto`."""

    def __init__(self, file: Any) -> None:
        self.file, self.read = file, file.read

    def readinto(self, into: memoryview) -> int | None:
        data = self.read(len(into))
        if data is None or len(data) > len(into):
            return None if data is None else len(data)
        into[: len(data)] = data
        return len(data)


class _WholeFrames:
    """Passes the bytes of zstandard frames on and follows them from block to block.

    zstandard's reader treats an end inside a frame as the end of the data.  Here it is damage, as in the other
    compressions.

    frame: magic 4 | descriptor 1 | window 0..1, dictionary 0..4, size 0..8 | blocks | checksum 0 or 4
    block: last:1 type:2 size:21, little-endian | size bytes (type 1, a run: one byte)
    Source: RFC 8878, section 3.1.
    """

    def __init__(
        self, read: Callable[[int], bytes], cut: Callable[[], object], garbage: Callable[[int, bytes], object]
    ) -> None:
        self._read = read
        self._cut = cut
        self._garbage = garbage
        self._at = 0  # bytes passed on
        self._got = b""  # the bytes of the current field so far
        self._want = 4  # its length
        self._step: Any = self._magic
        self._skip = 0
        self._checksum = 0

    def read(self, n: int = -1) -> bytes:
        data = self._read(n) if self._step else b""
        if not data and self._step and (self._skip or self._got or self._step != self._magic):
            self._step = None
            self._cut()  # does not raise if losses are counted: then the decompressor returns what it has
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
            else:
                step = min(self._want - len(self._got), len(data) - at)
                self._got += data[at : at + step]
                if len(self._got) == self._want:
                    field, self._got = self._got, b""
                    self._want, self._step = self._step(int.from_bytes(field, "little"))
                    if self._step is None:
                        self._garbage(self._at + at + step - len(field), field)
                        return data[: max(at + step - len(field), 0)]
            at += step
        self._at += len(data)
        return data

    def _magic(self, magic: int) -> tuple[int, Any]:
        if magic == 0xFD2FB528:
            return 1, self._descriptor
        if magic & ~0xF == 0x184D2A50:
            return 4, self._skippable
        return 0, None

    def _descriptor(self, descriptor: int) -> tuple[int, Any]:
        single = descriptor >> 5 & 1
        self._checksum = (descriptor >> 2 & 1) * 4
        self._skip = (not single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]
        return 3, self._block

    def _skippable(self, size: int) -> tuple[int, Any]:
        self._skip = size
        return 4, self._magic

    def _block(self, head: int) -> tuple[int, Any]:
        last, kind, size = head & 1, head >> 1 & 3, head >> 3
        self._skip = 1 if kind == 1 else size
        if not last:
            return 3, self._block
        self._skip += self._checksum
        return 4, self._magic


def temporary_file() -> Any:
    """An unnamed file, removed when it is closed.  Errors: FastprofError."""
    # as tempfile.TemporaryFile does, whose import takes a tenth of a start, where the first directory can hold it
    try:
        flags = os.O_TMPFILE | os.O_RDWR | os.O_EXCL | os.O_CLOEXEC
        return open(os.open(_temporary_folder(), flags, 0o600), "w+b", buffering=0)
    except (OSError, AttributeError):  # not on every system and file system
        pass
    import tempfile

    try:
        return tempfile.TemporaryFile(prefix="fastprof-", buffering=0)
    except OSError as error:
        raise temporary_failed(error) from None


def _temporary_folder() -> str:
    """The one that tempfile has chosen, or would try first."""
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    return chosen or next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")


def temporary_failed(error: OSError) -> FastprofError:
    """The message for an error of a temporary file, e.g. which disk is full."""
    found_none = isinstance(error, FileNotFoundError)  # tempfile has tried all
    return file_error(f"temporary file in {'any directory' if found_none else _temporary_folder()}", error)


def name_of(file: IO[bytes] | bytes) -> str:
    """The name of a file object or of bytes in messages."""
    if isinstance(file, bytes):
        return str(getattr(file, "name", "<bytes>"))  # archives of profiles that were made have one
    name = getattr(file, "name", None)  # a number if it was opened by descriptor
    return os.fsdecode(name) if name and isinstance(name, (str, bytes)) else "<file>"


def check_binary(file: IO[bytes], use: Callable[[], bytes | int], wanted: str) -> None:
    """Check a file object by `use`, which reads or writes 0 bytes.  Errors: UsageError if it cannot do that or is a
    text file; FastprofError if the system refuses."""
    try:
        binary = not isinstance(use(), str)
    except (AttributeError, TypeError, ValueError):  # no file; a text file; io.UnsupportedOperation and a closed file
        binary = False
    except OSError as error:
        raise_as(name_of(file), error)
    if not binary:
        raise UsageError(f"{name_of(file)}: is not an open binary file to {wanted} (mode {getattr(file, 'mode', '?')})")


def standard_stream(stream: IO[str] | None, name: str, mode: str) -> Any:
    """Standard input or output by descriptor, which stays open.  Errors: FastprofError if it is closed."""
    if stream is None:
        raise FastprofError(f"{name}: is closed")
    # another process may have made it non-blocking: a read without data would then look like the end
    os.set_blocking(stream.fileno(), True)
    return open(stream.fileno(), mode, buffering=0, closefd=False)
