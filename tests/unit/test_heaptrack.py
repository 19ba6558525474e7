"""heaptrack: the statements of docs/formats/heaptrack.md."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError
from fastprof.core.source import Source
from tests.support.paths import CORPUS

SMALL = CORPUS / "heaptrack" / "good" / "small.heaptrack"
FOLDED = (  # of SMALL, bytes at the peak
    "0x7faf32058b9f;_dl_init;call_init;call_init;0x7faf31ca57b9 72704\n"
    "main;work(int);make 800\n"
    "main;leak(int);make 30\n"
)


@pytest.fixture
def small() -> bytes:
    assert SMALL.exists(), f"put a small real profile at {SMALL}"
    return SMALL.read_bytes()


def test_it_is_recognized(small: bytes) -> None:
    """By `sniff` of the registration.  If formats/foreign.py lists the format, remove it there."""
    with Source(small) as source:
        assert formats.detect(source).name == "heaptrack"


def test_its_stacks_are_read(small: bytes, tmp_path: Path) -> None:
    fastprof.convert(small, tmp_path / "o.folded", from_="heaptrack")
    assert (tmp_path / "o.folded").read_text() == FOLDED


def test_damage_is_an_error_that_says_where(small: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as found:
        fastprof.convert(small + b"\xff\n", tmp_path / "o.folded", from_="heaptrack")
    assert (found.value.offset, found.value.line) == (len(small), small.count(b"\n") + 1)


def test_lenient_passes_damage_over_and_counts_it(small: bytes, tmp_path: Path) -> None:
    log = fastprof.convert(small + b"\xff\n", tmp_path / "o.folded", from_="heaptrack", lenient=True)
    assert sum(log.losses.values()) == 1
    assert (tmp_path / "o.folded").read_text() == FOLDED


def test_all_values_and_memory_over_time(small: bytes) -> None:
    found = fastprof.info(small)
    assert found.facts["totals"] == {
        "alloc_objects": 13, "alloc_space": 74839, "temporary_objects": 8, "temporary_space": 2100,
        "leaked_objects": 4, "leaked_space": 35, "peak_objects": 5, "peak_space": 73534,
    }  # fmt: skip
    assert found.facts["peak_bytes"] == 73534 and found.facts["resident_bytes"] == 930 * 4096
    assert [(one["heap_bytes"], one["time"]) for one in found.facts["snapshots"]] == [(35, 11)]


def test_many_points_of_time_become_fewer() -> None:
    lines = b"".join(b"c %x\n+ 0\nR %x\n" % (k, k) for k in range(100_000))
    points = fastprof.info(b"v 10400 3\nX ./a\nI 1000 1\na 1 0\n" + lines).facts["snapshots"]
    assert 64 <= len(points) <= 128
    assert [one["heap_bytes"] - one["time"] for one in points] == [1] * len(points)
    assert [one["resident_bytes"] for one in points] == [one["time"] * 4096 for one in points]


def test_versions() -> None:
    path = CORPUS / "heaptrack" / "good" / "version1.heaptrack"
    log = fastprof.info(path).facts
    assert (log["version"], log["seconds"], log["resident_bytes"]) == (1, 0.016, 7 * 4096)
    for version in (b"v 10100", b"v 10400 4"):
        with pytest.raises(FormatError, match="expected 1 to 3"):
            fastprof.info(version + b"\nX ./a\n")


@pytest.mark.parametrize(
    "line",
    ["s", "s 5 main", "s x main", "i", "i x", "i 1 9", "i 1 0 9", "i 1 0 1 1 80000000", "t", "t 9 0", "t 0 1", "t 0 9",
     "a", "a 8000000000000000 0", "a 1 9", "+", "+ 1", "+ 0x", "+ 11111111111111111", "- 1", "- 0", "c", "R", "I", "z"],
)  # fmt: skip
def test_each_line_is_checked(line: str) -> None:
    before = b"v 10400 3\nX ./a\ns 4 main\na 1 0\n"
    with pytest.raises(FormatError) as found:
        fastprof.info(before + line.encode() + b"\n+ 0\n")
    assert (found.value.offset, found.value.line) == (len(before), 5)
    log = fastprof.info(before + line.encode() + b"\n+ 0\n", lenient=True)
    assert log.losses == {"unreadable-lines": 1} and log.facts["totals"]["alloc_objects"] == 1


def test_an_unreadable_definition_keeps_its_number(tmp_path: Path) -> None:
    text = b"v 10400 3\nX ./a\ns 9 f\ns 1 g\ni 1 0 2\nt 1 0\na zz\na 7 1\n+ 1\n"
    fastprof.convert(text, tmp_path / "o.folded", lenient=True)
    assert (tmp_path / "o.folded").read_text() == "g 7\n"


def test_many_inlined_functions(tmp_path: Path) -> None:
    """The first one is innermost."""
    names = [f"f{k:02}" for k in range(99)]
    strings = "".join(f"s 3 {name}\n" for name in names)
    places = "".join(f" {k + 1:x} 1 7" for k in range(99))
    text = f"v 10400 3\nX ./a\n{strings}i 1000 0{places}\nt 1 0\na 7 1\n+ 0\n"
    fastprof.convert(text.encode(), tmp_path / "o.folded")
    assert (tmp_path / "o.folded").read_text() == ";".join(names[::-1]) + " 7\n"


def test_a_second_free_does_not_lower_the_sums() -> None:
    data = b"v 10400 3\nX ./a\na 7 0\n" + b"+ 0\n- 0\n- 0\n+ 0\n" * 9
    with pytest.raises(FormatError, match="an allocation in use") as found:
        fastprof.info(data)
    assert found.value.line == 6
    log = fastprof.info(data, lenient=True)
    assert log.losses == {"unreadable-lines": 1}
    assert log.facts["totals"]["peak_space"] == 14 and log.facts["totals"]["leaked_objects"] == 1
