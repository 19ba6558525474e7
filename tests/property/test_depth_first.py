"""The order in which a projection's stacks become contexts once these do not fit, against a plain dict of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.model import Model
from tests.support import profiles
from tests.support.profiles import Fn, Frame, Sample

FRAMES = [Frame(((Fn(name, "x.c"), 0),)) for name in "abc"]  # one for each function: each stack is a context of its own
STACKS = st.lists(st.sampled_from(FRAMES), min_size=1, max_size=4).map(tuple)
SAMPLES = st.lists(
    st.tuples(STACKS, st.tuples(st.integers(1, 1 << 40)), st.sampled_from([0, 5, 6])).map(lambda s: Sample(*s)),
    min_size=1,
    max_size=30,
)

Context = tuple[int, ...]  # 1 + its thread, then its functions


def nodes(contexts: Any) -> list[Context]:
    """All contexts in the order in which they were added; the first is that above all threads."""
    table, found = contexts.nodes, list[Context]([()])
    for i in range(1, table.n):
        parent, function, thread = table.words[3 * i : 3 * i + 3]
        found.append((thread,) if thread else (*found[parent], function))
    return found


def expected(model: Model, samples: list[Sample]) -> Counter[Context]:
    sums: Counter[Context] = Counter()
    for sample in samples:
        thread = lib.fp_model_thread(model.c, 0, 7, sample.thread) if sample.thread else 0
        functions = (model.function(*frame.lines[0][0][:2]) for frame in sample.frames)
        sums[(1 + thread, *functions)] += sample.values[0]
    return sums


def costs(contexts: Any) -> Counter[Context]:
    """The own cost of each context, after fp_contexts_cut."""
    paths, found = list[Context](), Counter[Context]()
    for i in range(contexts.n):
        up, function = contexts.up[i], contexts.function[i]
        paths.append((*paths[i - up], function) if up else (1 + contexts.thread[i],))
        found[paths[i]] += contexts.self[i]
    return +found


@given(SAMPLES, st.integers(0, 12))
@settings(deadline=None)
def test_what_does_not_fit_is_added_depth_first(samples: list[Sample], most: int) -> None:
    """Each new context precedes those that it calls, which follow at once; nothing is lost or added twice."""
    model, err = Model(), ffi.new("struct fp_err *")
    project = owned(lib.fp_project_new(model.c, 1, 1), "the call graph")
    assert lib.fp_project_set_values(project, 1) == 0
    for batch in profiles.stacks(model, samples):
        assert lib.fp_project_put(project, batch.c, ffi.new("uint32_t[]", [0]), err) == lib.FP_DONE
    assert lib.fp_project_end(project, err) == lib.FP_DONE
    contexts = owned(lib.fp_contexts_new(), "the context tree")
    contexts.lanes = 1
    status = lib.fp_contexts_add(contexts, project, most, err)
    before = contexts.nodes.n
    sums = expected(model, samples)
    while status == lib.FP_FULL:
        n = contexts.nodes.n
        status = lib.fp_contexts_add(contexts, project, n, err)  # up to the next stack with a new context
        assert not [context for context in nodes(contexts)[n:-1] if sums[context]], "not before those that it calls"
    assert status == lib.FP_DONE
    added = nodes(contexts)[before:]
    for above in {context[:n] for context in added for n in range(1, len(context) + 1)}:
        at = [i for i, context in enumerate(added) if context[: len(above)] == above]
        assert at == [*range(at[0], at[-1] + 1)], above
    assert lib.fp_contexts_end(contexts, err) == lib.FP_DONE
    assert lib.fp_contexts_cut(contexts, 0.0, 1 << 20, err) == lib.FP_DONE
    assert costs(contexts) == sums
