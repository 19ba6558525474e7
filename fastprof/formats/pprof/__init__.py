"""pprof's profile.proto.  See docs/formats/pprof.md.

`Part` keeps a profile's other fields: sample types are `value_types`, comments
are `comments`, and `extra` has, if the profile has them,

    period (int), period_type ((type, unit)), time_ns (int, since 1970),
    duration_ns (int), drop_frames, keep_frames, doc_url (bytes),
    default_sample_type (str)
"""

from fastprof.core.engine import MAYBE, NO, PPROF_FIELDS, Capabilities, Format
from fastprof.core.options import INT64, Option, Text, Whole

TIME: Option[int | None] = Option(
    "time_ns",
    Whole(0, INT64, "NANOSECONDS"),
    None,
    format="pprof",
    help="set the time of the profile, in ns since 1970",
)
COMMENTS: Option[tuple[str, ...]] = Option(
    "comments",
    Text(),
    (),
    several=True,
    flag="--comment",
    format="pprof",
    help="add a comment to the profile; repeatable",
)
NAME_ADDRESSES = Option.switch(
    "name_addresses",
    format="pprof",
    flag="--name-addresses",
    help="name unknown functions [object+0xADDR]",
    details="Applies to addresses without a symbol, which a call graph names this way.",
)


def sniff(head: bytes) -> int:
    from fastprof.core._c import lib

    return MAYBE if lib.fp_pprof_sniff(head, len(head)) else NO


FORMATS = (
    Format(
        name="pprof",
        view="stacks",
        title="pprof profile.proto, gzip-compressed or plain",
        suffixes=(".pb.gz", ".pb", ".pprof", ".pgo"),
        sniff=sniff,
        reader="read:PprofReader",
        writer="write:PprofWriter",
        holds=Capabilities(
            times=False,
            model_order=True,
            keeps_stacks=False,
            repeats_frames=True,
            trims=True,
            short_names=True,
            lacks=frozenset({"thread-names", "long-names", "inherited-events", "parts"}),
            header=PPROF_FIELDS,
        ),
        writes=(TIME, COMMENTS, NAME_ADDRESSES),
    ),
)
