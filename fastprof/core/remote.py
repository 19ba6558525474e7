"""Remote objects, by URL: s3://, gs://, az://, https:// and http://, read and written through obstore."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from threading import Lock

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError, UsageError, faulty, file_error, raise_as
from fastprof.core.messages import install
from fastprof.core.streams import Readable
from fastprof.core.urls import CLOUDS, Remote, bare, is_taken_anew, shown

_CHUNK = 256 * 1024  # bytes read from a download at a time
_BLOCK = 1024 * 1024  # bytes per range request
_KEPT = 8  # blocks kept
# Bytes of a part of an upload.  10,000 parts allow objects of 80 GB; four parts are in memory at a time.
_PART = 8 * 1024 * 1024
_WAITING = "60s"  # timeout for the next bytes; a whole object may take any time
RETRIES: dict[str, Any] = {"max_retries": 5}  # after 0.1 s, 0.2 s, ...: a status of 500 is final after about 3 s


class _Cloud(NamedTuple):
    """The sources of a scheme's credentials.

    Without credentials obstore queries the machine's metadata service, which exists only on machines of that cloud;
    elsewhere the query fails after a long time.  So it, too, must be requested explicitly.
    """

    prefix: str  # of variables
    any_of: tuple[str, ...]  # variables with credentials or the address of a metadata service
    advice: str


_CLOUDS = {
    "s3": _Cloud(
        "AWS",
        (
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_METADATA_ENDPOINT",
        ),
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    "gs": _Cloud(
        "GOOGLE",
        (
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_BEARER_TOKEN",
            "GCE_METADATA_HOST",
            "GCE_METADATA_IP",
        ),
        "set GOOGLE_APPLICATION_CREDENTIALS",
    ),
    "az": _Cloud(
        "AZURE",
        (
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_SAS_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_STORAGE_TOKEN",
            "AZURE_STORAGE_CLIENT_ID",
            "AZURE_CLIENT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
            "AZURE_USE_AZURE_CLI",
            "AZURE_STORAGE_USE_EMULATOR",
            "AZURE_IDENTITY_ENDPOINT",
            "AZURE_MSI_ENDPOINT",
            "IDENTITY_ENDPOINT",
            "MSI_ENDPOINT",
        ),
        "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    ),
}


class Object(NamedTuple):
    """An object of a listing."""

    url: str
    size: int
    mtime_ns: int


class Unsized(FastprofError):
    """An answer without a length."""


def below(url: str) -> Iterator[Object]:
    """All objects below a URL that has listings, page by page.  Errors: FastprofError."""
    return _Remote(url, is_folder=True).listed()


def read(url: str) -> bytes:
    """A small object.  Errors: FastprofError."""
    return Download(url).read()


def lines(url: str) -> Iterator[bytes]:
    """The lines of an object, with their ends.  Errors: FastprofError."""
    download, begun = Download(url), list[bytes]()  # the beginning of a line, in pieces
    while data := download.read(_CHUNK):
        first, *others = data.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun) + b"\n"
            begun = [other]
    if rest := b"".join(begun):
        yield rest


def put(url: str, data: bytes) -> None:
    """Create a small object, or replace it.  Errors: FastprofError."""
    upload = Upload(url)
    upload.write(data)
    upload.commit()


def remove(url: str) -> None:
    """Remove an object, if it exists.  Errors: FastprofError."""
    _Remote(url, to_write=True).delete()


def state(url: str) -> tuple[int, int]:
    """Size and time of an object; (0, 0), without a request, if each request takes another profile.

    Errors: FastprofError.
    """
    if is_taken_anew(url):
        return 0, 0
    size, mtime_ns = _Remote(url).identity()[-2:]
    return size, mtime_ns


def identity(url: str) -> tuple[Any, ...]:
    """Equal only for the same contents, if the server states what changes with them.  Errors: FastprofError."""
    return _Remote(url).identity()


def replace(url: str, data: bytes, before: tuple[Any, ...] | None) -> bool | None:
    """Create an object in place of the one with this `identity`, or of none, in one step.

    False if another object is there; None if the server does not support it.  Then nothing is changed.
    Errors: FastprofError.
    """
    remote = _Remote(url, to_write=True)
    tag, version, _ = (before[1] if before else None) or (None, None, None)
    same = {key: value for key, value in (("e_tag", tag), ("version", version)) if value}
    if not remote.in_parts or (before and not same):
        return None
    from obstore.exceptions import AlreadyExistsError, GenericError, NotSupportedError, PreconditionError

    def put() -> bool | None:
        try:
            remote.put(data, mode=same if before else "create")
        except (AlreadyExistsError, PreconditionError):
            return False
        except (NotSupportedError, NotImplementedError):
            return None
        except GenericError as error:
            if "501 Not Implemented" in str(error):
                return None
            raise
        return True

    result: bool | None = remote._do(put)
    return result


class _Remote:
    """An object.  `name` is its name in messages."""

    def __init__(self, url: str, *, to_write: bool = False, is_folder: bool = False) -> None:
        self.url, self.name = url, shown(url)
        try:
            import obstore
            from obstore import store
        except ImportError:
            raise FastprofError(f"{self.name}: URLs need obstore: {install('remote')}") from None
        self._obstore: Any = obstore
        stores: Any = store
        scheme, _, rest = url.partition("://")
        client: dict[str, Any] = {"timeout": "30days", "read_timeout": _WAITING}
        self.in_parts = scheme in CLOUDS
        if self.in_parts:
            cloud = _CLOUDS[scheme]
            bucket, _, self._key = rest.partition("/")
            if not bucket or "@" in bucket or not (self._key or is_folder):
                raise UsageError(f"{self.name}: expected {scheme}://BUCKET/NAME")
            _check_credentials(self.name, cloud, to_write)
            client["allow_http"] = _is_on(f"{cloud.prefix}_ALLOW_HTTP")
            self._bucket = f"{scheme}://{bucket}"
            self._store = self._do(lambda: stores.from_url(self._bucket, client_options=client, retry_config=RETRIES))
        else:
            # the URL is that of the store itself, so it is kept as given
            self._key = ""
            client["allow_http"] = scheme == "http"
            if user := authorization(url):
                client["default_headers"] = {"Authorization": user}
            self._store = self._do(
                lambda: stores.HTTPStore.from_url(bare(url), client_options=client, retry_config=RETRIES)
            )

    def listed(self) -> Iterator[Object]:
        pages = self._do(lambda: iter(self._obstore.list(self._store, self._key)))
        while (page := self._do(lambda: next(pages, None))) is not None:
            for found in page:
                yield Object(f"{self._bucket}/{found['path']}", found["size"], _time_of(found))

    def delete(self) -> None:
        with suppress(FileNotFoundError):
            self._do(lambda: self._obstore.delete(self._store, self._key))

    def get(self, **options: Any) -> Any:
        return self._do(lambda: self._obstore.get(self._store, self._key, options=options))

    def identity(self) -> tuple[Any, ...]:
        return self.identity_of(self._do(lambda: self._obstore.head(self._store, self._key)))

    def identity_of(self, meta: Any) -> tuple[Any, ...]:
        """Equal only for the same contents of an object.  It ends like a file's: size, and modification time in ns.

        The second item is None if the server states nothing that changes with the contents.
        """
        tag, version, mtime_ns = meta["e_tag"], meta["version"], _time_of(meta)
        return self.url, (tag, version, mtime_ns) if tag or version or mtime_ns else None, meta["size"], mtime_ns

    def put(self, data: Any, **options: Any) -> None:
        self._obstore.put(self._store, self._key, data, **options)

    def _do(self, call: Callable[[], Any]) -> Any:
        """The result of `call`, which calls obstore.  Errors: FastprofError, with the object's name."""
        try:
            return interruptible(call)
        except Exception as error:
            found = self.failed(error)
            raise found from (None if found is error else error)

    def failed(self, error: Exception) -> Exception:
        """The message for an error of obstore."""
        if isinstance(error, (FastprofError, MemoryError)):
            return error
        if isinstance(error, FileNotFoundError):
            return file_error(self.name, OSError(errno.ENOENT, "no such object"))
        import re

        # The first line is a sentence in which URLs may contain signatures; fields of the Rust error follow.
        text, _, fields = str(error).partition("\n")
        if of_system := re.search(r"\bOs \{\s*code: (\d+)", fields):
            return file_error(self.name, OSError(int(of_system[1]), os.strerror(int(of_system[1]))))
        if unknown_host := re.search(r'"(failed to lookup address[^"]*)"', fields):
            return file_error(self.name, OSError(_lookup_errno(unknown_host[1]), unknown_host[1]))
        if "Content-Length Header missing" in text:
            return Unsized(f"{self.name}: the answer has no length")
        if answer := re.search(r"status code: (\d+ [A-Za-z ]*[A-Za-z])", text):
            return file_error(self.name, error, f"the server answered {answer[1]}", int(answer[1][:3]))
        text = re.sub(
            r"Error performing [A-Z]+ \S+ in \S+?(, after \d+ retries)?[^-]* - |^Generic \w+ error: ", "", text
        )
        text = re.sub(r"\w+://\S+", "(address)", text)
        return file_error(self.name, error, text or type(error).__name__)


def _lookup_errno(why: str) -> int:
    """Of a host name without an address, as `socket.getaddrinfo` has it."""
    import socket

    return socket.EAI_AGAIN if "again" in why.lower() or "temporary" in why.lower() else socket.EAI_NONAME


def interruptible(call: Callable[[], Any]) -> Any:
    """The result of `call`.  It runs in another thread, because obstore blocks signal handlers."""
    from queue import SimpleQueue

    from fastprof.core.workers import begin

    done: Any = SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    begin(run)
    result, error = done.get()
    if error is not None:
        raise error
    return result


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "on", "yes", "y")


def _check_credentials(name: str, cloud: _Cloud, to_write: bool) -> None:
    is_google = cloud.prefix == "GOOGLE"
    if any(map(os.environ.get, cloud.any_of)):
        return
    skip = f"{cloud.prefix}_SKIP_SIGNATURE"
    if _is_on(skip) and not (is_google and to_write):  # obstore writes to Google only with a token
        return
    if is_google and os.path.isfile(os.path.expanduser("~/.config/gcloud/application_default_credentials.json")):
        return
    instead = "" if is_google and to_write else f", or {skip}=true if it needs none"
    raise FastprofError(f"{name}: no credentials: {cloud.advice}{instead}")


def authorization(url: str) -> str:
    """The header for the user and password in a URL; "" without them."""
    user = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
    if not user:
        return ""
    import base64
    from urllib.parse import unquote

    return "Basic " + base64.b64encode(unquote(user).encode()).decode()


def _time_of(meta: Any) -> int:
    return int(meta["last_modified"].timestamp()) * 1_000_000_000


class Download(Remote, Readable):
    """A whole object, read by one request.

    If the connection ends early, obstore requests the rest, provided that the object is still the same.
    `size` is that of the object; `identity` changes when the object does.
    Errors: FastprofError.
    """

    is_live = False  # another request would have another answer

    def __init__(self, url: str) -> None:
        self._remote = _Remote(url)
        self.name = self._remote.name
        got = self._remote.get()
        self.size: int = got.meta["size"]
        self.identity = self._remote.identity_of(got.meta)
        self._chunks: Iterator[Any] = got.stream(_CHUNK)
        self._rest = memoryview(b"")
        self._at = 0
        self._whole = b""

    def fetch(self) -> None:
        """Read the whole object, which must fit into memory, for `again`."""
        self._whole = self.read()
        self._chunks = iter(())

    def again(self) -> Download:
        """A fetched object, from its beginning."""
        copied = copy(self)
        copied._rest, copied._at = memoryview(self._whole), 0
        return copied

    def _more(self) -> None:
        try:
            chunk = interruptible(lambda: next(self._chunks, b""))
        except Exception as error:
            if self._has_changed():
                raise faulty(self.name, "changed while it was read") from None
            if "body error" in str(error) or "not supported" in str(error):
                why = f"the connection ended after {self._at:,} of {self.size:,} bytes"
                raise_as(self.name, error, why)
            found = self._remote.failed(error)
            raise found from (None if found is error else error)
        self._rest = memoryview(chunk)
        if not self._rest and self._at != self.size:
            raise faulty(self.name, f"has {self._at:,} bytes, expected {self.size:,}")

    def _has_changed(self) -> bool:
        try:
            return self._remote.identity() != self.identity
        except FastprofError:
            return False  # another error

    def read(self, n: int = -1) -> bytes:
        if n < 0:
            return b"".join(iter(lambda: self.read(_CHUNK), b""))
        if n and not self._rest:
            self._more()
        part, self._rest = self._rest[:n], self._rest[n:]
        self._at += len(part)
        return bytes(part)

    def tell(self) -> int:
        return self._at

    def ranges(self) -> Ranges | None:
        """The object as a seekable stream; None if its server does not support ranges."""
        return _checked(Ranges(self._remote, self.size, self.identity))

    def close(self) -> None:
        self._chunks = iter(())


class Ranges(Remote, Readable):
    """An object as a seekable stream.  Each MiB read costs a request; recent blocks are cached.

    A copy has a position of its own and shares the blocks, so each thread can read by its own copy.
    """

    def __init__(self, remote: _Remote, size: int, identity: tuple[Any, ...]) -> None:
        self._remote, self.size, self.identity = remote, size, identity
        self._blocks: dict[int, memoryview] = {}
        self._lock = Lock()  # of _blocks
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def _block(self, number: int) -> memoryview:
        if number not in self._blocks:
            start = number * _BLOCK
            end = min(start + _BLOCK, self.size)

            def fetched() -> Any:
                try:
                    got = self._remote._obstore.get(
                        self._remote._store, self._remote._key, options={"range": (start, end)}
                    )
                except Exception as error:
                    if "ange request not supported" in str(error):
                        raise UsageError(f"{self._remote.name}: its server does not support ranges") from None
                    raise
                return got.meta, got.bytes()

            meta, data = self._remote._do(fetched)
            if self._remote.identity_of(meta) != self.identity:
                raise faulty(self._remote.name, "changed while it was read")
            if len(data) != end - start:
                raise faulty(self._remote.name, f"got {len(data):,} bytes, expected {end - start:,}")
            if len(self._blocks) == _KEPT:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = memoryview(data)
        return self._blocks[number]

    def read(self, n: int = -1) -> bytes:
        """Up to `n` bytes: fewer at the end of a block, none only at the end."""
        if self._at >= self.size or n <= 0:
            return b""
        number, offset = divmod(self._at, _BLOCK)
        with self._lock:
            block = self._block(number)
        part = bytes(block[offset : offset + n])
        self._at += len(part)
        return part

    def close(self) -> None:
        with self._lock:
            self._blocks.clear()


def ranges_of(url: str) -> Ranges | None:
    """An object of which only parts are read; None if it must be requested whole.

    That is so if the server does not support ranges, answers HEAD with an error (a signature is often for GET alone),
    or states no length.  Errors: FastprofError.
    """
    remote = _Remote(url)
    try:
        identity = remote.identity()
    except FastprofError:  # also "no such object", which is how obstore understands a status of 405
        return None
    return _checked(Ranges(remote, identity[2], identity)) if identity[2] else None


def _checked(ranges: Ranges) -> Ranges | None:
    """None if the server does not support ranges."""
    if not ranges.size:
        return ranges
    ranges.seek(ranges.size - 1)  # formats that seek begin at the end
    try:
        return ranges if ranges.read(1) else None
    except UsageError:
        return None


class _Aborted(Exception):
    """Makes obstore abort an upload, which removes its parts."""


class Upload:
    """An object that `commit` creates whole, or not at all.

    It is sent in parts while it is written if the server supports parts (s3, gs, az).  Objects of one part, and those
    at https or http, are sent by one request at the end.  Errors: FastprofError.
    """

    def __init__(self, url: str) -> None:
        self._remote = _Remote(url, to_write=True)
        self.name = self._remote.name
        self._part = bytearray()
        self._parts: Any = None  # a queue: bytes to send, None at the end, _Aborted
        self._done: Any = None  # a queue with one item: the result of the upload

    def write(self, data: bytes | memoryview) -> int:
        self._part += data
        if len(self._part) >= _PART and self._remote.in_parts:
            if self._parts is None:
                self._begin()
            self._give(self._part)
            self._part = bytearray()
        return len(data)

    def flush(self) -> None:
        """Nothing is visible before `commit`."""

    def _begin(self) -> None:
        from queue import Queue

        from fastprof.core.workers import begin

        self._parts, self._done = Queue(1), Queue(1)

        def parts() -> Iterator[bytearray]:
            while (part := self._parts.get()) is not None:
                if part is _Aborted:
                    raise _Aborted
                yield part

        def run() -> None:
            try:
                self._remote.put(parts(), use_multipart=True, chunk_size=_PART, max_concurrency=2)
                self._done.put(None)
            except BaseException as error:
                self._done.put(error)

        begin(run)

    def _give(self, part: Any) -> None:
        """Errors: FastprofError if the upload has failed."""
        from queue import Full

        while self._done.empty():
            try:
                return self._parts.put(part, timeout=0.1)  # type: ignore[no-any-return]
            except Full:
                pass
        self._end()

    def _end(self) -> None:
        error = self._done.get()
        self._parts = None
        if error is not None:
            raise self._remote.failed(error) from None

    def commit(self) -> None:
        if self._parts is None:
            data = bytes(self._part)
            self._remote._do(lambda: self._remote.put(data, use_multipart=False))
            return
        if self._part:
            self._give(self._part)
        self._give(None)
        self._end()

    def close(self) -> None:
        """Remove uncommitted data from the server, if it can be reached."""
        if self._parts is None:
            return
        try:
            self._give(_Aborted)
            self._done.get()
        except FastprofError:
            pass  # the upload has failed, which also aborts it
        self._parts = None
