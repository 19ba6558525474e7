"""Random XRay logs: the decoder and the stack machine against their slow references."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference import fold as reference_fold
from tests.reference import xray as reference
from tests.support import product
from tests.support.strategies_xray import Case, basic_cases, cut_typed_cases, fdr_cases, profile_logs

CASES = st.one_of(fdr_cases(), cut_typed_cases(), basic_cases())

# the reference's names of repairs -> the report's
REPAIRS = {
    "duplicate-buffers": "duplicate-buffers",
    "replayed-records": "duplicate-records",
    "orphan-arguments": "orphan-arguments",
    "joined-logs": "joined-logs",
}


def unclamped(case: Case) -> dict[Any, Any]:
    """The records before clamping, which is the stack machine's job, not the decoder's."""
    log = reference.read(case.data, repair=True)
    return {key: records for key, records in log.threads.items() if records}


@given(CASES, st.sampled_from([None, 1, 2, 7, 100]), st.sampled_from([None, 1, 2, 3, 50]))
def test_the_decoder_reads_what_the_reference_reads(case: Case, window: int | None, capacity: int | None) -> None:
    threads, report = product.timeline(case.data, window=window, capacity=capacity)
    expected = unclamped(case)
    assert {k: reference.clamped(v) for k, v in threads.items()} == expected
    log = reference.read(case.data, repair=True)
    for theirs, ours in REPAIRS.items():
        assert report.repairs[ours] == log.repairs[theirs]
    assert not report.losses


@given(CASES, st.booleans())
def test_the_stack_machine_folds_as_the_reference_does(case: Case, per_thread: bool) -> None:
    log = reference.read(case.data, repair=True)
    expected = reference_fold.fold(log)
    got = product.graph(case.data, Options(time_unit="ticks", per_thread=per_thread))
    assert (got.self_, got.arcs) == product.folded(expected)
    for theirs, ours in (
        ("unwound", "unwound-frames"),
        ("orphan-exits", "orphan-exits"),
        ("unfinished", "unfinished-calls"),
    ):
        assert got.log.repairs[ours] == expected.repairs[theirs]
    totals = [sum(p.summary[k] for p in got.parts) for k in range(2)]
    assert totals == [sum(v[k] for v in got.self_.values()) for k in range(2)]


@given(CASES, st.integers(1, 9))
def test_spilling_changes_nothing(case: Case, capacity: int) -> None:
    from fastprof.bridges.fold import accumulators
    from fastprof.bridges.sums import sorted_runs

    whole = product.graph(case.data, Options(time_unit="ticks"), capacity=capacity)
    spills = 0

    class Counted(sorted_runs.Words):
        def add(self, pull: sorted_runs.Pull) -> None:
            nonlocal spills
            spills += 1
            super().add(pull)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulators, "_LEAST_ARCS", 1)
        patch.setattr(accumulators, "Words", Counted)
        spilled = product.graph(case.data, Options(time_unit="ticks", max_memory=1), capacity=capacity)
    assert (spilled.self_, spilled.arcs) == (whole.self_, whole.arcs)
    event(f"spilled: {bool(spills)}")


LABELS = st.sampled_from([None, (), ("thread",), ("process",), ("cpu",), ("thread", "process", "cpu")])


@given(CASES, LABELS, st.booleans(), st.integers(1, 9))
def test_contexts_are_the_same_whatever_the_limit(case: Case, labels: Any, names: bool, capacity: int) -> None:
    """Also if the model's stacks are removed between batches."""
    from fastprof.bridges.fold import accumulators
    from fastprof.bridges.fold import fold as timeline
    from fastprof.bridges.sums import sorted_runs
    from fastprof.core.engine import EVERYTHING

    def contexts(holds: Any, **options: Any) -> list[Any]:
        return product.contexts(case.data, Options(labels=labels, time_unit="ticks", **options), holds, capacity)

    holds = EVERYTHING._replace(times=False, places=not names)
    whole = contexts(holds)
    expected = reference_fold.fold(reference.read(case.data, repair=True))
    ticks, calls = expected.context_ticks, expected.context_calls
    paths = {tuple(b"#%d" % f for f in path): (ticks[path], calls[path]) for path in calls}
    if labels in (None, ()):
        assert whole == [(path, (), paths[path]) for path in sorted(paths)]
    else:
        found: dict[Any, tuple[int, int]] = {}
        for path, _, (time, n) in whole:
            found[path] = found.get(path, (0, 0))[0] + time, found.get(path, (0, 0))[1] + n
        assert found == paths
        assert len({row[:2] for row in whole}) == len(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulators, "_LEAST_ARCS", 1)
        patch.setattr(timeline, "_STACKS", 1)
        patch.setattr(sorted_runs, "MOST_RUNS", 2)
        assert contexts(holds, max_memory=1) == whole
        assert contexts(holds._replace(keeps_stacks=False), max_memory=1) == whole


@given(CASES, st.data())
def test_damage_is_an_error_or_a_result_and_never_a_crash(case: Case, data: st.DataObject) -> None:
    raw = bytearray(case.data)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(32, len(raw)))]
    for lenient in (False, True):
        try:
            # whatever view the damaged file now claims
            for batch in product.batches(product.open_input(bytes(raw), Options(lenient=lenient))):
                assert len(batch)
        except FormatError as error:
            assert error.offset is not None and error.offset <= len(raw)
            # an unreadable file is an error in lenient mode too
            assert not lenient or error.code == -5
        except Exception as error:
            assert type(error).__name__ == "UnrecognizedError"


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(profile_logs())
def test_profiles_sum_up(log: Any) -> None:
    builder, rows = log
    # Without a file header, no rows make an empty file; threads have 32 bits; sums beyond 2^63-1 are errors.
    assume(rows and all(row[1] < 1 << 32 for row in rows))
    assume(sum(row[3] for row in rows) < 1 << 63 and sum(abs(row[4]) for row in rows) < 1 << 63)
    opened = product.open_input(builder.bytes(), from_="xray")
    calls = ticks = 0
    for batch in product.batches(opened):
        calls += sum(batch.values(1))
        ticks += sum(batch.values(0))
    assert calls == sum(row[3] for row in rows)
    assert ticks >= 0


def test_a_truncated_log_is_an_error_at_the_cut() -> None:
    from tests.support.xraylog import FdrLog

    log = FdrLog(5)
    log.buffer(tid=1).enter(1, 5).exit(1, 5)
    data = log.bytes()
    for n in range(33, len(data)):
        with pytest.raises(FormatError) as caught:
            product.timeline(data[:n])
        assert caught.value.offset is not None and caught.value.offset <= n
