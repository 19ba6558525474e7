"""Callgrind and Cachegrind: the contract on small files, and what each dialect means."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from fastprof import convert, formats
from fastprof.core.engine import read
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.options import Options
from tests.reference.callgrind import Function, parse
from tests.reference.cg_annotate import Annotated
from tests.reference.kcachegrind import load
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import REPO
from tests.support.product import open_input

CORPUS = REPO / "tests" / "corpus"
GOOD = sorted(CORPUS.glob("callgrind/good/*.callgrind")) + sorted(CORPUS.glob("cachegrind/good/*.cachegrind"))
BAD = sorted(CORPUS.glob("callgrind/bad/*.callgrind")) + sorted(CORPUS.glob("cachegrind/bad/*.cachegrind"))
LENIENT = Options(lenient=True)
HEADER = b"version: 1\nevents: Ir Dr\n"


def name_of(path: Path) -> str:
    return path.name


def numbered(path: Path) -> bool:
    return path.parts[-3] == "callgrind"


# ---- the contract ----------------------------------------------------------


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_exactly_one_format_claims_it(path: Path) -> None:
    head = path.read_bytes()[:4096]
    claims = [f.name for f in formats.formats() if f.sniff and f.sniff(head)]
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
    parts, report = read_parts(data)
    assert parts[0].sums == [5] and not report.warnings


@pytest.mark.parametrize("path", GOOD, ids=name_of)
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


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_cut_anywhere_is_an_error_with_a_place_or_a_shorter_profile(path: Path) -> None:
    data = path.read_bytes()
    for n in range(0, len(data), max(1, len(data) // 400)):
        try:
            read_parts(data[:n], from_=path.parts[-3])
        except FormatError as error:
            assert error.offset is not None and error.offset <= n
            assert error.line is not None and error.line <= data[:n].count(b"\n") + 1
        read_parts(data[:n], LENIENT, from_=path.parts[-3])


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_a_flipped_byte_is_an_error_with_a_place_or_a_profile(path: Path) -> None:
    data = path.read_bytes()
    for n in range(0, len(data), max(1, len(data) // 300)):
        for bit in (0x01, 0x10, 0x80):
            changed = data[:n] + bytes([data[n] ^ bit]) + data[n + 1 :]
            try:
                read_parts(changed, from_=path.parts[-3])
            except FormatError as error:
                assert error.offset is not None and error.offset <= len(data)
            read_parts(changed, LENIENT, from_=path.parts[-3])


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
    _, report = read_parts(path.read_bytes(), LENIENT, from_=path.parts[-3])
    assert sum(report.losses.values()) > 0


def test_the_callee_of_a_call_is_the_one_named_before_it() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\ncfn=g\ncalls=1 7\ncfn=h\n1 5\ncalls=1 8\n1 6\n")
    assert [r.callee.name for r in parts[0].rows if r.callee] == [b"g", b"h"]


# ---- what a line means -------------------------------------------------------


@pytest.mark.parametrize("line", [b"calls=1 5 ", b"calls=1 5", b"jump=1 +5 ", b"jcnd=1/2 * ", b"jcnd=1 2 *"])
@pytest.mark.parametrize("behind", [b"", b"\n", b"\ncalls=2 6 \n* 7\n", b"\nevents: Ir\n"])
def test_a_call_without_a_cost_line_is_said_with_its_place(line: bytes, behind: bytes) -> None:
    before = HEADER + b"fn=f\n1 1\n" * 30
    for window in (1, 50, 1000):
        with pytest.raises(FormatError, match="no cost line follows this line") as error:
            read_parts(before + line + behind, window=window)
        assert (error.value.line, error.value.offset) == (63, len(before))


def test_lenient_does_not_take_the_cost_of_a_skipped_call_for_self_cost() -> None:
    parts, report = read_parts(HEADER + b"fl=a\nfn=f\n1 2\ncfn=g\ncalls=x 5\n1 700\n2 3\n", LENIENT)
    assert parts[0].sums == [5, 0]
    assert report.losses["lines that could not be read"] == 2


def test_costs_before_any_function_are_told_by_the_block() -> None:
    parts, report = read_parts(HEADER + b"1 2\n2 3\n3 4\nfl=a\nfn=f\n1 2\n")
    assert [row.function.name for row in parts[0].rows] == [b"", b"", b"", b"f"]
    assert report.repairs == {"blocks of cost lines outside any function": 1}


def test_a_file_of_cachegrind_ends_the_function() -> None:
    """As the newer cg_annotate has it (the older one books on the last function); in Callgrind the function goes on."""
    body = b"events: Ir\nfl=a\nfn=f\n1 2\nfl=b\n2 3\n3 4\nfn=g\n4 5\nfn=empty\nfl=b\n5 6\nsummary: 20\n"
    data = b"cmd: x\n" + body
    for size in (None, 1):
        parts, report = read_parts(data, window=size, capacity=size)
        assert [(r.function.file, r.function.name, *r.values) for r in parts[0].rows] == [
            (b"a", b"f", 2),
            (b"b", b"<unspecified>", 3),
            (b"b", b"<unspecified>", 4),
            (b"b", b"g", 5),
            (b"b", b"empty", 0),
            (b"b", b"<unspecified>", 6),
        ]
        assert [part.rows for part in parts] == [part.rows for part in parse(data, numbered=False)]
        assert report.repairs == {"blocks of cost lines outside any function": 2}
    theirs, ours = Annotated(data), Annotated(rewrite(data, "cachegrind"))
    assert ours.functions == theirs.functions | {("a", "<unspecified>"): [0]} and ours.lines == theirs.lines
    (part,), _ = read_parts(b"version: 1\n" + body)
    assert [r.function.name for r in part.rows] == [b"f", b"f", b"f", b"g", b"empty"]


UNSIGNED = "counts below 0 that were written as 2^64 more"


def unsigned(value: int) -> bytes:
    return b"%d" % (value % (1 << 64))


@pytest.mark.parametrize("hexadecimal", [False, True])
@pytest.mark.parametrize("first", [False, True], ids=["summary last", "summary first"])
def test_counts_below_0_without_a_sign(first: bool, hexadecimal: bool) -> None:
    """As old Xdebug writes memory; a part's sums say so."""
    below = b"0x%x" % ((1 << 64) - 40) if hexadecimal else unsigned(-40)
    sums = b"summary: 3 " + unsigned(-38) + b"\n"
    rows = b"fl=a\nfn=f\n1 2 %s\ncfn=g\ncalls=1 0\n2 7 %s\n4 1 2\n" % (below, unsigned(-1))
    other = b"part: 2\n" + HEADER + b"fn=f\n1 5 6\n"  # and every part speaks for itself
    data = HEADER + (sums + rows if first else rows + sums) + other
    for size in (None, 1):
        parts, report = read_parts(data, window=size, capacity=size)
        assert [part.rows for part in parts] == [part.rows for part in parse(data)]
        assert [row.values for row in parts[0].rows] == [(2, -40), (7, -1), (1, 2)]
        assert parts[0].summary == [3, -38] and parts[0].sums == [3, -38]
        assert report.repairs[UNSIGNED] == 3 and not report.losses
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
    parts, report = read_parts(data, LENIENT)
    assert parts[0].sums == [3, -38] and UNSIGNED not in report.repairs
    lost = 2 + (unsigned(-37) in sums)
    assert report.losses["counts of more than 2^63, read as 2^64 less though no sum says so"] == lost


def test_a_rounded_count_of_a_cachegrind_summary_is_counted_once() -> None:
    _, report = read_parts(b"cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5.0\n")
    assert report.repairs == {"counts with a fraction or exponent, rounded": 1}


def test_a_sum_below_0_without_a_sign_must_be_one() -> None:
    rows = b"fl=a\nfn=f\n1 5 -6\n"
    _, report = read_parts(HEADER + rows + b"totals: 5 " + unsigned(-6) + b"\n")
    assert report.repairs == {UNSIGNED: 1}
    for line in (b"summary: 5 " + unsigned(-7), b"totals: 5 -6 " + unsigned(-1)):
        with pytest.raises(FormatError, match=f"line 3, byte {len(HEADER)}: count is '184467440737095516"):
            read_parts(HEADER + line + b"\n" + rows)


@pytest.mark.parametrize("count", [b"-18446744073709551615", b"1.8446744073709550e19", b"9223372036854775808", b"1e19"])
def test_counts_that_are_never_below_0_without_a_sign(count: bytes) -> None:
    with pytest.raises(FormatError, match=f"line 4, .*: count is '{count.decode()}', expected at most 2.63 - 1$"):
        read_parts(HEADER + b"fn=f\n1 " + count + b"\nsummary: -1\n")
    # and those of a line that is lost are not counted
    data = HEADER + b"fn=f\n1 " + unsigned(-5) + b" 6 7\n1 " + count + b"\n"
    assert read_parts(data, LENIENT)[1].losses == {"lines that could not be read": 2}


BEYOND = b"(99999999999999999999)"  # a number of a name that cannot be


@pytest.mark.parametrize(("line", "name"), [(BEYOND, b""), (BEYOND + b" h", b"h")])
def test_lenient_does_not_book_costs_on_the_function_before_a_bad_one(line: bytes, name: bytes) -> None:
    data = HEADER + b"fl=a\nfn=f\n1 2\nfn=" + line + b"\n2 3\n\nfn=g\n3 4\ncfn=" + line + b"\ncalls=1 9\n3 5\n"
    with pytest.raises(FormatError, match=f"line 6, byte {len(HEADER) + 14}: number of a name"):
        read_parts(data)
    parts, report = read_parts(data, LENIENT)
    assert [(r.function.name, r.values[0]) for r in parts[0].rows] == [(b"f", 2), (name, 3), (b"g", 4), (b"g", 5)]
    assert parts[0].rows[-1].callee == Function(b"", b"a", name)
    assert report.losses == {"lines that could not be read": 2}


def test_lenient_takes_no_file_or_object_before_a_bad_one_for_it() -> None:
    data = HEADER + b"ob=(1) o\nfl=(1) a\nfn=f\n1 2\nfi=(1)\n1 3\nfi=" + BEYOND + b"\n1 4\ncob=(1)\ncfi=(1)\ncfn=h\n"
    data += b"calls=1 1\n1 5\ncob=" + BEYOND + b"\ncfi=" + BEYOND + b" b\ncfn=i\ncalls=1 1\n1 6\nob=" + BEYOND
    data += b"\nfl=" + BEYOND + b"\nfn=g\n1 7\n"
    parts, report = read_parts(data, LENIENT)
    rows = parts[0].rows
    assert [row.file for row in rows] == [b"a", b"a", b"", b"", b"", b""]
    assert rows[-1].function == Function(b"", b"", b"g")
    assert [r.callee for r in rows if r.callee] == [Function(b"o", b"a", b"h"), Function(b"", b"b", b"i")]
    assert report.losses == {"lines that could not be read": 5}


def test_lenient_counts_from_the_position_of_a_line_with_bad_counts() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\n10 1\n+5 1.5.5\n+1 2\n", LENIENT)
    assert [r.position[2] for r in parts[0].rows] == [10, 16]


def test_call_and_jump_lines_do_not_move_the_base() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\n10 1\ncfn=g\ncalls=1 +5\n+3 1\njump=1 +4\n+2\n+1 1\n")
    assert [(r.position[2], r.target[2]) for r in parts[0].rows] == [(10, 0), (13, 15), (12, 14), (11, 0)]


def test_what_we_write_is_right_under_either_rule_for_the_base() -> None:
    """KCachegrind lets call and jump lines move the base; where that would matter we write no differences."""
    data = rewrite(HEADER + b"fl=a\nfn=f\n10 1\ncfn=g\ncalls=1 15\n13 1\n11 1\n+1 1\n")
    assert b"\ncalls=1 +5 \n+3 1\n11 1\n+1 1\n" in data


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
    """callgrind_annotate shows a count that is not there as `.`."""
    body = b"fl=a\nfn=f\n1 5 0 0\n9 0 3 0\ncfn=g\ncalls=1 7\n9 4 0 0\ntotals: 5 3 0\n"
    once = rewrite(b"version: 1\n" + creator + b"events: A B C\nsummary: 5 3 0\n" + body, wide=wide)
    full = {b"1 5 0 0", b"+8 0 3 0", b"* 4 0 0", b"totals: 5 3 0", b"summary: 5 3 0"}
    short = {b"1 5", b"+8 0 3", b"* 4", b"totals: 5 3", b"summary: 5 3"}
    assert (full | short) & set(once.split(b"\n")) == (full if all_counts else short)
    assert rewrite(once, wide=wide) == once


def test_a_line_before_0_is_0() -> None:
    """Lua and V8 say -1 of what has no line; a difference it is all the same."""
    parts, report = read_parts(HEADER + b"fl=a\nfn=f\n-1 2\ncfn=g\ncalls=1 -1\n5 3\n7 4\n-1 5\n-9 6\n+1 7\n")
    assert [(r.position[2], r.values[0]) for r in parts[0].rows] == [(0, 2), (5, 3), (7, 4), (6, 5), (0, 6), (1, 7)]
    assert report.repairs == {"lines before 0, taken for 0": 3}


@pytest.mark.parametrize("line", [b"positions: line instr", b"positions: line bb instr", b"positions: bb line addr"])
def test_columns_stand_in_one_order_whatever_the_header_says(line: bytes) -> None:
    """Orbuculum says `line instr` and writes the address first; KCachegrind reads it so."""
    bb = b" 0x20" if b"bb" in line else b""
    data = line + b"\nevents: Ir\nfl=a\nfn=f\n0x10" + bb + b" 3 9\n"
    parts, report = read_parts(data)
    assert [(r.position, r.values) for r in parts[0].rows] == [((0x10, 0x20 if bb else 0, 3), (9,))]
    assert report.repairs == {"positions: that are named in another order than instr bb line": 1}
    assert (b"\npositions: instr bb line\n" if bb else b"\npositions: instr line\n") in rewrite(data)
    with pytest.raises(FormatError, match=r"expected each of them once"):
        read_parts(b"positions: line line\nevents: Ir\n")


def test_a_number_of_an_xtree_file_is_one_function_in_several_files() -> None:
    """fl= says where a line is, of inlined code another file; KCachegrind shows one function, and so of ours."""
    body = b"fl=(1) a.c\nfn=(1) f\n1\ncfi=(2) b.c\ncfn=(2) g\ncalls=0 9\n1 5\n"
    body += b"fl=(3) h.h\nfn=(1)\n7 6\nfl=(3)\nfn=(2)\n8 5\n"
    data = b"creator: xtree-1\nevents: Ir\n" + body
    rows = read_parts(data)[0][0].rows
    assert [(r.function.file, r.function.name, r.file) for r in rows] == [
        (b"a.c", b"f", b"a.c"),
        (b"a.c", b"f", b"a.c"),
        (b"a.c", b"f", b"h.h"),
        (b"b.c", b"g", b"h.h"),
    ]
    assert parse(data)[0].rows == parse(rewrite(data))[0].rows == rows
    assert load(rewrite(data)).shown() == load(data).shown()
    assert len({r.function for r in read_parts(HEADER + body)[0][0].rows}) == 3


def test_a_function_without_fl_is_in_the_file_of_fi() -> None:
    """As lsprofcalltree writes them; once there is fl=, it is what fn= leads back to."""
    body = b"fi=a.py\nfn=f\n1 10\ncfn=g\ncfi=b.py\ncalls=2 5\n1 80\n\nfi=b.py\nfn=g\n5 75\n"
    rows = read_parts(HEADER + body)[0][0].rows
    assert [r.function.file for r in rows] == [b"a.py", b"a.py", b"b.py"]
    assert rows[1].callee == rows[2].function
    assert parse(HEADER + body)[0].rows == parse(rewrite(HEADER + body))[0].rows == rows
    rows = read_parts(HEADER + b"fl=a\n" + body)[0][0].rows
    assert [r.function.file for r in rows] == [b"a", b"a", b"a"]


@pytest.mark.parametrize("line", [b"jump=3 7", b"jcnd=3/4 7", b"jump=3 7 "])
@pytest.mark.parametrize("counts", [b"5", b"5 6", b"  5", b"123456789012345678901", b"x"])
def test_counts_of_a_jump_are_left_out_and_counted(line: bytes, counts: bytes) -> None:
    data = HEADER + b"fn=f\n" + line + b"\n7 " + counts + b"\n1 2 3\n"
    parts, report = read_parts(data)
    assert [(row.kind != "cost", row.values) for row in parts[0].rows] == [(True, (0, 0)), (False, (2, 3))]
    assert report.repairs == {"calls= or jump lines with extra numbers": 1}
    _, report = read_parts(HEADER + b"fn=f\n" + line + b"\n7 \n1 2 3\n" + line + b"\n7\n")
    assert not report.repairs


def test_comments_behind_counts_are_left_out_and_counted() -> None:
    data = b"positions: instr line\nevents: Ir Dr\nfl=a\nfn=f\n0x10 1 5 6 # add\n0x14 #nop\n0x18 2 5#x\n"
    with pytest.raises(FormatError, match=r"line 7, byte .*: count is '5#x'"):
        read_parts(data)
    parts, report = read_parts(data.replace(b"5#x", b"5 #x"))
    assert [(r.position, r.values) for r in parts[0].rows] == [
        ((0x10, 0, 1), (5, 6)),
        ((0x14, 0, 0), (0, 0)),
        ((0x18, 0, 2), (5, 0)),
    ]
    assert report.unsaid == {"comments behind the counts of a line": 3}


@pytest.mark.parametrize("capacity", [1, 2, 1000])
def test_an_indented_line_is_counted_once(capacity: int) -> None:
    """Also one that waits for room in a batch, for a part to end or for a name that stands further on."""
    data = HEADER + b"fn=f\n1 1\n 2 2\n\t3 3\n fn=(7)\n4 4\n  events: Ir\n 5 5\n fn=(7) g\n \n"
    for window in (1, 1000):
        _, report = read_parts(data, window=window, capacity=capacity)
        assert report.repairs["lines that were indented"] == 6


def test_a_summary_without_a_colon() -> None:
    parts, report = read_parts(HEADER + b"fl=a\nfn=f\n1 5 3\n\nsummary 7 4\ntotals 5 3\n")
    assert (parts[0].summary, parts[0].totals) == ([7, 4], [5, 3])
    assert report.repairs == {"summary or totals without a colon": 2}


def test_a_callee_may_name_its_file_after_its_name() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\n1 1\ncfn=g\ncfi=b\ncalls=1 7\n1 5\ncfn=h\ncalls=1 7\n1 5\n")
    assert [r.callee for r in parts[0].rows[1:]] == [Function(b"", b"b", b"g"), Function(b"", b"a", b"h")]


def test_a_callee_is_kept_for_the_next_call_of_the_block() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\ncfi=b\ncfn=g\ncalls=1 7\n1 5\ncalls=2 7\n2 6\n")
    assert [(r.callee, r.count) for r in parts[0].rows] == [(Function(b"", b"b", b"g"), n) for n in (1, 2)]


def test_calls_without_a_name_are_read_and_counted() -> None:
    parts, report = read_parts(HEADER + b"fl=a\nfn=f\n1 1\ncalls=1 7\n1 5\n")
    assert parts[0].rows[1].callee == Function(b"", b"a", b"")
    assert report.repairs["calls= without cfn="] == 1


def test_names_defined_before_use_bind_to_where_they_are_used() -> None:
    definitions = b"fl=(1) a\nfl=(2) b\nfn=(1) f\nfn=(2) g\n"
    parts, _ = read_parts(HEADER + definitions + b"fl=(1)\nfn=(1)\n1 1\nfl=(2)\nfn=(2)\n2 2\n")
    assert [r.function for r in parts[0].rows] == [Function(b"", b"a", b"f"), Function(b"", b"b", b"g")]


def test_numbers_live_across_parts_and_may_be_defined_anew() -> None:
    first = HEADER + b"fl=(1) a\nfn=(1) f\n1 1\n\n"
    parts, _ = read_parts(first + b"part: 2\nevents: Dr\nfl=(1)\nfn=(1)\n2 2\nfn=(1) g\n3 3\n")
    assert [r.function.name for p in parts for r in p.rows] == [b"f", b"f", b"g"]
    assert [p.events for p in parts] == [["Ir", "Dr"], ["Dr"]]


@pytest.mark.parametrize("ahead", [b"", b"#" + b" " * 3000 + b"\n"], ids=["near", "far"])
@pytest.mark.parametrize("file", [b"fl=(1)\n", b"fl=(2) b.c\n"], ids=["same", "other"])
@pytest.mark.parametrize("object_", [b"", b"ob=(1) o\n", b"ob=(2) p\n"], ids=["none", "same", "other"])
def test_a_number_defined_anew_by_its_own_name_is_where_it_is_met(ahead: bytes, file: bytes, object_: bytes) -> None:
    """Dumps put together define all numbers again, mostly as what they were, but not always."""
    met = [
        b"fn=(1) f\n2 1\ncfn=(2)\ncalls=1 1\n2 1\n",
        b"fn=(3) h\n2 1\ncfn=(1) f\ncalls=1 1\n2 1\ncfn=(1)\ncalls=1 1\n2 1\n",
        b"fn=(3) h\n2 1\ncob=(1)\ncfi=(1)\ncfn=(1) f\ncalls=1 1\n2 1\ncfn=(1)\ncalls=1 1\n2 1\n",
        b"fn=(3) h\n2 1\njfi=(1)\njfn=(1) f\njump=1 1\n2\njfn=(1)\njump=1 1\n2\n",
    ]
    for first in met:
        for second in met:
            text = b"events: Ir\nob=(1) o\nfl=(1) a.c\nfn=(2) g\n1 1\nfn=(1) f\n1 1\n" + first
            text += b"part: 2\nevents: Ir\n" + ahead + object_ + file + first + second
            assert [p.rows for p in read_parts(text)[0]] == [p.rows for p in parse(text)]


@pytest.mark.parametrize("number", [b"0", b"1", b"255", b"256", b"1000000", b"4294967296", b"9223372036854775807"])
def test_numbers_of_any_size(number: bytes) -> None:
    parts, _ = read_parts(HEADER + b"fl=(7) a\nfn=(%b) f\n1 1\nfn=(3) g\n1 1\nfn=(%b)\n2 2\n" % (number, number))
    assert [r.function.name for r in parts[0].rows] == [b"f", b"g", b"f"]


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("kind", ["file", "pipe", "gzip"])
@pytest.mark.parametrize("window", [1, 64, 1 << 20])
def test_numbers_used_before_their_definition(window: int, kind: str) -> None:
    data = HEADER + b"fl=(1)\nfn=(2)\n1 1\ncob=(3)\ncfn=(9)\ncalls=1 5\n1 1\nfn=(4)\n1 1\n"
    data += b"fl=(1) a\nfn=(2) f\n2 2\ncob=(3) o\ncfn=(9) g\n"
    packed = gzip.compress(data) if kind == "gzip" else Pipe(data) if kind == "pipe" else data
    parts, report = read_parts(packed, window=window)
    assert [r.function for r in parts[0].rows] == [
        Function(b"", b"a", b"f"),
        Function(b"", b"a", b"f"),
        Function(b"", b"a", b"(4)"),
        Function(b"", b"a", b"f"),
    ]
    assert parts[0].rows[1].callee == Function(b"o", b"a", b"g")
    assert report.repairs == {
        "numbers used before they were defined": 4,
        "numbers without a name, which became their name": 1,
    }


def test_what_an_event_is_holds_in_later_parts() -> None:
    first = b"event: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevent: Dw : Writes\nevents: Ir Dr\nfl=a\nfn=f\n1 1\n\n"
    data = rewrite(first + b"part: 2\nevents: Dr Ir\nfl=a\nfn=f\n1 1\n")
    header, _, rest = data.partition(b"part: 2\n")
    assert b"\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevent: Dw : Writes\nevents: Ir Dr\n" in header
    assert b"\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevents: Dr Ir\n" in rest


def test_names_made_of_numbers_are_put_together() -> None:
    """valgrind --compress-mangled=yes --separate-recs=2 --separate-callers=2"""
    data = HEADER + b"fl=(1) a\nfn=(3) f\nfn=(5) main\nfn=(9) (3)'2'(5)\n1 1\nfn=(10) (7) x\n2 2\n"
    parts, report = read_parts(data)
    assert [r.function.name for r in parts[0].rows] == [b"f'2'main", b"(7) x"]
    assert report.repairs["names made of numbered names, put together"] == 1


@pytest.mark.parametrize("line", [b"cfn=(1) g", b"cfn=(1) g\r", b"frfn=(1) g\ncfn=(1)"])
def test_a_number_defined_anew_before_its_function_has_a_row(line: bytes) -> None:
    data = HEADER + b"fn=(1) f\n" + line + b"\n1 1\ncalls=1 2 \n2 3\nfn=(1)\n4 4\n"
    rows = read_parts(data)[0][0].rows
    assert [(r.function.name, r.callee and r.callee.name) for r in rows] == [(b"f", None), (b"f", b"g"), (b"g", None)]
    assert rows == parse(data)[0].rows


def test_names_made_of_names_do_not_grow_without_end() -> None:
    """Twenty times as long each: the fourth would be 80,000 bytes."""
    lines = [b"fn=(1) 0123456789\n1 1\n"]
    lines += [b"fn=(%d) " % k + b"(%d)" % (k - 1) * 20 + b"\n1 1\n" for k in range(2, 7)]
    parts, report = read_parts(b"events: Ir\n" + b"".join(lines), from_="callgrind")
    assert [len(row.function.name) for row in parts[0].rows] == [10, 200, 4000, 60, 60 * 20, 60 * 20 * 20]
    assert parts[0].rows[3].function.name == b"(3)" * 20
    assert report.repairs["names made of numbered names, longer than 64 KiB, left as they are written"] == 1
    assert report.repairs["names made of numbered names, put together"] == 4


@pytest.mark.parametrize("step", [1, 7, 1000, 10**15])
def test_a_name_made_of_numbers_may_make_the_table_of_numbers_grow(step: int) -> None:
    """Each definition names a number that has no name yet: it is entered while the definition's own is at hand."""
    numbers = [1 + step * i for i in range(20_000 if step == 1 else 3_000)]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    lines = [b"fn=(%d) (%d)'2\n1 1\n" % pair for pair in pairs] + [b"fn=(%d)\n1 1\n" % mine for mine, _ in pairs]
    parts, report = read_parts(HEADER + b"fl=(1) a\n" + b"".join(lines))
    names = [b"(%d)'2" % other for _, other in pairs]
    assert [r.function.name for r in parts[0].rows] == names + names
    assert not report.repairs


def test_blocks_of_other_contexts_are_one_function() -> None:
    """valgrind --mangle-names=no --separate-recs=2 --separate-callers=2; a number may be defined by frfn= alone."""
    body = b"frfn=(5) main\nfl=(1) a\nfn=(3) f\n1 1\ncfn=(5)\ncalls=1 9\n1 2\n\nrec=1\n\nfrfn=(spontaneous)\n2 3\n"
    parts, report = read_parts(HEADER + body)
    assert [(r.kind, r.function.name, r.values[0]) for r in parts[0].rows] == [
        ("cost", b"f", 1),
        ("call", b"f", 2),
        ("cost", b"f", 3),
    ]
    assert parts[0].rows[1].callee == Function(b"", b"a", b"main")
    assert parts[0].rows == parse(HEADER + body)[0].rows
    assert report.unsaid == {"lines that tell callers and recursion levels apart (rec=, frfn=)": 3}
    assert not report.repairs and not report.warnings
    used_first = HEADER + b"fl=a\nfn=(5)\n1 1\nfrfn=(5) main\nfn=g\n1 1\n"
    parts, report = read_parts(used_first)
    assert parts[0].rows[0].function.name == b"main"


def test_a_function_without_rows_is_in_its_own_file() -> None:
    """As stackprof leaves them: fl= of the next block is read before fn= ends this one."""
    data = HEADER + b"fl=a\nfn=f\n1 1\ncfn=g\ncalls=1 2\n1 1\n\nfl=a\nfn=g\n\nfl=b\nfn=h\n\nob=o\nfl=c\nfn=i\n1 1\n"
    rows = read_parts(data)[0][0].rows
    assert [(r.kind, r.function, r.file) for r in rows[2:]] == [
        ("block", Function(b"", b"a", b"g"), b"a"),
        ("block", Function(b"", b"b", b"h"), b"b"),
        ("cost", Function(b"o", b"c", b"i"), b"c"),
    ]
    for compress in (True, False):
        again = rewrite(data, options=Options(compress_names=compress))
        assert read_parts(again)[0][0].rows == parse(again)[0].rows == rows


def test_a_part_without_rows_is_kept() -> None:
    data = rewrite(b"part: 1\nevents: Ir\ntotals: 0\n\npart: 2\nevents: Ir\nfl=a\nfn=f\n1 5\n\npart: 3\nevents: Dr\n")
    assert [p.events for p in parse(data)] == [["Ir"], ["Ir"], ["Dr"]]


@pytest.mark.parametrize("capacity", [1, 100])
def test_rows_before_any_name_are_of_the_part_they_are_in(capacity: int) -> None:
    text = b"events: A\n1 2\npositions: instr bb line\nevents: A\n1 2 3 4\n"
    parts, _ = read_parts(text, capacity=capacity)
    assert [(p.positions, [r.position for r in p.rows]) for p in parts] == [
        (["line"], [(0, 0, 1)]),
        (["instr", "bb", "line"], [(1, 2, 3)]),
    ]


@pytest.mark.parametrize("line", [b"1 5", b"jfi=a", b"jfi=(1) a", b"jfn=g", b"frfn=g", b"rec=1"])
@pytest.mark.parametrize("capacity", [1, 2, 3, 1000])
def test_a_header_line_behind_any_line_of_a_body_begins_a_part(line: bytes, capacity: int) -> None:
    """Rows of other columns in the same part would have what the batch had in theirs before."""
    data = b"events: Ir\n" + (line + b"\n") * 5 + b"positions: instr\nevents: Ir\n" + b"0x10 7\n" * 5
    for window in (1, 1000):
        parts, _ = read_parts(data, window=window, capacity=capacity, from_="callgrind")
        assert parts[-1].positions == ["instr"]
        assert [p.rows for p in parts if p.rows] == [p.rows for p in parse(data) if p.rows]
        assert {row.position for row in parts[-1].rows} == {(0x10, 0, 0)}
        assert parts[0].positions == ["line"]


def test_a_call_is_not_forgotten_in_front_of_a_header_line() -> None:
    with pytest.raises(FormatError, match="line 2, byte 11: no cost line follows this line"):
        read_parts(b"events: Ir\ncalls=1 5 \npositions: instr\n0x10 7\n", from_="callgrind")


@pytest.mark.parametrize("line", [b"events: Dr", b"events=Dr", b" events: Dr", b"\tevents : Dr"])
def test_events_begin_a_part_however_they_are_written(line: bytes) -> None:
    for capacity in (1, 100):
        parts, _ = read_parts(b"events: Ir\nfl=a\nfn=f\n1 5\n" + line + b"\nfn=f\n1 7\n", capacity=capacity)
        assert [(p.events, p.sums) for p in parts] == [(["Ir"], [5]), (["Dr"], [7])]


def test_a_file_of_several_xdebug_runs() -> None:
    header = b"version: 1\ncreator: xdebug 3.3\ncmd: /a.php\npart: 1\npositions: line\n\nevents: Time\n\n"
    one = header + b"fl=(1) a\nfn=(1) {main}\n1 5\n\nsummary: 5\n\n"
    data = one + b"\n==== NEW PROFILING FILE ==============================================\n" + one
    parts, _ = read_parts(data)
    assert [(p.events, p.sums, p.summary) for p in parts] == [(["Time"], [5], [5])] * 2


def test_events_may_be_described_after_they_are_named() -> None:
    data = rewrite(b"events: Ir Dr\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nfl=a\nfn=f\n1 1 1\n")
    assert b"\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevents: Ir Dr\n" in data


def test_events_known_only_by_formula_are_kept() -> None:
    data = rewrite(b"event: Ir : Fetches\nevent: Sum = Ir + 2 Dr : Both\nevents: Ir Dr\nfl=a\nfn=f\n1 1 1\n")
    assert b"\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr : Both\nevents: Ir Dr\n" in data


def test_comments_are_kept_those_between_rows_behind_them() -> None:
    body = b"# c\nfl=a\n# d\nfn=f\n1 1\n#e\n#\n2 2\n"
    once = rewrite(
        b"#a\nversion: 1\n# b\nevents: Ir\n" + body + b"\npart: 2\nevents: Ir\nfn=f\n1 1\n\ntotals: 1\n# f\n"
    )
    header, _, rest = once.partition(b"\npositions: line\n")
    assert header.endswith(b"\n# a\n# b\n# c\n")
    assert b"\n+1 2\n\n# d\n# e\ntotals: 3\n" in rest
    assert rest.endswith(b"\n\n# f\ntotals: 1\n")
    for window in (1, 64):
        assert rewrite(once, window=window) == once


def test_only_so_many_comments_are_kept_the_others_are_counted() -> None:
    comment = b"#" + b"x" * 1023 + b"\n"
    parts, report = read_parts(HEADER + b"fl=a\nfn=f\n1 1\n" + comment * 2000 + b"2 2\n")
    assert report.unsaid == {"comments beyond the first 1 MiB of them": 2000 - 1026}
    assert len(parts[0].rows) == 2


@pytest.mark.parametrize("line", [b"Hello world", b"Key: value", b"I1 cache: ", b"a:b"])
def test_descriptions_are_written_as_they_were(line: bytes) -> None:
    once = rewrite(b"desc: " + line + b"\nevents: Ir\nfl=a\nfn=f\n1 1\n")
    assert b"\ndesc: " + line.replace(b"a:b", b"a: b") + b"\n" in once


@pytest.mark.parametrize("totals", [b"9", b"5 3 9", b"5", b"-5 3", b"0x4 3"])
def test_totals_that_do_not_add_up_are_said(totals: bytes) -> None:
    _, report = read_parts(HEADER + b"fl=a\nfn=f\n1 5 3\ntotals: " + totals + b"\n")
    assert report.repairs == {"totals: lines that do not equal the sum of the costs": 1}
    found = [int(word, 0) for word in totals.split()]
    assert report.warnings == [f"input: `totals:` of part 1 is {found}, but its costs add up to [5, 3]"]


@pytest.mark.parametrize("totals", [b"5 3", b"0x5 3", b" 5\t3 "])
def test_totals_that_add_up_and_a_larger_summary_are_not_said(totals: bytes) -> None:
    once = HEADER + b"summary: 7 4\nfl=a\nfn=f\n1 5 3\ntotals: " + totals + b"\n"
    parts, report = read_parts(once)
    assert not report.repairs and not report.warnings and not report.losses
    assert parts[0].summary == [7, 4]
    assert b"\nsummary: 7 4\n" in rewrite(once)


@pytest.mark.parametrize("creator", [b"callgrind-3.19.0", b"fastprof-0.1.0\ndesc: Original creator: xdebug 3"])
def test_a_part_that_ends_before_the_totals_of_its_writer_is_said(creator: bytes) -> None:
    """Callgrind writes them last, of an empty part, too; a file cut between two lines shows no other damage."""
    one = b"part: 3\nevents: Ir Dr\nfl=a\nfn=f\n1 5 3\n\n"
    data = b"version: 1\ncreator: " + creator + b"\n" + one + b"totals: 5 3\n\npart: 4\nevents: Ir\n\ntotals: 0\n"
    _, report = read_parts(data)
    assert not report.repairs and not report.warnings
    for cut in (data.removesuffix(b"\ntotals: 0\n"), data.removesuffix(b"totals: 0\n")):
        parts, report = read_parts(cut)
        assert [p.sums for p in parts] == [[5, 3], [0]]
        assert report.repairs == {"parts without `totals:`, which their writer ends them with": 1}
        assert report.warnings == ["input: part 4 does not end in `totals:`, so the input may have been cut off"]
    _, report = read_parts(data.replace(b"totals: 5 3\n", b""))
    assert report.warnings == ["input: part 3 does not end in `totals:`, so the input may have been cut off"]
    for other in (b"xdebug 3.1.0 (PHP 8.2)", b"xtree-1"):
        _, report = read_parts(b"creator: " + other + b"\n" + one)
        assert not report.repairs and not report.warnings


def test_a_cachegrind_summary_that_is_missing_or_wrong_is_said() -> None:
    data = b"desc: I1 cache: 1\ncmd: ./a\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n"
    _, report = read_parts(data)
    assert not report.repairs and not report.warnings
    _, report = read_parts(data.removesuffix(b"summary: 5\n"))
    assert report.warnings == ["input: part 1 does not end in `summary:`, so the input may have been cut off"]
    _, report = read_parts(data.replace(b"summary: 5", b"summary: 6"))
    assert report.repairs == {"summary: lines that do not equal the sum of the costs": 1}
    assert report.warnings == ["input: `summary:` of part 1 is [6], but its costs add up to [5]"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"summary: 1 x", "summary: found 'x', expected a whole number"),
        (b"summary: 1_0", "summary: found '1_0', expected a whole number"),
        (b"summary: 1e", "summary: found '1e', expected a whole number"),
        (b"totals: 1e20", "totals: found 1e20, expected at most 2^63 - 1"),
        (b"summary: 9223372036854775808", "summary: found 9223372036854775808, expected at most 2^63 - 1"),
        (b"totals: " + b"9" * 5000, "totals: found " + "9" * 80 + ", expected at most 2^63 - 1"),
        (b"part:", "part: found '', expected a whole number"),
        (b"event: = Ir", "event: event is '= Ir', expected NAME = FORMULA : LONG NAME"),
    ],
)
def test_a_bad_header_line_says_what_is_wrong_with_it(line: bytes, message: str) -> None:
    with pytest.raises(FormatError) as raised:
        read_parts(HEADER + line + b"\n")
    assert str(raised.value) == f"input: callgrind: line 3, byte {len(HEADER)}: {message}"
    _, report = read_parts(HEADER + line + b"\nfl=a\nfn=f\n1 1\n", LENIENT)
    assert report.losses == {"lines that could not be read": 1}


def test_a_process_or_thread_that_is_no_number_is_kept_as_text(tmp_path: Path) -> None:
    said = [b"pid: 1.5", b"thread: main"], [b"pid:", b"thread: \xff, 2"], [b"thread: " + b"9" * 20], [b"pid: 12"]
    parts = [b"\n".join([b"part: %d" % (k + 1), *lines]) for k, lines in enumerate(said)]
    data = b"".join(part + b"\nevents: Ir\nfl=a\nfn=f\n1 1\n" for part in parts)
    opened = open_input(data, from_="callgrind")
    for _ in read(opened.reader):
        pass
    assert opened.report.warnings == [
        "input: line 2: pid: found '1.5', expected a whole number; kept as text",
        "input: line 3: thread: found 'main', expected a whole number; kept as text",
    ]
    assert [(p.pid, p.thread) for p in opened.model.parts] == [(None, None)] * 3 + [(12, None)]
    once = rewrite(data)
    assert rewrite(once) == once
    # what is not said again still holds, of a process
    written = [*said[0], b"pid: ", b"thread: \xff, 2", b"pid: ", b"thread: " + b"9" * 20, b"pid: 12"]
    assert [line for line in once.split(b"\n") if line.startswith((b"pid:", b"thread:"))] == written
    (tmp_path / "x.callgrind").write_bytes(data)
    convert([str(tmp_path / "x.callgrind")], str(tmp_path / "x.fpa"))
    convert([str(tmp_path / "x.fpa")], str(tmp_path / "y.callgrind"))
    assert (tmp_path / "y.callgrind").read_bytes() == once


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"1e+06", 1000000),
        (b"1.25e1", 12),  # half to even
        (b"13.5", 14),
        (b"12.50000000000000000000000000000000000001", 13),
        (b".5", 0),
        (b"5.", 5),
        (b"9007199254740993.2", 9007199254740993),  # which no double is
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
    parts, report = read_parts(data + b"totals: 3 -%b\n" % text)
    assert [(row.count, row.values) for row in parts[0].rows] == [(0, (1, 0)), (0, (2, -count)), (count, (count, 0))]
    assert parts[0].totals == [3, -count]
    assert report.repairs == {"counts with a fraction or exponent, rounded": 4}
    assert report.warnings == [
        "input: line 6: a count with a fraction or exponent; such counts are taken as the nearest whole number"
    ]


@pytest.mark.parametrize("text", [b"1e", b"1e+", b"1.2.3", b".", b"-1.5", b"nan", b"inf", b"1e5x", b"0x1.8", b"1e5/2"])
def test_what_is_no_number_is_none_of_calls(text: bytes) -> None:
    with pytest.raises(FormatError, match=r"line 5, .*: count of calls or jumps is .*, expected a number"):
        read_parts(HEADER + b"fl=a\nfn=f\ncalls=%b 5\n1 1\n" % text)


@pytest.mark.parametrize("text", [b"1.5", b"1e3", b"+1.5", b"-.5"])
def test_a_position_is_a_whole_number(text: bytes) -> None:
    with pytest.raises(FormatError, match=r"line 5, .*: position is"):
        read_parts(HEADER + b"fl=a\nfn=f\n%b 5\n" % text)


def test_what_is_lost_with_its_line_is_not_rounded() -> None:
    parts, report = read_parts(HEADER + b"fl=a\nfn=f\n1 1.5 2.5 3\n2 1.5\n", LENIENT)
    assert parts[0].sums == [2, 0]
    assert report.repairs == {"counts with a fraction or exponent, rounded": 1}
    assert report.warnings[0].startswith("input: line 6: ")


def test_an_unknown_key_is_said_once_with_its_line() -> None:
    _, report = read_parts(b"flavour: 1\n" + HEADER + b"flavour: 2\nfl=a\nfn=f\nxrec=2\n1 5\n")
    assert [w.split(": ", 1)[1] for w in report.warnings] == [
        "line 1: unknown key 'flavour'; such lines are ignored",
        "line 7: unknown key 'xrec'; such lines are ignored",
    ]
    assert report.unsaid["lines of unknown keys"] == 3


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("name", [b"", b" x", b"(1) f", b"(12)", b"()x", b"(below main)", b"a=b", b"\xff\xfe", b"#"])
def test_any_name_reads_back(name: bytes, compress: bool) -> None:
    options = Options(compress_names=compress)
    if name.startswith(b"(1"):  # only behind a number can it be said
        data = HEADER + b"fl=(3) a\nfn=(5) " + name + b"\n1 1\nfn=(5)\n2 2\n"
    else:
        data = HEADER + b"fl=a\nfn=" + name + b"\n1 1\nfn=g\n1 1\nfn=" + name + b"\n2 2\n"
    names = [r.function.name for p in parse(rewrite(data, options=options)) for r in p.rows]
    assert names[0] == names[-1] == name


def test_more_than_64_bits_of_cost_is_an_error() -> None:
    data = HEADER + b"fl=a\nfn=f\n1 9223372036854775807\n2 1\n"
    _, report = read_parts(data + b"totals: 5\n")
    assert report.warnings == ["input: the sum of a part's costs passes 2^63 - 1"]
    with pytest.raises(FastprofError):
        rewrite(HEADER + b"fl=a\nfn=f\n1 9223372036854775807\n1 1\n", "cachegrind")
