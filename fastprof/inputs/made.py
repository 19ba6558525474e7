"""Profiles that are made here: written as an archive on the way, which is an input like any other."""

from collections.abc import Iterable

from fastprof.core._typing import Any
from fastprof.core.engine import CAPACITY, DRAIN
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import Options
from fastprof.core.spill import Spilled
from fastprof.formats.archive.write import ArchiveWriter
from fastprof.formats.arrow import tables

ARCHIVE: Any = ArchiveWriter.format
_IN_MEMORY = 64 << 20  # bytes


class MadeBytes(bytes):
    """An archive in memory.  `name`: for messages."""

    name = ""


class _Kept:
    """The sink of an archive: memory, beyond a limit an unnamed temporary file."""

    def __init__(self, name: str) -> None:
        self._name, self._parts, self._n = name, list[bytes](), 0
        self._file: Spilled | None = None

    def write(self, data: memoryview) -> None:
        if self._file is None and self._n + len(data) > _IN_MEMORY:
            self._file = Spilled()
            for part in self._parts:
                self._file.append(memoryview(part))
            self._parts.clear()
        if self._file is not None:
            self._file.append(data)
        else:
            self._parts.append(bytes(data))
            self._n += len(data)

    def content(self) -> Any:
        """An input."""
        if self._file is not None:
            file = self._file.file()
            file.name = self._name
            return file
        made = MadeBytes(b"".join(self._parts))
        made.name = self._name
        return made


class Made:
    """A profile being made.  `what`: for errors; `name`: of the profile."""

    def __init__(self, what: str, name: str = "", format_: str = "python") -> None:
        self.what, name = what, name or f"<{what}>"
        self.model = Model()
        self.input = self.model.input()
        self.model.inputs.append(name)
        self.model.formats.append(format_)
        self.model.names.begin(self.input, name)
        self._kept = _Kept(name)
        self._writer = ArchiveWriter(self.model, self._kept, Options(), Log())  # type: ignore[arg-type]

    def fail(self, text: str) -> Exception:
        return UsageError(f"{self.what}: {text}")

    def put(self, batch: Batch) -> None:
        self.model.check_memory()
        self._writer.put(batch)
        if self._writer.out.n >= DRAIN:
            self._writer.drain()

    def batch(self, view: str, n_values: int = 0) -> Batch:
        batch = Batch(view, CAPACITY[view], n_values)
        batch.c.part = len(self.model.parts) - 1
        return batch

    def put_columns(
        self, of: tables.Layout, chunks: Iterable[tables.Chunk], frames: Any = None, clock: int = 0
    ) -> None:
        """Put the rows of a table.  `frames`: layout and chunks of the other one of stacks; `clock`: of spans."""
        part = Part(value_types=tables.value_types(of))
        if of.table == "spans":
            part.extra["ticks_per_second"] = clock
        self._writer.view = tables.VIEWS[of.table]  # also without rows
        rows = tables.Rows(of, self.model, part, self.input, self.fail)
        if frames is not None:
            rows.with_frames(frames[1], frames[0])
        for batch in rows.batches(chunks):
            self.put(batch)

    def content(self) -> Any:
        """The input.  Call it once, at the end."""
        self._writer.end()
        self._writer.drain()
        return self._kept.content()
