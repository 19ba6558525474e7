"""Text profiles of allocators, Go and Java: heaps, contention, threads, counts.  See docs/formats/heap.md."""

from __future__ import annotations

from re import compile as pattern

from fastprof.core.engine import NO, SURE, Format

# The first line that is neither blank nor a comment.
_FIRST = pattern(
    rb"(?:[ \t]*(?:#.*)?\r?\n)*"
    rb"(?:heap profile: *\d+: *\d+ *\[ *\d+: *\d+ *\] *@|heap_v2/\d+[ \t]*\r?\n"
    rb"|--- (?:contentionz|heapz|growthz|threadz) \d+ ---|--- (?:contention|mutex):|--- Thread [0-9a-f]+ \(name: "
    rb"|\S{1,200} profile: total \d+[ \t]*\r?(?:\n|$))"
)
_SYMBOLIZED = pattern(rb"--- symbol\r?\n(?s:.*?)\n--- (?:heap|growth|contention)\r?\n")


def sniff(head: bytes) -> int:
    return SURE if _FIRST.match(head) or _SYMBOLIZED.match(head) else NO


FORMATS = (
    Format(
        name="heap",
        view="stacks",
        title="text of tcmalloc, gperftools, jemalloc, Go and Java: heaps, contention, threads, counts",
        suffixes=(".heap",),
        sniff=sniff,
        reader="read:HeapReader",
    ),
)
