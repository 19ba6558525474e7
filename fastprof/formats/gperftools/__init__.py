"""gperftools CPU profiles.  See docs/formats/gperftools.md."""

from fastprof.core.engine import MAYBE, NO, SURE, Capabilities, Format
from fastprof.core.model import ValueType
from fastprof.core.options import INT64, MAX_MEMORY, Option, Whole

PERIOD: Option[int | None] = Option(
    "period_us",
    Whole(1, INT64 // 1000, "MICROSECONDS"),  # sums are in nanoseconds
    None,
    flag="--period",
    format="gperftools",
    help="override the sampling interval, in microseconds",
)
KEEP_SIGNAL_FRAMES = Option.switch(
    "keep_signal_frames",
    format="gperftools",
    flag="--keep-signal-frames",
    help="keep frames of the signal handler",
    details="By default, these frames of the profiler are removed.",
    kept_unused=(True,),
)
NANOSECONDS = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}

SYMBOLIZED = b"--- symbol"


def sniff(head: bytes) -> int:
    from fastprof.core._c import lib

    if head.startswith(SYMBOLIZED):  # which may precede a profile of another kind
        kinds = (b"\n--- heap", b"\n--- growth", b"\n--- contention")
        return SURE if b"\n--- profile" in head else NO if any(kind in head for kind in kinds) else MAYBE
    return MAYBE if lib.fp_gperftools_sniff(head, len(head)) else NO


def rank(value_type: ValueType) -> int | None:
    """The format counts samples, which readers multiply by its period.  So it takes counts of samples, preferably of
    that name, or times, which are divided by the period; objects, bytes or events would become wrong times."""
    name = value_type.name.lower()
    if value_type.unit in ("count", "samples", ""):
        if name in ("samples", "sample", "hits"):
            return 0
        return 2 if value_type.long_name.startswith("samples of ") else None  # OProfile's, by event
    return 1 if value_type.unit in NANOSECONDS else None


FORMATS = (
    Format(
        name="gperftools",
        view="stacks",
        title="gperftools CPU profile: 32/64 bit, both byte orders, symbolized form",
        suffixes=(".prof",),
        sniff=sniff,
        reader="read:GperftoolsReader",
        writer="write:GperftoolsWriter",
        holds=Capabilities(
            values=False,
            labels=False,
            times=False,
            names=False,
            rank=rank,
            wanted="a count of samples or a time",
            same=("samples", "cpu"),
            keeps_stacks=False,
            repeats_frames=True,
            model_order=True,
            lacks=frozenset({"thread-names", "value-names", "long-names", "inherited-events", "parts"}),
            header=frozenset({"period", "drop_frames"}),
        ),
        reads=(PERIOD, KEEP_SIGNAL_FRAMES, MAX_MEMORY),
        writes=(PERIOD,),
    ),
)
