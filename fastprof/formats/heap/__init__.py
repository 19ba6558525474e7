"""Text profiles of allocators, Go and Java: heaps, contention, threads, counts.  See docs/formats/heap.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import NO, SURE, Format
from fastprof.core.options import MAX_MEMORY
from fastprof.symbols import SYMBOLS

# Every file contains one of these words; without one, the patterns are not compiled.
_WORDS = (b"heap profile:", b"heap_v2/", b"--- ", b" profile: total ")
# The first line that is neither blank nor a comment.
_FIRST = (
    rb"(?:[ \t]*(?:#.*)?\r?\n)*"
    rb"(?:heap profile: *\d+: *\d+ *\[ *\d+: *\d+ *\] *@|heap_v2/\d+[ \t]*\r?\n"
    rb"|--- (?:contentionz|heapz|threadz) \d+ ---|--- (?:contention|mutex):|--- Thread [0-9a-f]+ \(name: "
    rb"|\S{1,200} profile: total \d+[ \t]*\r?(?:\n|$))"
)
_SYMBOLIZED = rb"--- symbol\r?\n(?s:.*?)\n--- (?:heap|growth|contention)\r?\n"


def sniff(head: bytes) -> int:
    if b"\0" in head[:16] or not any(word in head for word in _WORDS):  # a binary file, or another text
        return NO
    return SURE if re.match(_FIRST, head) or re.match(_SYMBOLIZED, head) else NO


FORMATS = (
    Format(
        name="heap",
        view="stacks",
        title="text of tcmalloc, gperftools, jemalloc, Go and Java: heaps, contention, threads, counts",
        suffixes=(".heap",),
        sniff=sniff,
        reader="read:HeapReader",
        reads=(SYMBOLS, MAX_MEMORY),  # with names of all frames, more of Go's can be dropped
    ),
)
