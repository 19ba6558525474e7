"""Ranges of times: their syntax, and the part of each input that a relative one keeps."""

from __future__ import annotations

import gzip
import json
import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.core.errors import UsageError
from fastprof.core.options import TIME_RANGE, UINT64
from fastprof.core.times import Span, parse, resolved
from tests.support.paths import CORPUS

LOG = CORPUS / "xray/good/fdr5-pool-clang19.xray"
SIZES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


@pytest.mark.parametrize(
    "text",
    ["", "5", "5ms", "a:b", "5:1", "5ms:1ms", "2s:5ms", "9%:3%", "101%:", "100.1%:", "1.5:2", "@5:@1", "@5%:", "1e3:",
     "-1ms:", "1 ms:2 ms", "100:5ms", "5ms:100", "100:10%", "1h:", ":1.ms", "\u0661ms:", "1:2:3", f":{UINT64 + 1}",
     f":{'9' * 30}ms", f":1.{'0' * 20}ms", "@1.5:"],
)  # fmt: skip
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range"):
        TIME_RANGE.check(text)


def test_plain_numbers_and_those_with_an_at_are_the_same() -> None:
    for text, value in ((":", (0, UINT64)), ("5:", (5, UINT64)), ("@5:@9", (5, 9)), ("5:@9", (5, 9)), (":9", (0, 9))):
        assert TIME_RANGE.check(text) == value
    assert TIME_RANGE.check("0:5ms") == "0:5ms"


decimals = st.decimals(0, 10**6, places=6, allow_nan=False).map(lambda n: format(n, "f"))
times = st.one_of(st.just(""), st.tuples(st.sampled_from(["", "@"]), decimals, st.sampled_from([*SIZES])).map("".join))
shares = st.decimals(0, 100, places=4, allow_nan=False).map(lambda n: f"{n:f}%")
spans = st.tuples(st.integers(0, 1 << 62), st.integers(0, 1 << 62), st.integers(1, 5 * 10**9))


def exact(text: str, span: Span) -> Fraction:
    """By the definition."""
    if text.endswith("%"):
        return span.first + (span.last - span.first) * Fraction(text[:-1]) / 100
    unit = next(unit for unit in ("ns", "us", "ms", "min", "s") if text.endswith(unit))
    ticks = Fraction(text.removesuffix(unit).lstrip("@")) * SIZES[unit] * span.clock / 10**9
    return ticks if text.startswith("@") else span.first + ticks


@given(st.one_of(times, shares), st.one_of(times, shares), spans)
def test_a_range_keeps_the_ticks_within_it(a: str, b: str, numbers: tuple[int, int, int]) -> None:
    span = Span(numbers[0], numbers[0] + numbers[1], numbers[2])
    try:
        parse(f"{a}:{b}")
    except ValueError:
        assert a and b and exact(a, span) >= exact(b, span)  # only a wrong order is refused here
        return
    first, last = resolved(f"{a}:{b}", span)
    if a and exact(a, span) <= UINT64:
        assert first - 1 < exact(a, span) <= first
    if b and exact(b, span) <= UINT64:
        assert last <= exact(b, span) < last + 1
    assert 0 <= first <= UINT64 and 0 <= last <= UINT64


def kept(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    with fastprof.open(source, **options) as profile:
        return [row for batch in profile for row in zip(batch["time"], batch["thread"], batch["function"], strict=True)]


def test_relative_ranges_keep_what_absolute_ones_keep(tmp_path: Path) -> None:
    facts = fastprof.info(LOG).facts
    span = Span(facts["first_tick"], facts["last_tick"], facts["ticks_per_second"])
    archive, packed, plain = tmp_path / "x.fpa", tmp_path / "x.xray.gz", LOG.read_bytes()
    fastprof.convert(LOG, archive)
    packed.write_bytes(gzip.compress(plain))
    for text in ("10%:20%", "400us:0.5ms", ":300001ns", "90%:"):
        wanted = kept(LOG, time_range=resolved(text, span))
        assert 0 < len(wanted) < facts["records"]
        for source in (LOG, plain, packed, archive):
            assert len(kept(source, time_range=text)) == len(wanted), (source, text)
        read, write = os.pipe()  # a pipe is copied
        with os.fdopen(write, "wb") as there, os.fdopen(read, "rb") as here:
            thread = threading.Thread(target=lambda to=there: (to.write(plain), to.close()))
            thread.start()
            assert kept(here, time_range=text) == wanted
            thread.join()


def test_each_input_has_its_own_beginning(tmp_path: Path) -> None:
    paths = []
    for i, start in enumerate((0, 10**12)):
        events = [{"ph": "X", "name": f"f{k}", "ts": start + 100 * k, "dur": 50, "pid": 1, "tid": 1} for k in range(10)]
        paths.append(tmp_path / f"{i}.json")
        paths[-1].write_text(json.dumps(events))
    for one in (paths, paths[:1], paths[1:]):
        found = fastprof.top([*map(str, one)], time_range="100us:250us")
        assert sorted(row.name for row in found.rows) == ["f1", "f2"]
    fastprof.convert(paths, tmp_path / "out.folded", time_range="10%:30%")
    assert {line.split()[0] for line in (tmp_path / "out.folded").read_text().splitlines()} == {"f1", "f2"}


def test_samples_count_from_the_first_one_with_a_time() -> None:
    path = CORPUS / "perf/good/made-basic-be.data"
    whole = [row["ts"] for row in fastprof.open(path).rows()]
    part = [row["ts"] for row in fastprof.open(path, time_range="0us:1us").rows()]
    assert part == [time for time in whole if time - min(whole) <= 1000] != whole


def test_an_empty_range_shows_what_the_input_covers(tmp_path: Path) -> None:
    fastprof.convert(LOG, tmp_path / "x.fpa")
    facts = fastprof.info(LOG).facts
    for source in (LOG, tmp_path / "x.fpa"):
        for asked in ("5min:6min", (1, 2)):
            with pytest.raises(UsageError, match="no row matches time_range=") as caught:
                fastprof.info(source, time_range=asked)
            assert f"(@{facts['first_tick']} to @{facts['last_tick']})" in str(caught.value)
    with pytest.raises(UsageError, match="begins after its end; the trace covers 0 to "):
        fastprof.info(LOG, time_range="50%:@1ns")
    with pytest.raises(UsageError, match="no row matches time_range=1ms:2ms; no row has a time"):
        fastprof.info(CORPUS / "folded/good/plain.folded", time_range="1ms:2ms")


def test_ticks_without_a_clock_have_percent_only(tmp_path: Path) -> None:
    at = [{"type": kind, "frame": 0, "at": at} for kind, at in (("O", 0), ("C", 100), ("O", 900), ("C", 1000))]
    profile = {"type": "evented", "name": "x", "unit": "none", "startValue": 0, "endValue": 1000, "events": at}
    data = json.dumps({"shared": {"frames": [{"name": "f"}]}, "profiles": [profile]}).encode()
    assert [row[0] for row in kept(data, time_range="90%:")] == [900, 1000]
    with pytest.raises(
        UsageError, match="the frequency of its clock is unknown; use percent, or ticks from @0 to @1000"
    ):
        fastprof.info(data, time_range="1ms:2ms")


def test_a_graph_refuses_any_range() -> None:
    with pytest.raises(UsageError, match="time_range= has no effect"):
        fastprof.info(CORPUS / "callgrind/good/cfi.callgrind", time_range="10%:20%")
