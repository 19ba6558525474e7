"""Reads OProfile sessions and sample files (csrc/oprofile/read.h)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import NamedTuple, fp_batch, fp_err, fp_oprofile_header, fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Reader
from fastprof.core.errors import FormatError, UsageError, check
from fastprof.core.folder import File
from fastprof.core.messages import Message
from fastprof.core.model import MAX_VALUE_TYPES, Part, ValueType
from fastprof.core.options import LENIENT
from fastprof.core.tar import is_tar, members
from fastprof.formats.oprofile import ADD_UP, LOGS, SPEC
from fastprof.formats.oprofile.cpus import CPU_TYPES
from fastprof.formats.oprofile.images import Images, Loaded
from fastprof.formats.oprofile.names import BadNameError, Image, SampleName, is_sample_file, parse
from fastprof.formats.oprofile.reported import REPORTED
from fastprof.formats.oprofile.session import log_lost_samples, read_abi
from fastprof.formats.oprofile.spec import parse as parse_specs

_NO_PLACE = Image("")
_HEAD_NBYTES = 128


class Class(NamedTuple):
    """Samples of one value column."""

    unit_mask: int
    event: str
    period: int


class PartKey(NamedTuple):
    """Samples of one part; -1: not distinguished."""

    program: str
    tgid: int
    tid: int
    cpu: int


class SampleFile(NamedTuple):
    file: File
    name: SampleName
    class_: Class
    sign: int


class Group:
    """The sample files of a part for one image, or for the calls from one image to another."""

    def __init__(self, part: PartKey, image: Image, callee: Image | None) -> None:
        self.part, self.image, self.callee = part, image, callee
        self.files: list[SampleFile] = []


class OProfileReader(Reader):
    """A session, an archive of one, or one sample file; samples of a program, thread and CPU are a part."""

    format = "oprofile"
    view = "graph"

    def start(self) -> None:
        self._r = owned(lib.fp_oprofile_reader_new(self.options[LENIENT]), "sample files")
        self._files = members(self.source, self._lose_archive if self.options[LENIENT] else None)
        self._merged = set(self.options[ADD_UP])
        if "all" in self._merged:
            self._merged |= {"cpu", "lib", "tid", "tgid", "unitmask"}
        if "tgid" in self._merged:
            self._merged.add("tid")
        self._single = self.source.folder is None and not is_tar(self.source.head)
        chosen = [*self._chosen()]
        self._merged |= _compared(chosen)
        self._groups = self._sorted(chosen)
        self._classes = sorted({file.class_ for group in self._groups for file in group.files})
        if len(self._classes) > MAX_VALUE_TYPES:
            what = "events, counts and unit masks make {n:,} value types, expected up to {most:,}; "
            what += "choose some with {--spec}"
            raise self.damaged(Message(what, n=len(self._classes), most=MAX_VALUE_TYPES), 0)
        self._class_at = {class_: at for at, class_ in enumerate(self._classes)}
        self._parts: dict[PartKey, int] = {}
        self._part = 0
        self._images = Images(self.source, self._files, self.model, self.options, self.log)
        self._samples: list[Counter[str]] = [Counter() for _ in self._classes]  # by image
        self._cpu_types: dict[str, None] = {}
        self._group: Group | None = None
        self._current: SampleFile | None = None  # the file being read; None: rows are being made
        self._mtimes: set[int] = set()
        self._first: dict[Image, SampleFile] = {}  # of each image
        self._header: fp_oprofile_header | None = None  # of the group's first file
        self._from: Loaded | None = None
        self._to: Loaded | None = None
        read_abi(self.source, self._files, self._r)

    # ---- which files

    def _lose_archive(self) -> None:
        self.log.count(REPORTED["damaged-archives"])

    def _chosen(self) -> Iterator[tuple[File, SampleName, int]]:
        """The sample files that the specification selects, with the signs of their samples."""
        specs = parse_specs(self.options[SPEC])
        named = [*self._named()]
        signs = (1,) if len(specs) == 1 else (-1, 1)
        for spec, sign in zip(specs, signs, strict=True):
            fitting = [(file, name, sign) for file, name in named if spec.fits(name)]
            yield from fitting
            if not fitting and spec.text:
                raise UsageError(f"{self.source.name}: no sample file matches the specification {spec.text!r}")
            if not fitting:
                self._nothing(named)

    def _nothing(self, named: list[tuple[File, SampleName]]) -> None:
        """No session is named `current`, or there are no sample files at all."""
        if sessions := sorted({name.session for _, name in named if name.session is not None}):
            raise UsageError(
                Message(
                    "{file}: it has no session 'current', only {sessions}; choose with {--spec:=}session:{first}",
                    file=self.source.name,
                    sessions=", ".join(sessions),
                    first=sessions[0],
                )
            )
        if not self.log.losses:
            if {os.path.basename(file.name) for file in self._files} & {*LOGS, "abi"}:
                what = "no sample files in the session: nothing was sampled; its log may have the reason"
                raise self.damaged(what)
            what = "it has no sample files, expected some below {root} or {kern}"
            if is_tar(self.source.head):
                what = "the tar has no OProfile sample files below {root} or {kern}; unpack it to read another format"
            raise self.damaged(what, 0)

    def _named(self) -> Iterator[tuple[File, SampleName]]:
        for file in self._files:
            path = os.path.abspath(file.name) if self._single else file.name
            if self._single and not is_sample_file(path):
                yield file, SampleName(None, _NO_PLACE, _NO_PLACE, None, "", 0, 0, None, None, None)
            elif is_sample_file(path):
                try:
                    name = parse(path)
                except BadNameError as error:
                    if not self.options[LENIENT]:
                        raise FormatError(self._where(file), self.format, str(error), offset=0) from None
                    self.log.count(REPORTED["unknown-files"])
                    continue
                yield file, name._replace(session=None) if self._single else name

    def _sorted(self, chosen: Iterable[tuple[File, SampleName, int]]) -> list[Group]:
        merged, groups = self._merged, dict[tuple[PartKey, Image, Image], Group]()
        for file, name, sign in chosen:
            part = PartKey(
                "" if "lib" in merged else name.program.name,
                -1 if name.tgid is None or "tgid" in merged else name.tgid,
                -1 if name.tid is None or "tid" in merged else name.tid,
                -1 if name.cpu is None or "cpu" in merged else name.cpu,
            )
            class_ = Class(-1 if "unitmask" in merged else name.unit_mask, name.event, name.period)
            # calls follow the costs of their image
            key = part, name.image, name.callee or _NO_PLACE
            group = groups.setdefault(key, Group(part, name.image, name.callee))
            group.files.append(SampleFile(file, name, class_, sign))
        return [groups[key] for key in sorted(groups)]

    def _where(self, file: File) -> str:
        """A file of the input, for errors."""
        if self._single:
            return self.source.name
        return f"{self.source.name}{'/' if self.source.folder is not None else ':'}{file.name}"

    # ---- reading

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        r = self._r
        for group in self._groups:
            lib.fp_oprofile_begin_group(r)
            self._group, self._header = group, None
            self._mtimes.clear()
            for sample in group.files:
                self._current = sample
                lib.fp_oprofile_begin_file(r, sample.file.size, self._class_at[sample.class_], sample.sign)
                yield sample.file.start, sample.file.size

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        r, group = self._r, self._group
        assert group is not None
        if self._current is not None:
            status = lib.fp_oprofile_feed(r, in_, err)
            if status == lib.FP_MORE:
                return int(status)
            self._file_read(self._current, status, err)
            last = self._current is group.files[-1]
            self._current = None
            if not last:
                return int(lib.FP_DONE)
            self._end_group(group)
        if batch.n and batch.part != self._part:
            return int(lib.FP_FULL)
        batch.part = self._part
        return self._rows(batch, err)

    def _file_read(self, sample: SampleFile, status: int, err: fp_err) -> None:
        r, log = self._r, self.log
        if status < 0:
            if status == lib.FP_E_NOMEM or not self.options[LENIENT]:
                check(status, err, self._where(sample.file), self.format)
            log.count(REPORTED["damaged-files"])
        log.count_all(REPORTED, r)
        if r.header_nbytes:
            h = r.header
            if self._header is None:
                self._header = ffi.new("struct fp_oprofile_header *", h)
            self._mtimes.add(int(h.mtime))
            known = CPU_TYPES[h.cpu_type] if h.cpu_type < len(CPU_TYPES) else f"type {h.cpu_type}"
            self._cpu_types[f"{known}, {h.mhz:.0f} MHz" if 0 < h.mhz < 1e6 else known] = None
        if sample.name.callee is None:
            image = sample.name.image.name or "unknown"
            self._samples[self._class_at[sample.class_]][image] += int(r.samples) * sample.sign

    def _end_group(self, group: Group) -> None:
        """The rows of a group begin."""
        self._part = self._part_of(group.part)
        images = self._images
        self._from = images.get(group.image, self._mtime)
        self._to = images.get(group.callee, self._mtime) if group.callee is not None else None
        h = self._header or ffi.new("struct fp_oprofile_header *")
        if len(self._mtimes) > 1:
            self.log.warn(REPORTED["changed-while-sampled"], path=group.image.name)
        from_shift = _shift(self._from, h.is_kernel, h.anon_start)
        to_shift = _shift(self._to, h.callee_is_kernel, h.callee_anon_start) if self._to else 0
        to = self._to.c if self._to else ffi.NULL
        enough(lib.fp_oprofile_end_group(self._r, self._from.c, from_shift, to, to_shift, len(self._classes)))

    def _rows(self, batch: fp_batch, err: fp_err) -> int:
        r, from_, to = self._r, self._from, self._to
        assert from_ is not None and self._group is not None
        before = int(batch.n)
        while (status := int(lib.fp_oprofile_rows(r, batch, err))) == lib.FP_NEEDS:
            image = from_ if r.requested_image == from_.c else to
            assert image is not None
            self._images.name(r.requested_image, r.requested_symbol, image)
        if status < 0:
            check(status, err, self._where(self._group.files[0].file), self.format)
        n = int(batch.n)
        if from_.elf is not None:
            places = self._images.lines_of(from_, batch.address[before:n], batch.function[before:n])
            for row, (file, line) in enumerate(places, before):
                batch.file[row], batch.line[row] = file, line
        if to is not None and to.elf is not None:
            for row, line in enumerate(self._images.own_lines_of(to, batch.target_address[before:n]), before):
                batch.target_line[row] = line
        return status

    def _mtime(self, image: Image) -> int:
        """An image's modification time, from the header of a sample file of it; 0 if none."""
        if not self._first:
            self._first = {group.image: group.files[0] for group in reversed(self._groups)}
        sample = self._first.get(image)
        if sample is None:
            return 0
        data = self.source.read_at(sample.file.start, _HEAD_NBYTES)
        r = owned(lib.fp_oprofile_reader_new(True), "a header")
        r.has_abi, r.abi = self._r.has_abi, self._r.abi
        lib.fp_oprofile_begin_file(r, sample.file.size, 0, 1)
        window = ffi.from_buffer("uint8_t[]", data)
        lib.fp_oprofile_feed(
            r, ffi.new("struct fp_window *", {"p": window, "n": len(data)}), ffi.new("struct fp_err *")
        )
        return int(r.header.mtime)

    # ---- parts

    def _part_of(self, key: PartKey) -> int:
        if key not in self._parts:
            part = Part(self._value_types(), ("instr", "line"), number=len(self._parts) + 1)
            part.command = os.fsencode(key.program) if key.program else None
            part.pid = key.tgid if key.tgid >= 0 else None
            part.thread = key.tid if key.tid >= 0 else None
            if key.cpu >= 0:
                part.extra["cpu"] = key.cpu
                part.descriptions.append((b"CPU", b"%d" % key.cpu))
            if len(self._classes) == 1:
                event = self._event(self._classes[0])
                part.extra["period"], part.extra["period_type"] = event.period, (event.event, "count")
            self._parts[key] = self.model.add_part(part)
        return self._parts[key]

    def _event(self, class_: Class) -> Class:
        """A class; for a sample file without a name it comes from the header."""
        h = self._header
        if class_.event or h is None:
            return class_
        return Class(int(h.unit_mask), f"event_{h.event:#x}", int(h.count))

    def _value_types(self) -> list[ValueType]:
        """A column for each class, named after its event if that is unique."""
        classes = [self._event(class_) for class_ in self._classes]
        events = Counter(class_.event for class_ in classes)
        found = []
        for class_ in classes:
            mask = f".{class_.unit_mask}" if class_.unit_mask >= 0 else ""
            name = class_.event if events[class_.event] == 1 else f"{class_.event}.{class_.period}{mask}"
            of_mask = f", unit mask {class_.unit_mask:#x}" if class_.unit_mask > 0 else ""
            found.append(ValueType(name, "count", f"samples of {class_.event}{of_mask}, one every {class_.period}"))
        return found

    # ---- the end

    def summary(self) -> None:
        """Does nothing: lines of images are not needed here and slow to load."""
        self._images.lines = False

    def finish(self) -> None:
        self._images.end()
        files = [file for group in self._groups for file in group.files]
        names = [file.name for file in files]
        facts = self.log.facts
        if not self._single:
            facts["sessions"] = ", ".join(sorted({name.session for name in names if name.session}))
        facts["sample_files"] = len(files)
        facts["cpu"] = "; ".join(self._cpu_types)
        types = self._value_types()
        facts["events"] = {t.name: t.long_name for t in types}
        facts["programs"] = ", ".join(dict.fromkeys(name.program.name for name in names if name.program.name))
        for what, values in (("threads", {n.tid for n in names}), ("cpus", {n.cpu for n in names})):
            numbers = ", ".join(str(value) for value in sorted(value for value in values if value is not None))
            facts[f"{what}_distinct"] = numbers or "not recorded"
        by_event = {t.name: dict(samples.most_common()) for t, samples in zip(types, self._samples, strict=True)}
        facts["samples_by_image"] = by_event if len(types) != 1 else by_event[types[0].name]
        log_lost_samples(self.source, self._files, {name.session for name in names if name.session}, self.log)


def _compared(chosen: list[tuple[File, SampleName, int]]) -> set[str]:
    """The fields that a difference compares, which thus do not separate its parts: { cpu:0 } { cpu:1 }."""
    found = set()
    for what in ("tgid", "tid", "cpu"):
        before, after = ({getattr(name, what) for _, name, sign in chosen if sign == side} for side in (-1, 1))
        if len(before) == len(after) == 1 and before != after:
            found.add(what)
    return found


def _shift(loaded: Loaded, is_kernel: int, anon_start: int) -> int:
    """The offset to add to keys for positions in the image's file."""
    if loaded.by_address:
        return int(anon_start)
    return int(loaded.c.text) if is_kernel else 0
