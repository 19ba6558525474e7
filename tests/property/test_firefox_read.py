"""Random profiles of the Firefox Profiler, in the shapes of its versions, against the slow reader."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastprof.core.model import Model
from fastprof.core.options import Options
from tests.property.test_json_formats import numbers, shuffled, text_of
from tests.reference import firefox_read as reference
from tests.support.product import batches, open_input

NAMES = ["main", "f", "", "é\n", "g (x)", "work"]
FILES = ["a.c", "http://x/(y)/b.js"]
INDEX = st.integers(0, 30)


def or_null(draw: st.DrawFn, item: Any) -> Any:
    return draw(item) if draw(st.integers(0, 4)) else None


def column(draw: st.DrawFn, n: int, item: Any, nulls: bool = True) -> list[Any]:
    return [or_null(draw, item) if nulls else draw(item) for _ in range(n)]


@st.composite
def sample_tables(draw: st.DrawFn, n_stacks: int, kind: str) -> dict[str, Any]:
    n = draw(st.integers(0, 12))
    stacks = st.integers(0, n_stacks - 1) if n_stacks else st.none()
    table: dict[str, Any] = {"stack": column(draw, n, stacks)}
    if draw(st.booleans()):
        table["time"] = column(draw, n, numbers(0, 10**11, 11))
    elif draw(st.booleans()):
        table["timeDeltas"] = column(draw, n, numbers(0, 10**9, 9))
    least = -(10**6) if kind == "nativeAllocations" else 0
    if kind != "samples" or draw(st.booleans()):
        table["weight" if draw(st.booleans()) else "duration"] = column(draw, n, numbers(least, 10**6, 4))
    if kind == "samples" and draw(st.booleans()):
        table["threadCPUDelta"] = column(draw, n, numbers(0, 10**7, 5))
    return table


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The strings, and the tables of functions, frames and stacks."""
    strings = [*NAMES, *FILES]
    text, n_funcs, n_frames, n_stacks = st.integers(0, len(NAMES) - 1), 4, 5, draw(st.integers(0, 8))
    files = st.integers(len(NAMES), len(strings) - 1)
    funcs: dict[str, Any] = {"name": column(draw, n_funcs, text, False)}
    found = {"funcTable": funcs}
    if draw(st.booleans()):
        funcs["source"] = column(draw, n_funcs, st.integers(0, 1))
        found["sources"] = {"filename": column(draw, 2, files, False)}
    else:
        funcs["fileName"] = column(draw, n_funcs, files)
    found["frameTable"] = {
        "func": column(draw, n_frames, st.integers(0, n_funcs - 1), False),
        "line": column(draw, n_frames, INDEX),
        "column": column(draw, n_frames, INDEX),
        "category": column(draw, n_frames, INDEX),
    }
    above = [draw(st.integers(0, i)) for i in range(n_stacks)]  # the prefix + 1
    stacks: dict[str, Any] = {"frame": column(draw, n_stacks, st.integers(0, n_frames - 1), False)}
    if draw(st.booleans()):
        stacks["prefixOffset"] = [i + 1 - prefix if prefix else 0 for i, prefix in enumerate(above)]
    else:
        none = draw(st.sampled_from([None, -1]))
        stacks["prefix"] = [prefix - 1 if prefix else none for prefix in above]
    found["stackTable"] = stacks
    return strings, found


def lengths(draw: st.DrawFn, table: dict[str, Any]) -> dict[str, Any]:
    """The table with or without its length, and its fields in any order."""
    n = len(next(iter(table.values())))
    return shuffled(draw, table | ({"length": n} if draw(st.booleans()) else {}))


@st.composite
def processed(draw: st.DrawFn) -> bytes:
    is_shared = draw(st.booleans())
    meta: dict[str, Any] = {"preprocessedProfileVersion": 60 if is_shared else 41, "interval": 1}
    if draw(st.booleans()):
        meta["startTime"] = draw(numbers(10**11, 10**12, 4))
    meta["sampleUnits"] = {"threadCPUDelta": draw(st.sampled_from(["ns", "µs"]))}
    strings, common = draw(tables())
    threads = []
    for i in range(draw(st.integers(1, 3))):
        if not is_shared and i:
            strings, common = draw(tables())
        thread: dict[str, Any] = {"name": f"t{i}", "pid": "1", "tid": 1 + i}
        for kind in ("samples", "jsAllocations", "nativeAllocations"):
            if kind != "samples" and draw(st.booleans()):
                continue
            thread[kind] = table = lengths(draw, draw(sample_tables(len(common["stackTable"]["frame"]), kind)))
            if kind == "samples" and draw(st.booleans()):
                table["weightType"] = draw(st.sampled_from(["samples", "tracing-ms", "bytes"]))
        if not is_shared:
            thread |= {"stringArray": strings} | {name: lengths(draw, table) for name, table in common.items()}
        threads.append(shuffled(draw, thread))
    profile: dict[str, Any] = {"meta": meta, "libs": [], "threads": threads}
    if is_shared:
        profile["shared"] = {"stringArray": strings} | {name: lengths(draw, table) for name, table in common.items()}
    return text_of(shuffled(draw, profile)).encode()


def as_rows(draw: st.DrawFn, table: dict[str, Any]) -> dict[str, Any]:
    """A table of rows whose columns have any order, and that end with their last value."""
    order = draw(st.permutations([*table, "other"]))
    schema = {name: i for i, name in enumerate(order)}
    rows = [[*one] for one in zip(*(table.get(name, [7] * len(table["stack"])) for name in order), strict=True)]
    for row in rows:
        while row and row[-1] is None:
            row.pop()
    return in_any_order(draw, {"schema": schema, "data": rows})


def in_any_order(draw: st.DrawFn, table: dict[str, Any]) -> dict[str, Any]:
    return dict(reversed(table.items())) if draw(st.booleans()) else table


@st.composite
def raw(draw: st.DrawFn, depth: int = 0) -> Any:
    """A raw profile, with processes below it."""
    threads = []
    strings = ["(root)", "f (a.js:3:4)", "g (http://x/(y)/b.js:12)[3]", "h (http://x/c.js:5:6)", "ns::Run", "main"]
    for i in range(draw(st.integers(1, 2))):
        n_frames, n_stacks = 4, draw(st.integers(1, 6))
        frames = column(draw, n_frames, st.tuples(st.integers(0, 5), st.just(None), INDEX, INDEX), False)
        stacks = [[draw(st.integers(0, k)) - 1, draw(st.integers(0, 3))] for k in range(n_stacks)]
        samples = {key: items for key, items in draw(sample_tables(n_stacks, "samples")).items() if key != "duration"}
        threads.append(
            {
                "name": f"{depth} t{i}",
                "pid": 1 + depth,
                "tid": 1 + i,
                "samples": as_rows(draw, samples),
                "stringTable": strings,
                "frameTable": in_any_order(
                    draw, {"schema": {"location": 0, "x": 1, "line": 2, "column": 3}, "data": frames}
                ),
                "stackTable": in_any_order(
                    draw,
                    {
                        "schema": {"prefix": 0, "frame": 1},
                        "data": [[None if prefix < 0 else prefix, frame] for prefix, frame in stacks],
                    },
                ),
            }
        )
    meta = {"version": 30, "processType": 0, "interval": 1, "startTime": draw(numbers(10**11, 10**12, 4))}
    below = [draw(raw(depth + 1))] if not depth and draw(st.booleans()) else []
    return {"meta": meta, "libs": [], "threads": threads, "processes": below}


def name_of(model: Model, frame: int) -> reference.Frame:
    function, line, place, _ = model.row("lines", model.row("frames", frame)[-1])
    row = model.row("functions", function)
    name, file = (model.string(row[i]).decode() for i in (2, 1))
    return name.replace("[unknown]", ""), file, line, place


def product(data: bytes, capacity: int | None = None) -> Counter[reference.Sample]:
    opened = open_input(data, Options(), from_="firefox")
    model, found = opened.model, Counter[reference.Sample]()
    for batch in batches(opened):
        part = model.parts[batch.part]
        names = {(pid, tid): name.decode() for pid, tid, name in part.extra.get("thread_names", [])}
        for i in range(len(batch)):
            frames: list[reference.Frame] = []
            stack: int = batch["stack"][i]
            while stack:
                stack, frame = model.row("stacks", stack)
                frames.append(name_of(model, frame))
            values = {type_.name: batch.values(k)[i] for k, type_ in enumerate(part.value_types)}
            kept = tuple(sorted((name, value) for name, value in values.items() if value))
            thread = names[model.row("threads", batch["thread"][i])[1:3]]
            found[reference.Sample(thread, batch["time"][i], tuple(reversed(frames)), kept)] += 1
    return found


@settings(max_examples=40, deadline=None)
@given(processed())
def test_samples_of_processed_profiles(data: bytes) -> None:
    assert product(data) == Counter(reference.read(data))


@settings(max_examples=40, deadline=None)
@given(raw())
def test_samples_of_raw_profiles(profile: Any) -> None:
    data = text_of(profile).encode()
    assert product(data) == Counter(reference.read(data))


def test_numbers_are_rounded_half_away_from_zero() -> None:
    forms = ["0.5", "-0.5", "1.5", "2.49999999999999999", "1e1", "25e-1", "3.0", "-1.0000000000000000001", "7"]
    weights = ", ".join(forms)
    data = (
        '{"meta": {"preprocessedProfileVersion": 60, "startTime": 1}, "threads": [{"name": "t", "pid": 1, "tid": 1, '
        f'"samples": {{"stack": [{", ".join(["null"] * len(forms))}], "weight": [{weights}]}}}}], "shared": {{}}}}'
    )
    found = product(data.encode())
    wanted = Counter(reference.rounded(Decimal(form)) for form in forms)
    assert Counter(dict(sample.values).get("samples", 0) for sample in found.elements()) == wanted
