"""Counts and warnings of this folder: those that csrc/uftrace/read.h declares, and these."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_uftrace",
    losses={"damaged-archives": "damaged archive(s), read up to the damage"},
    not_representable={"kernel-traces": "file(s) of the kernel's functions"},
    warnings={"lost-records": "{file}: uftrace lost {lost:,} records: calls are incomplete"},
)
