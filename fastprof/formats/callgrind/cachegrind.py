"""Reads and writes Cachegrind profiles."""

from __future__ import annotations

import re

from fastprof.core.engine import Options, Report, Writer
from fastprof.core.io import Sink
from fastprof.core.model import Batch, Model
from fastprof.core.sums import Table, merged_part, rank_by_name
from fastprof.formats.callgrind._write import CostLines
from fastprof.formats.callgrind.read import CREATOR, CallgrindReader, address_of
from fastprof.formats.callgrind.write import desc_line, event_names, one_line


class CachegrindReader(CallgrindReader):
    """Cachegrind -> graph batches: self costs by file, function and line.

    The same lines as Callgrind's, without numbers for names and relative
    positions.  A newline in an argument of the program stands unescaped in
    `cmd:`; lines up to `events:` are taken to belong to it (a repair).
    """

    format = "cachegrind"
    numbered = False
    last_line = "summary"  # and the exact sum of the counts
    has_last_line = True

    def _header_line(self, line: bytes, offset: int) -> None:
        command = self._part.command
        if self._index < 0 and command is not None and not re.match(rb"events:|#", line):
            self._part.command = command + b"\n" + line
            self.report.repairs["newlines in a command"] += 1
            return
        super()._header_line(line, offset)


class CachegrindWriter(Writer):
    """Graph batches -> Cachegrind: self costs by file, function name and line, sorted by these.

    Costs of the same place are summed, over parts and objects too, so the
    output is written at the end and memory is linear in distinct lines.
    Loses, and counts: calls and jumps.  Loses: objects, addresses, pid,
    thread; descriptions are kept.
    """

    format = "cachegrind"
    view = "graph"

    def __init__(self, model: Model, sink: Sink, options: Options, report: Report) -> None:
        super().__init__(model, sink, options, report)
        self._table = Table(model, lines=True)
        self._parts: dict[int, None] = {}

    def put(self, batch: Batch) -> None:
        self._parts[batch.part] = None
        self._table.put(batch)

    def end(self) -> None:
        part = merged_part([self.model.parts[i] for i in self._parts] or self.model.parts[-1:], self._table.value_types)
        names = event_names(part.value_types, self.report) or ["none"]
        # cg_merge and the newer cg_annotate want at least one desc: line, a command and a summary.
        descriptions = part.descriptions or [(b"Creator", part.creator or CREATOR)]
        lines = [desc_line(key, value) for key, value in descriptions]
        comments = len(part.comments) + len(part.extra.get("remarks", []))
        if comments:
            self.report.unsaid["comments, which cg_merge refuses"] += comments
        command = part.command or b"(unknown)"
        if b"\n" in command:
            self.report.unsaid["newlines in the command, written as blanks"] += 1
        lines.append(b"cmd: " + one_line(command))
        lines.append(b"events: " + " ".join(names).encode("utf-8", "surrogateescape"))
        self.text(b"\n".join([*lines, b""]))

        body = CostLines(address_of(self.model.c), address_of(self.out))
        sums = [0] * len(part.value_types)
        for batch in self._table.batches(0, rank_by_name(self.model)):
            body.put(address_of(batch.c))
            sums = [total + sum(batch.values(k)) for k, total in enumerate(sums)]
            self.report.rows["rows written"] += len(batch)
            self.drain()
        self.text(b"summary: " + " ".join(map(str, sums or [0])).encode() + b"\n")

        if self._table.dropped:
            self.report.unsaid["calls and jumps, which Cachegrind does not have"] += self._table.dropped
        if body.escaped:
            self.report.unsaid["names with a line end or NUL byte, which was escaped"] += body.escaped
