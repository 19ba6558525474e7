"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "counter-values",
        "orphan-exits",
        "replaced-bytes",
        "rounded-weights",
        "thread-numbers",
        "unreadable-rest",
        "unwound-frames",
    ),
    repairs={
        "backward-samples": (
            "out-of-order sample, moved to the time of the previous one",
            "out-of-order samples, moved to the time of the previous one",
        ),
        "bare-backslashes": (
            "text with unescaped backslashes",
            "texts with unescaped backslashes",
        ),
        "bare-words": ("bare word instead of a value, such as nan", "bare words instead of values, such as nan"),
        "blank-events": ("event without content", "events without content"),
        "cut-calls": (
            "call that ends just after its caller, shortened",
            "calls that end just after their caller, shortened",
        ),
        "nameless-ends": (
            "unnamed end, matched with the innermost call",
            "unnamed ends, matched with the innermost call",
        ),
        "negative-durations": ("negative duration, set to 0", "negative durations, set to 0"),
        "negative-times": ("negative time, all times shifted", "negative times, all times shifted"),
        "nul-padding": ("NUL byte after the end", "NUL bytes after the end"),
        "open-end": ("unclosed array", "unclosed arrays"),
        "overlapping-calls": (
            "overlapping call, moved to a lane of its thread",
            "overlapping calls, moved to lanes of their thread",
        ),
        "rest-after-end": ("text after the end, skipped", "texts after the end, skipped"),
        "stray-elements": (
            "element of traceEvents that is not an event, skipped",
            "elements of traceEvents that are not events, skipped",
        ),
        "times-since-year-1": ("time since the year 1, counted from 1970", "times since the year 1, counted from 1970"),
        "unequal-deltas": (
            "sample without a time delta, or the reverse",
            "samples without a time delta, or the reverse",
        ),
    },
    losses={
        "unreadable-events": ("unreadable event", "unreadable events"),
        "unreadable-samples": (
            "unreadable sample or frame",
            "unreadable samples and frames",
        ),
    },
    not_representable={
        "deep-calls": ("call nested deeper than {depth}, dropped", "calls nested deeper than {depth}, dropped"),
        "trace-samples": (
            "sample, or table of them ({--samples} reads these instead of the calls)",
            "samples, or tables of them ({--samples} reads these instead of the calls)",
        ),
        "non-sample-events": ("call or other event next to samples", "calls and other events next to samples"),
        "call-arguments": ("call argument ({--args} writes them)", "call arguments ({--args} writes them)"),
        "call-stacks": ("stack of a call or event", "stacks of calls and events"),
        "event-arguments": ("event with non-numeric arguments", "events with non-numeric arguments"),
        "flows": ("end of an arrow between calls", "ends of arrows between calls"),
        "other-events": ("event without a call", "events without a call"),
    },
    warnings={
        "maybe-cut-off": "the trace is incomplete, as if its writer had been killed; the rest is missing",
        "no-sample-times": "{file}: a profile has hit counts but no samples: its rows have no times",
        "shifted-times": "all times are reduced by {shift} ns, so that viewers can resolve nanoseconds",
    },
)
