"""Writes OpenTelemetry profiles (csrc/otlp/write.h)."""

from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Writer
from fastprof.core.model import Batch, Part, ValueType
from fastprof.core.parts import columns_for, comments_of, descriptions_of, merge_parts, remarks_of
from fastprof.core.spill import Groups
from fastprof.core.varint import varint
from fastprof.formats.otlp import ENCODING
from fastprof.formats.otlp.reported import REPORTED

# Strings that the encoder compares with, by their names in C.
_KEYS = {
    "process_pid": "process.pid",
    "thread_id": "thread.id",
    "trace_id": "trace_id",
    "span_id": "span_id",
    "zero": "0",
    "gnu": "process.executable.build_id.gnu",
    "go": "process.executable.build_id.go",
    "is_folded": "pprof.location.is_folded",
    "has_functions": "pprof.mapping.has_functions",
    "has_filenames": "pprof.mapping.has_filenames",
    "has_lines": "pprof.mapping.has_line_numbers",
    "has_inlines": "pprof.mapping.has_inline_frames",
}
_TABLES = {
    1: "mappingTable",
    2: "locationTable",
    3: "functionTable",
    4: "linkTable",
    5: "stringTable",
    6: "attributeTable",
    7: "stackTable",
}


def _field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value) if value else b""


def _head(number: int, n: int) -> bytes:
    """The tag and length of a field."""
    return varint(number << 3 | 2) + varint(n)


class OtlpWriter(Writer):
    """Writes one message: for each resource and scope a profile of each value type, then the dictionary.

    Memory: the tables of the model, and 64 KiB for each resource, scope and value type; the rest goes to a temporary
    file.
    """

    format = "otlp"
    view = "stacks"

    def start(self) -> None:
        self._w = w = owned(lib.fp_otlp_writer_new(self.model.c), "the OTLP encoder")
        for name, text in _KEYS.items():
            setattr(w.keys, name, self.model.intern(text))
        named = self.sink.path is not None and _is_json(self.sink.path)
        self._json = self.options[ENCODING] == "json" if self.options[ENCODING] else named
        self._types: list[ValueType] | None = None
        self._columns: dict[int, list[int]] = {}  # part -> column of each value type, -1 for none
        self._used: list[Part] = []
        self._groups = Groups()

    def _columns_of(self, index: int) -> list[int]:
        part = self.model.parts[index]
        if self._types is None:
            self._types = [ValueType(t.name, t.unit) for t in part.value_types]
            self._w.n_columns = len(self._types)
        self._used.append(part)
        return columns_for(part, self._types, self.log, REPORTED["value-types"])

    def put(self, batch: Batch) -> None:
        if batch.part not in self._columns:
            self._columns[batch.part] = self._columns_of(batch.part)
        columns = self._columns[batch.part]
        while status := lib.fp_otlp_put(self._w, batch.c, columns):
            self.check(status)
            buffer = self._w.buffers[self._w.full]
            self._groups.add(self._w.full, buffer)
            buffer.n = 0

    # ---- the message

    def end(self) -> None:
        w, log = self._w, self.log
        if self._types is None and self.model.parts:
            self._columns_of(0)
        self.check(lib.fp_otlp_end(w))
        part = merge_parts(self._used, self._types or [ValueType("samples", "count")])
        heads = [(self._value_type(1, *t[:2]), self._tail(part)) for t in self._types or []]
        default = part.extra.get("default_sample_type")
        resources = self._resources(default)
        if self._json:
            self._write_json(resources, heads)
        else:
            self._write_binary(resources, heads)
        log.count_all(REPORTED, w.stats)
        self.written = int(w.stats.samples)
        log.rows["samples_written"] += self.written

    def _string(self, text: str | bytes) -> int:
        return enough(lib.fp_otlp_string(self._w, self.model.intern(text)))

    def _value_type(self, field: int, name: str, unit: str) -> bytes:
        return _field(field, _number(1, self._string(name)) + _number(2, self._string(unit)))

    def _tail(self, part: Part) -> bytes:
        """Fields of a profile after its samples."""
        extra = part.extra
        tail = b""
        if time := extra.get("time_ns"):
            tail += b"\x19" + (time & (1 << 64) - 1).to_bytes(8, "little")
        tail += _number(4, min(extra.get("duration_ns", 0), (1 << 64) - 1))
        if extra.get("period") and "period_type" in extra:
            tail += self._value_type(5, *extra["period_type"])
        tail += _number(6, extra.get("period", 0))
        indices = b"".join(varint(index) for index in self._attributes(part))
        return tail + (_field(11, indices) if indices else b"")

    def _attributes(self, part: Part) -> Iterator[int]:
        """Fields of pprof that are attributes in OTLP."""
        for key in ("doc_url", "drop_frames", "keep_frames"):
            if text := part.extra.get(key):
                yield self._attribute(f"pprof.profile.{key}", _field(1, self._utf8(text)))
        comments = dict.fromkeys([*comments_of(part), *remarks_of(part)])
        if part.command:
            comments[b"Command: " + part.command] = None
        comments.update(dict.fromkeys(key + b": " + text if key else text for key, text in descriptions_of(part)))
        if comments:
            values = b"".join(_field(1, _field(1, self._utf8(comment))) for comment in comments)
            yield self._attribute("pprof.profile.comment", _field(5, values))

    def _utf8(self, text: str | bytes) -> bytes:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        repaired = data.decode("utf-8", "replace").encode()
        self._w.stats.not_utf8 += repaired != data
        return repaired

    def _attribute(self, key: str, value: bytes) -> int:
        return enough(lib.fp_otlp_attribute(self._w, self.model.intern(key), value, len(value)))

    def _resources(self, default: str | None) -> dict[bytes, list[tuple[bytes, int]]]:
        """The scopes of each resource, as messages without their profiles, and their numbers."""
        places, found = self._w.places, dict[bytes, list[tuple[bytes, int]]]()
        for k in range(1, max(places.n, 2)):
            start = places.start[k] if k < places.n else 0
            content = bytes(ffi.buffer(places.bytes + start, places.start[k + 1] - start)) if k < places.n else bytes(4)
            n = int.from_bytes(content[:4], "little")
            resource, scope = content[4 : 4 + n], content[4 + n :]
            if default and len(self._types or ()) > 1:
                value = _field(1, b"pprof.scope.default_sample_type") + _field(2, _field(1, self._utf8(default)))
                scope += _field(3, value)
            found.setdefault(resource, []).append((scope, k))
        return found

    def _profiles(self, place: int) -> list[tuple[int, int]]:
        """The (column, buffer) of each profile of a place.  The first place has all value types, in order."""
        n = self._w.n_columns
        found = []
        for column in range(n):
            buffer = lib.FP_OTLP_TABLE_BUFFERS + place * n + column
            if place == 1 or self._nbytes(buffer):
                found.append((column, buffer))
        return found

    def _nbytes(self, buffer: int) -> int:
        held = int(self._w.buffers[buffer].n) if buffer < self._w.n_buffers else 0
        return held + self._groups.size(buffer)

    def _content(self, buffer: int) -> Iterator[fp_window]:
        """The content, as struct fp_window *."""
        if self._nbytes(buffer):
            yield from self._groups.windows(buffer, self._w.buffers[buffer])

    def _write_binary(self, resources: dict[bytes, list[tuple[bytes, int]]], heads: list[tuple[bytes, bytes]]) -> None:
        for resource, scopes in resources.items():
            sizes = {
                place: {
                    column: sum(map(len, heads[column])) + self._nbytes(buffer)
                    for column, buffer in self._profiles(place)
                }
                for _, place in scopes
            }
            of_scopes = {
                place: len(_field(1, scope)) * bool(scope) + sum(n + len(_head(2, n)) for n in sizes[place].values())
                for scope, place in scopes
            }
            first = _field(1, resource) if resource else b""
            n_all = len(first) + sum(n + len(_head(2, n)) for n in of_scopes.values())
            self.text(_head(1, n_all) + first)
            for scope, place in scopes:
                self.text(_head(2, of_scopes[place]) + (_field(1, scope) if scope else b""))
                for column, buffer in self._profiles(place):
                    head, tail = heads[column]
                    self.text(_head(2, sizes[place][column]) + head)
                    self._copy(buffer)
                    self.text(tail)
        self.text(_head(2, sum(self._nbytes(table) for table in _TABLES)))
        for table in _TABLES:
            self._copy(table)

    def _copy(self, buffer: int) -> None:
        for window in self._content(buffer):
            self.drain()
            self.sink.write(memoryview(ffi.buffer(window.p, window.n)))

    # ---- JSON

    def _write_json(self, resources: dict[bytes, list[tuple[bytes, int]]], heads: list[tuple[bytes, bytes]]) -> None:
        self.text(b'{"resourceProfiles":[')
        for i, (resource, scopes) in enumerate(resources.items()):
            self.text(b",\n{" if i else b"\n{")
            if resource:
                self._members(_field(1, resource), lib.FP_OTLP_RESOURCE_PROFILES)
                self.text(b",")
            self.text(b'"scopeProfiles":[')
            for k, (scope, place) in enumerate(scopes):
                self.text(b",{" if k else b"{")
                if scope:
                    self._members(_field(1, scope), lib.FP_OTLP_SCOPE_PROFILES)
                    self.text(b",")
                self.text(b'"profiles":[')
                for m, (column, buffer) in enumerate(self._profiles(place)):
                    self._json_profile(b",\n{" if m else b"\n{", *heads[column], buffer)
                self.text(b"]}")
            self.text(b"]}")
        self.text(b'],\n"dictionary":{')
        for table, name in _TABLES.items():
            self.text(b'%b"%b":[' % (b"" if table == 1 else b",\n", name.encode()))
            self._json_list(table, lib.FP_OTLP_DICTIONARY, table)
            self.text(b"]")
        self.text(b"}}\n")

    def _json_profile(self, begin: bytes, head: bytes, tail: bytes, buffer: int) -> None:
        self.text(begin)
        self._members(head, lib.FP_OTLP_PROFILE)
        self.text(b',"samples":[')
        self._json_list(buffer, lib.FP_OTLP_PROFILE, 2)
        self.text(b"]")
        if tail:
            self.text(b",")
            self._members(tail, lib.FP_OTLP_PROFILE)
        self.text(b"}")

    def _members(self, data: bytes, message: int) -> None:
        enough(lib.fp_otlp_members(data, len(data), message, self.out))

    def _json_list(self, buffer: int, message: int, number: int) -> None:
        for k, window in enumerate(self._content(buffer)):
            enough(lib.fp_otlp_to_json(window.p, window.n, message, number, k == 0, self.out))
            self.drain()


def _is_json(path: str) -> bool:
    from fastprof.core.streams import compression_of_name

    return path.removesuffix(compression_of_name(path)).endswith((".json", ".jsonl"))
