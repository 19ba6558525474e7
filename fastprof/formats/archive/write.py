"""The Writer of one profile of an archive (a "member").

sections.py makes sections, csrc/archive/archive.h the columns of a chunk, store/adding.py files with several profiles.
docs/formats/archive.md describes the bytes.
"""

from collections import Counter

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_archive_enc
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Summary, Writer
from fastprof.core.errors import FastprofError, inputs_of
from fastprof.core.log import Log
from fastprof.core.model import VIEWS, Batch, Model, Part
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.version import __version__
from fastprof.formats.archive import LEVEL
from fastprof.formats.archive import _cbor as archive_cbor
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.packing import BaseOf, Sections
from fastprof.formats.archive.parts import copied
from fastprof.formats.archive.sections import (
    END,
    FORGET,
    INDEX,
    MEMBER,
    NUMBERS,
    OPTIONAL,
    PARTS,
    ROWS,
    TABLES,
    Chunk,
    Codec,
    Member,
    SectionError,
)
from fastprof.formats.archive.tree import EMPTY, Page

DEFAULT_LEVEL = 3
# A chunk ends at this many rows, or about this many bytes.
CHUNK_ROWS = 1 << 20
CHUNK_NBYTES = 16 << 20
_POSITIONS = {"instr": lib.FP_ARCHIVE_INSTR, "bb": lib.FP_ARCHIVE_BB, "line": lib.FP_ARCHIVE_LINE}
_TABLES = ("strings", "objects", "mappings", "functions", "lines", "frames", "stacks", "labels", "threads")
_STACKS = _TABLES.index("stacks")


class ArchiveWriter(Writer):
    """Writes one profile as a member of an archive.

    `member`, if given, is filled in; `base_of` finds bases.  `at` is the offset of the output: 0 starts an archive with
    this single member; otherwise the member is appended, and the caller writes the index.
    """

    format = "archive"
    view = "any"

    def __init__(
        self,
        model: Model,
        sink: Sink,
        options: Options,
        log: Log,
        *,
        member: Member | None = None,
        at: int = 0,
        base_of: BaseOf | None = None,
    ) -> None:
        super().__init__(model, sink, options, log)
        self._codec = Codec(options[LEVEL] or DEFAULT_LEVEL)
        self._appends = at > 0
        self._member = member or Member(0)
        self._sections = Sections(at, self._codec, self._member, base_of)
        self._enc: fp_archive_enc = ffi.NULL
        self._payload = owned(ffi.new("struct fp_buf *"), "a chunk")
        self._from = ffi.new("uint32_t[]", [1] * lib.FP_ARCHIVE_TABLES)
        self._numbers: dict[int, int] = {}  # by part of the model: its number in the archive, in order of rows
        self._parts: list[Part] = []  # as written last
        self._chunk_parts: dict[int, None] = {}
        # plain values to write, by number
        self._new_parts: dict[int, Any] = {}  # before the chunk
        self._changed_parts: dict[int, Any] = {}  # after it
        self._summary = Summary()
        self._forgotten = 0  # stacks of the archive before those of the model
        model.spills.append(self._forget)

    # ---- sections ----------------------------------------------------------

    def _section(self, type_: int, raw: bytes, chunk: Chunk | None = None) -> None:
        try:
            self.text(self._sections.add(type_, raw, chunk))
        except SectionError as error:
            raise FastprofError(f"{inputs_of(self.model)}archive: {error.detail}") from None

    def _metadata(self, type_: int, value: Any) -> None:
        try:
            self._section(type_, archive_cbor.dumps(value))
        except archive_cbor.CborError as error:
            raise FastprofError(f"{inputs_of(self.model)}archive: metadata of the profile: {error}") from None

    def _begin(self) -> None:
        self._enc = owned(lib.fp_archive_enc_new(VIEWS[self.view]), "a chunk")
        if not self._appends:
            header = archive_sections.file_header()
            self.text(header)
            self._sections.at = len(header)
        member = self._member
        member.view = self.view
        fields = {"view": member.view, "name": member.name, "creator": f"fastprof {__version__}", **member.about}
        self._metadata(MEMBER, fields)

    # ---- rows ----------------------------------------------------------------

    def put(self, batch: Batch) -> None:
        if not self._enc:
            self.view = batch.view
            self._begin()
        index = batch.part
        number = self._note_part(index)
        if number in self._chunk_parts and not len(batch):
            return  # a chunk lists a part without rows only once
        self._chunk_parts[number] = None
        enc = self._enc
        positions = sum(_POSITIONS[p] for p in self._parts[number].positions) if self.view == "graph" else 0
        batch.c.part = number
        status = lib.fp_archive_enc_put(enc, batch.c, positions, self.err)
        batch.c.part = index  # the batch is the reader's
        self.check(status)
        self._summary.add(batch)
        if enc.rows >= CHUNK_ROWS or enc.nbytes >= CHUNK_NBYTES:
            self._flush()

    def _note_part(self, index: int) -> int:
        """Record the current state of a model's part, which readers may complete late.  Returns its archive number.

        Changes made before a chunk is written are written before it, independent of the size of batches.
        """
        part = self.model.parts[index]
        number = self._numbers.setdefault(index, len(self._parts))
        is_new = number == len(self._parts)
        if is_new or self._parts[number] != part:
            try:
                kept, plain = copied(part)
            except ValueError as error:
                raise FastprofError(f"{inputs_of(self.model)}archive: part {number} of the profile: {error}") from None
            self._parts[number : number + 1] = [kept]
            before = is_new or number in self._new_parts
            (self._new_parts if before else self._changed_parts)[number] = plain
        return number

    def _write_parts(self, parts: dict[int, Any]) -> None:
        if parts:
            self._metadata(PARTS, [[number, plain] for number, plain in parts.items()])
            parts.clear()

    def _write_tables(self) -> None:
        if all(self.model.count(table) == seen for table, seen in zip(_TABLES, self._from, strict=True)):
            return
        functions = range(self._from[3], self.model.count("functions"))
        status = lib.fp_archive_tables_write(self.model.c, self._from, self._forgotten, self._payload)
        if status == lib.FP_E_NOMEM:
            raise MemoryError("no memory for the tables")
        if status:
            raise FastprofError(f"{inputs_of(self.model)}archive: the profile has more than 2^32 contexts")
        self._section(TABLES, self._take_payload())
        if self.model.numbers:
            numbers = {i: self.model.numbers[i] for i in functions if i in self.model.numbers}
            if numbers:
                self._metadata(NUMBERS, numbers)

    def _take_payload(self) -> bytes:
        payload = bytes(ffi.buffer(self._payload.p, self._payload.n))
        self._payload.n = 0
        return payload

    def _flush(self) -> None:
        enc = self._enc
        timed = enc.time_min <= enc.time_max and self.view != "graph"
        times = (enc.time_min, enc.time_max) if timed else None
        threads = ffi.unpack(enc.threads, enc.n_threads) if enc.n_threads else []
        chunk = Chunk(0, enc.rows, list(self._chunk_parts), times, threads)
        self._write_parts(self._new_parts)
        self._write_tables()
        enough(lib.fp_archive_enc_flush(enc, self._payload))
        self._section(ROWS, self._take_payload(), chunk)
        self._write_parts(self._changed_parts)
        self._chunk_parts = {}

    def _forget(self) -> None:
        """Write all rows so far: the model's stacks are about to be removed."""
        if self._chunk_parts:
            self._flush()
        written = self._from[_STACKS] - 1
        if written:
            self._forgotten += written
            self._from[_STACKS] = 1
            self._enc.forgotten = self._forgotten
            self._section(FORGET, b"")

    def end(self) -> None:
        self.model.spills.remove(self._forget)
        if not self._enc:
            if self.view == "any":
                self.view = "timeline"
            self._begin()
        # Parts without batches were merged or filtered out.  Only a profile without rows keeps them.
        for index in list(self._numbers) or range(len(self.model.parts)):
            self._note_part(index)
        if self._chunk_parts:
            self._flush()
        self._write_parts(self._new_parts)
        self._write_parts(self._changed_parts)
        self._write_tables()
        end = self._end()
        self._metadata(END, end)
        self.text(self._sections.end())
        types = [*{tuple(type_.name for type_ in part.value_types) for part in self._parts}]
        self._member.summarize(end, [*types[0]] if len(types) == 1 else [])
        if not self._appends:
            member = self._member
            page = Page(0, [member.name], [member.number], [member.to_entry()])
            for data in packed_index(self._codec, page, 1, member.number + 1, self._sections.at):
                self.text(data)

    def _end(self) -> dict[str, Any]:
        log, model, c = self.log, self.model, self._summary.c
        kinds = [int(n) for n in c.rows]
        self.written = sum(kinds)
        log.rows["rows_written"] += self.written
        while kinds and not kinds[-1]:
            kinds.pop()
        end: dict[str, Any] = {"kinds": kinds}
        if self._summary.overflowed:
            end["overflowed"] = True
        else:
            if c.calls:
                end["calls"] = int(c.calls)
            if c.n_totals:
                end["totals"] = ffi.unpack(c.totals, c.n_totals)
        end["counts"] = [model.count(table) - 1 for table in _TABLES]
        end["counts"][_STACKS] += self._forgotten
        self._summary.count(model)
        if self._summary.functions != model.count("functions") - 1:
            end["functions"] = self._summary.functions
        if self._summary.threads:
            end["threads"] = [list(row) for row in self._summary.threads]
            if inputs := model.names.by_input(self._summary.threads):
                end["inputs"] = inputs
        # when an archive is copied, facts about its source are kept
        facts = log.facts
        repairs, losses = Counter(log.repairs), Counter(log.losses)
        if "archive_version" in facts:
            repairs += Counter(facts.get("recorded_repairs", {}))
            losses += Counter(facts.get("recorded_losses", {}))
            facts = facts.get("recorded", {})
        if len(model.inputs) > 1:  # facts describe a single input, and the order of inputs must not affect the output
            facts, repairs, losses = {}, Counter(dict(sorted(repairs.items()))), Counter(dict(sorted(losses.items())))
        for name, fields in (("facts", facts), ("repairs", repairs), ("losses", losses)):
            if fields:
                end[name] = dict(fields)
        return end


def packed_index(
    codec: Codec, root: Page, count: int, number: int, at: int, bases: int | None = None
) -> tuple[bytes, bytes]:
    """The INDEX section at offset `at`, and the trailer.

    `count`: the number of members; `number`: that of the next one; `bases`: the offset of the BASES section.
    """
    raw = archive_cbor.dumps([count, bases or 0, root.plain()])
    return codec.pack(INDEX, number, raw, OPTIONAL), archive_sections.trailer(at)


def empty() -> bytes:
    """An empty archive."""
    header = archive_sections.file_header()
    return header + b"".join(packed_index(Codec(), EMPTY, 0, 0, len(header)))
