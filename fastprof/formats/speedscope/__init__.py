"""speedscope's JSON.  See docs/formats/speedscope.md."""

from fastprof.core.engine import MAYBE, NO, SURE, Budget, Capabilities, Format
from fastprof.core.options import BUDGET, SPLIT, Option

EVENTED = Option.switch(
    "evented",
    format="speedscope",
    help="read evented profiles as a timeline, if the file also has sampled ones",
    details="Timeline formats get them anyway.",
)


def sniff(head: bytes) -> int:
    """Its schema; else an object with profiles of its types, or with frames alone in the bytes there are."""
    from re import match, search

    text = head.lstrip()
    if text[:1] != b"{":
        return NO
    if search(rb'"\$schema"\s*:\s*"https?://www\.speedscope\.app/file-format-schema\.json"', text):
        return SURE
    profiles = search(rb'"profiles"\s*:\s*\[', text) and search(rb'"type"\s*:\s*"(evented|sampled)"', text)
    frames = match(rb'\{\s*("version"\s*:\s*"[^"]*"\s*,\s*)?"shared"\s*:\s*\{\s*"frames"\s*:\s*\[', text)
    return MAYBE if profiles or frames else NO


FORMATS = (
    Format(
        name="speedscope",
        view="stacks",
        second_view="timeline",
        holds_both=True,
        title="speedscope's JSON",
        suffixes=(".speedscope.json",),
        sniff=sniff,
        reader="read:SpeedscopeReader",
        writer="write:SpeedscopeWriter",
        holds=Capabilities(
            repeats_frames=True,
            keeps_stacks=False,
            labels=False,
            threads=True,
            times=False,
            places=False,
            files=True,
            nested=True,
            short_names=True,
            lacks=frozenset(
                {
                    "call-objects",
                    "system-names",
                    "build-ids",
                    "mappings",
                    "cpus",
                    "idle-threads",
                    "thread-numbers",
                    "long-names",
                    "inherited-events",
                }
            ),
            header=frozenset(),
        ),
        budget=Budget(100 << 20, call=82, sample=8, frame=5),
        reads=(EVENTED,),
        row_bytes=29,  # {"type":"C","frame":0,"at":0}
        writes=(BUDGET, SPLIT),
    ),
)
