"""The operators that the plan is made of, and their options.  This file is light: each operator is a file beside it.

An operator is a function (batches, model, options, report, holds) -> batches.  `holds` says what the target has room
for.  docs/bridges.md shows on small examples what each keeps and loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.options import Option, Options, Share, Size, Switch, Text, WordList, Words
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS, SYMBOLIZE, SYMBOLS, SYSROOT

if TYPE_CHECKING:
    from fastprof.core.engine import Holds
    from fastprof.core.model import Batch, Model
    from fastprof.core.report import Report

    Run = Callable[[Iterable[Batch], Model, Options, Report, Holds], Iterator[Batch]]

# What --labels names: the labels that samples come with, and what else may become one.
LABEL_WORDS = ("own", "thread", "process", "part", "cpu")

VALUE: Option[str | None] = Option(
    "value",
    Text("NAME"),
    None,
    group="values",
    help="keep only this value type (an event, a sample type); formats that hold one take the source's default one",
)
COMPUTE_EVENTS = Option(
    "compute_events", Switch(), False, group="values", help="make inherited events (formulas) columns of values"
)
AGGREGATE = Option(
    "aggregate",
    Switch(),
    False,
    group="values",
    help="sum up repeated lines of the same place (memory: distinct places)",
)
LABELS: Option[tuple[str, ...] | None] = Option(
    "labels",
    WordList(*LABEL_WORDS),
    None,
    group="values",
    help=f"label samples with these of {','.join(LABEL_WORDS)}, keeping apart what they tell apart; or none "
    "(default: the labels that samples come with)",
)
PER_THREAD = Option(
    "per_thread", Switch(), False, group="values", help="keep threads apart: one part or label for each of all inputs"
)
TIME_UNIT = Option(
    "time_unit",
    Words("ns", "ticks"),
    "ns",
    group="views",
    help="a timeline to others: times in nanoseconds (default), or exact in clock ticks",
)
INLINE_CALLS = Option(
    "inline_calls",
    Switch(),
    False,
    group="views",
    help="stacks to a graph: inlined functions are called by their callers, not part of them",
)
STACKS = Option(
    "stacks",
    Words("estimate", "arcs", "self"),
    "estimate",
    group="views",
    help="a graph to stacks: estimate callers from the arcs' costs (default), direct callers only, or none",
)
PRUNE = Option(
    "prune",
    Share(),
    1e-5,
    group="views",
    help="a graph to stacks: estimated shares below this part of the total go to [pruned] (default: 1e-5)",
)
MAX_MEMORY = Option(
    "max_memory",
    Size(),
    20 << 20,
    group="limits",
    help="distinct rows kept in memory before they are spilled to a temporary file, or written, e.g. 200M "
    "(default: 20M)",
)


def labels_apart(options: Options, holds: Holds) -> frozenset[str]:
    """What costs are kept apart by although the source adds them up: of thread, process, part, cpu."""
    if not holds.labels:
        return frozenset()
    asked = frozenset(options[LABELS] or ()) - {"own"}
    return asked | {"thread", "process", "part"} if options[PER_THREAD] else asked


def labels_wanted(options: Options, holds: Holds) -> frozenset[str]:
    """The labels that samples keep, of LABEL_WORDS."""
    if not holds.labels:
        return frozenset()
    own = ("own", "thread", "process") if options[LABELS] is None else options[LABELS]
    return labels_apart(options, holds) | frozenset(own or ())


class Operator(NamedTuple):
    """Turns batches of the view `source` into batches of `target`."""

    source: str
    target: str
    place: str  # "module:function" of this package, imported when first used
    title: str  # what it does, for a sentence: "... is for <title>"
    options: tuple[Option[Any], ...] = ()

    def load(self) -> Run:
        from importlib import import_module

        module, _, name = self.place.partition(":")
        found: Run = getattr(import_module(f"{__name__}.{module}"), name)
        return found


# From one view to another: the only way there is for each pair.
BRIDGES = (
    Operator("timeline", "graph", "fold:to_graph", "a timeline to a graph", (TIME_UNIT, PER_THREAD, MAX_MEMORY)),
    Operator("timeline", "stacks", "fold:to_stacks", "a timeline to stacks", (TIME_UNIT, PER_THREAD, LABELS)),
    Operator("stacks", "graph", "project:to_graph", "stacks to a graph", (PER_THREAD, INLINE_CALLS)),
    Operator("graph", "stacks", "estimate:to_stacks", "a graph to stacks", (STACKS, PRUNE, PER_THREAD, LABELS)),
)
# Within a view.
NAME_ADDRESSES = Operator(
    "stacks",
    "stacks",
    "symbolize:symbolize",
    "addresses of stacks",
    (SYMBOLS, SYMBOLIZE, SYSROOT, DEBUG_DIRS, FORCE_SYMBOLS, DEMANGLE),
)
ONLY_NAMES = Operator("stacks", "stacks", "only_names:only_names", "stacks to a format of names")
SUM_STACKS = Operator("stacks", "stacks", "sum:to_sum", "stacks of several inputs", (PER_THREAD, LABELS))
EQUAL_STACKS = Operator(
    "stacks", "stacks", "sum:repeated", "stacks to a format without times", (PER_THREAD, LABELS, MAX_MEMORY)
)
ONE_VALUE = Operator("any", "any", "choose:one_value", "stacks and graphs", (VALUE,))
COMPUTE = Operator("graph", "graph", "compute:compute", "profiles with inherited events", (COMPUTE_EVENTS,))
MERGE_GRAPHS = Operator("graph", "graph", "aggregate:merge", "graphs of several inputs", (PER_THREAD,))
SUM_PLACES = Operator("graph", "graph", "aggregate:aggregate", "graphs", (AGGREGATE,))
SUM_LINES = Operator("graph", "graph", "aggregate:lines", "graphs to a format without calls")

_WITHIN = (ONLY_NAMES, SUM_STACKS, EQUAL_STACKS, ONE_VALUE, COMPUTE, MERGE_GRAPHS, SUM_PLACES, SUM_LINES)
OPERATORS = (NAME_ADDRESSES, *BRIDGES, *_WITHIN)
