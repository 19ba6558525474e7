"""speedscope's JSON.  See docs/formats/speedscope.md."""

from __future__ import annotations

from fastprof.core.engine import Format, Holds

FORMATS = (
    Format(
        name="speedscope",
        view="stacks",
        also="timeline",
        title="speedscope's JSON",
        suffixes=(".speedscope.json",),
        writer="write:SpeedscopeWriter",
        holds=Holds(labels=False, threads=True, times=False, places=False, files=True, nested=True, short_names=True),
    ),
)
