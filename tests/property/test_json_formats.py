"""Random JSON of speedscope and of Chrome's tracers, against the slow references."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import fastprof
from fastprof.core._c import lib
from fastprof.core.errors import FastprofError
from tests.reference import samples, speedscope, trace_event

OPS = {lib.FP_OP_ENTER: "enter", lib.FP_OP_EXIT: "exit", lib.FP_OP_CUSTOM: "event"}
NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=8)


class Written(str):
    """A number in the form that it has in the file."""


@st.composite
def numbers(draw: st.DrawFn, least: int, most: int, places: int) -> Written:
    """Whole, with a fraction, with an exponent."""
    value = Decimal(draw(st.integers(least, most))).scaleb(-draw(st.integers(0, places)))
    return Written(draw(st.sampled_from([f"{value:f}", f"{value:e}", f"{value:E}"])))


def text_of(value: Any) -> str:
    """JSON whose numbers keep their form."""
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    return json.dumps(value, ensure_ascii=len(str(value)) % 2 == 0)


def shuffled(draw: st.DrawFn, fields: dict[str, Any]) -> dict[str, Any]:
    return dict(draw(st.permutations([*fields.items()])))


def rows_of(profile: Any) -> dict[tuple[int, int], list[tuple[str, int, str]]]:
    """Rows of a timeline by process and thread."""
    found: dict[tuple[int, int], list[tuple[str, int, str]]] = {}
    model = profile._model
    for batch in profile:
        columns = (batch[column] for column in ("op", "time", "thread", "function"))
        for i, (op, time, thread, function) in enumerate(zip(*columns, strict=True)):
            name = batch.payload(i).decode() if op == lib.FP_OP_CUSTOM else model.get_function(function).name.decode()
            found.setdefault(model.row("threads", thread)[1:], []).append((OPS[op], time, name))
    return found


# ---- Chrome traces


@st.composite
def traces(draw: st.DrawFn) -> bytes:
    phases = draw(st.sampled_from(["BE", "BBEEi", "X", "XXi", "BEXiIR", "BEXMC", "bbeen", "bbeeBEXC"]))
    names = draw(st.lists(NAMES, min_size=1, max_size=4))
    events: list[dict[str, Any]] = []
    least = draw(st.sampled_from([-5, 0]))
    many = draw(st.lists(st.sampled_from(phases), min_size=1, max_size=40))
    times = [draw(numbers(least, 10**5, 4)) for _ in many]
    if draw(st.booleans()):
        times.sort(key=Decimal)
    for phase, time in zip(many, times, strict=True):
        said: dict[str, Any] = {"ph": phase, "name": draw(st.sampled_from(names)), "ts": time}
        said |= {"pid": draw(st.integers(1, 2)), "tid": draw(st.integers(1, 2))}
        if phase == "X" and draw(st.integers(0, 9)):
            said["dur"] = draw(numbers(-1, 10**5, 4))
        if phase == "E" and not draw(st.integers(0, 3)):
            said["name"] = ""
        if phase == "E" and not draw(st.integers(0, 3)):
            del said["name"]
        if phase in "ben":
            said["id"] = draw(st.sampled_from(["0x1", 7, "a"]))
            if draw(st.booleans()):
                said["cat"] = draw(st.sampled_from(["net", "gpu"]))
        if phase == "M":
            said |= {"name": "thread_name", "args": {"name": "a name"}}
        if not draw(st.integers(0, 5)):
            said["ts"] = str(said["ts"])
        events.append(shuffled(draw, said))
    text = text_of(events)
    form = draw(st.sampled_from(["array", "cut", "object", "late"]))
    if form == "cut":
        text = text[:-1] + draw(st.sampled_from(["", ",", ",\n"]))
    if form == "object":
        text = '{"traceEvents": ' + text + ', "displayTimeUnit": "ns"}'
    if form == "late":
        text = '{"otherData": {"traceEvents": [1]}, "traceEvents": ' + text + "}"
    return text.encode()


def by_lane(rows: dict[Any, list[Any]]) -> Counter[tuple[int, int, tuple[Any, ...]]]:
    """Rows by process and thread.  The file has no numbers of lanes: they are 0 here."""
    return Counter(
        (pid, 0 if any(lane) or tid > 2 else tid, tuple(said)) for (pid, tid, *lane), said in rows.items() if said
    )


@given(traces())
def test_trace_events(data: bytes) -> None:
    expected = trace_event.read(data)
    assume(any(expected.rows.values()))  # a trace of only other events is refused
    with fastprof.open(data, from_="trace-event") as profile:
        found = rows_of(profile)
        counts = {entry["code"]: entry["count"] for entry in profile.log.repairs.entries()}
    assert by_lane(found) == by_lane(expected.rows)
    assert counts == +expected.counts
    for code in expected.counts:
        event(code)


# ---- samples of Chrome and of V8


def tree(draw: st.DrawFn, n: int) -> list[int]:
    """The parent of each node, 0 for nodes without one."""
    return [draw(st.integers(0, i)) for i in range(n)]


def v8_nodes(draw: st.DrawFn, parents: list[int], by_child: bool) -> list[dict[str, Any]]:
    nodes = []
    for i, parent in enumerate(parents, 1):
        name = draw(st.sampled_from(["", "f", "g", "(idle)", "h\u20ac"])) if parent else "(root)"
        call = {"functionName": name, "url": "a.js", "lineNumber": draw(st.integers(-1, 9))}
        node: dict[str, Any] = {"id": i, "callFrame": shuffled(draw, call)}
        if by_child:
            node["children"] = [child for child, of in enumerate(parents, 1) if of == i]
        elif parent:
            node["parent"] = parent
        nodes.append(shuffled(draw, node))
    return nodes


def v8_samples(draw: st.DrawFn, nodes: int) -> dict[str, Any]:
    ids = draw(st.lists(st.integers(1, nodes), max_size=6))
    times = [draw(numbers(-20, 3000, 2)) for _ in ids]
    said: dict[str, Any] = {"samples": ids, "timeDeltas": times}
    if draw(st.booleans()):
        said["lines"] = [draw(st.integers(0, 4)) for _ in ids]
    if draw(st.booleans()):
        said["endTime"] = draw(st.integers(900, 20_000))
    return said


@st.composite
def cpu_profiles(draw: st.DrawFn) -> bytes:
    parents = tree(draw, draw(st.integers(1, 8)))
    said = {"nodes": draw(st.permutations(v8_nodes(draw, parents, draw(st.booleans())))), "startTime": 1000}
    return text_of(shuffled(draw, said | v8_samples(draw, len(parents)))).encode()


@st.composite
def sampled_traces(draw: st.DrawFn) -> bytes:
    events: list[dict[str, Any]] = []
    for pid in range(1, draw(st.integers(1, 3))):
        parents = tree(draw, draw(st.integers(1, 6)))
        nodes = v8_nodes(draw, parents, by_child=False)
        chunks: list[dict[str, Any]] = []
        for left in reversed(range(draw(st.integers(1, 3)))):
            n = draw(st.integers(0, len(nodes))) if left else len(nodes)
            new, nodes = nodes[:n], nodes[n:]
            data = v8_samples(draw, len(parents))
            profile = {"samples": data.pop("samples"), **({"nodes": new} if new else {})}
            data["cpuProfile"] = shuffled(draw, profile)
            chunks.append({"name": "ProfileChunk", "tid": 9, "args": {"data": shuffled(draw, data)}})
        begin = {"name": "Profile", "tid": pid + 5, "args": {"data": {"startTime": 1000 * pid}}}
        chunks.insert(draw(st.integers(0, len(chunks))), begin)
        events += [{"ph": "P", "pid": pid, "id": "0x1", "ts": 5, **chunk} for chunk in chunks]
    frames: dict[str, Any] = {}
    for i, parent in enumerate(tree(draw, draw(st.integers(1, 5))), 1):
        of = {"parent": draw(st.sampled_from([parent, str(parent)]))} if parent else {}
        frames[str(i)] = {"name": f"f{i % 4}", **of}
    frame = st.sampled_from([*frames, *map(int, frames)])
    for _ in range(draw(st.integers(0, 4))):
        stack: dict[str, Any] = {"sf": draw(frame)} if draw(st.booleans()) else {"stack": ["main", "f1"]}
        said = {"ph": "P", "name": "s", "pid": 1, "tid": 2, "ts": draw(numbers(0, 10**5, 4)), **stack}
        events.insert(draw(st.integers(0, len(events))), said)
    all_: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 4))):
        one = {"name": draw(st.sampled_from(["cycles", "faults"])), "ts": draw(numbers(0, 10**5, 4)), "sf": draw(frame)}
        one |= {"tid": draw(st.integers(1, 2)), "cpu": 0}
        all_.append(shuffled(draw, one | ({"weight": draw(st.integers(0, 9))} if draw(st.booleans()) else {})))
    events = [shuffled(draw, one) for one in events]
    return text_of(shuffled(draw, {"traceEvents": events, "stackFrames": frames, "samples": all_})).encode()


def samples_of(data: bytes, from_: str, **options: Any) -> Counter[samples.Sample]:
    found: Counter[samples.Sample] = Counter()
    with fastprof.open(data, from_=from_, **options) as profile:
        model = profile._model
        for batch in profile:
            names = [value_type.name for value_type in model.parts[batch.part].value_types]
            columns = [batch.values(k) for k in range(len(names))]
            rows = zip(batch["thread"], batch["time"], batch["stack"], *columns, strict=True)
            for thread, time, stack, *values in rows:
                said = tuple((name, int(value)) for name, value in zip(names, values, strict=True) if value)
                tid = model.row("threads", thread)[2] if thread else 0
                found[tid, int(time), frames_of(model, stack), said] += 1
    return found


def frames_of(model: Any, stack: int) -> samples.Stack:
    """Names and lines, outermost first."""
    if not stack:
        return ()
    parent, frame = model.row("stacks", stack)
    line = model.row("lines", model.row("frames", frame)[lib.FP_FRAME_LINES])
    name = model.get_function(line[lib.FP_LINE_FUNCTION]).name.decode()
    return (*frames_of(model, parent), (name, line[lib.FP_LINE_LINE]))


@given(cpu_profiles())
def test_cpu_profiles(data: bytes) -> None:
    assert samples_of(data, "cpuprofile") == samples.read(data)


@given(sampled_traces())
def test_samples_of_traces(data: bytes) -> None:
    assert samples_of(data, "trace-event", samples=True) == samples.read(data)


# ---- speedscope


@st.composite
def profiles(draw: st.DrawFn) -> bytes:
    frames = [{"name": name} for name in draw(st.lists(NAMES, min_size=1, max_size=5))]
    frame = st.integers(0, len(frames) - 1)
    first = draw(st.sampled_from(["evented", "sampled"]))
    found = []
    for i in range(draw(st.integers(1, 3))):
        kind = first if not i or draw(st.integers(0, 3)) else draw(st.sampled_from(["evented", "sampled"]))
        unit = draw(st.sampled_from(["nanoseconds", "milliseconds", "seconds", "none", "bytes"]))
        said: dict[str, Any] = {"type": kind, "name": f"profile {i}", "unit": unit, "startValue": 0, "endValue": 9}
        if kind == "evented":
            at, events = Decimal(draw(st.integers(-3, 1000))), []
            for _ in range(draw(st.integers(0, 20))):
                at += Decimal(draw(st.integers(0, 10**6))).scaleb(-draw(st.integers(0, 4)))
                one = {"type": draw(st.sampled_from("OC")), "frame": draw(frame), "at": Written(f"{at:f}")}
                events.append(shuffled(draw, one))
            said["events"] = events
        else:
            stacks = draw(st.lists(st.lists(frame, max_size=6), max_size=20))
            said["samples"] = [[*stack] for stack in stacks]
            said["weights"] = [draw(st.one_of(numbers(0, 10**6, 4), st.none())) for _ in stacks]
        found.append(shuffled(draw, said))
    return text_of(shuffled(draw, {"profiles": found, "shared": {"frames": frames}})).encode()


@given(profiles())
def test_speedscope(data: bytes) -> None:
    expected = speedscope.read(data)
    with fastprof.open(data, from_="speedscope") as profile:
        if expected.others and not any(expected.rows) and not expected.samples:
            with pytest.raises(FastprofError, match=r"only . profiles? of another kind"):
                list(profile)
            return
        if profile.view == "timeline":
            rows = rows_of(profile)
            assert [rows[thread] for thread in sorted(rows)] == [rows for rows in expected.rows if rows]
        else:
            samples: Counter[tuple[str, tuple[str, ...]]] = Counter()
            model = profile._model
            for batch in profile:
                for k, value_type in enumerate(model.parts[batch.part].value_types):
                    for stack, value in zip(batch["stack"], batch.values(k), strict=True):
                        samples[value_type.name, names_of(model, stack)] += value
            assert +samples == +expected.samples
        assert profile.log.repairs["rounded-weights"] == expected.rounded
        assert profile.log.not_representable["other-profiles"] == expected.others
    event(profile.view)


def names_of(model: Any, stack: int) -> tuple[str, ...]:
    """Outermost first."""
    if not stack:
        return ()
    parent, frame = model.row("stacks", stack)
    function = model.row("lines", model.row("frames", frame)[lib.FP_FRAME_LINES])[lib.FP_LINE_FUNCTION]
    return (*names_of(model, parent), model.get_function(function).name.decode())
