"""Counts and warnings of this folder: those that csrc/uftrace/read.h declares, and these."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_uftrace",
    losses={"damaged-archives": ("damaged archive, read up to the damage", "damaged archives, read up to the damage")},
    not_representable={"kernel-traces": ("file of the kernel's functions", "files of the kernel's functions")},
    warnings={"lost-records": "{file}: uftrace lost {lost:,} records: calls are incomplete"},
)
