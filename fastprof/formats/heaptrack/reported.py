"""Counts and warnings of this folder: those that csrc/heaptrack/read.h declares."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported("fp_heaptrack")
