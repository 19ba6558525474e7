"""The Reader of one profile of an archive (a "member").

sections.py reads sections, index.py the index, csrc/archive/archive.h the columns of a chunk.  docs/formats/archive.md
describes the bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, Pointer, fp_batch, fp_err, fp_window
from fastprof.core.c_memory import owned
from fastprof.core.engine import STACKS_AT_A_TIME, Reader, Summary
from fastprof.core.errors import FormatError, UsageError
from fastprof.core.messages import Message, counted
from fastprof.core.model import VIEWS, Part, ValueType
from fastprof.core.options import LENIENT, PART, THREADS, TIME_RANGE, UINT64
from fastprof.core.schema import fits
from fastprof.core.thread_names import is_chosen
from fastprof.core.times import Span
from fastprof.formats.archive import MEMBER as MEMBER_NAME
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.bundle import Inner, opened
from fastprof.formats.archive.index import Archive, codec_of, in_words, load, metadata, read_end
from fastprof.formats.archive.parts import from_plain
from fastprof.formats.archive.reported import REPORTED
from fastprof.formats.archive.sections import (
    BASED,
    BUNDLE,
    END,
    FORGET,
    HEADER_NBYTES,
    MEMBER,
    NUMBERS,
    OPTIONAL,
    PARTS,
    ROWS,
    TABLES,
    Chunk,
    Member,
    Section,
    SectionError,
    VersionError,
    unpack_metadata,
)

_LOST = {TABLES: "archive-tables", NUMBERS: "archive-numbers", PARTS: "archive-parts", END: "archive-summaries"}


class ArchiveReader(Reader):
    """Reads one member of an archive.

    Reads only the chunks and rows selected by the options in `selects`.
    """

    format = "archive"
    allocator = True

    def start(self) -> None:
        # the view, which is stated in the archive, decides which of them apply
        if any(
            {option.key, option.name} & self.options.given.keys() for option in (MEMBER_NAME, PART, TIME_RANGE, THREADS)
        ):
            self.source.use_ranges()
        self.source.spool()
        self._codec = codec_of(self.source)
        try:
            self._archive = load(self.source, self._codec, self.options[LENIENT])
        except SectionError as error:
            raise self._error(error) from None
        for message in () if self.source.pinned and not self.options[LENIENT] else self._archive.notes:
            self.log.warn(REPORTED["archive-notes"], file=self.source.name, note=message)
        try:
            self._member = self._choose(self._archive)
        except SectionError as error:
            raise self._error(error) from None
        self.model.titles[self.name] = self._member.name
        try:
            read_end(self.source, self._codec, self._member)
        except SectionError as error:
            if not self.options[LENIENT]:
                raise self._error(error) from None
        self.view, self.labels = self._member.view, self._member.about.get("labels", {})
        if self.labels:
            self.model.names.labels[self.name] = self.labels
        self.addresses, self.formulas = self.view == "stacks", self.view == "graph"
        if self.view not in VIEWS:
            raise self.damaged(f"view {self.view!r} is unknown")
        self.selects = (PART,) if self.view == "graph" else (PART, TIME_RANGE, THREADS)
        self._part = self.options[PART]
        time_range = self.options[TIME_RANGE] if TIME_RANGE in self.selects else None
        self._time_range = None if isinstance(time_range, str) else time_range  # not text: fastprof/inputs/times.py
        self._wanted_threads = self.options[THREADS] if THREADS in self.selects else ()
        self._chooses = self._part is not None or bool(self._time_range or self._wanted_threads)
        self._filter = ffi.new("struct fp_archive_filter *")
        self._section: Section | None = None
        self._expected: tuple[int, int, int] = (0, 0, 0)
        self._open = False
        self._rows_read = 0  # of the chunk
        self._is_past_rows = False  # what follows the rows in a bundle is being read
        self._rows_kept = 0  # of the profile
        self._last_time: int | None = None  # of a timeline's rows so far
        self._payload = b""
        self._ids = owned(lib.fp_archive_ids_new(self.model.c), "the archive's ids")
        self._part_at: list[int] = []  # by part of the archive: its index in the model
        self._file_part = 0  # of the batch being filled
        self._inner: list[Inner] = []  # sections of the bundle that have not been read, the next one last
        if any(type_ in (PARTS, BUNDLE) for _, type_, _ in self._member.sections):
            # created in advance, so that rows survive damaged entries of parts
            self._part_at.append(self.model.add_part(Part()))
        self._dec = owned(lib.fp_archive_dec_new(self._ids), "the archive decoder")
        self._passed_over = self._rows_passed_over = 0
        self._forgets = False  # once the rows of the batch are read, stacks are forgotten
        self._bases: set[int] = set()  # bases of the sections so far
        self._mask = b""  # of the model's threads: 1 for those to keep

    def _error(self, error: SectionError) -> FormatError:
        code = lib.FP_E_MALFORMED
        if isinstance(error, VersionError):
            code = lib.FP_E_VERSION
        elif error.truncated:
            code = lib.FP_E_TRUNCATED
        return self.damaged(error.detail, error.offset, code)

    def _choose(self, archive: Archive) -> Member:
        source, wanted = self.source, self.options[MEMBER_NAME]
        if wanted is not None:
            found = [*archive.matching(source, wanted)]
        elif archive.count <= 1:
            found = archive.chosen(source)
            if not found:
                raise FormatError(source.name, self.format, "no profile in this archive")
        else:
            found = []
        if len({one.name for one in found}) == 1:
            return archive.member(found[-1])
        if found or wanted is None:
            names = in_words(found, len(found)) if found else archive.names(source)
            pattern = f"{source.name}:{wanted or '*'}"
            is_path = source.name == source.path  # verbs accept FILE:PATTERN
            raise UsageError(
                Message(
                    "{file}: the archive holds several profiles: {names}; choose one with {--member}{others}",
                    file=source.name,
                    names=names,
                    others=f", or all with {pattern!r}" if is_path else "",
                )
            )
        raise UsageError(f"{source.name}: the archive has no profile {wanted!r}, only {archive.names(source, wanted)}")

    def summary(self) -> Summary | None:
        """The totals from the member's END, without reading chunks; None with --lenient or if rows are selected."""
        end = self._member.end
        known = all(type_ <= NUMBERS or type_ == BUNDLE for _, type_, _ in self._member.sections)
        if self.options[LENIENT] or self._chooses or not known or end is None or end.get("overflowed"):
            return None
        found = Summary()
        c = found.c
        try:
            for section, raw in metadata(self.source, self._codec, self._member, PARTS):
                self._section = section
                self._take_parts(unpack_metadata(section, raw, list))
            if len({tuple(self.model.parts[i].value_types) for i in self._part_at}) > 1:
                return None  # END has sums by column, regardless of the part
            for i, n in enumerate(end["kinds"]):
                c.rows[i] = n
            times = [chunk.times for chunk in self._member.chunks.values() if chunk.times]
            if times:
                c.first_time, c.last_time = min(first for first, _ in times), max(last for _, last in times)
            c.calls = end.get("calls", 0)
            totals = end.get("totals", [])
            found.reserve(len(totals))
            for i, n in enumerate(totals):
                c.totals[i] = n
            counts = end["counts"]
            found.functions, found.stacks = end.get("functions", counts[3]), counts[6]
            found.threads = [tuple(row) for row in end.get("threads", [])]
            self._name_threads({row[0]: row[0] for row in found.threads})
        except SectionError as error:
            raise self._error(error) from None
        except (IndexError, KeyError, OverflowError) as error:
            raise self._error(SectionError(self._member.sections[-1][0], f"summary: {error!r}")) from None
        self._tell()
        return found

    # ---- which sections ------------------------------------------------------

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        for offset, type_, nbytes in self._member.sections:
            if type_ == ROWS and not self._wanted(self._member.chunks[offset]):
                self._pass_over(self._member.chunks[offset])
                continue
            self._expected = (offset, type_, nbytes)
            self._section = None
            self._open = False
            yield offset, nbytes

    def _pass_over(self, chunk: Chunk) -> None:
        self._passed_over += 1
        self._rows_passed_over += chunk.rows

    def _chunk(self) -> Chunk:
        """The chunk of the section being read, or of its bundle."""
        return self._member.chunks.get(self._expected[0], Chunk(self._expected[0]))

    def _wanted(self, chunk: Chunk) -> bool:
        time_range, part = self._time_range, self._part
        if time_range and chunk.times and (chunk.times[1] < time_range[0] or chunk.times[0] > time_range[1]):
            return False
        if part is not None and chunk.parts and part - 1 not in chunk.parts:
            return False
        if self._wanted_threads and chunk.threads and self._member.end is not None:
            return not self._thread_ids.isdisjoint(chunk.threads)
        return True

    @cached_property
    def _thread_ids(self) -> set[int]:
        """The archive's ids of the threads to keep."""
        assert self._member.end is not None
        rows = self._member.end.get("threads", [])
        return {i for i, row in enumerate(rows, 1) if is_chosen(row[1], row[2], self._wanted_threads)}

    # ---- feeding ---------------------------------------------------------------

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        try:
            if self._forgets:
                return self._forget(batch)
            status = self._rows(batch, err) if self._open else self._next(in_, batch, err)
            while status == lib.FP_DONE and self._inner:
                inner = self._inner.pop()
                if inner.section.type == ROWS and not self._wanted(self._chunk()):
                    self._pass_over(self._chunk())
                    self._is_past_rows = True
                else:
                    raw = self._codec.restore(inner.section, inner.stored, inner.base)
                    status = self._take(inner.section, raw, batch, err)
            return status
        except SectionError as error:
            if not self.options[LENIENT]:
                raise self._error(error) from None
            self._lose(error)
            self._inner.clear()
            in_.pos = in_.n
            return int(lib.FP_DONE)

    def _next(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        offset, type_, nbytes = self._expected
        if in_.n - in_.pos < nbytes and not in_.eof:
            return int(lib.FP_MORE)
        data = memoryview(ffi.buffer(in_.p + in_.pos, in_.n - in_.pos))
        section = archive_sections.parse_header(bytes(data[:HEADER_NBYTES]), offset)
        if (section.type, section.member, section.nbytes) != (type_, self._member.number, nbytes):
            raise SectionError(offset, "section differs from its index entry")
        stored = bytes(data[HEADER_NBYTES:nbytes])
        if section.flags & BASED:
            self._note_base(int.from_bytes(stored[:8], "little"))
        raw = self._codec.unpack(section, stored)
        in_.pos += nbytes
        if section.type == BUNDLE:
            self._inner, self._is_past_rows = opened(section, raw)[::-1], False
            for base in {inner.base for inner in self._inner if inner.base}:
                self._note_base(base)
            return int(lib.FP_DONE)
        return self._take(section, raw, batch, err)

    def _note_base(self, base: int) -> None:
        """Errors: SectionError, if another section has the base.  A large one would be decompressed again for each of
        many small sections."""
        if base in self._bases:
            what = "section refers to the same base as another section of the profile"
            raise SectionError(self._expected[0], what)
        self._bases.add(base)

    def _take(self, section: Section, raw: bytes, batch: fp_batch, err: fp_err) -> int:
        self._section = section
        if section.type == PARTS:
            self._take_parts(unpack_metadata(section, raw, list))
        elif section.type == TABLES:
            self._ids.renews_stacks = self.renews_stacks
            self._status(lib.fp_archive_tables_read(self._ids, raw, len(raw), err), err)
        elif section.type == ROWS:
            self._payload = raw
            self._set_filter()
            status = lib.fp_archive_dec_open(self._dec, self._c_payload(), len(raw), len(self._part_at), err)
            self._status(status, err)
            self._open = True
            self._rows_read = 0
            return self._rows(batch, err)
        elif section.type == FORGET:
            return self._forget(batch)
        elif section.type == NUMBERS:
            self._take_numbers(unpack_metadata(section, raw, dict))
        elif section.type == END:
            archive_sections.unpack_end(section, raw)
        elif section.type != MEMBER and not section.flags & OPTIONAL:
            what = f"section of the unknown type {section.type}, written by a later version"
            raise VersionError(section.offset, what)
        return int(lib.FP_DONE)

    def _forget(self, batch: fp_batch) -> int:
        """End references to stacks, after the rows of the batch."""
        self._forgets = batch.n > 0 and self.keeps_stacks
        if self._forgets:
            return int(lib.FP_FULL)
        lib.fp_archive_ids_forget(self._ids)
        if self.keeps_stacks:
            self.model.empty_stacks()  # a copy forgets the same
        return int(lib.FP_DONE)

    @property
    def renews_stacks(self) -> bool:  # type: ignore[override]
        """Not if a copy keeps them, of which few are needed at any time."""
        return not (self.keeps_stacks and self._has_few_stacks)

    @cached_property
    def _has_few_stacks(self) -> bool:
        """Whether those that rows refer to are few at any time.  Archives with many had no FORGET before 0.1.0."""
        ends = any(type_ == FORGET for _, type_, _ in self._member.sections)
        counts: Any = (self._member.end or {}).get("counts", [])
        return ends or len(counts) < 7 or counts[6] <= STACKS_AT_A_TIME

    def _set_filter(self) -> None:
        """Set the exact filter for rows; chunks were selected by the index."""
        if not self._chooses:
            return
        chosen = self._filter
        chosen.rows.first_time, chosen.rows.last_time = self._time_range or (0, UINT64)
        chosen.part = 0xFFFFFFFF if self._part is None else min(self._part - 1, 0xFFFFFFFE)
        if self._wanted_threads:
            first, n = len(self._mask), self.model.count("threads")
            rows = ((i, self.model.row("threads", i)) for i in range(first, n))
            wanted = (i > 0 and is_chosen(row[1], row[2], self._wanted_threads) for i, row in rows)
            self._mask += bytes(wanted)
            self._keep_mask = ffi.from_buffer("uint8_t[]", self._mask)
            chosen.rows.threads.keep, chosen.rows.threads.n = self._keep_mask, n
        lib.fp_archive_dec_filter(self._dec, chosen)

    def _c_payload(self) -> Pointer[int]:
        self._keep = ffi.from_buffer("uint8_t[]", self._payload)
        return self._keep

    def _rows(self, batch: fp_batch, err: fp_err) -> int:
        before = batch.n
        if before:
            batch.part = self._file_part
        status = lib.fp_archive_dec_feed(self._dec, batch, err)
        if batch.n or status == lib.FP_FULL:
            self._file_part = batch.part
            batch.part = self._part_at[self._file_part]
            if not batch.n:
                pass  # a part without rows
            elif self.view == "timeline":
                self._last_time = batch.time[batch.n - 1]
            elif batch.n_values < (n := len(types := self.model.parts[batch.part].value_types)):
                batch.n = before
                raise SectionError(self._expected[0], f"rows of {batch.n_values} values, but the part has {n}")
            else:  # the part's value types are lost
                types.extend(ValueType(f"value{k + 1}") for k in range(n, batch.n_values))
        self._rows_read += batch.n - before
        self._rows_kept += batch.n - before
        self._status(status, err)
        if status == lib.FP_DONE:
            self._open, self._is_past_rows = False, True
        return int(status)

    def _status(self, status: int, err: fp_err) -> int:
        """Check a status.  Errors name the section's offset, because theirs is inside the compressed payload."""
        if status >= 0:
            return status
        if status == lib.FP_E_NOMEM:
            raise MemoryError(f"{self.source.name}: out of memory")
        assert self._section is not None
        what = ffi.string(err.what).decode()
        raise SectionError(self._section.offset, f"{what} at byte {err.offset} of the payload is malformed")

    def _take_parts(self, entries: list[Any]) -> None:
        assert self._section is not None
        parts = self.model.parts
        for entry in entries:
            try:
                if not fits(entry, [int, dict]):
                    raise ValueError(f"an entry is {entry!r:.80}")
                index, plain = entry
                part = from_plain(plain)
                if not 0 <= index <= len(self._part_at):
                    raise ValueError(f"part {index} of {len(self._part_at)}")
            except ValueError as error:
                raise SectionError(self._section.offset, f"parts: {error}") from None
            if index == len(self._part_at):
                self._part_at.append(self.model.add_part(part))
            else:
                # in place: a writer may hold the object
                vars(parts[self._part_at[index]]).update(vars(part))

    def _name_threads(self, inputs: Mapping[int, int]) -> None:
        """Name the threads of these inputs of the archive, whose numbers in the model are given."""
        names, stated = self.model.names, {row[0]: row[1:] for row in (self._member.end or {}).get("inputs", [])}
        for own, input_ in inputs.items():
            if own in stated:
                names.put_input(input_, *stated[own])
            for part in () if own in stated else [self.model.parts[i] for i in self._part_at]:
                names.take(part, input_)

    def _take_numbers(self, numbers: dict[Any, Any]) -> None:
        assert self._section is not None
        for function, number in numbers.items():
            known = isinstance(function, int) and 0 < function < self._ids.n[3]
            if not known or not isinstance(number, int) or number < 0:
                raise SectionError(self._section.offset, f"number {number!r} of function {function!r}")
            self.model.numbers[self._ids.to[3][function]] = number

    # ---- damage ------------------------------------------------------------------

    def _lose(self, error: SectionError) -> None:
        _, type_, _ = self._expected
        log = self.log
        lost = f"{self.source.name}: at byte {error.offset}: {error.detail}: "
        if type_ == ROWS or (type_ == BUNDLE and not self._is_past_rows):
            chunk = self._chunk()
            # damage that checksums miss may only be found after some rows
            read = self._rows_read if self._open else 0
            log.count(REPORTED["archive-chunks"])
            log.count(REPORTED["archive-rows"], max(chunk.rows - read, 0))
            lost += f"a chunk of {counted(chunk.rows, 'row') if chunk.rows else 'an unknown number of rows'} is lost"
            if read:
                lost += f" from row {read} on"
            if chunk.times:
                lost += f", times {chunk.times[0]} to {chunk.times[1]}"
            elif self._last_time is not None:
                lost += f", after time {self._last_time}"
        else:
            log.count(REPORTED[_LOST.get(type_, "archive-sections")])
            lost += f"{archive_sections.NAMES.get(type_, 'a section')} is lost"
        log.warn(REPORTED["lost-sections"], lost=lost)
        self._open = False

    def _count(self) -> None:
        """Compare the number of rows with END: a whole section may be missing undetected."""
        end, name = self._member.end, self.source.name
        if end is None:
            last = f", the last at time {self._last_time}" if self._last_time is not None else ""
            self.log.warn(REPORTED["no-end"], file=name, rows=counted(self._rows_kept, "row is", "rows are"), last=last)
            return
        kinds: Any = end.get("kinds")
        known = isinstance(kinds, list) and all(isinstance(n, int) for n in kinds)
        if not known or self._chooses:
            return
        missing = sum(kinds) - self._rows_kept - self.log.losses["archive-rows"]
        if not missing:
            return
        what = (
            f"the profile has {counted(sum(kinds), 'row')}, but {counted(self._rows_kept, 'row is', 'rows are')} left"
        )
        if not self.options[LENIENT] or missing < 0:
            raise self._error(SectionError(self._member.sections[-1][0], what))
        self.log.count(REPORTED["archive-rows"], missing)
        self.log.warn(REPORTED["missing-rows"], file=name, what=what)

    def finish(self) -> None:
        self.log.leave_out(self._filter.left_out + self._rows_passed_over, self.selects, self.options)
        times = [chunk.times for chunk in self._member.chunks.values() if chunk.times]
        if self._time_range and times:
            clock = self.model.parts[-1].extra.get("ticks_per_second", 0) if self.view == "timeline" else 10**9
            self.model.times.append(Span(min(first for first, _ in times), max(last for _, last in times), clock))
        ids = self._ids
        self._name_threads({ids.inputs.words[i]: ids.model_inputs[i] for i in range(1, int(ids.inputs.n))})
        self._count()
        self._tell()

    def _tell(self) -> None:
        log, member = self.log, self._member
        log.losses.take(self._archive.losses)
        facts = log.facts
        facts["archive_version"] = archive_sections.VERSION
        facts["chunks"] = len(member.chunks)
        if self._passed_over:
            facts["chunks_passed_over"] = self._passed_over
        end = member.end or {}
        if "facts" in end:
            facts["recorded"] = end["facts"]
        for name in ("repairs", "losses"):
            if name in end:  # of several archives, keep all
                recorded = Counter(facts.get(f"recorded_{name}", {})) + Counter(end[name])
                facts[f"recorded_{name}"] = dict(recorded)
