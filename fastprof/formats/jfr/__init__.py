"""Flight recordings of Java virtual machines (JFR), by the JDK, async-profiler and others.  See docs/formats/jfr.md."""

from fastprof.core.engine import NO, SURE, Format
from fastprof.core.options import MAX_MEMORY, Option

KINDS = Option.switch(
    "kinds",
    format="jfr",
    help="append the kind of code to function names, as async-profiler does: _[j]",
    details="_[j] is compiled code, _[i] inlined, _[1] compiled by C1, _[0] interpreted, _[k] kernel code.  With "
    "class_frames, _[i] marks a class, _[k] a class of objects allocated outside a TLAB.",
)
SIGNATURES = Option.switch(
    "signatures",
    format="jfr",
    help="append parameter types to names of methods: indexOf(II)I",
)
JOIN_CLASSES = Option.switch(
    "join_classes",
    format="jfr",
    help="drop numbers of hidden and generated classes, which differ between runs",
    details="Work$$Lambda$88+0x00007f6c/72825 and Work$$Lambda$88/72825 become Work$$Lambda, "
    "LambdaForm$MH.0x0000000084045210 LambdaForm$MH, $Proxy8 $Proxy.",
)
CLASS_FRAMES = Option.switch(
    "class_frames",
    format="jfr",
    help="add the class of an allocated object or a monitor as the innermost frame",
)
TRUNCATED_ROOTS = Option.switch(
    "truncated_roots",
    format="jfr",
    help="add a root frame [truncated] to stacks that the JVM truncated",
)
EVENTS = Option.switch(
    "events",
    format="jfr",
    help="read events with durations as a timeline instead of samples",
    details="Timeline formats get them anyway, speedscope together with the samples, the Firefox Profiler and verbs if "
    "there are no samples.",
)


def sniff(head: bytes) -> int:
    return SURE if head.startswith(b"FLR\0") and len(head) >= 8 else NO


FORMATS = (
    Format(
        name="jfr",
        view="stacks",
        reads_also="timeline",
        title="flight recordings of Java virtual machines: JDK 9 and later, async-profiler, Datadog",
        suffixes=(".jfr",),
        sniff=sniff,
        reader="read:JfrReader",
        reads=(KINDS, SIGNATURES, JOIN_CLASSES, CLASS_FRAMES, TRUNCATED_ROOTS, EVENTS, MAX_MEMORY),
    ),
)
