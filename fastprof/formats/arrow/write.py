"""Writes rows of a table (bridges/rows/as_table.py), 128 Ki at a time: a row group of Parquet, a batch of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fastprof.core._typing import Any
from fastprof.core.engine import Writer
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.version import __version__
from fastprof.core.words import install

_ROW_GROUP = 128 * 1024  # rows; they are held in memory
_WRITTEN = 8192  # rows that arro3 encodes at a time
# Columns of mostly distinct numbers, which as dictionaries would take half as much space again, and twice the time.
_DELTAS = ("id", "ts", "dur", "self", "depth", "parent")


class _TableWriter(Writer):
    """arro3 pulls the rows, so there is no `put`, and writes to the sink itself."""

    view = "any"

    def __init__(self, model: Model, sink: Sink, options: Options, log: Log) -> None:
        super().__init__(model, sink, options, log)
        try:
            from arro3 import io
        except ImportError:
            raise UsageError(f"{self.format} needs arro3-io: {install('parquet')}") from None
        self._io = io
        self._failed: BaseException | None = None  # arro3 replaces errors of the sink
        self._name = ""

    def put_all(self, batches: Iterable[Any]) -> None:
        rows = iter(batches)
        first = next(rows)  # there is always one
        self._name = first.metadata[b"table"].decode()
        try:
            self._write(_Stream(self._counted(first, rows), first, self._fail), _File(self))
        except BaseException:  # a panic of Rust is a BaseException
            if self._failed is None:
                raise
        if self._failed is not None:
            raise self._failed from None

    def _write(self, rows: _Stream, file: _File) -> None:
        raise NotImplementedError

    def _counted(self, first: Any, rows: Iterator[Any]) -> Iterator[tuple[object, int, list[Any]]]:
        batch = first
        while batch is not None:
            self.written += len(batch)
            yield batch.c, len(batch), batch.columns
            self.model.check_memory()
            batch = next(rows, None) if self._failed is None else None

    def _fail(self, error: BaseException) -> None:
        self._failed = error

    def end(self) -> None:
        self.log.facts["table"] = self._name
        self.log.rows["table_rows"] += self.written


class ParquetWriter(_TableWriter):
    format = "parquet"

    def _write(self, rows: _Stream, file: _File) -> None:
        self._io.write_parquet(
            rows,
            file,
            compression="zstd(1)",
            column_encoding=dict.fromkeys(_DELTAS, "delta_binary_packed"),
            column_dictionary_enabled=dict.fromkeys(_DELTAS, False),
            max_row_group_size=_ROW_GROUP,
            write_batch_size=_WRITTEN,
            created_by=f"fastprof-{__version__}",
        )


class ArrowWriter(_TableWriter):
    format = "arrow"

    def _write(self, rows: _Stream, file: _File) -> None:
        self._io.write_ipc_stream(rows, file, compression=None)


class _Stream:
    """For arro3: rows that can be taken once."""

    def __init__(
        self, items: Iterator[tuple[object, int, list[Any]]], first: Any, fail: Callable[[BaseException], None]
    ) -> None:
        self._items, self._first, self._fail = items, first, fail

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from fastprof.core import _arrow

        return _arrow.stream(self._items, self._first.columns, lambda: self._first.metadata, self._fail)


class _File:
    """The sink, as arro3 requires it.  It only writes forward, but checks for a `seek`.

    Errors are kept for `put_all`, not raised: arro3 would print a panic of Rust."""

    def __init__(self, writer: _TableWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> int:
        if self._writer._failed is None:
            try:
                self._writer.sink.write(data)
            except BaseException as error:
                self._writer._fail(error)
        return len(data)

    def flush(self) -> None:
        pass

    def seek(self, *_: int) -> int:
        raise OSError("is written from its beginning to its end")
