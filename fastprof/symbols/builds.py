"""Whether the programs that were found are the builds that were recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.unknown_names import text_of

if TYPE_CHECKING:
    from fastprof.core.model import Model
    from fastprof.symbols.binaries import Binaries


class Builds(NamedTuple):
    """Sentences: `stale` about files that are other builds than the recorded objects, `mixed` about objects of which
    several builds were recorded."""

    stale: list[str]
    mixed: list[str]


def builds(model: Model, binaries: Binaries, objects: Iterable[int]) -> Builds:
    """About objects that have costs."""
    ids: dict[str, set[str]] = {}
    stale: dict[str, None] = {}
    for object_ in sorted(objects):
        name, build_id = (text_of(model.string(i)) for i in model.row("objects", object_))
        if name and build_id:
            ids.setdefault(os.path.basename(name), set()).add(build_id)
        stale.update(dict.fromkeys(_stale(model, binaries, object_, name, build_id)))
    mixed = [
        f"{name}: {len(found)} builds ({', '.join(sorted(found))})" for name, found in ids.items() if len(found) > 1
    ]
    return Builds([*stale], mixed)


def _stale(model: Model, binaries: Binaries, object_: int, name: str, build_id: str) -> Iterator[str]:
    elf, reason = binaries.find(object_) if object_ else binaries.program()
    if elf is None:
        if "wrong build id" in reason:
            yield reason
    elif build_id and elf.build_id:
        if elf.build_id.rstrip("0") != build_id.rstrip("0"):  # perf fills short ones with zeros
            yield f"{elf.path}: build id is {elf.build_id}, the profile's {name} has {build_id}"
    elif elf.stat and elf.stat.st_mtime_ns > min(_recorded(model), default=elf.stat.st_mtime_ns):
        yield f"{elf.path} is newer than the profile"


def _recorded(model: Model) -> list[int]:
    return [part.extra["time_ns"] for part in model.parts if part.extra.get("time_ns")]
