"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.chrome import reported as of_samples
from fastprof.core.reported import reported

REPORTED = of_samples.REPORTED | reported(
    shared=(
        "counter-values",
        "orphan-exits",
        "samples-without-stack",
        "skipped-bytes",
        "thread-numbers",
        "unwound-frames",
    ),
    repairs={
        "cut-calls": ("overlapping call, shortened", "overlapping calls, shortened"),
        "negative-times": ("event before time 0, dropped", "events before time 0, dropped"),
        "overlapping-calls": (
            "overlapping call, moved to a lane of its thread",
            "overlapping calls, moved to lanes of their thread",
        ),
    },
    losses={
        "damaged-packets": ("damaged packet", "damaged packets"),
        "damaged-switches": (
            "damaged buffer of scheduler switches, read up to the damage",
            "damaged buffers of scheduler switches, read up to the damage",
        ),
        "zstd-packets": ("packet compressed with zstd", "packets compressed with zstd"),
    },
    not_representable={
        "deep-calls": (
            "call or event nested deeper than {depth}, dropped",
            "calls and events nested deeper than {depth}, dropped",
        ),
        "event-arguments": ("event with other arguments", "events with other arguments"),
        "event-stacks": ("stack of an event", "stacks of events"),
        "flows": ("end of a flow", "ends of flows"),
        "heap-samples": (
            "stack in a heap dump ({-O perfetto.data:=}allocations reads these)",
            "stacks in heap dumps ({-O perfetto.data:=}allocations reads these)",
        ),
        "heap-objects": (
            "object of a Java heap ({-O perfetto.data:=}objects reads these)",
            "objects of Java heaps ({-O perfetto.data:=}objects reads these)",
        ),
        "invalid-utf8": ("non-UTF-8 name, repaired", "non-UTF-8 names, repaired"),
        "kernel-events": ("other event of the kernel", "other events of the kernel"),
        "long-paths": (
            "path of an object beyond 512 references from its root",
            "paths of objects beyond 512 references from their roots",
        ),
        "other-events": ("event of another kind", "events of other kinds"),
        "other-packets": ("packet of another kind", "packets of other kinds"),
        "prints": ("other print of atrace", "other prints of atrace"),
        "sched-switches": (
            "switch of the scheduler ({-O perfetto.data:=}states or off-cpu reads these)",
            "switches of the scheduler ({-O perfetto.data:=}states or off-cpu reads these)",
        ),
        "trace-calls": (
            "call ({-O perfetto.data:=}calls reads these)",
            "calls ({-O perfetto.data:=}calls reads these)",
        ),
        "trace-instants": ("event without duration", "events without duration"),
        "trace-samples": (
            "sample with a call stack ({-O perfetto.data:=}samples reads these)",
            "samples with call stacks ({-O perfetto.data:=}samples reads these)",
        ),
        "track-states": ("state of a track", "states of tracks"),
        "unended-waits": ("thread off the CPU at the end", "threads off the CPU at the end"),
        "v8-chunks": (
            "chunk of a V8 profile ({-O perfetto.data:=}v8 reads these)",
            "chunks of V8 profiles ({-O perfetto.data:=}v8 reads these)",
        ),
    },
    warnings={
        "dropped-packets": "{file}: packets of a sequence dropped by the recorder: {n:,}",
        "event-buffers-lost": "{file}: times the kernel lost events: {n:,}",
        "incomplete-heap-dumps": "{file}: incomplete heap dumps: {n:,}",
        "incomplete-stacks": "{file}: stacks not unwound completely: {n:,}",
        "lost-chunks": "{file}: chunks of the trace lost by the recorder: {n:,}",
        "lost-samples": "{file}: samples skipped or lost by the recorder: {n:,}",
        "no-sequence": "{file}: events dropped because they have no sequence: {n:,}",
        "no-state": "{file}: packets dropped because they refer to names that were lost: {n:,}",
        "no-stacks": "{file}: samples dropped because their stack is unknown: {n:,}",
        "no-time": "{file}: events dropped because they have no time, or one of an unknown clock: {n:,}",
        "no-times": "no row has a time: the trace is valid but empty",
        "unknown-names": "{file}: calls with an unknown name: {n:,}",
    },
)
