"""Writes pprof's profile.proto (csrc/pprof/write.h)."""

from fastprof.core._c import lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.model import Batch, Part, ValueType
from fastprof.core.options import INT64
from fastprof.core.parts import columns_for, comments_of, descriptions_of, merge_parts, program_of, remarks_of
from fastprof.formats.pprof import COMMENTS, NAME_ADDRESSES, TIME
from fastprof.formats.pprof.reported import REPORTED


class PprofWriter(Writer):
    """A profile in one pass, gzip-compressed unless the output's suffix selects another compression."""

    format = "pprof"
    view = "stacks"

    def start(self) -> None:
        self._w = w = owned(lib.fp_pprof_writer_new(self.model.c), "the pprof encoder")
        w.words.pid, w.words.tid = self.model.intern("pid"), self.model.intern("tid")
        w.words.no_stack = self.model.intern("[no stack]")
        w.name_addresses = self.options[NAME_ADDRESSES]
        self._types: list[ValueType] | None = None
        self._columns: dict[int, list[int]] = {}  # part -> column of each sample type, -1 for none
        self._used: list[Part] = []
        lib.fp_wire_put_bytes(self.out, 6, b"", 0)  # string 0

    def _string(self, text: str | bytes) -> int:
        return enough(lib.fp_pprof_string(self._w, self.model.intern(text), self.out))

    def _number(self, field: int, value: int) -> None:
        lib.fp_wire_put_nonzero(self.out, field, value & (1 << 64) - 1)

    def _value_type(self, field: int, name: str, unit: str) -> None:
        name_id, unit_id = self._string(name), self._string(unit)  # before the message: may write strings
        mark = lib.fp_wire_begin(self.out, field)
        self._number(1, name_id)
        self._number(2, unit_id)
        lib.fp_wire_end(self.out, mark)

    def _choose(self) -> None:
        """What the operators say with the first row."""
        self._w.no_system_names = is_small = self.model.has_last_calls
        if self.sink.path is None or not self.sink.path.endswith((".pb", ".pprof.raw")):
            self.sink.gzip(is_small=is_small)

    def _begin(self, part: Part) -> None:
        self._choose()
        self._types = [ValueType(t.name, t.unit) for t in part.value_types]
        for t in self._types:
            self._value_type(1, t.name, t.unit)

    def _begin_part(self, index: int) -> None:
        """The target of each of its columns."""
        part = self.model.parts[index]
        if self._types is None:
            self._begin(part)
        assert self._types is not None
        self._columns[index] = columns_for(part, self._types, self.log, REPORTED["value-types"])
        self._used.append(part)

    def put(self, batch: Batch) -> None:
        index = batch.part
        if index not in self._columns:
            self._begin_part(index)
        columns = self._columns[index]
        n = len(columns)
        self.take_all(lambda: lib.fp_pprof_put(self._w, batch.c, columns, n, self.out))

    def end(self) -> None:
        if self._types is None:
            if self.model.parts:
                self._begin_part(0)
            else:
                self._choose()
        types, used = self._types or [ValueType("samples", "count")], self._used
        is_whole = len(used) == 1 and used[0].value_types == types and "merged" not in used[0].extra
        part = used[0] if is_whole else merge_parts(used, types)
        status = lib.fp_pprof_mappings(self._w, self._program(part), self.out)
        self.check(status)
        self._metadata(part)
        stats, log = self._w.stats, self.log
        log.count_all(REPORTED, stats)
        self.written = int(stats.samples)
        log.rows["samples_written"] += self.written

    def _program(self, part: Part) -> int:
        """The object of the main program, 0 if it is not known.  pprof's titles name the first mapping."""
        model = self.model
        if not part.command and "program" not in part.extra:
            return 0
        names = [model.string(model.row("objects", i)[0]) for i in range(model.count("objects"))]
        program = program_of(part, names)
        return 0 if program is None else names.index(program)

    def _metadata(self, part: Part) -> None:
        """Fields of the profile as a whole."""
        types, extra = part.value_types, part.extra
        # some readers fail without a type; an unknown period is omitted, because 1 would be wrong
        self._value_type(11, *extra.get("period_type", (types[-1].name, types[-1].unit)))
        self._number(12, extra.get("period", 0))
        time_ns = self.options[TIME]
        self._number(9, extra.get("time_ns", 0) if time_ns is None else time_ns)
        duration = extra.get("duration_ns", 0)
        if duration > INT64:
            self.log.count(REPORTED["duration"])
        else:
            self._number(10, duration)
        for field, key in ((7, "drop_frames"), (8, "keep_frames"), (14, "default_sample_type"), (15, "doc_url")):
            if extra.get(key):
                self._number(field, self._string(extra[key]))
        comments = dict.fromkeys([*comments_of(part), *remarks_of(part)])
        if part.command:
            comments[b"Command: " + part.command] = None
        comments.update(dict.fromkeys(key + b": " + text if key else text for key, text in descriptions_of(part)))
        comments.update((c.encode("utf-8", "surrogateescape"), None) for c in self.options[COMMENTS])
        for comment in comments:
            lib.fp_wire_put_number(self.out, 13, self._string(comment))  # an element of a list, so 0 is written too
