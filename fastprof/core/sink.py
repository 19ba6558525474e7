"""Bytes out: a file or a remote object that appears whole or not at all, standard output, or a file object."""

from __future__ import annotations

import errno
import importlib
import os
import stat
import sys
from contextlib import suppress
from operator import index

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, FileError, UsageError, errors_of, printable_lines, raise_as
from fastprof.core.messages import Message
from fastprof.core.newfile import NewFile
from fastprof.core.streams import check_binary, compression_of_name, name_of, standard_stream, temporary_file
from fastprof.core.urls import is_url

if TYPE_CHECKING:
    from fastprof.core.remote import Upload


_NO_TEXT = Message("binary output is not written to a terminal; name a file with {-o}")
_FEW = 1 << 20  # bytes below which a thread does not pay


def _write_whole(raw: Any, view: memoryview) -> None:
    """Write all of `view`; a pipe may accept only a part at a time."""
    while len(view):
        view = view[_taken(raw.write(view), len(view)) :]


def _taken(done: Any, n: int) -> int:
    """The result of a `write` of `n` bytes, checked.  Errors: OSError."""
    if done is None:
        raise BlockingIOError("is non-blocking and cannot take data now")
    if not hasattr(done, "__index__") or not 1 <= index(done) <= n:
        raise OSError(f"write returned {done!r:.40}, expected 1 to {n}")
    return index(done)


class _Foreign:
    """The caller's file object.  It may keep the data or pass it to another thread, so it gets `bytes`, not views of
    memory that is reused and freed."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, view: memoryview) -> int:
        """Write all of `view`."""
        n = at = 0
        while at < len(view):
            # in large steps: moving the rest after every few bytes would be quadratic
            n = 2 * n or len(view)
            part = bytes(view[at : at + n])
            n = _taken(self._file.write(part), len(part))
            at += n
        return at

    def flush(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()


class _Terminal:
    """Text on a terminal: control characters and bytes that are not UTF-8 are escaped."""

    def __init__(self, file: Any) -> None:
        from codecs import getincrementaldecoder

        self._file = file
        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, view: memoryview, *, final: bool = False) -> int:
        """Write all of `view`."""
        shown = printable_lines(self._decoder.decode(view, final))
        _write_whole(self._file, memoryview(shown.encode("utf-8", "backslashreplace")))
        return len(view)

    def flush(self) -> None:
        self.write(memoryview(b""), final=True)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Counted:
    """The file that a compressor or a thread writes to; `written` counts the bytes.

    `write` always writes everything, because compressors do not check its result.  `close` leaves the file open.
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

    def close(self) -> None:
        """Do nothing: all data is written already."""


_SMALL_GZIP = "small .gz"


class _Gzip:
    """Compresses with gzip.  Importing isal's own file object takes 5 ms, a tenth of a short conversion."""

    def __init__(self, file: Any, is_small: bool) -> None:
        zlib: Any = importlib.import_module("zlib" if is_small else "isal.isal_zlib")
        self._file = file
        # 31: with a gzip header, without a time
        self._deflate = zlib.compressobj(9 if is_small else 2, zlib.DEFLATED, 31)

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(self._deflate.compress(data))

    def close(self) -> None:
        self._file.write(self._deflate.flush())


def _compressor(target: Any, kind: str) -> Any:
    """A stream that compresses the bytes written to it into `target`."""
    if kind in (".gz", _SMALL_GZIP):
        return _Gzip(target, kind == _SMALL_GZIP)
    if kind == ".zst":
        import zstandard

        return zstandard.ZstdCompressor(level=3).stream_writer(target, closefd=False)
    if kind == ".xz":
        import lzma

        return lzma.open(target, "wb")
    if kind == ".lz4":
        import lz4.frame

        return lz4.frame.open(target, "wb")
    import bz2

    return bz2.open(target, "wb")


class Sink:
    """The output: a file or a remote object that appears whole or not at all, standard output, or a file object, which
    stays open.

    `commit` flushes a file to disk and gives it the target's name (newfile.py); leaving the `with` block without
    `commit` removes the file.  The target's suffix selects the compression.

    `durable` False: the caller synchronizes the file to disk, not `commit`.  `cores` above 1: another thread compresses
    large output, or writes it if it is an uncompressed file.

    `budget`: at most this many bytes are written, before compression.  The excess is only counted in `written`, and
    `commit` refuses it.  Standard output, pipes and file objects then get nothing before `commit`.
    """

    def __init__(
        self,
        path: Any,
        budget: int | None = None,
        *,
        durable: bool = True,
        cores: int = 1,
    ) -> None:
        self.path: str | None = None
        self._new: NewFile | None = None  # the file that `commit` makes visible
        self._finished = False
        self._upload: Upload | None = None  # the object that `commit` makes visible
        self._raw: Any
        compression = ""
        self._name = "<stdout>"
        self._is_terminal = False
        self._owns_file = isinstance(path, (str, os.PathLike))
        if not isinstance(path, (str, os.PathLike)):
            check_binary(path, lambda: path.write(b""), "write")
            self._raw = _Foreign(path)
            self._name = name_of(path)
        elif path == "-":
            self._raw = standard_stream(sys.stdout, "<stdout>", "wb")
            self._is_terminal = os.isatty(self._raw.fileno())
            if self._is_terminal:
                self._raw = _Terminal(self._raw)
        elif is_url(path):
            from fastprof.core.remote import Upload

            self._upload = self._raw = Upload(str(path))
            self.path = self._name = self._upload.name
            compression = compression_of_name(self.path)
        else:
            self.path = self._name = os.fspath(path)
            compression = compression_of_name(self.path)
            self._raw = self._open_file(self.path)
        self.written = 0
        self.budget = budget
        self._durable = durable
        self._cores = cores
        self._real: Any = None  # the final target, if `_raw` only buffers
        if budget is not None and self._new is None and self._upload is None:
            self._real, self._raw = self._raw, temporary_file()
        self._stream = self._raw
        self._packed: Any = None
        self._background: Any = None
        try:
            self._compress(compression)
        except BaseException:
            self._discard()
            raise

    def _open_file(self, path: str) -> Any:
        try:
            if path.endswith("/"):  # os.path.abspath would drop it
                raise UsageError(f"{path}: names a folder, not a file")
            present, is_link = _mode(path)
            if present and not stat.S_ISREG(present):
                if stat.S_ISDIR(present):
                    raise FileError(errno.EISDIR, "is a directory", path)
                return open(path, "wb", buffering=0)  # /dev/null, a named pipe: nothing to rename
            # Keeps a symbolic link; ".." after one is not the folder above it.  os.path.realpath queries each folder.
            target = os.path.realpath(path) if ".." in path or is_link else os.path.abspath(path)
            if present is None and (is_link or target != path) and os.path.islink(target):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            mode = None if present is None else present & 0o777
            # A new file gets 0o666 less the umask; one that replaces another stays private until it is complete.
            self._new = NewFile(target, 0o600 if mode else 0o666)
        except OSError as error:
            raise_as(path, error)
        if mode is not None:
            os.fchmod(self._new.file.fileno(), mode)
        return self._new.file

    def _compress(self, kind: str) -> None:
        """Write through a compressor.  Errors: FastprofError; some compressors write immediately."""
        with errors_of(self._name):
            self._begin_compression(kind)

    def _begin_compression(self, kind: str) -> None:
        if not kind:
            return
        self._packed = _Counted(self._raw)
        if self._cores == 1:
            self._stream = _compressor(self._packed, kind)
            return
        from fastprof.core.workers import Background, Collected

        made = Collected()
        self._background = self._stream = Background(_compressor(made, kind), made, self._packed, _FEW)

    def _write_in_background(self) -> None:
        """Write in another thread from here on."""
        from fastprof.core.workers import Background, Collected

        file = _Counted(self._raw)
        self._background = self._stream = Background(file, Collected(), file, 0)

    def gzip(self, *, is_small: bool = False) -> None:
        """Use gzip from here on, for a small file its slowest level, unless the name selects a compression.

        Errors: UsageError for a terminal.
        """
        if self._is_terminal:
            raise UsageError(_NO_TEXT)
        if self._stream is self._raw and not self.written:
            self._compress(_SMALL_GZIP if is_small else ".gz")

    @property
    def output_bytes(self) -> int:
        """Bytes written to the target so far; after `commit` its length."""
        return self.written if self._packed is None else int(self._packed.written)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`.  Errors: FastprofError; BrokenPipeError when the reader has closed the pipe."""
        view = memoryview(data)
        if self._is_terminal and not self.written and min(view[:64], default=32) < 9:
            raise UsageError(_NO_TEXT)
        self.written += len(view)
        if self.is_over:
            return
        try:
            if self._stream is self._raw and self._cores > 1 and self._new is not None and self.written > _FEW:
                self._write_in_background()
            if self._stream is self._raw:
                _write_whole(self._raw, view)
            else:
                self._stream.write(view)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise_as(self._name, error)

    @property
    def is_over(self) -> bool:
        """Whether the output exceeds the budget."""
        return self.budget is not None and self.written > self.budget

    def finish(self) -> None:
        """Finish writing and synchronize to disk, after which `commit` is unlikely to fail."""
        if self._finished:
            return
        if self.is_over:
            raise FastprofError(
                Message(
                    "{name}: {written:,} bytes, but {--budget} allows {budget:,}",
                    name=self._name,
                    written=self.written,
                    budget=self.budget,
                )
            )
        try:
            if self._stream is not self._raw:
                self._stream.close()
            if self._new is not None and self._durable:
                os.fsync(self._raw.fileno())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise_as(self._name, error)
        self._finished = True

    def commit(self) -> None:
        """Finish the stream and give the file its name."""
        self.finish()
        try:
            if self._real is not None:
                self._raw.seek(0)
                while part := self._raw.read(1 << 18):
                    _write_whole(self._real, memoryview(part))
                self._raw.close()
                self._raw, self._real = self._real, None
            if self._upload is not None:
                self._upload.commit()
                return
            if self._new is None:
                self._raw.flush()
                return
            self._new.publish()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise_as(self._name, error)

    def undo_commit(self) -> None:
        """Undo `commit`: remove the file, unless it replaced another."""
        if self._new is not None:
            self._new.withdraw()

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self._discard()

    def _discard(self) -> None:
        """Remove a file, or the parts of an object, that was not committed."""
        if self._background is not None:
            self._background.stop()
        if self._real is not None:
            self._raw.close()
            self._raw, self._real = self._real, None
        if self._new is not None:
            self._new.discard()
        elif self._owns_file:
            with suppress(OSError):  # its content is not needed
                self._raw.close()


def _mode(path: str) -> tuple[int | None, bool]:
    """The mode of a file, None if it is missing or out of reach; and whether the path is that of a symbolic link."""
    is_link = False
    try:
        mode = os.lstat(path).st_mode
        is_link = stat.S_ISLNK(mode)
        return os.stat(path).st_mode if is_link else mode, is_link
    except (OSError, ValueError):
        return None, is_link
