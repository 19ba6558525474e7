"""Counts and warnings of this room: those that csrc/mojo/read.h declares."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported("fp_mojo")
