"""Keyword options of the Python interface, for editors and type checkers: nothing imports this at run time.

Made from the declarations of the options by `make docs`.  docs/options.md explains each.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

Path = str | os.PathLike[str]


class Xray(TypedDict, total=False):
    program: str


class Gperftools(TypedDict, total=False):
    period_us: int | None
    keep_signal_frames: bool


class Callgrind(TypedDict, total=False):
    compress_names: bool
    compress_positions: bool


class Pprof(TypedDict, total=False):
    time_ns: int | None
    comments: Sequence[str]
    name_addresses: bool


class Otlp(TypedDict, total=False):
    encoding: Literal["binary", "json"] | None


class Folded(TypedDict, total=False):
    counts: int | None
    decimals: int
    suffixes: bool
    root: str | None
    nanoseconds: bool


class Perf(TypedDict, total=False):
    cpus: bool


class PerfScript(TypedDict, total=False):
    comm_frames: bool


class Jfr(TypedDict, total=False):
    kinds: bool
    signatures: bool
    join_classes: bool
    class_frames: bool
    truncated_roots: bool
    events: bool


class Speedscope(TypedDict, total=False):
    evented: bool


class TraceEvent(TypedDict, total=False):
    samples: bool
    args: bool


class Firefox(TypedDict, total=False):
    markers: bool


class Perfetto(TypedDict, total=False):
    data: Literal["calls", "samples", "v8", "allocations", "objects", "states", "off-cpu"] | None


class Archive(TypedDict, total=False):
    member: str | None
    level: int | None


class Oprofile(TypedDict, total=False):
    add_up: Sequence[Literal["cpu", "lib", "tid", "tgid", "unitmask", "all"]]
    spec: Sequence[str]


class Massif(TypedDict, total=False):
    snapshot: int | str


class InfoOptions(TypedDict, total=False):
    lenient: bool
    cores: int | None
    part: int | None
    time_range: Sequence[int] | str | None
    threads: Sequence[int | str]
    label: Sequence[str]
    symbols: Sequence[Path]
    demangle: Literal["full", "templates", "short", "none"]
    program: str
    period_us: int | None
    keep_signal_frames: bool
    counts: int | None
    decimals: int
    suffixes: bool
    cpus: bool
    max_memory: int
    symbolize: bool
    sysroot: Path
    debug_dirs: Sequence[Path]
    force_symbols: bool
    comm_frames: bool
    kinds: bool
    signatures: bool
    join_classes: bool
    class_frames: bool
    truncated_roots: bool
    events: bool
    evented: bool
    samples: bool
    markers: bool
    data: Literal["calls", "samples", "v8", "allocations", "objects", "states", "off-cpu"] | None
    member: str | None
    add_up: Sequence[Literal["cpu", "lib", "tid", "tgid", "unitmask", "all"]]
    spec: Sequence[str]
    snapshot: int | str
    xray: Xray
    gperftools: Gperftools
    folded: Folded
    perf: Perf
    perf_script: PerfScript
    jfr: Jfr
    speedscope: Speedscope
    trace_event: TraceEvent
    firefox: Firefox
    perfetto: Perfetto
    archive: Archive
    oprofile: Oprofile
    massif: Massif


class OpenOptions(InfoOptions, total=False):
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    aggregate: bool
    union: bool
    intersect: bool
    value: str | None


class ConvertOptions(InfoOptions, total=False):
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    per_thread: bool
    labels: Sequence[Literal["own", "thread", "process", "part", "cpu"]] | None
    inlines: bool
    stacks: Literal["estimate", "arcs", "self"]
    prune: float | None
    frames: Literal["function", "line", "address"]
    max_depth: int
    aggregate: bool
    union: bool
    intersect: bool
    value: str | None
    table: Literal["spans", "events", "samples", "frames", "graph"] | None
    compress_names: bool
    compress_positions: bool
    time_ns: int | None
    comments: Sequence[str]
    name_addresses: bool
    encoding: Literal["binary", "json"] | None
    root: str | None
    nanoseconds: bool
    budget: int | None
    split: str | None
    args: bool
    level: int | None
    callgrind: Callgrind
    pprof: Pprof
    otlp: Otlp


class TopOptions(InfoOptions, total=False):
    n: int
    sort: str
    threshold: float | None
    cumulative: bool
    focus: str | None
    ignore: str | None
    by: str
    tree: Literal["caller", "calling", "both"] | None
    cycles: bool
    stats: bool
    matrix: str | None
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    union: bool
    intersect: bool
    value: str | None


class AnnotateOptions(InfoOptions, total=False):
    context: int
    n: int
    threshold: float
    source: Sequence[Path]
    asm: bool
    calls: int
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    union: bool
    intersect: bool
    value: str | None


class DiffOptions(InfoOptions, total=False):
    by: str
    n: int
    sort: Literal["self", "inclusive", "percent"]
    threshold: float | None
    significance: float
    pair: Literal["name", "exact"]
    normalize: str | None
    base_of: int
    fail_over: float | str | None
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    stacks: Literal["estimate", "arcs", "self"]
    prune: float | None
    max_depth: int
    union: bool
    intersect: bool
    value: str | None
    table: Literal["spans", "events", "samples", "frames", "graph"] | None
    compress_names: bool
    compress_positions: bool
    time_ns: int | None
    comments: Sequence[str]
    name_addresses: bool
    encoding: Literal["binary", "json"] | None
    root: str | None
    nanoseconds: bool
    budget: int | None
    split: str | None
    args: bool
    level: int | None
    callgrind: Callgrind
    pprof: Pprof
    otlp: Otlp


class ReportOptions(InfoOptions, total=False):
    prune: float | None
    source: Sequence[Path]
    pair: Literal["name", "exact"]
    sum: bool
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    stacks: Literal["estimate", "arcs", "self"]
    union: bool
    intersect: bool
    value: str | None


class BatchPlanOptions(TypedDict, total=False):
    include: Sequence[str]
    exclude: Sequence[str]


class BatchConvertOptions(InfoOptions, total=False):
    include: Sequence[str]
    exclude: Sequence[str]
    plan: Path | None
    shard: Sequence[int] | None
    engine: str
    jobs: int | None
    retries: int
    timeout: float
    retry_errors: bool
    dry_run: bool
    partition: str | None
    append: bool
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    per_thread: bool
    labels: Sequence[Literal["own", "thread", "process", "part", "cpu"]] | None
    inlines: bool
    stacks: Literal["estimate", "arcs", "self"]
    prune: float | None
    frames: Literal["function", "line", "address"]
    max_depth: int
    aggregate: bool
    union: bool
    intersect: bool
    value: str | None
    table: Literal["spans", "events", "samples", "frames", "graph"] | None
    compress_names: bool
    compress_positions: bool
    time_ns: int | None
    comments: Sequence[str]
    name_addresses: bool
    encoding: Literal["binary", "json"] | None
    root: str | None
    nanoseconds: bool
    budget: int | None
    split: str | None
    args: bool
    level: int | None
    callgrind: Callgrind
    pprof: Pprof
    otlp: Otlp


class BatchMergeOptions(InfoOptions, total=False):
    include: Sequence[str]
    exclude: Sequence[str]
    engine: str
    jobs: int | None
    fan_in: int
    retries: int
    timeout: float
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    per_thread: bool
    labels: Sequence[Literal["own", "thread", "process", "part", "cpu"]] | None
    inlines: bool
    stacks: Literal["estimate", "arcs", "self"]
    prune: float | None
    frames: Literal["function", "line", "address"]
    max_depth: int
    aggregate: bool
    union: bool
    intersect: bool
    value: str | None
    table: Literal["spans", "events", "samples", "frames", "graph"] | None
    compress_names: bool
    compress_positions: bool
    time_ns: int | None
    comments: Sequence[str]
    name_addresses: bool
    encoding: Literal["binary", "json"] | None
    root: str | None
    nanoseconds: bool
    budget: int | None
    split: str | None
    args: bool
    level: int | None
    callgrind: Callgrind
    pprof: Pprof
    otlp: Otlp


class BatchArchiveOptions(InfoOptions, total=False):
    include: Sequence[str]
    exclude: Sequence[str]
    plan: Path | None
    jobs: int | None
    retries: int
    timeout: float
    retry_errors: bool
    dry_run: bool
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    level: int | None


class ArchiveAddOptions(InfoOptions, total=False):
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    level: int | None


class ArchiveExtractOptions(TypedDict, total=False):
    lenient: bool
    cores: int | None
    part: int | None
    time_range: Sequence[int] | str | None
    threads: Sequence[int | str]
    label: Sequence[str]
    set_label: Sequence[str]
    label_path: str | None
    label_input: bool
    labels_from: Path | None
    rename_value: Sequence[str]
    symbols: Sequence[Path]
    symbolize: bool
    sysroot: Path
    debug_dirs: Sequence[Path]
    force_symbols: bool
    demangle: Literal["full", "templates", "short", "none"]
    keep_allocator: bool
    function: str | None
    object: str | None
    mod_funcname: Sequence[str]
    mod_filename: Sequence[str]
    mod_object: Sequence[str]
    tagroot: str | None
    tagleaf: str | None
    compute_events: bool
    time_unit: Literal["ns", "ticks"]
    per_thread: bool
    max_memory: int
    labels: Sequence[Literal["own", "thread", "process", "part", "cpu"]] | None
    inlines: bool
    stacks: Literal["estimate", "arcs", "self"]
    prune: float | None
    frames: Literal["function", "line", "address"]
    max_depth: int
    aggregate: bool
    union: bool
    intersect: bool
    value: str | None
    table: Literal["spans", "events", "samples", "frames", "graph"] | None
    program: str
    period_us: int | None
    keep_signal_frames: bool
    compress_names: bool
    compress_positions: bool
    time_ns: int | None
    comments: Sequence[str]
    name_addresses: bool
    encoding: Literal["binary", "json"] | None
    counts: int | None
    decimals: int
    suffixes: bool
    root: str | None
    nanoseconds: bool
    cpus: bool
    comm_frames: bool
    kinds: bool
    signatures: bool
    join_classes: bool
    class_frames: bool
    truncated_roots: bool
    events: bool
    evented: bool
    budget: int | None
    split: str | None
    samples: bool
    args: bool
    markers: bool
    data: Literal["calls", "samples", "v8", "allocations", "objects", "states", "off-cpu"] | None
    level: int | None
    add_up: Sequence[Literal["cpu", "lib", "tid", "tgid", "unitmask", "all"]]
    spec: Sequence[str]
    snapshot: int | str
    xray: Xray
    gperftools: Gperftools
    callgrind: Callgrind
    pprof: Pprof
    otlp: Otlp
    folded: Folded
    perf: Perf
    perf_script: PerfScript
    jfr: Jfr
    speedscope: Speedscope
    trace_event: TraceEvent
    firefox: Firefox
    perfetto: Perfetto
    archive: Archive
    oprofile: Oprofile
    massif: Massif
