"""Chrome's Trace Event JSON, for Perfetto's UI, chrome://tracing and speedscope.  See docs/formats/trace-event.md."""

from __future__ import annotations

from fastprof.core.engine import MAYBE, NO, Budget, Format, Holds
from fastprof.core.options import BUDGET, SPLIT, Option, Switch

ARGS = Option(
    "args",
    Switch(),
    False,
    group="trace-event",
    help="write arguments of calls; speedscope then takes calls with other arguments for other functions",
)


def sniff(head: bytes) -> int:
    """An object with an array of events, or that array alone: objects of which one has a phase."""
    from re import match, search

    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{":
        return MAYBE if search(rb'"traceEvents"\s*:\s*\[', text) else NO
    in_array = match(rb'\[\s*(\{\s*\}\s*,\s*)*\{\s*"', text) and search(rb'"ph"\s*:\s*"[A-Za-z(),]"', text)
    return MAYBE if in_array else NO


FORMATS = (
    Format(
        name="trace-event",
        view="timeline",
        title="Chrome Trace Event JSON",
        suffixes=(".trace.json",),
        sniff=sniff,
        reader="read:TraceEventReader",
        writer="write:TraceEventWriter",
        holds=Holds(nested=True, short_names=True, instead="write it as speedscope, pprof or folded"),
        budget=Budget(256 << 20, call=140, names=2, event=85),
        row_bytes=18,  # {"ph":"E","ts":1},
        writes=(ARGS, BUDGET, SPLIT),
    ),
)
