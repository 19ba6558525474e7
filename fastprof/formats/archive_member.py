"""The fastprof archive: the Writer and the Reader of one profile ("member").

Sections are archive_sections.py's, several profiles in one file archive_store.py's,
the columns inside a chunk csrc/fp_archive.h's.  Bytes: docs/formats/archive.md.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from fastprof._core import ffi, lib
from fastprof._version import __version__
from fastprof.engine import Options, Reader, Report, Summary, Writer
from fastprof.errors import FastprofError, FormatError, UsageError, check
from fastprof.formats import archive_cbor, archive_sections
from fastprof.formats.archive_index import Archive, load, payload, read_end, read_header
from fastprof.formats.archive_sections import (
    BASED,
    END,
    HEADER_NBYTES,
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
    Section,
    SectionError,
    VersionError,
    unpack_metadata,
)
from fastprof.io import Sink, Source
from fastprof.model import VIEWS, Batch, Model, Part

DEFAULT_LEVEL = 3
# A chunk ends when it holds this many rows, or about this many bytes.
CHUNK_ROWS = 1 << 20
CHUNK_NBYTES = 16 << 20
_POSITIONS = {"instr": lib.FP_ARCHIVE_INSTR, "bb": lib.FP_ARCHIVE_BB, "line": lib.FP_ARCHIVE_LINE}
_TABLES = ("strings", "objects", "mappings", "functions", "lines", "frames", "stacks", "labels", "threads")

# Finds the section that a new one may be stored against: (type, how many of that type the member has so far).
BaseOf = Callable[[int, int], tuple[int, bytes] | None]


# ---- metadata as plain values ------------------------------------------------


def _part_to_plain(part: Part) -> dict[str, Any]:
    """The fields of a part that differ from an empty one's."""
    empty = vars(Part())
    return {name: value for name, value in vars(part).items() if value != empty[name]}


def _part_from_plain(plain: dict[str, Any]) -> Part:
    """Errors: TypeError, ValueError for what _part_to_plain does not make."""
    empty = Part()
    for name, value in plain.items():
        if name not in vars(empty):
            raise ValueError(f"unknown field {name!r}")
        expected = getattr(empty, name)
        if expected is not None and not isinstance(value, type(expected)):
            raise ValueError(f"field {name!r} is a {type(value).__name__}")
    return Part(**plain)


# ---- writing -----------------------------------------------------------------


class ArchiveWriter(Writer):
    """Writes one profile as a member of an archive.

    To append, `after` is what the archive holds, `base_of` finds what to store
    against, and `sync` brings what was written to the disk before the trailer
    says that it is there.
    """

    format = "archive"
    view = "any"

    def __init__(
        self,
        model: Model,
        sink: Sink,
        options: Options,
        report: Report,
        *,
        name: str = "",
        after: Archive | None = None,
        base_of: BaseOf | None = None,
        sync: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(model, sink, options, report)
        # names are looked up when asked for; else what was in the source is kept as it was
        self.names = bool(options.symbols)
        if not 0 <= options.level <= 22:
            raise UsageError(f"compression level {options.level}: must be 1 to 22")
        self._codec = Codec(options.level or DEFAULT_LEVEL)
        self._after = after
        self._base_of = base_of
        self._sync = sync
        self._member = Member(after.members[-1].number + 1 if after and after.members else 0, name)
        self._at = after.end if after else 0
        self._enc: Any = None
        self._payload = ffi.gc(ffi.new("struct fp_buf *"), lib.fp_buf_free)
        self._err = ffi.new("struct fp_err *")
        self._from = ffi.new("uint32_t[]", [1] * lib.FP_ARCHIVE_TABLES)
        self._parts: dict[int, Part] = {}  # as last written
        self._chunk_parts: dict[int, None] = {}
        self._new_parts: list[tuple[int, Part]] = []  # before the chunk
        self._changed_parts: list[tuple[int, Part]] = []  # after it
        self._summary = Summary()
        self._counts = [0] * (NUMBERS + 1)

    # ---- sections ----------------------------------------------------------

    def _emit(self, data: bytes) -> None:
        self.text(data)
        self._at += len(data)

    def _section(self, type_: int, raw: bytes) -> int:
        """Append a section and return its offset."""
        base = self._base_of(type_, self._counts[type_]) if self._base_of else None
        self._counts[type_] += 1
        offset = self._at
        try:
            data = self._codec.pack(type_, self._member.number, raw, base=base)
        except SectionError as error:
            raise FastprofError(f"archive: {error.detail}") from None
        self._member.sections.append((offset, type_, len(data)))
        self._emit(data)
        return offset

    def _metadata(self, type_: int, value: Any) -> None:
        try:
            self._section(type_, archive_cbor.dumps(value))
        except archive_cbor.CborError as error:
            raise FastprofError(f"archive: metadata of the profile: {error}") from None

    def _begin(self) -> None:
        self._enc = lib.fp_archive_enc_new(VIEWS[self.view])
        if not self._enc:
            raise MemoryError("no memory for a chunk")
        self._enc = ffi.gc(self._enc, lib.fp_archive_enc_free)
        if not self._at:
            self._emit(archive_sections.file_header())
        self._member.view = self.view
        self._metadata(MEMBER, {"view": self.view, "name": self._member.name, "creator": f"fastprof {__version__}"})

    # ---- rows ----------------------------------------------------------------

    def put(self, batch: Batch) -> None:
        if self._enc is None:
            self.view = batch.view
            self._begin()
        index = batch.part
        self._note_part(index)
        self._chunk_parts[index] = None
        enc = self._enc
        positions = sum(_POSITIONS[p] for p in self._parts[index].positions) if self.view == "graph" else 0
        check(lib.fp_archive_enc_put(enc, batch.c, positions, self._err), self._err, "archive", "archive")
        self._summary.add(batch)
        if enc.rows >= CHUNK_ROWS or enc.nbytes >= CHUNK_NBYTES:
            self._flush()

    def _note_part(self, index: int) -> None:
        """Keep what a part says now: a reader learns some of it late."""
        part = self.model.parts[index]
        last = self._parts.get(index)
        if last is None:
            self._parts[index] = copy.deepcopy(part)
            self._new_parts.append((index, self._parts[index]))
        elif last != part:
            self._parts[index] = copy.deepcopy(part)
            self._changed_parts.append((index, self._parts[index]))

    def _write_parts(self, parts: list[tuple[int, Part]]) -> None:
        if parts:
            self._metadata(PARTS, [[index, _part_to_plain(part)] for index, part in parts])
            parts.clear()

    def _write_tables(self) -> None:
        if all(self.model.count(table) == seen for table, seen in zip(_TABLES, self._from, strict=True)):
            return
        functions = range(self._from[3], self.model.count("functions"))
        if lib.fp_archive_tables_write(self.model.c, self._from, self._payload):
            raise MemoryError("no memory for the tables")
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
        chunk = Chunk(0, enc.rows, list(self._chunk_parts))
        if enc.time_min <= enc.time_max and self.view != "graph":
            chunk.times = (enc.time_min, enc.time_max)
        chunk.threads = ffi.unpack(enc.threads, enc.n_threads) if enc.n_threads else []
        self._write_parts(self._new_parts)
        self._write_tables()
        if lib.fp_archive_enc_flush(enc, self._payload):
            raise MemoryError("no memory for a chunk")
        chunk.offset = self._section(ROWS, self._take_payload())
        self._member.chunks[chunk.offset] = chunk
        self._write_parts(self._changed_parts)
        self._chunk_parts = {}

    def end(self) -> None:
        if self._enc is None:
            if self.view == "any":
                self.view = "timeline"
            self._begin()
        for index in range(len(self.model.parts)):
            self._note_part(index)
        if self._enc.rows:
            self._flush()
        self._write_parts(self._new_parts)
        self._write_parts(self._changed_parts)
        self._write_tables()
        self._member.end = self._end()
        self._metadata(END, self._member.end)
        self._write_index()

    def _end(self) -> dict[str, Any]:
        report, model, c = self.report, self.model, self._summary.c
        kinds = [int(n) for n in c.rows]
        report.rows["rows written"] += sum(kinds)
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
        self._summary.count(model)
        if self._summary.threads:
            end["threads"] = [list(row) for row in self._summary.threads]
        # from an archive to an archive, what was recorded of the source stays
        facts, repairs, losses = report.facts, report.repairs, report.losses
        if "archive version" in facts:
            repairs = facts.get("recorded repairs", {})
            losses = Counter(facts.get("recorded losses", {})) + losses
            facts = facts.get("recorded", {})
        for name, said in (("facts", facts), ("repairs", repairs), ("losses", losses)):
            if said:
                end[name] = dict(said)
        return end

    def _write_index(self) -> None:
        index, trailer = _index(self._codec, self._after, [self._member], self._at)
        self._emit(index)
        if self._sync:
            self.drain()
            self._sync()
        self._emit(trailer)


def _index(codec: Codec, after: Archive | None, members: list[Member], at: int) -> tuple[bytes, bytes]:
    """The INDEX section at offset `at`, and the trailer behind it.

    It says `members` anew, and what the INDEX sections before it say that add
    no more members than that: so n adds write n log n entries, and log n are
    read to know them all.
    """
    links, known = (after.links[:], after.members) if after else ([], [])
    while links and links[-1][1] <= len(members):
        n = links.pop()[1]
        known, members = known[: len(known) - n], known[len(known) - n :] + members
    entries = [links[-1][0] if links else None, *(member.to_index() for member in members)]
    return codec.pack(INDEX, 0, archive_cbor.dumps(entries), OPTIONAL), archive_sections.trailer(at)


def empty() -> bytes:
    """An archive that holds nothing."""
    return archive_sections.file_header() + b"".join(_index(Codec(), None, [], archive_sections.FILE_HEADER_NBYTES))


# ---- reading -----------------------------------------------------------------


class ArchiveReader(Reader):
    """Reads one member of an archive.  `view` is what it holds.

    Reads only the chunks that the options ask for (time_range, threads,
    part), and of those only the rows asked for.
    """

    format = "archive"

    def __init__(self, source: Source, model: Model, options: Options, report: Report) -> None:
        super().__init__(source, model, options, report)
        source.spool()
        self._codec = Codec(base_of=self._base)
        try:
            self._archive = load(source, self._codec, options.lenient)
        except SectionError as error:
            raise self._error(error) from None
        for message in self._archive.notes:
            report.warn(f"{source.name}: {message}")
        self._member = self._choose(self._archive.members)
        try:
            read_end(source, self._codec, self._member)
        except SectionError as error:
            if not options.lenient:
                raise self._error(error) from None
        self.view = self._member.view
        if self.view not in VIEWS:
            raise FormatError(source.name, self.format, f"view {self.view!r} is unknown")
        if self.view == "graph" and (options.time_range or options.threads):
            raise UsageError(f"{source.name}: a graph has no times or threads to choose by, only parts")
        if options.part is not None and options.part < 1:
            raise UsageError("parts are numbered from 1")
        self._section: Section | None = None
        self._expected: tuple[int, int, int] = (0, 0, 0)
        self._open = False
        self._rows_read = 0  # of the chunk
        self._rows_kept = 0  # of all
        self._last_time: int | None = None  # of a timeline's rows so far
        self._payload = b""
        self._ids = lib.fp_archive_ids_new(model.c)
        if not self._ids:
            raise MemoryError("no memory for the archive's ids")
        self._ids = ffi.gc(self._ids, lib.fp_archive_ids_free)
        self._ids.input = len(model.parts)
        self._part_at: list[int] = []  # where the archive's parts are in the model's
        self._file_part = 0  # of the batch being filled
        if any(type_ == PARTS for _, type_, _ in self._member.sections):
            # inputs are told apart by the parts there are when they are opened
            self._part_at.append(model.add_part(Part()))
        self._dec = lib.fp_archive_dec_new(self._ids)
        if not self._dec:
            raise MemoryError("no memory for the archive decoder")
        self._dec = ffi.gc(self._dec, lib.fp_archive_dec_free)
        self._passed_over = 0

    def _error(self, error: SectionError) -> FormatError:
        code = lib.FP_E_MALFORMED
        if isinstance(error, VersionError):
            code = lib.FP_E_VERSION
        elif error.truncated:
            code = lib.FP_E_TRUNCATED
        return FormatError(self.source.name, self.format, error.detail, offset=error.offset, code=code)

    def _choose(self, members: list[Member]) -> Member:
        wanted = self.options.member
        if wanted is None:
            if len(members) == 1:
                return members[0]
            if not members:
                raise FormatError(self.source.name, self.format, "no profile in this archive")
        found = [m for m in members if m.name == wanted]
        if found:
            return found[-1]
        names = ", ".join(m.name or f"number {m.number}" for m in members[:20])
        what = "holds several profiles" if wanted is None else f"has no profile {wanted!r}"
        raise UsageError(f"{self.source.name}: the archive {what}: {names}")

    def _base(self, offset: int) -> bytes:
        """The payload of another section, which must stand by itself."""
        section = read_header(self.source, offset)
        if section.flags & BASED:
            raise SectionError(offset, "section is a base and has one")
        return payload(self.source, self._codec, section)

    def summary(self) -> Summary | None:
        """From the member's END, without its chunks; not if damage or only some of the rows are asked for."""
        options, end = self.options, self._member.end
        chosen = options.time_range or options.threads or options.part is not None
        known = all(type_ <= NUMBERS for _, type_, _ in self._member.sections)
        if options.lenient or chosen or not known or end is None or end.get("overflowed"):
            return None
        found = Summary()
        c = found.c
        try:
            for at, type_, _ in self._member.sections:
                if type_ == PARTS:
                    self._section = section = read_header(self.source, at)
                    self._take_parts(unpack_metadata(section, payload(self.source, self._codec, section), list))
            for i, n in enumerate(end["kinds"]):
                c.rows[i] = n
            times = [chunk.times for chunk in self._member.chunks.values() if chunk.times]
            if self.view == "timeline" and times:
                c.first_time, c.last_time = min(first for first, _ in times), max(last for _, last in times)
            c.calls = end.get("calls", 0)
            totals = end.get("totals", [])
            found.reserve(len(totals))
            for i, n in enumerate(totals):
                c.totals[i] = n
            counts = end["counts"]
            found.functions, found.stacks = int(counts[3]), int(counts[6])
            found.threads = [(int(i), int(pid), int(tid)) for i, pid, tid in end.get("threads", [])]
        except SectionError as error:
            raise self._error(error) from None
        except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise self._error(SectionError(self._member.sections[-1][0], f"summary: {error!r}")) from None
        self._tell()
        return found

    # ---- which sections ------------------------------------------------------

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        if self.options.threads and self._member.end is not None and not self._thread_ids():
            there = ", ".join(str(row[2]) for row in self._member.end.get("threads", [])[:20])
            raise UsageError(f"{self.source.name}: none of the threads asked for is there, but: {there or 'none'}")
        for offset, type_, nbytes in self._member.sections:
            if type_ == ROWS and not self._wanted(self._member.chunks[offset]):
                self._passed_over += 1
                continue
            self._expected = (offset, type_, nbytes)
            self._section = None
            self._open = False
            yield offset, nbytes

    def _wanted(self, chunk: Chunk) -> bool:
        options = self.options
        if options.time_range and chunk.times:
            first, last = options.time_range
            if chunk.times[1] < first or chunk.times[0] > last:
                return False
        if options.part is not None and chunk.parts and options.part - 1 not in chunk.parts:
            return False
        if options.threads and chunk.threads:
            return not self._thread_ids().isdisjoint(chunk.threads)
        return True

    def _thread_ids(self) -> set[int]:
        """The model's ids of the threads asked for."""
        if self._member.end is not None:
            rows = self._member.end.get("threads", [])
        else:
            ids = self._ids
            rows = [self.model.row("threads", ids.to[8][i]) for i in range(1, ids.n[8])]
        return {i for i, row in enumerate(rows, 1) if row[2] in self.options.threads}

    # ---- feeding ---------------------------------------------------------------

    def feed(self, in_: Any, batch: Any, err: Any) -> int:
        try:
            if self._open:
                return self._rows(batch, err)
            return self._next(in_, batch, err)
        except SectionError as error:
            if not self.options.lenient:
                raise self._error(error) from None
            self._lose(error)
            in_.pos = in_.n
            return int(lib.FP_DONE)

    def _next(self, in_: Any, batch: Any, err: Any) -> int:
        offset, type_, nbytes = self._expected
        if in_.n - in_.pos < nbytes and not in_.eof:
            return int(lib.FP_MORE)
        data = memoryview(ffi.buffer(in_.p + in_.pos, in_.n - in_.pos))
        section = archive_sections.parse_header(bytes(data[:HEADER_NBYTES]), offset)
        if (section.type, section.member, section.nbytes) != (type_, self._member.number, nbytes):
            raise SectionError(offset, "section is not the one that the index says")
        raw = self._codec.unpack(section, bytes(data[HEADER_NBYTES:nbytes]))
        in_.pos += nbytes
        self._section = section
        if section.type == PARTS:
            self._take_parts(unpack_metadata(section, raw, list))
        elif section.type == TABLES:
            self._status(lib.fp_archive_tables_read(self._ids, raw, len(raw), err), err)
        elif section.type == ROWS:
            self._payload = raw
            self._set_filter()
            status = lib.fp_archive_dec_open(self._dec, self._c_payload(), len(raw), len(self._part_at), err)
            self._status(status, err)
            self._open = True
            self._rows_read = 0
            return self._rows(batch, err)
        elif section.type == NUMBERS:
            self._take_numbers(unpack_metadata(section, raw, dict))
        elif section.type not in (MEMBER, END) and not section.flags & OPTIONAL:
            raise VersionError(offset, f"section of the unknown type {section.type}, written by a later version")
        return int(lib.FP_DONE)

    def _set_filter(self) -> None:
        """Rows are chosen exactly; the chunks that hold them were chosen by the index."""
        options = self.options
        if options.time_range is None and not options.threads and options.part is None:
            return
        first, last = options.time_range or (0, (1 << 64) - 1)
        self._filter = ffi.new("struct fp_archive_filter *")
        self._filter.first_time, self._filter.last_time = first, last
        self._filter.part = 0xFFFFFFFF if options.part is None else options.part - 1
        if options.threads:
            n = self.model.count("threads")
            self._mask = ffi.new("uint8_t[]", n)
            for i in range(1, n):
                self._mask[i] = self.model.row("threads", i)[2] in options.threads
            self._filter.threads, self._filter.n_threads = self._mask, n
        lib.fp_archive_dec_filter(self._dec, self._filter)

    def _c_payload(self) -> Any:
        self._keep = ffi.from_buffer("uint8_t[]", self._payload)
        return self._keep

    def _rows(self, batch: Any, err: Any) -> int:
        before = batch.n
        if before:
            batch.part = self._file_part
        status = lib.fp_archive_dec_feed(self._dec, batch, err)
        if batch.n:
            self._file_part = batch.part
            batch.part = self._part_at[self._file_part]
            if self.view == "timeline":
                self._last_time = batch.time[batch.n - 1]
        self._rows_read += batch.n - before
        self._rows_kept += batch.n - before
        self._status(status, err)
        if status == lib.FP_DONE:
            self._open = False
        return int(status)

    def _status(self, status: int, err: Any) -> int:
        """An error's offset is inside the payload, which is compressed: name the section's instead."""
        if status >= 0:
            return status
        if status == lib.FP_E_NOMEM:
            raise MemoryError(f"{self.source.name}: out of memory")
        assert self._section is not None
        what = ffi.string(err.what).decode()
        raise SectionError(self._section.offset, f"{what}, at byte {err.offset} of the payload, is malformed")

    def _take_parts(self, entries: list[Any]) -> None:
        assert self._section is not None
        parts = self.model.parts
        for entry in entries:
            try:
                index, plain = entry
                part = _part_from_plain(plain)
                if not 0 <= index <= len(self._part_at):
                    raise ValueError(f"part {index} of {len(self._part_at)}")
            except (TypeError, ValueError) as error:
                raise SectionError(self._section.offset, f"parts: {error}") from None
            if index == len(self._part_at):
                self._part_at.append(self.model.add_part(part))
            else:
                # in place: a writer may hold the object
                vars(parts[self._part_at[index]]).update(vars(part))

    def _take_numbers(self, numbers: dict[Any, Any]) -> None:
        assert self._section is not None
        for function, number in numbers.items():
            known = isinstance(function, int) and 0 < function < self._ids.n[3]
            if not known or not isinstance(number, int) or number < 0:
                raise SectionError(self._section.offset, f"number {number!r} of function {function!r}")
            self.model.numbers[self._ids.to[3][function]] = number

    # ---- damage ------------------------------------------------------------------

    def _lose(self, error: SectionError) -> None:
        offset, type_, _ = self._expected
        report = self.report
        lost = f"{self.source.name}: at byte {error.offset}: {error.detail}: "
        if type_ == ROWS:
            chunk = self._member.chunks.get(offset, Chunk(offset))
            # damage that checksums cannot see shows after some rows were read
            read = self._rows_read if self._open else 0
            report.losses["chunks"] += 1
            report.losses["rows"] += max(chunk.rows - read, 0)
            lost += f"a chunk of {chunk.rows or 'unknown many'} rows is lost"
            if read:
                lost += f" from row {read} on"
            if chunk.times:
                lost += f", times {chunk.times[0]} to {chunk.times[1]}"
            elif self._last_time is not None:
                lost += f", behind time {self._last_time}"
        else:
            report.losses[
                {TABLES: "tables", NUMBERS: "numbers", PARTS: "parts", END: "summaries"}.get(type_, "sections")
            ] += 1
            lost += f"{archive_sections.NAMES.get(type_, 'a section')} is lost"
        report.warn(lost)
        self._open = False

    def _count(self) -> None:
        """Compare the rows with what END says: a whole section may be gone without a trace."""
        options, end, name = self.options, self._member.end, self.source.name
        if end is None:
            behind = f", the last at time {self._last_time}" if self._last_time is not None else ""
            self.report.warn(f"{name}: the profile has no end: {self._rows_kept} rows are there{behind}")
            return
        kinds: Any = end.get("kinds")
        known = isinstance(kinds, list) and all(isinstance(n, int) for n in kinds)
        if not known or options.time_range or options.threads or options.part is not None:
            return
        missing = sum(kinds) - self._rows_kept - self.report.losses["rows"]
        if not missing:
            return
        said = f"the profile has {sum(kinds)} rows, but {self._rows_kept} are there"
        if not options.lenient or missing < 0:
            raise self._error(SectionError(self._member.sections[-1][0], said))
        self.report.losses["rows"] += missing
        self.report.warn(f"{name}: {said}")

    def finish(self) -> None:
        self._count()
        self._tell()

    def _tell(self) -> None:
        report, member = self.report, self._member
        for message, n in self._archive.losses.items():
            report.losses[message] += n
        facts = report.facts
        facts["archive version"] = archive_sections.VERSION
        facts["chunks"] = len(member.chunks)
        if self._passed_over:
            facts["chunks passed over"] = self._passed_over
        end = member.end or {}
        for name, recorded in (("facts", ""), ("repairs", " repairs"), ("losses", " losses")):
            if name in end:
                facts["recorded" + recorded] = end[name]
