"""Checks that many outputs get distinct paths below one folder."""

import os
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache

from fastprof.core.errors import FastprofError
from fastprof.core.made_folders import PrivateFolder
from fastprof.core.urls import is_url


def invalid_because(name: str) -> str | None:
    """Why a name cannot be that of a file below the output folder; None if it can."""
    if "\0" in name:
        return "has a NUL byte"
    try:
        if not name.isascii():
            os.fsencode(name)
    except UnicodeEncodeError:
        return "has a character that no file name can have"
    if name.startswith("/") or (".." in name and ".." in name.split("/")):
        return "leads out of the output folder"
    return None


def is_at(path: str, other: str) -> bool:
    """Whether two paths are one file."""
    with suppress(OSError, ValueError):  # ValueError: a NUL byte
        return os.path.samefile(path, other)
    return False


def clash(outputs: Iterable[tuple[str, str]], outdir: str, advice: str = "") -> str | None:
    """Why these outputs cannot all be written below `outdir`; None if they can.

    `outputs` are pairs of a path below `outdir` and its input, for messages; `advice` ends the message about two inputs
    with one output.  Two paths are equal if they differ only in "." or "//", lead to one folder through a symbolic
    link, or differ only in what the file system ignores: case, or the encoding of accents.
    """
    is_remote = is_url(outdir)  # a store of objects tells all names apart
    real = _as_it_is if is_remote else lru_cache(maxsize=None)(os.path.realpath)
    placed = []
    for output, of in outputs:
        folder, name = os.path.split(os.path.join(outdir, output))
        placed.append((os.path.join(real(folder), name), output, of))
    found = _clash(placed, outdir, advice)
    if found is not None or is_remote:
        return found
    if _clash([(folded(path), output, of) for path, output, of in placed], outdir, advice):
        # Only now, because finding out creates a file.
        fold = _folding_of(outdir)
        found = _clash([(fold(path), output, of) for path, output, of in placed], outdir, advice)
    return found


def _clash(placed: list[tuple[str, str, str]], outdir: str, advice: str) -> str | None:
    first: dict[str, tuple[str, str]] = {}
    for path, output, of in placed:
        if path in first:
            where = os.path.join(outdir, os.path.normpath(output))
            return f"{first[path][1]} and {of} would both become {where}{advice}"
        first[path] = output, of
    folders: set[str] = set()
    for path in first:
        while (folder := os.path.dirname(path)) != path and folder not in folders:
            if folder in first:
                output, of = first[folder]
                return f"{of} would become {os.path.join(outdir, output)}, which is the folder of another output"
            folders.add(folder)
            path = folder
    return None


def _case(path: str) -> str:
    return path.casefold()


def _composed(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def folded(path: str) -> str:
    """The same for all paths that are one for some file system."""
    if path.isascii():
        return path.lower()
    # normalized again: folding may leave decomposed characters
    return _composed(_case(_composed(path)))


def _as_it_is(path: str) -> str:
    return path


def _folding_of(outdir: str) -> Callable[[str], str]:
    """A function that maps paths to equal texts if the file system of `outdir` does not distinguish them."""
    there = os.path.abspath(outdir)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    with suppress(OSError, FastprofError), PrivateFolder(".fastprof-", there) as probe:
        for name in ("a", "\u00e9"):
            open(os.path.join(probe, name), "xb").close()
        case, form = (os.path.lexists(os.path.join(probe, name)) for name in ("A", "e\u0301"))
        return {(True, True): folded, (True, False): _case, (False, True): _composed}.get((case, form), _as_it_is)
    return _as_it_is
