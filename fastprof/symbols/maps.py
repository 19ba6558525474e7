"""The text that lists mapped objects, as in /proc/PID/maps and in profiles."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastprof.core._typing import NamedTuple

_HEX = rb"(?:0x)?([0-9a-fA-F]+)"
_RANGE = rb"\s*" + _HEX + rb"[\s-]\s*" + _HEX + rb":?"
# Lines come from files, so no pattern may look at a text again for each place in it: what could be split in more than
# one way is split only here, or by hand.
# Patterns are compiled when they are first used, because this module is imported to recognize any input.
# 08048000-08049000 r-xp 00001000 08:01 4711   /path with blanks
_MAPS_LINE = _RANGE + rb"\s+([-rwxps]{3,5})\s+([0-9a-fA-F]+)\s+\S[^\s:]*:\S++\s+\d+(?:\s+(.*))?$"
# 0x8048000-0x8049000: r-xp /path (@1000) 1a2b3c
_BRIEF_LINE = _RANGE + rb"(?:\s+([-rwxps]{3,5})(?=\s+\S))?\s+(\S.*)$"
_OFFSET = rb"\(@([0-9a-fA-F]+)\)"
_BUILD_ID = rb"([0-9a-fA-F]{8,})"
_BUILD = rb"\s*build=(.*)$"
_LOG_PREFIX = rb"\S:\d+\] "
_LONGEST_LINE = 1 << 16  # after $build was replaced: more than a path, a build id and what is around them
_SHARED_OBJECT = rb"\.so$|\.so[._][0-9]+"
_LIMIT = 1 << 64


class MappedObject(NamedTuple):
    """The addresses [start, limit) hold `path` from byte `offset` on; `executable` as the line says."""

    start: int
    limit: int
    offset: int
    path: bytes
    build_id: bytes = b""
    executable: bool = True


class MapsText:
    """Reads the list of mapped objects line by line.  `unknown` counts lines that are not understood."""

    def __init__(self) -> None:
        self.objects: list[MappedObject] = []
        self.unknown = 0
        self._build = b""

    def line(self, line: bytes) -> None:
        line = line.rstrip(b"\r\n")
        if not line.strip():
            return
        if assigned := re.match(_BUILD, line):
            self._build = assigned[1].strip()
            return
        # $build stands for the text of the last build= line; $builder is something else
        pieces = re.split(rb"\$build(?!\w)", line)
        if len(line) + len(pieces) * len(self._build) <= _LONGEST_LINE:
            line = self._build.join(pieces)
        found = self._parse(line)
        if found is None and (logged := re.search(_LOG_PREFIX, line)):
            found = self._parse(line[logged.end() :])
        if found is None:
            self.unknown += 1
        else:
            self.objects.append(found)

    @staticmethod
    def _parse(line: bytes) -> MappedObject | None:
        if m := re.match(_MAPS_LINE, line):
            start, limit, permissions, offset, path = m.groups()
            build_id = None
        elif m := re.match(_BRIEF_LINE, line):
            start, limit, permissions, path = m.groups()
            path, build_id = _last_word(path, _BUILD_ID)
            path, offset = _last_word(path, _OFFSET)
        else:
            return None
        numbers = int(start, 16), int(limit, 16), int(offset or b"0", 16)
        if max(numbers) >= _LIMIT or numbers[0] >= numbers[1]:
            return None
        path = (path or b"").strip().removesuffix(b" (deleted)")
        return MappedObject(*numbers, path, build_id or b"", permissions is None or b"x" in permissions)


def _last_word(text: bytes, pattern: bytes) -> tuple[bytes, bytes | None]:
    """The text before its last word, and the group in that word, if it matches; else the text and None."""
    before, *last = text.rsplit(None, 1)
    if not last or not text.endswith(last[0]) or not (m := re.fullmatch(pattern, last[0])):
        return text, None
    return before, m[1]


def arrange(objects: Iterable[MappedObject]) -> list[MappedObject]:
    """The executable objects as pprof wants them: neighbours joined, the program itself first.

    A program linked to 0x400000 whose headers lie in a segment before its code
    is widened to begin there, so that run-time and link-time addresses agree.
    """
    joined: list[MappedObject] = []
    for m in objects:
        if not m.executable:
            continue
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.path, last.build_id, last.limit) == (m.path, m.build_id, m.start)
            and (not last.offset or not m.offset or last.offset + last.limit - last.start == m.offset)
        ):
            joined[-1] = last._replace(limit=m.limit)
        else:
            joined.append(m)
    for i, m in enumerate(joined):
        if m.path and not m.path.startswith(b"[") and not re.search(_SHARED_OBJECT, m.path):
            joined[0], joined[i] = joined[i], joined[0]
            break
    if joined and joined[0].offset and joined[0].start - joined[0].offset == 0x400000:
        joined[0] = joined[0]._replace(start=0x400000, offset=0)
    return joined
