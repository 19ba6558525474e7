"""The operators of a plan and their options.  The code of the operators is in the folders of this package.

An operator is a function (batches, model, options, log, holds) -> batches.  `holds` is what the target can hold.
Each operator declares `when` a plan needs it; they run in the order BEFORE, BRIDGES, AFTER.
docs/bridges.md shows with small examples what each operator keeps and loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fastprof.bridges.transforms import COLLAPSE_RECURSION, HIDE, MERGE_LINES, ROOTS, TRANSFORMS
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.allocators import KEEP_ALLOCATOR
from fastprof.core.loaded import loaded
from fastprof.core.options import MAX_MEMORY as MAX_MEMORY
from fastprof.core.options import (
    PART,
    THREADS,
    TIME_RANGE,
    TRIM,
    FilePath,
    FilterOption,
    Option,
    Options,
    Pair,
    PathPattern,
    Pattern,
    Share,
    Substitution,
    Text,
    ValueOption,
    Whole,
    WordList,
    Words,
)
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS, SYMBOLIZE, SYMBOLS, SYSROOT

if TYPE_CHECKING:
    from fastprof.core.engine import Capabilities
    from fastprof.core.log import Log
    from fastprof.core.model import Batch, Model

    Run = Callable[[Iterable[Batch], Model, Options, Log, Capabilities], Iterator[Batch]]

# The words of --labels.  own: the input's labels; the others are added as labels.
LABEL_WORDS = ("own", "thread", "process", "part", "cpu")

# Regular expressions are matched against this many bytes of a name.  Names come from files, and matching may take time
# quadratic in their length.
LONGEST_NAME = 1 << 14

FUNCTION: Option[str | None] = FilterOption(
    "function",
    Pattern(),
    None,
    help="keep only functions whose name matches",
    details="Keeps samples with a matching function on the stack, costs and calls of such functions in a graph, and "
    "matching calls of a timeline with everything inside them.",
)
OBJECT: Option[str | None] = FilterOption(
    "object",
    Pattern(),
    None,
    help="keep only functions whose object matches",
    details="Like --function, for the name of the program or shared object.",
)
MOD_FUNCNAME: Option[tuple[str, ...]] = FilterOption(
    "mod_funcname",
    Substitution(),
    (),
    several=True,
    help="rename functions, e.g. 's/\\.part\\.[0-9]+$//'",
    details="Flags after the last slash: g replaces every match, i ignores case.  Repeatable, in the given order.",
)
MOD_FILENAME: Option[tuple[str, ...]] = FilterOption(
    "mod_filename",
    Substitution(),
    (),
    several=True,
    help="rename source files, with the same syntax",
    rare=True,
)
MOD_OBJECT: Option[tuple[str, ...]] = FilterOption(
    "mod_object",
    Substitution(),
    (),
    several=True,
    help="rename programs and libraries, with the same syntax",
    rare=True,
)
LABEL: Option[tuple[str, ...]] = FilterOption(
    "label",
    Pair(),
    (),
    several=True,
    help="keep only samples with this label; repeatable",
    details="Values of one key are alternatives, different keys must all match.  Of a graph it keeps the "
    "parts whose labels of inputs match.",
)
SET_LABEL: Option[tuple[str, ...]] = ValueOption(
    "set_label",
    Pair(),
    (),
    several=True,
    help="give all samples this label; repeatable",
)
LABEL_PATH: Option[str | None] = ValueOption(
    "label_path",
    PathPattern(),
    None,
    help="labels from paths, e.g. 'dumps/{host}/{date}.prof'",
    details="PATTERN is the end of the path of each input.  A field {NAME} matches a part of a name without slash and "
    "becomes a label; * and ? match as in a shell, ** also slashes.",
)
LABEL_INPUT = ValueOption.switch(
    "label_input",
    help="label samples with the name of their input",
    details="The key of the label is `input`.",
)
LABELS_FROM: Option[str | None] = ValueOption(
    "labels_from",
    FilePath("CSV"),
    None,
    help="read labels of inputs from a CSV file",
    details="The file has a header: the column `input` has paths or base names, each other column is a label.",
    rare=True,
)
INPUT_LABELS: tuple[Option[Any], ...] = (SET_LABEL, LABEL_PATH, LABEL_INPUT, LABELS_FROM)
TAGROOT: Option[str | None] = ValueOption(
    "tagroot",
    Text("KEY"),
    None,
    help="add the value of a label as outermost frame",
    details="As pprof's -tagroot: several keys are separated by commas, the first one outermost.",
)
TAGLEAF: Option[str | None] = ValueOption(
    "tagleaf",
    Text("KEY"),
    None,
    help="add the value of a label as innermost frame",
    details="As pprof's -tagleaf: several keys are separated by commas, the last one innermost.",
    rare=True,
)
VALUE: Option[str | None] = ValueOption(
    "value",
    Text("NAME"),
    None,
    help="keep only this value type, e.g. Ir or cpu",
    details="Default: all value types; in formats that hold only one, the default value type of the input.",
)
RENAME_VALUE: Option[tuple[str, ...]] = ValueOption(
    "rename_value",
    Pair("OLD=NEW"),
    (),
    several=True,
    help="rename a value type, e.g. ns=time/nanoseconds",
    details="For inputs that name the same quantity differently; others are unchanged.  With /UNIT, values are "
    "converted to that unit; OLD/UNIT states the unit of values that have none, e.g. samples/us=time/ns.  Repeatable.",
)
UNION = ValueOption.switch(
    "union",
    help="keep all value types, 0 where missing",
    details="By default, merging inputs with different value types is refused, and `diff` compares the common ones.",
    kept_unused=(True,),
    rare=True,
)
INTERSECT = ValueOption.switch(
    "intersect",
    help="merging: keep only the common value types",
    details="By default, inputs with different value types are refused.",
    kept_unused=(True,),
    rare=True,
)
COMPUTE_EVENTS = ValueOption.switch(
    "compute_events",
    help="compute inherited events (formulas of other events)",
    details="Their values are written as columns, as if they had been recorded.",
    kept_unused=(True,),
    rare=True,
)
AGGREGATE = ValueOption.switch(
    "aggregate",
    help="add up graph rows with the same position",
    details="Memory grows with the number of distinct positions.",
    rare=True,
)
LABELS: Option[tuple[str, ...] | None] = ValueOption(
    "labels",
    WordList(*LABEL_WORDS),
    None,
    help="labels to write: own (default), cpu, ... or none",
    details="A comma-separated list of own (the labels of the input), thread, process, part and cpu; or none.  "
    "Samples with different labels are not added up.",
)
PER_THREAD = ValueOption.switch(
    "per_thread",
    help="keep threads separate instead of adding them up",
    details="Each thread of each input gets its own part or label, in formats without both an outermost frame.",
)
TIME_UNIT = ValueOption(
    "time_unit",
    Words("ns", "ticks"),
    "ns",
    help="time unit for timelines (default: ns)",
    details="Applies where a timeline becomes stacks, a graph or a viewer's file.  Ticks avoid rounding.",
    rare=True,
)
INLINES = ValueOption.switch(
    "inlines",
    default=True,
    help="stacks to graph: add inlined code to its caller",
    details="By default, an inlined function has its own costs, and its caller calls it.",
    kept_unused=(True,),
    rare=True,
)
STACKS = ValueOption(
    "stacks",
    Words("estimate", "arcs", "self", metavar="HOW"),
    "estimate",
    help="graph to stacks: estimate (default), arcs or self",
    details="`estimate` builds whole stacks from the costs of call arcs, `arcs` keeps the direct caller only, `self` "
    "no caller.",
)
PRUNE: Option[float | None] = ValueOption(
    "prune",
    Share(),
    None,
    help="prune stacks that cost less than SHARE",
    details="SHARE is a part of the total cost, e.g. 0.1%.  The pruned callees of a caller become one [pruned].  "
    "Default: graph to stacks 1e-5; report the smallest share that keeps the page below 2 MB, view below 8 MB; with 0 "
    "the page has all.",
)
PRUNED = 1e-5  # by default, graph to stacks
FRAMES = ValueOption(
    "frames",
    Words("function", "line", "address", metavar="WHAT"),
    "line",
    help="graph to stacks: function, line (default) or address",
    details="Frames are functions, functions with lines, or functions with lines and instruction addresses.",
    rare=True,
)
# The tables of each view, the default first.
TABLES = {"timeline": ("spans", "events"), "stacks": ("samples", "frames"), "graph": ("graph",)}
TABLE: Option[str | None] = ValueOption(
    "table",
    Words(*(name for names in TABLES.values() for name in names), metavar="NAME"),
    None,
    help="parquet and arrow: table to write",
    details="Timeline: `spans` (its calls, default) or `events` (as recorded).  Stacks: `samples` (default) or "
    "`frames`.  "
    "Graph: `graph`.",
)
MAX_DEPTH = Option(
    "max_depth",
    Whole(1),
    4096,
    group="limits",
    help="truncate stacks to N frames (default: 4096)",
    details="For formats that repeat all frames of a stack with each sample.",
    rare=True,
)


class Facts(NamedTuple):
    """Facts known to a plan before the first row."""

    source: str  # view of the rows
    target: str  # view at the end
    holds: Capabilities
    options: Options
    merged: bool = False  # several profiles become one
    several: bool = False  # rows of several profiles, merged or not, that have value types
    to_merge: bool = False  # there are several profiles, which become one, and are not merged yet
    in_order: bool = False  # rows of each input are sorted by function and line
    addresses: bool = False  # stacks: frames of some input can be symbolized
    formulas: bool = False  # the input may have inherited events
    allocator: bool = False  # stacks: some input may be a heap with frames of its allocator
    distinct: bool = False  # stacks: the rows of one input, with different stacks and labels
    added_up: bool = False  # stacks: each comes once, in the form that the target holds


class Operator(NamedTuple):
    """Turns batches of the view `source` into batches of `target`."""

    source: str
    target: str
    code: str  # "module:function" of this package, imported when first used
    title: str  # completes the sentence "... is for TITLE"
    options: tuple[Option[Any], ...] = ()
    when: Callable[[Facts], bool] = lambda facts: True
    # Skipped unless one of these options is set.  Every plan that could include the operator accepts these options.
    switches: tuple[Option[Any], ...] = ()
    each: bool = False  # processes each input separately, not several in sequence
    encoded: bool = False  # accepts Encoded batches if it may use several cores
    streams: bool = False  # gets a list with the batches of each input and reads them in parallel

    def applies(self, facts: Facts) -> bool:
        """Whether a plan with these facts needs it, or would need it with one of its switches set."""
        return self.source in ("any", facts.source) and self.when(facts)

    def is_requested(self, options: Options) -> bool:
        for option in self.switches:
            if options[option] not in (None, (), False):
                return True
        return not self.switches

    def load(self) -> Run:
        found: Run = loaded(f"{__name__}.{self.code}")
        return found


def _in(view: str, place: str, title: str, options: tuple[Option[Any], ...] = (), **more: Any) -> Operator:
    """An operator that keeps the view."""
    return Operator(view, view, place, title, options, **more)


_BY_NAME = (FUNCTION, OBJECT)
_RENAMING = (MOD_FUNCNAME, MOD_FILENAME, MOD_OBJECT)
_NAMING = (SYMBOLS, SYMBOLIZE, SYSROOT, DEBUG_DIRS, FORCE_SYMBOLS, DEMANGLE)


def _names_addresses(f: Facts) -> bool:
    """An archive keeps the addresses of stacks, which can be symbolized later; a graph has none."""
    if not f.addresses or not f.holds.names:
        return f.addresses and any(one in f.options for one in (*_BY_NAME, *ROOTS, *TRANSFORMS))
    by_name = (SYMBOLS, FUNCTION, *_RENAMING, *ROOTS, MERGE_LINES, HIDE, COLLAPSE_RECURSION)
    return not f.holds.verbatim or f.target == "graph" or any(one in f.options for one in by_name)


# Filters on a row's columns, by view.  The plan puts them directly after each reader that does not apply them itself.
SELECT = {
    "timeline": _in("timeline", "rows.filter:select", "timelines", (PART, TIME_RANGE, THREADS)),
    "stacks": _in("stacks", "rows.filter:select", "stacks", (PART, TIME_RANGE, THREADS, LABEL)),
    "graph": _in("graph", "rows.filter:select", "graphs", (PART, THREADS, LABEL)),
}


def keeps_input_labels(view: str, holds: Capabilities) -> bool:
    """Whether labels of inputs are kept: by samples, parts of graphs and timelines that are written, and processes."""
    written = holds.verbatim if holds.header is None else "input_labels" in holds.header
    return view == "stacks" or written or names_processes(view, holds)


def names_processes(view: str, holds: Capabilities) -> bool:
    """Whether the names of processes are written, with the labels of their inputs."""
    return view == "timeline" and holds.header is not None and "thread-names" not in holds.lacks


# It precedes the filters if the input is a graph or has the view to which the plan leads, else it follows the bridge:
# the plan places it per input.
LABEL_INPUTS = _in(
    "any", "rows.label:labelled", "stacks, graphs, archives, names of processes", INPUT_LABELS, switches=INPUT_LABELS
)

# For timelines it follows the bridge, which makes their values: the plan places it for each input.
RENAME_VALUES = _in("any", "rows.value_names:renamed", "stacks and graphs", (RENAME_VALUE,), switches=(RENAME_VALUE,))

# Before the bridge, for one input or for several that need the same operators.
NAME_ADDRESSES = _in(
    "stacks", "rows.symbolize:symbolize", "addresses of stacks", _NAMING, when=_names_addresses, switches=(SYMBOLIZE,)
)
WITHOUT_ALLOCATOR = _in(
    "stacks",
    "rows.allocator:without_allocator",
    "ranking heaps",
    (KEEP_ALLOCATOR,),
    when=lambda f: f.allocator and not f.holds.allocator,
)
FUNCTIONS = _in("any", "rows.filter:functions", "any format", _BY_NAME, switches=_BY_NAME)
RENAME = _in("any", "rows.rename:rename", "any format", _RENAMING, switches=_RENAMING)
FOCUS_STACKS = _in("stacks", "rows.focus:stacks", "stacks", ROOTS, switches=ROOTS)
TRANSFORM = _in("any", "rows.transform:transform", "any format", TRANSFORMS, switches=TRANSFORMS)
TAG = _in("stacks", "rows.tag:tag", "stacks", (TAGROOT, TAGLEAF), switches=(TAGROOT, TAGLEAF))
COMPUTE = _in(
    "graph",
    "rows.compute:compute",
    "profiles with inherited events",
    (COMPUTE_EVENTS,),
    when=lambda f: f.formulas,
    switches=(COMPUTE_EVENTS,),
)
LAST_CALL = _in(
    "stacks", "rows.last_call:last_call", "default.pgo", (TRIM,), when=lambda f: f.holds.trims, switches=(TRIM,)
)
# They look again at stacks that were removed.
RENEWABLE = {NAME_ADDRESSES, WITHOUT_ALLOCATOR, FUNCTIONS, RENAME, FOCUS_STACKS, TRANSFORM, TAG, LAST_CALL}
FOCUS = (FOCUS_STACKS, _in("timeline", "rows.focus:calls", "timelines", ROOTS, switches=ROOTS))
BEFORE = (NAME_ADDRESSES, WITHOUT_ALLOCATOR, FUNCTIONS, RENAME, *FOCUS, TRANSFORM, TAG, COMPUTE, LAST_CALL)

# Operators that keep distinct stacks distinct: frames keep their addresses.
KEEP_DISTINCT = {NAME_ADDRESSES.code, FUNCTIONS.code}

# From one view to another.  A pair of views has at most one bridge.
FOLD_TO_GRAPH = Operator(
    "timeline",
    "graph",
    "fold.fold:to_graph",
    "converting a timeline to a graph",
    (TIME_UNIT, PER_THREAD, MAX_MEMORY),
    encoded=True,
)
FOLD_TO_STACKS = Operator(
    "timeline",
    "stacks",
    "fold.fold:to_stacks",
    "converting a timeline to stacks",
    (TIME_UNIT, PER_THREAD, LABELS, MAX_MEMORY),
    encoded=True,
)
PROJECT = Operator(
    "stacks",
    "graph",
    "project.project:to_graph",
    "converting stacks to a graph",
    (PER_THREAD, INLINES, MAX_MEMORY),
)
ESTIMATE = Operator(
    "graph",
    "stacks",
    "estimate.estimate:to_stacks",
    "converting a graph to stacks",
    (STACKS, PRUNE, FRAMES, PER_THREAD, LABELS),
    each=True,
)
BRIDGES = (FOLD_TO_GRAPH, FOLD_TO_STACKS, PROJECT, ESTIMATE)
# After a bridge: a graph has callers only as stacks.
FOCUS_ESTIMATE = FOCUS_STACKS._replace(source="graph", title="estimates of stacks", when=lambda f: f.target == "stacks")

# After the bridge, for the rows of all inputs.
NEST = _in(
    "timeline", "rows.nest:nest", "a timeline to a format that draws calls", (TIME_UNIT,), when=lambda f: f.holds.nested
)
SHALLOW = _in(
    "stacks",
    "rows.limit_depth:limit_depth",
    "stacks to a format that repeats frames",
    (MAX_DEPTH,),
    when=lambda f: f.holds.repeats_frames,
)
ONLY_NAMES = _in(
    "stacks",
    "rows.only_names:only_names",
    "stacks to a format of names",
    when=lambda f: not f.added_up and not f.holds.places,
)
_SEPARATED = (PER_THREAD, LABELS, MAX_MEMORY)


def _is_summed(f: Facts) -> bool:
    """Whether the rows are distinct in the form that the target holds."""
    return f.distinct and f.holds.labels and f.holds.places and not any(one in f.options for one in _SEPARATED)


def _is_one(f: Facts) -> bool:
    return not f.to_merge and not f.added_up


SUM_STACKS = _in("stacks", "sums.sum:to_sum", "stacks of several inputs", _SEPARATED, when=lambda f: f.to_merge)
EQUAL_STACKS = _in(
    "stacks",
    "sums.sum:repeated",
    "stacks to a format without times",
    _SEPARATED,
    when=lambda f: _is_one(f) and not f.holds.times and not _is_summed(f),
)
IN_TIME = _in(
    "stacks",
    "sums.in_time:in_time",
    "stacks to a format that draws samples in order of time",
    _SEPARATED,
    when=lambda f: _is_one(f) and f.holds.in_time,
)
SUM_LINES = _in(
    "graph",
    "sums.aggregate:lines",
    "graphs to a format without calls",
    (MAX_MEMORY,),
    when=lambda f: not f.holds.calls and not f.in_order,
)
LINES_IN_ORDER = _in(
    "graph",
    "sums.aggregate:lines_in_order",
    "lines that are in order",
    (MAX_MEMORY,),
    when=lambda f: not f.holds.calls and f.in_order and not f.merged,
)
MERGE_LINES_IN_ORDER = _in(
    "graph",
    "sums.aggregate:merge_lines_in_order",
    "lines of several inputs that are in order",
    (MAX_MEMORY,),
    when=lambda f: not f.holds.calls and f.in_order and f.merged,
    streams=True,
)
MERGE_GRAPHS = _in(
    "graph",
    "sums.aggregate:merge",
    "graphs of several inputs",
    (PER_THREAD, MAX_MEMORY),
    when=lambda f: f.holds.calls and f.merged,
)
SUM_PLACES = _in(
    "graph",
    "sums.aggregate:aggregate",
    "graphs",
    (AGGREGATE, MAX_MEMORY),
    when=lambda f: f.holds.calls and not f.merged,
    switches=(AGGREGATE,),
)
THREAD_ROOTS = _in(
    "stacks",
    "rows.tag:thread_roots",
    "stacks to a format of names without threads",
    (PER_THREAD,),
    when=lambda f: f.holds.names and not f.holds.labels and not f.holds.threads,
    switches=(PER_THREAD,),
)
COMMON_VALUES = _in(
    "any", "sums.agree:common", "several inputs", (UNION, INTERSECT), when=lambda f: f.several, switches=(INTERSECT,)
)
ONE_VALUE = _in(
    "any",
    "rows.choose:one_value",
    "stacks and graphs",
    (VALUE,),
    when=lambda f: f.source != "timeline" and not f.holds.values,
)
NAMED_VALUE = ONE_VALUE._replace(when=lambda f: f.source != "timeline" and f.holds.values, switches=(VALUE,))


def _table(view: str, title: str, *options: Option[Any]) -> Operator:
    return Operator(view, "table", f"rows.as_table:of_{view}", title, options, lambda f: f.holds.table)


TO_TABLE = (
    _table("timeline", "tables of timelines", TABLE, TIME_UNIT),
    _table("stacks", "tables of stacks", TABLE),
    _table("graph", "tables of graphs", TABLE),
)
AFTER = (
    NEST,
    ONLY_NAMES,
    SHALLOW,
    SUM_STACKS,
    EQUAL_STACKS,
    IN_TIME,
    THREAD_ROOTS,
    MERGE_GRAPHS,
    SUM_PLACES,
    SUM_LINES,
    LINES_IN_ORDER,
    MERGE_LINES_IN_ORDER,
    COMMON_VALUES,
    ONE_VALUE,
    NAMED_VALUE,
    *TO_TABLE,
)
KEEP_STACKS = {SUM_STACKS, EQUAL_STACKS, IN_TIME}  # they refer to stacks of earlier batches
ADD_UP_STACKS = {SUM_STACKS, EQUAL_STACKS, PROJECT}
ADD_UP_PLACES = {MERGE_GRAPHS, SUM_LINES, LINES_IN_ORDER, MERGE_LINES_IN_ORDER}  # what --aggregate requests
OPERATORS = (*SELECT.values(), LABEL_INPUTS, RENAME_VALUES, *BEFORE, *BRIDGES, FOCUS_ESTIMATE, *AFTER)
