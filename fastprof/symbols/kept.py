"""Answers about large programs on disk, by build id: the next profile of a program does not read its debug information.

A file of the folder $XDG_CACHE_HOME/fastprof/symbols (default: ~/.cache) has the addresses of one program that were
looked up, with their functions and lines.  It is used only if the program and its debug file are the same files as
then (device, inode, size, time of the last change of content and of status), and so are the version, the demangler
and its style: an answer never depends on it.

The folder belongs to the user alone: it, its parent and its files are the user's and have no rights for others, no
link is followed, and files appear whole.  Anything else is ignored, and replaced at the next write if it can be.  All
files together have at most MOST bytes; the oldest ones make room.  FASTPROF_SYMBOL_CACHE=0 turns it off.
"""

from __future__ import annotations

import os
import stat
import sys
from array import array
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from itertools import pairwise
from secrets import token_hex

from fastprof.core.version import __version__
from fastprof.symbols.symbol import Chains

MOST = 64 << 20  # bytes of all files
LARGEST = 16 << 20  # of one
LEAST = 4 << 20  # bytes of a program that is worth it
_MAGIC = b"fastprof symbols 1 " + sys.byteorder.encode() + b"\n"
_DIGEST = 32
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_PREFIX = ".new-"


def identity(facts: list[object]) -> bytes:
    """The head of a file with answers that depend on these facts."""
    return _MAGIC + repr([__version__, _demangler(), *facts]).encode("utf-8", "surrogateescape") + b"\n"


@cache
def _demangler() -> list[object]:
    found = find_spec("pycxxfilt")
    return of_file(os.stat(found.origin)) if found and found.origin else []


def of_file(at: os.stat_result) -> list[object]:
    return [at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns]


def load(name: str, head: bytes, chains: Chains) -> None:
    """Fill `chains` with what a file has; they stay empty if it is missing, damaged, foreign or of other facts."""
    folder = _folder(make=False)
    if folder is None:
        return
    try:
        data = _read(folder, name)
    finally:
        os.close(folder)
    _unpack(data, head, chains)


def _unpack(data: bytes | None, head: bytes, chains: Chains) -> None:
    """Check everything before anything is added."""
    if data is None or not data[_DIGEST:].startswith(head):
        return
    if blake2b(data[_DIGEST:], digest_size=_DIGEST).digest() != data[:_DIGEST]:
        return
    at = _DIGEST + len(head)
    columns = [array(kind) for kind in "QQIIQ"]  # addresses, ends of their chains, chains, first lines, ends of texts
    if len(data) < at + 8 * len(columns):
        return
    sizes = array("Q", data[at : at + 8 * len(columns)])
    at += 8 * len(columns)
    if at + sum(sizes) > len(data):
        return
    for column, size in zip(columns, sizes, strict=True):
        if size % column.itemsize:
            return
        column.frombytes(data[at : at + size])
        at += size
    addresses, bounds, words, first_lines, ends = columns
    texts = data[at:]
    if len(bounds) != len(addresses) or len(ends) != 3 * len(first_lines) + 1 or ends[0] or ends[-1] != len(texts):
        return
    if any(a > b for a, b in pairwise(ends)) or any(a >= b for a, b in pairwise([0, *bounds])):
        return
    if (bounds[-1] if bounds else 0) != len(words):
        return
    found = {}
    for address, (start, end) in zip(addresses, pairwise([0, *bounds]), strict=True):
        chain = words[start:end]
        if len(chain) != 1 + 2 * chain[0] or any(number >= len(first_lines) for number in chain[1::2]):
            return
        found[address] = chain.tobytes()
    chains.restore(found, bytearray(texts), ends, first_lines)


def save(name: str, head: bytes, chains: Chains) -> None:
    """Write what `chains` have, unless that is too much.  Never fails: the next run looks up again."""
    with chains.lock:
        addresses, bounds, words = array("Q", chains.at), array("Q"), b"".join(chains.at.values())
        end = 0
        for chain in chains.at.values():
            end += len(chain) // 4
            bounds.append(end)
        columns = [addresses.tobytes(), bounds.tobytes(), words, chains.first_lines.tobytes(), chains.ends.tobytes()]
        body = b"".join([head, array("Q", map(len, columns)).tobytes(), *columns, chains.texts])
    if len(body) + _DIGEST > LARGEST:
        return
    folder = _folder(make=True)
    if folder is None:
        return
    try:
        _write(folder, name, blake2b(body, digest_size=_DIGEST).digest() + body)
        _make_room(folder, name)
    except OSError:
        pass
    finally:
        os.close(folder)


# ---- the folder


def _folder(*, make: bool) -> int | None:
    """A descriptor of the folder; None: turned off, missing, or not the user's alone."""
    if os.environ.get("FASTPROF_SYMBOL_CACHE") == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
        if not os.path.isabs(base):
            return None
    try:
        if make:
            os.makedirs(base, 0o700, exist_ok=True)
        at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    for name in ("fastprof", "symbols"):
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=at)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=at)
        except OSError:
            return None
        finally:
            os.close(at)
        at = inner
        if not _is_private(os.fstat(at)):
            os.close(at)
            return None
    return at


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _read(folder: int, name: str) -> bytes | None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=folder)
    except OSError:
        return None
    with open(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or not _is_private(found) or found.st_nlink != 1 or found.st_size > LARGEST:
            return None
        try:
            return opened.read(LARGEST + 1)
        except OSError:
            return None


def _write(folder: int, name: str, data: bytes) -> None:
    """Errors: OSError."""
    new = _PREFIX + token_hex(8)
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
    try:
        with open(file, "wb") as opened:
            opened.write(data)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(new, dir_fd=folder)
        raise


def _make_room(folder: int, kept: str) -> None:
    """Remove the oldest files, but not this one, while all are more than MOST.  Errors: OSError."""
    files = []
    for name in os.listdir(folder):
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue
        files.append((found.st_mtime_ns, name, found.st_size))
    total = sum(size for _, _, size in files)
    for _, name, size in sorted(files):
        if total <= MOST:
            break
        if name != kept:
            os.unlink(name, dir_fd=folder)
            total -= size
