"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_estimate",
    shared=("part-addresses",),
    warnings={
        "cut-cost": "{where}{share} of the cost is under [pruned], without all of its callers{unnamed}",
        "many-callers": (
            "{where}too many call paths for {--prune:=}{prune:g}: pruned below {share:.2g} of the total instead"
        ),
        "pruned-cost": (
            "{where}{share} of the cost is under [pruned], without all of its callers{unnamed}; a smaller "
            "{--prune} shows more"
        ),
        "uncalled-functions": (
            "{where}{share} of the cost is below {functions} without callers; functions of the same name in "
            "another file or object are called but have no costs"
        ),
        "unplaced-cost": "{where}{share} of the cost is summed up by function: not all {places} fit",
    },
)
