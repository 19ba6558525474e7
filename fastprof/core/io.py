"""Bytes in and bytes out: the only file that knows files and pipes."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable

from fastprof.core._typing import IO, TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.streams import PEEK, Damaged, compression_of_bytes, compression_of_name, decompressed

if TYPE_CHECKING:
    from types import TracebackType

WINDOW = 256 * 1024


class _Rejoined:
    """A stream whose first bytes were already read: they are read again first."""

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
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._rest.close()


class Source:
    """A window over a file, a pipe or bytes, with any compression peeled off.

    The window is what a decoder reads: `in_` is its `struct fp_in`.  Offsets
    are absolute in the decompressed bytes.  `seekable` says whether `select`
    may go backwards; `spool` makes it so, through a temporary file.
    Errors: FastprofError when the file cannot be opened or decompressed.
    With `lost`, a damaged compressed stream ends at the damage instead, and
    `lost` is called with what to count.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | bytes | IO[bytes],
        name: str | None = None,
        *,
        lost: Callable[[str], None] | None = None,
    ) -> None:
        from fastprof.core._c import ffi

        self._ffi = ffi
        self.path: str | None = None
        self._lost = lost
        self._progress: Any = None
        self._at = 0  # absolute offset of the next byte to read from the stream
        self._end: int | None = None  # absolute end of the selected range
        self.bytes_read = 0
        self._raw = self._open(path)
        self.name = name or self._default_name(path)
        self.compression = ""
        self._stream: Any = self._raw
        self.seekable = self._raw_seekable()
        self.size: int | None = self._raw_size() if self.seekable else None
        self.compressed_size = self.size
        self._peel()

        self._window = bytearray(WINDOW)
        self.in_ = ffi.new("struct fp_in *")
        self._attach()

    # ---- opening -------------------------------------------------------

    def _open(self, path: Any) -> Any:
        import io

        if isinstance(path, bytes):
            return io.BytesIO(path)
        if hasattr(path, "read"):
            return path
        if path == "-":
            return _standard(sys.stdin, "<stdin>", "rb")
        self.path = os.fspath(path)
        try:
            raw = open(self.path, "rb", buffering=0)
        except OSError as error:
            raise FastprofError(f"{self.path}: {error.strerror or error}") from None
        return raw

    @staticmethod
    def _default_name(path: Any) -> str:
        if isinstance(path, bytes):
            return "<bytes>"
        if path == "-":
            return "<stdin>"
        return str(getattr(path, "name", "<stream>")) if hasattr(path, "read") else os.fspath(path)

    def _raw_seekable(self) -> bool:
        try:
            fd = self._raw.fileno()
        except (AttributeError, OSError):
            return bool(getattr(self._raw, "seekable", lambda: False)())
        # a terminal or a pipe may claim to seek; only a regular file does
        return stat.S_ISREG(os.fstat(fd).st_mode)

    def _raw_size(self) -> int:
        here = self._raw.seek(0, os.SEEK_CUR)
        end = self._raw.seek(0, os.SEEK_END)
        self._raw.seek(here)
        return int(end)

    def _read_some(self, n: int) -> bytes:
        """`n` bytes from the stream, fewer only at its end."""
        parts, have = [], 0
        while have < n:
            part = self._guarded(self._stream.read, n - have)
            if not part:
                break
            parts.append(part)
            have += len(part)
        return b"".join(parts)

    def _peel(self) -> None:
        for _ in range(4):  # x.gz.gz happens; more is a bomb
            head = self._read_some(PEEK)
            if self.seekable:
                self._stream.seek(0)
            else:
                self._stream = _Rejoined(head, self._stream)
            self.head = head
            kind = compression_of_bytes(head)
            if not kind:
                return
            self._stream = decompressed(self._stream, kind, self._lost)
            self.compression += kind
            self.seekable = False
            self.size = None

    def _guarded(self, read: Any, argument: Any) -> Any:
        try:
            got = read(argument)
        except Damaged as error:
            raise FastprofError(f"{self.name}: {self.compression.lstrip('.')}: {error}") from None
        except BlockingIOError:
            got = None
        except OSError as error:
            raise FastprofError(f"{self.name}: {error.strerror or error}") from None
        if got is None:
            raise FastprofError(f"{self.name}: has nothing to read for now, and is not to be waited for (non-blocking)")
        return got

    # ---- the window ----------------------------------------------------

    def _attach(self) -> None:
        self._view = memoryview(self._window)
        self.in_.p = self._ffi.from_buffer("uint8_t[]", self._window)
        self.in_.n = self.in_.pos = 0

    def refill(self) -> None:
        """Move the unconsumed tail to the front and read as much as fits behind it.

        A tail that fills the window makes the window twice as large, so a
        record may be of any length that the input really has.
        """
        in_, view = self.in_, self._view
        tail = in_.n - in_.pos
        if in_.pos:
            in_.base += in_.pos
            view[:tail] = view[in_.pos : in_.n]
        elif tail == len(view):
            bigger = bytearray(2 * len(view))
            bigger[:tail] = view
            view.release()
            self._window = bigger
            self._attach()
            view = self._view
        in_.pos, in_.n = 0, tail
        room = len(view) - tail
        if self._end is not None:
            room = min(room, self._end - self._at)
        got = 0
        # one read a refill, but never none: an empty read means the end
        while room and not got:
            got = self._guarded(self._stream.readinto, view[tail : tail + room])
            if not got:
                self._check_end()
                self._end = self._at
                break
        self._at += got
        self.bytes_read += got
        in_.n = tail + got
        in_.eof = self._end is not None and self._at >= self._end
        if self._progress is not None:
            self._progress(self._raw_position())

    def _check_end(self) -> None:
        """Is this where a file of known size ends?  Errors: FastprofError, unless losses are counted."""
        if self.size is not None and self._at < self.size:
            if self._lost is None:
                raise FastprofError(f"{self.name}: became shorter while it was read: {self._at} of {self.size} bytes")
            self._lost("files that became shorter while they were read")

    def select(self, offset: int, length: int | None = None) -> None:
        """Go on reading at `offset`, up to `length` bytes (None: to the end).

        Needs `seekable`, unless it only goes forward.
        """
        in_ = self.in_
        if self.seekable:
            self._stream.seek(offset)  # always: read_at may have moved it
        elif offset == in_.base + in_.n and not (in_.eof and self._end is None):
            pass
        elif offset >= self._at:
            while self._at < offset and (part := self._guarded(self._stream.read, min(WINDOW, offset - self._at))):
                self._at += len(part)
        else:
            raise FastprofError(f"{self.name}: cannot go back to byte {offset} of a pipe")
        self._at = offset
        in_.base, in_.n, in_.pos, in_.eof = offset, 0, 0, 0
        self._end = None if length is None else offset + length

    def read_at(self, offset: int, n: int) -> bytes:
        """Up to `n` bytes at `offset`, beside the window (which must be selected anew)."""
        self._stream.seek(offset)
        return self._read_some(n)

    def read_into(self, offset: int, into: memoryview) -> int:
        """Fill `into` from `offset`; fewer bytes only at the end of the input.  As `read_at`, without a copy."""
        self._stream.seek(offset)
        have = 0
        while have < len(into) and (got := self._guarded(self._stream.readinto, into[have:])):
            have += got
        return have

    def spool(self) -> None:
        """Make the source seekable from where the window is: what cannot seek is copied to a temporary file.

        The window is left empty there.
        """
        in_ = self.in_
        start = in_.base + in_.pos
        if self.seekable:
            return
        import tempfile

        try:
            spooled = tempfile.TemporaryFile(prefix="fastprof-", buffering=0)
            spooled.seek(start)  # a hole: offsets stay absolute
            part: bytes | memoryview = self._view[in_.pos : in_.n] or self._read_some(WINDOW)
            while part:
                # a full disk takes a part of it first, and says so the next time
                part = part[spooled.write(part) :] or self._read_some(WINDOW)
        except OSError as error:
            raise FastprofError(f"{self.name}: no temporary copy can be made: {error.strerror or error}") from None
        self._raw = self._stream = spooled
        self.compression = ""
        self.seekable = True
        self.size = os.fstat(spooled.fileno()).st_size
        self.select(start)

    # ---- progress ------------------------------------------------------

    def on_progress(self, callback: Any, closed: Any) -> None:
        """Call `callback(bytes)` with the position in the file as stored, at every refill; `closed()` at close."""
        self._progress, self._closed = callback, closed

    def _raw_position(self) -> int:
        if self.compression or self.size is None:
            try:
                return int(self._raw.tell())
            except (AttributeError, OSError):
                return self.bytes_read
        return self.bytes_read

    def close(self) -> None:
        if self._progress is not None:
            self._closed()
        if self._stream is not self._raw:
            self._stream.close()
        self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _write_whole(raw: Any, view: memoryview) -> None:
    """Write all of `view`, which a pipe may take in parts."""
    while len(view):
        done = raw.write(view)
        if done is None:
            raise BlockingIOError("takes nothing for now, and is not to be waited for (non-blocking)")
        view = view[done:]


class _Counted:
    """A file that a compressor writes to; `written` counts what comes out of it.

    Compressors take it for granted that a write is whole.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.written = 0

    def write(self, data: bytes | memoryview) -> int:
        view = memoryview(data)
        self.written += len(view)
        _write_whole(self._raw, view)
        return len(view)

    def flush(self) -> None:
        self._raw.flush()


class Sink:
    """Where output goes: a file that appears whole or not at all, or standard output.

    A file is written under a temporary name beside its target, flushed to
    disk and renamed by `commit`; leaving the `with` block without it removes
    the temporary file.  The target's suffix chooses the compression.
    """

    def __init__(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        self.path: str | None = None
        self._temporary: str | None = None
        self._raw: Any
        compression = ""
        self._name = "<stdout>"
        if not isinstance(path, (str, os.PathLike)):
            self._raw = path
            self._name = str(getattr(path, "name", "output"))
        elif path == "-":
            self._raw = _standard(sys.stdout, "<stdout>", "wb")
        else:
            self.path = self._name = os.fspath(path)
            compression = compression_of_name(self.path)
            self._raw = self._open_beside(self.path)
        self.written = 0
        self._stream = self._raw
        self._packed: Any = None
        self._compress(compression)

    def _open_beside(self, path: str) -> Any:
        try:
            if os.path.exists(path) and not os.path.isfile(path):
                if os.path.isdir(path):
                    raise FastprofError(f"{path}: is a directory")
                return open(path, "wb", buffering=0)  # /dev/null, a named pipe: nothing to rename
            target = os.path.realpath(path)  # a symbolic link stays one
            # by hand: importing tempfile takes as long as a short conversion's reading and writing
            temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{os.urandom(6).hex()}.tmp")
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._temporary = temporary
        except OSError as error:
            raise FastprofError(f"{path}: {error.strerror or error}") from None
        self._target = target
        mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~_umask()
        os.fchmod(fd, mode)
        return open(fd, "wb", buffering=0)

    def _compress(self, kind: str) -> None:
        if not kind:
            return
        self._packed = _Counted(self._raw)
        if kind == ".gz":
            from isal import igzip

            self._stream = igzip.IGzipFile(  # type: ignore[no-untyped-call]
                filename="", fileobj=self._packed, mode="wb", compresslevel=2, mtime=0
            )
        elif kind == ".zst":
            import zstandard

            self._stream = zstandard.ZstdCompressor(level=3).stream_writer(self._packed, closefd=False)
        elif kind == ".xz":
            import lzma

            self._stream = lzma.open(self._packed, "wb")
        elif kind == ".bz2":
            import bz2

            self._stream = bz2.open(self._packed, "wb")

    def gzip(self) -> None:
        """Compress with gzip from here on, unless the name already chose a compression."""
        if self._stream is self._raw and not self.written:
            self._compress(".gz")

    @property
    def output_bytes(self) -> int:
        """What the target has so far; after `commit` its length."""
        return self.written if self._packed is None else int(self._packed.written)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`.  Errors: FastprofError; BrokenPipeError when the reader left."""
        view = memoryview(data)
        self.written += len(view)
        try:
            if self._stream is self._raw:
                _write_whole(self._raw, view)
            else:
                self._stream.write(view)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FastprofError(f"{self._name}: {error.strerror or error}") from None

    def commit(self) -> None:
        """Finish the stream and give the file its name."""
        try:
            if self._stream is not self._raw:
                self._stream.close()
            if self._temporary is None:
                self._raw.flush()
                return
            if not self._raw.closed:
                os.fsync(self._raw.fileno())
                self._raw.close()
            os.replace(self._temporary, self._target)
            self._temporary = None
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FastprofError(f"{self._name}: {error.strerror or error}") from None

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is not None:
            self._raw.close()
            os.unlink(self._temporary)
            self._temporary = None


def _standard(stream: IO[str] | None, name: str, mode: str) -> Any:
    """Standard input or output by its descriptor, which stays open.  Errors: FastprofError when it was closed."""
    if stream is None:
        raise FastprofError(f"{name}: is closed")
    os.set_blocking(stream.fileno(), True)  # who shares it may have changed that: "not now" would be taken for the end
    return open(stream.fileno(), mode, buffering=0, closefd=False)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def expand(paths: Iterable[str], warn: Callable[[str], None]) -> list[str]:
    """Inputs as given, a directory replaced by its files in the order of their names, numbers by value.

    What else is in a directory is told to `warn`; names that begin with a dot are not looked at.
    An empty file NAME is passed over beside NAME-01 or NAME.1-01: Callgrind leaves it with --separate-threads.
    """
    found: list[str] = []
    for path in paths:
        if path == "-" and "-" in found:
            raise UsageError("standard input (-) can be read only once")
        if path != "-" and os.path.isdir(path):
            names = sorted((name for name in os.listdir(path) if not name.startswith(".")), key=_natural)
            others = [name for name in names if not os.path.isfile(os.path.join(path, name))]
            if len(others) == len(names):
                raise FastprofError(f"{path}: a directory without files")
            if others:
                warn(f"{path}: not read, being no files: {', '.join(others)}")
            found += (os.path.join(path, name) for name in names if name not in others)
        else:
            found.append(path)
    if len(found) == 1:
        return found
    # NAME may itself end in a number, that of the process
    apart = [re.fullmatch(r"(?s)((.*?)(?:\.[0-9]+)?)-[0-9]+", path) for path in found]
    of_threads = {name for match in apart if match for name in match.groups()}
    return [path for path in found if path not in of_threads or os.path.getsize(path)]


def _natural(name: str) -> list[tuple[str, int]]:
    """ "out.10-02" as [("out.", 10), ("-", 2)]."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]
