"""The reference reader and the log builder against llvm-xray, on logs recorded and built here."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.differential import account, llvm_yaml
from tests.differential.record_xray import RECIPES, Recorder, llvm_xray
from tests.reference import fold, xray
from tests.support import strategies_xray as strategies
from tests.unit.test_xraylog import ACCEPTED

# Logs of real runtimes that llvm-xray refuses.
REFUSED_BY_LLVM = {"typed-events", "nothing", "basic-orphans"}
# The repairs that each recipe must provoke.
REPAIRS = {
    "typed-events": {"records-cut-by-typed-events"},
    "blocked": {"duplicate-buffers"},
    "basic-orphans": {"orphan-arguments"},
    "basic-fork": {"replayed-records"},
}
FOLD_REPAIRS = {
    "pool": "unwound",
    "overflow": "orphan-exits",
    "blocked": "unfinished",
    "unwind": "unwound",
    "basic-unwind": "unwound",
}


def check_recording(recorder: Recorder, name: str, *, frequency: bool) -> None:
    recording = recorder.record(name, frequency=frequency)
    data = recording.read()
    log = xray.read(data)
    assert set(log.repairs) - {"clamped-times"} == REPAIRS.get(name, set())
    folded = fold.fold(log)
    if name in FOLD_REPAIRS:
        assert folded.repairs[FOLD_REPAIRS[name]] > 0
    assert name == "nothing" or folded.calls
    done = llvm_xray("convert", "-f", "yaml", recording.log)
    assert (done.returncode != 0) == (name in REFUSED_BY_LLVM), done.stderr
    if done.returncode == 0:
        theirs = llvm_yaml.parse(done.stdout)
        assert llvm_yaml.differences(xray.read(data, repair=False), theirs) == []


LOGS = sorted(set(RECIPES) - {"profiling"})


@pytest.mark.parametrize("name", LOGS)
def test_recorded_by_clang19(clang19: Recorder, name: str) -> None:
    check_recording(clang19, name, frequency=True)


@pytest.mark.parametrize("name", LOGS)
def test_recorded_by_clang14(clang14: Recorder, name: str) -> None:
    """Without a clock frequency times are nanoseconds since 1970."""
    check_recording(clang14, name, frequency=False)


def test_recorded_profile(clang19: Recorder) -> None:
    profile = xray.read_profile(clang19.record("profiling").read())
    assert profile.version == 0x20180424 and profile.pid and profile.time_ns
    assert profile.rows


def test_account_of_a_recording(clang19: Recorder) -> None:
    recording = clang19.record("basic-arguments")
    log = xray.read(recording.read())
    done = llvm_xray("account", "-f", "csv", "-k", "-d", f"-instr_map={recording.binary}", recording.log)
    rows = account.parse(done.stdout)
    ours = {
        function: account.from_durations(ticks, log.header.frequency)
        for function, ticks in fold.fold(log).durations.items()
    }
    assert set(ours) == set(rows)
    for function, numbers in ours.items():
        assert numbers == pytest.approx(rows[function][:7], rel=1e-6)


def llvm_reads(data: bytes, folder: Path) -> list[xray.Record] | None:
    """llvm-xray's records, or None if it refuses the file."""
    path = folder / "log"
    path.write_bytes(data)
    done = llvm_xray("convert", "-f", "yaml", path)
    return llvm_yaml.parse(done.stdout) if done.returncode == 0 else None


LLVM_SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check_built(data: bytes, folder: Path) -> None:
    theirs = llvm_reads(data, folder)
    assert theirs is not None
    assert llvm_yaml.differences(xray.read(data, repair=False), theirs) == []


def has_empty_event(case: strategies.Case) -> bool:
    events = (xray.CUSTOM, xray.TYPED)
    return any(r.op in events and not r.data for thread in case.threads.values() for r in thread)


def llvm_reads_too(case: strategies.Case) -> bool:
    """It refuses logs without records, empty events, and a second header."""
    return bool(case.threads) and not has_empty_event(case) and "joined-logs" not in case.repairs


@LLVM_SETTINGS
@given(strategies.fdr_cases(versions=(2, 3, 4, 5)).filter(llvm_reads_too))
def test_built_fdr(tmp_path: Path, case: strategies.Case) -> None:
    """Not version 1: llvm reads its fill as records."""
    check_built(case.data, tmp_path)


@LLVM_SETTINGS
@given(strategies.basic_cases(odd=False).filter(lambda case: bool(case.threads)))
def test_built_basic(tmp_path: Path, case: strategies.Case) -> None:
    check_built(case.data, tmp_path)


# Odd logs that llvm-xray 19 refuses and this project reads, and why.
ONLY_OURS = {
    "header only": "no records",
    "header only, basic": "no records",
    "preamble only": "no NewCPUId",
    "empty events": "size 0",
    "version 1 junk fill": "fill is read as records",
    "short extents within a record": "cut record",
}
# Both read these, but llvm turns an exit with an argument into an enter.
DIFFERENT = {"argument of an exit"}


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_log(tmp_path: Path, name: str) -> None:
    data, _, _ = ACCEPTED[name]
    theirs = llvm_reads(data, tmp_path)
    assert (theirs is None) == (name in ONLY_OURS)
    if theirs is not None:
        found = llvm_yaml.differences(xray.read(data, repair=False), theirs)
        assert bool(found) == (name in DIFFERENT), found
