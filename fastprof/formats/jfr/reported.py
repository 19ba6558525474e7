"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_jfr_counts",
    shared=("skipped-bytes",),
    repairs={
        "unfinished-chunks": "chunk(s) that the JVM did not finish, read to (its|their) last record(s)",
    },
    not_representable={
        "instant-events": "sample(s) (or|and) event(s) without a duration and a thread",
        "side-events": "event(s) that (is|are) not (a sample|samples)",
    },
    losses={
        "damaged-chunks": ("chunk with a damaged head or metadata", "chunks with damaged heads or metadata"),
    },
    warnings={
        "lost-samples": "{file}: the JVM lost {lost:,} CPU-time samples",
        "lost-data": "{file}: the JVM lost {lost:,} bytes of events",
        "truncated-stacks": "{file}: the JVM truncated the stacks of {samples}; "
        "-XX:FlightRecorderOptions=stackdepth=N sets the limit, 64 by default",
    },
)
