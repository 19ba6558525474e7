"""Texts of rows left out to fit an output."""

from fastprof.core.reported import reported

_CHEAP = "less than {share} of the total ({shares} together)"
_KEEP = "to keep within {budget:,} bytes ({--budget})"
_SHORT = "shorter than {most}{below:,} {unit} (with {share} of the time)"

REPORTED = reported(
    not_representable={
        "dropped-times": (
            f"time of a sample, dropped {_KEEP}",
            f"times of samples, dropped {_KEEP}",
        ),
        "pruned-stacks": (
            f"stack that costs {_CHEAP}, merged into [pruned] under its caller {_KEEP}",
            f"stacks that cost {_CHEAP}, merged into [pruned] under their callers {_KEEP}",
        ),
        "short-calls": (
            f"call {_SHORT}, merged into its caller {_KEEP}",
            f"calls {_SHORT}, merged into their callers {_KEEP}",
        ),
    },
)
