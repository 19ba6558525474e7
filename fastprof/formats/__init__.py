"""The registry: formats by name, by what an input begins with, by suffix; only `heads.py` next to it lists them.

A format is a folder of this package, listed in `heads.py`.  Its `__init__.py`, the registration, has `FORMATS`.
The registrations that may lead to an input, by what `heads.py` states, are imported to recognize it, so they import
nothing heavy. CONTRIBUTING.md explains how to add one.
"""

import os
from collections.abc import Callable
from functools import cache

from fastprof.core.engine import NO, Format
from fastprof.core.errors import UnrecognizedError, UsageError, hexdump
from fastprof.core.loaded import loaded
from fastprof.core.messages import Message
from fastprof.core.reported import Entry
from fastprof.core.source import Source
from fastprof.core.streams import compression_of_name
from fastprof.core.urls import shown
from fastprof.formats.heads import CLAIMING, HEADS

# Alternative names of formats, after the tools that read or write them.
_ALIASES = {
    "kcachegrind": "callgrind",
    "qcachegrind": "callgrind",
    "xdebug": "callgrind",
    "collapsed": "folded",
    "flamegraph": "folded",
    "proto": "pprof",
    "chrome": "trace-event",
    "fpa": "archive",
    **dict.fromkeys(("nsys", "rocpd", "rpd"), "gpu-sqlite"),
    **dict.fromkeys(("bpftrace", "bcc", "dtrace"), "tracer-stacks"),
}


@cache
def _of_folder(folder: str) -> tuple[Format, ...]:
    """The formats of a folder, whose registration is opened."""
    package = f"{__name__}.{folder}"
    return tuple(one._replace(package=package) for one in loaded(package).FORMATS)


@cache
def _by_name() -> dict[str, Format]:
    return {one.name: one for folder in HEADS for one in _of_folder(folder)}


def _of_folders(known: Callable[[str], bool]) -> list[Format]:
    """The formats of the folders that are `known` to be needed."""
    return [one for folder in HEADS if known(folder) for one in _of_folder(folder)]


def get(name: str) -> Format:
    """The format with this name.  Errors: UsageError, which lists the names."""
    for folder, (names, _) in HEADS.items():
        if name in names:
            return next(one for one in _of_folder(folder) if one.name == name)
    if name not in _by_name() and name in _plugins():
        return _plugins()[name]
    if name not in _by_name():
        from fastprof.core.messages import nearest

        low = str(name).lower()
        meant = _ALIASES.get(low) or nearest(low, _by_name())
        hint = f" (did you mean {meant}?)" if meant else ""
        raise UsageError(f"unknown format {name!r:.80}{hint}, expected {', '.join(_by_name())}")
    return _by_name()[name]


def formats() -> list[Format]:
    """All formats, with their names, and what each reads, writes and holds.

    >>> [(f.name, f.view) for f in formats() if f.reader and not f.writer][:3]
    [('perf', 'stacks'), ('perf-script', 'stacks'), ('simpleperf', 'stacks')]
    """
    return [*_by_name().values()]


def _plugins() -> dict[str, Format]:
    """The formats of other packages, without those that have the name of an own one."""
    from fastprof.formats.plugins import plugins

    return {name: f for name, f in plugins().items() if name not in _by_name()}


def listed() -> list[Format]:
    """All formats and those of plug-ins."""
    return [*formats(), *_plugins().values()]


def reported_by(name: str) -> dict[str, Entry]:
    """The entries in logs of reading and writing the format, by code.  Errors: UsageError, as `get`."""
    from importlib.util import find_spec

    if not get(name).package:  # of a plug-in
        return {}
    table = f"{get(name).package}.reported"
    found: dict[str, Entry] = loaded(f"{table}:REPORTED") if find_spec(table) else {}
    return found


def of_directory(path: str) -> Format | None:
    """The format that reads a directory as one input; None if each file is an input."""
    return next((f for f in _of_folders(CLAIMING.__contains__) if f.claims and f.claims(path)), None)


def claimants(source: Source) -> list[str]:
    """The formats that claim the first bytes, of those the ones that are sure."""
    head = source.head
    claims = _claims(head, _of_folders(lambda folder: any(one.fits(head) for one in HEADS[folder][1])))
    if not claims and source.extend_head():
        claims = _claims(source.head, [f for f in formats() if f.long_lines])
    surest = max(claims)[0] if claims else NO
    return [name for sure, name in claims if sure == surest]


def _claims(head: bytes, candidates: list[Format]) -> list[tuple[int, str]]:
    return [(sure, f.name) for f in candidates if f.sniff and (sure := f.sniff(head)) != NO]


_CHECKED = 64 << 20  # bytes


def detect(source: Source) -> Format:
    """The format that claims the first bytes, or the directory.

    Errors: UnrecognizedError; FormatError if no format does because compression is damaged."""
    if source.folder is not None:
        if found := of_directory(source.path or ""):
            return found
        raise UnrecognizedError(
            f"{source.name}: a directory that is not a profile of a known format; "
            "`fastprof merge` and `top` read the files in it"
        )
    names = claimants(source) or [name for _, name in _claims(source.head, [*_plugins().values()])]
    if len(names) == 1:
        return get(names[0])
    if names:
        raise UnrecognizedError(
            Message(
                "{file}: the format is ambiguous: {names}; choose one with {--from}",
                file=source.name,
                names=", ".join(names),
            )
        )
    if named := next(
        (f for f in formats() if f.could_be and _is_named(source.name, f) and f.could_be(source.head)), None
    ):
        return named
    if not source.head:
        raise UnrecognizedError(f"{source.name}: the file is empty")
    if source.compression:
        source.select(_CHECKED)  # raises for damage, of which the unknown bytes may come
    from fastprof.formats.foreign import known

    what = known(source.head)
    if what:
        raise UnrecognizedError(Message("{file}: this is {what}", file=source.name, what=what))
    raise UnrecognizedError(
        Message(
            "{file}: unknown format (begins with {head}); name it with {--from}, see `fastprof formats`",
            file=source.name,
            head=hexdump(source.head[:16]),
        )
    )


def _is_named(name: str, format_: Format) -> bool:
    return name.removesuffix(compression_of_name(name)).endswith(format_.suffixes)


def for_output(path: str) -> Format:
    """The format that an output's suffix selects.  Errors: UsageError."""
    path = shown(path)
    name = os.path.basename(path)
    plain = name.removesuffix(compression_of_name(name))
    for candidates in ([name], [plain]):
        for f in formats():
            if not f.writer:
                continue
            for candidate in candidates:
                if any(candidate.endswith(s) for s in f.suffixes) or any(candidate.startswith(p) for p in f.prefixes):
                    return f
    suffix = os.path.splitext(plain)[1]
    alike = [f"{s} ({f.name})" for f in formats() if f.writer for s in f.suffixes if suffix and s.endswith(suffix)]
    if suffix in (".html", ".svg"):
        alike = ["`fastprof report` writes a page with a flame graph"]
    hint = f"; {', '.join(alike)}" if alike else ""
    raise UsageError(
        Message(
            "{path}: no output format has this suffix{hint}; use {--to}, see `fastprof formats`",
            path=path,
            hint=hint,
        )
    )
