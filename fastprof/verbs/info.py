"""Describe a profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from fastprof import plan
from fastprof.bridges import OPERATORS, SELECT
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.c_memory import owned
from fastprof.core.engine import STACKS_AT_A_TIME, Capabilities, Reader, Summary
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import KINDS, OPS, Model, Part
from fastprof.core.options import Options, checked
from fastprof.core.thread_names import ThreadNames, apart
from fastprof.inputs.stored import may_be_store
from fastprof.symbols import FINDING, SYMBOLS
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import path_of, run

if TYPE_CHECKING:
    from fastprof.bridges.sums.sorted_runs import Words
    from fastprof.verbs.coverage import Coverage
    from fastprof.verbs.keywords import InfoOptions, Input, Progress, ReadFormat

# Rows are counted while they are read.
END = plan.End(
    "info",
    holds=Capabilities(names=False, keeps_stacks=False, stacks_at_a_time=STACKS_AT_A_TIME),
    performs=tuple(one._replace(options=()) for one in OPERATORS),
    options=FINDING,
    single=True,
    code="verbs.info:described",
)


def info(
    path: Input,
    *,
    from_: ReadFormat | None = None,
    progress: Progress | None = None,
    **options: Unpack[InfoOptions],
) -> Log:
    """Describe one input (`log.facts`).  It is read to its end, unless the format has a summary.

    A timeline also goes through the stack machine, whose repairs show entries
    and exits that do not match.  For an archive with several profiles it gives their number, unless `member` names one.
    `progress` is called with the input when it is opened (docs/python.md).

    >>> import fastprof
    >>> facts = fastprof.info("tests/corpus/callgrind/good/cfi.callgrind").facts
    >>> facts["format"], facts["view"], facts["totals"]
    ('callgrind', 'graph', {'Ir': 14, 'Dr': 6})
    """
    chosen = checked(options, plan.reading_options)
    plain = path_of(path)
    if isinstance(plain, str) and may_be_store(plain) and from_ is None and not chosen.given:
        from fastprof.store.listing import facts

        if found := facts(plain):
            log = Log()
            log.facts = found
            return log
    described: Log = run(END, [[plain]], chosen, from_, progress)
    return described


def described(pipelines: Sequence[plan.Pipeline], model: Model, options: Options, log: Log) -> Log:
    (pipeline,) = pipelines
    (reader,) = pipeline.inputs
    filtered = any(option in options for option in SELECT[pipeline.view].options)
    is_covered = bool(options[SYMBOLS]) and pipeline.view != "timeline"
    summary = reader.summary() if isinstance(reader, Reader) and not filtered and not is_covered else None
    coverage = None
    if is_covered:
        from fastprof.verbs.coverage import Coverage

        coverage = Coverage(model, options)
    if summary is None:
        summary = _summarize(pipeline, model, log, coverage)
    if summary.overflowed:
        raise FastprofError(f"{reader.name}: {reader.format}: the sum of its costs or calls is beyond 64 bits")
    # parts added by the stack machine are not the input's
    parts = model.whole_parts(range(len(model.parts)))
    parts = [part for part in parts if pipeline.view != "timeline" or "ticks" not in part.extra]
    named = {"file": reader.name, "format": reader.format, "view": pipeline.view}
    log.facts = (
        named
        | {key: value for key, value in (stated(parts) | dict(reader.stated)).items() if key not in log.facts}
        | log.facts
    )
    _add_summary(log, model, pipeline.view, summary)
    if coverage:
        log.facts |= coverage.facts()
    return log


def _summarize(pipeline: plan.Pipeline, model: Model, log: Log, coverage: Coverage | None) -> Summary:
    """The sums of all rows."""
    summary, contexts = Summary(), _Contexts(model)
    rows = summary.seen(pipeline.rows(model, log), model)
    if coverage:
        rows = coverage.seen(rows)
    if pipeline.view != "timeline":
        for _ in rows:
            pass
        summary.stacks = contexts.count()
        return summary
    from fastprof.bridges.fold.fold import repaired

    folded = Log()
    repaired(rows, model, folded)
    log.repairs.take(folded.repairs)
    log.take_warnings(folded)
    return summary


class _Contexts:
    """Counts distinct stacks, of which some are removed from the model from time to time (csrc/ends/distinct.h)."""

    def __init__(self, model: Model) -> None:
        self._model: Model = model
        self._runs: Words | None = None
        model.spills.append(self._spill)

    def _spill(self) -> None:
        if self._runs is None:
            from fastprof.bridges.sums.sorted_runs import Words

            self._runs = Words(lib.FP_MERGE_KEY)
        if self._model.count("stacks") > 1:
            found = owned(lib.fp_distinct_new(self._model.c), "the contexts")
            self._runs.add(partial(lib.fp_distinct_pull, found))

    def count(self) -> int:
        """After the last row."""
        self._model.spills.remove(self._spill)
        if self._runs is None:
            return self._model.count("stacks") - 1
        self._spill()
        merge, some = self._runs.merge(), ffi.new("uint64_t[]", 1 << 15)
        return sum(iter(lambda: merge.pull(some, len(some)), 0)) // self._runs.width


# Keys of a part's `extra` that describe the recording; others are data of rows.
_STATED = ("time_ns", "duration_ns", "period", "drop_frames", "keep_frames", "program", "doc_url")


def stated(parts: Iterable[Part]) -> dict[str, Any]:
    """The header fields of an input's parts: one value, or a list of the distinct values.

    desc: I1 cache: 32768 B       {"creator": "callgrind-3.19.0", "command": "./a", "pid": 7,
    creator: callgrind-3.19.0      "descriptions": {"I1 cache": "32768 B"}}
    """
    from fastprof.core.parts import comments_of, descriptions_of, remarks_of

    found: dict[str, dict[Any, None]] = {}
    described: dict[str, dict[Any, None]] = {}
    processes: dict[str, dict[Any, None]] = {}
    for part in parts:
        texts: dict[str, list[Any]] = {
            "creator": [part.creator or None],
            "command": [part.command],
            "trigger": [part.trigger],
        }
        texts |= {"pid": [part.named("pid")], "thread": [part.named("thread")]}
        texts |= {"comments": [*comments_of(part), *remarks_of(part)]}
        texts |= {key: [part.extra.get(key)] for key in _STATED}
        if kind := part.extra.get("period_type"):
            texts["period_type"] = ["/".join(kind)]
        for key, values in texts.items():
            found.setdefault(key, {}).update((_text(value), None) for value in values if value not in (None, b""))
        for name, text in descriptions_of(part):
            if text:  # "I1 cache:" without a simulated cache
                described.setdefault(_text(name) or "comment", {})[_text(text)] = None
        for pid, name in part.extra.get("process_names", ()):
            if name:
                processes.setdefault(str(pid), {})[_text(name)] = None
    facts: dict[str, Any] = {key: _one_or_all(values) for key, values in found.items() if values}
    if described:
        facts["descriptions"] = {name: _one_or_all(values) for name, values in described.items()}
    if processes:
        facts["process_names"] = {pid: _one_or_all(names) for pid, names in processes.items()}
    return facts


def _text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _one_or_all(values: dict[Any, None]) -> Any:
    first, *others = values
    return [first, *others] if others else first


def _add_summary(log: Log, model: Model, view: str, seen: Summary) -> None:
    facts, summary = log.facts, seen.c
    names = {"timeline": OPS, "graph": KINDS, "stacks": {0: "sample"}}[view]
    rows = {name: int(summary.rows[i]) for i, name in names.items() if summary.rows[i]}
    facts["records"] = sum(rows.values())
    if len(rows) > 1 or view != "stacks":
        facts["records_by_kind"] = rows
    facts["functions"] = seen.functions
    if seen.threads:
        facts["processes"] = len({(i, pid) for i, pid, _ in seen.threads})
        facts["threads"] = len(seen.threads)
        if named := _thread_names(model, seen.threads):
            facts["thread_names"] = named
    if view == "timeline" and rows:
        facts["first_tick"] = int(summary.first_time)
        facts["last_tick"] = int(summary.last_time)
        clock = model.parts[0].extra.get("ticks_per_second") if model.parts else None
        if clock:
            facts["ticks_per_second"] = clock
            facts["seconds"] = (int(summary.last_time) - int(summary.first_time)) / clock
    if view == "stacks":
        if summary.first_time <= summary.last_time:
            facts["first_time_ns"], facts["last_time_ns"] = int(summary.first_time), int(summary.last_time)
        facts["contexts"] = seen.stacks
    if view == "graph":
        facts["parts"] = len(model.parts)
        facts["calls"] = int(summary.calls)
    totals: dict[str, int] = {}
    units: dict[str, str] = {}
    for part, sums in seen.totals().items():
        types = model.parts[part].value_types if part >= 0 else []
        if len(types) < len(sums):
            types = next((p.value_types for p in model.parts if len(p.value_types) >= len(sums)), [])
        for k, n in enumerate(sums):
            name = types[k].name if k < len(types) else f"value {k}"
            totals[name] = totals.get(name, 0) + n
            if k < len(types) and types[k].unit:
                units[name] = types[k].unit
    if totals:
        facts["totals"] = totals
        if units:
            facts["units"] = units
        first = model.parts[seen.first_part()] if model.parts else Part()
        if len(first.value_types) > 1:
            from fastprof.core.chosen_value import settled_default
            from fastprof.core.parts import default_value

            types = first.value_types
            has_cost = [totals.get(t.name, 0) for t in types]
            facts["default_value_type"] = types[settled_default(types, default_value(first, view), has_cost, log)].name
        _add_inherited(log, model)


def _thread_names(model: Model, threads: list[tuple[int, ...]]) -> list[str]:
    """What the threads are called, if a thread or a process has a name."""
    names = ThreadNames(model)
    if not any(names.process(row[0], row[1]) or names.thread(row[0], row[1], row[2]) for row in threads):
        return []
    return apart(map(names.text_of, sorted(threads)))


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
