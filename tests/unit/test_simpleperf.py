"""Samples of simpleperf: the statements of docs/formats/simpleperf.md."""

from __future__ import annotations

from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError
from tests.reference import simpleperf
from tests.support.paths import CORPUS
from tests.support.stackdump import dump

APP = CORPUS / "simpleperf" / "good" / "app.simpleperf.trace"
FILE: dict[str, Any] = {"file": {"id": 0, "path": "a.so", "symbol": ["f", "g"], "mangled_symbol": ["_Zf"]}}


def test_the_file_agrees_with_the_schema() -> None:
    rows = [
        (tuple((f[0][0], f[1], tuple(line[:2] for line in f[3])) for f in stack), tuple(x[:2] for x in labels), values)
        for stack, labels, values in dump(APP.read_bytes(), "simpleperf").rows
    ]
    assert rows == simpleperf.rows(APP.read_bytes())


def test_events_threads_and_facts() -> None:
    facts = fastprof.info(APP).facts
    assert facts["totals"] == {
        "cpu-cycles_samples": 3,
        "cpu-cycles": 850_000,
        "task-clock:u_samples": 1,
        "task-clock:u": 25_000_000,
    }
    assert facts["units"]["task-clock:u"] == "nanoseconds" and facts["default_value_type"] == "cpu-cycles"
    assert (facts["app"], facts["android_sdk"], facts["lost_samples"]) == ("com.example", "34", 3)
    assert {str(row.name) for row in fastprof.top(APP, by="thread", n=0).rows} == {
        "com.example (4321): com.example (4321)",
        "com.example (4321): RenderThread (4330)",
    }
    assert {row.name: row.self for row in fastprof.top(APP, by="label:unwinding", n=0).rows} == {
        "(none)": 750_000,
        "not enough stack": 100_000,
    }


def test_names_of_the_linker_stay_and_may_be_missing() -> None:
    data = simpleperf.write([simpleperf.sample([(1, 0, 0), (2, 0, 1), (3, 0, -1)]), FILE])
    (row,) = dump(data, "simpleperf").rows
    assert [[line[:2] for line in frame[3]] for frame in row[0]] == [[(b"f", b"_Zf")], [(b"g", b"g")], []]


@pytest.mark.parametrize(
    ("entry", "kept"), [((5, 0, 2), (b"a.so", 0, ())), ((5, 9, 0), (None, 5, ())), ((5, 0, -2), (b"a.so", 0, ()))]
)
def test_frames_that_are_not_defined(entry: simpleperf.Entry, kept: Any) -> None:
    data = simpleperf.write([simpleperf.sample([(1, 0, 0)]), simpleperf.sample([entry]), FILE])
    with pytest.raises(FormatError, match="file or symbol of a frame is not defined") as found:
        fastprof.info(data)
    assert found.value.offset == 12 + len(simpleperf.write([simpleperf.sample([(1, 0, 0)])])) - 16
    assert fastprof.info(data, lenient=True).losses["undefined-symbols"] == 1


def test_a_file_that_is_cut_keeps_addresses() -> None:
    data = simpleperf.write([simpleperf.sample([(1, 0, 0)]), FILE])
    with pytest.raises(FormatError, match="ends before its last record"):
        fastprof.info(data[:-4])
    assert fastprof.info(data[:-4], lenient=True).losses == {"unreadable-rest": 1}
    assert fastprof.info(data[:-9], lenient=True).losses == {"unreadable-rest": 1, "undefined-symbols": 1}
    assert [(row.name, row.self) for row in fastprof.top(data[:-9], n=0, lenient=True).rows] == [("0x1", 1)]


def test_of_a_file_told_twice_the_last_counts() -> None:
    other = {"file": {"id": 0, "path": "b.so", "symbol": ["h"]}}
    rows = fastprof.top(simpleperf.write([simpleperf.sample([(1, 0, 0)]), FILE, other]), n=0).rows
    assert [row.name for row in rows] == ["h"]
