"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_otlp_stats",
    "fp_otlp_write_stats",
    shared=("skipped-bytes", "value-types"),
    losses={
        "damaged-fields": "damaged or incomplete field(s)",
    },
    warnings={
        "dropped-attributes": "{file}: attributes dropped by the profiler: {n:,}",
        "guessed-layout": "{file}: samples fit releases before and since 1.10; read as 1.10",
    },
)
