"""Reads the columns of a table: Arrow's IPC streams, and Parquet.

    schema | (dictionaries, rows) ... | end         a message: ffffffff | length u32 | FlatBuffer | body

Parquet is read by DuckDB: its encodings, compressions and versions are many, and DuckDB reads them all, in C++.
Errors: those of `fail`.  Sources: flatbuffers.dev/internals; github.com/apache/arrow, format/Schema.fbs, Message.fbs.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress

from fastprof.core._c import ffi
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.c_memory import address_of
from fastprof.core.errors import UsageError
from fastprof.core.messages import install
from fastprof.core.source import WINDOW, Source
from fastprof.core.streams import temporary_file
from fastprof.formats.arrow import tables
from fastprof.formats.arrow._columns import Array, Stream
from fastprof.formats.arrow.schema import DICTIONARY, ROWS, SCHEMA

FailAt = Callable[..., Exception]  # of a text, and an offset

_MOST_BODY = 1 << 40
_MOST_FLAT = 1 << 24
_MOST_COLUMNS = 4096
_CONTINUES = b"\xff\xff\xff\xff"
_TEXTS = {4: b"z", 5: b"u", 19: b"Z", 20: b"U", 23: b"vz", 24: b"vu"}
_INTEGERS = {(8, 1): b"c", (8, 0): b"C", (16, 1): b"s", (16, 0): b"S", (32, 1): b"i", (32, 0): b"I", (64, 1): b"l",
             (64, 0): b"L"}  # fmt: skip
_UNITS = b"smun"
_NULL, _INT, _REAL, _DECIMAL, _TIMESTAMP, _DURATION = 1, 2, 3, 7, 10, 18
_ZSTD = 1
_UNPACKED_LEAST, _UNPACKED_OF_BYTE = 1 << 28, 64  # bytes that a stream may unpack, and more by byte of it that was read


class _Flat:
    """A table of a FlatBuffer.  Errors: struct.error and IndexError for what is outside of it."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self._vtable = at - self._number("<i", at)
        self._n = self._number("<H", self._vtable)

    def _number(self, kind: str, at: int) -> int:
        if at < 0:
            raise IndexError
        return int(struct.unpack_from(kind, self.data, at)[0])

    def _place(self, field: int) -> int:
        """Where a field is; 0 if it is missing."""
        at = 4 + 2 * field
        offset = self._number("<H", self._vtable + at) if at + 2 <= self._n else 0
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str, otherwise: int = 0) -> int:
        at = self._place(field)
        return self._number(kind, at) if at else otherwise

    def table(self, field: int) -> _Flat | None:
        at = self._place(field)
        return _Flat(self.data, at + self._number("<I", at)) if at else None

    def vector(self, field: int, width: int) -> tuple[int, int]:
        """Its place and the number of its items."""
        at = self._place(field)
        if not at:
            return 0, 0
        at += self._number("<I", at)
        n = self._number("<I", at)
        if n * width > len(self.data) - at - 4:
            raise IndexError
        return at + 4, n

    def tables(self, field: int) -> list[_Flat]:
        at, n = self.vector(field, 4)
        return [_Flat(self.data, at + 4 * i + self._number("<I", at + 4 * i)) for i in range(n)]

    def numbers(self, field: int) -> list[int]:
        at, n = self.vector(field, 8)
        return [*struct.unpack_from(f"<{n}q", self.data, at)]

    def pairs(self, field: int) -> list[tuple[int, int]]:
        at, n = self.vector(field, 16)
        return [*struct.iter_unpack("<qq", self.data[at : at + 16 * n])]

    def text(self, field: int) -> bytes:
        at, n = self.vector(field, 1)
        return self.data[at : at + n]

    def metadata(self, field: int) -> dict[bytes, bytes]:
        return {pair.text(0): pair.text(1) for pair in self.tables(field)}


class _Field(NamedTuple):
    name: str
    format: bytes  # of the items; b"n": none
    metadata: dict[bytes, bytes]
    dictionary: int | None  # its id
    words: bytes = b""  # the format of its texts


def _format(kind: int, of: _Flat | None) -> bytes:
    if kind in _TEXTS:
        return _TEXTS[kind]
    if kind == _NULL:
        return b"n"
    if of is None:
        raise IndexError
    if kind == _INT:
        return _INTEGERS.get((of.number(0, "<i"), of.number(1, "<B")), b"")
    if kind == _REAL:
        return {1: b"f", 2: b"g"}.get(of.number(0, "<h"), b"")
    if kind == _DECIMAL:
        return b"d:38,0" if of.number(2, "<i", 128) == 128 and not of.number(1, "<i") else b""
    if kind in (_TIMESTAMP, _DURATION):
        unit = of.number(0, "<h", 0 if kind == _TIMESTAMP else 1)
        return (b"ts" if kind == _TIMESTAMP else b"tD") + _UNITS[unit : unit + 1]
    return b""


def _header(flat: bytes) -> _Flat:
    found = _Flat(flat, int.from_bytes(flat[:4], "little")).table(2)
    if found is None:
        raise IndexError
    return found


def _schema(of: _Flat) -> tuple[list[_Field], dict[bytes, bytes]]:
    """The fields of a schema and its metadata.  Errors: ValueError for a type that is not read."""
    fields = []
    if of.number(0, "<h"):
        raise ValueError("has numbers in big-endian order")
    for field in of.tables(1)[:_MOST_COLUMNS]:
        name, encoding = field.text(0).decode("utf-8", "replace"), field.table(4)
        own = _format(field.number(2, "<B"), field.table(3))
        if not own:
            raise ValueError(f"column {name!r:.80}: its type is neither numbers nor texts")
        if encoding is None:
            fields.append(_Field(name, own, field.metadata(6), None))
        else:
            index = _format(_INT, encoding.table(1)) if encoding.table(1) else b"i"
            fields.append(_Field(name, index, field.metadata(6), encoding.number(0, "<q"), own))
    return fields, of.metadata(2)


class _Messages:
    """The messages of a stream."""

    def __init__(self, source: Source, fail: FailAt) -> None:
        source.spool()
        self._source, self._fail = source, fail
        self.at = self._next = 0
        self.fields: list[_Field] = []
        self._dictionaries: dict[int, Array] = {}
        self._unpacked: dict[int, int] = {}  # bytes of the dictionaries that were compressed

    def fail(self, text: str) -> Exception:
        return self._fail(text, self.at)

    def _bytes(self, n: int) -> bytes:
        size = self._source.size or 0
        data = self._source.read_at(self._next, n) if n <= size - self._next else b""
        if len(data) < n:
            raise self._fail(f"ends at byte {size}, within a message or before the end of the stream", self.at)
        self._next += n
        return data

    def next(self) -> tuple[int, _Flat, int] | None:
        """The kind of the next message, its header and the length of its body; None: the end."""
        self.at = self._next
        n = self._bytes(4)
        if n == _CONTINUES:
            n = self._bytes(4)
        length = int.from_bytes(n, "little")
        if not length:
            return None
        if length > _MOST_FLAT:
            raise self.fail(f"a message has {length} bytes of metadata, more than the limit of 16 MiB")
        flat = self._bytes(length)
        message = _Flat(flat, int.from_bytes(flat[:4], "little"))
        header, body = message.table(2), message.number(3, "<q")
        if header is None or not 0 <= body < _MOST_BODY:
            raise IndexError
        return message.number(1, "<B"), header, body

    def chunks(self) -> Iterator[tables.Chunk]:
        while True:
            try:
                found = self.next()
                if found is None:
                    return
                kind, header, n = found
                if kind == DICTIONARY:
                    self._keep(header, self._bytes(n))
                elif kind == ROWS:
                    arrays = self._arrays(header, self._bytes(n), self.fields)
                    yield {field.name: array for field, array in zip(self.fields, arrays, strict=True) if array}
                else:
                    raise IndexError
            except (struct.error, IndexError):
                raise self.fail("a message is malformed") from None
            except ValueError as error:
                raise self.fail(str(error)) from None

    def begin(self) -> tables.Columns:
        try:
            found = self.next()
            if found is None or found[0] != SCHEMA or found[2]:
                raise IndexError
            self.fields, metadata = _schema(found[1])
        except (struct.error, IndexError):
            raise self.fail("the schema is malformed") from None
        except ValueError as error:
            raise self.fail(str(error)) from None
        names, units, clock = tables.described(self.fields, metadata)
        return names, self.chunks(), units, clock

    def _keep(self, header: _Flat, body: bytes) -> None:
        id, data = header.number(0, "<q"), header.table(1)
        if header.number(2, "<B") or data is None:
            raise ValueError("a dictionary is a difference from an earlier one, which is not read")
        words = next((field.words for field in self.fields if field.dictionary == id), None)
        if words is None:
            raise ValueError(f"dictionary {id} belongs to no column")
        (found,) = self._arrays(data, body, [_Field("", words, {}, None)], id)
        if found is not None:
            self._dictionaries[id] = found

    def _arrays(self, batch: _Flat, body: bytes, fields: list[_Field], id: int | None = None) -> list[Array | None]:
        """The columns of a batch, or the texts of dictionary `id`."""
        n, nodes, buffers, variadic = batch.number(0, "<q"), batch.pairs(1), batch.pairs(2), batch.numbers(4)
        compression = batch.table(3)
        owner = ffi.from_buffer(body)
        found: list[Array | None] = []
        at = 0
        kept_before = sum(n for key, n in self._unpacked.items() if key != id)
        room = most = _UNPACKED_LEAST + _UNPACKED_OF_BYTE * self._next - kept_before
        if len(nodes) != len(fields):
            raise ValueError(f"a batch has {len(nodes)} columns, the schema {len(fields)}")
        if sum(max(m, 0) for _, m in buffers) > len(body):
            raise ValueError("the buffers of a batch overlap")
        for field, (rows, missing) in zip(fields, nodes, strict=True):
            count = 0 if field.format == b"n" else 3 if field.format in (b"z", b"u", b"Z", b"U") else 2
            if field.format[:1] == b"v":
                if (more := variadic.pop(0)) < 0:
                    raise IndexError
                count += more
            own = buffers[at : at + count]
            at += count
            if len(own) != count or rows != n or any(not 0 <= a <= a + m <= len(body) for a, m in own):
                raise ValueError(f"column {field.name!r:.80}: its buffers are outside of the batch")
            if field.format == b"n":
                found.append(None)
                continue
            words = None
            if field.dictionary is not None and (words := self._dictionaries.get(field.dictionary)) is None:
                raise ValueError(f"column {field.name!r:.80}: its dictionary is missing")
            places: list[tuple[int, int]] = [(address_of(owner) + a, m) for a, m in own]
            kept: Any = owner
            if compression is not None:
                kept = []
                for a, m in own:
                    kept.append(_decompressed(body[a : a + m], compression.number(0, "<b"), room))
                    room -= len(kept[-1])
                places = [(address_of(ffi.from_buffer(data)), len(data)) for data in kept]
            if not missing:
                places[0] = 0, 0
            found.append(Array.of(field.format, n, places, words, (body, kept)))
        if id is not None:
            self._unpacked[id] = most - room
        return found


def _decompressed(data: bytes, codec: int, most: int) -> bytes:
    """A buffer of a compressed batch: its length, or -1 if it is not compressed, then its bytes, `most` at most."""
    n = int.from_bytes(data[:8], "little", signed=True)
    if not data or n == -1:
        return data[8:]
    if codec != _ZSTD:
        raise ValueError("is compressed by LZ4, which is not read; write it with zstd, or not compressed")
    import zstandard

    if zstandard.frame_content_size(data[8:]) not in (n, -1) or not 0 <= n < 1 << 31:
        raise ValueError(f"a compressed buffer states {n} bytes")
    if n > most:
        raise ValueError(f"a compressed buffer has {n} bytes, with which the stream unpacks to far more than its size")
    try:
        return zstandard.ZstdDecompressor().decompress(data[8:], max_output_size=n)
    except zstandard.ZstdError as error:
        raise ValueError(f"a compressed buffer is damaged: {error}") from None


def of_arrow(source: Source, fail: FailAt) -> tables.Columns:
    """The columns of an IPC stream."""
    return _Messages(source, fail).begin()


def _file_of(source: Source) -> Any:
    """A file with the bytes of a source, for the caller to close."""
    source.spool()
    if source.path is not None and source.size and not source.pinned:
        return open(source.duplicate(), "rb", buffering=0)
    file, at = temporary_file(), 0
    while data := source.read_at(at, WINDOW):
        at += file.write(data)
    return file


def of_parquet(source: Source, fail: FailAt) -> tables.Columns:
    """The columns of a Parquet file.  Errors: UsageError without DuckDB."""
    try:
        import duckdb
    except ImportError:
        raise UsageError(f"{source.name}: reading Parquet needs DuckDB: {install('sql')}") from None
    file = _file_of(source)
    path = f"/dev/fd/{file.fileno()}"  # by number: to DuckDB another path may be a pattern
    try:
        db = duckdb.connect()
        kept = db.execute("select value from parquet_kv_metadata(?) where key = 'ARROW:schema'", [path]).fetchall()
        relation = db.read_parquet(path, hive_partitioning=False)
        names, chunks, units, clock = tables.of_stream(Stream(relation.__arrow_c_stream__()), fail)
    except (duckdb.Error, ValueError) as error:
        raise fail(str(error).partition("\n")[0].replace(path, source.name)) from None
    if kept:  # units and the clock, which DuckDB does not pass on
        with suppress(struct.error, IndexError, ValueError):  # of a type that is not read here, or damaged
            _, units, clock = tables.described(*_schema(_header(b64decode(bytes(kept[0][0]))[8:])))

    def rows() -> Iterator[tables.Chunk]:
        with file, db:
            yield from chunks

    return names, rows(), units, clock
