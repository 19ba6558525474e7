"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("damaged-records", "samples-without-stack", "skipped-bytes"),
    repairs={
        "overlapping-events": (
            "thread added for overlapping events",
            "threads added for overlapping events",
        ),
        "shortened-events": (
            "event that overlaps too many others, ended with another",
            "events that overlap too many others, ended with another",
        ),
        "missing-constants": (
            "reference to a name, stack or thread that the JVM did not write",
            "references to names, stacks or threads that the JVM did not write",
        ),
        "unfinished-chunks": (
            "chunk that the JVM did not finish, read to its last record",
            "chunks that the JVM did not finish, read to their last records",
        ),
    },
    not_representable={
        "instant-events": (
            "sample or other event without a duration",
            "samples and other events without a duration",
        ),
        "side-events": ("event that is not a sample", "events that are not samples"),
        "timed-events": (
            "event with a duration ({-O jfr.events} reads these)",
            "events with durations ({-O jfr.events} reads these)",
        ),
        "undescribed-events": (
            "event of a type that the recording does not describe",
            "events of types that the recording does not describe",
        ),
    },
    losses={
        "damaged-checkpoints": ("checkpoint with a damaged constant", "checkpoints with damaged constants"),
        "damaged-chunks": ("chunk with a damaged head or metadata", "chunks with damaged heads or metadata"),
    },
    warnings={
        "lost-samples": "{file}: the JVM lost {lost:,} CPU-time samples",
        "lost-data": "{file}: the JVM lost {lost:,} bytes of events",
        "truncated-stacks": "{file}: the JVM truncated the stacks of {samples}; "
        "-XX:FlightRecorderOptions=stackdepth=N sets the limit, 64 by default",
    },
)
