"""Reads and writes Cachegrind profiles."""

from fastprof.core.c_memory import address_of
from fastprof.core.engine import Writer
from fastprof.core.model import Batch, Part
from fastprof.core.parts import comments_of, descriptions_of, remarks_of
from fastprof.formats.callgrind._write import CostLines
from fastprof.formats.callgrind.read import CREATOR, CallgrindReader
from fastprof.formats.callgrind.reported import REPORTED
from fastprof.formats.callgrind.types import described_types
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

    def start(self) -> None:
        super().start()
        self._part.extra["self_costs"] = True
        self._lexer.whole_lines = True

    def _header_line(self, line: bytes, offset: int) -> None:
        command = self._part.command
        if self._index < 0 and command is not None and not line.startswith((b"events:", b"#")):
            self._part.command = command + b"\n" + line
            self.log.count(REPORTED["command-newlines"])
            return
        super()._header_line(line, offset)


class CachegrindWriter(Writer):
    """Graph batches of one part -> Cachegrind: self costs by file, function name and line, as they come.

    The plan has summed up the rows, over parts and objects too, sorted them and dropped what Cachegrind has no lines
    for.  Loses: pid, thread; descriptions are kept.
    """

    format = "cachegrind"
    view = "graph"

    def start(self) -> None:
        self._body: CostLines | None = None
        self._part = Part()

    def _begin(self, part: Part) -> CostLines:
        names = event_names(part.value_types, self.log)
        # cg_merge and the newer cg_annotate need at least one desc: line, a command and a summary.
        descriptions = [*descriptions_of(part, labels=False), *described_types(part, names)]
        descriptions = [(key, text) for key, text in descriptions if key != b"Calls"]  # it has none
        descriptions = descriptions or [(b"Creator", part.creator or CREATOR)]
        lines = [desc_line(key, value) for key, value in descriptions]
        command = part.command or b"(unknown)"
        if b"\n" in command:
            self.log.count(REPORTED["blanked-newlines"])
        lines.append(b"cmd: " + one_line(command))
        lines.append(b"events: " + " ".join(names or ["none"]).encode("utf-8", "surrogateescape"))
        self.text(b"\n".join([*lines, b""]))
        return CostLines(address_of(self.model.c), address_of(self.out), len(part.value_types))

    def put(self, batch: Batch) -> None:
        if self._body is None:
            self._part = self.model.parts[batch.part]
            self._body = self._begin(self._part)
        self._body.put(address_of(batch.c))
        self.written += len(batch)
        self.log.rows["rows_written"] += len(batch)

    def end(self) -> None:
        body = self._body or self._begin(self._part)
        if body.overflowed:
            self.log.warn(REPORTED["overflowed-summary"])
        else:
            self.text(b"summary: " + " ".join(map(str, body.totals or [0])).encode() + b"\n")
        comments = len(comments_of(self._part)) + len(remarks_of(self._part))
        self.log.count(REPORTED["comments"], comments)
        self.log.count(REPORTED["escaped-names"], body.escaped)
