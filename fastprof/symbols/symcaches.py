"""SymCaches on disk: symbolic's index of a build's debug information, cached for the next process.

    $XDG_CACHE_HOME/fastprof/symcaches/DIGEST-VERSION       default: ~/.cache

DIGEST covers the bytes that symbolic reads (ElfFile.digest), because any file may claim any build id.  It takes a
twentieth of the time of making a SymCache.  VERSION is that of symbolic's format.  A file appears whole or not at all,
so any number of processes may read and write.  Beyond a limit the least recently used ones are deleted.  If the
directory is not writable, nothing is cached.
"""

from __future__ import annotations

import os
from contextlib import suppress

from fastprof.core._c import ffi
from fastprof.core._typing import Any
from fastprof.symbols.elf import ElfFile

LEAST = 1 << 18  # bytes of debug information; less is read as fast as a SymCache is opened
MOST = 1 << 29  # bytes of all SymCaches together


def directory() -> str:
    """The directory of SymCaches; "" for none."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "fastprof", "symcaches") if os.path.isabs(cache) else ""


def symcache(source: ElfFile, nbytes: int) -> Any:
    """symbolic's SymCache of a file with `nbytes` of debug information.

    Errors: SymbolicError for debug information that cannot be read; StopIteration for a file without an object.
    """
    from symbolic.debuginfo import Archive
    from symbolic.symcache import SYMCACHE_LATEST_VERSION

    folder = directory() if nbytes >= LEAST else ""
    place = os.path.join(folder, f"{source.digest()}-{SYMCACHE_LATEST_VERSION}") if folder else ""
    if place and (known := _open(place)):
        return known
    from_bytes: Any = Archive.from_bytes  # takes a pointer as well
    # the bytes of the digest, not those of a new file at the same path
    content = ffi.from_buffer("uint8_t[]", source.content)
    made = next(from_bytes(content).iter_objects()).make_symcache()
    if place and source.is_unchanged:
        with suppress(OSError):
            _keep(made, folder, place)
    return made


def _open(place: str) -> Any:
    """The cached SymCache, or None."""
    from symbolic.exceptions import SymbolicError
    from symbolic.symcache import SymCache

    open_: Any = SymCache.open  # has no types
    try:
        if not os.path.exists(place):
            return None
        known = open_(os.fsencode(place))
    except (OSError, SymbolicError):
        return None  # it is made again
    with suppress(OSError):  # the directory of another user
        os.utime(place)  # marks it as the most recently used
    return known


def _keep(made: Any, folder: str, place: str) -> None:
    import tempfile

    os.makedirs(folder, mode=0o700, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".new-", delete=False) as file:
        try:
            made.dump_into(file)
            file.flush()
            os.fsync(file.fileno())  # else a name without the bytes may be left when the power fails
            file.close()
            os.replace(file.name, place)
        except BaseException:
            os.unlink(file.name)
            raise
    _forget(folder)


def _forget(folder: str) -> None:
    """Delete the least recently used until at most MOST is left."""
    kept = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process has deleted it
            kept.append((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path))
    left = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept)[:-1]:
        if left <= MOST:
            break
        with suppress(OSError):
            os.unlink(path)
            left -= size
