"""SymCaches on disk: what symbolic made of the debug information of a build, for the next process.

    $XDG_CACHE_HOME/fastprof/symcaches/BUILD_ID-SIZE-VERSION       default: ~/.cache

SIZE is that of the file that the debug information is in: a build may have it with more or less of that.  VERSION is
that of symbolic's format.  A file appears whole or not at all, so any number of processes may read and write.  Beyond a
limit those that were used longest ago are deleted.  Where the directory cannot be written, nothing is kept.
"""

from __future__ import annotations

import os
from contextlib import suppress

from fastprof.core._typing import Any

LEAST = 1 << 18  # bytes of debug information; less is read as fast as a SymCache is opened
MOST = 1 << 29  # bytes of all SymCaches together


def directory() -> str:
    """Where SymCaches are kept; "" for nowhere."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "fastprof", "symcaches") if os.path.isabs(cache) else ""


def symcache(path: str, build_id: str, nbytes: int) -> Any:
    """symbolic's SymCache of a file with `nbytes` of debug information.

    Errors: SymbolicError for debug information that cannot be read; StopIteration for a file without an object.
    """
    from symbolic.debuginfo import Archive

    folder = directory() if build_id and nbytes >= LEAST else ""
    place = _place(folder, path, build_id) if folder else ""
    if place and (known := _open(place)):
        return known
    made = next(Archive.open(os.fsencode(path)).iter_objects()).make_symcache()
    if place:
        with suppress(OSError):
            _keep(made, folder, place)
    return made


def _place(folder: str, path: str, build_id: str) -> str:
    from symbolic.symcache import SYMCACHE_LATEST_VERSION

    try:
        size = os.stat(path).st_size
    except OSError:
        return ""
    return os.path.join(folder, f"{build_id}-{size}-{SYMCACHE_LATEST_VERSION}")


def _open(place: str) -> Any:
    """The SymCache that is kept there, or None."""
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
        os.utime(place)  # it is the one that was used last
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
    """Delete what was used longest ago, until no more than MOST is left."""
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
