"""The meaning of lines of Callgrind and Cachegrind: functions, calls, jumps, positions."""

from __future__ import annotations

import pytest

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference.callgrind import Function, parse
from tests.reference.cg_annotate import Annotated
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import CORPUS

LENIENT = Options(lenient=True)
HEADER = b"version: 1\nevents: Ir Dr\n"


def test_the_callee_of_a_call_is_the_one_named_before_it() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\ncfn=g\ncalls=1 7\ncfn=h\n1 5\ncalls=1 8\n1 6\n")
    assert [r.callee.name for r in parts[0].rows if r.callee] == [b"g", b"h"]


@pytest.mark.parametrize("line", [b"calls=1 5 ", b"calls=1 5", b"jump=1 +5 ", b"jcnd=1/2 * ", b"jcnd=1 2 *"])
@pytest.mark.parametrize("behind", [b"", b"\n", b"\ncalls=2 6 \n* 7\n", b"\nevents: Ir\n"])
def test_a_call_without_a_cost_line_is_said_with_its_place(line: bytes, behind: bytes) -> None:
    before = HEADER + b"fn=f\n1 1\n" * 30
    for window in (1, 50, 1000):
        with pytest.raises(FormatError, match="no cost line follows this line") as error:
            read_parts(before + line + behind, window=window)
        assert (error.value.line, error.value.offset) == (63, len(before))


def test_lenient_does_not_take_the_cost_of_a_skipped_call_for_self_cost() -> None:
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n1 2\ncfn=g\ncalls=x 5\n1 700\n2 3\n", LENIENT)
    assert parts[0].sums == [5, 0]
    assert log.losses["unreadable-lines"] == 2


def test_costs_before_any_function_are_told_by_the_block() -> None:
    parts, log = read_parts(HEADER + b"1 2\n2 3\n3 4\nfl=a\nfn=f\n1 2\n")
    assert [row.function.name for row in parts[0].rows] == [b"", b"", b"", b"f"]
    assert log.repairs == {"costs-outside-functions": 1}


def test_a_file_of_cachegrind_ends_the_function() -> None:
    """Like the newer cg_annotate (the older one adds to the last function); in Callgrind the function continues."""
    body = b"events: Ir\nfl=a\nfn=f\n1 2\nfl=b\n2 3\n3 4\nfn=g\n4 5\nfn=empty\nfl=b\n5 6\nsummary: 20\n"
    data = b"cmd: x\n" + body
    for size in (None, 1):
        parts, log = read_parts(data, window=size, capacity=size)
        assert [(r.function.file, r.function.name, *r.values) for r in parts[0].rows] == [
            (b"a", b"f", 2),
            (b"b", b"<unspecified>", 3),
            (b"b", b"<unspecified>", 4),
            (b"b", b"g", 5),
            (b"b", b"empty", 0),
            (b"b", b"<unspecified>", 6),
        ]
        assert [part.rows for part in parts] == [part.rows for part in parse(data, numbered=False)]
        assert log.repairs == {"costs-outside-functions": 2}
    theirs, ours = Annotated(data), Annotated(rewrite(data, "cachegrind"))
    assert ours.functions == theirs.functions | {("a", "<unspecified>"): [0]} and ours.lines == theirs.lines
    (part,), _ = read_parts(b"version: 1\n" + body)
    assert [r.function.name for r in part.rows] == [b"f", b"f", b"f", b"g", b"empty"]


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


def test_a_line_before_0_is_0() -> None:
    """Lua and V8 write -1 for a missing line; it can also be the result of a difference."""
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n-1 2\ncfn=g\ncalls=1 -1\n5 3\n7 4\n-1 5\n-9 6\n+1 7\n")
    assert [(r.position[2], r.values[0]) for r in parts[0].rows] == [(0, 2), (5, 3), (7, 4), (6, 5), (0, 6), (1, 7)]
    assert log.repairs == {"negative-lines": 3}


def test_a_function_without_fl_is_in_the_file_of_fi() -> None:
    """The output of lsprofcalltree; after an fl=, fn= returns to its file."""
    body = b"fi=a.py\nfn=f\n1 10\ncfn=g\ncfi=b.py\ncalls=2 5\n1 80\n\nfi=b.py\nfn=g\n5 75\n"
    rows = read_parts(HEADER + body)[0][0].rows
    assert [r.function.file for r in rows] == [b"a.py", b"a.py", b"b.py"]
    assert rows[1].callee == rows[2].function
    assert parse(HEADER + body)[0].rows == parse(rewrite(HEADER + body))[0].rows == rows
    rows = read_parts(HEADER + b"fl=a\n" + body)[0][0].rows
    assert [r.function.file for r in rows] == [b"a", b"a", b"a"]


@pytest.mark.parametrize("capacity", [1, 2, 1000])
def test_an_indented_line_is_counted_once(capacity: int) -> None:
    """Also a line that waits for room in a batch, for the end of a part or for a later name."""
    data = HEADER + b"fn=f\n1 1\n 2 2\n\t3 3\n fn=(7)\n4 4\n  events: Ir\n 5 5\n fn=(7) g\n \n"
    for window in (1, 1000):
        _, log = read_parts(data, window=window, capacity=capacity)
        assert log.repairs["indented-lines"] == 6


CALLGRINDS = b"creator: callgrind-3.19.0\npositions: instr line\nevents: Ir\n"


def test_in_callgrinds_files_a_file_that_is_not_said_is_that_of_the_last_cost_line() -> None:
    """fi= applies to the calls and jumps of one place.  It changes neither the callee's file nor that of the next
    costs."""
    body = b"fl=a\nfn=f\n0x8 1 1\nfi=b\ncfn=g\ncalls=1 0x40 7\n+4 2 10\ncfn=h\ncalls=1 0x50 8\n+4 2 20\n+8 3 4\n"
    body += b"jump=1 +4 5\n+8 3\nfi=c\n+1 4 5\ncfn=i\ncalls=1 0x60 9\n+4 5 30\nfe=a\njcnd=1/2 +4 6\n* *\n+1 7 6\n"
    body += b"\nfn=g\nfi=c\ncfn=j\ncalls=1 0x70 1\n0x40 7 5\n"
    for how, files, callees, target in (
        (CALLGRINDS, b"abbaaccacc", b"aaca", b"ac"),
        (CALLGRINDS.replace(b"callgrind-", b"fastprof-"), b"abbbbccaac", b"bbcc", b"ba"),
    ):
        data = how + body
        rows = read_parts(data)[0][0].rows
        assert b"".join(r.file for r in rows) == files
        assert [r.callee.file for r in rows if r.callee and r.kind == "call"] == [callees[i : i + 1] for i in range(4)]
        assert b"".join(r.target_file for r in rows) == target
        assert rows == parse(data)[0].rows
        for size in (1, 2, 1000):
            assert read_parts(data, window=size, capacity=size)[0][0].rows == rows
        again = rewrite(data)
        assert parse(again)[0].rows == rows and rewrite(again) == again


def test_what_a_program_called_in_an_object_that_is_unloaded() -> None:
    """Callgrind knows the file of such a function, not those of its lines; no function is duplicated."""
    (part,), _ = read_parts(CORPUS / "callgrind/good/unloaded.callgrind")
    own = {r.function for r in part.rows}
    callees = {r.callee for r in part.rows if r.callee}
    assert callees <= own
    assert {r.file for r in part.rows if r.kind == "cost" and b"/plug" in r.function.object} == {b"/build/demo/plug.c"}


def test_a_callee_may_name_its_file_after_its_name() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\n1 1\ncfn=g\ncfi=b\ncalls=1 7\n1 5\ncfn=h\ncalls=1 7\n1 5\n")
    assert [r.callee for r in parts[0].rows[1:]] == [Function(b"", b"b", b"g"), Function(b"", b"a", b"h")]


def test_a_callee_is_kept_for_the_next_call_of_the_block() -> None:
    parts, _ = read_parts(HEADER + b"fl=a\nfn=f\ncfi=b\ncfn=g\ncalls=1 7\n1 5\ncalls=2 7\n2 6\n")
    assert [(r.callee, r.count) for r in parts[0].rows] == [(Function(b"", b"b", b"g"), n) for n in (1, 2)]


def test_calls_without_a_name_are_read_and_counted() -> None:
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n1 1\ncalls=1 7\n1 5\n")
    assert parts[0].rows[1].callee == Function(b"", b"a", b"")
    assert log.repairs["unnamed-callees"] == 1


def test_blocks_of_other_contexts_are_one_function() -> None:
    """valgrind --mangle-names=no --separate-recs=2 --separate-callers=2; frfn= alone may define a number."""
    body = b"frfn=(5) main\nfl=(1) a\nfn=(3) f\n1 1\ncfn=(5)\ncalls=1 9\n1 2\n\nrec=1\n\nfrfn=(spontaneous)\n2 3\n"
    parts, log = read_parts(HEADER + body)
    assert [(r.kind, r.function.name, r.values[0]) for r in parts[0].rows] == [
        ("cost", b"f", 1),
        ("call", b"f", 2),
        ("cost", b"f", 3),
    ]
    assert parts[0].rows[1].callee == Function(b"", b"a", b"main")
    assert parts[0].rows == parse(HEADER + body)[0].rows
    assert log.not_representable == {"caller-contexts": 3}
    assert not log.repairs and not log.warnings
    used_first = HEADER + b"fl=a\nfn=(5)\n1 1\nfrfn=(5) main\nfn=g\n1 1\n"
    parts, log = read_parts(used_first)
    assert parts[0].rows[0].function.name == b"main"


def test_a_function_without_rows_is_in_its_own_file() -> None:
    """Output of stackprof: fl= of the next block is read before fn= ends this one."""
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


@pytest.mark.parametrize("text", [b"1.5", b"1e3", b"+1.5", b"-.5"])
def test_a_position_is_a_whole_number(text: bytes) -> None:
    with pytest.raises(FormatError, match=r"line 5, .*: position is"):
        read_parts(HEADER + b"fl=a\nfn=f\n%b 5\n" % text)
