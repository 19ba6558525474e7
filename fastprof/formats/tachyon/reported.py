"""Counts and warnings of this folder: those that csrc/tachyon/read.h declares."""

from fastprof.core.reported import reported

REPORTED = reported("fp_tachyon")
