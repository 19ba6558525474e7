"""JSON of Scalene, GHC and Safari against what it was written from."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import fastprof
from tests.property.test_texts import CAPACITY, CHUNK, TREE, nodes
from tests.support.stackdump import dump

NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
PLACE = st.tuples(NAME, st.integers(1, 1 << 30), st.integers(0, 1 << 20))
SAMPLES = st.lists(st.tuples(st.integers(0, 1 << 40), st.lists(PLACE, max_size=4), st.integers(0, 1 << 40)), max_size=6)


@given(SAMPLES, st.none() | st.integers(1, 4), CHUNK, CAPACITY)
def test_samples_of_safari(samples: list[Any], indent: int | None, chunk: int | None, capacity: int | None) -> None:
    traces = [
        {
            "timestamp": time / 1e9,
            "stackFrames": [
                {"name": name, "line": 3, "column": 1, "url": "a.js", "expressionLocation": {"line": line, "column": c}}
                for name, line, c in frames
            ],
        }
        for time, frames, _ in samples
    ]
    recording = {"sampleStackTraces": traces, "sampleDurations": [n / 1e9 for _, _, n in samples]}
    text = json.dumps({"version": 1, "recording": recording}, indent=indent)
    found = []
    for stack, _, values in dump(text.encode(), "safari", chunk=chunk, capacity=capacity).rows:
        lines = [frame[3][0] for frame in stack]
        found.append(([(line[0].decode(), line[4], line[5]) for line in lines], values))
    assert found == [([(name or "(anonymous)", *at) for name, *at in frames], (n, 1)) for _, frames, n in samples]


@given(TREE, st.integers(1, 1000), st.none() | st.integers(1, 4), CHUNK, CAPACITY)
def test_cost_centres_of_ghc(tree: Any, tick: int, indent: int | None, chunk: int | None, capacity: int | None) -> None:
    numbers = {name: i for i, name in enumerate(sorted({stack[-1] for _, stack, _, _ in nodes(tree)}), 3)}

    def node(one: Any) -> Any:
        name, own, children = one
        costs = {"id": numbers[name], "entries": own % 7, "alloc": own % 11, "ticks": own}
        return {**costs, "children": [*map(node, children)]}

    centres = [{"id": i, "label": name, "module": "Main", "src_loc": f"a.hs:{i}:1-9"} for name, i in numbers.items()]
    data = {"program": "a", "tick_interval": tick, "cost_centres": centres, "profile": node(tree)}
    found: Counter[Any] = Counter()
    for stack, _, (time, alloc, entries) in dump(
        json.dumps(data, indent=indent).encode(), "ghc-json", chunk=chunk, capacity=capacity
    ).rows:
        lines = [frame[3][0] for frame in reversed(stack)]
        assert all(line[4] == numbers[line[0].decode()] for line in lines)
        found[tuple(line[0].decode() for line in lines)] += time + alloc + entries
    expected: Counter[Any] = Counter()
    for _, names, own, _ in nodes(tree):
        expected[names] += own * tick * 1000 + own % 11 + own % 7
    assert +found == +expected


SHARE = st.integers(0, 100)
LINE = st.tuples(st.integers(1, 9), SHARE, SHARE, SHARE, st.integers(0, 1 << 10))


@given(st.dictionaries(st.sampled_from(["a.py", "b.py", "é.py"]), st.lists(LINE, max_size=6)), st.integers(1, 100))
def test_lines_of_scalene(files: dict[str, list[Any]], seconds: int) -> None:
    expected: Counter[Any] = Counter()
    made = {}
    for path, lines in files.items():
        functions = [{"line": "f", "lineno": 3}, {"line": "g", "lineno": 6}]
        made[path] = {"functions": functions, "lines": []}
        for at, python, native, system, megabytes in lines:
            start = at // 3 * 3
            costs = (python, native, system)
            keys = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
            one = {
                "lineno": at,
                "start_function_line": start,
                "n_malloc_mb": megabytes,
                **dict(zip(keys, costs, strict=True)),
            }
            made[path]["lines"].append(one)
            expected["cpu", path, at] += sum(costs) * seconds * 10**7
            expected["alloc", path, at] += megabytes << 20
    data = json.dumps({"alloc_samples": 1, "elapsed_time_sec": seconds, "files": made}).encode()
    found: Counter[Any] = Counter()
    for value in ("cpu", "alloc"):
        for row in fastprof.top(data, by="line", n=0, value=value, from_="scalene").rows:
            found[value, row.file, row.line] += row.self
    assert +found == +expected
