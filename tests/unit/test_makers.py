"""Profiles of one's own data: from_stacks, from_calls, from_spans, from_tables and Recorder."""

from __future__ import annotations

import gc
import re
import threading
from array import array
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy
import polars
import pyarrow
import pytest

import fastprof
from fastprof.formats.archive import write as archives
from fastprof.inputs import made as of_inputs


def folded(profile: fastprof.Profile, tmp_path: Path) -> str:
    fastprof.convert(profile._path, tmp_path / "out.folded")
    return (tmp_path / "out.folded").read_text()


def spans(profile: fastprof.Profile) -> list[tuple[Any, ...]]:
    return [(row["function"], row["ts"], row["dur"], row["depth"]) for row in profile.rows("spans")]


# ---- stacks


def test_stacks_of_names_places_and_frames(tmp_path: Path) -> None:
    rows = [
        (["main", "work"], 12),
        (("main", ("work", "w.py", 7)), 1),
        (iter([fastprof.Frame("main", object="/bin/x", address=4096), b"g"]), numpy.int64(2)),
        ([], 5),
    ]
    made = fastprof.from_stacks(rows, values=["cpu"])
    assert (made.view, made.name) == ("stacks", "<from_stacks>")
    assert [value.name for value in made.value_types] == ["cpu"]
    assert [row["cpu"] for row in made.rows("samples")] == [12, 1, 2, 5]
    places = [(row["function"], row["file"], row["line"], row["object"], row["address"]) for row in made.rows("frames")]
    assert places[2:] == [
        ("main", None, None, None, None),
        ("work", "w.py", 7, None, None),
        ("main", None, None, "/bin/x", 4096),
        ("g", None, None, None, None),
    ]
    assert folded(made, tmp_path).splitlines() == ["[no stack] 5", "main;work 12", "main;work (w.py) 1", "main (x);g 2"]


def test_the_leaf_may_come_first() -> None:
    rows = [(("leaf", "middle", "root"), 1)]
    frames = fastprof.from_stacks(rows, leaf_first=True).rows("frames")
    assert [row["function"] for row in frames] == ["root", "middle", "leaf"]


def test_labels_threads_and_times() -> None:
    rows = [
        (["f"], (1, 2), "GET /", 7, "worker", 5),
        (["f"], [3, 4], None, None, None, None),
        (["f"], (5, 6), 12, "main", 9, 0),
        (["f"], (7, 8), "", None, None, None),
    ]
    labels = ("endpoint", "thread", "process", "time")
    made = fastprof.from_stacks(rows, values=["calls", ("time", "nanoseconds")], labels=labels)
    found = [(row["calls"], row["time"], row["labels"], row["thread"], row["ts"]) for row in made.rows("samples")]
    assert found == [
        (1, 2, '{"endpoint": "GET /"}', 7, 5),
        (3, 4, None, None, None),
        (5, 6, '{"endpoint": 12}', 2, None),
        (7, 8, None, None, None),
    ]
    assert any("worker" in row.name for row in fastprof.top(made, by="thread").rows)


def test_stacks_that_come_again_are_found_and_their_table_may_fill() -> None:
    names = [f"f{i}" for i in range(50)]
    stacks = [tuple(names[(i * k) % 50] for k in range(1, 1000)) for i in range(1, 50)] * 100  # 4.9 M frames: 16 MiB
    made = fastprof.from_stacks((stack, 1) for stack in stacks)
    made_frames: dict[int, list[str]] = {}
    for row in made.rows("frames"):
        made_frames.setdefault(row["stack_id"], []).append(row["function"])
    counts = Counter(tuple(made_frames[row["stack_id"]]) for row in made.rows("samples"))
    assert counts == Counter(stacks)


def test_equal_names_are_one_function_whatever_object_holds_them() -> None:
    rows = [(["".join(("ma", "in")), "x" * (i % 3)], 1) for i in range(9)]
    assert fastprof.info(fastprof.from_stacks(rows)).facts["functions"] == 4  # "" is a name, too
    keys = [(f"f{i % 90}", None if i % 2 else "a.c", i % 3) for i in range(999)]
    made = fastprof.from_stacks([([key], 1) for key in keys])
    frames = {(row["function"], row["file"], row["line"] or 0) for row in made.rows("frames")}
    assert frames == {*keys}


def test_values_of_frames_that_are_equal_but_not_the_same_are_told_apart() -> None:
    """True is 1, and what a class of its own says of equality does not matter."""

    class Odd(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return True

    rows = [([("f", "a.c", 1)], 1), ([("f", "a.c", True)], 2), ([Odd("f")], 4), (["f"], 8), ([("f",)], 16)]
    made = fastprof.from_stacks(rows)
    lines = Counter[object]()
    for row in made.rows("samples"):
        lines[row["stack_id"]] += row["samples"]
    assert sorted(lines.values()) == [3, 28]


def test_no_rows() -> None:
    assert fastprof.from_stacks([]).view == "stacks"
    assert fastprof.from_calls([]).view == "graph"
    assert fastprof.from_spans([]).view == "timeline"
    assert fastprof.Recorder().profile().view == "timeline"


class Lies:
    def __index__(self) -> Any:
        return "7"


class Fails:
    def __iter__(self) -> Iterator[Any]:
        yield "f"
        raise KeyError("mine")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (7, "is int, expected (stack, value)"),
        (("main;work", 1), "expected a sequence of frames"),
        ((["f"],), "has 1 items, expected 2"),
        ((["f"], 1.5), "a value is float"),
        ((["f"], 1 << 63), "expected an integer of 64 bits"),
        ((["f"], (1, 2)), "has 2 values, expected 1"),
        (([None], 1), "a frame is None"),
        (([()], 1), "a frame is ()"),
        (([("f", "g", -1)], 1), "a line is -1"),
        (([("f", 7)], 1), "a file is int"),
        (([("f", "", 1, "", 1 << 64)], 1), "an address is"),
        (([("f", "", 1, "", "x")], 1), "an address is"),
        (([("f", "", Lies())], 1), "a line is Lies, expected an integer"),
        ((7, 1), "a stack is int, expected a sequence of frames"),
        ((["x" * (1 << 20) + "y"], 1), "longer than the limit of 1 MiB"),
        ((["\ud800"], 1), "has surrogates"),
        (((f for f in [3]), 1), "a frame is 3"),
    ],
)
def test_rows_that_are_none_are_located(row: Any, what: str) -> None:
    good = (["main"], 1)
    with pytest.raises(fastprof.UsageError, match=f"from_stacks: row 2: .*{re.escape(what)}"):
        fastprof.from_stacks([good, good, row])


def test_exceptions_of_the_callers_iterators_pass_through() -> None:
    with pytest.raises(KeyError, match="mine"):
        fastprof.from_stacks([(Fails(), 1)])

    def rows() -> Iterator[Any]:
        yield ["f"], 1
        raise ValueError("of the caller")

    with pytest.raises(ValueError, match=r"^of the caller$"):
        fastprof.from_stacks(rows())
    with pytest.raises(ValueError, match=r"^of the caller$"):
        fastprof.from_spans(("f", i, 1 // (3 - i)) if i < 3 else _fail() for i in range(9))


def _fail() -> Any:
    raise ValueError("of the caller")


def test_what_a_row_runs_may_change_the_row() -> None:
    frames: list[Any] = []

    class Shrinks:
        def __index__(self) -> int:
            frames.clear()
            gc.collect()
            return 3

    frames += [("f", "a", Shrinks()), *("g" * i for i in range(1000))]
    made = fastprof.from_stacks([(frames, 1)])
    assert len(list(made.rows("frames"))) == 1001


@pytest.mark.parametrize(
    ("keywords", "what"),
    [
        ({"values": []}, "has 0 value types"),
        ({"values": [("a", "b"), "a"]}, "the same name"),
        ({"values": [("a", 3)]}, "no list of"),
        ({"labels": "thread"}, "no list of different names"),
        ({"labels": ["a", "a"]}, "no list of different names"),
    ],
)
def test_arguments_of_from_stacks(keywords: Any, what: str) -> None:
    with pytest.raises(fastprof.UsageError, match=what):
        fastprof.from_stacks([], **keywords)


def test_what_is_made_is_an_input_of_every_function(tmp_path: Path) -> None:
    made = fastprof.from_stacks([(["main", "f"], 1), (["main", "g"], 2)], values=["x"])
    again = fastprof.from_stacks((made.stack(row["stack_id"]), row["x"]) for row in [*made.rows("samples")])
    made.where(function="g").convert(tmp_path / "out.pb.gz")
    assert [row.name for row in fastprof.top(tmp_path / "out.pb.gz").rows] == ["g", "main"]
    other = fastprof.from_stacks([(["f"], 4)], values=["x"])
    assert {row.name: row.new for row in fastprof.diff(made, other).rows} == {"f": (4,), "g": (0,), "main": (0,)}
    fastprof.merge([made, again.rename("f", "h")], tmp_path / "both.folded", union=True)
    fastprof.archive_add(tmp_path / "all.fpa", made, name="one")
    assert fastprof.archive_list(tmp_path / "all.fpa")[0]["name"] == "one"


# ---- calls


def test_calls() -> None:
    rows = [
        (("main", "m.c", 3), 3),
        ("work", 12),
        (("main", "m.c", 4), ("work", "w.c", 9), 2, 12),
        ("main", "io", None, 1),
    ]
    made = fastprof.from_calls(rows, values=["Ir"])
    found = [(row["kind"], row["function"], row["line"], row["callee"], row["calls"], row["Ir"]) for row in made.rows()]
    assert found == [
        ("cost", "main", 3, None, None, 3),
        ("cost", "work", None, None, None, 12),
        ("call", "main", 4, "work", 2, 12),
        ("call", "main", None, "io", None, 1),
    ]
    for row, what in [(("f",), "expected"), (("f", "g", -1, 2), "0 or more"), ((("f", "", 0, "", 5), 1), "address")]:
        with pytest.raises(fastprof.UsageError, match=f"from_calls: row 0: .*{what}"):
            fastprof.from_calls([row])


# ---- spans

TREE = [("main", 0, 100), ("a", 0, 40), ("b", 0, 10), ("c", 10, 40), ("d", 40, 100), ("e", 100, 120)]
FOUND = [("b", 0, 10, 2), ("c", 10, 30, 2), ("a", 0, 40, 1), ("d", 40, 60, 1), ("main", 0, 100, 0), ("e", 100, 20, 0)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [2, 3, 1, 4, 0, 5], [5, 4, 3, 2, 1, 0]])
def test_spans_in_any_order(order: list[int]) -> None:
    assert spans(fastprof.from_spans([TREE[i] for i in order])) == FOUND


@pytest.mark.parametrize(
    "columns",
    [
        lambda names, starts, ends: {"name": names, "start": starts, "end": ends},
        lambda names, starts, ends: {"name": names, "start": array("q", starts), "end": numpy.array(ends, "u4")},
        lambda names, starts, ends: {"name": numpy.array(names), "start": numpy.array(starts)[::1], "end": tuple(ends)},
        lambda names, starts, ends: polars.DataFrame({"name": names, "start": starts, "end": ends}),
        lambda names, starts, ends: pyarrow.table({"name": names, "start": starts, "end": ends}),
        lambda names, starts, ends: (
            {"name": n, "start": s, "dur": e - s} for n, s, e in zip(names, starts, ends, strict=True)
        ),
    ],
)
def test_spans_of_columns(columns: Any) -> None:
    names, starts, ends = map(list, zip(*TREE, strict=True))
    assert spans(fastprof.from_spans(columns(names, starts, ends))) == FOUND


class Zoned:
    """A column of dates with a zone as pandas has it, which becomes an array of objects."""

    dtype = "datetime64[ns, UTC+02:00]"

    def __init__(self, dates: list[datetime]) -> None:
        self.dates = dates

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return numpy.array(self.dates, dtype=object)


def test_dates_and_durations_of_any_kind() -> None:
    day = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2)))  # 1704060000 s since 1970, with any zone
    plain, whole = datetime(2023, 12, 31, 22), timedelta(days=1, microseconds=3)
    columns: list[tuple[Any, Any]] = [
        ([day], [whole]),
        ([plain], [whole]),
        (numpy.array([plain], "M8[us]"), numpy.array([whole], "m8[us]")),
        (polars.Series([plain]), polars.Series([whole]).cast(polars.Duration("ns"))),
        (Zoned([day]), numpy.array([whole], "m8[ns]")),
    ]
    for start, dur in columns:
        (row,) = fastprof.from_spans({"name": ["a"], "start": start, "dur": dur}, unit="s").rows()
        assert (row["ts"], row["dur"]) == (1704060000 * 10**9, 86400 * 10**9 + 3000)
    with pytest.raises(fastprof.UsageError, match="row 1: has no start"):
        fastprof.from_spans({"name": ["a", "b"], "start": numpy.array([plain, "NaT"], "M8[s]"), "dur": [1, 1]})
    assert spans(fastprof.from_spans([("a", plain, plain + whole)]))[0][0] == "a"
    assert spans(fastprof.from_spans(polars.LazyFrame({"name": ["a"], "start": [1], "end": [3]}))) == [("a", 1, 2, 0)]


def test_units_and_fractions() -> None:
    made = fastprof.from_spans({"name": ["f"], "start": [0.25], "end": [1.5]}, unit="s")
    assert spans(made) == [("f", 250_000_000, 1_250_000_000, 0)]
    with pytest.raises(fastprof.UsageError, match="unit is 'h'"):
        fastprof.from_spans([], unit="h")  # type: ignore[arg-type]


def test_calls_that_overlap_are_repaired_and_counted() -> None:
    made = fastprof.from_spans([("f", 0, 10), ("g", 5, 20)])
    assert spans(made) == [("g", 5, 5, 1), ("f", 0, 10, 0)]
    assert {*made.log.repairs} == {"unwound-frames", "orphan-exits"}


def test_threads_by_number_and_by_name(tmp_path: Path) -> None:
    rows = [("f", 0, 10, "ui", "app"), ("f", 0, 10, "io", "app"), ("f", 0, 10, None, "app")]
    made = fastprof.from_spans(rows)
    assert len({row["thread"] for row in made.rows("spans")}) == 3
    fastprof.convert(made, tmp_path / "out.pftrace")
    again = fastprof.top(tmp_path / "out.pftrace", by="thread")
    named = " ".join(row.name for row in again.rows)
    assert all(f"app (1): {name} (" in named for name in ("ui", "io"))
    big = fastprof.from_spans({"name": ["f"], "start": [0], "end": [1], "thread": [1 << 40]})
    assert "1099511627776" in fastprof.top(big, by="thread").rows[0].name


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (7, "is int, expected a data frame"),
        ("abc", "is str, expected a data frame"),
        ({"name": ["f"]}, "has no column ts"),
        ({"name": ["f"], "start": [1]}, "has no column end or dur"),
        ({"name": ["f"], "start": [1], "end": [2], "x": [1]}, "the column 'x' is unknown"),
        ({"name": ["f"], "function": ["f"], "start": [1], "end": [2]}, "are the same"),
        ({"name": ["f"], "start": [1, 2], "end": [2]}, "different lengths"),
        ({"name": [7], "start": [1], "end": [2]}, "column 'name': has numbers, expected texts"),
        ({"name": ["f"], "start": ["1"], "end": [2]}, "column 'start': has texts, expected numbers"),
        ({"name": ["f", 7], "start": [1, 1], "end": [2, 2]}, "column 'name': row 1: is int, expected a text"),
        ({"name": ["f"], "start": [2], "end": [1]}, "row 0: begins at 2 and ends at 1"),
        ({"name": ["f"], "start": [-1], "end": [1]}, "row 0: begins at -1"),
        ({"name": ["f"], "start": [1], "dur": [-1]}, "row 0: its duration is -1"),
        ({"name": ["f"], "start": [1], "dur": [(1 << 63) - 1]}, "row 0: its duration is"),
        ({"name": ["f"], "start": [1 << 63], "end": [1]}, "column 'start': row 0: is 9223372036854775808"),
        ({"name": ["f"], "start": [None], "end": [1]}, "has no value|has no start"),
        ({"name": ["f", "g"], "start": [1, 1], "end": [1, None]}, "row 1: has no end"),
        ({"name": ["f", "g"], "start": [1, 1], "dur": [1, None]}, "row 1: has no duration"),
        ({"name": ["f"], "start": [1.5], "end": [2]}, "column 'start': row 0: is 1.5, expected an integer"),
        ({"name": ["f"], "start": [float("inf")], "end": [2]}, "expected less than 2"),
        ({"name": ["f"], "start": [object()], "end": [2]}, "row 0: is object, expected a number"),
        ({"name": ["f"], "start": object(), "end": [2]}, "is no column"),
        ({"name": "f", "start": [1], "end": [2]}, "is no column"),
        ({"name": ["f"], "start": numpy.zeros((1, 1)), "end": [2]}, "expected"),
        ([("f", 1)], "has no column end"),
        ([("f", 1, 2), ("f", 1)], "row 1: has not the items"),
        ([{"name": "f", "start": 1, "end": 2}, {"name": "f", "start": 1, "x": 2}], "row 1: has not the items"),
        ([("f",) * 9], "row 0: has 9 items"),
        ([("f", 1, 2), 7], "row 1: has not the items"),
        ([7], "has no column function, ts"),
    ],
)
def test_spans_that_are_none_are_located(table: Any, what: str) -> None:
    with pytest.raises(fastprof.UsageError, match=f"from_spans: .*({what})"):
        fastprof.from_spans(table)


def test_rows_are_counted_over_chunks() -> None:
    rows = [("f", i, i + 1) for i in range(70_000)] + [("f", 5, 4)]
    with pytest.raises(fastprof.UsageError, match="row 70,000: begins at 5"):
        fastprof.from_spans(rows)


# ---- recorders


def test_a_recorder_of_threads() -> None:
    recorder = fastprof.Recorder()

    def work() -> None:
        for _ in range(3000):
            with recorder.span("outer"), recorder.span(("inner", "a.py", 3)):
                pass

    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = recorder.profile()
    assert Counter((name, depth) for name, _, _, depth in spans(made)) == {("outer", 0): 12000, ("inner", 1): 12000}
    assert not made.log.repairs
    named = " ".join(row.name for row in fastprof.top(made, by="thread").rows)
    assert all(f"worker {i} (" in named for i in range(4))
    with pytest.raises(fastprof.UsageError, match="the recording has ended"):
        recorder.enter("f")


def test_times_tasks_and_open_calls() -> None:
    recorder = fastprof.Recorder(clock=iter(range(100)).__next__)
    recorder.exit(thread="task 1")  # the tracer began within a call
    recorder.enter("a", thread="task 1")
    recorder.enter("b", thread="task 2", time=50)
    recorder.exit(thread="task 2", time=70)
    recorder.enter("c", thread="task 1", time=80)
    assert sorted(spans(recorder.profile())) == [("a", 0, 80, 0), ("b", 50, 20, 0), ("c", 80, 0, 1)]


def test_a_recorder_of_samples() -> None:
    recorder = fastprof.Recorder(values=[("cpu", "nanoseconds")], clock=lambda: 7)
    for i in range(5000):
        recorder.sample(["main", "f"], i)
    made = recorder.profile()
    assert sum(row["cpu"] for row in made.rows("samples")) == 5000 * 4999 // 2
    assert {row["ts"] for row in made.rows("samples")} == {7}
    mixed = fastprof.Recorder()
    mixed.enter("f")
    with pytest.raises(fastprof.UsageError, match="has calls and samples"):
        mixed.sample(["f"])
    with pytest.raises(fastprof.UsageError, match="Recorder: a frame is 7"):
        mixed.enter(7)  # type: ignore[arg-type]
    threads: list[Any] = [[1], 1.5, b"x"]  # neither numbers nor texts
    for thread in threads:
        with pytest.raises(fastprof.UsageError, match=r"Recorder: thread is .*, expected a number or a text"):
            mixed.enter("f", thread=thread)
        with pytest.raises(fastprof.UsageError, match=r"row 0: a thread or process is"):
            fastprof.from_stacks([(["f"], 1, thread)], labels=["thread"])


def test_a_recorder_writes_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_inputs, "_IN_MEMORY", 100)
    monkeypatch.setattr(archives, "CHUNK_ROWS", 1 << 16)
    recorder = fastprof.Recorder()
    for i in range(120_000):
        recorder.enter("f", time=3 * i)
        recorder.exit(time=3 * i + 1)
    made = recorder.profile()
    assert not isinstance(made, bytes)
    for _ in range(2):
        assert sum(len(batch) for batch in made) == 240_000
    assert fastprof.top(made).rows[0].calls == 120_000


def test_what_a_tracer_records_while_a_batch_is_written_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = fastprof.Recorder()
    write = of_inputs.Made.put
    n = 0

    def put(self: Any, batch: Any) -> None:
        nonlocal n
        n += 1
        recorder.enter("within", time=1 << 40)
        recorder.exit(time=1 << 40)
        write(self, batch)

    monkeypatch.setattr(of_inputs.Made, "put", put)
    for i in range(10_000):
        recorder.enter("f", time=i)
        recorder.exit(time=i)
    monkeypatch.undo()
    found = Counter(name for name, *_ in spans(recorder.profile()))
    assert found == {"f": 10_000, "within": n}


def test_a_disk_that_is_full_ends_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = fastprof.Recorder()

    def fails(self: Any, batch: Any) -> None:
        raise fastprof.FastprofError("temporary file: no space")

    monkeypatch.setattr(of_inputs.Made, "put", fails)
    with pytest.raises(fastprof.FastprofError, match="no space"):
        for i in range(10_000):
            recorder.enter("f", time=i)
    with pytest.raises(fastprof.FastprofError, match="no space"):
        recorder.profile()
