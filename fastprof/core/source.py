"""Bytes in: a window over a file, a pipe, a remote object or bytes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import FileIO
from operator import index

from fastprof.core import lazy_re as re
from fastprof.core._typing import IO, TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, FormatError, UsageError, faulty, raise_as
from fastprof.core.reported import REPORTED
from fastprof.core.streams import (
    PEEK,
    Closing,
    Damaged,
    Reading,
    Rejoined,
    check_binary,
    decompressed,
    layer_of,
    name_of,
    standard_stream,
    temporary_failed,
    temporary_file,
)
from fastprof.core.urls import Remote, is_url, shown

if TYPE_CHECKING:
    from fastprof.core.folder import Folder
    from fastprof.core.prefetch import Prefetch
    from fastprof.core.remote import Ranges

WINDOW = 256 * 1024
_LEAST = 16 * 1024
_MARK = b"\xef\xbb\xbf"
_SHRUNK = "shrank while it was read"
_FEW = 1 << 20  # decompressed bytes below which a thread does not pay
_LONGEST_LINE = 16 << 20  # bytes looked at to find the end of a first line
_SEARCHED = 1 << 20  # bytes searched at a time
LONGEST = 64 << 20  # maximum size of a line or record; a stack of 100,000 functions with long names has 10 MB


class Source(Closing):
    """A window over a file, a pipe, a remote object or bytes, decompressed.

    A decoder reads the window through `in_`, a `struct fp_window`.  Offsets are absolute in the decompressed bytes.

    `seekable`: `select` may go backwards; `spool` makes that possible through a temporary file, `spool_part` for a
    part of the input at a time, `use_ranges` for a remote object.  `again`: another Source can read the same bytes from
    the beginning.  `pinned`: `pin` has set size and identity.  `identity` is compared to see whether a file or object
    opened by path is unchanged when it is opened again; None for others.

    Text in UTF-16 is converted to UTF-8, as if it were compressed.  `mark`: the number of bytes of a byte order mark,
    which neither `head` nor the window shows.

    A file object that can seek is read from its beginning; it belongs to the caller and stays open.  For a directory
    (`folder`), the window shows the files one after the other; `head` is empty and `size` unknown.

    `lost`: a damaged compressed stream ends at the damage, and `lost` is called with the code to count: `Log.count`.
    `temporary`: errors state that the file is temporary, because its name is that of the input it was made from.
    `ahead`: the object at the URL `path` is opened there.
    `cores` above 1: another thread decompresses a large compressed file ahead of the window.

    Errors: FastprofError when the file cannot be opened or decompressed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | bytes | IO[bytes],
        name: str | None = None,
        *,
        lost: Callable[..., None] | None = None,
        cores: int = 1,
        temporary: bool = False,
        ahead: Prefetch | None = None,
    ) -> None:
        from fastprof.core._c import ffi

        self._ffi = ffi
        self.path: str | None = None
        self._lost = lost
        self._progress: Any = None
        self._at = 0  # absolute offset of the next byte to read from the stream
        self._end: int | None = None  # absolute end of the selected range
        self.bytes_read = 0
        self.folder: Folder | None = None
        self._spooled = temporary
        self._pipe: Any = None  # the stream that `spool_part` copies, the file to which, and the end of what is copied
        self._part: Any = None
        self._copied = 0
        self._raw: Any = ahead.open(path) if ahead is not None and isinstance(path, str) else self._open(path)
        self._owns_stream = self._raw is not path and not isinstance(self._raw, Reading)
        self.name = name or self._default_name(path)
        self.compression = ""
        self.mark = 0
        self.pinned = False
        self._stream: Any = self._raw
        self.seekable = self._raw_seekable()
        self.identity = self._identity()
        self.again = self.seekable or self.folder is not None or self.identity is not None
        self.size: int | None = None
        self._ahead: Any = None
        # a thread that waits for a pipe or the network cannot be stopped, and losses must be counted in order
        is_file = self.seekable and self.path is not None
        self._may_read_ahead = cores > 1 and lost is None and is_file
        try:
            if self.seekable and self.folder is None:
                self.size = self._raw_size()
            self.compressed_size = self._raw.size if self._is_remote else self.size
            self._peel()
        except BaseException:
            self.close()
            raise

        # a small file gets a small window; files of /proc have size 0
        self._window = bytearray(WINDOW if self.size is None else min(WINDOW, max(self.size + 1, _LEAST)))
        self.in_ = ffi.new("struct fp_window *")
        self._attach()

    # ---- opening -------------------------------------------------------

    def _open(self, path: Any) -> Any:
        import io

        if isinstance(path, bytes):
            return io.BytesIO(path)
        if hasattr(path, "read"):
            if not self._spooled:
                check_binary(path, lambda: path.read(0), "read")
            return path if hasattr(path, "readinto") else Reading(path)
        if path == "-":
            return standard_stream(sys.stdin, "<stdin>", "rb")
        if is_url(path):
            from fastprof.core.unsized_url import opened

            return opened(path)
        self.path = os.fspath(path)
        if not self.path:
            raise UsageError("'' is not a path: an input's name is empty")
        if os.path.isdir(self.path):
            from fastprof.core.folder import Folder

            self.folder = Folder(self.path)
            return self.folder
        try:
            raw = open(self.path, "rb", buffering=0)
        except OSError as error:
            raise_as(self.path, error)
        return raw

    @staticmethod
    def _default_name(path: Any) -> str:
        if isinstance(path, bytes):
            return str(getattr(path, "name", "<bytes>"))
        if path == "-":
            return "<stdin>"
        return name_of(path) if hasattr(path, "read") else shown(os.fspath(path))

    def _raw_seekable(self) -> bool:
        try:
            fd = self._raw.fileno()
        except (AttributeError, OSError):
            return bool(getattr(self._raw, "seekable", lambda: False)())
        # a terminal or a pipe may claim to seek; only a regular file does
        return stat.S_ISREG(os.fstat(fd).st_mode)

    @property
    def _is_remote(self) -> bool:
        return isinstance(self._raw, Remote)

    def _identity(self) -> tuple[Any, ...] | None:
        if isinstance(self._raw, Remote):
            return self._raw.identity
        if self.path is None or not self.seekable or self.folder is not None:
            return None
        found = os.fstat(self._raw.fileno())
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def look_again(self) -> bool:
        """Update size and identity from the file.  Returns whether they changed."""
        if self.identity is None or self.pinned or self._is_remote:
            return False
        before, self.identity = self.identity, self._identity()
        if self.size is not None:
            self.size = self.compressed_size = self._raw_size()
        return self.identity != before

    def pin(self, size: int, identity: tuple[Any, ...]) -> None:
        """Read the file as it was with this size and identity, without bytes appended since."""
        self.size = self.compressed_size = size
        self.identity, self.pinned = identity, True

    def duplicate(self) -> int:
        """A descriptor of the file, for the caller to close.  Errors: FastprofError."""
        try:
            return os.dup(self._raw.fileno())
        except OSError as error:
            raise_as(self.name, error)

    def is_locked(self) -> bool:
        """Whether a process holds a lock on the file (flock), which it takes to change it."""
        import fcntl

        try:
            fcntl.flock(self._raw.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(self._raw.fileno(), fcntl.LOCK_UN)
        except BlockingIOError:
            return True
        except (AttributeError, OSError):  # not a file, or a file system without locks
            pass
        return False

    def _raw_size(self) -> int:
        try:
            here = self._raw.seek(0, os.SEEK_CUR)
            end = self._raw.seek(0, os.SEEK_END)
            self._raw.seek(here)
        except OSError as error:  # /proc/self/mem claims to be seekable
            raise_as(self.name, error)
        return int(end)

    def _read_some(self, n: int) -> bytes:
        """Read `n` bytes from the stream; fewer only at its end."""
        parts, have = [], 0
        while have < n:
            part = self._guarded(self._stream.read, n - have)
            if not part:
                break
            parts.append(part)
            have += len(part)
        return b"".join(parts)

    def _peel(self) -> None:
        if self.folder is not None:
            self.head = b""
            return
        if self.seekable:
            self._raw.seek(0)  # the caller may have read some of it
        for _ in range(4):  # x.gz.gz happens; more layers are a decompression bomb
            head = self._read_some(PEEK)
            if self.seekable:
                self._stream.seek(0)
            else:
                self._stream = Rejoined(head, self._stream)
            self.head = head
            kind = layer_of(head)
            if not kind:
                self._skip_mark()
                return
            self._stream = decompressed(self._stream, kind, self._lost)
            self.compression += kind
            self.seekable = False
            self.size = None

    def _skip_mark(self) -> None:
        """Text begins after its byte order mark."""
        if self.head.startswith(_MARK):
            self.head = self.head[len(_MARK) :]
            self.mark = len(_MARK)

    def extend_head(self) -> bool:
        """Extend `head` beyond the end of its first line, before anything else is read.  Returns whether it changed:
        not if it has a line break, the run of NUL bytes of a binary file, or all of the input."""
        if len(self.head) + self.mark < PEEK or b"\n" in self.head or bytes(4) in self.head or self._at:
            return False
        longer = bytearray(self._read_some(PEEK))
        while b"\n" not in longer[-PEEK:] and len(longer) < _LONGEST_LINE and (part := self._read_some(PEEK)):
            longer += part
        if self.seekable:
            self._stream.seek(0)
        else:
            self._stream = Rejoined(bytes(longer), self._stream)
        self.head = bytes(longer[self.mark :])
        return len(longer) > PEEK

    def _guarded(self, read: Any, argument: Any) -> Any:
        try:
            got = read(argument)
        except Damaged as error:
            what, at = error.args
            damage = FormatError(self.name, self.compression.lstrip("."), what)
            damage.offset = at
            raise damage from error.__cause__
        except BlockingIOError:
            got = None
        except OSError as error:
            why = str(temporary_failed(error)) if self._spooled else ""
            raise_as(self.name, error, why)
        if got is None:
            raise faulty(self.name, "is non-blocking and has no data now")
        return got

    def _filled(self, into: memoryview) -> int:
        """Call `readinto` once, and check the number that a caller's file object returns."""
        got = index(self._guarded(self._stream.readinto, into))
        if not 0 <= got <= len(into):
            raise faulty(self.name, f"reading returned {got} bytes, expected 0 to {len(into)}")
        return got

    # ---- the window ----------------------------------------------------

    def _attach(self) -> None:
        self._view = memoryview(self._window)
        self.in_.p = self._ffi.from_buffer("uint8_t[]", self._window)
        self.in_.n = self.in_.pos = 0

    def refill(self) -> None:
        """Move the remaining bytes to the front of the window and read as many as fit after them.

        If they fill the window, its size is doubled: a record may be longer than the window.
        """
        in_, view = self.in_, self._view
        tail = in_.n - in_.pos
        if in_.pos:
            in_.base += in_.pos
            view[:tail] = view[in_.pos : in_.n]
        elif tail == len(view):
            self._check_length(tail)
            bigger = bytearray(2 * len(view))
            bigger[:tail] = view
            view.release()
            self._window = bigger
            self._attach()
            view = self._view
        in_.pos, in_.n = 0, tail
        if self._part is None:
            self._read_ahead(self._at)
        room = len(view) - tail
        if self._end is not None:
            room = min(room, self._end - self._at)
        # One read per refill, of at least one byte: an empty read means the end.  After a long tail, as many bytes as
        # the tail has: decoders reread the tail, so doubling keeps the total linear in the length of a record.
        least, got = min(room, tail if tail >= WINDOW else 1), 0
        while got < least:
            n = self._filled(view[tail + got : tail + room])
            if not n:
                self._check_end()
                self._end = self._at
                break
            got += n
            self._at += n
        self.bytes_read += got
        in_.n = tail + got
        in_.eof = self._end is not None and self._at >= self._end
        self._show_progress()

    def _check_length(self, nbytes: int) -> None:
        """Check that a line or record may exceed this many bytes: a few compressed bytes can expand to any length."""
        if nbytes < LONGEST:
            return
        raise FastprofError(
            f"{self.name}: at byte {self.in_.base}: a line or record is longer than the limit of {LONGEST >> 20} MiB"
        )

    def find(self, data: bytes) -> int | None:
        """The offset in the input of these bytes, searched in the window; None if not found."""
        found = self._window.find(data, 0, self.in_.n)
        return None if found < 0 else int(self.in_.base) + found

    def _read_ahead(self, read: int) -> None:
        """Start the thread once enough bytes were read."""
        if self._may_read_ahead and self.compression and read >= _FEW:
            from fastprof.core.workers import Prefetch

            self._may_read_ahead = False
            self._stream = self._ahead = Prefetch(partial(self._stream.read, WINDOW))

    def _check_end(self) -> None:
        """Check that a file of known size ends at that size.  Errors: FastprofError, unless losses are counted."""
        if self.size is not None and self._at < self.size:
            if self._lost is None:
                raise faulty(self.name, f"{_SHRUNK}: {self._at} of {self.size} bytes")
            self._lost(REPORTED["shortened-files"])

    def select(self, offset: int, length: int | None = None) -> None:
        """Continue reading at `offset`, but not before the text, up to `length` bytes (None: to the end).

        Going backwards requires `seekable`.
        """
        in_, before_text = self.in_, self.mark - offset
        if before_text > 0:
            offset, length = self.mark, None if length is None else max(length - before_text, 0)
        if self.seekable:
            self._stream.seek(offset)  # always, because read_at may have moved it
        elif offset == in_.base + in_.n and not (in_.eof and self._end is None):
            pass
        elif offset >= self._at:
            while self._at < offset and (part := self._guarded(self._stream.read, min(WINDOW, offset - self._at))):
                self._at += len(part)
        else:
            raise faulty(self.name, f"cannot go back to byte {offset} of a pipe")
        self._at = offset
        in_.base, in_.n, in_.pos, in_.eof = offset, 0, 0, 0
        self._end = None if length is None else offset + length

    def read_at(self, offset: int, n: int) -> bytes:
        """Up to `n` bytes at `offset`, without the window; call `select` before reading the window again."""
        stream = self._stream
        if type(stream) is FileIO:  # one system call, not two
            data = self._guarded(lambda n: os.pread(stream.fileno(), n, offset), n)
            if len(data) == n:
                return data  # type: ignore[no-any-return]
        stream.seek(offset)
        data = self._read_some(n)
        self._check_got(offset, n, len(data))
        return data

    def read_into(self, offset: int, into: memoryview) -> int:
        """`read_at` into memory of the caller.  Returns the number of bytes; fewer only at the end of the input."""
        self._stream.seek(offset)
        have = got = self._filled(into)
        while got and have < len(into):
            have += (got := self._filled(into[have:]))
        self._check_got(offset, len(into), have)
        return have

    def read_next(self, offset: int, into: memoryview) -> None:
        """`read_into` for callers that read the whole input: it reports progress."""
        self.bytes_read += self.read_into(offset, into)
        self._show_progress()

    def passed(self, position: int) -> None:
        """Report progress, for callers of `read_at` that read the whole input."""
        if self._progress is not None:
            self._progress(position)

    def search(self, pattern: re.Pattern[bytes], longest: int) -> re.Match[bytes] | None:
        """The first match of a pattern anywhere in a seekable input; a match has at most `longest` bytes."""
        window = bytearray(longest + _SEARCHED)
        at = n = 0
        while got := self.read_into(at, memoryview(window)[n:]):
            at += got
            if found := pattern.search(window, 0, n + got):
                return found
            kept = window[max(0, n + got - longest) : n + got]
            n = len(kept)
            window[:n] = kept
        return None

    def _check_got(self, offset: int, n: int, have: int) -> None:
        """Random access never reaches the end, so a waiter would hang."""
        if self.size is not None and offset + have < min(offset + n, self.size):
            raise faulty(self.name, f"{_SHRUNK}: {offset + have} of {self.size} bytes")

    def spool(self) -> None:
        """Make the source seekable: copy a stream that cannot seek to a temporary file, from the window's position on.

        The window is then empty, at that position.
        """
        in_ = self.in_
        start = in_.base + in_.pos
        if self.seekable:
            return
        spooled = temporary_file()
        try:
            spooled.seek(start)  # a hole: offsets stay absolute
            part: bytes | memoryview = self._view[in_.pos : in_.n] or self._read_some(WINDOW)
            while part:
                # on a full disk one write is partial, and the next one fails
                part = part[spooled.write(part) :]
                self._read_ahead(spooled.tell())
                part = part or self._read_some(WINDOW)
        except BaseException as error:
            spooled.close()
            if isinstance(error, OSError) and not isinstance(error, FastprofError):
                raise_as(self.name, error, str(temporary_failed(error)))
            raise
        self._stop()
        self._release()
        self._raw, self._stream, self._owns_stream = spooled, spooled, True
        self.compression = ""
        self.seekable = self._spooled = True
        self.size = os.fstat(spooled.fileno()).st_size
        self.select(start)

    def spool_part(self, offset: int, nbytes: int | None) -> int:
        """Make the source seekable from `offset` on, as far as `nbytes` bytes, or to its end.  Returns the end of what
        can be read, and forgets what comes before `offset`.

        For streams that are read part by part, each in several passes.  The window is then empty.
        """
        in_ = self.in_
        rest = b""
        if self._part is None:
            self._part, self._pipe, self._copied = temporary_file(), self._stream, in_.base + in_.pos
            rest = bytes(self._view[in_.pos : in_.n])
        file, end = self._part, None if nbytes is None else offset + nbytes
        self._stream, self._spooled = self._pipe, False
        try:
            if offset >= self._copied:
                file.truncate(0)
            file.seek(self._copied)  # a hole: offsets stay absolute
            while end is None or self._copied < end:
                self._read_ahead(self._copied)
                n = WINDOW if end is None else min(WINDOW, end - self._copied)
                part: bytes = rest or self._guarded(self._stream.read, n)
                if not part:
                    break
                done = file.write(part)  # on a full disk one write is partial, and the next one fails
                self._copied += done
                rest = part[done:]
        except OSError as error:
            raise_as(self.name, error, str(temporary_failed(error)))
        finally:
            self._pipe, self._stream, self._spooled = self._stream, file, True
        self.seekable = True
        self.select(offset)
        return self._copied

    def use_ranges(self) -> None:
        """Make a remote object seekable if its server supports ranges, for formats that read only parts of it.

        The window is then empty, at its position.
        """
        if not self._is_remote or self.seekable or self.compression or (ranges := self._raw.ranges()) is None:
            return
        start = self.in_.base + self.in_.pos
        self._raw.close()
        self._raw = self._stream = ranges
        self.seekable, self.size = True, ranges.size
        self.select(start)

    @property
    def ranges(self) -> Ranges | None:
        """The remote object, if it is read by ranges."""
        return self._raw if self._is_remote and self.seekable else None

    def tell(self) -> int | None:
        """The position in the stored file, for `go_to`; None if it cannot go back."""
        return int(self._raw.tell()) if self.again else None

    def go_to(self, position: int) -> None:
        """Restore the position of a file that another pass read."""
        self._raw.seek(position)

    # ---- progress ------------------------------------------------------

    def on_progress(self, callback: Any, closed: Any) -> None:
        """At each refill call `callback` with the position in the stored (compressed) file; at close call `closed`."""
        self._progress, self._closed = callback, closed

    def _show_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._raw_position())

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
        self._stop()
        self._release()

    def _release(self) -> None:
        with suppress(OSError):  # reading is over
            if self._owns_stream:
                self._raw.close()
            if self._part is not None:
                self._part.close()

    def _stop(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()
            self._ahead = None
