"""cProfile's and V8's heap profiles: the rows of the slow readers, in any window."""

from __future__ import annotations

import json
import marshal
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastprof import formats
from fastprof.core.engine import read
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference import heapprofile, pstats
from tests.support.stackdump import Dribble, dump

CHUNK = st.sampled_from([None, 1, 2, 7, 100])
CAPACITY = st.sampled_from([None, 1, 3])

# ---- pstats

KEY = st.tuples(st.sampled_from(["a.py", "/lib/b.py", "~", "ü.py"]), st.integers(0, 3), st.sampled_from("fg\U0001d4b3"))
TIME = st.integers(0, 10**12).map(lambda ns: ns / 1e9)
CALLS = st.integers(0, 1 << 40)
CALLER = st.one_of(CALLS, st.tuples(CALLS, CALLS, TIME, TIME))
STATS = st.dictionaries(KEY, st.tuples(CALLS, CALLS, TIME, TIME, st.dictionaries(KEY, CALLER, max_size=4)), max_size=6)


def rows_of(data: bytes, chunk: int | None, capacity: int | None) -> dict[pstats.Key, pstats.Entry]:
    model = Model()
    reader = formats.get("pstats").reader_class()
    own: dict[pstats.Key, pstats.Values] = {}
    callers: dict[pstats.Key, dict[pstats.Key, pstats.Values]] = {}

    def key(function: int) -> pstats.Key:
        found = model.get_function(function)
        return found.file.decode() or "~", found.line, found.name.decode()

    with Source(Dribble(data, chunk), name="test") as source:
        for batch in read(reader(source, model, Options(), Log()), capacity):
            columns = [batch.values(k) for k in range(5)]
            for i, kind in enumerate(batch["kind"]):
                _, calls, primitive, cumulative, own_time = (int(column[i]) for column in columns)
                values = calls, primitive, own_time, cumulative
                function = key(batch["function"][i])
                if kind:
                    callers.setdefault(key(batch["callee"][i]), {})[function] = values
                else:
                    own[function] = values
    return {function: (values, callers.get(function, {})) for function, values in own.items()}


@given(STATS, st.integers(0, 4), CHUNK, CAPACITY)
def test_functions_read_as_by_the_slow_reader(
    stats: dict[Any, Any], version: int, chunk: int | None, capacity: int | None
) -> None:
    data = marshal.dumps(stats, version)
    assert rows_of(data, chunk, capacity) == pstats.read(data)


# ---- V8's heap profiles


@st.composite
def nodes(draw: st.DrawFn, old: bool, depth: int = 0) -> dict[str, Any]:
    """A node, its members in any order."""
    frame = {
        "functionName": draw(st.sampled_from(["f", "g", "", "(root)", 'é"\\\n'])),
        "scriptId": "7",
        "url": draw(st.sampled_from(["a.js", "file:///b.js", ""])),
        "lineNumber": draw(st.integers(-1, 3)),
        "columnNumber": draw(st.integers(-1, 3)),
    }
    children = draw(st.lists(nodes(old, depth + 1), max_size=3)) if depth < 3 else []
    members = (frame if old else {"callFrame": frame}) | {"selfSize": draw(st.integers(0, 1 << 50)), "id": depth}
    if children or draw(st.booleans()):
        members["children"] = children
    return dict(draw(st.permutations([*members.items()])))


@st.composite
def profiles(draw: st.DrawFn) -> str:
    members = {"head": draw(nodes(draw(st.booleans()))), "samples": [{"size": 1, "nodeId": 1, "ordinal": 1.0}]}
    text = dict(draw(st.permutations([*members.items()])))
    return json.dumps(text, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))


@given(profiles(), CHUNK, CAPACITY)
def test_nodes_read_as_by_the_slow_reader(text: str, chunk: int | None, capacity: int | None) -> None:
    found: Counter[tuple[heapprofile.Place, ...]] = Counter()
    for stack, _, (size,) in dump(text.encode(), "heapprofile", chunk=chunk, capacity=capacity).rows:
        found[tuple((f[0].decode(), f[2].decode(), f[4], f[5]) for _, _, _, (f,) in stack)] += size
    assert found == +heapprofile.read(text)
