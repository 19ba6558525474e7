"""Stores: many profiles in one archive."""

from __future__ import annotations

import os
from collections.abc import Iterable

from fastprof.core._typing import TYPE_CHECKING, Any, Literal, Unpack
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.options import LENIENT, Option
from fastprof.core.urls import shown
from fastprof.formats.archive.read import ArchiveReader
from fastprof.inputs import refuse_uncallable
from fastprof.inputs.state import State
from fastprof.inputs.stored import may_be_store
from fastprof.plan import known_options
from fastprof.store import adding, compact, listing
from fastprof.store.compact import Done
from fastprof.verbs.run import listed

if TYPE_CHECKING:
    from fastprof.verbs.keywords import (
        ArchiveAddOptions,
        ArchiveExtractOptions,
        Inputs,
        Progress,
        ReadFormat,
        WrittenFormat,
    )

    Path = str | os.PathLike[str]
    Names = str | Iterable[str]


def _ignored(name: str, n: int, of: int) -> None:
    pass


def extracting_options() -> list[Option[Any]]:
    """The options of `archive_extract`."""
    return [option for option in known_options() if option.name != "member"]


def archive_add(
    store: Path,
    inputs: Inputs,
    *,
    name: str | None = None,
    from_: ReadFormat | None = None,
    skip_existing: bool = False,
    replace: bool = False,
    keep_going: bool = False,
    progress: Progress | None = None,
    done: Done = _ignored,
    **options: Unpack[ArchiveAddOptions],
) -> Log:
    """Add profiles, files and folders, to a store, which is created if missing.

    A profile is named after its file, relative to the given folder; `name` names a single one.  A name that is taken
    is an error, before anything is added; with `skip_existing` the input is skipped, with `replace` it replaces the
    profile.  With `keep_going` inputs that cannot be added are skipped and counted as losses.  `log.facts` has how
    many were `added`, `replaced` and `left_out`.  `progress` is called with each input that is opened, `done` after
    each profile, with its name, its number, and that of all.
    Errors: FastprofError and its kinds; what was added before is in the store.

    >>> import fastprof
    >>> fastprof.archive_add("all.fpa", "tests/corpus/callgrind/good/cfi.callgrind", name="mon").facts["added"]
    1
    """
    return adding.add(
        os.fspath(store),
        listed(inputs),
        name=name,
        from_=from_,
        skip_existing=skip_existing,
        replace=replace,
        keep_going=keep_going,
        progress=progress,
        done=done,
        **options,
    )


def archive_list(
    store: Path,
    names: Names = (),
    *,
    sort: Literal["name", "added", "format", "date", "rows", "size"] = "name",
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """The profiles of a store, all or those of these names or patterns, by name or as `sort` requests, without reading
    rows.

    Each has name, view, rows, stored_bytes and, if known, format, nbytes, mtime, totals and times.  `progress` is
    accepted, but never called: no profile is read.
    Errors: FastprofError and its kinds, also for a name that no profile has.

    >>> import fastprof
    >>> log = fastprof.archive_add("list.fpa", "tests/corpus/callgrind/good/cfi.callgrind")
    >>> [(found["name"], found["rows"], found["totals"]) for found in fastprof.archive_list("list.fpa", "*.callgrind")]
    [('cfi.callgrind', 3, {'Ir': 14, 'Dr': 6})]
    """
    refuse_uncallable(progress)
    return listing.members(os.fspath(store), listed(names), sort=sort)


def archive_rm(store: Path, names: Names, *, progress: Progress | None = None) -> list[str]:
    """Remove the profiles of these names or patterns from a store.  Returns their names.

    `archive_compact` frees their space.  `progress` is accepted, but never called: no profile is read.
    Errors: FastprofError and its kinds, also for a name that no profile has; then nothing is removed.

    >>> import fastprof
    >>> log = fastprof.archive_add("rm.fpa", "tests/corpus/callgrind/good/cfi.callgrind")
    >>> fastprof.archive_rm("rm.fpa", "cfi*")
    ['cfi.callgrind']
    """
    refuse_uncallable(progress)
    return compact.remove(os.fspath(store), listed(names))


def archive_extract(
    store: Path,
    names: Names,
    output: Path,
    *,
    from_: ReadFormat | None = None,
    to: WrittenFormat | None = None,
    progress: Progress | None = None,
    done: Done = _ignored,
    **options: Unpack[ArchiveExtractOptions],
) -> Log:
    """Write the profile of this name to `output`, or each of several to OUTPUT/NAME.SUFFIX, as `to`.

    `output` is a folder if it is one, ends in a slash, or several profiles match.  `log.facts["extracted"]` has their
    names.  `progress` is called with each profile that is opened; `done` after each of several, as by `archive_add`.
    Errors: FastprofError and its kinds; for a name that leads out of the folder, before anything is written.

    >>> import fastprof
    >>> log = fastprof.archive_add("extract.fpa", "tests/corpus/callgrind/good/cfi.callgrind")
    >>> log = fastprof.archive_extract("extract.fpa", "cfi.callgrind", "cfi.folded")
    >>> open("cfi.folded").read()
    'f 5\\nf;g 9\\n'
    """
    from fastprof.verbs.convert import convert
    from fastprof.verbs.extract import extract

    path: Any = os.fspath(store)
    output, found, given = os.fspath(output), listed(names), dict(options)
    if not found:
        raise UsageError(f"{shown(os.fspath(store))}: no profile is named")
    if may_be_store(path):
        state = State(path, lenient=given.get(LENIENT.name) is True)
        found, path = [str(one.name) for one in state.inputs(found)], state.input(None)
    if len(found) > 1 or os.path.isdir(output) or output.endswith("/"):
        if output == "-":
            raise UsageError(f"{shown(os.fspath(store))}: {len(found):,} profiles need an output directory: -o DIR")
        log = extract(path, found, output, to=to, done=done, progress=progress, **given)
    else:
        how: Any = {**given, "member": found[0], "from_": from_ or ArchiveReader.format}
        log = convert([path], output, to=to, progress=progress, **how)
    log.facts["extracted"] = found
    return log


def archive_compact(store: Path, *, progress: Progress | None = None, done: Done = _ignored) -> tuple[int, int]:
    """Free the space of removed and replaced profiles of a store.  Returns its size before and after.

    `progress` is called with the store; `done` after each profile, with its name, its number, and that of all.
    Errors: FastprofError and its kinds; then the store stays as it was.

    >>> import fastprof
    >>> log = fastprof.archive_add("compact.fpa", "tests/corpus/callgrind/good/cfi.callgrind")
    >>> removed = fastprof.archive_rm("compact.fpa", "*")
    >>> before, after = fastprof.archive_compact("compact.fpa")
    >>> after < before
    True
    """
    refuse_uncallable(progress)
    return compact.compact(os.fspath(store), done, progress)


def archive_verify(
    store: Path, names: Names = (), *, progress: Progress | None = None, done: Done = _ignored
) -> list[dict[str, Any]]:
    """Check all checksums of a store, and every row of its profiles, or of those of these names or patterns.

    Returns the errors in the order of the file: "error", and "name" of the profile if it belongs to one.  `progress`
    is called with the store, and with each profile that is read; `done` after each, as by `archive_add`.
    Errors: FastprofError and its kinds, if its index cannot be read.

    >>> import fastprof
    >>> log = fastprof.archive_add("verify.fpa", "tests/corpus/callgrind/good/cfi.callgrind")
    >>> fastprof.archive_verify("verify.fpa")
    []
    """
    refuse_uncallable(progress)
    return compact.verify(os.fspath(store), listed(names), done, progress)
