"""The documents that `--json` prints, as types.  docs/schemas is made from them (`make docs`): the comment of a field
becomes its description.  Nothing imports this at run time, except tests.

A key that is removed, or whose meaning changes, gives the document a new number in SCHEMAS (as_json.py).
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastprof.core.log import Log
from fastprof.core.model import ValueType
from fastprof.verbs import top
from fastprof.verbs.annotation import Instruction, Line, Missing
from fastprof.verbs.batch.status import ShardStatus
from fastprof.verbs.diff.difference import Failure, Runs
from fastprof.verbs.diff.overlap import Overlap
from fastprof.verbs.explain import Comparison, Explanation
from fastprof.verbs.top import matrix
from fastprof.verbs.trend import result as trend


class Entry(TypedDict):
    """A kind of repair, loss or omission, and how many there are."""

    code: str  # stays the same in later versions
    text: str  # for people
    count: int


class Warning(TypedDict):
    """A warning."""

    code: str
    text: str


class LogDocument(TypedDict):
    """What was read, written, repaired and lost."""

    rows: dict[str, int]  # rows, samples or calls that were read or written, by kind
    repairs: list[Entry]  # oddities of real writers that were fixed
    losses: list[Entry]  # damaged pieces that were skipped (--lenient, --keep-going); exit code 3
    left_out: list[Entry]  # rows removed by filters
    not_representable: list[Entry]  # what the output cannot hold, or what is not read
    warnings: list[Warning]
    facts: dict[str, Any]  # depends on the verb and the format


class Facts(TypedDict, total=False):
    """Facts about a profile.  A format may add others, which its page in docs/formats explains."""

    file: str
    format: str
    view: str  # timeline, stacks or graph; of a store: the views of its profiles
    creator: str | list[str]  # several values if parts differ
    command: str | list[str]
    pid: int | list[int]
    records: int
    records_by_kind: dict[str, int]
    functions: int  # distinct ones
    processes: int
    threads: int
    thread_names: list[str]
    contexts: int  # distinct stacks
    parts: int
    calls: int
    first_tick: int  # of a timeline, in ticks of its clock
    last_tick: int
    ticks_per_second: int
    seconds: float  # from the first to the last record
    first_time_ns: int  # of samples
    last_time_ns: int
    time_ns: int | list[int]  # start of the recording, since 1970
    duration_ns: int | list[int]
    period: int | list[int]  # between samples, in the unit of `period_type`
    period_type: str | list[str]  # TYPE/UNIT
    totals: dict[str, int]  # self costs, by value type
    units: dict[str, str]  # of the totals; a missing unit is unknown
    totals_of_inherited_events: dict[str, float]
    default_value_type: str


class InfoDocument(LogDocument):
    """What is in a profile."""

    facts: Facts  # type: ignore[misc]


class InfosDocument(TypedDict):
    """`info` of several profiles."""

    profiles: list[InfoDocument]


class Cut(TypedDict):
    """What --budget-tokens left out."""

    what: str  # path of the list or object in this document
    shown: int  # entries that are left
    of: int | None  # entries without the limit; null: unknown
    ask: str  # options that show more


class Budgeted(TypedDict, total=False):
    """What is added if --budget-tokens left something out."""

    cut: list[Cut]


class MatrixRow(TypedDict):
    """A function of --matrix, with its costs and shares by column."""

    name: str
    file: str
    object: str
    median: float  # of its shares of the columns' totals
    outlier: str  # the column that differs most from the median
    share: float  # there
    difference: float  # of that share from the median
    costs: list[int]  # one for each column
    shares: list[float]


class MatrixDocument(TypedDict):
    """Functions by values of a label."""

    key: str
    columns: list[matrix.Column]
    rows: list[MatrixRow]
    n_rows: int


class WithMatrix(TypedDict, total=False):
    """What --stats and --matrix add, and the other value types of the input."""

    stats: ValueType
    matrix: MatrixDocument
    other_values: list[str]


class Sides(TypedDict):
    """A cost of both profiles."""

    old: int
    new: int


class DiffValue(TypedDict):
    """A value type and the total self cost of each side; of several profiles the mean."""

    name: str
    unit: str
    old: int
    new: int
    percent: float | None  # growth; null: from 0


class WithRuns(TypedDict, total=False):
    """With several profiles a side."""

    runs: Runs


class DiffValueOfRuns(DiffValue, WithRuns):
    """A value type, with several profiles a side."""


class _Change(TypedDict):
    name: str
    file: str
    object: str
    line: int  # of a function its first one; 0: unknown
    callee: str  # --by arc, else ""
    values: dict[str, Sides]  # self costs, by value type
    inclusive: Sides | None  # in the value type `shown`; null: unknown


class ChangeDocument(_Change, total=False):
    """A row of `diff`."""

    label: str  # --by label:KEY,function: the values of the labels
    runs: Runs


class _Diff(TypedDict):
    old: str
    new: str
    by: str
    values: list[DiffValueOfRuns]
    changed: int  # rows that differ; `rows` may have only the first
    shown: int  # the index in `values` by which rows are sorted
    rows: list[ChangeDocument]
    log: Log


class DiffDocument(_Diff, total=False):
    """The changes from one profile to another, largest first."""

    noise: int  # rows that differ by chance, not in `rows`; with several profiles a side
    failed: list[Failure]  # totals and rows that --fail-over does not allow
    overlap: Overlap  # --stats


class ListingDocument(TypedDict):
    """A source file, or with --asm a function."""

    name: str
    file: str  # in the profile
    path: str  # that was found
    values: list[int]  # self costs, one for each value type
    lines: list[Line | Instruction]


class AnnotateDocument(TypedDict):
    """Source lines, or instructions, with their costs."""

    value_types: list[ValueType]
    value: int  # the index in `value_types` by which listings are sorted
    totals: list[int]  # self costs of the whole profile, one for each value type
    shares: dict[str, list[int]]  # these, split into those shown and those not, by reason
    listings: list[ListingDocument]
    missing: list[Missing]
    log: Log


class Column(TypedDict):
    """A column of an answer."""

    name: str
    type: str  # of DuckDB


class SqlDocument(TypedDict):
    """The answer to a query."""

    columns: list[Column]
    rows: list[dict[str, Any]]  # by names of columns, which are made distinct: a, a_1
    log: Log


class Reported(TypedDict):
    """What a log may report."""

    code: str
    text: str  # fields in capitals


class FormatDocument(TypedDict):
    """A format."""

    name: str
    view: str
    also: str  # a second view, or ""
    reads: bool
    writes: bool
    suffixes: list[str]
    prefixes: list[str]
    title: str
    docs: str
    options: list[dict[str, Any]]  # name, flag, values, default, repeatable, for (reading, writing), help, details
    repairs: list[Reported]
    losses: list[Reported]
    not_representable: list[Reported]
    warnings: list[Reported]


class FormatsDocument(TypedDict):
    """All formats."""

    formats: list[FormatDocument]


class MembersDocument(TypedDict):
    """The profiles of a store."""

    profiles: list[dict[str, Any]]  # name, view, rows, chunks, stored_bytes; if known format, file ...


class FolderEntry(TypedDict):
    """A file or folder."""

    name: str
    path: str
    kind: str  # file or folder
    bytes: int


class FolderDocument(TypedDict):
    """What the tool `list` of `fastprof mcp` finds in a folder."""

    folders: list[str]  # that the server reads
    path: str
    entries: list[FolderEntry]
    left_out: int  # entries whose links lead out of the folders


class _Damage(TypedDict):
    error: str


class Damage(_Damage, total=False):
    """An error of a store."""

    name: str  # of the profile that it belongs to


class CompactDocument(TypedDict):
    """The size of a store, before and after."""

    bytes_before: int
    bytes_after: int


class RemovedDocument(TypedDict):
    """What was removed from a store."""

    removed: list[str]  # names of profiles


class VerifyDocument(TypedDict):
    """The errors of a store, in the order of the file."""

    errors: list[Damage]


class BatchDocument(TypedDict):
    """What a batch did."""

    files: int
    earlier: int  # files done by earlier runs
    ok: int
    lossy: int
    error: int
    crashed: int
    failed: list[dict[str, Any]]  # records of files without an output
    warnings: list[Warning]
    warnings_of_files: int
    idle: list[str]  # options without an effect on any file
    bytes_read: int
    bytes_written: int
    cpu_seconds: float


class StatusDocument(TypedDict):
    """The progress of a batch."""

    shards: list[ShardStatus]
    statuses: dict[str, int]  # files by ok, lossy, error, crashed
    failed: list[dict[str, Any]]
    bytes_written: int
    cpu_seconds: float
    unfinished: list[str]  # shards


class ErrorDocument(TypedDict):
    """Why a command failed, as one line on standard error.  Its exit code is 1, or 2 for wrong usage."""

    code: str  # see docs/json.md
    message: str
    file: str | None  # null: of no single file
    format: str | None
    offset: int | None  # in the decompressed file, in bytes
    line: int | None  # of a text format
    advice: str | None


# By name of the document, as in SCHEMAS: the types whose keys it has.
DOCUMENTS: dict[str, tuple[type, ...]] = {
    "annotate": (AnnotateDocument, Budgeted),
    "archive-add": (LogDocument,),
    "archive-compact": (CompactDocument,),
    "archive-extract": (LogDocument,),
    "archive-list": (MembersDocument,),
    "archive-rm": (RemovedDocument,),
    "archive-verify": (VerifyDocument,),
    "batch": (BatchDocument,),
    "batch-merge": (LogDocument,),
    "batch-status": (StatusDocument,),
    "convert": (LogDocument,),
    "diff": (DiffDocument, Budgeted),
    "diff-output": (LogDocument,),
    "error": (ErrorDocument,),
    "explain": (Explanation, Budgeted),
    "explain-changes": (Comparison, Budgeted),
    "format": (FormatDocument,),
    "formats": (FormatsDocument,),
    "info": (InfoDocument, Budgeted),
    "info-list": (InfosDocument, Budgeted),
    "mcp-list": (FolderDocument, Budgeted),
    "merge": (LogDocument,),
    "report": (LogDocument,),
    "sql": (SqlDocument, Budgeted),
    "top": (top.Top, WithMatrix, Budgeted),
    "trend": (trend.Trend, Budgeted),
}
# Keys of tuples that are printed only if they apply.
OPTIONAL: dict[type, tuple[str, ...]] = {top.Row: ("durations", "pid", "tid", "thread"), trend.Finding: ("left",)}
# Objects that may have further keys.
OPEN: tuple[type, ...] = (Facts,)
