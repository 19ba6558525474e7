"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("orphan-exits", "replaced-bytes", "rounded-weights", "thread-numbers", "unreadable-rest", "unwound-frames"),
    repairs={
        "backward-samples": (
            "sample before the one before, taken to be at its time",
            "samples before the one before, taken to be at its time",
        ),
        "bare-backslashes": (
            "text with backslashes that are not escaped",
            "texts with backslashes that are not escaped",
        ),
        "bare-words": ("bare word instead of a value, such as nan", "bare words instead of values, such as nan"),
        "blank-events": ("event that says nothing", "events that say nothing"),
        "cut-calls": ("call that ends just after its caller, cut", "calls that end just after their caller, cut"),
        "nameless-ends": ("end without a name, of the innermost call", "ends without a name, of the innermost call"),
        "negative-durations": ("duration below 0, set to 0", "durations below 0, set to 0"),
        "negative-times": ("time below 0, shifting the file", "times below 0, shifting the file"),
        "nul-padding": ("NUL byte after the end", "NUL bytes after the end"),
        "open-end": ("array without an end", "arrays without an end"),
        "overlapping-calls": (
            "overlapping call, moved to a lane of its thread",
            "overlapping calls, moved to lanes of their thread",
        ),
        "rest-after-end": ("text after the end, skipped", "texts after the end, skipped"),
        "stray-elements": (
            "element of traceEvents that is no event, skipped",
            "elements of traceEvents that are no events, skipped",
        ),
        "times-since-year-1": ("time since the year 1, counted from 1970", "times since the year 1, counted from 1970"),
        "unequal-deltas": ("sample without timeDeltas, or the reverse", "samples without timeDeltas, or the reverse"),
    },
    losses={
        "unreadable-events": ("event that could not be understood", "events that could not be understood"),
        "unreadable-samples": (
            "sample or frame that could not be understood",
            "samples and frames that could not be understood",
        ),
    },
    not_representable={
        "deep-calls": ("call below {depth} others, left out", "calls below {depth} others, left out"),
        "trace-samples": (
            "sample, or table of them ({--samples} reads these instead of the calls)",
            "samples, or tables of them ({--samples} reads these instead of the calls)",
        ),
        "beside-samples": ("call or other event beside samples", "calls and other events beside samples"),
        "call-arguments": ("call argument ({--args} writes them)", "call arguments ({--args} writes them)"),
        "call-stacks": ("stack that stands beside calls and events", "stacks that stand beside calls and events"),
        "event-arguments": ("event with arguments that are no numbers", "events with arguments that are no numbers"),
        "other-events": ("counter, flow or other event", "counters, flows and other events"),
    },
    warnings={
        "maybe-cut-off": "the trace ends before it is complete, as after its writer was killed; the rest is missing",
        "no-sample-times": "{file}: a profile has hit counts and no samples: its rows have no times",
        "shifted-times": "times are {shift} ns less than in the source, so that viewers can tell nanoseconds apart",
    },
)
