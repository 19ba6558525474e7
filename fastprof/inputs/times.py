"""Resolves relative time ranges (--time-range 10%:20%), which need the times of the whole input: it is read twice."""

from __future__ import annotations

from fastprof.core import times
from fastprof.core.engine import Format, Summary
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import TIME_RANGE, Options
from fastprof.core.source import Source
from fastprof.core.words import Message


def resolved(source: Source, format_: Format, options: Options) -> tuple[int, int] | None:
    """The range of `options` in ticks of this input as recorded; None for a graph, which has no times.

    An archive has the times in its index.  An input that cannot be read again is copied to a temporary file first.
    Errors: UsageError for a unit if the clock is unknown; those of reading.
    """
    time_range = options[TIME_RANGE]
    assert isinstance(time_range, str)
    if source.folder is None:
        source.spool()
    model = Model()
    others = {name: value for name, value in options.given.items() if name != TIME_RANGE.name}
    reader = format_.reader_class()(source, model, Options(**others), Log())
    if reader.view == "graph":
        return None
    summary = reader.summary()
    if summary is None:
        summary = Summary()
        for batch in reader.rows():
            summary.add(batch)
    if summary.c.first_time > summary.c.last_time:
        return 0, 0  # no row has a time
    clocks = {part.extra.get("ticks_per_second", 0) for part in model.parts} if reader.view == "timeline" else {10**9}
    span = times.Span(int(summary.c.first_time), int(summary.c.last_time), clocks.pop() if len(clocks) == 1 else 0)
    what = None
    if not span.clock and times.needs_clock(time_range):
        what = f"the frequency of its clock is unknown; use percent, or ticks from {span.text()}"
    else:
        first, last = times.resolved(time_range, span)
        if first <= last:
            return first, last
        what = f"{time_range} begins after its end; the trace covers {span.text()}"
    raise UsageError(Message("{file}: {--time-range:name}: {what}", file=source.name, what=what))
