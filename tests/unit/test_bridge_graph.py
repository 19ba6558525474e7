"""Stacks -> graph: one test for each error of pprof's own Callgrind output, and the metadata of parts."""

from __future__ import annotations

import io
import re
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from fastprof.bridges.project.project import to_graph
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.engine import write
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.formats.callgrind.write import CallgrindWriter
from tests.support import profiles
from tests.support.profiles import At, Fn, Frame, Row, Sample

APP, LIB = ("/bin/app", 0x1000, 0x9000, 0x1000), ("/lib/libx.so", 0x7F000, 0x80000, 0)
MAIN, EVEN, ODD = Fn("main", "m.c"), Fn("even", "e.c", line=5), Fn("odd", "e.c", line=9)


def frame(f: Fn, line: int, address: int = 0, mapping: Any = None, returns: bool = False) -> Frame:
    return Frame(((f, line),), address, mapping, returns)


def rows(samples: list[Sample], types: list[ValueType] | None = None, **options: Any) -> list[Row]:
    model = Model()
    batches = profiles.stacks(model, samples, types=types)
    return [r for _, r in profiles.graph_rows(model, to_graph(batches, model, Options(**options), Log()))]


def inclusive(found: list[Row], name: str) -> int:
    """Computed like by readers: the arcs into a function, or its whole cost if it has no callers."""
    into = [r.values[0] for r in found if r.callee and r.callee.name == name]
    return sum(into) if into else sum(r.values[0] for r in found if r.at.function.name == name)


def callgrind(samples: list[Sample], types: list[ValueType] | None = None, **options: Any) -> str:
    model, log, out = Model(), Log(), io.BytesIO()
    opts = Options(compress_names=False, compress_positions=False, **options)
    with Sink(out) as sink:
        batches = profiles.stacks(model, samples, types=types)
        write(to_graph(batches, model, opts, log), CallgrindWriter(model, sink, opts, log))
        sink.commit()
    return out.getvalue().decode()


def test_example_of_the_docs() -> None:
    a = (frame(MAIN, 10), frame(EVEN, 20), frame(ODD, 30), frame(EVEN, 21))
    b = (frame(MAIN, 10), frame(EVEN, 21))
    assert rows([Sample(a, (5,)), Sample(b, (2,))]) == [
        Row(At(EVEN, "e.c", 20), ODD, 0, (5,)),
        Row(At(EVEN, "e.c", 21), None, 0, (7,)),
        Row(At(ODD, "e.c", 30), EVEN, 0, (0,)),
        Row(At(MAIN, "m.c", 10), EVEN, 0, (7,)),
    ]


def test_fault_1_target_of_a_call_is_a_place_of_the_callee_or_unknown() -> None:
    named = Sample((frame(MAIN, 10, 0x1100, APP), frame(EVEN, 6, 0x1200, APP)), (1,))
    unnamed = Sample((frame(MAIN, 10, 0x1100, APP), Frame((), 0x7F012, LIB)), (1,))
    calls = {r.callee.name: r for r in rows([named, unnamed]) if r.callee}
    assert calls["even"].target_address == 0
    assert calls["[libx.so+0x12]"].target_address == 0x7F012
    assert "calls=0 0 5 \n" in callgrind([named])


def test_fault_2_callee_in_another_object_is_one_function() -> None:
    text = callgrind([Sample((frame(MAIN, 10, 0x1100, APP), frame(EVEN, 6, 0x7F010, LIB)), (3,))])
    assert "cob=/lib/libx.so\ncfi=e.c\ncfn=even\n" in text
    assert "ob=/lib/libx.so\nfl=e.c\nfn=even\n" in text


def test_fault_3_call_counts() -> None:
    counted = [ValueType("calls", "count"), ValueType("time", "nanoseconds")]
    a, b = (frame(MAIN, 10),), (frame(MAIN, 10), frame(EVEN, 6))
    samples = [Sample(a, (1, 5)), Sample(b, (3, 7)), Sample(b, (4, 7))]
    assert [r.calls for r in rows(samples, counted) if r.callee] == [7]
    assert "Calls:" not in callgrind(samples, counted)
    uncounted = callgrind([Sample(b, (7,))])
    assert "desc: Calls: not counted by samples (calls=0," in uncounted
    assert re.findall("^calls=(.*)$", uncounted, re.MULTILINE) == ["0 5 "]


def test_fault_4_recursion_counts_a_sample_once() -> None:
    pingpong = tuple(frame([EVEN, ODD][i % 2], 20 + i % 2) for i in range(50))
    self_call = (frame(MAIN, 11), *[frame(ODD, 40)] * 9)
    found = rows([Sample((frame(MAIN, 10), *pingpong), (100,)), Sample(self_call, (7,))])
    assert (inclusive(found, "even"), inclusive(found, "odd"), inclusive(found, "main")) == (100, 107, 107)
    assert [r.values for r in found if r.callee == r.at.function] == [(0,)]  # the self-call exists
    # stacks that were cut at their root: the first caller is unknown, the first callee is known
    assert inclusive(rows([Sample(pingpong, (100,))]), "even") == 100


def test_fault_5_addresses_stay_as_recorded_and_every_value_is_kept() -> None:
    types = [ValueType("samples", "count"), ValueType("cpu", "nanoseconds")]
    called = (frame(MAIN, 10, 0x1105, APP, returns=True), frame(EVEN, 6, 0x1200, APP))
    found = rows([Sample(called, (2, 20), thread=5)], types)
    assert [(r.at.address, r.values) for r in found] == [(0x1200, (2, 20)), (0x1105, (2, 20))]
    text = callgrind([Sample(called, (2, 20), 5, "tag", 9)], types, per_thread=True)
    assert "events: samples cpu\n" in text
    assert "pid: 7\npart: 1\nthread: 5\n" in text
    assert "desc: Addresses: a calling position's address is the one its call returns to\n" in text


def test_fault_6_totals_are_the_sums_to_the_unit() -> None:
    samples = [Sample((frame(MAIN, i),), (2**61 // 7 + i,)) for i in range(3)]
    total = sum(s.values[0] for s in samples)
    assert f"summary: {total}\n" in callgrind(samples)
    assert f"totals: {total}\n" in callgrind(samples)


def test_fault_7_a_callee_is_called_what_its_function_is() -> None:
    pingpong = tuple(frame([EVEN, ODD][i % 2], 20 + i % 2) for i in range(6))
    text = callgrind([Sample(pingpong[: n + 1], (1,)) for n in range(6)])
    names = {
        kind: {line[len(kind) :] for line in text.splitlines() if line.startswith(kind)} for kind in ("fn=", "cfn=")
    }
    assert names["cfn="] <= names["fn="] == {"even", "odd"}


@pytest.mark.parametrize(
    ("unnamed", "name"),
    [
        (Frame((), 0x7F012, LIB), "[libx.so+0x12]"),
        (Frame((), 0x2000, APP), "[app+0x2000]"),
        (Frame((), 0x7FFE10, ("[vdso]", 0x7FFE00, 0x7FFF00, 0)), "[vdso+0x10]"),
        (Frame((), 0xABC), "0xabc"),
        (Frame((), 0), "0x0"),
        (frame(Fn("", "x.c"), 3, 0x7F012, LIB), "[libx.so+0x12]"),
        (frame(Fn("", "x.c"), 3), "[unknown]"),
    ],
)
def test_fault_8_no_function_is_nameless(unnamed: Frame, name: str) -> None:
    found = rows([Sample((unnamed,), (1,))])
    assert [r.at.function.name for r in found] == [name]
    text = callgrind([Sample((frame(MAIN, 10, 0x1100, APP), unnamed), (1,))])
    assert not any(line.endswith("=") and not line.startswith(("ob=", "cob=")) for line in text.splitlines())


def test_fault_8_samples_without_a_stack_keep_their_cost() -> None:
    assert [(r.at.function.name, r.values) for r in rows([Sample((), (4,))])] == [("[no stack]", (4,))]


def test_fault_9_inlined_functions_are_called() -> None:
    inlined = Frame(((Fn("mix", "mix.h"), 3), (EVEN, 7)), 0x1200, APP)
    found = rows([Sample((frame(MAIN, 10, 0x1100, APP), inlined), (5,))], inlines=False)
    assert [(r.at.function.name, r.at.file, r.at.line) for r in found] == [("even", "mix.h", 3), ("main", "m.c", 10)]
    found = rows([Sample((frame(MAIN, 10, 0x1100, APP), inlined), (5,))])
    assert [(r.at.function.name, r.at.file, r.at.line, r.callee and r.callee.name) for r in found] == [
        ("even", "e.c", 7, "mix"),
        ("main", "m.c", 10, "even"),
        ("mix", "mix.h", 3, None),
    ]


def peak_tables(n_samples: int) -> tuple[int, int]:
    """Python's peak bytes and C's rows of sums, after `n_samples` samples of 40 stacks."""
    model = Model()
    pool = [(frame(MAIN, 10), *[frame(ODD, i)] * i) for i in range(40)]
    batch = next(profiles.stacks(model, [Sample(s, (1,)) for s in pool], 40))
    stacks = ffi.gc(lib.fp_project_new(model.c, 0, 0), lib.fp_project_free)
    err, columns = ffi.new("struct fp_err *"), ffi.new("uint32_t[]", [0])
    assert lib.fp_project_set_values(stacks, 1) == 0
    tracemalloc.start()
    for _ in range(n_samples // 40):
        assert lib.fp_project_put(stacks, batch.c, columns, err) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak // 4096, stacks.n_keys


def test_fault_10_memory_is_of_distinct_stacks() -> None:
    assert peak_tables(400_000) == peak_tables(4_000)


def test_parts_with_other_value_types_are_put_side_by_side() -> None:
    model, log = Model(), Log()
    one = profiles.stacks(model, [Sample((frame(MAIN, 1),), (1, 2))], types=[ValueType("a"), ValueType("b")])
    two = profiles.stacks(model, [Sample((frame(MAIN, 1),), (10, 20))], types=[ValueType("c"), ValueType("a")])

    def both() -> Any:
        yield from one
        yield from two

    found = profiles.graph_rows(model, to_graph(both(), model, Options(), log))
    part, row = found[0]
    assert [t.name for t in model.parts[part].value_types] == ["a", "b", "c"]
    assert row.values == (21, 2, 10)
    assert model.parts[part].summary == [21, 2, 10]


def test_what_a_graph_cannot_say_is_counted() -> None:
    model, log = Model(), Log()
    samples = [Sample((frame(MAIN, 1),), (1,), 0, "x", 7), Sample((frame(MAIN, 1),), (1,), 0, "x")]
    list(to_graph(profiles.stacks(model, samples), model, Options(), log))
    assert log.not_representable == Counter({"sample-labels": 2, "sample-times": 1})


def test_an_empty_profile_is_an_empty_part() -> None:
    model = Model()
    batches = list(to_graph([], model, Options(), Log()))
    assert [len(b) for b in batches] == [0]
    assert model.parts[batches[0].part].positions == ("line",)


@pytest.mark.parametrize(("column", "n"), [("stack", 2), ("thread", 1)])  # stacks: none, and [no stack]
def test_ids_that_are_not_there_are_errors(column: str, n: int) -> None:
    model = Model()
    batch = Batch("stacks", 1, 1)
    batch.c.part = model.add_part(Part(value_types=[ValueType("x")]))
    batch.c.n = 1
    batch[column][0] = 1000
    with pytest.raises(FastprofError, match=f"1000, expected less than {n}$"):
        list(to_graph([batch], model, Options(per_thread=True), Log()))


def test_sums_of_too_many_values_have_no_memory() -> None:
    """There is room for the sums of 9,217 stacks.  This many values of each are 128 TiB, but few modulo 2^32."""
    model = Model()
    frame = model.frame(0, 1)
    stack = 0
    for _ in range(8191):
        stack = model.stack(stack, frame)
    sums = owned(lib.fp_project_new(model.c, False, False), "a projection")
    assert lib.fp_project_set_values(sums, 1) == 0
    batch, columns, err = Batch("stacks", 1, 1), ffi.new("uint32_t[]", 1), ffi.new("struct fp_err *")
    assert lib.fp_project_put(sums, batch.c, columns, err) == lib.FP_DONE
    assert lib.fp_project_set_values(sums, (4096 << 32) // 9217 + 1) == lib.FP_E_NOMEM
