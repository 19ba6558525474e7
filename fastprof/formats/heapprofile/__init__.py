"""V8's sampling heap profiles (.heapprofile).  See docs/formats/heapprofile.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import NO, SURE, Format

_HEAD = rb'\s*\{(?s:.{0,2000}?)"head"\s*:\s*\{(?:\s*"callFrame"|(?s:.{0,2000}?)"selfSize")'


def sniff(head: bytes) -> int:
    return SURE if b'"head"' in head and re.match(_HEAD, head) else NO


FORMATS = (
    Format(
        name="heapprofile",
        view="stacks",
        title="sampling heap profile of V8 (Node, Chrome DevTools)",
        suffixes=(".heapprofile",),
        sniff=sniff,
        reader="read:HeapprofileReader",
    ),
)
