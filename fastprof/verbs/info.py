"""Describe a profile."""

from __future__ import annotations

import os

from fastprof import plan
from fastprof.bridges import OPERATORS, SELECT
from fastprof.core._typing import IO, TYPE_CHECKING
from fastprof.core.engine import Holds, Reader, Summary
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import KINDS, OPS, Model, Part
from fastprof.core.options import Options, checked
from fastprof.core.value import Column
from fastprof.inputs import Progress, open_reader
from fastprof.inputs.stored import is_archive
from fastprof.verbs.reported import REPORTED

if TYPE_CHECKING:
    from typing import Unpack

    from fastprof.verbs.keywords import InfoOptions

# Rows are counted as they are read.
_END = plan.End("info", does=tuple(one._replace(options=()) for one in OPERATORS))


def info(
    path: str | os.PathLike[str] | bytes | IO[bytes],
    *,
    from_: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[InfoOptions],
) -> Log:
    """Describe one input (`log.facts`).  It is read to its end, unless the format has a summary.

    A timeline also goes through the stack machine, whose repairs show entries
    and exits that do not match.  For an archive with several profiles it gives their number, unless `member` names one.

    >>> import fastprof
    >>> facts = fastprof.info("tests/corpus/callgrind/good/cfi.callgrind").facts
    >>> facts["format"], facts["view"], facts["totals"]
    ('callgrind', 'graph', {'Ir': 14, 'Dr': 6})
    """
    asked = checked(options, plan.known_options())
    model, log = Model(), Log()
    if isinstance(path, (str, os.PathLike)) and is_archive(os.fspath(path)) and from_ is None and not asked.given:
        from fastprof.store.listing import facts

        log.facts = facts(os.fspath(path)) or {}
        if log.facts:
            return log
    reader = open_reader(path, from_, model, asked, log, progress)
    try:
        plan.refuse_idle(asked, plan.make([[reader]], _END, asked))
        filtered = any(option in asked for option in SELECT[reader.view].options)
        summary = None if filtered else reader.summary()
        if summary is None:
            summary = _summarize(reader, model, asked, log)
    finally:
        reader.source.close()
    if summary.overflowed:
        raise FastprofError(f"{reader.source.name}: {reader.format}: the sum of its costs or calls is beyond 64 bits")
    log.facts = {"file": reader.source.name, "format": reader.format, "view": reader.view} | log.facts
    _add_summary(log, model, reader.view, summary)
    return log


def _summarize(reader: Reader, model: Model, options: Options, log: Log) -> Summary:
    """The sums of all rows of a reader."""
    summary, remaining = Summary(), plan.Remaining(1)
    rows = summary.seen(remaining.seen(plan.selected(reader, model, options, log)), model)
    if reader.view == "timeline":
        from fastprof.bridges.fold.fold import to_graph

        folded = Log()
        rows = to_graph(rows, model, Options(), folded, Holds())
    for _ in rows:
        pass
    remaining.end(model, options, log)
    if reader.view == "timeline":
        log.repairs.take(folded.repairs)
        log.take_warnings(folded)
    return summary


def _add_summary(log: Log, model: Model, view: str, seen: Summary) -> None:
    facts, summary = log.facts, seen.c
    names = {"timeline": OPS, "graph": KINDS, "stacks": ("sample",)}[view]
    rows = {name: int(n) for name, n in zip(names, summary.rows, strict=False) if n}
    facts["records"] = sum(rows.values())
    if len(rows) > 1 or view != "stacks":
        facts["records_by_kind"] = rows
    facts["functions"] = seen.functions
    if seen.threads:
        facts["processes"] = len({(i, pid) for i, pid, _ in seen.threads})
        facts["threads"] = len(seen.threads)
    if view == "timeline" and rows:
        facts["first_tick"] = int(summary.first_time)
        facts["last_tick"] = int(summary.last_time)
        clock = model.parts[0].extra.get("ticks_per_second") if model.parts else None
        if clock:
            facts["seconds"] = (int(summary.last_time) - int(summary.first_time)) / clock
    if view == "stacks":
        facts["stacks"] = seen.stacks
    if view == "graph":
        facts["parts"] = len(model.parts)
        facts["calls"] = int(summary.calls)
    totals: dict[str, int] = {}
    for part, sums in seen.totals().items():
        types = model.parts[part].value_types if part >= 0 else []
        if len(types) < len(sums):
            types = next((p.value_types for p in model.parts if len(p.value_types) >= len(sums)), [])
        for k, n in enumerate(sums):
            name = types[k].name if k < len(types) else f"value {k}"
            totals[name] = totals.get(name, 0) + n
    if totals:
        facts["totals"] = totals
        first = model.parts[seen.first_part()] if model.parts else Part()
        if len(first.value_types) > 1:
            facts["default_value_type"] = first.value_types[Column(None, "--value").of(first, view)].name
        _add_inherited(log, model)


def _add_inherited(log: Log, model: Model) -> None:
    """Add the totals of inherited events, computed from the other totals."""
    inherited = {e.name: e.formula for part in model.parts for e in part.extra.get("inherited", []) if e.formula}
    if not inherited:
        return
    from fastprof.core.formulas import Formulas

    totals: dict[str, int] = log.facts["totals"]
    formulas = Formulas(list(totals), inherited)
    if formulas.factors:
        log.facts["totals_of_inherited_events"] = formulas.values(list(totals.values()))
    for name, problem in formulas.problems.items():
        log.warn(REPORTED["uncomputed-events"], name=name, problem=problem)
