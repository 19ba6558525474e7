"""Graph -> stacks: self costs are exact, their callers estimated (csrc/bridges/estimate.h).

    main -> a 30    main -> b 10    a -> c 20    b -> c 5    c self 25, a self 10, b self 5

becomes

    main > a 10     main > b 5      main > a > c 20     main > b > c 5

It is right if the calls of c cost the same under main > a as under any other
caller of a; a graph does not say.
Kept: every position's self cost and every total, to the unit.
Lost, and counted as not representable: call counts and jumps.  Lost: which caller a line of
a function was run for; all lines are divided alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastprof.bridges import PRUNE, STACKS, labels_apart
from fastprof.bridges.pull import batches_of
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import check_sums
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.parts import match_columns, merge_parts
from fastprof.core.report import Report
from fastprof.core.version import __version__

# `--stacks`: how many callers are followed, and how the output says it.
MAX_DEPTH = 1000
_DEPTHS = {
    "self": (0, b"the source is a call graph: each stack is a function by itself"),
    "arcs": (1, b"stacks are estimated from a call graph: functions under their direct callers only"),
    "estimate": (MAX_DEPTH, b"stacks are estimated from a call graph: callers share costs as their arcs do"),
}


def to_stacks(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """Estimated stacks of a call graph: one part, or one for each that `--labels` and `--per-thread` keep apart.

    Memory is linear in distinct positions and arcs.  Errors: FastprofError for
    a sum beyond 2^63 - 1 or an id that is not there.
    """
    groups: dict[tuple[int, int], _Group] = {}  # by thread and number of the part
    of_part: dict[int, tuple[_Group, Any]] = {}
    for batch in batches:
        if batch.part not in of_part:
            part = model.parts[batch.part]
            key = _key(model, part, labels_apart(options, holds))
            group = groups.setdefault(key, _Group(model))
            of_part[batch.part] = group, group.add(part, batch.c.n_values)
        group, columns = of_part[batch.part]
        group.put(batch, columns)

    depth, comment = _DEPTHS[options[STACKS]]
    if not groups:  # a graph of nothing still says what it would have counted
        groups[0, 0] = _Group(model)
        for part in list(model.parts):
            groups[0, 0].add(part, len(part.value_types))
    limited, work_left = 0, None
    for (thread, _), group in groups.items():
        c = group.c
        c.thread = thread
        if work_left is not None:
            c.work_left = work_left
        group.end(options[PRUNE], depth, options[STACKS] == "estimate")
        yield from batches_of("stacks", len(group.events), model.add_part(group.part(comment)), group.pull)
        report.rows["estimated stacks"] += c.stacks
        report.not_representable.add("call-counts", "call counts", c.calls)
        report.not_representable.add("jumps", "jumps", c.jumps)
        if c.pruned:
            report.facts["stacks pruned"] = report.facts.get("stacks pruned", 0) + c.pruned
        limited, work_left = limited + c.limited, c.work_left
    if limited:
        report.warn(
            f"the work for estimated stacks has a limit, which {limited} of the functions met; "
            "callers beyond it are [pruned]"
        )


def _key(model: Model, part: Part, apart: frozenset[str]) -> tuple[int, int]:
    """The thread and the number of the part that its stacks are kept apart by; 0: not."""
    pid = part.pid if part.pid and "process" in apart else 0
    tid = part.thread if part.thread and "thread" in apart else 0
    return model.thread(pid, tid) if pid or tid else 0, part.number if part.number and "part" in apart else 0


class _Group:
    """What is added up into one output part."""

    def __init__(self, model: Model) -> None:
        self.c = owned(lib.fp_estimate_new(model.c), lib.fp_estimate_free, "the estimate of stacks")
        self._model = model
        self._err = ffi.new("struct fp_err *")
        self.events: list[ValueType] = []
        self.sources: list[Part] = []
        self._not_zero: set[int] = set()  # of the events: those of which some row has more than 0

    def check(self, status: int) -> int:
        return check_sums(status, self._err, self._model, "graph to stacks", self.events)

    def put(self, batch: Batch, columns: Any) -> None:
        positions = self._model.parts[batch.part].positions
        instr, line = "instr" in positions, "line" in positions
        for k in range(batch.c.n_values):
            if columns[k] not in self._not_zero and batch.values(k).tobytes().strip(b"\0"):
                self._not_zero.add(columns[k])
        self.check(lib.fp_estimate_put(self.c, batch.c, columns, instr, line, self._err))

    def end(self, prune: float, depth: int, shared: bool) -> None:
        self.check(lib.fp_estimate_end(self.c, prune, depth, shared, self._err))

    def pull(self, out: Any) -> int:
        return self.check(lib.fp_estimate_pull(self.c, out, self._err))

    def add(self, part: Part, n_values: int) -> Any:
        columns = match_columns(part, n_values, self.events)
        self.sources.append(part)
        if lib.fp_estimate_set_values(self.c, len(self.events)):
            raise MemoryError("no memory for the estimate of stacks")
        return columns

    def part(self, comment: bytes) -> Part:
        part = merge_parts(self.sources, list(self.events))
        part.creator = f"fastprof-{__version__}".encode()
        part.comments.insert(0, comment)
        if len(self.events) > 1:  # a graph's first event is its main one; readers of stacks show the last
            part.extra["default_sample_type"] = self.events[min(self._not_zero, default=0)].name
        return part
