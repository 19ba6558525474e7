"""Rich profiles in every format: the losses of conversions, and the codes that report them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from fastprof import formats
from fastprof.core.errors import UsageError
from tests.support import attributes, rich
from tests.support.attributes import Attributes
from tests.support.conversions import OF_PROGRAMS, convert_bytes
from tests.support.product import open_input
from tests.support.write_only import READERS

_VIEW = {"joined-stacks", "call-times", "frames"}  # stacks or calls become a sum, or another table
_NAMES = {"function-names", "renamed"}  # of functions
_PLACES = {"places", "call-places", "function-places", "function-names", "frames"}
_ROWS = {"value-types"}
_ARCS = {"unshown-arcs"}
_EVENTS = {"events", "counter-values"}  # also threads that have nothing else
_LABELS = {"sample-labels", "labels-and-threads"}
_HEADER = {f"header: {name}": {"header-fields"} for name in (*attributes.HEADER, *attributes.HEADER_EXTRA)}
# If part of an attribute is missing, one of these codes must be in the report.
TOLD_BY: dict[str, set[str]] = {
    "totals": _ROWS | {"value-names", "samples-without-addresses"},
    "value types": {"value-types", "value-names"},
    "units": {"units", "value-types", "value-names"},
    "long names": {"long-names"},
    "inherited events": {"inherited-events"},
    "default type": {"default-type", "value-types"},
    "self costs": _ROWS | _NAMES | {"value-names"},
    "stacks": _VIEW | _NAMES | _ROWS,
    "calls": {"calls-and-jumps", "frames"} | _ARCS | _NAMES | _ROWS,
    "call counts": {"calls-and-jumps", "frames", "call-counts", "value-types"} | _ARCS | _NAMES,
    "jumps": {"jumps", "calls-and-jumps"},
    "inlined functions": {"inlined-calls"} | _PLACES,
    "lines": {"calls-and-jumps", "cost-lines"} | _ARCS | _PLACES,
    "files": {"calls-and-jumps", "cost-lines"} | _ARCS | _PLACES,  # functions without self cost go with their calls
    "first lines": {"first-lines"} | _PLACES,
    "columns": {"columns"} | _PLACES,
    "objects": {"objects", "call-objects"} | _ARCS | _PLACES,
    "build ids": {"build-ids"},
    "mappings": {"mappings", "places"},
    "system names": {"system-names", "function-names"},
    # some viewers count from the start of the object
    "addresses": {"addresses", "part-addresses", "mappings"} | _PLACES,
    "labels": _LABELS,
    "times": {"sample-times", "call-times", "start-time", "shifted-times"} | _EVENTS,
    "CPUs": {"cpus"},
    "threads": {"threads", "thread-numbers", "header-fields"} | _LABELS | _EVENTS,
    "thread names": {"thread-names", "idle-threads", "thread-numbers", "threads"} | _LABELS | _EVENTS,
    "process names": {"thread-names", "idle-threads", "thread-numbers"} | _LABELS,  # comm is both
    "events": _EVENTS,
    "arguments": {"call-arguments"} | _NAMES,
    **_HEADER,
    **{f"header: {name}": {"header-fields", "thread-numbers"} for name in ("pid", "thread")},
    "header: comments": {"header-fields", "comments"},
    "header: period": {"header-fields", "period"},
    "header: period_type": {"header-fields", "period"},
    "parts": {"parts"},
}


class Leg(NamedTuple):
    """A profile written in a format."""

    data: bytes
    lost: dict[str, Counter[Any]]  # by attribute; only attributes with a loss
    codes: set[str]  # of the report
    dropped: set[str]  # those of what the output does not have


def made(data: bytes, from_: str, to: str, said: Attributes) -> Leg:
    """`said`: what the source has."""
    done = convert_bytes(data, from_, to)
    written = READERS[to](done.data) if to in READERS else attributes.of_file(done.data, to)
    lost = {name: missing for name in attributes.NAMES if (missing := attributes.lost(name, said, written))}
    counts = (done.log.not_representable, done.log.repairs, done.log.left_out)
    dropped, *others = ({entry.code for entry, _, _ in its.counted()} for its in counts)
    warned = {warning["code"] for warning in done.log.warned()}
    return Leg(done.data, lost, dropped.union(warned, *others), dropped)


@cache
def said(name: str, view: str = "") -> Attributes:
    """`view`: the other view that it may be read as."""
    source = rich.sources()[name]
    return attributes.of_file(source.data, source.format, view=view)


@cache
def other_view(name: str, to: str) -> str:
    """The view in which a rich profile is read for timeline-only formats, if it is not its own."""
    if formats.get(to).view_for(["stacks"]) != "timeline":
        return ""
    source = rich.sources()[name]
    return open_input(source.data, None, None, source.format).reader.other_view


@cache
def view_of(name: str) -> str:
    """The view of a rich profile."""
    source = rich.sources()[name]
    return open_input(source.data, None, None, source.format).reader.view


@cache
def leg(name: str, to: str) -> Leg:
    """A rich profile, by its name, in a format."""
    source = rich.sources()[name]
    return made(source.data, source.format, to, said(name, other_view(name, to)))


@cache
def back(name: str, to: str) -> Leg | None:
    """The output of `leg` back in the format of the profile; None if that is not written, or not from this view."""
    from_, done = rich.sources()[name].format, leg(name, to)
    if not formats.get(from_).writer or to in READERS:
        return None
    try:
        return made(done.data, to, from_, attributes.of_file(done.data, to))
    except UsageError:
        return None


@cache
def pairs() -> list[tuple[str, str]]:
    """The rich profiles, by name, and the formats that they can be written in."""
    found = []
    for name in rich.sources():
        for f in formats.formats():
            if f.writer and f.name not in OF_PROGRAMS:
                try:
                    leg(name, f.name)
                except UsageError:
                    continue
                found.append((name, f.name))
    return found
