"""Recordings of Austin, a sampler for Python, in its binary format MOJO.  See docs/formats/mojo.md."""

from fastprof.core.engine import NO, SURE, Format


def sniff(head: bytes) -> int:
    return SURE if head.startswith(b"MOJ") and head[3:4] and head[3] < 64 and head[4:5] <= b"\2" else NO


FORMATS = (
    Format(
        name="mojo",
        view="stacks",
        title="recording of Austin in its binary format (MOJO 1 to 3)",
        suffixes=(".mojo",),
        sniff=sniff,
        reader="read:MojoReader",
    ),
)
