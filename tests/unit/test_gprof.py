"""The text of gprof: the statements of docs/formats/gprof.md."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError, UnrecognizedError
from fastprof.core.source import Source
from fastprof.formats.gmon.text import _cut_place
from tests.support.paths import CORPUS

GOOD = CORPUS / "gprof" / "good"


def rows(data: bytes | Path, **options: object) -> dict[str, tuple[float, float, int]]:
    """By function: self and inclusive hundredths of a second, calls."""
    found = fastprof.top(data, n=0, **options).rows
    return {row.name: (round(row.self / 1e7), round(row.inclusive / 1e7), row.calls) for row in found}


@pytest.mark.parametrize("path", sorted(GOOD.iterdir()), ids=lambda path: path.name)
def test_it_is_recognized(path: Path) -> None:
    with Source(path.read_bytes()) as source:
        assert formats.claimants(source) == ["gprof"]


@pytest.mark.parametrize("name", ["small", "lines"])
def test_times_and_calls(name: str) -> None:
    assert rows(GOOD / f"{name}.gprof.txt") == {
        "leaf": (168, 168, 700_000),
        "mid": (1, 145, 100_001),
        "rec": (1, 1, 7_049_155),
        "main": (0, 170, 0),
        "other": (0, 169, 1),
    }


def test_a_flat_profile_that_ends_with_a_row_may_be_cut() -> None:
    text = (GOOD / "small.gprof.txt").read_bytes()
    assert not fastprof.info(text).warnings
    flat = text[: text.index(b" rec\n") + 5]
    (warning,) = fastprof.info(flat).warnings
    assert "ends with a row of the flat profile" in warning
    assert not fastprof.info(flat + b"\n \n %         the percentage of the total\n").warnings


def test_lines_and_files_of_functions() -> None:
    with fastprof.open(GOOD / "lines.gprof.txt") as profile:
        found = {(row["function"], row["file"], row["line"]) for row in profile.rows("graph")}
    assert ("leaf", "w.c", 4) in found and ("other", "w.c", 6) in found


def test_members_of_a_cycle_have_calls_without_time() -> None:
    found = rows(GOOD / "cycle.gprof.txt")
    found = {name.removesuffix(" <cycle 1>"): row for name, row in found.items()}
    assert found["ping"][0] == 61 and found["ping"][2] == 18_000
    assert found["pong"][0] == 22 and found["pong"][2] == 17_100
    assert found["burn"] == (41, 41, 20_700)


def test_a_flat_profile_alone_has_times() -> None:
    log = fastprof.info(GOOD / "flat.gprof.txt")
    assert log.facts["totals"] == {"time": 1_700_000_000} and log.not_representable == {"calls-without-callers": 4}


def test_functions_that_the_call_graph_lacks() -> None:
    """Their time is that of the flat profile; so is that of callers without an entry."""
    graph = (GOOD / "small.gprof.txt").read_text()
    entry = graph.index("[3]     98.8")
    start, end = graph.rindex("-----\n", 0, entry) + 6, graph.index("-----\n", entry) + 6
    data = (graph[:start] + graph[end:]).replace("  leaf\n", "  leaf\n  9.00   9.00   2.00   other_one\n", 1)
    found = rows(data.encode())
    assert found["leaf"] == (168, 168, 700_000) and found["other_one"][0] == 200


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("    time", 6, "expected times and a name"),
        ("[1]    100.0    0.00    1.70                 main", 17, "expected an entry of the call graph"),
    ],
)
def test_a_damaged_line(text: str, line: int, message: str) -> None:
    lines = (GOOD / "small.gprof.txt").read_text().split("\n")
    lines.insert(line - 1, text)
    data = "\n".join(lines).encode()
    with pytest.raises(FormatError, match=message) as found:
        fastprof.info(data)
    assert (found.value.line, found.value.offset) == (line, len("\n".join(lines[: line - 1]).encode()) + 1)
    log = fastprof.info(data, lenient=True)
    assert log.losses == {"unreadable-lines": 1} and log.facts["totals"] == {"time": 1_700_000_000}


def test_a_call_graph_without_an_end() -> None:
    data = (GOOD / "small.gprof.txt").read_bytes()
    cut = data[: data.index(b"-----\n[4]") + 6] if b"-----\n[4]" in data else data[: data.index(b"[4]")]
    with pytest.raises(FormatError, match="inside the call graph"):
        fastprof.info(cut[: cut.rindex(b"\n") + 1])
    assert fastprof.info(cut[: cut.rindex(b"\n") + 1], lenient=True).losses == {"unreadable-rest": 1}


def test_the_traditional_layout_has_advice() -> None:
    with pytest.raises(UnrecognizedError, match="without `-T`"):
        fastprof.info(b"\ngranularity: each sample hit covers 2 byte(s) for 0.59% of 1.70 seconds\n")


FLAT = (GOOD / "flat.gprof.txt").read_bytes().partition(b" time ")[0] + b" time   seconds   seconds    calls\n"


def test_sums_of_times_are_bounded() -> None:
    with pytest.raises(FormatError, match=r"the sum of a function's times exceeds 2\^63 - 1") as found:
        fastprof.info(FLAT + b"  1.00 1.00 999999999.0 leaf\n" * 12)
    assert found.value.line == 15


def test_negative_times_are_damage() -> None:
    with pytest.raises(FormatError, match="expected times and a name"):
        fastprof.info(FLAT + b"  1.00      1.68     -5.0   700000     0.00     0.00  leaf\n")
    assert fastprof.info(FLAT + b" -nan      1.68     5.0  leaf\n").facts["totals"] == {"time": 5_000_000_000}


@pytest.mark.parametrize(
    "rest",
    [b"\n\t\t\tCall graph\n", b"\ngranularity: each sample hit covers 2 byte(s)\n\n", b"\nindex % time    self  "],
)
def test_a_call_graph_that_is_cut_in_its_heading(rest: bytes) -> None:
    data = (GOOD / "flat.gprof.txt").read_bytes() + rest
    with pytest.raises(FormatError, match="the file ends inside"):
        fastprof.info(data)
    assert fastprof.info(data, lenient=True).facts["totals"] == {"time": 1_700_000_000}


def test_places_are_cut_from_the_right_in_linear_time() -> None:
    assert _cut_place(b"f (int) (a (b:1.c:7 @ 4012fe)") == (b"f (int) (a", b"b:1.c", 7)
    for name in (b" (w.c:4 @ 40)", b"f (w.c:4 @ 4g)", b"f (w.c:1234567890 @ 40)", b"f w.c:4 @ 40)", b"f (w.c: @ 40)"):
        assert _cut_place(name) == (name, b"", 0)
    data = FLAT + b"  1.00 1.00 1.00 x" + b" (:" * 300_000 + b"\n"
    start = process_time()
    fastprof.info(data)
    assert process_time() - start < 10
