"""Text profiles of heaps: the rows of the slow reader, in any window."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from tests.reference import heap as reference
from tests.support.stackdump import Dump, dump

CHUNK = st.sampled_from([None, 1, 2, 7, 100])
CAPACITY = st.sampled_from([None, 1, 3])
ADDRESS = st.one_of(st.integers(1, 6).map(lambda n: 0x401000 + n), st.integers(1, (1 << 64) - 1))
STACK = st.lists(ADDRESS, max_size=5).map(lambda found: "".join(f" {a:#x}" for a in found))
OBJECTS = st.tuples(st.integers(1, 1 << 20), st.integers(0, 1 << 40))
PAIR = st.one_of(st.just((0, 0)), OBJECTS)
NEGATIVE = PAIR.map(lambda pair: (-pair[0], -pair[1]))
BLANKS = st.sampled_from(["", " ", "     "])
KIND = st.sampled_from(["heapprofile", "growth", "heap/2", "heap/1048576", "heap_v2/524288", "heapz_v2/1", "heap_v2/0"])
RATE = st.sampled_from([1, 2, 16384, 524288])
NAME = st.sampled_from(["", "worker", "a b: 1"])


@st.composite
def heaps(draw: st.DrawFn) -> str:
    def pair(found: tuple[int, int]) -> str:
        return f"{draw(BLANKS)}{found[0]}:{draw(BLANKS)}{found[1]}"

    header = f"heap profile: {pair(draw(PAIR))} [{pair(draw(PAIR))}] @ {draw(KIND)}\n"
    rows = draw(st.lists(st.tuples(st.one_of(PAIR, NEGATIVE), PAIR, STACK), max_size=6))
    lines = [
        f"{pair(used)} [{pair(made)}] @{stack}\n{draw(st.sampled_from(['', '# x', '']))}" for used, made, stack in rows
    ]
    return header + "".join(line if line.endswith("\n") else line + "\n" for line in lines)


@st.composite
def jemallocs(draw: st.DrawFn) -> str:
    text = f"heap_v2/{draw(RATE)}\n  t*: 1: 2 [0: 0]\n"
    for stack in draw(st.lists(STACK, max_size=5)):
        used, made = draw(PAIR), draw(PAIR)
        text += f"@{stack}\n  t*: {used[0]}: {used[1]} [{made[0]}: {made[1]}]\n"
        for thread in draw(st.lists(st.integers(0, 9), max_size=3, unique=True)):
            used, made = draw(PAIR), draw(PAIR)
            text += f"  t{thread}: {used[0]}: {used[1]} [{made[0]}: {made[1]}] {draw(NAME)}\n"
    return text


@st.composite
def contentions(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["--- contentionz 1 ---\n", "--- mutex:\n"]))
    if draw(st.booleans()):
        text += f"cycles/second={draw(st.integers(10**6, 1 << 40))}\n"
    if draw(st.booleans()):
        text += f"sampling period = {draw(st.integers(0, 1000))}\n"
    rows = draw(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 20), STACK), max_size=6))
    return text + "".join(f"  {delay} {count} @{stack}\n" for delay, count, stack in rows)


COUNTED = st.lists(st.tuples(st.integers(0, 1 << 40), STACK), max_size=6).map(
    lambda rows: "goroutine profile: total 7\n" + "".join(f"{n} @{stack}\n" for n, stack in rows)
)


def summed(found: Dump) -> Counter[object]:
    total: Counter[object] = Counter()
    for stack, labels, values in found.rows:
        words = tuple(sorted((key.decode(), string.decode() or number) for key, string, number, *_ in labels))
        for k, value in enumerate(values):
            total[tuple(frame[1] for frame in stack), words, k] += value
    return total


@given(st.one_of(heaps(), jemallocs(), contentions(), COUNTED), CHUNK, CAPACITY)
def test_it_reads_as_the_slow_reader(text: str, chunk: int | None, capacity: int | None) -> None:
    found = dump(text.encode(), "heap", chunk=chunk, capacity=capacity, options=Options())
    slow = reference.read(text)
    assert [t.name for t in found.part.value_types] == slow.types
    assert summed(found) == slow.samples


WORD = st.sampled_from(
    """heap profile: 1: 2 [3: 4] @ heap_v2/64|heap_v2/9|--- mutex:|x profile: total 1|--- threadz 1 ---|@ 0x1
1: 2 [3: 4] @ 0x1 0x2|  t*: 1: 2 [0: 0]|t1: 1: 2 [0: 0] x|4 5 @ 0x1|7 @ 0x9 0x0|a = 1|sampling period = 3
format = java|# labels: {}|#\t0x1\tf+0x1\ta.go:1|MAPPED_LIBRARIES:| \r|--- Thread 7f (name: a/1) stack: ---||0x1 f (a:1)
  PC: 0x1 0x2|  [same as previous thread]|  0x2: f|400000-500000 r-xp 0 0:0 0 /bin/a|--- Memory map: ---|---
--- symbol|-1: -2 [0: 0] @|999999999999999999999""".replace("\n", "|").split("|")
)


@given(st.lists(WORD, max_size=8).map("\n".join), st.booleans(), CHUNK, CAPACITY)
def test_any_lines_read_the_same_in_any_window(
    text: str, lenient: bool, chunk: int | None, capacity: int | None
) -> None:
    def outcome(chunk: int | None, capacity: int | None) -> object:
        try:
            found = dump(text.encode(), "heap", chunk=chunk, capacity=capacity, options=Options(lenient=lenient))
        except FastprofError as error:
            return str(error)
        return found.rows, found.log.losses, found.log.repairs

    assert outcome(chunk, capacity) == outcome(None, None)
