"""pprof's profile.proto.  See docs/formats/pprof.md.

What a profile says beside its samples is kept in `Part`: sample types are
`value_types`, comments are `comments`, and `extra` has, where stated,

    period (int), period_type ((type, unit)), time_ns (int, since 1970),
    duration_ns (int), drop_frames, keep_frames, doc_url (bytes),
    default_sample_type (str)
"""

from __future__ import annotations

from fastprof.core.engine import Format


def sniff(head: bytes) -> bool:
    from fastprof.core._c import lib

    return bool(lib.fp_pprof_sniff(head, len(head)))


FORMATS = (
    Format(
        name="pprof",
        view="stacks",
        title="pprof profile.proto, gzip-compressed or plain",
        suffixes=(".pb.gz", ".pb", ".pprof"),
        sniff=sniff,
        reader="read:PprofReader",
        writer="write:PprofWriter",
        writes=("labels", "time_ns", "comments", "name_addresses"),
    ),
)
