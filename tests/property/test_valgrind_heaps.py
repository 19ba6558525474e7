"""Massif's trees and DHAT's points: the rows of the slow readers, in any window."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from tests.reference import dhat, massif
from tests.support.stackdump import Dump, dump

CHUNK = st.sampled_from([None, 1, 2, 7, 100])
CAPACITY = st.sampled_from([None, 1, 3])
# Each text has its own name, and no two have one address: inlined functions are tested elsewhere.
FRAMES = [f"0x{i}{i}: f{i}(int, char (*)(x)) (a b.cc:{i})" for i in range(1, 4)]
FRAMES += ["0x99: g (in /lib/my libs/x.so)", "in 2 places, all below massif's threshold (1.00%)", "0x0: ???"]
FRAME = st.sampled_from(FRAMES)
# (a node's own value, its frame, its children)
TREE = st.recursive(
    st.tuples(st.integers(0, 1 << 40), FRAME, st.just([])),
    lambda node: st.tuples(st.integers(0, 1 << 40), FRAME, st.lists(node, max_size=3)),
    max_leaves=8,
)


def total(node: Any) -> int:
    return int(node[0]) + sum(total(child) for child in node[2])


def lines(node: Any, depth: int = 0) -> str:
    text = f"{' ' * depth}n{len(node[2])}: {total(node)} {node[1]}\n"
    return text + "".join(lines(child, depth + 1) for child in node[2])


def profile(trees: list[Any]) -> str:
    text = "desc: (none)\ncmd: ./a\ntime_unit: i\n"
    for number, node in enumerate(trees):
        figures = f"time={number}\nmem_heap_B={total(node)}\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
        text += f"#-----------\nsnapshot={number}\n#-----------\n{figures}heap_tree=detailed\n{lines(node)}"
    return text


def name(frame: tuple[Any, ...]) -> str:
    """The text of a frame in the file."""
    if not frame[3]:
        return f"0x{frame[1]:x}"
    return str(next(text for text in FRAMES if frame[3][0][0].decode() in text))


@given(st.lists(TREE, min_size=1, max_size=3), CHUNK, CAPACITY)
def test_trees_read_as_by_the_slow_reader(trees: list[Any], chunk: int | None, capacity: int | None) -> None:
    text = profile(trees)
    slow = massif.read(text)
    found = dump(text.encode(), "massif", chunk=chunk, capacity=capacity, options=Options(snapshot="all"))
    stacks: dict[int, Counter[tuple[str, ...]]] = {number: Counter() for number in slow}
    for stack, labels, values in found.rows:
        stacks[labels[0][2]][tuple(map(name, stack))] += values[0]
    assert stacks == slow


@st.composite
def points(draw: st.DrawFn) -> str:
    lifetimes, accesses, first = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    keys = ["tb", "tbk", *["tl", "mb", "mbk", "gb", "gbk", "eb", "ebk"] * lifetimes, *["rb", "wb"] * accesses]
    found = []
    for _ in range(draw(st.integers(0, 5))):
        point: dict[str, Any] = {key: draw(st.integers(0, 1 << 50)) for key in keys}
        found.append(point | {"acc": [-8, 4], "fs": draw(st.lists(st.integers(1, len(FRAMES)), max_size=5))})
    head = {"dhatFileVersion": 2, "mode": "heap", "verb": "Allocated", "bklt": lifetimes, "bkacc": accesses, "pid": 1}
    table = {"ftbl": ["[root]", *FRAMES]}
    return json.dumps(head | (table if first else {}) | {"pps": found} | table)


def by_name(found: Dump) -> Counter[tuple[tuple[str, ...], str]]:
    sums: Counter[tuple[tuple[str, ...], str]] = Counter()
    for stack, _, values in found.rows:
        for t, value in zip(found.part.value_types, values, strict=True):
            sums[tuple(map(name, stack)), t.name] += value
    return sums


@given(points(), CHUNK, CAPACITY)
def test_points_read_as_by_the_slow_reader(text: str, chunk: int | None, capacity: int | None) -> None:
    found = dump(text.encode(), "dhat", chunk=chunk, capacity=capacity)
    assert +by_name(found) == +dhat.read(text)


WORD = st.sampled_from(
    ["snapshot=1", "time=2", "mem_heap_B=9", "mem_heap_extra_B=0", "mem_stacks_B=0", "heap_tree=peak"]
)
LINE = st.one_of(
    WORD, st.sampled_from(["#-", "", "n1: 9 (heap)", " n0: 9 0x1: f (a:1)", " n2: 5 0x2: g", "n0: 4 x", "\r"])
)


@given(st.lists(LINE, max_size=14).map("\n".join), st.booleans(), CHUNK, CAPACITY)
def test_any_lines_read_the_same_in_any_window(
    text: str, lenient: bool, chunk: int | None, capacity: int | None
) -> None:
    data = f"desc: (none)\ncmd: a\ntime_unit: i\n{text}".encode()

    def outcome(chunk: int | None, capacity: int | None) -> object:
        try:
            found = dump(data, "massif", chunk=chunk, capacity=capacity, options=Options(lenient=lenient))
        except FastprofError as error:
            return str(error)
        return found.rows, found.log.losses

    assert outcome(chunk, capacity) == outcome(None, None)
