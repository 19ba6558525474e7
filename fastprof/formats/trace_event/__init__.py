"""Chrome's Trace Event JSON, for Perfetto's UI, chrome://tracing and speedscope; and V8's samples.  See
docs/formats/trace-event.md."""

from fastprof.core.engine import MAYBE, NO, Budget, Capabilities, Format
from fastprof.core.options import BUDGET, SPLIT, Option

ARGS = Option.switch(
    "args",
    format="trace-event",
    flag="--args",
    help="write call arguments",
    details="speedscope then treats calls with different arguments as different functions.",
)

SAMPLES = Option.switch(
    "samples",
    format="trace-event",
    flag="--samples",
    help="read the samples of a trace instead of its calls",
    details="They become stacks.",
)


# Beginnings of objects in which other keys (devices of a machine, source maps) precede the events.
_FIRST = (
    rb"schemaVersion|deviceProperties|distributedInfo|cuda_runtime_version|displayTimeUnit|otherData|metadata|traceEvents"
    rb"|stackFrames|systemTraceEvents|controllerTraceDataKey|beginningOfTime|baseTimeNanoseconds"
)


def begins_with_event(head: bytes) -> bool:
    """Whether the text is a sequence of events, without an array around them."""
    from re import match, search

    key = rb'\{\s*"(ph|name|cat|ts|pid|tid|dur|id|args)"\s*:'
    phase = rb'"ph"\s*:\s*"[A-Za-z(),]"'
    return bool(match(rb"\s*" + key, head) and search(phase, head) and b'"traceEvents"' not in head)


def sniff(head: bytes) -> int:
    """An object with an array of events or with the fields before it, or events, alone or in an array: objects, one of
    them with a phase."""
    from re import match, search, sub

    text = head.lstrip()
    if text[:1] not in (b"{", b"["):
        return NO
    text = sub(rb"\\u00([2-7][0-9A-Fa-f])", lambda escaped: bytes([int(escaped[1], 16)]), text)
    if text[:1] == b"{":
        known = search(rb'"traceEvents"\s*:\s*\[', text) or match(rb'\{\s*"(' + _FIRST + rb')"\s*:', text)
        return MAYBE if known or begins_with_event(text) else NO
    in_array = match(rb'\[[\s\[]*(\{\s*\}\s*,\s*)*\{\s*"', text) and search(rb'"ph"\s*:\s*"[A-Za-z(),]"', text)
    return MAYBE if in_array else NO


def sniff_cpuprofile(head: bytes) -> int:
    """An object with V8's nodes (a `head` before 2016), or one that begins with another field of a profile."""
    from re import match, search

    text = head.lstrip()
    if text[:1] != b"{":
        return NO
    numbers = rb'(samples|timeDeltas)"\s*:\s*\[\s*-?\d'
    times = rb'(start|end)Time"\s*:\s*\d+\s*,\s*"(nodes|samples|timeDeltas|startTime|endTime)"'
    if match(rb'\{\s*"(' + numbers + b"|" + times + b")", text):
        return MAYBE
    if search(rb'"head"\s*:\s*\{', text) and search(rb'"(hitCount|callUID)"\s*:\s*\d', text):
        return MAYBE if b'"selfSize"' not in text else NO
    nodes = search(rb'"nodes"\s*:\s*\[\s*\{', text)
    return MAYBE if nodes and search(rb'"callFrame"\s*:\s*\{', text) and b'"traceEvents"' not in text else NO


FORMATS = (
    Format(
        name="trace-event",
        view="timeline",
        reads_also="stacks",
        title="Chrome Trace Event JSON; its samples are stacks",
        suffixes=(".trace.json",),
        sniff=sniff,
        reader="read:reader",
        writer="write:TraceEventWriter",
        holds=Capabilities(
            nested=True,
            short_names=True,
            alternative="write speedscope, pprof or folded",
            lacks=frozenset({"call-places", "system-names", "build-ids", "mappings", "cpus", "idle-threads"}),
            header=frozenset(),
        ),
        budget=Budget(256 << 20, call=140, names=2, event=85),
        row_bytes=18,  # {"ph":"E","ts":1},
        reads=(SAMPLES,),
        writes=(ARGS, BUDGET, SPLIT),
    ),
    Format(
        name="cpuprofile",
        docs="docs/formats/trace-event.md",
        view="stacks",
        title="CPU profile of V8 (Chrome DevTools, Node)",
        suffixes=(".cpuprofile",),
        sniff=sniff_cpuprofile,
        reader="read:CpuProfileReader",
    ),
)
