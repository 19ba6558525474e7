"""Profiles of XLA (XSpace), which JAX, TensorFlow and PyTorch/XLA write.  See docs/formats/xplane.md."""

import re

from fastprof.core.engine import NO, SURE, Format
from fastprof.core.options import MAX_MEMORY

# The first plane: its length, perhaps an id, and a name.
_PLANE = re.compile(
    rb"\n[\x80-\xff]{0,8}[\0-\x7f](?:\x08[\x80-\xff]{0,9}[\0-\x7f])?\x12[\x01-\x7f](/host:|/device:|Task Environment)"
)


def sniff(head: bytes) -> int:
    found = _PLANE.match(head) if head[:1] == b"\n" else None
    return SURE if found else NO


FORMATS = (
    Format(
        name="xplane",
        view="timeline",
        title="profile of XLA (XSpace): JAX, TensorFlow, PyTorch/XLA",
        suffixes=(".xplane.pb",),
        sniff=sniff,
        reader="read:XplaneReader",
        reads=(MAX_MEMORY,),
    ),
)
