"""gmon.out: the statements of docs/formats/gmon.md."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError, SymbolError
from fastprof.core.source import Source
from tests.support.paths import CORPUS

GOOD = CORPUS / "gmon" / "good"


def gmon(bins: list[int], arcs: list[tuple[int, int, int]], low: int = 0x1000, high: int = 0x1010) -> bytes:
    head = struct.pack("<bQQii15sc", 0, low, high, len(bins), 100, b"seconds", b"s")
    records = [head, struct.pack(f"<{len(bins)}H", *bins), *(struct.pack("<bQQI", 1, *arc) for arc in arcs)]
    return b"gmon\x01\0\0\0" + bytes(12) + b"".join(records)


def rows(data: bytes | Path, **options: object) -> dict[str, tuple[float, float, int]]:
    """By function: self and inclusive nanoseconds, calls."""
    found = fastprof.top(data, **options).rows
    return {row.name: (row.self, row.inclusive, row.calls) for row in found}


def test_it_is_recognized() -> None:
    for path in GOOD.iterdir():
        with Source(path) as source:
            assert formats.detect(source).name == "gmon"


def test_without_the_program_functions_are_addresses() -> None:
    """Those that are called; an address before the first of them is a function of its own."""
    data = gmon([1, 0, 300, 2], [(0x1005, 0x1008, 7), (0x1009, 0x1008, 2)])
    log = fastprof.info(data)
    assert any("--symbols" in one or "symbols" in one for one in map(str, log.warnings))
    assert rows(data)["0x1008"] == (3_020_000_000, 3_020_000_000, 9)
    assert rows(data)["0x1005"][1] == 3_020_000_000
    assert log.facts["totals"] == {"time": 3_030_000_000} and log.facts["samples"] == 303


def test_other_byte_orders_and_word_sizes() -> None:
    log = fastprof.info(GOOD / "big-endian-32.gmon")
    assert log.facts["totals"] == {"time": 3_030_000_000} and log.facts["arcs"] == 2
    assert log.not_representable == {"basic-blocks": 1}


def test_the_sum_of_times_is_that_of_the_samples() -> None:
    """Also of bins whose width is no whole number of bytes, over several functions."""
    data = gmon([3] * 7, [(0x1001, 0x1003, 1), (0x1001, 0x1005, 1), (0x1001, 0x100B, 1)])
    assert fastprof.info(data).facts["totals"] == {"time": 210_000_000}


@pytest.mark.parametrize(
    ("data", "offset", "text"),
    [
        (b"gmon\x02\0\0\0" + bytes(12), 0, "the version is unknown"),
        (b"gmon\x01", 0, "does not begin"),
        (gmon([1], [])[:-1], 20, "ends inside"),
        (gmon([1], []) + b"\3", 63, "the kind of record is 3"),
        (gmon([1], [], 5, 5), 20, "expected more than 0"),
        (gmon([1], []) + struct.pack("<bi", 2, 1 << 30), 63, "ends inside"),
        (gmon([1], []) + struct.pack("<bi", 2, -1), 63, "ends inside"),
    ],
)
def test_each_record_is_checked(data: bytes, offset: int, text: str) -> None:
    with pytest.raises(FormatError, match=text) as found:
        fastprof.info(data, from_="gmon")
    assert found.value.offset == offset


def test_lenient_keeps_what_is_before() -> None:
    log = fastprof.info(gmon([1], []) + b"\3", lenient=True)
    assert log.losses == {"unreadable-rest": 1} and log.facts["totals"] == {"time": 10_000_000}


def test_a_program_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("no program")
    with pytest.raises(SymbolError):
        fastprof.top(GOOD / "small.gmon", symbols=[tmp_path / "a"])


def test_a_bin_may_be_of_any_width(tmp_path: Path) -> None:
    """Its bytes of no function are not looked at one by one."""
    path = tmp_path / "gmon.out"
    head = b"gmon" + struct.pack("<I12x", 1)
    path.write_bytes(
        head + b"\0" + struct.pack("<QQIi15sc", 4096, 1 << 50, 4, 100, b"seconds", b"s") + bytes(6) + b"\1\0"
    )
    assert fastprof.top(path).total == 10_000_000


def test_many_wide_bins_are_not_a_row_for_each_byte(tmp_path: Path) -> None:
    path, n = tmp_path / "gmon.out", 100_000
    head = b"gmon" + struct.pack("<I12x", 1) + b"\0"
    path.write_bytes(head + struct.pack("<QQIi15sc", 4096, 1 << 50, n, 100, b"seconds", b"s") + b"\1\0" * n)
    found = fastprof.top(path)
    assert found.total == n * 10_000_000 and found.n_rows < 2 * n
