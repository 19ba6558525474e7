"""Counts and warnings of this folder: those that csrc/mojo/read.h declares."""

from fastprof.core.reported import reported

REPORTED = reported("fp_mojo")
