"""The fastprof archive: any profile, small, intact and quick to reach.

The door stays light, because every door is opened to recognize an input:
archive_read.py and archive_write.py are loaded when an archive is.  Bytes:
docs/formats/archive.md.
"""

from __future__ import annotations

from fastprof.engine import Format, Options, Reader, Report, Writer
from fastprof.io import Sink, Source
from fastprof.model import Model

MAGIC = b"\x89FPA\r\n\x1a\n"


def _reader(source: Source, model: Model, options: Options, report: Report) -> Reader:
    from fastprof.formats.archive_read import ArchiveReader

    return ArchiveReader(source, model, options, report)


def _writer(model: Model, sink: Sink, options: Options, report: Report) -> Writer:
    from fastprof.formats.archive_write import ArchiveWriter

    return ArchiveWriter(model, sink, options, report)


FORMAT = Format(
    name="archive",
    view="any",
    title="fastprof archive: any profile, compressed, with an index",
    suffixes=(".fpa",),
    sniff=lambda head: head.startswith(MAGIC),
    reader=_reader,
    writer=_writer,
    selects=("member", "time_range", "threads", "part"),
    writes=("level",),
)
