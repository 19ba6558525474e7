"""Random XRay logs within random budgets, and split: kept calls are exact, and merged calls are counted."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

import fastprof
from fastprof.core.errors import UsageError
from tests.reference import perfetto
from tests.support.strategies_xray import Case, basic_cases, fdr_cases
from tests.support.xraylog import FdrLog

Thread = tuple[int, int]
# name, begin, end (None: an event), arguments, depth
Row = tuple[str, int, int | None, tuple[tuple[str, Any], ...]]


def rows(path: Path) -> dict[Thread, list[Row]]:
    """The contents of a trace, by thread."""
    found: dict[Thread, list[Row]] = {}
    for track in perfetto.read(path.read_bytes()):
        assert not track.open
        found[track.pid, track.tid] = [(s.name, s.begin, s.end, tuple(s.args.items())) for s in track.slices]
    return found


def nested(of_thread: list[Row]) -> list[tuple[Row, int, bool]]:
    """Each call with its self time, and whether an event happened in it.  Rows are in order."""
    result: list[tuple[Row, list[int]]] = []
    open_: list[tuple[Row, list[int]]] = []
    for row in of_thread:
        _, begin, end, _ = row
        while open_ and open_[-1][0][2] is not None and not holds(open_[-1][0], row):
            open_.pop()
        if end is None:
            for _, told in open_:
                told[1] = 1
            continue
        if open_:
            open_[-1][1][0] -= end - begin
        open_.append((row, [end - begin, 0]))
        result.append(open_[-1])
    return [(row, own, bool(eventful)) for row, (own, eventful) in result]


def holds(outer: Row, inner: Row) -> bool:
    assert outer[2] is not None
    return outer[1] <= inner[1] and (inner[2] or inner[1]) <= outer[2]


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Calls and events at different times, so that nesting is unambiguous; none is of length 0."""
    log = FdrLog(5, frequency=10**9)
    for tid in range(1, draw(st.integers(1, 3)) + 1):
        buffer, open_ = log.buffer(tid=tid, pid=7).cpu(0, 0), []
        for _ in range(draw(st.integers(0, 60))):
            step = draw(st.one_of(st.integers(1, 100), st.integers(1, 10**6)))
            what = draw(st.sampled_from("((((()))))!+"))
            if what == "(":
                open_.append(draw(st.integers(1, 5)))
                buffer.enter(open_[-1], step)
            elif what == "+":
                open_.append(draw(st.integers(1, 5)))
                buffer.enter_args(open_[-1], step, *draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3)))
            elif what == ")" and open_:
                buffer.exit(open_.pop(), step)
            elif what == "!":
                buffer.custom(b"x" * draw(st.integers(1, 30)), step)
        while open_:
            buffer.exit(open_.pop(), draw(st.integers(1, 1000)))
    return log.bytes()


def convert(log: bytes, folder: str, **options: Any) -> tuple[Path, fastprof.Log]:
    source, target = Path(folder, "in.xray"), Path(folder, "out.pftrace")
    source.write_bytes(log)
    return target, fastprof.convert(source, target, **options)


@given(logs(), st.floats(0, 1))
def test_what_is_left_is_exact_and_within_the_budget(log: bytes, share: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, _ = convert(log, folder)
        whole, most = rows(path), path.stat().st_size
        path.unlink()
        budget = max(1, round(share * most))
        try:
            path, report = convert(log, folder, budget=budget)
        except UsageError as error:
            assert "but budget= allows " in str(error) or "no row can be written" in str(error)
            assert not path.exists()
            event("refused")
            return
        assert path.stat().st_size <= budget
        said = report.facts.get("merged_calls", {"merged_calls": 0, "merged_below": 0, "merged_share": 0.0})
        event("merged" if said["merged_calls"] else "whole")
        left = rows(path)
        merged, own, total = 0, 0, 0
        for thread, before in whole.items():
            kept = []
            calls = {id(row): (time, eventful) for row, time, eventful in nested(before)}
            for row in before:
                if row[2] is None:
                    kept.append(row)
                    continue
                time, eventful = calls[id(row)]
                total += time
                if row[2] - row[1] >= said["merged_below"] or eventful:
                    kept.append(row)
                else:
                    merged, own = merged + 1, own + time
            assert left.pop(thread, []) == kept
        assert not left
        assert merged == said["merged_calls"]
        assert abs(own / max(total, 1) - said["merged_share"]) < 1e-12
        short = [entry for entry in report.not_representable.entries() if entry["code"] == "short-calls"]
        assert sum(entry["count"] for entry in short) == merged


@given(logs(), st.one_of(st.just("thread"), st.integers(10**4, 10**6).map(lambda ns: f"time:{ns / 1e9:.9f}")))
def test_files_together_have_the_totals_of_the_whole(log: bytes, split: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, _ = convert(log, folder)
        whole = rows(path)
        path.unlink()
        try:
            _, report = convert(log, folder, split=split)
        except fastprof.FastprofError as error:
            assert "exceeds 500" in str(error) or "no rows" in str(error)
            assert [*Path(folder).iterdir()] == [Path(folder, "in.xray")]
            return
        paths = [Path(file["path"]) for file in report.facts["files"]]
        assert sorted(paths) == sorted(Path(folder).glob("out.*.pftrace")) == paths
        assert [path.stat().st_size for path in paths] == [file["bytes"] for file in report.facts["files"]]
        parts = [rows(path) for path in paths]
        event(f"{min(len(paths), 5)} files")
        if split == "thread":
            assert [len(part) for part in parts] == [1] * len(parts)
            assert {thread: of for part in parts for thread, of in part.items()} == whole
            return
        length = round(float(split.partition(":")[2]) * 1e9)
        zero = min(row[1] for of in whole.values() for row in of)
        times: Counter[Any] = Counter()
        for name, part in zip(paths, parts, strict=True):
            number = int(name.name.split(".")[1].removeprefix("slice-"))
            first = next(row[1] for of in whole.values() for row in of)
            begin = first + length * (number - 1 + (zero - first) // length)
            for thread, of in part.items():
                for title, start, end, arguments in of:
                    assert begin <= start <= (start if end is None else end) <= begin + length
                    times[thread, title, end is None] += 1 if end is None else end - start
                    times.update((thread, title, key, value) for key, value in arguments)
        for thread, of in whole.items():
            for title, start, end, arguments in of:
                times[thread, title, end is None] -= 1 if end is None else end - start
                times.subtract((thread, title, key, value) for key, value in arguments)
        assert not any(times.values())


@settings(max_examples=25, deadline=None)
@given(st.one_of(fdr_cases(), basic_cases()), st.sampled_from(["speedscope", "trace-event", "perfetto", "firefox"]))
def test_each_viewer_gets_no_more_than_the_budget(case: Case, to: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        source.write_bytes(case.data)
        try:
            fastprof.convert(source, target, to=to, from_="xray", time_unit="ticks")
        except fastprof.FastprofError:  # the format can hold none of it
            return
        most = target.stat().st_size
        for budget in (most, most - 1, most * 3 // 4, most // 2):
            target.unlink(missing_ok=True)
            try:
                fastprof.convert(source, target, to=to, from_="xray", time_unit="ticks", budget=budget)
            except UsageError:
                assert not target.exists() and budget < most
                continue
            assert target.stat().st_size <= budget
            if to != "perfetto":
                json.loads(target.read_bytes())
