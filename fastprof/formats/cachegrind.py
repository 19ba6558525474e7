"""Cachegrind: the door of the room.  See docs/formats/cachegrind.md."""

from __future__ import annotations

import re

from fastprof.engine import Format
from fastprof.formats.callgrind import CallgrindReader, is_cachegrind


class CachegrindReader(CallgrindReader):
    """Cachegrind -> graph batches: self costs by file, function and line.

    The same lines as Callgrind's, without numbers for names and relative
    positions.  A newline in an argument of the program stands unescaped in
    `cmd:`; lines up to `events:` are taken to belong to it (a repair).
    """

    format = "cachegrind"
    numbered = False

    def _header_line(self, line: bytes, offset: int) -> None:
        command = self._part.command
        if self._index < 0 and command is not None and not re.match(rb"events:|#", line):
            self._part.command = command + b"\n" + line
            self.report.repairs["newlines in a command"] += 1
            return
        super()._header_line(line, offset)

    def _summary(self, value: bytes) -> None:
        """At the end, and the exact sum of the counts."""
        super()._summary(value)
        self._totals(value)


FORMAT = Format(
    name="cachegrind",
    view="graph",
    title="Cachegrind profile (Valgrind)",
    suffixes=(".cachegrind",),
    prefixes=("cachegrind.out",),
    sniff=is_cachegrind,
    reader=CachegrindReader,
)
