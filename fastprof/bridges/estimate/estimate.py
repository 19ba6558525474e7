"""Graph -> stacks: self costs are exact, their callers estimated (csrc/bridges/estimate/estimate.h).

    main -> a 30    main -> b 10    a -> c 20    b -> c 5    c self 25, a self 10, b self 5

becomes

    main > a 10     main > b 5      main > a > c 20     main > b > c 5

It is right if the calls of c cost the same under main > a as under any other
caller of a, which a graph does not record.
Kept exactly: every total and the self cost of every function; also of every line, unless there are too many lines.
Lost, and counted as not representable: call counts, jumps, and arcs that no stack shows because nothing below them
costs anything, because they are pruned, or because their callee is on the stack already.
Lost: which caller a line ran for; all lines of a function are divided alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges import FRAMES, PRUNE, PRUNED, STACKS
from fastprof.bridges.estimate.reported import REPORTED
from fastprof.bridges.labels import labels_wanted, separating_labels
from fastprof.bridges.rows.label import labelled_rows
from fastprof.core._c import ffi, lib
from fastprof.core._typing import NamedTuple, Pointer, fp_batch
from fastprof.core.c_memory import enough, owned
from fastprof.core.chosen_value import own_calls
from fastprof.core.engine import EVERYTHING, Capabilities, batches_of
from fastprof.core.errors import check_sums
from fastprof.core.log import Log, percent
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.parts import default_value, labels_of, match_columns, merge_parts, parts_since
from fastprof.core.thread_names import ThreadNames
from fastprof.core.version import __version__

# Values of `--stacks`: the callers in a stack, and the comment in the output.
_CALLERS = {
    "self": (lib.FP_CALLERS_NONE, b"the source is a call graph: each stack is a function by itself"),
    "arcs": (
        lib.FP_CALLERS_DIRECT,
        b"stacks are estimated from a call graph: functions under their direct callers only",
    ),
    "estimate": (lib.FP_CALLERS_ALL, b"stacks are estimated from a call graph: callers share costs as their arcs do"),
}
_BY = {"function": lib.FP_BY_FUNCTION, "line": lib.FP_BY_LINE, "address": lib.FP_BY_ADDRESS}


def to_stacks(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Estimated stacks of a call graph: one part, or several as separated by labels of inputs, `--labels` and
    `--per-thread`.

    Memory is linear in distinct places and arcs, up to a limit: docs/bridges.md.  Errors: FastprofError for
    a sum beyond 2^63 - 1 or an unknown id.
    """
    groups: dict[_Key, _Group] = {}
    of_part: dict[int, tuple[_Group, Pointer[int]]] = {}
    n_parts = len(model.parts)
    by, prune, last = options[FRAMES], options[PRUNE], None
    prune = PRUNED if prune is None else prune
    separating = separating_labels(options, holds) | (labels_wanted(options, holds) & {"own"})
    for batch in batches:
        if batch.part not in of_part:
            part = model.parts[batch.part]
            key = _key(model, part, separating)
            group = groups.get(key) or groups.setdefault(key, _Group(model, by, prune))
            of_part[batch.part] = group, group.add(batch.part, batch.c.n_values)
        group, columns = of_part[batch.part]
        if last not in (None, group):
            lib.fp_estimate_pause(last.c)
        last = group
        group.put(batch, columns)

    callers, comment = _CALLERS[options[STACKS]]
    if not groups:  # an empty graph still has value types
        group = groups[_Key()] = _Group(model, by, prune)
        for index in parts_since(model, n_parts):
            group.add(index, len(model.parts[index].value_types))
    of_part.clear()
    last = None
    for key in [*groups]:
        thread, group = key.thread, groups.pop(key)  # only one group has contexts at a time
        c = group.c
        group.end(callers)
        pull = partial(group.pull, thread)
        part = group.part(comment)
        if key.labels:  # from now on of the samples
            del part.extra["input_labels"]
        rows = batches_of("stacks", len(group.events), model.add_part(part), pull)
        yield from labelled_rows(rows, model, dict(key.labels)) if key.labels else rows
        log.rows["stacks_estimated"] += c.stacks
        log.count_all(REPORTED, c)
        log.count(REPORTED["part-addresses"], group.n_addressed(by))
        where = f"{ThreadNames(model).text(thread)}: " if thread else ""
        _log_shares(group, by, prune, where, log)


def _log_shares(group: _Group, by: str, prune: float, where: str, log: Log) -> None:
    """Log the shares of the cost that are not shown as requested."""
    c = group.c
    if c.uncalled:
        log.warn(
            REPORTED["uncalled-functions"],
            where=where,
            share=percent(c.uncalled_cost),
            functions=counted(c.uncalled, "function"),
        )
    if c.prune > prune:
        log.warn(REPORTED["many-callers"], where=where, prune=prune, share=c.prune)
    if c.pruned > 0:
        those = counted(c.unnamed, "function whose name does not fit", "functions whose names do not fit")
        unnamed = f" (including {those})" if c.unnamed else ""
        code = "pruned-cost" if 0 < prune >= c.prune else "cut-cost"  # else a smaller share changes nothing
        log.warn(REPORTED[code], where=where, share=percent(c.pruned), unnamed=unnamed)
    if c.unlined > 0:
        what = {"line": "lines", "address": "addresses"}[by]
        share = percent(c.unlined)
        log.warn(REPORTED["unplaced-cost"], where=where, share=share, places=what)


class _Key(NamedTuple):
    """The key that separates output parts."""

    thread: int = 0  # id; 0: not separated by thread
    number: int = 0  # of the part; 0: not separated by part
    cpu: int = -1  # -1: not separated by CPU
    labels: tuple[tuple[bytes, bytes], ...] = ()  # of the input


def _key(model: Model, part: Part, separating: frozenset[str]) -> _Key:
    pid = part.pid if part.pid and "process" in separating else 0
    tid = part.thread if part.thread and "thread" in separating else 0
    thread = model.thread(pid, tid) if pid or tid else 0
    number = part.number or 0 if "part" in separating else 0
    cpu = part.extra.get("cpu", -1) if "cpu" in separating else -1
    return _Key(thread, number, cpu, labels_of(part) if "own" in separating else ())


class _Group:
    """The rows of one output part."""

    def __init__(self, model: Model, by: str, prune: float) -> None:
        self.c = owned(lib.fp_estimate_new(model.c, _BY[by], prune), "the estimate of stacks")
        self._model = model
        self._err = ffi.new("struct fp_err *")
        self.events: list[ValueType] = []
        self.sources: list[Part] = []

    def check(self, status: int) -> int:
        return check_sums(status, self._err, self._model, "graph to stacks", self.events)

    def put(self, batch: Batch, columns: Pointer[int]) -> None:
        positions = self._model.parts[batch.part].positions
        instr, line = "instr" in positions, "line" in positions
        self.check(lib.fp_estimate_put(self.c, batch.c, columns, instr, line, self._err))

    def end(self, callers: int) -> None:
        calls = own_calls(self.events)
        self.c.own_calls = lib.FP_NO_ID if calls < 0 else calls
        self.check(lib.fp_estimate_end(self.c, callers, self._err))

    def pull(self, thread: int, out: fp_batch) -> int:
        return self.check(lib.fp_estimate_pull(self.c, thread, out))

    def add(self, part: int, n_values: int) -> Pointer[int]:
        columns = match_columns(self._model, part, n_values, self.events)
        self.sources.append(self._model.parts[part])
        enough(lib.fp_estimate_set_values(self.c, len(self.events)))
        return columns

    def n_addressed(self, by: str) -> int:
        """The number of parts whose addresses `by` drops."""
        return sum({"instr", "bb"} & {*part.positions} != set() for part in self.sources) if by != "address" else 0

    def part(self, comment: bytes) -> Part:
        part = merge_parts(self.sources, list(self.events), creator=f"fastprof-{__version__}".encode())
        part.comments.insert(0, comment)
        costliest = lib.fp_estimate_costliest_object(self.c)
        if costliest not in (0, lib.FP_NO_ID):
            part.extra["program"] = self._model.string(self._model.row("objects", costliest)[0])
        if len(self.events) > 1:
            part.extra["default_sample_type"] = self.events[default_value(part, "graph")].name
        return part
