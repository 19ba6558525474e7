"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported("fp_xplane", warnings={"profiler-messages": "{file}: the profiler reported: {message:.200}"})
