"""Inherited events: formulas are parsed, resolved, and become columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from fastprof.core.formulas import Formulas, parse
from tests.reference.callgrind import parse as parse_callgrind

PROFILE = b"""\
version: 1
event: Sum = Ir + 2 Dr : Weighted
event: Twice = 2*Sum - Ir
event: Odd = Ir + Nothing
event: Dr : Data reads
events: Ir Dr
summary: 10 6

fl=a
fn=main
1 3 5
2 7
cfn=f
calls=1 4
3 6 1
fn=f
4 0 1
"""


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("Ir", [(1, "Ir")]),
        ("2 Dr", [(2, "Dr")]),
        ("2*Dr", [(2, "Dr")]),
        ("2Dr", [(2, "Dr")]),
        (" 2 * Dr ", [(2, "Dr")]),
        ("-Ir", [(-1, "Ir")]),
        ("Ir + 2 Dr - 10*L1m", [(1, "Ir"), (2, "Dr"), (-10, "L1m")]),
        ("Ir+Ir", [(1, "Ir"), (1, "Ir")]),
        ("Ir 2 Dr", [(1, "Ir"), (2, "Dr")]),
        ("0 Ir", [(0, "Ir")]),
    ],
)
def test_terms(formula: str, terms: list[tuple[int, str]]) -> None:
    assert parse(formula) == terms


@pytest.mark.parametrize("formula", ["", " ", "Ir +", "2", "Ir / Dr", "Ir + (Dr)", "--Ir", "1.5 Ir", "9" * 20 + " Ir"])
def test_what_is_no_formula(formula: str) -> None:
    with pytest.raises(ValueError, match=r"formula|factor"):
        parse(formula)


def test_nested_events_become_factors() -> None:
    formulas = Formulas(["Ir", "Dr", "Dw"], {"Est": "Ir + 10 Data - 2 Dw", "Data": "Dr + Dw"})
    assert formulas.factors == {"Data": [0, 1, 1], "Est": [1, 10, 8]}
    assert formulas.values([5, 2]) == {"Data": 2, "Est": 25}
    assert not formulas.problems


def test_a_counted_event_is_not_computed_anew() -> None:
    assert Formulas(["Ir", "Sum"], {"Twice": "2 Sum"}).factors == {"Twice": [0, 2]}


def test_what_has_no_value_says_why() -> None:
    inherited = {"A": "B + Ir", "B": "2 A", "C": "C", "D": "Gone", "E": "2 D", "F": "Ir / 2", "G": "3 Ir"}
    formulas = Formulas(["Ir"], inherited)
    assert formulas.factors == {"G": [3]}
    assert set(formulas.problems) == set("ABCDEF")
    assert "leads back to" in formulas.problems["A"]
    assert formulas.problems["C"] == "its formula leads back to C"
    assert formulas.problems["D"] == "its formula needs Gone, which the profile does not have"
    assert "Gone" in formulas.problems["E"]


def test_factors_and_nesting_are_bounded() -> None:
    chain = {f"e{i}": f"1000 e{i + 1}" for i in range(10)} | {"e10": "Ir"}
    assert "exceeds 2^63-1" in Formulas(["Ir"], chain).problems["e0"]
    deep = {f"e{i}": f"e{i + 1}" for i in range(5000)} | {"e5000": "Ir"}
    assert "deeper" in Formulas(["Ir"], deep).problems["e0"]


def converted(tmp_path: Path, data: bytes, to: str, **options: bool) -> tuple[bytes, list[str]]:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(data)
    log = fastprof.convert([str(source)], str(target), to=to, **options)
    return target.read_bytes(), log.warnings


def test_info_says_the_totals_of_inherited_events(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(PROFILE)
    log = fastprof.info(str(path))
    assert log.facts["totals"] == {"Ir": 10, "Dr": 6}
    assert log.facts["totals_of_inherited_events"] == {"Sum": 22, "Twice": 34}
    assert log.warnings == [
        "inherited event Odd cannot be computed: its formula needs Nothing, which the profile does not have"
    ]


def test_computed_events_are_columns(tmp_path: Path) -> None:
    data, warnings = converted(tmp_path, PROFILE, "callgrind", compute_events=True)
    part = parse_callgrind(data)[0]
    assert part.events == ["Ir", "Dr", "Sum", "Twice"]
    assert [row.values for row in part.rows] == [(3, 5, 13, 23), (7, 0, 7, 7), (6, 1, 8, 10), (0, 1, 2, 4)]
    assert b"\nevent: Sum : Weighted\n" in data
    assert b"\nevent: Odd = Ir + Nothing\n" in data
    assert b"\nsummary: 10 6 22 34\n" in data
    assert b"\ntotals: 10 6 22 34\n" in data
    assert len(warnings) == 1


def test_computed_events_of_each_part(tmp_path: Path) -> None:
    parts = b"part: 1\nevent: X = 2 A\nevents: A\nfl=f\nfn=f\n1 4\n\n"
    parts += b"part: 2\nevent: X = 3 B\nevents: A B\nfn=f\n1 1 5\n"
    data, _ = converted(tmp_path, parts, "callgrind", compute_events=True)
    assert [(p.events, p.rows[0].values) for p in parse_callgrind(data)] == [
        (["A", "X"], (4, 8)),
        (["A", "B", "X"], (1, 5, 15)),
    ]


def test_cachegrind_can_say_computed_events(tmp_path: Path) -> None:
    data, _ = converted(tmp_path, PROFILE, "cachegrind", compute_events=True)
    assert b"\nevents: Ir Dr Sum Twice\n" in data
    assert data.endswith(b"summary: 10 6 22 34\n")


@pytest.mark.parametrize(("formula", "value"), [("2 Ir", 1 << 62), ("Ir + Ir", 1 << 62), ("3 Ir", -(1 << 62))])
def test_a_computed_value_beyond_64_bits_is_an_error(tmp_path: Path, formula: str, value: int) -> None:
    data = f"event: X = {formula}\nevents: Ir\nfl=a\nfn=f\n1 {value}\n".encode()
    with pytest.raises(FastprofError, match="inherited event X: a value exceeds"):
        converted(tmp_path, data, "callgrind", compute_events=True)


def test_what_fits_in_the_end_is_no_overflow(tmp_path: Path) -> None:
    data = f"event: X = 4 A - 4 B\nevents: A B\nfl=a\nfn=f\n1 {(1 << 63) - 1} {(1 << 63) - 2}\n".encode()
    data, _ = converted(tmp_path, data, "callgrind", compute_events=True)
    assert parse_callgrind(data)[0].rows[0].values[2] == 4


@pytest.mark.parametrize("bits", [48, 49, 50, 61])
def test_totals_are_exact_for_small_and_large_values(tmp_path: Path, bits: int) -> None:
    value = 1 << bits
    lines = [value, -value, value - 1, -value - 1, 5] * 300
    calls = f"cfn=g\ncalls=1 1\n1 {(1 << 63) - 1}\n"
    path = tmp_path / "in"
    path.write_text("events: Ir\nfl=a\nfn=f\n" + calls + "".join(f"1 {v}\n" for v in lines) + calls)
    assert fastprof.info(str(path)).facts["totals"] == {"Ir": sum(lines)}
    path.write_text("events: Ir\nfl=a\nfn=f\n" + f"1 {value}\n" * (1 << 63 - bits if bits > 60 else 3))
    if bits > 60:
        with pytest.raises(FastprofError, match="sum of its costs or calls"):
            fastprof.info(str(path))
    else:
        assert fastprof.info(str(path)).facts["totals"] == {"Ir": 3 * value}


@pytest.mark.parametrize("to", ["callgrind", "cachegrind", "archive", "pprof"])
def test_computed_events_in_every_target(to: str, tmp_path: Path) -> None:
    """When read back, the file has the totals that the formula gives."""
    data, _ = converted(tmp_path, PROFILE, to, compute_events=True)
    path = tmp_path / "again"
    path.write_bytes(data)
    assert fastprof.info(str(path)).facts["totals"] == {"Ir": 10, "Dr": 6, "Sum": 22, "Twice": 34}


@pytest.mark.parametrize("compute", [True, False])
def test_gperftools_has_one_value_the_first_event(compute: bool, tmp_path: Path) -> None:
    data = b"event: S = samples + Dr\npositions: instr line\nevents: samples Dr\nfl=a\nfn=f\n"
    data += b"0x401000 1 3 5\n0x401004 2 7\n"
    data, _ = converted(tmp_path, data, "gperftools", compute_events=compute, frames="address")
    path = tmp_path / "again.prof"
    path.write_bytes(data)
    assert fastprof.info(str(path)).facts["totals"]["samples"] == 10


def test_formulas_survive_an_archive(tmp_path: Path) -> None:
    """Computed from the archive they equal those computed from the file, including the summary at the end."""
    first = PROFILE.replace(b"summary: 10 6\n", b"") + b"# a remark\nsummary: 10 6\n\n"
    data = first + b"part: 2\nevents: Ir Dr\nsummary: 1\nfl=a\nfn=f\n2 1\n"
    direct, _ = converted(tmp_path, data, "callgrind", compute_events=True)
    assert [p.summary for p in parse_callgrind(direct)] == [[10, 6, 22, 34], [1, 0, 1, 1]]
    assert direct.count(b"# a remark\n") == 1
    archived, _ = converted(tmp_path, data, "archive")
    again, _ = converted(tmp_path, archived, "callgrind", compute_events=True)
    assert again == direct
    computed, _ = converted(tmp_path, data, "archive", compute_events=True)
    again, _ = converted(tmp_path, computed, "callgrind")
    assert again == direct


def test_problems_do_not_repeat_those_of_the_events_that_are_needed() -> None:
    """Each problem quoted the one before it, which quoted ...: 0.2 MB of formulas gave 900 MB of text."""
    inherited = {"E0": "E1"} | {f"E{i}": f"E{i - 1} + E{i - 1}" for i in range(1, 3_000)}
    formulas = Formulas(["Ir"], {"Long": "x" * 100_000} | {f"L{i}": "Long" for i in range(100)} | inherited)
    assert not formulas.factors
    assert sum(map(len, formulas.problems.values())) < 200 * len(formulas.problems)
    assert formulas.problems["E2999"] == "its formula needs E2998, but its formula leads back to E0"


def test_no_more_are_computed_than_there_may_be_value_types() -> None:
    """30,000 formulas of 1,000 events would have 30 million factors, in less than a megabyte."""
    formulas = Formulas([f"V{i}" for i in range(1_000)], {f"E{i}": "V1" for i in range(3_000)})
    assert len(formulas.factors) == 1_024
    assert formulas.problems["E2999"] == "only 1,024 events are computed"
