"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "addresses",
        "build-ids",
        "call-arguments",
        "clamped-times",
        "events",
        "no-such-label",
        "object-notes",
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
    left_out={
        "allocator-frames": "sample(s) whose leaf frames are the allocator's ({--keep-allocator} shows them)",
        "hidden-jumps": ("jump of a hidden or collapsed function", "jumps of hidden or collapsed functions"),
        "hidden-samples": "stack(s) of nothing but hidden functions ([hidden] has (its|their) cost)",
    },
    not_representable={
        "header-fields": "header field(s) ({fields})",
        "call-objects": "function(s) whose object is dropped",
        "call-places": "function(s) whose program, file or first line is dropped",
        "columns": "column(s) of (a line|lines)",
        "cpus": "row(s) whose CPU is dropped",
        "deep-stacks": "sample(s) with too many frames, truncated",
        "default-type": "default value type(s)",
        "first-lines": "first line(s) of (a function|functions)",
        "frames": "frame(s) of (a stack|stacks) ({--table:=}frames writes them)",
        "function-places": "function(s) whose object, file or first line is dropped",
        "idle-threads": "name(s) of (a thread or process|threads and processes) without rows",
        "inherited-events": "inherited event(s)",
        "jumps": "jump target(s)",
        "long-names": ("description of a value type", "descriptions of value types"),
        "mappings": "address range(s) of (an object|objects)",
        "objects": "function(s) whose object is dropped",
        "parts": ("part, merged with the others", "parts, merged"),
        "payloads": "event payload(s)",
        "cut-callers": "sample(s) of which at most the last call(s) (is|are) kept ({--trim})",
        "samples": "sample(s) ({--table:=}samples writes them)",
        "system-names": "symbol name(s) of (a function|functions)",
        "thread-names": "name(s) of (a thread or process|threads and processes)",
        "thread-numbers": "number(s) of (a thread|threads)",
        "threads": (
            "thread, merged with the others ({--per-thread} keeps them separate)",
            "threads, merged ({--per-thread} keeps them separate)",
        ),
    },
    warnings={
        "divided-costs": (
            "{inputs}{n} hidden functions have several callers: their costs are divided in proportion to the calls, an"
            " estimate, because a graph does not record which caller's call led to which cost"
        ),
        "no-hidden-function": "{inputs}{option}{pattern!r:.80} matches no function",
        "no-such-object": "{inputs}{option}{pattern!r:.80} matches no object",
        "no-path-labels": "{file}: {--label-path:=}{pattern} does not match, so it gets no labels from it",
        "no-threads": "{--per-thread:name}: the input records no threads ({--tagroot} separates samples by labels)",
        "no-such-value": "{--rename-value:name}: no input has the value type {name!r:.80}",
        "no-table-labels": "{file}: is not in {table}, so it gets no labels from it",
        "cut-stacks": (
            "{inputs}stacks of up to {deepest:,} frames are truncated to {limit:,}, because the format repeats all"
            " frames with each sample; {--max-depth:=}{deepest} keeps them whole"
        ),
        "no-inherited-events": "{--compute-events:name}: the input has no inherited events that can be computed",
        "uncomputed-events": "inherited event {name:.80} cannot be computed: {problem}",
        "unknown-clock": "the clock's frequency is unknown: times are in ticks",
        "unnamed-addresses": "some addresses have no symbols; name their programs and shared objects with {--symbols}",
        "unresolved-addresses": "{path}: {addresses} without a symbol: {reason}",
    },
)
