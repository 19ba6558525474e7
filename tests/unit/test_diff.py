"""fastprof diff: the rows that differ, and by how much, as objects, text, JSON, CSV and profiles."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from tests.reference.callgrind import parse
from tests.reference.profile_proto import Profile
from tests.support.paths import CORPUS
from tests.support.stackdump import dump

OLD = b"""\
version: 1
cmd: ./old
events: Ir Dr

ob=app
fl=a.c
fn=main
1 10 1
2 5 1
fi=inl.h
7 3
cfi=b.c
cfn=f
calls=4 1
2 40 9
fl=b.c
fn=f
1 30 8
2 10 1
fn=gone
9 2
"""
NEW = b"""\
version: 1
cmd: ./new
events: Ir Dr

ob=app
fl=a.c
fn=main
2 15 2
fi=inl.h
7 3
cfi=b.c
cfn=f
calls=1 1
2 20 4
fl=b.c
fn=f
1 15 4
2 5
ob=libc
fl=???
fn=made
0 7
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "old.callgrind").write_bytes(OLD)
    (tmp_path / "new.callgrind").write_bytes(NEW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def differences(**options: Any) -> fastprof.Difference:
    return fastprof.diff("old.callgrind", "new.callgrind", **options)


def test_functions(files: Path) -> None:
    found = differences()
    assert [tuple(value) for value in found.values] == [("Ir", "", 60, 45), ("Dr", "", 11, 6)]
    assert [(row.name, row.file, row.object, row.old, row.new) for row in found.rows] == [
        ("f", "b.c", "app", (40, 9), (20, 4)),
        ("made", "", "libc", (0, 0), (7, 0)),
        ("gone", "b.c", "app", (2, 0), (0, 0)),
        ("main", "a.c", "app", (18, 2), (18, 2)),
    ]
    assert (found.n_changed, found.by, found.values[found.shown].name) == (3, "function", "Ir")


BY = {
    "line": [
        ("f", "b.c", 1, (30, 8), (15, 4)),
        ("main", "a.c", 1, (10, 1), (0, 0)),
        ("main", "a.c", 2, (5, 1), (15, 2)),
        ("made", "", 0, (0, 0), (7, 0)),
        ("f", "b.c", 2, (10, 1), (5, 0)),
        ("gone", "b.c", 9, (2, 0), (0, 0)),
        ("main", "inl.h", 7, (3, 0), (3, 0)),
    ],
    "file": [
        ("b.c", "b.c", 0, (42, 9), (20, 4)),
        ("", "", 0, (0, 0), (7, 0)),
        ("a.c", "a.c", 0, (15, 2), (15, 2)),
        ("inl.h", "inl.h", 0, (3, 0), (3, 0)),
    ],
    "object": [("app", "", 0, (60, 11), (38, 6)), ("libc", "", 0, (0, 0), (7, 0))],
}


@pytest.mark.parametrize("by", BY)
def test_coarser_and_finer(by: str, files: Path) -> None:
    found = differences(by=by)
    assert [(row.name, row.file, row.line, row.old, row.new) for row in found.rows] == BY[by]
    assert found.values == differences().values


def test_arcs(files: Path) -> None:
    """Their inclusive costs, and the number of calls."""
    found = differences(by="arc")
    (row,) = found.rows
    assert (row.name, row.callee, row.old, row.new) == ("main", "f", (40, 9, 4), (20, 4, 1))
    assert [tuple(value) for value in found.values] == [
        ("Ir", "", 60, 45),
        ("Dr", "", 11, 6),
        ("calls", "count", 4, 1),
    ]


@pytest.mark.parametrize("n", range(1, 6))
def test_the_first_rows(n: int, files: Path) -> None:
    found, all_ = differences(n=n), differences(n=0)
    assert found.rows == all_.rows[:n] and found.n_changed == all_.n_changed == 3


def test_by_another_value(files: Path) -> None:
    found = differences(value="Dr")
    assert [value.name for value in found.values] == ["Dr"]
    assert [(row.name, row.old, row.new) for row in found.rows if row.old != row.new] == [("f", (9,), (4,))]


def test_parts_and_files_of_a_folder_are_added_up(files: Path) -> None:
    (files / "runs").mkdir()
    for n in (1, 2):
        (files / "runs" / f"{n}.callgrind").write_bytes(OLD)
    (files / "two.callgrind").write_bytes(OLD + b"\npart: 2\n" + OLD.partition(b"\n")[2])
    assert not fastprof.diff("runs", "two.callgrind").n_changed
    assert fastprof.diff("old.callgrind", "runs").values[0][2:] == (60, 120)


@pytest.mark.parametrize("by", ["function", "line", "file", "object", "arc"])
@pytest.mark.parametrize("pair", [("callgrind/good/cfi.callgrind", "callgrind/good/contexts.callgrind")])
def test_as_a_profile_it_is_what_the_rows_say(by: str, pair: tuple[str, str], tmp_path: Path) -> None:
    paths = [CORPUS / file for file in pair]
    rows = fastprof.diff(*paths, by=by, union=True, n=0)
    fastprof.diff(*paths, tmp_path / "d.callgrind", by=by, union=True)
    (part,) = parse((tmp_path / "d.callgrind").read_bytes())
    assert part.events == [value.name for value in rows.values]
    expected: Counter[Any] = Counter()
    for row in rows.rows:
        for value, old, new in zip(rows.values, row.old, row.new, strict=True):
            expected[row.name, row.callee, value.name] += new - old
    got: Counter[Any] = Counter()
    for one in part.rows:
        callee = one.callee.name.decode() if one.callee else ""
        for name, cost in zip(part.events, one.values, strict=True):
            if (one.kind == "call") == (by == "arc"):
                got[one.function.name.decode(), callee, name] += cost
    assert {k: v for k, v in got.items() if v} == {k: v for k, v in expected.items() if v}
    assert any(expected.values())


def test_cachegrind(files: Path) -> None:
    """Like the output of cg_diff, including rows without a difference; objects are dropped."""
    fastprof.diff("old.callgrind", "new.callgrind", "d.cachegrind")
    assert (files / "d.cachegrind").read_text().splitlines() == [
        "desc: Files compared:   old.callgrind; new.callgrind",
        "cmd: ./old; ./new",
        "events: Ir Dr",
        "fl=???",
        "fn=made",
        "0 7 0",
        "fl=a.c",
        "fn=main",
        "0 0 0",
        "fl=b.c",
        "fn=f",
        "0 -20 -5",
        "fn=gone",
        "0 -2 0",
        "summary: -15 -5",
    ]


def samples(path: Path) -> Counter[tuple[tuple[str, ...], bool, str]]:
    """(stack, whether it is the old one's, value type) of a pprof profile."""
    p = Profile()
    p.ParseFromString(path.read_bytes())
    strings = p.string_table
    function = {f.id: strings[f.name] for f in p.function}
    location = {one.id: tuple(function[line.function_id] for line in one.line) for one in p.location}
    found: Counter[Any] = Counter()
    for s in p.sample:
        labels = {strings[label.key]: strings[label.str] for label in s.label}
        assert labels in ({}, {"pprof::base": "true"})
        stack = tuple(name for id_ in s.location_id for name in location[id_])
        for t, value in zip(p.sample_type, s.value, strict=True):
            found[stack, bool(labels), strings[t.type]] += value
    return found


def test_stacks_are_kept_apart_by_profile(tmp_path: Path) -> None:
    """Like pprof -diff_base."""
    (tmp_path / "old.folded").write_text("a;b 5\na;c 2\n")
    (tmp_path / "new.folded").write_text("a;b 7\na;d 1\n")
    found = fastprof.diff(tmp_path / "old.folded", tmp_path / "new.folded", tmp_path / "d.pb")
    assert samples(tmp_path / "d.pb") == {
        (("b", "a"), False, "samples"): 7,
        (("d", "a"), False, "samples"): 1,
        (("b", "a"), True, "samples"): -5,
        (("c", "a"), True, "samples"): -2,
    }
    assert [tuple(value) for value in found.values] == [("samples", "count", 7, 8)]


def test_a_timeline_is_compared_by_what_was_called(tmp_path: Path) -> None:
    old, new = (CORPUS / "xray/good" / name for name in ("fdr5-busy.xray", "fdr5-interp-args-clang14.xray"))
    found = fastprof.diff(old, new)
    assert [value.name for value in found.values] == ["time", "calls"]
    fastprof.diff(old, new, tmp_path / "d.pb")
    totals: Counter[Any] = Counter()
    for (_, is_old, name), value in samples(tmp_path / "d.pb").items():
        totals[name, is_old] += value
    calls = found.values[1]
    assert (totals["calls", True], totals["calls", False]) == (-calls.old, calls.new)


def test_a_difference_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    for name, sign in (("old", "-"), ("new", "")):
        (tmp_path / name).write_text(f"events: Ir\nfl=a\nfn=f\n1 {sign}9223372036854775807\n")
    with pytest.raises(FastprofError, match=r"a difference in value type Ir exceeds 2\^63 - 1"):
        fastprof.diff(tmp_path / "old", tmp_path / "new", tmp_path / "d.callgrind")
    assert not (tmp_path / "d.callgrind").exists()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["d.pb"], {"by": "file"}, "by= applies to tables and graphs"),
        (["d.xray"], {}, "a difference has no times"),
        ([], {"by": "thread"}, "by: 'thread' is not one of function, line"),
        (["d.callgrind"], {"n": 3}, "n= chooses printed rows; the profile of output= has all"),
        ([], {"per_thread": True}, "unknown option 'per_thread'"),
        ([], {"time_range": (0, 1)}, "time_range= has no effect"),
        (["d.callgrind"], {"comments": ("x",)}, "comments= has no effect"),
    ],
)
def test_what_would_do_nothing_is_refused(
    arguments: list[str], options: dict[str, Any], message: str, files: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        fastprof.diff("old.callgrind", "new.callgrind", *arguments, **options)
    assert sorted(path.name for path in files.iterdir()) == ["new.callgrind", "old.callgrind"]


# ---- the command line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert main(["diff", "old.callgrind", "new.callgrind", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_text(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = run(capsys, "-n", "2")
    assert err == ""
    assert out == (
        "    old  new  difference      %\n"
        "Ir   60   45         -15  -25.0\n"
        "Dr   11    6          -5  -45.5\n"
        "\n"
        "Ir old  new  difference      %  incl. diff.  function  file  object\n"
        "    40   20         -20  -50.0          -20  f         b.c   app\n"
        "     0    7          +7    new           +7  made      ???   libc\n"
        "... 1 more\n"
    )
    assert "\x1b" not in out
    assert "... " not in run(capsys, "-n", "0")[0]
    assert "main    f       app" in run(capsys, "--by", "arc")[0]
    assert "f         b.c:1  app" in run(capsys, "--by", "line")[0]


@pytest.mark.parametrize("columns,left_out", [(60, ["object", "file"]), (90, ["object"]), (200, [])])
def test_a_narrow_terminal(columns: int, left_out: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Function names take precedence; file and object are dropped before names shrink to nothing."""
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    for name, cost in (("a", 1000), ("b", 2000)):
        place = (
            f"ob=/usr/lib/x86_64-linux-gnu/libstdc++.so.6\nfl=/usr/include/c++/12/bits/stl_vector.h\nfn={'long' * 12}\n"
        )
        (tmp_path / name).write_text(f"events: Ir\n{place}1 {cost}\n")
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "-f", "callgrind"]) == 0
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    words = lines[3].split()
    assert [title for title in ("object", "file") if title not in words] == left_out and "function" in words
    assert "longlonglo" in lines[4] and "nglonglong" in lines[4]


def test_a_table_lists_no_rows_that_it_has_no_place_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stacks and labels are added up, as the table shows; --json lists them."""
    old, new = str(CORPUS / "pprof/good/go-cpulabels.pb.gz"), str(tmp_path / "twice.pb.gz")
    fastprof.merge([old, old], new)
    assert main(["diff", old, new]) == 0
    err = capsys.readouterr().err
    assert "not part of the output" not in err and "warning: OLD was recorded for" in err
    assert main(["diff", old, new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log"]["not_representable"]


def test_equal_profiles(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "old.callgrind", "old.callgrind", "--fail-over", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Ir   60   60           0  0.0",
        "Dr   11   11           0  0.0",
    ]


def test_json_and_csv(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "--json")[0])
    assert found["values"][0] == {"name": "Ir", "unit": "", "old": 60, "new": 45, "percent": -25.0}
    assert len(found["rows"]) == 4 and found["changed"] == 3 and found["log"]["warnings"] == []
    assert found["rows"][0]["values"] == {"Ir": {"old": 40, "new": 20}, "Dr": {"old": 9, "new": 4}}
    assert found["rows"][0]["inclusive"] == {"old": 40, "new": 20}
    head, *rows = csv.reader(run(capsys, "--csv")[0].splitlines())
    more = ["inclusive Ir old", "inclusive Ir new"]
    assert head == ["name", "file", "object", "line", "callee", "Ir old", "Ir new", "Dr old", "Dr new", *more]
    assert len(rows) == 4 and rows[0] == ["f", "b.c", "app", "0", "", "40", "20", "9", "4", "40", "20"]
    error = json.loads(run(capsys, "--csv", "--json", code=2)[1])
    assert (error["code"], error["message"]) == ("usage", "--json and --csv exclude each other")
    assert "applies to printed rows" in run(capsys, "--csv", "-o", "d.callgrind", code=2)[1]


FORMATS = [
    "callgrind/good/xdebug.callgrind",
    "callgrind/good/yappi.callgrind",
    "pprof/good/go-cpulabels.pb.gz",
    "pprof/good/go-heap.pb.gz",
    "xray/good/fdr5-pool-clang19.xray",
    "xray/good/profiling-pool-clang19.xray",
]


@pytest.mark.parametrize("name", FORMATS)
def test_inclusive_costs_are_those_of_top(name: str) -> None:
    """Including recursions, and functions that are both called and the roots of stacks."""
    path = CORPUS / name
    expected: Counter[tuple[str, str, str]] = Counter()
    for row in fastprof.top(path, n=0).rows:
        if not row.name.startswith("<cycle"):
            expected[row.name, row.file, row.object] += row.inclusive or 0
    found = fastprof.diff(path, path, n=0, sort="inclusive", union=True)
    assert {(r.name, r.file, r.object): r.inclusive for r in found.rows} == {
        place: (cost, cost) for place, cost in expected.items()
    }
    assert found.n_changed == 0


def test_sorted_by_inclusive_cost(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A function without a self cost has a row; its cost is that of its callees."""
    (files / "old.callgrind").write_bytes(OLD.replace(b"1 10 1\n2 5 1\nfi=inl.h\n7 3\n", b""))
    found = differences(sort="inclusive", n=2)
    assert [(r.name, r.old, r.new, r.inclusive) for r in found.rows] == [
        ("f", (40, 9), (20, 4), (40, 20)),
        ("made", (0, 0), (7, 0), (0, 7)),
    ]
    assert found.n_changed == 4
    assert run(capsys, "--sort", "inclusive", "-n", "1")[0].splitlines()[-3:] == [
        "Ir incl. old  new  difference      %  self diff.  function  file  object",
        "          40   20         -20  -50.0         -20  f         b.c   app",
        "... 3 more",
    ]
    assert "sorts functions, not --by=line" in run(capsys, "--sort", "inclusive", "--by", "line", code=2)[1]
    (files / "old.cachegrind").write_text("desc: I1 cache: none\ncmd: a\nevents: Ir\nfl=a\nfn=f\n1 2\n")
    with pytest.raises(UsageError, match="the profiles have only self costs"):
        fastprof.diff("old.cachegrind", "old.cachegrind", sort="inclusive")
    assert {row.inclusive for row in fastprof.diff("old.cachegrind", "old.cachegrind").rows} == {None}


def test_tables_in_files(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed table, by the suffix; any other suffix is a profile's."""
    for name, flags in (("d.md", ["--markdown"]), ("d.csv", ["--csv"]), ("d.json", ["--json"]), ("d.txt", [])):
        printed = run(capsys, *flags)[0]
        assert run(capsys, "-o", name) == ("", "")
        assert (files / name).read_text() == printed
    assert run(capsys, "-o", "d.speedscope.json", "--fail-over", "50")[0] == ""
    assert json.loads((files / "d.speedscope.json").read_text())["profiles"]
    assert "exclude each other" in run(capsys, "-o", "d.csv", "--csv", "--json", code=2)[1]


@pytest.mark.parametrize(
    ("swap", "percent", "code", "says"),
    [
        (False, "0", 0, ""),  # the cost decreased
        (True, "33.3", 4, "Ir +33.3 %, Dr +83.3 %"),
        (True, "33.4%", 4, "above new.callgrind: Dr +83.3 %"),
        (True, "83.4", 0, ""),
    ],
)
def test_a_gate(
    swap: bool, percent: str, code: int, says: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = ["old.callgrind", "new.callgrind"][:: -1 if swap else 1]
    for more in ([], ["-o", "d.cachegrind"], ["--json"]):
        assert main(["diff", *pair, "--fail-over", percent, *more]) == code
        assert (says or "fastprof: more than") in capsys.readouterr().err or not says


def test_from_nothing_any_growth_is_too_much(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "none.callgrind").write_bytes(b"events: Ir Dr\nfl=a.c\nfn=main\n1 60\n")
    assert main(["diff", "none.callgrind", "old.callgrind", "--fail-over", "1000000"]) == 4
    assert "Dr new" in capsys.readouterr().err
    assert main(["diff", "none.callgrind", "old.callgrind", "--fail-over", "1000000", "--value", "Ir"]) == 0


@pytest.mark.parametrize("percent", ["-1", "x", "nan", "inf", ""])
def test_a_limit_that_is_none(percent: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["diff", "old.callgrind", "new.callgrind", f"--fail-over={percent}"])
    assert stopped.value.code == 2 and "a percentage of 0 or more" in capsys.readouterr().err


def test_damage_in_either_is_an_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "bad.callgrind").write_bytes(NEW + b"what is this\n")
    for pair in (("old", "bad"), ("bad", "old")):
        command = ["diff", *(f"{name}.callgrind" for name in pair)]
        assert main([*command, "-o", "d.callgrind"]) == 1
        assert "bad.callgrind: callgrind: line" in capsys.readouterr().err
        assert not (files / "d.callgrind").exists()
        assert main([*command, "--lenient"]) == 3


@pytest.mark.parametrize("more", [{}, {"by": "line"}, {"intersect": True}])
def test_a_filter_that_leaves_something_on_one_side_only(more: dict[str, Any], tmp_path: Path) -> None:
    old, new = tmp_path / "old.callgrind", tmp_path / "new.callgrind"
    old.write_text("events: Ir\nfn=f\n1 10\ncfn=g\ncalls=1 2\n1 5\nfn=g\n2 5\n")
    new.write_text("events: Ir\nfn=f\n1 12\ncfn=h\ncalls=1 2\n1 7\nfn=h\n2 7\n")
    found = fastprof.diff(old, new, function="^h$", **more)
    assert found.values[0][2:] == (0, 7)
    assert [(row.old[0], row.new[0]) for row in found.rows] == [(0, 7)]
    found = fastprof.diff(new, old, function="^h$", **more)
    assert found.values[0][2:] == (7, 0)
    with pytest.raises(fastprof.UsageError, match="no row matches function="):
        fastprof.diff(old, new, function="^x$", **more)


def test_a_filter_that_leaves_samples_on_one_side_only(tmp_path: Path) -> None:
    old, new = tmp_path / "old.folded", tmp_path / "new.folded"
    old.write_text("main;f 10\nmain;g 5\n")
    new.write_text("main;f 12\nmain;h 7\n")
    fastprof.diff(old, new, tmp_path / "out.pb.gz", function="^h$")
    assert [row.self for row in fastprof.top(tmp_path / "out.pb.gz", by="function").rows if row.self] == [7]
    with pytest.raises(fastprof.UsageError, match="no row matches function="):
        fastprof.diff(old, new, tmp_path / "none.pb.gz", function="^x$")
    assert not (tmp_path / "none.pb.gz").exists()


def test_options_of_what_is_written_are_those_of_the_difference(tmp_path: Path) -> None:
    old, new = tmp_path / "old.folded", tmp_path / "new.folded"
    old.write_text("a;b;c;d 5\n")
    new.write_text("a;b;c;d 9\n")
    log = fastprof.diff(old, new, tmp_path / "out.pb", max_depth=2).log
    assert dict(log.not_representable)["deep-stacks"] == 2
    assert {row.name for row in fastprof.top(tmp_path / "out.pb").rows} == {"a", "b", "[deeper]"}
    fastprof.diff(old, new, tmp_path / "out.arrows", table="frames")
    with pyarrow.ipc.open_stream(tmp_path / "out.arrows") as stream:
        assert stream.read_all()["function"].to_pylist() == ["a", "b", "c", "d"]
    with pytest.raises(UsageError, match="max_depth= has no effect from folded to callgrind"):
        fastprof.diff(old, new, tmp_path / "out.callgrind", max_depth=2)


def test_a_filter_that_leaves_no_stack(tmp_path: Path) -> None:
    """The error names the filter, not other value types."""
    path = tmp_path / "a.folded"
    path.write_text("main;f 10\n")
    with pytest.raises(UsageError, match="no row matches part=9"):
        fastprof.diff(path, path, part=9)


def test_sorted_in_percent_and_above_a_share(tmp_path: Path) -> None:
    old, new = tmp_path / "old.folded", tmp_path / "new.folded"
    old.write_text("a 1000\nb 10\nc 100\n")
    new.write_text("a 1100\nb 30\nc 90\nd 5\n")
    by_size = [(row.name, row.old[0], row.new[0]) for row in fastprof.diff(old, new).rows]
    assert by_size == [("a", 1000, 1100), ("b", 10, 30), ("c", 100, 90), ("d", 0, 5)]
    assert [row.name for row in fastprof.diff(old, new, sort="percent").rows] == ["d", "b", "a", "c"]
    found = fastprof.diff(old, new, sort="percent", threshold=0.05)
    assert [row.name for row in found.rows] == ["a", "c"] and found.n_changed == 2
    assert [row.name for row in fastprof.diff(old, new, sort="percent", n=1).rows] == ["d"]


FIRST_HEAP = b"heap profile: 3: 30 [3: 30] @ heapprofile\n 3: 30 [3: 30] @ 0x1000 0x2000\n"
LATER_HEAP = b"""heap profile: 5: 70 [9: 90] @ heapprofile
 3: 30 [7: 50] @ 0x1000 0x2000
 2: 40 [2: 40] @ 0x3000 0x2000
"""


@pytest.mark.parametrize("to", [None, "pprof"])
def test_the_first_heap_of_a_program_and_a_later_one(to: str | None, tmp_path: Path) -> None:
    """The first dump has no separate values of allocated objects, because all are still in use.  pprof refuses both."""
    output = tmp_path / "out.pb" if to else None
    found = fastprof.diff(FIRST_HEAP, LATER_HEAP, output, symbolize=False)
    assert [value[:4] for value in found.values] == [("objects", "count", 3, 5), ("space", "bytes", 30, 70)]
    assert "is compared by objects in use" in found.log.warnings[0]
    if output:
        written = dump(output.read_bytes(), "pprof")
        assert [t.name for t in written.part.value_types] == ["objects", "space"]
        assert [*map(sum, zip(*(values for _, _, values in written.rows), strict=True))] == [2, 40]
        return
    assert [(row.old, row.new) for row in found.rows if row.old != row.new] == [((0, 0), (2, 40))]
    assert {row.inclusive for row in found.rows} == {(30, 30), (30, 70), (0, 40)}


def test_heaps_sampled_at_two_rates_need_no_scaling() -> None:
    """Their values are estimates of the whole heap at any rate."""
    rows = b"1: 100000 [1: 100000] @ 0x1000\n"
    one, other = (b"heap profile: 1: 100000 [1: 100000] @ heap_v2/%d\n%b" % (rate, rows) for rate in (1, 65536))
    found = fastprof.diff(one, other, symbolize=False)
    assert [value[:4] for value in found.values] == [("objects", "count", 1, 1), ("space", "bytes", 100000, 127784)]
    assert not any("sampled" in text for text in found.log.warnings)


@pytest.mark.parametrize("back", [False, True])
def test_inclusive_costs_of_the_first_heap_and_a_later_one(back: bool) -> None:
    pair = (LATER_HEAP, FIRST_HEAP) if back else (FIRST_HEAP, LATER_HEAP)
    found = fastprof.diff(*pair, symbolize=False, sort="inclusive")
    growth = {(0, 40), (30, 30), (30, 70)}  # the last is that of the caller of both
    assert {row.inclusive for row in found.rows} == ({(new, old) for old, new in growth} if back else growth)


def test_a_heap_and_one_of_which_all_is_in_use() -> None:
    found = fastprof.diff(LATER_HEAP, FIRST_HEAP, symbolize=False)
    names = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    old, new = (9, 90, 5, 70), (3, 30, 3, 30)
    assert [value[:4] for value in found.values] == [
        (name, unit, *both)
        for name, unit, both in zip(names, ["count", "bytes"] * 2, zip(old, new, strict=True), strict=True)
    ]
    assert not any("objects in use" in text for text in found.log.warnings)
    with pytest.raises(FastprofError, match="union=True"):
        fastprof.merge([FIRST_HEAP, LATER_HEAP], "unused.pb", symbolize=False)


@pytest.mark.parametrize("back", [False, True])
def test_each_value_of_two_heaps_by_itself(back: bool) -> None:
    """Those of the table of all, also if the heaps have other names for them."""
    pair = (LATER_HEAP, FIRST_HEAP) if back else (FIRST_HEAP, LATER_HEAP)
    for by in ("function", "object", "arc", "label:host"):
        for value in fastprof.diff(*pair, symbolize=False, by=by).values:
            if value.name == "calls":
                continue
            found = fastprof.diff(*pair, symbolize=False, by=by, value=value.name)
            assert [one for one in found.values if one.name != "calls"] == [value]
        with pytest.raises(UsageError, match="unknown value type 'bytes'"):
            fastprof.diff(*pair, symbolize=False, by=by, value="bytes")
