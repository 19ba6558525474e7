"""What this room counts and warns of."""

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
)
