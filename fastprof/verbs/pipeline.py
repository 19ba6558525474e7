"""Plan and run: readers -> bridges -> writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from fastprof import formats
from fastprof.core._typing import IO, Any
from fastprof.core.engine import Format, Options, Reader, Report, Summary, Writer, misfit, read, write
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.io import Sink, Source, expand
from fastprof.core.model import Batch, Model

Bridge = Callable[[Iterable[Batch], Model, Options, Report], Iterator[Batch]]
Progress = Callable[[Source], None]


def _bridge(source_view: str, target_view: str) -> Bridge | None:
    """What turns one view into another; None when nothing has to be done."""
    if source_view == target_view:
        return None
    if source_view == "timeline":
        from fastprof.bridges import fold as timeline

        return timeline.to_graph if target_view == "graph" else timeline.to_stacks
    if source_view == "stacks":
        from fastprof.bridges import project as graph

        return graph.to_graph
    from fastprof.bridges import estimate

    return estimate.to_stacks


def checked(options: Options | Mapping[str, Any] | None) -> Options:
    """What a caller asks for: Options, or a mapping of some of their names.

    Lists may stand for tuples, paths for texts.
    Errors: UsageError for names that there are not and values that make no sense.
    """
    if options is None:
        return Options()
    if not isinstance(options, (Options, Mapping)):
        raise UsageError(f"options are {options!r:.80}, expected fastprof.Options or a mapping")
    given = options._asdict() if isinstance(options, Options) else dict(options)
    for name, value in given.items():
        if name not in Options._fields:
            raise UsageError(f"there is no option {name!r:.80}, only {', '.join(Options._fields)}")
        if isinstance(value, (list, tuple)):
            value = tuple(os.fspath(one) if isinstance(one, os.PathLike) else one for one in value)
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value != Options._field_defaults[name] and (why := misfit(name, value)):
            raise UsageError(f"{_flag(name)}: {why}")
        given[name] = value
    return Options(**given)


def open_reader(
    path: Any, from_: str | None, model: Model, options: Options, report: Report, progress: Progress | None = None
) -> Reader:
    """A reader of one input, its format recognized unless `from_` says it.  Its `source` is to be closed.

    Errors: FastprofError and its kinds, a UsageError also for options that make no sense.
    """
    options = checked(options)

    def lost(what: str) -> None:
        report.losses[what] += 1

    source = Source(path, lost=lost if options.lenient else None)
    try:
        if progress is not None:
            progress(source)
        format_ = formats.get(from_) if from_ else formats.detect(source)
        if not format_.reader:
            raise UsageError(f"{source.name}: fastprof writes {format_.name} but does not read it")
        return format_.reader_class()(source, model, options, report)
    except BaseException:
        source.close()
        raise


def convert(
    inputs: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    from_: str | None = None,
    to: str | None = None,
    options: Options | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Convert `inputs`, merged into one profile, to `output` ("-": standard output).

    The target is `to`, else what the output's suffix says.  Returns the report.
    Errors: FastprofError and its kinds; then nothing is left at `output`.
    """
    options = checked(options)
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    model, report = Model(), Report()
    paths, output = expand((os.fspath(path) for path in inputs), report.warn), os.fspath(output)
    if not paths:
        raise UsageError("there is no input")
    if to is None and output == "-":
        raise UsageError("writing to standard output needs --to FORMAT, see `fastprof formats`")
    target = formats.get(to) if to else formats.for_output(output)
    if not target.writer:
        raise UsageError(f"fastprof reads {target.name} but does not write it")
    readers = [open_reader(path, from_, model, options, report, progress) for path in paths]
    try:
        with Sink(output) as sink:
            writer = target.writer_class()(model, sink, options, report)
            if writer.view == "any":
                writer.view = readers[0].view
            refuse_idle(options, readers, target, writer.view)
            write(rows_for(writer, readers), writer)
            sink.commit()
            report.facts["output bytes"] = sink.output_bytes
    finally:
        for reader in readers:
            reader.source.close()
    return report


# What only bridges look at: the option, the view they come from and those they lead to ("": what `info` counts).
_OF_BRIDGES = {
    "inline_calls": ("stacks", ("graph",)),
    "stacks": ("graph", ("stacks",)),
    "prune": ("graph", ("stacks",)),
    "symbols": ("stacks", ("graph", "stacks", "")),
}
_FLAGS = {
    "time_ns": "--time",
    "comments": "--comment",
    "period_us": "--period",
    "compress_names": "--no-compress-names",
    "compress_positions": "--no-compress-positions",
    "threads": "--thread",
}


def refuse_idle(options: Options, readers: list[Reader], target: Format | None = None, view: str = "") -> None:
    """Errors: UsageError for an option that nothing looks at when `readers` are read, to be written as `target`."""
    default = Options()
    if options == default:
        return
    sources = [formats.get(reader.format) for reader in readers]
    used = set(target.writes) if target else set()
    used.update(*(source.reads for source in sources))
    used.update(set.intersection(*(set(source.selects) for source in sources)))
    for name, (before, after) in _OF_BRIDGES.items():
        if view in after and any(reader.view == before for reader in readers):
            used.add(name)
    of_formats = {name for f in formats.formats() for name in f.reads + f.selects + f.writes}
    for name in sorted((of_formats | _OF_BRIDGES.keys()) - used):
        if getattr(options, name) != getattr(default, name):
            # of several inputs the one that does not select
            reader = next(r for r, source in zip(readers, sources, strict=True) if name not in source.selects)
            way = f"from {reader.format} to {target.name}" if target else f"with {reader.format}"
            idle = f"{reader.source.name}: {_flag(name)} would do nothing {way}: it is for {_owners(name)}"
            raise UsageError(idle + _first(name, reader))


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def _owners(name: str) -> str:
    """The formats and bridges that look at an option."""
    found = [f"reading {f.name}" for f in formats.formats() if name in f.reads + f.selects]
    found += [f"writing {f.name}" for f in formats.formats() if name in f.writes]
    if name in _OF_BRIDGES:
        before, after = _OF_BRIDGES[name]
        found.append(f"what goes from {before} to {' or '.join(filter(None, after))}")
    return " and ".join(found)


def _first(name: str, reader: Reader) -> str:
    """What a profile can become first, so that an option does something."""
    kept = formats.get(reader.format).view == "any"
    for f in formats.formats():
        if f.writer and (name in f.selects or (kept and name in f.reads and f.view == reader.view)):
            return f"; convert it to {f.name} first"
    return ""


def rows_for(writer: Writer, readers: list[Reader]) -> Iterator[Batch]:
    """What a writer is to get of all readers."""
    model, options, report = writer.model, writer.options, writer.report
    symbolize = options.symbolize and writer.names
    return merged(readers, writer.view, model, options, report, symbolize=symbolize, labelled=writer.labels)


def merged(
    readers: list[Reader],
    view: str,
    model: Model,
    options: Options,
    report: Report,
    *,
    symbolize: bool = False,
    labelled: bool = False,
    capacity: int | None = None,
) -> Iterator[Batch]:
    """The batches of all readers, bridged to `view` and merged into one profile.

    `symbolize`: addresses of stacks are given their functions and lines.
    `labelled`: stacks are labelled as `options` says, and equal ones come as one.
    `capacity`: rows that the readers put into a batch.
    """
    timelines = [r for r in readers if r.view == "timeline"]
    streams: list[Iterator[Batch]] = []
    if timelines:
        # one stack machine for all: its arcs and contexts are then merged as they are found
        rows: Iterator[Batch] = chain.from_iterable(read(r, capacity) for r in timelines)
        bridge = _bridge("timeline", view)
        streams.append(bridge(rows, model, options, report) if bridge else rows)
    for reader in readers:
        if reader.view == "timeline":
            continue
        if view == "timeline":
            they = "a graph does" if reader.view == "graph" else "stacks do"
            raise UsageError(f"{reader.source.name}: {they} not say when things happened, which a timeline is made of")
        rows = read(reader, capacity)
        if reader.view == "stacks" and symbolize:
            from fastprof.bridges.symbolize import symbolize as named

            rows = named(rows, model, options, report)
        if options.compute_events:
            from fastprof.bridges.compute import compute

            rows = compute(rows, model, report)
        bridge = _bridge(reader.view, view)
        streams.append(bridge(rows, model, options, report) if bridge else rows)
    if len(streams) == 1 and view == "stacks" and labelled:
        from fastprof.bridges.sum import repeated

        return repeated(streams[0], model, options, report)
    if len(streams) == 1 and not (options.aggregate and view == "graph"):
        return streams[0]
    return _summed(streams, view, model, options, report)


def _summed(
    streams: list[Iterator[Batch]], view: str, model: Model, options: Options, report: Report
) -> Iterator[Batch]:
    if view == "stacks":
        from fastprof.bridges.sum import to_sum

        return to_sum(chain.from_iterable(streams), model, options, report)
    from fastprof.bridges import aggregate

    if len(streams) == 1:
        return aggregate.aggregate(streams[0], model, options, report)
    return aggregate.merge(streams, model, options, report)


def info(
    path: str | os.PathLike[str] | bytes | IO[bytes],
    *,
    from_: str | None = None,
    options: Options | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Say what is in one input (`report.facts`), which is read to its end unless its format says it without.

    A timeline that is read is also played through the stack machine, whose
    repairs say which entries and exits do not fit together.
    """
    options = checked(options)
    model, report = Model(), Report()
    reader = open_reader(path, from_, model, options, report, progress)
    try:
        refuse_idle(options, [reader])
        summary = reader.summary()
        if summary is None:
            summary = _summarize(reader, model, options, report)
    finally:
        reader.source.close()
    if summary.overflowed:
        raise FastprofError(f"{reader.source.name}: {reader.format}: the sum of its costs or calls is beyond 64 bits")
    report.facts = {"file": reader.source.name, "format": reader.format, "view": reader.view} | report.facts
    _add_summary(report, model, reader.view, summary)
    return report


def _summarize(reader: Reader, model: Model, options: Options, report: Report) -> Summary:
    """What all rows of a reader add up to."""
    summary = Summary()
    rows = summary.seen(read(reader), model)
    if reader.view == "timeline":
        from fastprof.bridges import fold as timeline

        folded = Report()
        rows = timeline.to_graph(rows, model, options, folded)
    for _ in rows:
        pass
    if reader.view == "timeline":
        report.repairs += folded.repairs
        report.warnings += folded.warnings
    return summary


_OPS = ("enter", "exit", "tail exit", "enter with arguments", "argument", "custom event", "typed event")
_KINDS = ("cost", "call", "jump", "conditional jump", "empty block")


def _add_summary(report: Report, model: Model, view: str, seen: Summary) -> None:
    facts, summary = report.facts, seen.c
    names = {"timeline": _OPS, "graph": _KINDS, "stacks": ("sample",)}[view]
    rows = {name: int(n) for name, n in zip(names, summary.rows, strict=False) if n}
    facts["records"] = sum(rows.values())
    if len(rows) > 1 or view != "stacks":
        facts["records by kind"] = rows
    facts["functions"] = seen.functions
    if seen.threads:
        facts["processes"] = len({(i, pid) for i, pid, _ in seen.threads})
        facts["threads"] = len(seen.threads)
    if view == "timeline" and rows:
        facts["first tick"] = int(summary.first_time)
        facts["last tick"] = int(summary.last_time)
        clock = model.parts[0].extra.get("ticks_per_second") if model.parts else None
        if clock:
            facts["seconds"] = (int(summary.last_time) - int(summary.first_time)) / clock
    if view == "stacks":
        facts["stacks"] = seen.stacks
    if view == "graph":
        facts["parts"] = len(model.parts)
        facts["calls"] = int(summary.calls)
    if summary.n_totals:
        types = next((p.value_types for p in model.parts if len(p.value_types) >= summary.n_totals), [])
        facts["totals"] = {
            (types[k].name if k < len(types) else f"value {k}"): int(summary.totals[k]) for k in range(summary.n_totals)
        }
        _add_inherited(report, model)


def _add_inherited(report: Report, model: Model) -> None:
    """The totals of inherited events, of the totals that there are."""
    inherited = {e.name: e.formula for part in model.parts for e in part.extra.get("inherited", []) if e.formula}
    if not inherited:
        return
    from fastprof.core.formulas import Formulas

    totals: dict[str, int] = report.facts["totals"]
    formulas = Formulas(list(totals), inherited)
    if formulas.factors:
        report.facts["totals of inherited events"] = formulas.values(list(totals.values()))
    for name, problem in formulas.problems.items():
        report.warn(f"inherited event {name} cannot be computed: {problem}")
