"""Counts and warnings of this folder: those that csrc/heaptrack/read.h declares."""

from fastprof.core.reported import reported

REPORTED = reported("fp_heaptrack")
