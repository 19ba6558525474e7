"""Counts and warnings of this format: those that csrc/memray/read.h declares."""

from fastprof.core.reported import reported

REPORTED = reported("fp_memray")
