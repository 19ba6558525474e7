"""Chrome's Trace Event JSON, for Perfetto's UI, chrome://tracing and speedscope.  See docs/formats/trace-event.md."""

from __future__ import annotations

from fastprof.core.engine import Format, Holds
from fastprof.core.options import Option, Switch

ARGS = Option(
    "args",
    Switch(),
    False,
    group="trace-event",
    help="write arguments of calls; speedscope then takes calls with other arguments for other functions",
)

FORMATS = (
    Format(
        name="trace-event",
        view="timeline",
        title="Chrome Trace Event JSON",
        suffixes=(".trace.json",),
        writer="write:TraceEventWriter",
        holds=Holds(nested=True, short_names=True, instead="write it as speedscope, pprof or folded"),
        writes=(ARGS,),
    ),
)
