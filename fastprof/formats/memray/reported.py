"""Counts and warnings of this room: those that csrc/memray/read.h declares."""

from fastprof.core.reported import reported

REPORTED = reported("fp_memray")
