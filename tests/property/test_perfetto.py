"""Random XRay logs as Perfetto traces: every call, argument and event against the slow references."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from fastprof.core.options import Options
from tests.reference import fold as reference_fold
from tests.reference import perfetto
from tests.reference import xray as reference
from tests.support.conversions import Conversion, convert_bytes
from tests.support.strategies_xray import Case, basic_cases, cut_typed_cases, fdr_cases
from tests.support.xraylog import FdrLog

CASES = st.one_of(fdr_cases(), cut_typed_cases(), basic_cases())
TICKS = Options(time_unit="ticks")


def written(data: bytes, options: Options = TICKS, capacity: int | None = None) -> tuple[Conversion, Any]:
    done = convert_bytes(data, "xray", "perfetto", options, capacity)
    return done, perfetto.read(done.data)


def shown(payload: bytes) -> str:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return payload.hex()
    return payload.hex() if any((c < " " and c not in "\t\r\n") or c == "\x7f" for c in text) else text


@given(CASES, st.sampled_from([None, 1, 2, 3, 50]))
def test_calls_are_those_of_the_reference(case: Case, capacity: int | None) -> None:
    log = reference.read(case.data, repair=True)
    expected = reference_fold.fold(log)
    done, tracks = written(case.data, capacity=capacity)
    calls, arguments, events = defaultdict(list), Counter[int](), Counter[str]()
    for track in tracks:
        assert not track.open
        for slice_ in track.slices:
            if slice_.end is None:
                events[slice_.args["data"]] += 1
                assert ("type" in slice_.args) == (slice_.name == "typed event")
                continue
            calls[slice_.name].append(slice_.end - slice_.begin)
            assert [*slice_.args] == [f"arg{i}" for i in range(len(slice_.args))]
            arguments.update(slice_.args.values())
    assert {name: sorted(durations) for name, durations in calls.items()} == {
        f"#{function}": sorted(durations) for function, durations in expected.durations.items()
    }
    records = [record for records in log.threads.values() for record in records]
    assert arguments == Counter(value for record in records for value in record.args or ())
    assert events == Counter(shown(r.data) for r in records if r.op in (reference.CUSTOM, reference.TYPED))
    if all(pid and tid for pid, tid in log.threads) and not done.log.not_representable:
        assert {(track.pid, track.tid) for track in tracks} <= log.threads.keys()
    for theirs, ours in (("unwound", "unwound-frames"), ("orphan-exits", "orphan-exits")):
        assert done.log.repairs[ours] == expected.repairs[theirs]
    event(f"{len(tracks)} threads")


@given(st.integers(1, 10**12), st.lists(st.integers(0, (1 << 31) - 1), min_size=2, max_size=40))
def test_times_are_exact(frequency: int, deltas: list[int]) -> None:
    log = FdrLog(5, frequency=frequency)
    buffer, now, times = log.buffer(tid=3).cpu(0, 0), 0, []
    for i, delta in enumerate(deltas):
        now += delta
        times.append(now * 10**9 // frequency)
        buffer.enter(1, delta) if i % 2 == 0 else buffer.exit(1, delta)
    _, (track,) = written(log.bytes(), Options())
    found = [time for slice_ in track.slices for time in (slice_.begin, slice_.end)]
    assert found[: len(times)] == times
