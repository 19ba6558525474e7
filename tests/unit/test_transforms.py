"""Hidden functions and collapsed frames, in every view."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.bridges.rows.transform import transform
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from tests.reference import profile_proto
from tests.reference.transforms import Frame, transformed
from tests.support.paths import CORPUS
from tests.support.transforms import options_of

EXAMPLES = json.loads((Path(__file__).parents[1] / "support" / "transforms.json").read_text())["examples"]


def frames(stack: list[Any]) -> list[Frame]:
    return [Frame(one) if isinstance(one, str) else Frame(*one) for one in stack]


def sums(profile: fastprof.Profile) -> Counter[tuple[tuple[str, str], ...]]:
    found: Counter[tuple[tuple[str, str], ...]] = Counter()
    value = profile.value_types[0].name
    for row in profile.rows("samples"):
        found[tuple((f.name, f.object) for f in profile.stack(row["stack_id"]))] += row[value]
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=[one["name"] for one in EXAMPLES])
def test_examples(example: dict[str, Any]) -> None:
    options = options_of(example["do"])
    expected: Counter[Any] = Counter()
    for stack, value in example["result"]:
        expected[tuple((f.name, f.object) for f in frames(stack))] += value
    ours: Counter[Any] = Counter()
    for stack, value in example["stacks"]:
        if shown := transformed(frames(stack), **options):
            ours[tuple((f.name, f.object) for f in shown)] += value
    assert ours == expected
    made = fastprof.from_stacks(
        [
            ([fastprof.Frame(f.name, object=f.object) for f in frames(stack)], value)
            for stack, value in example["stacks"]
        ]
    )
    assert sums(made._with(**options)) == expected


def folded(path: Any, tmp_path: Path, **options: Any) -> Counter[str]:
    fastprof.convert(path, tmp_path / "out.folded", **options)
    found: Counter[str] = Counter()
    for line in (tmp_path / "out.folded").read_text(errors="surrogateescape").splitlines():
        stack, _, value = line.rpartition(" ")
        found[stack] += int(value)
    return found


GIVEN: list[dict[str, Any]] = [
    {"hide": ["[aeiou]"]},
    {"hide": ["^.$"], "collapse_recursion": True},
    {"collapse_recursion": True},
    {"hide_object": ["[.]so", "kernel"]},
    {"collapse_object": ["."]},
    {"hide": ["1"], "collapse_object": ["lib"], "collapse_recursion": True},
    {"root_at": ["[a-n]"]},
    {"root_at": ["[e-z]", "[aeiou]"], "hide": ["m"], "collapse_recursion": True},
]
STACKS = [
    "pprof/good/go-block.pb.gz",
    "pprof/good/everything.pb",
    "perf-script/good/real-F-srcline.perf",
    "perf-script/good/real-F-nosym.perf",
    "folded/good/recursion.folded",
    "jfr/good/real-async.jfr.gz",
]


@pytest.mark.parametrize("options", GIVEN, ids=str)
@pytest.mark.parametrize("name", STACKS)
def test_stacks(name: str, options: dict[str, Any]) -> None:
    """Every distinct stack becomes what the reference makes of it, and no cost is lost."""
    with fastprof.open(CORPUS / name) as profile:
        value = profile.value_types[0].name
        expected: Counter[Any] = Counter()
        for row in profile.rows("samples"):
            stack = [Frame(f.name, f.object, f.file, f.line) for f in profile.stack(row["stack_id"])]
            if shown := transformed(stack, **options):
                expected[tuple((f.name, f.object) for f in shown)] += row[value]
    with fastprof.open(CORPUS / name)._with(**options) as changed:
        if expected:
            assert sums(changed) == expected
            return
        with pytest.raises(fastprof.FastprofError, match="no row matches function="):
            sums(changed)


def timelines() -> list[Path]:
    found = [CORPUS / "xray/good/fdr2-busy.xray", CORPUS / "xray/good/basic3-busy.xray"]
    return [*found, *(path for path in sorted((CORPUS / "trace-event/good").glob("*.json"))[:8])]


@pytest.mark.parametrize(
    "options",
    [
        {"hide": ["1$"]},
        {"hide": ["[a-m2]"]},
        {"collapse_recursion": True},
        {"hide": ["."]},
        {"root_at": ["[a-m2]", "."]},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", timelines(), ids=lambda path: path.name)
def test_timelines(path: Path, options: dict[str, Any], tmp_path: Path) -> None:
    """The stacks of a changed timeline are the changed stacks of the timeline."""
    with fastprof.open(path) as profile:
        if profile.view != "timeline":
            pytest.skip("no timeline")
    fastprof.convert(path, tmp_path / "stacks.pb", to="pprof", time_unit="ticks", value="time")
    try:
        expected = folded(tmp_path / "stacks.pb", tmp_path, **options)
    except fastprof.FastprofError as error:
        assert "no row matches root_at=" in str(error)
        return
    found = folded(path, tmp_path, time_unit="ticks", value="time", **options)
    assert +found == +expected
    whole = sum(folded(path, tmp_path, time_unit="ticks", value="time").values())
    assert sum(found.values()) <= whole if "root_at" in options else sum(found.values()) == whole


CALLS = [("main", 0, 100), ("f", 10, 50), ("g", 20, 30), ("f", 60, 90), ("f", 65, 80)]


def trace(path: Path) -> Path:
    """CALLS as a trace."""
    events = [
        {"name": name, "ph": "X", "ts": begin, "dur": end - begin, "pid": 1, "tid": 1} for name, begin, end in CALLS
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_a_timeline_keeps_its_time(tmp_path: Path) -> None:
    made = fastprof.open(trace(tmp_path / "a.json"))
    assert folded(made, tmp_path) == {"main": 30, "main;f": 45, "main;f;f": 15, "main;f;g": 10}
    assert folded(made.hide("^f$"), tmp_path) == {"main": 90, "main;g": 10}
    assert folded(made.hide("^main$"), tmp_path) == {"[hidden]": 30, "f": 45, "f;f": 15, "f;g": 10}
    assert folded(made.collapse(recursion=True), tmp_path) == {"main": 30, "main;f": 60, "main;f;g": 10}
    assert folded(made.hide("main|f"), tmp_path) == {"[hidden]": 90, "g": 10}


def test_roots_of_a_timeline(tmp_path: Path) -> None:
    made = fastprof.open(trace(tmp_path / "a.json"))
    assert folded(made.below("^f$"), tmp_path) == {"f": 45, "f;f": 15, "f;g": 10}
    assert folded(made.below(path="main;f;f"), tmp_path) == {"f": 15}
    assert folded(made.below("^f$").below("^g$"), tmp_path) == {"g": 10}
    with pytest.raises(fastprof.FastprofError, match="no row matches path='f'"):
        folded(made.below(path="f"), tmp_path)


def test_calls_of_a_timeline(tmp_path: Path) -> None:
    """Merged calls are not counted; the time order of the others stays."""
    path = trace(tmp_path / "a.json")
    calls = {row.name: row.calls for row in fastprof.top(path, collapse_recursion=True).rows}
    assert calls == {"main": 1, "f": 2, "g": 1}
    fastprof.convert(path, tmp_path / "b.json", to="trace-event", hide="^f$")
    spans = fastprof.open(tmp_path / "b.json").rows("spans")
    assert sorted((row["ts"] // 1000, row["dur"] // 1000, row["function"]) for row in spans) == [
        (0, 100, "main"),
        (20, 10, "g"),
    ]


GRAPH = [
    ("main", 1),
    ("f", 24),
    ("g", 10),
    ("h", 16),
    ("main", "f", 3, 30),
    ("main", "g", 1, 20),
    ("g", "f", 1, 10),
    ("f", "h", 4, 16),
]


def top(profile: Any, **options: Any) -> dict[str, tuple[int, int | None, int | None]]:
    return {row.name: (row.self, row.inclusive, row.calls) for row in fastprof.top(profile, n=0, **options).rows}


def test_a_graph_with_one_caller_is_exact() -> None:
    made = fastprof.from_calls(GRAPH)
    found = fastprof.top(made.hide("^h$"), n=0)
    assert {row.name: row.self for row in found.rows} == {"main": 1, "f": 40, "g": 10}
    assert not found.log.warnings
    assert top(made)["f"] == (24, 40, 4)


def test_the_costs_of_a_graph_are_divided() -> None:
    """Of 40 that f costs main's calls have 30 and g's 10."""
    found = fastprof.top(fastprof.from_calls(GRAPH).hide("^f$"), n=0)
    assert {row.name: (row.self, row.inclusive, row.calls) for row in found.rows} == {
        "main": (19, 51, 0),
        "g": (16, 20, 1),
        "h": (16, 16, 4),
    }
    assert "an estimate" in " ".join(str(one) for one in found.log.warnings)


def test_roots_of_a_graph() -> None:
    found = fastprof.top(fastprof.from_calls(GRAPH).hide("^main$"), n=0)
    assert {row.name: row.self for row in found.rows} == {"[hidden]": 1, "f": 24, "g": 10, "h": 16}
    assert not found.log.warnings


def test_hidden_cycles_keep_the_total() -> None:
    calls = [
        ("main", 1),
        ("a", 10),
        ("b", 20),
        ("main", "a", 1, 37),
        ("a", "b", 5, 27),
        ("b", "a", 4, 21),
        ("b", "x", 2, 6),
        ("x", 6),
    ]
    found = fastprof.top(fastprof.from_calls(calls).hide("^[ab]$"), n=0)
    assert sum(row.self for row in found.rows) == 37
    assert {row.name for row in found.rows} <= {"main", "x", "[hidden]"}


@pytest.mark.parametrize("options", [{"hide": ["[aeiou]"]}, {"collapse_object": ["."]}, {"hide": ["."]}], ids=str)
@pytest.mark.parametrize(
    "path",  # the costs of everything.callgrind add up to more than 2^63 - 1
    [path for path in sorted((CORPUS / "callgrind/good").glob("*.callgrind")) if path.name != "everything.callgrind"],
    ids=lambda path: path.name,
)
def test_graphs_keep_their_total(path: Path, options: dict[str, Any]) -> None:
    assert fastprof.top(path, **options).total == fastprof.top(path).total


def test_a_graph_of_stacks_is_that_of_changed_stacks(tmp_path: Path) -> None:
    """Where no function has several callers, and for what a graph shows exactly."""
    text = "main;f;g;g;h 3\nmain;f 2\nmain;x;x 5\nx;x 1\n"
    (tmp_path / "a.folded").write_text(text)
    fastprof.convert(tmp_path / "a.folded", tmp_path / "a.callgrind", to="callgrind")
    for options in ({"hide": "^[gh]$"}, {"hide": "^f$"}, {"collapse_recursion": True}):
        assert top(tmp_path / "a.callgrind", **options) == top(tmp_path / "a.folded", **options)


def test_sums_beyond_64_bits_are_refused() -> None:
    with pytest.raises(fastprof.FastprofError, match="exceed"):
        fastprof.top(CORPUS / "callgrind/good/everything.callgrind", hide=".")


def test_a_hub_is_refused() -> None:
    """Hiding a function must not take memory that the file does not justify."""
    n = 2100
    calls = [("hub", 1), *((f"p{i}", "hub", 1, 1) for i in range(n)), *(("hub", f"c{i}", 1, 1) for i in range(n))]
    with pytest.raises(fastprof.FastprofError, match="2,100 callers and 2,100 callees"):
        fastprof.top(fastprof.from_calls(calls).hide("hub"))


def test_a_graph_has_roots_only_as_stacks(tmp_path: Path) -> None:
    with pytest.raises(fastprof.FastprofError, match="root_at= has no effect"):
        fastprof.top(fastprof.from_calls(GRAPH), root_at="^f$")
    fastprof.convert(fastprof.from_calls(GRAPH), tmp_path / "a.callgrind", to="callgrind")
    assert folded(tmp_path / "a.callgrind", tmp_path, root_at="^f$", prune=0) == {"f": 24, "f;h": 16}


def test_lines_of_functions_are_merged() -> None:
    path = CORPUS / "memray/good/small.memray"
    rows, merged = fastprof.top(path, n=0).rows, fastprof.top(path, n=0, merge_lines=True).rows
    places = Counter[Any]()
    for row in rows:
        places[row.name, row.file, row.object] += row.self
    assert len(places) < len(rows)
    assert {(row.name, row.file, row.object): row.self for row in merged} == places


@pytest.mark.parametrize("path", ["", "a;", "a;;b"])
def test_empty_names_of_a_path_are_refused(path: str) -> None:
    with pytest.raises(fastprof.FastprofError, match="has an empty name; a path is as 'main;a;f'"):
        fastprof.top(fastprof.from_calls(GRAPH), subtree=path)


def test_what_matches_nothing_is_reported() -> None:
    made = fastprof.from_stacks([(["main", "f"], 1)])
    found = fastprof.top(made.hide("zzz").collapse("libz"))
    assert [str(one) for one in found.log.warnings] == [
        "<from_stacks>: hide='zzz' matches no function",
        "<from_stacks>: collapse_object='libz' matches no object",
    ]


def test_steps_of_a_profile_apply_in_their_order() -> None:
    made = fastprof.from_stacks([(["main", "f", "g"], 1)])
    assert sums(made.hide("f").rename("g", "f")) == {(("main", ""), ("f", "")): 1}
    assert sums(made.rename("g", "f").hide("f")) == {(("main", ""),): 1}
    assert sums(made.hide("f").where(function="g")) == {(("main", ""), ("g", "")): 1}
    assert sums(made.hide("f").hide("g")) == {(("main", ""),): 1}


def test_the_line_of_the_innermost_frame_stays(tmp_path: Path) -> None:
    made = fastprof.from_stacks([([("f", "a.c", 3), ("f", "a.c", 5)], 7)])
    assert [row["line"] for row in made.collapse(recursion=True).rows("frames")] == [5]


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Rows beyond the limit are spilled, with the same result."""
    rows = [([f"f{i % 97}", f"g{i % 89}", f"h{i}", "leaf"], 1) for i in range(60_000)]
    made = fastprof.from_stacks(rows)
    assert folded(made.hide("^h"), tmp_path, max_memory=1 << 20) == folded(made.hide("^h"), tmp_path)


@pytest.mark.parametrize("options", [{"root_at": "^x$"}, {"subtree": "f;x"}])
def test_many_stacks_with_a_frame_of_many_inlined_functions(options: dict[str, str]) -> None:
    """To look at all of them again for each stack would take 10^10 steps."""
    n = 100_000
    profile = profile_proto.Profile(string_table=["", "f", "cpu", "count"])
    profile.sample_type.add(type=2, unit=3)
    profile.function.add(id=1, name=1)
    lines = profile.location.add(id=1).line
    for i in range(n):
        lines.add(function_id=1, line=i + 1)
    profile.sample.add(location_id=[1] * n, value=[1])
    with pytest.raises(fastprof.FastprofError, match="no row matches"):
        fastprof.top(profile.SerializeToString(), **options)


def test_many_callers_of_a_frame_of_many_inlined_functions(tmp_path: Path) -> None:
    """The same: its outermost function is compared with each of its callers."""
    n = 100_000
    profile = profile_proto.Profile(string_table=["", "f", "cpu", "count", "g"])
    profile.sample_type.add(type=2, unit=3)
    profile.function.add(id=1, name=1)
    profile.function.add(id=2, name=4)
    lines = profile.location.add(id=1).line
    for i in range(n):
        lines.add(function_id=1 + i % 2, line=i + 1)
        profile.location.add(id=2 + i).line.add(function_id=1, line=i + 1)
        profile.sample.add(location_id=[1, 2 + i], value=[1])
    fastprof.convert(profile.SerializeToString(), tmp_path / "out.pb", hide="^g$", merge_lines=True)
    made = profile_proto.Profile.FromString((tmp_path / "out.pb").read_bytes())
    assert sum(sample.value[0] for sample in made.sample) == n
    assert max(len(location.line) for location in made.location) == n // 2


def test_many_objects_with_frames_of_the_same_inlined_functions() -> None:
    """The lines are in frames of each object: to change all for each would take 4 * 10^8 steps and as many rows."""
    n = 20_000
    model = Model()
    bare, own = model.function("bare"), model.function("own", object_id=model.object("/lib/shared.so"))

    def chain(function: int, n: int, outer: int = 0) -> int:
        for i in range(n):
            outer = model.line(function, i + 1, outer=outer)
        return outer

    chains = [
        (chain(bare, n), ["app{}"]),
        (chain(own, n), ["shared.so"]),
        (chain(bare, 1, chain(own, n)), ["shared.so", "app{}"]),
        (chain(own, 1, chain(bare, n)), ["app{}", "shared.so"]),
    ]
    objects = [model.mapping(model.object(f"/bin/app{i}"), i << 12, (i + 1) << 12) for i in range(n)]
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    batch = Batch("stacks", n * len(chains), 1)
    batch.c.n = 0
    for i, mapping in enumerate(objects):
        for lines, _ in chains:
            batch.c.stack[batch.c.n] = model.stack(0, model.frame(mapping, i << 12, lines=lines))
            batch.c.n += 1
    (changed,) = transform([batch], model, Options(collapse_object=["."]), Log())
    for i in range(0, n, 7919):
        for k, (_, expected) in enumerate(chains):
            frame = model.row("stacks", changed.c.stack[i * len(chains) + k])[1]
            found, line = [], model.row("frames", frame)[-1]
            while line:
                function, _, _, line = model.row("lines", line)
                found.append(model.string(model.row("functions", function)[2]).decode())
            assert found[::-1] == [name.format(i) for name in expected]
