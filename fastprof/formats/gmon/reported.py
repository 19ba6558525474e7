"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines", "unreadable-rest"),
    not_representable={
        "basic-blocks": ("count of a basic block", "counts of basic blocks"),
        "calls-without-callers": "function(s) whose number(s) of calls (has|have) no callers",
        "profiler-time": "nanosecond(s) in the profiler itself",
    },
    warnings={
        "no-program": "{file}: functions are addresses without the program: pass it with {--symbols}",
        "open-flat-profile": "{file}: the text ends with a row of the flat profile, without gprof's explanation or a "
        "call graph: written with -b -p, or cut",
    },
)
