"""Writes rows of a table (bridges/rows/as_table.py), 128 Ki at a time: a row group of Parquet, a batch of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Writer

if TYPE_CHECKING:
    from fastprof.core.arrow_column import ArrowColumn


class TableWriter(Writer):
    """Takes rows instead of batches, so there is no `put`."""

    view = "any"
    _name = ""

    def put_all(self, batches: Iterable[Any]) -> None:
        rows: Iterator[Any] = iter(batches)
        batch = next(rows)  # there is always one
        self._name = batch.metadata[b"table"].decode()
        self._begin([column.without_items() for column in batch.columns], batch.metadata)
        while batch is not None:
            self.written += len(batch)
            self._put_rows(batch)
            self.model.check_memory()
            batch = next(rows, None)
        self._end()

    def _begin(self, columns: list[ArrowColumn], metadata: dict[bytes, bytes]) -> None:
        raise NotImplementedError

    def _put_rows(self, rows: Any) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self.log.facts["table"] = self._name
        self.log.rows["table_rows"] += self.written
