"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_gperftools_stats",
    "fp_gperftools_writer",
    shared=("build-ids",),
    repairs={
        "cut-text": "list(s) of mapped objects that (ends|end) in the middle of a line",
        "missing-trailer": "file(s) without a trailer",
        "unreadable-mapped-objects": "line(s) that (names|name) no mapped object",
    },
    not_representable={
        "changed-paths": (
            "ambiguous path of a mapped object, changed",
            "ambiguous paths of mapped objects, changed",
        ),
        "function-names": "function name(s) (gperftools profiles hold only addresses)",
        "mappings-without-addresses": "mapping(s) without addresses",
        "period": "period(s) that (is|are) not (a time|times)",
    },
    losses={
        "lost-text": "list(s) of mapped objects that (ends|end) in the middle of a line",
    },
    warnings={
        "missing-frames": "{share} of the cost is in stacks that lose frames without an address",
        "missing-cost": "{share} of the cost is dropped: samples that have no address, are negative or rounded to 0",
        "cut-stacks": (
            "{file}: the profiler cut the stacks of {cut:,} of {samples} at 254 frames: their callers are missing"
        ),
        "forked-processes": (
            "{file}: forked processes wrote into the profile: samples from before the fork may be "
            "counted more than once"
        ),
        "maybe-cut-off": "{file}: the text ends in the middle of a line: the input may be truncated",
        "no-period": "{file}: symbolized profiles do not record the period; use {--period}",
        "zero-period": (
            "{file}: the period is 0: the counts are not converted to times, and may be bytes (php-memprof's are); "
            "{--period} sets the period of a CPU profile"
        ),
    },
)
