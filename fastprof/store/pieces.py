"""Writes one profile for a store: as its next member, or as a piece.

A piece is a profile compressed by another process for a store: an archive with this single member, whose sections may
be stored against sections of the store.  `Adding.add_piece` copies them.
"""

import os
from collections.abc import Callable, Iterator
from functools import lru_cache

from fastprof import bridges, formats, plan
from fastprof.core._typing import Any
from fastprof.core.engine import Reader, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Option, Options, checked
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.formats.archive.index import load_at
from fastprof.formats.archive.sections import Codec, Member
from fastprof.formats.archive.write import ArchiveWriter
from fastprof.inputs import Progress, open_reader
from fastprof.inputs.state import located
from fastprof.store.bases import Alike, Bases, read_families


def adding_options() -> list[Option[Any]]:
    """The options that adding a profile may use."""
    writes = formats.get(ArchiveWriter.format).writes
    more = (*bridges.NAME_ADDRESSES.options, *bridges.INPUT_LABELS)
    return [*dict.fromkeys((*plan.reading_options(), *more, *writes))]


def write_member(
    input_: Any,
    from_: str | None,
    chosen: Options,
    member: Member,
    bases: Bases,
    sink: Sink,
    at: int = 0,
    progress: Progress | None = None,
    idle: Callable[[Option[Any]], None] | None = None,
) -> Log:
    """Write a profile as `member`, see ArchiveWriter."""
    model, log = Model(), Log()
    reader = open_reader(input_, from_, model, chosen, log, progress)
    with reader.source as source:
        archive = formats.get(ArchiveWriter.format)
        made = plan.checked(plan.writing(archive), [[reader]], chosen, idle=idle)
        member.about = {"format": reader.format}
        if source.identity is not None:
            _, _, member.about["nbytes"], member.about["mtime"] = source.identity
        base_of = Alike(bases, reader.view)
        writer = ArchiveWriter(model, sink, chosen, log, member=member, at=at, base_of=base_of)
        writer.view = reader.view
        write(_noting_labels(made.rows(model, log), reader, member), writer)
    return log


def _noting_labels(rows: Iterator[Batch], reader: Reader, member: Member) -> Iterator[Batch]:
    """Rows.  The plan gives the input its labels before the first of them, and the writer then begins the member."""
    first = next(rows, None)
    if reader.labels:
        member.about["labels"] = dict(sorted(reader.labels.items()))
    if first is not None:
        yield first
        yield from rows


def write_piece(
    path: str,
    base: dict[str, Any],
    input_: Any,
    name: str,
    *,
    from_: str | None = None,
    idle: Callable[[Option[Any]], None] | None = None,
    **options: Any,
) -> Log:
    """Write a profile to the file at `path`, for `Adding.add_piece` of the store that gave the `base`.

    `idle` collects options without an effect on this profile; without it they are an error.
    Errors: FastprofError and its subclasses; then there is no file.
    """
    chosen = checked(options, plan.known_options())
    file = os.stat(base["store"])
    bases = _bases_at(base["store"], base["index"], file.st_dev, file.st_ino)
    bases.change(base["changed"])
    with Sink(path, durable=False) as sink:
        log = write_member(input_, from_, chosen, Member(0, name), bases, sink, idle=idle)
        sink.commit()
        log.facts["output_bytes"] = sink.output_bytes
    return log


@lru_cache(maxsize=1)
def _bases_at(store: str, index: int, device: int, inode: int) -> Bases:
    """The bases in a store by its INDEX at this offset.  The file stays open, so that its inode is not reused."""
    source = Source(store)
    with located(store):
        return Bases(source, read_families(source, load_at(source, Codec(), index)))
