"""Our JSON in speedscope, Catapult and Perfetto: self and inclusive times and calls of each function.

Viewers compute in doubles, and each time is rounded to a nanosecond separately: hence a tolerance of a nanosecond for
each call, and for each of its callees.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.core._c import lib
from tests.differential.peers import RefusedError, viewer
from tests.support.paths import CORPUS
from tests.support.xraylog import FdrLog

# Of the thread slices: calls, self and total time of each name; of calls within another one of that name only the
# self time.
SLICES = """
with child as (select parent_id id, sum(dur) dur from slice where parent_id is not null group by 1)
select name, count(*), sum(s.dur - coalesce(child.dur, 0)), sum(iif(exists (
  select 1 from ancestor_slice(s.id) a where a.name = s.name), 0, s.dur))
from slice s left join child using (id) group by 1"""
ERRORS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"


class Times(NamedTuple):
    calls: int
    self_ns: float
    total_ns: float
    made: int = 0  # calls to others


def ours(path: Path) -> dict[str, Times]:
    # otherwise a cycle is shown as one
    rows = fastprof.top(path, n=0, cycles=False, tree="callees").rows
    return {
        row.name: Times(row.calls or 0, row.self, row.inclusive, sum(arc.calls or 0 for arc in row.callees))
        for row in rows
    }


def catapults(path: Path) -> dict[str, Times]:
    found = viewer("catapult", path)
    assert found["warnings"] == []
    return added(
        (name, Times(of["calls"], of["self"] * 1000, of["total"] * 1000))
        for thread in found["threads"]
        for name, of in thread["functions"].items()
    )


def perfettos(path: Path) -> dict[str, Times]:
    slices, errors = viewer("trace_processor", path, SLICES, ERRORS)
    assert errors == []
    return {name: Times(*times) for name, *times in slices}


def speedscopes(path: Path) -> dict[str, Times]:
    """It does not count calls."""
    units = {"microseconds": 1000, "nanoseconds": 1}
    return added(
        (name, Times(0, of["self"] * units[profile["unit"]], of["total"] * units[profile["unit"]]))
        for profile in viewer("speedscope", path)
        for name, of in profile["functions"].items()
    )


def added(found: Any) -> dict[str, Times]:
    sums: dict[str, Times] = {}
    for name, times in found:
        sums[name] = Times(*map(sum, zip(sums.get(name, Times(0, 0, 0)), times, strict=True)))
    return sums


def odd() -> bytes:
    """Zero-length calls, equal times, recursion, calls left by an exception, calls that never end, two threads."""
    log = FdrLog(version=5)
    buffer = log.buffer(tid=7, pid=7).cpu(0, 1000)
    buffer.enter(1).enter(2).enter(3).exit(3).exit(2).enter(2).exit(2, 10)  # no time passes in 2 and 3 at first
    buffer.enter(4, 5).enter(4, 5).enter(4).exit(4, 7).exit(4, 3).enter(3).exit(4, 2)  # 3 is left by an exception
    buffer.exit(1, 4).enter(1).enter(5, 6).enter(5, 1)
    log.buffer(tid=8, pid=7).cpu(1, 1001).enter(1, 3).enter(6).exit(6, 20).exit(1)
    return log.bytes()


CASES = {
    **{name: CORPUS / f"xray/good/{name}.xray" for name in ("fdr5-pool-clang19", "fdr5-events-clang19", "fdr4-busy")},
    "odd": None,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("theirs", [catapults, perfettos, speedscopes])
def test_calls_of_trace_events(name: str, theirs: Callable[[Path], dict[str, Times]], tmp_path: Path) -> None:
    source, written = CASES[name] or tmp_path / "odd.xray", tmp_path / "out.trace.json"
    if name == "odd":
        if theirs is speedscopes:
            return  # it sorts begins and ends separately, so zero-length calls are paired wrongly
        source.write_bytes(odd())
    fastprof.convert(source, written)
    compare(theirs(written), ours(source), calls=theirs is not speedscopes)


@pytest.mark.parametrize("name", CASES)
def test_calls_of_speedscope(name: str, tmp_path: Path) -> None:
    source, written = CASES[name] or tmp_path / "odd.xray", tmp_path / "out.speedscope.json"
    if name == "odd":
        source.write_bytes(odd())
    fastprof.convert(source, written)
    compare(speedscopes(written), ours(source), calls=False)


STACKS = (
    "pprof/good/go-heap.pb.gz",
    "pprof/good/go-cpulabels.pb",
    "folded/good/recursion.folded",
    "folded/good/two_values.folded",
    "gperftools/good/symbolized.prof",
    "callgrind/good/dprof.callgrind",
)


@pytest.mark.parametrize("name", STACKS)
def test_samples_of_speedscope(name: str, tmp_path: Path) -> None:
    """Each value type is a profile.  Sums of a callgrind file's stacks are compared with those of the estimate."""
    source, written = CORPUS / name, tmp_path / "out.speedscope.json.gz"
    fastprof.convert(source, written)
    if "callgrind" in name:
        source = tmp_path / "estimate.pb"
        fastprof.convert(CORPUS / name, source)
    profiles = viewer("speedscope", written)
    assert profiles
    for profile in profiles:
        value = profile["name"].partition(" (")[0].partition(",")[0]
        expected: dict[str, tuple[int, int]] = {}
        for row in fastprof.top(source, n=0, value=value, cycles=False).rows:
            self_, total = expected.get(row.name, (0, 0))
            expected[row.name] = self_ + max(row.self, 0), total + max(row.inclusive, 0)
        found = {name: (of["self"], of["total"]) for name, of in profile["functions"].items()}
        assert found == {name: times for name, times in expected.items() if any(times)}, value


SPEEDSCOPE = ("01_evented", "37_float_at", "28_recursion")


@pytest.mark.parametrize("name", SPEEDSCOPE)
def test_what_we_read_is_what_speedscope_reads(name: str, tmp_path: Path) -> None:
    """It recognizes its files by their names, or by a schema."""
    path = tmp_path / f"{name}.speedscope.json"
    path.write_bytes((CORPUS / f"speedscope/good/{name}.json").read_bytes())
    unit = {"seconds": 1e9, "milliseconds": 1e6, "microseconds": 1e3}
    profile, *_ = viewer("speedscope", path)
    scale = unit.get(profile["unit"], 1)
    found = {name: (of["self"] * scale, of["total"] * scale) for name, of in profile["functions"].items()}
    rows = fastprof.top(path, n=0, cycles=False).rows
    expected = {row.name: (row.self, row.inclusive) for row in rows if row.self or row.inclusive}
    assert expected and {name: pytest.approx(times) for name, times in found.items()} == expected


def test_a_name_that_ends_in_a_backslash(tmp_path: Path) -> None:
    """Perfetto refuses the whole source, but reads our output."""
    source, written = CORPUS / "trace-event/good/27_name_unicode.json", tmp_path / "out.trace.json"
    with pytest.raises(RefusedError):
        perfettos(source)
    fastprof.convert(source, written)
    assert len(perfettos(written)) == 1
    assert catapults(written).keys() == speedscopes(written).keys() == ours(source).keys()


READ = ("02_be_noname_end", "03_x_exit_order", "12_threads_apart", "13_no_bracket", "39_recursion", "45_exp_number")


@pytest.mark.parametrize("name", READ)
def test_what_we_read_of_trace_events_is_what_perfetto_reads(name: str) -> None:
    path = CORPUS / f"trace-event/good/{name}.json"
    compare(perfettos(path), ours(path), calls=True)


def ours_sampled(path: Path) -> dict[str, float]:
    """Self times, in microseconds, of functions that have some."""
    options = {} if path.suffix == ".cpuprofile" else {"samples": True}
    rows = fastprof.top(path, n=0, value="time", **options).rows
    sums: dict[str, float] = {}
    for row in rows:
        sums[row.name] = sums.get(row.name, 0) + row.self / 1000
    return {name: time for name, time in sums.items() if time and name != "(idle)"}


@pytest.mark.parametrize("name", ["cpuprofile/good/node20.cpuprofile", "trace-event/good/devtools.json"])
def test_what_we_read_of_v8_samples_is_what_speedscope_reads(name: str, tmp_path: Path) -> None:
    """It drops (idle), and puts (program) and (garbage collector) on the previous stack: so self times are compared. It
    adds the place to the name of a function without one.  It counts no time for the last sample, whenever the profile
    ends."""
    path = tmp_path / Path(name).name
    path.write_bytes(re.sub(rb'"endTime":\d+', b'"endTime":0', (CORPUS / name).read_bytes()))
    (profile,) = viewer("speedscope", path)
    assert profile["unit"] == "microseconds"
    found: dict[str, float] = {}
    for called, of in profile["functions"].items():
        plain = "(anonymous)" if called.startswith("(anonymous ") else called
        found[plain] = found.get(plain, 0) + of["self"]
    expected = ours_sampled(path)
    assert len(expected) > 5 and {name: time for name, time in found.items() if time} == pytest.approx(expected)


@pytest.mark.parametrize("name", ["34_samples", "35_P_sf"])
def test_what_we_read_of_samples_is_what_catapult_reads(name: str) -> None:
    path = CORPUS / f"trace-event/good/{name}.json"
    found = [(of["tid"], of["at"], of["weight"], of["stack"]) for of in viewer("catapult", path)["samples"]]
    expected = []
    with fastprof.open(path) as profile:
        model = profile._model
        for batch in profile:
            for thread, time, stack, value in zip(
                batch["thread"], batch["time"], batch["stack"], batch.values(0), strict=True
            ):
                names: list[str] = []
                while stack:
                    stack, frame = model.row("stacks", stack)
                    function = model.row("lines", model.row("frames", frame)[lib.FP_FRAME_LINES])[0]
                    names.insert(0, model.get_function(function).name.decode())
                expected.append((model.row("threads", thread)[2], time / 1000, value, names))
    assert expected and found == expected


def compare(found: dict[str, Times], expected: dict[str, Times], *, calls: bool) -> None:
    timed = {name for name, times in expected.items() if times.self_ns or times.total_ns}
    assert timed <= {name for name in found if name in expected} and expected
    for name in timed:
        theirs, mine = found[name], expected[name]
        assert theirs.calls == mine.calls or not calls, name
        assert theirs.self_ns == pytest.approx(mine.self_ns, abs=mine.calls + mine.made + 1, rel=1e-9), name
        assert theirs.total_ns == pytest.approx(mine.total_ns, abs=mine.calls + 1, rel=1e-9), name


def deep(levels: int) -> bytes:
    """Each function calls the next one, a nanosecond after its own begin."""
    log = FdrLog(version=5)
    buffer = log.buffer(tid=7, pid=7).cpu(0, 1000)
    for function in range(1, levels + 1):
        buffer.enter(function, 1)
    for function in range(levels, 0, -1):
        buffer.exit(function, 1)
    return log.bytes()


NAME = 'a"b\\c\t\u20ac\U0001f600'


@pytest.mark.parametrize("theirs", [catapults, perfettos, speedscopes])
def test_packed_deep_and_named(theirs: Callable[[Path], dict[str, Times]], tmp_path: Path) -> None:
    """gzip; 600 levels, of which 512 are written; a name that JSON escapes."""
    source, written = tmp_path / "in.xray", tmp_path / "out.trace.json.gz"
    source.write_bytes(deep(600))
    rename = NAME.replace("\\", "\\\\")
    log = fastprof.convert(source, written, mod_funcname=[f"s/^#500$/{rename}/"])
    assert log.not_representable == {"deep-calls": 88}
    found = theirs(written)
    assert {name for name in found if name != "512"} == {f"#{i}" for i in range(1, 513) if i != 500} | {NAME}
    expected = {f"#{i}" if i != 500 else NAME: Times(1, 2, 1200 - 2 * i + 1) for i in range(1, 512)}
    compare(found, expected, calls=theirs is not speedscopes)
    assert found["#512"].self_ns == pytest.approx(177, abs=1)  # with the time of the levels below
