"""The text of a sample profile (llvm-profdata's --text)."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.core._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastprof.formats.pgo.levels import Level, Location, Profile


def text(profile: Profile) -> Iterator[bytes]:
    """One function after the other.  Places ascend, a count before what is nested there; targets by falling count."""
    for name, level in profile.sorted():
        yield f"{name}:{level.total}:{level.head}\n".encode("utf-8", "surrogateescape")
        yield from _lines(level)


def _lines(level: Level) -> Iterator[bytes]:
    waiting = [(level, iter(_places(level)), " ")]
    while waiting:
        level, places, blanks = waiting[-1]
        at = next(places, None)
        if at is None:
            waiting.pop()
            continue
        (offset, discriminator), inlinee = at
        place = f"{blanks}{offset}.{discriminator}: " if discriminator else f"{blanks}{offset}: "
        if inlinee:
            inner = level.nested[at[0]][inlinee]
            yield f"{place}{inlinee}:{inner.total}\n".encode("utf-8", "surrogateescape")
            waiting.append((inner, iter(_places(inner)), blanks + " "))
        else:
            calls = "".join(f" {name}:{count}" for name, count in level.sorted_targets(at[0]))
            yield f"{place}{level.body[at[0]]}{calls}\n".encode("utf-8", "surrogateescape")


def _places(level: Level) -> list[tuple[Location, str]]:
    return sorted([*((at, "") for at in level.body), *((at, name) for at in level.nested for name in level.nested[at])])
