"""The contexts of a page and their label sets, added up round by round, against a plain dict of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.model import Model
from tests.support import profiles
from tests.support.profiles import Fn, Frame, Sample

FRAMES = [Frame(((Fn(name, "x.c"), 0),)) for name in "abc"] + [Frame(((Fn("d", "x.c"), 0), (Fn("a", "x.c"), 0)))]
STACKS = st.lists(st.sampled_from(FRAMES), min_size=1, max_size=5).map(tuple)


def samples(labels: st.SearchStrategy[str]) -> st.SearchStrategy[list[Sample]]:
    of = st.tuples(STACKS, st.tuples(st.integers(-3, 1 << 40), st.integers(0, 9)), st.sampled_from([0, 5, 6]), labels)
    return st.lists(of.map(lambda s: Sample(*s)), min_size=1, max_size=40)


ALIKE = samples(st.just("x"))
SAMPLES = st.one_of(
    samples(st.sampled_from(["", "x", "y"])),
    ALIKE,
    st.tuples(ALIKE, samples(st.just("y"))).map(lambda two: two[0] + two[1]),
)
Context = tuple[int | str, ...]  # 1 + its thread, then its functions
Costs = Counter[tuple[Context, str, int]]  # by context, label and value column


def expected(model: Model, of: list[Sample]) -> Costs:
    sums: Costs = Counter()
    for sample in of:
        thread = lib.fp_model_thread(model.c, 0, 7, sample.thread) if sample.thread else 0
        functions = [one.name for frame in sample.frames for one, _ in reversed(frame.lines)]
        for k, value in enumerate(sample.values):
            sums[(1 + thread, *functions), sample.label, k] += value
    return sums


def found(model: Model, contexts: Any) -> Costs:
    """After fp_contexts_cut: an entry's set costs what it says, and `set` the rest of the context."""
    labels, n, sums = contexts.labels, contexts.n, Costs()
    paths = list[Context]()
    names = [""] + [model.string(model.row("labels", i)[2]).decode() for i in range(1, model.count("labels"))]
    for i in range(n):
        up, function = contexts.up[i], contexts.function[i]
        name = model.string(model.row("functions", function)[2]).decode() if function else "[cut]"
        paths.append((*paths[i - up], name) if up else (1 + contexts.thread[i],))
        for k in range(contexts.n_values):
            rest = names[labels.set[i]] if labels.set else ""
            sums[paths[i], rest, k] += contexts.self[k * n + i]
            for at in range(labels.n_entries):
                if labels.entry_context[at] == i:
                    value = labels.entry_self[k * labels.n_entries + at]
                    sums[paths[i], names[labels.entry_set[at]], k] += value
                    sums[paths[i], rest, k] -= value
    return sums


def added(model: Model, of: list[Sample], capacity: int, lanes: int, most: int) -> Any:
    """Contexts, of which at most `most` are kept after each batch."""
    err, columns = ffi.new("struct fp_err *"), ffi.new("uint32_t[]", [0, 1])
    contexts = owned(lib.fp_contexts_new(), "the context tree")
    contexts.lanes = lanes
    project = owned(lib.fp_project_new(model.c, 1, 1), "the call graph")
    assert lib.fp_project_set_values(project, 2) == 0
    for number, batch in enumerate(profiles.stacks(model, of, capacity)):
        assert lib.fp_project_put(project, batch.c, columns, err) == lib.FP_DONE
        assert lib.fp_context_labels_put(ffi.addressof(contexts.labels), project, batch.c, columns, err) == lib.FP_DONE
        if number % 2:
            continue
        assert lib.fp_project_end(project, err) == lib.FP_DONE
        assert lib.fp_contexts_add(contexts, project, 1 << 20, err) == lib.FP_DONE
        lib.fp_project_empty(project)
        assert lib.fp_contexts_shrink(contexts, most, err) == lib.FP_DONE
    assert lib.fp_project_end(project, err) == lib.FP_DONE
    assert lib.fp_contexts_add(contexts, project, 1 << 20, err) == lib.FP_DONE
    assert lib.fp_contexts_end(contexts, err) == lib.FP_DONE
    assert lib.fp_contexts_cut(contexts, 0.0, 1 << 20, err) == lib.FP_DONE
    return contexts


@pytest.mark.parametrize("lanes", [1, 3, lib.FP_CONTEXT_LANES])
@given(SAMPLES, st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_contexts_and_their_labels_add_up(lanes: int, of: list[Sample], capacity: int) -> None:
    model = Model()
    got, wanted = found(model, added(model, of, capacity, lanes, 1 << 20)), expected(model, of)
    assert {key: cost for key, cost in got.items() if cost} == {key: cost for key, cost in wanted.items() if cost}


@given(SAMPLES, st.integers(1, 9), st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_what_is_cut_keeps_its_labels(of: list[Sample], capacity: int, most: int) -> None:
    model = Model()
    sums, wanted = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for (_, label, k), cost in found(model, added(model, of, capacity, lib.FP_CONTEXT_LANES, most)).items():
        sums[label, k] += cost
    for (_, label, k), cost in expected(model, of).items():
        wanted[label, k] += cost
    assert sums == wanted or +sums == +wanted
