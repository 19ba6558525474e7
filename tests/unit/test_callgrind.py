"""Callgrind and Cachegrind: the contract on small files, good and bad."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastprof import formats
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference.callgrind import parse
from tests.support.chosen import cases
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import REPO

LENIENT = Options(lenient=True)
CORPUS = REPO / "tests" / "corpus"
GOOD = sorted(CORPUS.glob("callgrind/good/*.callgrind")) + sorted(CORPUS.glob("cachegrind/good/*.cachegrind"))
BAD = sorted(CORPUS.glob("callgrind/bad/*.callgrind")) + sorted(CORPUS.glob("cachegrind/bad/*.cachegrind"))


def name_of(path: Path) -> str:
    return path.name


def numbered(path: Path) -> bool:
    return path.parts[-3] == "callgrind"


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_exactly_one_format_claims_it(path: Path) -> None:
    with Source(str(path)) as source:
        claims = [f.name for f in formats.formats() if f.sniff and f.sniff(source.head)]
    assert claims == [path.parts[-3]]


@pytest.mark.parametrize(
    ("header", "claim"),
    [
        (b"desc: I1 cache: 1\ndesc: D1 cache: 1\ncmd: ", "cachegrind"),
        (b"cmd: ", "cachegrind"),
        (b"version: 1\ncmd: ", "callgrind"),
        (b"version: 1\npid: 12\ncmd: ", "callgrind"),
    ],
)
def test_a_command_may_be_longer_than_what_is_looked_at(header: bytes, claim: str) -> None:
    data = header + b"java " + b"-Dproperty=value " * 500 + b"\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n"
    assert [f.name for f in formats.formats() if f.sniff and f.sniff(data[:4096])] == [claim]
    parts, log = read_parts(data)
    assert parts[0].sums == [5] and not log.warnings


@pytest.mark.parametrize("path", cases(GOOD), ids=name_of)
@pytest.mark.parametrize("window", [1, 2, 3, 7, 100, 4096, 1 << 20])
@pytest.mark.parametrize(("capacity", "wide"), [(1, 2), (2, 2), (1000, 2), (1000, 1), (1000, 0)])
def test_same_rows_for_every_window_and_capacity(path: Path, window: int, capacity: int, wide: int) -> None:
    data = path.read_bytes()
    ours, _ = read_parts(data, window=window, capacity=capacity, wide=wide)
    reference = parse(data.removeprefix(b"\xef\xbb\xbf"), numbered=numbered(path))
    assert [p.events for p in ours] == [p.events for p in reference]
    assert [p.rows for p in ours] == [p.rows for p in reference]


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_a_written_file_is_canonical(path: Path) -> None:
    once = rewrite(path.read_bytes())
    assert rewrite(once) == once
    assert [rewrite(path.read_bytes(), wide=wide) for wide in (1, 0)] == [once, once]
    assert [p.rows for p in parse(once)] == [p.rows for p in read_parts(path.read_bytes())[0]]


def nothing_was_read(error: FastprofError) -> bool:
    """Whether only lines that a graph cannot hold were left."""
    return "no readable costs, only " in str(error)


def read_leniently(data: bytes, path: Path) -> None:
    try:
        read_parts(data, LENIENT, from_=path.parts[-3])
    except FastprofError as error:
        assert nothing_was_read(error)


@pytest.mark.parametrize("path", cases(GOOD), ids=name_of)
def test_cut_anywhere_is_an_error_with_a_place_or_a_shorter_profile(path: Path) -> None:
    data = path.read_bytes()
    for n in range(0, len(data), max(1, len(data) // 400)):
        try:
            read_parts(data[:n], from_=path.parts[-3])
        except FormatError as error:
            assert error.offset is not None and error.offset <= n
            assert error.line is not None and error.line <= data[:n].count(b"\n") + 1
        except FastprofError as error:
            assert nothing_was_read(error)
        read_leniently(data[:n], path)


@pytest.mark.parametrize("path", cases(GOOD), ids=name_of)
def test_a_flipped_byte_is_an_error_with_a_place_or_a_profile(path: Path) -> None:
    data = path.read_bytes()
    for k, n in enumerate(range(0, len(data), max(1, len(data) // 300))):
        changed = data[:n] + bytes([data[n] ^ (0x01, 0x10, 0x80)[k % 3]]) + data[n + 1 :]
        try:
            read_parts(changed, from_=path.parts[-3])
        except FormatError as error:
            assert error.offset is not None and error.offset <= len(data)
        except FastprofError as error:
            assert nothing_was_read(error)
        read_leniently(changed, path)


PLACES = {
    "before_events": (4, 21),
    "overflow_count": (5, 32),
    "overflow_line": (5, 32),
    "no_cost_line": (7, 42),
    "two_calls": (7, 42),
    "no_count": (7, 42),
    "positions": (2, 11),
    "strange": (6, 36),
    "fraction": (6, 53),
    "more": (6, 53),
    "counts": (6, 53),
}


@pytest.mark.parametrize("path", BAD, ids=name_of)
@pytest.mark.parametrize("window", [1, 1 << 20])
def test_a_bad_file_says_where(path: Path, window: int) -> None:
    with pytest.raises(FormatError) as raised:
        read_parts(path.read_bytes(), window=window, from_=path.parts[-3])
    assert (raised.value.line, raised.value.offset) == PLACES[path.stem]


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_lenient_reads_the_rest_of_a_bad_file(path: Path) -> None:
    _, log = read_parts(path.read_bytes(), LENIENT, from_=path.parts[-3])
    assert sum(log.losses.values()) > 0
