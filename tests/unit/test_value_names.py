"""--rename-value: inputs that name the same quantity differently."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError, UsageError

GRAPH = "events: {events}\n{more}fl=a.c\nfn=main\n1 {values}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ms.folded").write_text("main;f 10\nmain;g 3\n")
    fastprof.convert("ms.folded", "ms.pb", rename_value=["samples=wall/milliseconds"])
    (tmp_path / "ns.callgrind").write_text(GRAPH.format(events="ns", more="", values="5"))
    return tmp_path


def totals(path: str) -> tuple[dict[str, int], dict[str, str]]:
    facts = fastprof.info(path).facts
    return facts["totals"], facts.get("units", {})


def test_a_unit_converts(folder: Path) -> None:
    assert totals("ms.pb") == ({"wall": 13}, {"wall": "milliseconds"})  # a plain count just gets its unit
    for given, factor, unit in (
        ("wall=time/nanoseconds", 10**6, "nanoseconds"),
        ("wall=time/us", 1000, "us"),
        ("wall=time/milliseconds", 1, "milliseconds"),
        ("wall=time", 1, "milliseconds"),
    ):
        fastprof.convert("ms.pb", "out.pb", rename_value=[given])
        assert totals("out.pb") == ({"time": 13 * factor}, {"time": unit})


def test_the_unit_of_values_that_have_none(folder: Path) -> None:
    for given, name, factor, unit in (
        ("samples/us=time/ns", "time", 1000, "ns"),
        ("samples/us=time/us", "time", 1, "us"),
        ("samples/us=time", "time", 1, "us"),
        ("samples/KiB=size/bytes", "size", 1024, "bytes"),
    ):
        fastprof.convert("ms.folded", "out.pb", rename_value=[given])
        assert totals("out.pb") == ({name: 13 * factor}, {name: unit})
    fastprof.convert("ms.pb", "out.pb", rename_value=["wall/milliseconds=time/us"])  # the unit that it has
    assert totals("out.pb") == ({"time": 13_000}, {"time": "us"})


def test_a_name_with_a_slash(folder: Path) -> None:
    """As those of perf's events; a name takes precedence over a name with its unit."""
    given = ["u/ms=a", "cpu/cycles/u=b", "cpu/cycles/k=c"]
    Path("e.callgrind").write_text(GRAPH.format(events="cpu/cycles/u u/ms cpu/cycles", more="", values="1 2 3"))
    fastprof.convert("e.callgrind", "out.callgrind", rename_value=given)
    assert totals("out.callgrind")[0] == {"b": 1, "a": 2, "cpu/cycles": 3}


def test_inputs_agree(folder: Path) -> None:
    with pytest.raises(UsageError, match="ns"):
        fastprof.merge(["ms.pb", "ns.callgrind"], "out.callgrind")
    names = ["wall=time/nanoseconds", "ns=time/nanoseconds"]
    fastprof.merge(["ms.pb", "ns.callgrind"], "out.callgrind", rename_value=names)
    assert totals("out.callgrind")[0] == {"time": 13_000_005}
    found = fastprof.diff("ns.callgrind", "ms.pb", rename_value=names)
    assert [(row.name, row.old, row.new) for row in found.rows] == [
        ("f", (0,), (10_000_000,)),
        ("g", (0,), (3_000_000,)),
        ("main", (5,), (0,)),
    ]
    top = fastprof.top(["ms.pb", "ns.callgrind"], rename_value=names)
    assert (top.total, top.rows[0].name) == (13_000_005, "f")


def test_formulas_defaults_and_summaries_follow(folder: Path) -> None:
    Path("x.callgrind").write_text(GRAPH.format(events="Ir Dr", more="event: Sum = Ir + 2 Dr\n", values="10 1"))
    fastprof.convert("x.callgrind", "y.callgrind", rename_value=["Ir=Instr", "Dr=Reads"])
    text = Path("y.callgrind").read_text()
    assert "events: Instr Reads\n" in text and "event: Sum = Instr + 2 Reads\n" in text
    fastprof.convert("x.callgrind", "x.pb")
    fastprof.convert("x.pb", "y.pb", rename_value=["Ir=Instr"])
    assert fastprof.top("y.pb").total == 10  # the default value type stays the same
    fastprof.convert("x.callgrind", "swapped.callgrind", rename_value=["Ir=Dr", "Dr=Ir"])
    assert totals("swapped.callgrind")[0] == {"Dr": 10, "Ir": 1}


def test_the_bridge_of_a_timeline_makes_its_values(folder: Path) -> None:
    events = [{"name": "f", "ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]
    Path("t.json").write_text(json.dumps(events))
    fastprof.convert("t.json", "out.pb", from_="trace-event", rename_value=["time=wall"])
    sums, units = totals("out.pb")
    assert (sums["wall"], units["wall"], "time" in sums) == (2000, "nanoseconds", False), (sums, units)
    with pytest.raises(UsageError, match="rename_value= has no effect"):
        fastprof.convert("t.json", "out.json", from_="trace-event", to="trace-event", rename_value=["time=wall"])


def test_a_name_that_no_input_has(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fastprof.cli import main

    command = ["diff", "ms.pb", "ms.folded", "--rename-value", "samples=wall/milliseconds"]
    assert main(command) == 0
    assert capsys.readouterr().err == ""  # one side has it
    assert main([*command, "--rename-value", "walls=x"]) == 0
    assert capsys.readouterr().err == "fastprof: warning: --rename-value: no input has the value type 'walls'\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["wall=time/seconds"], "wall/milliseconds in seconds would need fractions; convert to the finer unit"),
        (["wall=size/bytes"], "wall is in milliseconds, which cannot be converted to bytes"),
        (["wall=/ns"], "expected OLD=NEW, OLD=NEW/UNIT or OLD/UNIT=NEW/UNIT, each OLD once"),
        (["wall=a", "wall=b"], "expected OLD=NEW, OLD=NEW/UNIT or OLD/UNIT=NEW/UNIT, each OLD once"),
        (["wall/ms=a", "wall/us=b"], "expected OLD=NEW, OLD=NEW/UNIT or OLD/UNIT=NEW/UNIT, each OLD once"),
        (["wall/us=time/ns"], "wall is in milliseconds, not in us"),
        (["wall"], "'wall' is not OLD=NEW"),
    ],
)
def test_refused(folder: Path, given: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        fastprof.convert("ms.pb", "out.pb", rename_value=given)
    assert message in str(error.value)
    assert not Path("out.pb").exists()


def test_two_that_would_be_the_same(folder: Path) -> None:
    Path("x.callgrind").write_text(GRAPH.format(events="Ir Dr", more="", values="10 1"))
    with pytest.raises(UsageError, match="two value types would be the same: Dr"):
        fastprof.convert("x.callgrind", "out.pb", rename_value=["Ir=Dr"])


def test_a_value_that_does_not_fit(folder: Path) -> None:
    Path("big.folded").write_text(f"main {sys.maxsize // 10}\n")
    fastprof.convert("big.folded", "big.pb", rename_value=["samples=t/seconds"])
    with pytest.raises(FastprofError, match="t in the other unit: a value exceeds 2\\^63 - 1"):
        fastprof.convert("big.pb", "out.pb", rename_value=["t=t/ns"])
