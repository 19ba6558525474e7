"""Bytes out: a file that appears whole or not at all, or standard output."""

from __future__ import annotations

import os
import sys

from fastprof.core._typing import IO, TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError
from fastprof.core.streams import compression_of_name, standard_stream

if TYPE_CHECKING:
    from types import TracebackType


def _write_whole(raw: Any, view: memoryview) -> None:
    """Write all of `view`, although a pipe may take only a part at a time."""
    while len(view):
        done = raw.write(view)
        if done is None:
            raise BlockingIOError("takes nothing for now, and is not to be waited for (non-blocking)")
        view = view[done:]


class _Counted:
    """The file that a compressor writes to; `written` counts the compressed bytes.

    `write` always writes everything, because compressors do not check.
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
            self._raw = standard_stream(sys.stdout, "<stdout>", "wb")
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
            # without tempfile: importing it takes as long as a short conversion
            temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{os.urandom(6).hex()}.tmp")
            mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else None
            # A new file gets what the umask leaves of 0o666; of one that is replaced nobody else may read the half.
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if mode else 0o666)
            self._temporary = temporary
        except OSError as error:
            raise FastprofError(f"{path}: {error.strerror or error}") from None
        self._target = target
        if mode is not None:
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
        """Bytes that the target has so far; after `commit` its length."""
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
