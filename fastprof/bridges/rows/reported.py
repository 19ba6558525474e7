"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "addresses",
        "build-ids",
        "call-arguments",
        "clamped-times",
        "events",
        "object-notes",
        "only-zeros",
        "orphan-exits",
        "part-addresses",
        "places",
        "replaced-bytes",
        "unfinished-calls",
        "units",
        "unwound-frames",
        "value-names",
        "value-types",
    ),
    not_representable={
        "header-fields": ("header field ({fields})", "header fields ({fields})"),
        "columns": ("column of a line", "columns of lines"),
        "cpus": ("row whose CPU is left out", "rows whose CPU is left out"),
        "deep-stacks": ("sample with too many frames, cut", "samples with too many frames, cut"),
        "default-type": ("value type to show first", "value types to show first"),
        "first-lines": ("first line of a function", "first lines of functions"),
        "frames": (
            "frame of a stack ({--table:=}frames writes them)",
            "frames of stacks ({--table:=}frames writes them)",
        ),
        "function-places": (
            "function whose object, file or first line is left out",
            "functions whose object, file or first line is left out",
        ),
        "idle-threads": ("name of a thread or process without rows", "names of threads and processes without rows"),
        "inherited-events": ("event that is a formula of others", "events that are formulas of others"),
        "jumps": ("target of a jump", "targets of jumps"),
        "long-names": ("description of a value type", "descriptions of value types"),
        "mappings": ("address range of an object", "address ranges of objects"),
        "objects": ("function whose object is left out", "functions whose object is left out"),
        "parts": ("part, added up", "parts, added up"),
        "payloads": ("payload of an event", "payloads of events"),
        "samples": ("sample ({--table:=}samples writes them)", "samples ({--table:=}samples writes them)"),
        "system-names": ("symbol name of a function", "symbol names of functions"),
        "thread-names": ("name of a thread or process", "names of threads and processes"),
        "thread-numbers": ("number of a thread", "numbers of threads"),
        "threads": (
            "thread, added up ({--per-thread} keeps them apart)",
            "threads, added up ({--per-thread} keeps them apart)",
        ),
    },
    warnings={
        "cut-stacks": (
            "{inputs}stacks of up to {deepest:,} frames are cut at {limit:,}, because each is written with all of"
            " its frames; {--max-depth:=}{deepest} keeps them whole"
        ),
        "no-inherited-events": "{--compute-events:name}: the input has no inherited events that can be computed",
        "uncomputed-events": "inherited event {name:.80} cannot be computed: {problem}",
        "unknown-clock": "the clock's frequency is unknown: times are in ticks",
        "unnamed-addresses": "some addresses have no names; give their programs and shared objects with {--symbols}",
        "unresolved-addresses": "{path}: {addresses} without a symbol: {reason}",
    },
)
