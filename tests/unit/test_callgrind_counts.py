"""Counts of Callgrind and Cachegrind: negative, rounded, too large, omitted."""

from __future__ import annotations

from random import Random

import pytest

from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.options import Options
from fastprof.formats.callgrind import cachegrind
from fastprof.formats.callgrind._write import CostLines
from tests.reference.callgrind import parse
from tests.support.graphs import read_parts, rewrite

LENIENT = Options(lenient=True)
HEADER = b"version: 1\nevents: Ir Dr\n"


UNSIGNED = "unsigned-negatives"


def unsigned(value: int) -> bytes:
    return b"%d" % (value % (1 << 64))


@pytest.mark.parametrize("hexadecimal", [False, True])
@pytest.mark.parametrize("first", [False, True], ids=["summary last", "summary first"])
def test_counts_below_0_without_a_sign(first: bool, hexadecimal: bool) -> None:
    """Like memory in old Xdebug files; the sums of the part reveal it."""
    below = b"0x%x" % ((1 << 64) - 40) if hexadecimal else unsigned(-40)
    sums = b"summary: 3 " + unsigned(-38) + b"\n"
    rows = b"fl=a\nfn=f\n1 2 %s\ncfn=g\ncalls=1 0\n2 7 %s\n4 1 2\n" % (below, unsigned(-1))
    other = b"part: 2\n" + HEADER + b"fn=f\n1 5 6\n"  # each part is judged separately
    data = HEADER + (sums + rows if first else rows + sums) + other
    for size in (None, 1):
        parts, log = read_parts(data, window=size, capacity=size)
        assert [part.rows for part in parts] == [part.rows for part in parse(data)]
        assert [row.values for row in parts[0].rows] == [(2, -40), (7, -1), (1, 2)]
        assert parts[0].summary == [3, -38] and parts[0].sums == [3, -38]
        assert log.repairs[UNSIGNED] == 3 and not log.losses
    once = rewrite(data)
    assert b"summary: 3 -38\n" in once and rewrite(once) == once


@pytest.mark.parametrize(
    "sums",
    [
        b"",
        b"summary: 3\n",
        b"summary: 3 -39\n",
        b"summary: 3 " + unsigned(-37) + b"\n",
        b"summary: 3 -38\ntotals: 3 -37\n",
        b"summary: 3 -38\nsummary: 3 0\n",
        b"part: 2\nsummary: 3 -38\n",
    ],
)
def test_counts_beyond_2_to_the_63_that_no_sum_explains(sums: bytes) -> None:
    before = HEADER + b"fl=a\nfn=f\n1 1 1\n"
    data = before + b"2 1 " + unsigned(-40) + b"\n4 1 " + unsigned(-1) + b"\n5 0 2\n" + sums
    expected = f"line 6, byte {len(before)}: count is '18446744073709551576', expected at most 2.63 - 1: no sum of its"
    for size in (None, 1):
        with pytest.raises(FormatError, match=expected) as raised:
            read_parts(data, window=size, capacity=size)
        assert raised.value.code == -3
    parts, log = read_parts(data, LENIENT)
    assert parts[0].sums == [3, -38] and UNSIGNED not in log.repairs
    lost = 2 + (unsigned(-37) in sums)
    assert log.losses["wrapped-counts"] == lost


def test_a_rounded_count_of_a_cachegrind_summary_is_counted_once() -> None:
    _, log = read_parts(b"cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5.0\n")
    assert log.repairs == {"rounded-counts": 1}


def test_a_sum_below_0_without_a_sign_must_be_one() -> None:
    rows = b"fl=a\nfn=f\n1 5 -6\n"
    _, log = read_parts(HEADER + rows + b"totals: 5 " + unsigned(-6) + b"\n")
    assert log.repairs == {UNSIGNED: 1}
    for line in (b"summary: 5 " + unsigned(-7), b"totals: 5 -6 " + unsigned(-1)):
        with pytest.raises(FormatError, match=f"line 3, byte {len(HEADER)}: count is '184467440737095516"):
            read_parts(HEADER + line + b"\n" + rows)


@pytest.mark.parametrize("count", [b"-18446744073709551615", b"1.8446744073709550e19", b"9223372036854775808", b"1e19"])
def test_counts_that_are_never_below_0_without_a_sign(count: bytes) -> None:
    with pytest.raises(FormatError, match=f"line 4, .*: count is '{count.decode()}', expected at most 2.63 - 1$"):
        read_parts(HEADER + b"fn=f\n1 " + count + b"\nsummary: -1\n")
    # and those of a lost line are not counted
    data = HEADER + b"fn=f\n1 " + unsigned(-5) + b" 6 7\n1 " + count + b"\n"
    assert read_parts(data, LENIENT)[1].losses == {"unreadable-lines": 2}


@pytest.mark.parametrize(
    ("creator", "all_counts"),
    [
        (b"creator: xdebug 3.3.1 (PHP 8.2)\n", True),
        (b"creator: xtree-1\n", True),
        (b"creator: callgrind-3.19.0\n", False),
        (b"", False),
    ],
)
@pytest.mark.parametrize("wide", [2, 0])
def test_trailing_zeros_are_written_where_the_writer_does(creator: bytes, all_counts: bool, wide: int) -> None:
    """callgrind_annotate shows a missing count as `.`."""
    body = b"fl=a\nfn=f\n1 5 0 0\n9 0 3 0\ncfn=g\ncalls=1 7\n9 4 0 0\ntotals: 5 3 0\n"
    once = rewrite(b"version: 1\n" + creator + b"events: A B C\nsummary: 5 3 0\n" + body, wide=wide)
    full = {b"1 5 0 0", b"+8 0 3 0", b"* 4 0 0", b"totals: 5 3 0", b"summary: 5 3 0"}
    short = {b"1 5", b"+8 0 3", b"* 4", b"totals: 5 3", b"summary: 5 3"}
    assert (full | short) & set(once.split(b"\n")) == (full if all_counts else short)
    assert rewrite(once, wide=wide) == once


@pytest.mark.parametrize("line", [b"jump=3 7", b"jcnd=3/4 7", b"jump=3 7 "])
@pytest.mark.parametrize("counts", [b"5", b"5 6", b"  5", b"123456789012345678901", b"x"])
def test_counts_of_a_jump_are_left_out_and_counted(line: bytes, counts: bytes) -> None:
    data = HEADER + b"fn=f\n" + line + b"\n7 " + counts + b"\n1 2 3\n"
    parts, log = read_parts(data)
    assert [(row.kind != "cost", row.values) for row in parts[0].rows] == [(True, (0, 0)), (False, (2, 3))]
    assert log.repairs == {"extra-numbers": 1}
    _, log = read_parts(HEADER + b"fn=f\n" + line + b"\n7 \n1 2 3\n" + line + b"\n7\n")
    assert not log.repairs


def test_comments_behind_counts_are_left_out_and_counted() -> None:
    data = b"positions: instr line\nevents: Ir Dr\nfl=a\nfn=f\n0x10 1 5 6 # add\n0x14 #nop\n0x18 2 5#x\n"
    with pytest.raises(FormatError, match=r"line 7, byte .*: count is '5#x'"):
        read_parts(data)
    parts, log = read_parts(data.replace(b"5#x", b"5 #x"))
    assert [(r.position, r.values) for r in parts[0].rows] == [
        ((0x10, 0, 1), (5, 6)),
        ((0x14, 0, 0), (0, 0)),
        ((0x18, 0, 2), (5, 0)),
    ]
    assert log.not_representable == {"trailing-comments": 3}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"1e+06", 1000000),
        (b"1.25e1", 12),  # half to even
        (b"13.5", 14),
        (b"12.50000000000000000000000000000000000001", 13),
        (b".5", 0),
        (b"5.", 5),
        (b"9007199254740993.2", 9007199254740993),  # which no double can hold
        (b"9223372036854775807.4", 2**63 - 1),
        (b"922337203685477580700e-2", 2**63 - 1),
        (b"0.00000000000000000000015e+22", 2),
        (b"0e99999999999999999999", 0),
        (b"1e-99999999999999999999", 0),
        (b"0." + b"0" * 5000 + b"7e5001", 7),
        (b"7" + b"0" * 5000 + b"E-5000", 7),
        (b"9223372036854775807.5", None),
        (b"18446744073709551615.5", None),
        (b"1e19", None),
        (b"1e99999999999999999999", None),
    ],
)
def test_a_count_may_have_a_fraction_or_an_exponent(text: bytes, count: int | None) -> None:
    data = HEADER + b"fl=a\nfn=f\n7 1\n8 2 -%b\ncfn=g\ncalls=%b 3\n9 %b\n" % (text, text, text)
    if count is None:
        with pytest.raises(FormatError, match=r"line 6, .*: count is .*, expected at most 2\^63 - 1"):
            read_parts(data)
        return
    parts, log = read_parts(data + b"totals: 3 -%b\n" % text)
    assert [(row.count, row.values) for row in parts[0].rows] == [(0, (1, 0)), (0, (2, -count)), (count, (count, 0))]
    assert parts[0].totals == [3, -count]
    assert log.repairs == {"rounded-counts": 4}
    assert log.warnings == [
        "input: line 6: a count with a fraction or exponent; such counts are rounded to the nearest whole number"
    ]


@pytest.mark.parametrize("text", [b"1e", b"1e+", b"1.2.3", b".", b"-1.5", b"nan", b"inf", b"1e5x", b"0x1.8", b"1e5/2"])
def test_what_is_no_number_is_none_of_calls(text: bytes) -> None:
    with pytest.raises(FormatError, match=r"line 5, .*: count of calls or jumps is .*, expected a number"):
        read_parts(HEADER + b"fl=a\nfn=f\ncalls=%b 5\n1 1\n" % text)


def test_what_is_lost_with_its_line_is_not_rounded() -> None:
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n1 1.5 2.5 3\n2 1.5\n", LENIENT)
    assert parts[0].sums == [2, 0]
    assert log.repairs == {"rounded-counts": 1}
    assert log.warnings[0].startswith("input: line 6: ")


def test_more_than_64_bits_of_cost_is_an_error() -> None:
    data = HEADER + b"fl=a\nfn=f\n1 9223372036854775807\n2 1\n"
    _, log = read_parts(data + b"totals: 5\n")
    assert log.warnings == ["input: the sum of a part's costs exceeds 2^63 - 1"]
    with pytest.raises(FastprofError):
        rewrite(HEADER + b"fl=a\nfn=f\n1 9223372036854775807\n1 1\n", "cachegrind")


@pytest.mark.parametrize("wide", [2, 1, 0])
@pytest.mark.parametrize("n_values", [1, 2, 8, 9, 13, 16, 17])
def test_cachegrind_lines_are_the_same_for_every_instruction_set(
    n_values: int, wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are written up to sixteen rows at a time, by different code below 10^4, below 10^7 and beyond."""

    def lines(model: int, out: int, n_values: int) -> CostLines:
        made = CostLines(model, out, n_values)
        made.wide = wide
        return made

    monkeypatch.setattr(cachegrind, "CostLines", lines)
    random = Random(n_values)
    limits = [1, 10, 9999, 10_000, 9_999_999, 10_000_000, 1 << 32, 1 << 50]
    text = [b"fl=a.c"]
    for name in (b"f", b"g", b"h"):
        text.append(b"fn=" + name)
        for line in range(1, 40):
            most = random.choice(limits)
            counts = [random.choice([0, random.randrange(most), most]) // n_values for _ in range(n_values)]
            text.append(b" ".join(b"%d" % v for v in (line * 7, *counts)))
    rows = [line.split() for line in text if line[:1] != b"f"]
    text.append(b"summary: " + b" ".join(b"%d" % sum(int(row[k + 1]) for row in rows) for k in range(n_values)))
    events = b" ".join(b"E%d" % k for k in range(n_values))
    written = rewrite(b"cmd: x\nevents: " + events + b"\n" + b"\n".join(text) + b"\n", "cachegrind").split(b"\n")
    assert written[-len(text) - 1 : -1] == text
