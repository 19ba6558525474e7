"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("build-ids", "damaged-records", "skipped-bytes"),
    repairs={
        "cut-text": (
            "list of mapped objects that ends within a line",
            "lists of mapped objects that end within a line",
        ),
        "duplicated-leaves": ("duplicated leaf removed", "duplicated leaves removed"),
        "forked-profiles": ("profile by a forked process in the file", "profiles by forked processes in the file"),
        "missing-trailer": ("file without trailer", "files without trailer"),
        "signal-frames": ("signal frame removed", "signal frames removed"),
        "unreadable-mapped-objects": ("line that names no mapped object", "lines that name no mapped object"),
    },
    not_representable={
        "changed-paths": (
            "path of a mapped object that a reader would take for another, changed",
            "paths of mapped objects that a reader would take for others, changed",
        ),
        "frames-without-address": ("frame without address", "frames without address"),
        "function-names": (
            "function name (gperftools profiles hold only addresses)",
            "function names (gperftools profiles hold only addresses)",
        ),
        "mappings-without-addresses": ("mapping without addresses", "mappings without addresses"),
        "negative-samples": ("sample of negative value", "samples of negative value"),
        "rounded-times": ("time rounded to whole ticks", "times rounded to whole ticks"),
        "sample-labels": ("label, thread or time of a sample", "labels, threads and times of samples"),
        "samples-without-addresses": ("sample without addresses", "samples without addresses"),
    },
    losses={
        "lost-text": (
            "list of mapped objects that ends within a line",
            "lists of mapped objects that end within a line",
        ),
    },
    warnings={
        "missing-frames": "{share} of the cost is under stacks of which frames without address are left out",
        "missing-cost": "{share} of the cost is left out, in samples that have no address or are negative",
        "cut-stacks": (
            "{file}: the stacks of {cut:,} of {samples} were cut by the profiler at 254 frames: their callers are"
            " missing"
        ),
        "forked-processes": (
            "{file}: forked processes have written into the profile: samples from before they were forked may be "
            "counted more than once"
        ),
        "maybe-cut-off": "{file}: the text ends within a line, so the input may have been cut off",
        "no-period": "{file}: symbolized profiles do not keep the period; use {--period}",
        "zero-period": "{file}: the period is 0, so is all CPU time; use {--period}",
    },
)
