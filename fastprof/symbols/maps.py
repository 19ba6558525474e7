"""The text that lists mapped objects, as in /proc/PID/maps and in profiles."""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import NamedTuple
from fastprof.symbols import DELETED

# No piece backtracks (`*+`), so any line takes linear time.
# No possessive groups: Python 3.11.2 and others match `(?:...)*+` wrongly if the group has alternatives.
_HEX = rb"(?:0x)?([0-9a-fA-F]++)"
_RANGE = rb"\s*+" + _HEX + rb"[\s-]\s*+" + _HEX + rb":?+"
# csrc/symbols/maps.c reads lines as the kernel writes them; test_symbols_again.py compares it with _MAPS_LINE.
# Patterns are compiled when they are first used, because this module is imported to recognize any input.
# 08048000-08049000 r-xp 00001000 08:01 4711   /path with blanks
_MAPS_LINE = _RANGE + rb"\s++([-rwxps]{3,5}+)\s++([0-9a-fA-F]++)\s++[^\s:]++:\S++\s++\d++(?:\s++(.*+))?$"
# 0x8048000-0x8049000: r-xp /path (@1000) 1a2b3c
_BRIEF_LINE = _RANGE + rb"(?:\s++([-rwxps]{3,5}+)(?=\s)|(?!\s++[-rwxps]{3,5}+\s))\s++(\S.*+)$"
_BRIEF_OFFSET = rb"\(@([0-9a-fA-F]++)\)"
_BRIEF_BUILD_ID = rb"[0-9a-fA-F]{8,}+"
_ASSIGNED = rb"\s*+([A-Za-z_]\w*+)\s*+=(.*)$"
_VARIABLE = rb"\$(\w++)"
_LOG_PREFIX = rb"\S:\d++\] "
_SHARED_OBJECT = rb"\.so$|\.so[._][0-9]+"
_LONGEST = 1 << 16  # bytes of a line in which variables such as `$build` have been replaced
_LIMIT = 1 << 64
_DELETED = DELETED.encode()
_AT_ONCE = 64  # ranges of mapped objects


class MappedObject(NamedTuple):
    """The addresses [start, limit) hold `path` from byte `offset` on."""

    start: int
    limit: int
    offset: int
    path: bytes
    build_id: bytes = b""


class MapsText:
    """Reads the list of mapped objects; keeps those with code.  `unknown` counts lines that are not understood."""

    def __init__(self) -> None:
        self.objects: list[MappedObject] = []
        self.unknown = 0
        self._variables: dict[bytes, bytes] = {}
        self._found = ffi.new("struct fp_maps_range[]", _AT_ONCE)
        self._n_found = ffi.new("size_t *")

    def lines(self, text: bytes) -> int:
        """Read lines as the kernel writes them, up to the first other one; returns their length."""
        found, n_found, window = self._found, self._n_found, ffi.from_buffer("uint8_t[]", text)
        at, n_found[0] = 0, _AT_ONCE
        while n_found[0] == _AT_ONCE:
            n = lib.fp_maps_lines(window + at, len(text) - at, found, _AT_ONCE, n_found)
            for range_ in found[0 : n_found[0]]:
                first = at + range_.path
                path = text[first : first + range_.n_path].removesuffix(_DELETED)
                self.objects.append(MappedObject(range_.start, range_.limit, range_.offset, path))
            at += n
        return at

    def line(self, line: bytes) -> None:
        if self.lines(line):
            return
        line = line.rstrip(b"\r\n")
        if not line.strip():
            return
        if assigned := re.match(_ASSIGNED, line):
            self._variables[assigned[1]] = assigned[2].strip()
            return
        # `$build` is replaced by the text of the last line `build=...`; `$builder` is a different word
        values = [self._variables.get(name, b"") for name in re.findall(_VARIABLE, line)]
        if values and len(line) + sum(map(len, values)) > _LONGEST:
            self.unknown += 1
            return
        if values:
            line = re.sub(_VARIABLE, lambda m: self._variables.get(m[1], m[0]), line)
        if not self._add(line):
            prefix = re.search(_LOG_PREFIX, line)
            self.unknown += not (prefix and self._add(line[prefix.end() :]))

    def _add(self, line: bytes) -> bool:
        """Whether the line is understood."""
        build_id = b""
        if m := re.match(_MAPS_LINE, line):
            start, limit, permissions, offset, path = m.groups()
        elif m := re.match(_BRIEF_LINE, line):
            start, limit, permissions, path = m.groups()
            path, offset, build_id = _split_brief(path)
        else:
            return False
        if max(map(len, (start, limit, offset or b""))) > 64:
            return False
        numbers = int(start, 16), int(limit, 16), int(offset or b"0", 16)
        if max(numbers) >= _LIMIT or numbers[0] >= numbers[1]:
            return False
        if permissions is None or b"x" in permissions:
            path = (path or b"").strip().removesuffix(_DELETED)
            self.objects.append(MappedObject(*numbers, path, build_id))
        return True


def _split_brief(text: bytes) -> tuple[bytes, bytes, bytes]:
    """`/path (@1000) 1a2b3c4d` as path, offset and build id; the last two may be missing."""
    offset = build_id = b""
    *before, last = text.rsplit(None, 1)
    if before and re.fullmatch(_BRIEF_BUILD_ID, last):
        text, build_id = before[0], last
        *before, last = text.rsplit(None, 1)
    if before and (m := re.fullmatch(_BRIEF_OFFSET, last)):
        text, offset = before[0], m[1]
    return text, offset, build_id


def arrange(objects: Iterable[MappedObject]) -> list[MappedObject]:
    """The objects in pprof's form: neighbours joined, the program itself first.

    A program linked to 0x400000 whose headers lie in a segment before its code
    is widened to begin there, so that run-time and link-time addresses agree.
    """
    joined = _join(objects)
    for i, m in enumerate(joined):
        if m.path and not m.path.startswith(b"[") and not re.search(_SHARED_OBJECT, m.path):
            joined[0], joined[i] = joined[i], joined[0]
            break
    if joined and joined[0].offset and joined[0].start - joined[0].offset == 0x400000:
        joined[0] = joined[0]._replace(start=0x400000, offset=0)
    return _join(joined)  # others may be neighbours now


def _join(objects: Iterable[MappedObject]) -> list[MappedObject]:
    joined: list[MappedObject] = []
    for m in objects:
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.path, last.build_id, last.limit) == (m.path, m.build_id, m.start)
            and (not last.offset or not m.offset or last.offset + last.limit - last.start == m.offset)
        ):
            joined[-1] = last._replace(limit=m.limit)
        else:
            joined.append(m)
    return joined
