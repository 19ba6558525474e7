"""Parts of Callgrind and Cachegrind profiles: header lines, events, comments, totals."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastprof import convert, info
from fastprof.core._c import lib
from fastprof.core.engine import read
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference.callgrind import parse
from tests.support.graphs import read_parts, rewrite
from tests.support.product import open_input

LENIENT = Options(lenient=True)
HEADER = b"version: 1\nevents: Ir Dr\n"


@pytest.mark.parametrize("line", [b"positions: line instr", b"positions: line bb instr", b"positions: bb line addr"])
def test_columns_stand_in_one_order_whatever_the_header_says(line: bytes) -> None:
    """Orbuculum names `line instr` but writes the address first; KCachegrind reads it so."""
    bb = b" 0x20" if b"bb" in line else b""
    data = line + b"\nevents: Ir\nfl=a\nfn=f\n0x10" + bb + b" 3 9\n"
    parts, log = read_parts(data)
    assert [(r.position, r.values) for r in parts[0].rows] == [((0x10, 0x20 if bb else 0, 3), (9,))]
    assert log.repairs == {"positions-order": 1}
    assert (b"\npositions: instr bb line\n" if bb else b"\npositions: instr line\n") in rewrite(data)
    with pytest.raises(FormatError, match=r"expected each of them once"):
        read_parts(b"positions: line line\nevents: Ir\n")


def test_a_summary_without_a_colon() -> None:
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n1 5 3\n\nsummary 7 4\ntotals 5 3\n")
    assert (parts[0].summary, parts[0].totals) == ([7, 4], [5, 3])
    assert log.repairs == {"sums-without-colon": 2}


def test_totals_of_an_xtree_of_nothing() -> None:
    """Valgrind 3.19, `--xtree-memory=full`, of a program that allocates nothing."""
    parts, log = read_parts(b"# callgrind format\ncreator: xtree-1\nevents: curB  curBk \ntotals: (null)\n")
    assert parts[0].totals == []
    assert log.repairs == {"null-totals": 1}
    assert not log.warnings


def test_what_an_event_is_holds_in_later_parts() -> None:
    first = b"event: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevent: Dw : Writes\nevents: Ir Dr\nfl=a\nfn=f\n1 1\n\n"
    data = rewrite(first + b"part: 2\nevents: Dr Ir\nfl=a\nfn=f\n1 1\n")
    header, _, rest = data.partition(b"part: 2\n")
    assert b"\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevent: Dw : Writes\nevents: Ir Dr\n" in header
    assert b"\nevent: Ir : Fetches\nevent: Sum = Ir + 2 Dr\nevents: Dr Ir\n" in rest


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
    """Rows with other columns in the same part would get leftover values of the batch."""
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
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n1 1\n" + comment * 2000 + b"2 2\n")
    assert log.not_representable == {"excess-comments": 2000 - 1026}
    assert len(parts[0].rows) == 2


@pytest.mark.parametrize("line", [b"Hello world", b"Key: value", b"I1 cache: ", b"a:b"])
def test_descriptions_are_written_as_they_were(line: bytes) -> None:
    once = rewrite(b"desc: " + line + b"\nevents: Ir\nfl=a\nfn=f\n1 1\n")
    assert b"\ndesc: " + line.replace(b"a:b", b"a: b") + b"\n" in once


@pytest.mark.parametrize("totals", [b"9", b"5 3 9", b"5", b"-5 3", b"0x4 3"])
def test_totals_that_do_not_add_up_are_said(totals: bytes) -> None:
    _, log = read_parts(HEADER + b"fl=a\nfn=f\n1 5 3\ntotals: " + totals + b"\n")
    assert log.repairs == {"wrong-totals": 1}
    found = [int(word, 0) for word in totals.split()]
    assert log.warnings == [f"input: `totals:` of part 1 is {found}, but its costs add up to [5, 3]"]


@pytest.mark.parametrize("totals", [b"5 3", b"0x5 3", b" 5\t3 "])
def test_totals_that_add_up_and_a_larger_summary_are_not_said(totals: bytes) -> None:
    once = HEADER + b"summary: 7 4\nfl=a\nfn=f\n1 5 3\ntotals: " + totals + b"\n"
    parts, log = read_parts(once)
    assert not log.repairs and not log.warnings and not log.losses
    assert parts[0].summary == [7, 4]
    assert b"\nsummary: 7 4\n" in rewrite(once)


@pytest.mark.parametrize("creator", [b"callgrind-3.19.0", b"fastprof-0.1.0\ndesc: Original creator: xdebug 3"])
def test_a_part_that_ends_before_the_totals_of_its_writer_is_said(creator: bytes) -> None:
    """Callgrind writes them last, even for an empty part; a file cut between two lines shows no other damage."""
    one = b"part: 3\nevents: Ir Dr\nfl=a\nfn=f\n1 5 3\n\n"
    data = b"version: 1\ncreator: " + creator + b"\n" + one + b"totals: 5 3\n\npart: 4\nevents: Ir\n\ntotals: 0\n"
    _, log = read_parts(data)
    assert not log.repairs and not log.warnings
    for cut in (data.removesuffix(b"\ntotals: 0\n"), data.removesuffix(b"totals: 0\n")):
        parts, log = read_parts(cut)
        assert [p.sums for p in parts] == [[5, 3], [0]]
        assert log.repairs == {"missing-totals": 1}
        assert log.warnings == ["input: part 4 does not end in `totals:`: the input may be truncated"]
    _, log = read_parts(data.replace(b"totals: 5 3\n", b""))
    assert log.warnings == ["input: part 3 does not end in `totals:`: the input may be truncated"]
    for other in (b"xdebug 3.1.0 (PHP 8.2)", b"xtree-1"):
        _, log = read_parts(b"creator: " + other + b"\n" + one)
        assert not log.repairs and not log.warnings


CUT = b"version: 1\ncreator: %s\npart: 1\nevents: Ir Dr\nsummary: 105 3\n\nfl=a\nfn=f\n1 5 3\n+1 100\n\ntotals: 105 3\n"


INSIDE = "the input ends inside a line"
SHORT = "part 1 is incomplete: its costs add up to [%s, 3], expected [%s] as in `%s:`"


@pytest.mark.parametrize("creator", [b"callgrind-3.19.0", b"fastprof-0.1.0"])
@pytest.mark.parametrize(
    ("left", "what"),
    [
        (b"totals: 10", SHORT % (105, "10", "totals")),
        (b"tota", INSIDE),
        (b"+1 10", INSIDE),
        (b"+1 100", INSIDE),  # the text after 100 is unknown
        (b"1 5 3\n", SHORT % (5, "105, 3", "summary")),
        (b"summary: 1", INSIDE),
    ],
)
def test_a_part_that_was_cut_off_is_an_error(creator: bytes, left: bytes, what: str) -> None:
    data = CUT % creator
    data = data[: data.index(left) + len(left)]
    with pytest.raises(FormatError) as error:
        read_parts(data)
    place = data.rindex(b"\n") + 1 if what is INSIDE else len(data)
    assert error.value.code == lib.FP_E_TRUNCATED and what in str(error.value)
    assert f"byte {place}:" in str(error.value)
    _, log = read_parts(data, LENIENT)
    assert log.losses.total() > 0
    # other writers' ends of parts are unknown
    _, log = read_parts((CUT % b"xdebug 3.1.0").replace(b"summary: 105", b"summary: 110").removesuffix(b"\n"))
    assert not log.losses


def test_a_cut_part_with_others_behind_it_is_an_error() -> None:
    head, _, body = (CUT % b"callgrind-3.19.0").partition(b"part: 1\n")
    whole = head + b"part: 1\n" + body + b"\npart: 2\n" + body
    assert [p.sums for p in read_parts(whole)[0]] == [[105, 3]] * 2
    cut = whole.replace(b"+1 100\n\ntotals: 105 3\n\npart: 2", b"\npart: 2")
    with pytest.raises(FormatError, match=r"part 1 is incomplete: its costs add up to \[5, 3\]"):
        read_parts(cut)
    parts, log = read_parts(cut, LENIENT)
    assert [p.sums for p in parts] == [[5, 3], [105, 3]]
    assert log.losses == {"cut-off-parts": 1}


@pytest.mark.parametrize("end", [b"", b"\n  ", b"\n# a remark"])
def test_a_complete_part_needs_no_newline_at_its_end(end: bytes) -> None:
    parts, log = read_parts((CUT % b"callgrind-3.19.0").removesuffix(b"\n") + end)
    assert [p.sums for p in parts] == [[105, 3]] and not log.repairs and not log.warnings


def test_a_cachegrind_profile_that_ends_inside_a_line_is_cut_off() -> None:
    data = b"desc: I1 cache: 1\ncmd: ./a\nevents: Ir\nfl=a\nfn=f\n1 50\nsummary: 50"
    assert not read_parts(data)[1].repairs
    for lost in (b"0", b"mary: 50", b"0\nsummary: 50"):
        with pytest.raises(FormatError) as error:
            read_parts(data.removesuffix(lost))
        assert error.value.code == lib.FP_E_TRUNCATED


def test_a_summary_that_wrapped_around_is_left_out() -> None:
    """Valgrind 3.22 writes the difference of event counters without a sign, after client requests that zero them."""
    data = (CUT % b"callgrind-3.22.0").replace(b"summary: 105 3", b"summary: 18446744073709551395 3")
    parts, log = read_parts(data)
    assert log.repairs == {"wrapped-summary": 1}
    assert parts[0].summary is None and parts[0].sums == [105, 3]
    assert b"summary:" not in rewrite(data)
    with pytest.raises(FormatError, match="no sum of its part shows that it is negative"):
        read_parts(data.replace(b"callgrind-3.22.0", b"another 1"))


def test_a_part_that_may_have_been_cut_off_is_a_loss_with_lenient() -> None:
    for creator in (b"creator: callgrind-3.19.0\n", b"desc: I1 cache: 1\ncmd: ./a\n"):
        _, log = read_parts(creator + b"events: Ir\nfl=a\nfn=f\n1 5\n", LENIENT)
        assert log.losses == {"lost-totals": 1}
        assert not log.repairs and len(log.warnings) == 1
    _, log = read_parts(HEADER + b"fl=a\nfn=f\n1 5 3\n", LENIENT)  # another writer need not end it so
    assert not log.losses and not log.repairs


GOES_ON = "parts-without-events"


@pytest.mark.parametrize("key", ["cmd: x", "version: 1", "creator: y 1", "part: 2", "thread: 2", "pid: 8"])
def test_a_part_without_events_keeps_those_before(key: str) -> None:
    """Like KCachegrind and callgrind_annotate."""
    head = b"positions: instr line\nevents: Ir Dr\nfl=a\nfn=f\n0x10 1 5 3\n"
    data = head + b"%s\nfl=b\nfn=g\ncfn=f\ncalls=2 0x10 1\n0x20 4 9\n+3 5 7\n"
    for capacity in (1, 100):
        parts, log = read_parts(data % key.encode(), capacity=capacity)
        assert [(p.events, p.positions, p.sums) for p in parts] == [
            (["Ir", "Dr"], ["instr", "line"], [5, 3]),
            (["Ir", "Dr"], ["instr", "line"], [7, 0]),
        ]
        call, cost = parts[1].rows
        assert (call.kind, call.count, call.position, call.target, call.values) == (
            "call",
            2,
            (0x20, 0, 4),
            (0x10, 0, 1),
            (9, 0),
        )
        assert (cost.function.name, cost.file, cost.position[2]) == (b"g", b"b", 5)
        assert log.repairs == {GOES_ON: 1}


def test_behind_a_command_a_function_goes_on() -> None:
    """KCachegrind begins no part there; at `part:` it resets the function."""
    data = HEADER + b"fl=a\nfn=f\n10 5 3\n%s\n+1 7\n"
    parts, log = read_parts(data % b"cmd: x")
    row = parts[1].rows[0]
    assert (row.function.name, row.file, row.position[2], row.values) == (b"f", b"a", 11, (7, 0))
    assert log.repairs == {GOES_ON: 1}
    parts, log = read_parts(data % b"part: 2")
    assert parts[1].rows[0].function.name == b"" and parts[1].rows[0].position[2] == 1


def test_a_part_with_events_forgets_the_function() -> None:
    parts, log = read_parts(HEADER + b"fl=a\nfn=f\n10 5 3\ncmd: x\nevents: Dw\n+1 7\n")
    assert (parts[1].events, parts[1].rows[0].function.name) == (["Dw"], b"") and GOES_ON not in log.repairs


@pytest.mark.parametrize("line", ["events: Ir Dr Dw", "positions: instr line"])
def test_a_header_line_behind_rows_of_a_part_without_events_begins_another(line: str) -> None:
    """The function continues, so no line names one.  With more events, rows were written beyond the batch."""
    data = HEADER + b"fl=a\nfn=f\n10 5 3\ncmd: x\n+1 7\n+1 8\n%s\n0x1 1 2 3\n" % line.encode()
    parts, log = read_parts(data)
    sizes = [(len(p.events), len(p.positions), len(p.rows)) for p in parts]
    assert sizes == [(2, 1, 1), (2, 1, 2), (3, 1, 1) if "events" in line else (2, 2, 1)]
    assert log.repairs[GOES_ON] == 1 + ("events" not in line)


def test_a_part_of_nothing_but_its_header_is_still_cut_off() -> None:
    with pytest.raises(FormatError, match="the input ends before `events:`"):
        read_parts(HEADER + b"fl=a\nfn=f\n10 5 3\npart: 2\n")
    with pytest.raises(FormatError, match="line before `events:` is '1 5'"):
        read_parts(b"fl=a\nfn=f\n1 5\nevents: Ir\n")


def test_a_cachegrind_summary_that_is_missing_or_wrong_is_said() -> None:
    data = b"desc: I1 cache: 1\ncmd: ./a\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n"
    _, log = read_parts(data)
    assert not log.repairs and not log.warnings
    _, log = read_parts(data.removesuffix(b"summary: 5\n"))
    assert log.warnings == ["input: part 1 does not end in `summary:`: the input may be truncated"]
    _, log = read_parts(data.replace(b"summary: 5", b"summary: 6"))
    assert log.repairs == {"wrong-totals": 1}
    assert log.warnings == ["input: `summary:` of part 1 is [6], but its costs add up to [5]"]


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
    _, log = read_parts(HEADER + line + b"\nfl=a\nfn=f\n1 1\n", LENIENT)
    assert log.losses == {"unreadable-lines": 1}


def test_a_process_or_thread_that_is_no_number_is_kept_as_text(tmp_path: Path) -> None:
    said = [b"pid: 1.5", b"thread: main"], [b"pid:", b"thread: \xff, 2"], [b"thread: " + b"9" * 20], [b"pid: 12"]
    parts = [b"\n".join([b"part: %d" % (k + 1), *lines]) for k, lines in enumerate(said)]
    data = b"".join(part + b"\nevents: Ir\nfl=a\nfn=f\n1 1\n" for part in parts)
    opened = open_input(data, from_="callgrind")
    for _ in read(opened.reader):
        pass
    assert opened.log.warnings == [
        "input: line 2: pid: found '1.5', expected a whole number; kept as text",
        "input: line 3: thread: found 'main', expected a whole number; kept as text",
    ]
    assert [(p.pid, p.thread) for p in opened.model.parts] == [(None, None)] * 3 + [(12, None)]
    once = rewrite(data)
    assert rewrite(once) == once
    # values that are not repeated stay valid, within a process
    written = [*said[0], b"pid: ", b"thread: \xff, 2", b"pid: ", b"thread: " + b"9" * 20, b"pid: 12"]
    assert [line for line in once.split(b"\n") if line.startswith((b"pid:", b"thread:"))] == written
    (tmp_path / "x.callgrind").write_bytes(data)
    convert([str(tmp_path / "x.callgrind")], str(tmp_path / "x.fpa"))
    convert([str(tmp_path / "x.fpa")], str(tmp_path / "y.callgrind"))
    assert (tmp_path / "y.callgrind").read_bytes() == once


def test_an_unknown_key_is_said_once_with_its_line() -> None:
    _, log = read_parts(b"flavour: 1\n" + HEADER + b"flavour: 2\nfl=a\nfn=f\nxrec=2\n1 5\n")
    assert [w.split(": ", 1)[1] for w in log.warnings] == [
        "line 1: unknown key 'flavour'; such lines are ignored",
        "line 7: unknown key 'xrec'; such lines are ignored",
    ]
    assert log.not_representable["unknown-keys"] == 3


def test_info_adds_up_parts_by_the_names_of_their_events(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        "version: 1\nevents: Ir Dr\nfn=f\n1 10 2\n\nevents: Dr Bc\nfn=f\n1 5 7\n\nevents: Ir Dr\nfn=f\n1 1 1\n"
    )
    for path in (tmp_path / "a", tmp_path / "b.fpa", tmp_path / "c.fpa"):
        if path.suffix:
            convert(tmp_path / "a", path)
        assert info(path).facts["totals"] == {"Ir": 11, "Dr": 8, "Bc": 7}
