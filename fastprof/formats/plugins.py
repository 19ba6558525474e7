"""Formats of other packages: entry points of the group `fastprof.formats`, each a Plugin.

    [project.entry-points."fastprof.formats"]
    mylog = "mypackage:PLUGIN"

They are loaded when no own format claims an input, when a format is named that is no own one, and to be listed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from fastprof.core._typing import IO, Any, NamedTuple
from fastprof.core.engine import NO, SURE, Format
from fastprof.core.errors import FastprofError

GROUP = "fastprof.formats"


class Plugin(NamedTuple):
    """A format that another package reads.

    `sniff` gets the first 4 KiB of an input, decompressed, and returns whether they are of the format.  `read` gets a
    binary file and returns a profile that was made (`from_stacks`, `from_spans` ...).  `suffixes` are those of names,
    as ".mylog"; `title` is for lists.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Callable[[IO[bytes]], Any]
    title: str = ""


@cache
def plugins() -> dict[str, Format]:
    """The formats of plug-ins by name.  Errors: FastprofError for a plug-in that cannot be loaded, or is none."""
    from importlib.metadata import entry_points

    found: dict[str, Format] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        where = f"plug-in {entry.name} ({entry.value})"
        try:
            plugin = entry.load()
        except Exception as error:
            raise FastprofError(f"{where}: {type(error).__name__}: {error}") from error
        if not isinstance(plugin, Plugin):
            raise FastprofError(f"{where}: is {type(plugin).__name__}, expected fastprof.Plugin")
        found[plugin.name] = _format(plugin, where)
    return found


def _format(plugin: Plugin, where: str) -> Format:
    def sniff(head: bytes) -> int:
        try:
            return SURE if plugin.sniff(head) else NO
        except Exception as error:
            raise FastprofError(f"{where}: sniff: {type(error).__name__}: {error}") from error

    title = plugin.title or "read by a plug-in"
    return Format(plugin.name, "any", title, (*plugin.suffixes,), sniff, converter=plugin.read, plugin=where)
