"""Random logs and stacks as Firefox Profiler profiles, against the slow references."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core.options import Options
from tests.reference import firefox, perfetto
from tests.reference import fold as reference_fold
from tests.reference import xray as reference
from tests.support.conversions import convert_bytes
from tests.support.strategies_xray import Case, basic_cases, cut_typed_cases, fdr_cases

CASES = st.one_of(fdr_cases(), cut_typed_cases(), basic_cases())
TICKS = Options(time_unit="ticks")
MILLION = 1_000_000

NAMES = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="#; \ufeff\xa0"), min_size=1
)
STACKS = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=6), st.integers(1, 2**40)), min_size=1, max_size=30)


@given(CASES, st.sampled_from([None, 1, 2, 50]))
def test_times_are_those_of_the_reference(case: Case, capacity: int | None) -> None:
    log = reference.read(case.data, repair=True)
    expected = reference_fold.fold(log)
    done = convert_bytes(case.data, "xray", "firefox", TICKS, capacity)
    threads = firefox.read(done.data)
    own: Counter[str] = Counter()
    for thread in threads:
        assert thread.weight_type == "tracing-ms"
        for name, weight in thread.self_.items():
            assert (weight * MILLION) % 1 == 0
            own[name] += int(weight * MILLION)
        # without gaps, so that each time is in one sample
        ends = [time + weight for time, _, weight in thread.samples]
        assert ends[:-1] == [time for time, _, _ in thread.samples[1:]]
        assert thread.samples[-1][1:] == ((), 0)
    assert own == Counter({f"#{name}": ticks for name, ticks in expected.self_ticks.items() if ticks})
    records = [record for records in log.threads.values() for record in records]
    events = Counter(r.op for r in records if r.op in (reference.CUSTOM, reference.TYPED))
    names = Counter(name for thread in threads for _, name, _ in thread.markers)
    assert names == Counter({f"{op} event": n for op, n in events.items()})
    assert done.log.not_representable["call-arguments"] == sum(len(r.args or ()) for r in records)


@given(CASES)
def test_events_are_when_they_were(case: Case) -> None:
    """Like a Perfetto trace, whose times do not begin at the first one."""
    tracks = perfetto.read(convert_bytes(case.data, "xray", "perfetto", TICKS).data)
    threads = firefox.read(convert_bytes(case.data, "xray", "firefox", TICKS).data)
    events = [sorted((s.begin, s.args["data"]) for s in track.slices if s.end is None) for track in tracks]
    found = [sorted((int(time * MILLION), data["data"]) for time, _, data in t.markers) for t in threads]
    start = min((s.begin for track in tracks for s in track.slices), default=0)
    shift = {
        at - mine
        for theirs, ours in zip(events, found, strict=False)
        for (at, _), (mine, _) in zip(theirs, ours, strict=False)
    }
    assert len(shift) <= 1 and all(0 <= offset <= start for offset in shift)
    assert [[data for _, data in one] for one in events] == [[data for _, data in one] for one in found]


@given(STACKS)
def test_stacks_keep_their_values(stacks: list[tuple[list[str], int]]) -> None:
    text = "".join(f"{';'.join(frames)} {value}\n" for frames, value in stacks)
    done = convert_bytes(text.encode(), "folded", "firefox", Options(counts=1))
    (thread,) = firefox.read(done.data)
    expected: Counter[tuple[str, ...]] = Counter()
    for frames, value in stacks:
        expected[tuple(frames)] += value
    assert {path: weight for _, path, weight in thread.samples} == dict(expected)
    assert thread.weight_type == "samples"
    assert [time for time, _, _ in thread.samples] == [Decimal(i) for i in range(len(expected))]
