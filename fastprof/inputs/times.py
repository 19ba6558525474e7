"""Resolves filters that need the whole input, which is read twice: relative time ranges (--time-range 10%:20%) and
names of threads."""

from fastprof.core import times
from fastprof.core._typing import Any
from fastprof.core.branches import BRANCHES
from fastprof.core.engine import Format, Reader, Summary
from fastprof.core.errors import usage_error
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import THREADS, TIME_RANGE, Options
from fastprof.core.source import Source
from fastprof.core.thread_names import ThreadNames, is_name


def resolved(source: Source, format_: Format, options: Options) -> dict[str, Any]:
    """By name of an option: a range in ticks of this input as recorded, except of a graph, which has no times; ids of
    threads, and (pid, tid) for each with one of the names.

    An archive has the times in its index.  An input that cannot be read again is copied to a temporary file first.
    Errors: UsageError for a unit if the clock is unknown; those of reading.
    """
    if source.folder is None:
        source.spool()
    model = Model()
    # of samples with branches, too: sums of branches have no times
    filters = (TIME_RANGE.name, THREADS.name, BRANCHES.name)
    others = {name: value for name, value in options.given.items() if name not in filters}
    reader = format_.reader_class()(source, model, Options(**others), Log())
    time_range = options.given.get(TIME_RANGE.name)
    names = [name for name in options[THREADS] if is_name(name)]
    is_ranged = isinstance(time_range, str) and reader.view != "graph"
    if not names and not is_ranged:
        return {}
    summary = reader.summary()
    if summary is None:
        summary = Summary()
        for batch in reader.rows():
            summary.add(batch)
        summary.count(model)
    found: dict[str, Any] = {}
    if is_ranged:
        found[TIME_RANGE.name] = _range(source, str(time_range), reader, model, summary)
    if names:
        known = ThreadNames(model)
        named = [row[1:] for row in summary.threads if not known.texts(row).isdisjoint(map(str, names))]
        found[THREADS.name] = (*(one for one in options[THREADS] if not is_name(one)), *(named or [(-1, -1)]))
    return found


def _range(source: Source, time_range: str, reader: Reader, model: Model, summary: Summary) -> tuple[int, int]:
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
    raise usage_error("{file}: {--time-range:name}: {what}", file=source.name, what=what)
