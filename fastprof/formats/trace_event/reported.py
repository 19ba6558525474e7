"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.chrome import reported as of_samples
from fastprof.core.reported import reported

REPORTED = of_samples.REPORTED | reported(
    shared=(
        "counter-values",
        "orphan-exits",
        "replaced-bytes",
        "thread-numbers",
        "unreadable-rest",
        "unwound-frames",
    ),
    repairs={
        "blank-events": ("event without content", "events without content"),
        "cut-calls": (
            "call that ends just after its caller, shortened",
            "calls that end just after their caller, shortened",
        ),
        "divided-calls": (
            "call divided by an annotation that begins or ends within it",
            "calls divided by annotations that begin or end within them",
        ),
        "nameless-ends": (
            "unnamed end, matched with the innermost call",
            "unnamed ends, matched with the innermost call",
        ),
        "negative-durations": ("negative duration, set to 0", "negative durations, set to 0"),
        "negative-times": ("negative time, all times shifted", "negative times, all times shifted"),
        "overlapping-calls": (
            "overlapping call, moved to a lane of its thread",
            "overlapping calls, moved to lanes of their thread",
        ),
        "stray-elements": (
            "element of traceEvents that is not an event, skipped",
            "elements of traceEvents that are not events, skipped",
        ),
    },
    losses={
        "unreadable-events": ("unreadable event", "unreadable events"),
    },
    not_representable={
        "deep-calls": ("call nested deeper than {depth}, dropped", "calls nested deeper than {depth}, dropped"),
        "trace-samples": (
            "sample, or table of them ({--samples} reads these instead of the calls)",
            "samples, or tables of them ({--samples} reads these instead of the calls)",
        ),
        "call-arguments": ("call argument ({--args} writes them)", "call arguments ({--args} writes them)"),
        "call-stacks": ("stack of a call or event", "stacks of calls and events"),
        "event-arguments": ("event with non-numeric arguments", "events with non-numeric arguments"),
        "flows": ("end of an arrow between calls", "ends of arrows between calls"),
        "profiler-spans": ("span of PyTorch's profiler, in no thread", "spans of PyTorch's profiler, in no thread"),
        "other-events": ("event without a call", "events without a call"),
    },
    warnings={
        "shifted-times": "all times are reduced by {shift} ns, so that viewers can resolve nanoseconds",
    },
)
