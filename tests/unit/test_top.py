"""`fastprof top`: options, several inputs, text, JSON and CSV.  Other tests compare the figures with real tools
(differential/test_top_*.py) and with slow models (property/test_top.py)."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import FastprofError, Top, UsageError, convert, top
from fastprof.cli import main
from tests.support.paths import REPO

CORPUS = REPO / "tests" / "corpus"
POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"
NAMES = CORPUS / "xray" / "pool-clang19.yaml"

GRAPH = """\
events: Ir Dr
pid: 7
thread: 2
ob=/bin/app
fl=main.c
fn=main
10 100 1
cfn=work
calls=2 20
11 800 8
fi=inl.h
5 50 0
fe=main.c
fn=work
20 600 2
cob=/lib/x.so
cfi=x.c
cfn=leaf
calls=9 30
21 200 6
ob=/lib/x.so
fl=x.c
fn=leaf
30 200 6
ob=/bin/app
fl=other.c
fn=idle
1 0 0
"""
FOLDED = "main;work 30\nmain;work;leaf 60\nmain 10\n"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "g.callgrind"
    path.write_text(GRAPH)
    return path


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    path = tmp_path / "s.folded"
    path.write_text(FOLDED)
    return path


def names(found: Top) -> list[str]:
    return [row.name or row.file or row.object for row in found.rows]


def test_cachegrind_has_self_costs_alone(tmp_path: Path) -> None:
    (path := tmp_path / "a.cachegrind").write_text("events: Ir\nfl=a.c\nfn=f\n1 30\n2 10\nsummary: 40\n")
    convert(path, archived := tmp_path / "a.fpa", from_="cachegrind")
    for by, input_ in itertools.product(("function", "line"), (path, archived)):
        row = top(input_, by=by, from_="cachegrind" if input_ == path else None).rows[0]
        assert (row.inclusive, row.inclusive_share, row.calls) == (None, None, None)
    for asked, flag in (
        ({"tree": "both"}, "tree"),
        ({"sort": "inclusive"}, "sort=inclusive"),
        ({"sort": "calls"}, "sort=calls"),
    ):
        for input_, from_ in ((path, "cachegrind"), (archived, "archive")):
            with pytest.raises(UsageError, match=f"{input_.name}: {flag}: the profile has only self costs"):
                top(input_, from_=from_, **asked)


def test_the_most_expensive_come_first(graph: Path) -> None:
    found = top(graph)
    assert [(r.name, r.self, r.inclusive, r.calls, r.object) for r in found.rows] == [
        ("work", 600, 800, 2, "/bin/app"),
        ("leaf", 200, 200, 9, "/lib/x.so"),
        ("main", 150, 950, 0, "/bin/app"),
        ("idle", 0, 0, 0, "/bin/app"),
    ]
    assert (found.total, found.n_rows, found.rest, found.value.name) == (950, 4, 0, "Ir")
    assert [round(r.cumulated_share, 3) for r in found.rows] == [0.632, 0.842, 1, 1]


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"sort": "inclusive"}, ["main", "work", "leaf", "idle"]),
        ({"sort": "calls"}, ["leaf", "work", "idle", "main"]),
        ({"sort": "Dr"}, ["leaf", "work", "main", "idle"]),
        ({"value": "Dr"}, ["leaf", "work", "main", "idle"]),
        ({"value": "Dr", "sort": "Ir"}, ["work", "leaf", "main", "idle"]),
        ({"n": 2}, ["work", "leaf"]),
        ({"threshold": 0.2}, ["work", "leaf"]),
        ({"threshold": 0.9, "sort": "inclusive"}, ["main"]),
        ({"threshold": 0.1, "n": 1}, ["work"]),
        ({"cumulative": True}, ["work", "leaf", "main"]),
        ({"cumulative": True, "threshold": 0.632}, ["work", "leaf"]),  # 0.6316: not yet enough
        ({"cumulative": True, "threshold": 0.631}, ["work"]),
        ({"focus": "^[lm]"}, ["leaf", "main"]),
        ({"ignore": "a"}, ["work", "idle"]),
        ({"focus": "e|k", "ignore": "leaf"}, ["work", "idle"]),
        ({"by": "file"}, ["main.c", "x.c", "inl.h", "other.c"]),
        ({"by": "object"}, ["/bin/app", "/lib/x.so"]),
        ({"by": "thread"}, ["process 7, thread 2"]),
    ],
)
def test_what_is_shown(graph: Path, options: dict[str, object], expected: list[str]) -> None:
    assert names(top(graph, **options)) == expected


def test_lines(graph: Path) -> None:
    rows = top(graph, by="line").rows
    assert [(r.name, r.file, r.line, r.self, r.inclusive, r.calls) for r in rows[:5]] == [
        ("work", "main.c", 20, 600, 600, 0),
        ("leaf", "x.c", 30, 200, 200, 0),
        ("main", "main.c", 10, 100, 100, 0),
        ("main", "inl.h", 5, 50, 50, 0),
        ("idle", "other.c", 1, 0, 0, 0),
    ]
    assert [(r.line, r.inclusive, r.calls) for r in rows[5:]] == [(11, 800, 2), (21, 200, 9)]


def test_what_a_graph_does_not_say_is_none(graph: Path) -> None:
    row = top(graph, by="file").rows[0]
    assert (row.inclusive, row.inclusive_share, row.calls, row.cycle) == (None, None, None, None)


def test_ties_are_in_the_order_of_names(tmp_path: Path) -> None:
    path = tmp_path / "ties.callgrind"
    path.write_text("events: Ir\n" + "".join(f"fn=f{n * 7 % 50:02}\n1 5\n" for n in range(50)))
    assert names(top(path, n=0)) == [f"f{n:02}" for n in range(50)]
    assert names(top(path, n=3)) == ["f00", "f01", "f02"]


def test_threads_labels_and_exact_costs_of_stacks(folded: Path) -> None:
    assert [(r.name, r.self, r.inclusive, r.calls) for r in top(folded).rows] == [
        ("leaf", 60, 60, None),
        ("work", 30, 90, None),
        ("main", 10, 100, None),
    ]
    assert names(top(folded, by="thread")) == ["(unknown)"] and names(top(folded, by="label")) == ["(none)"]


def test_a_timeline_is_the_same_through_an_archive_and_alone(tmp_path: Path) -> None:
    archive = tmp_path / "a.fpa"
    convert(POOL, archive, symbols=[str(NAMES)])
    direct = top(POOL, symbols=[str(NAMES)], n=0)
    assert direct.rows == top(archive, n=0).rows
    assert direct.n_rows == 34 and direct.total == 4_926_104
    assert direct.rows[0].name == "main" and direct.rows[0].calls == 1
    threads = top(POOL, by="thread").rows
    assert len(threads) == 4 and sum(r.self for r in threads) == pytest.approx(direct.total, abs=4)


def test_threads_of_equal_numbers_are_rows_of_their_own(tmp_path: Path) -> None:
    """Of two documents of a file, of two inputs, and of samples.  Those of one document are one thread."""
    calls = "".join(f'[{{"ph":"X","name":"f","ts":{ts},"dur":{ts},"pid":7,"tid":2}}]' for ts in (1, 5))
    stacks = "[{}]".format(
        ",".join(f'{{"ph":"P","name":"f","ts":{ts},"pid":7,"tid":2,"stack":["f"]}}' for ts in (1, 3))
    )
    inputs = []
    for name, text in (("both", calls), ("one", calls[: calls.index("][") + 1]), ("stacks", stacks)):
        inputs.append(tmp_path / f"{name}.trace.json")
        inputs[-1].write_text(text)
    both, one, samples = inputs
    thread = "process 7, thread 2"

    def costs(of: Path | list[Path]) -> list[tuple[str, int]]:
        return [(row.name, row.self) for row in top(of, by="thread", n=0).rows]

    assert costs(both) == [(f"{thread} [2]", 5000), (thread, 1000)]
    one_of = "process 7 [one.trace.json], thread 2"
    of_both = "process 7 [both.trace.json], thread 2"
    assert costs([one, both]) == [(f"{of_both} [2]", 5000), (of_both, 1000), (one_of, 1000)]
    assert costs(samples) == [(thread, 2)]
    assert costs([samples, samples]) == [(thread, 2), (f"{thread} [2]", 2)]


def test_calls_of_stacks_that_count_them(tmp_path: Path) -> None:
    stacks = tmp_path / "s.pb.gz"
    convert(POOL, stacks, symbols=[str(NAMES)])
    calls = {row.name: row.calls for row in top(POOL, symbols=[str(NAMES)], n=0).rows}
    assert {row.name: row.calls for row in top(stacks, n=0).rows} == calls
    inclusive = {row.name: row.inclusive for row in top(POOL, symbols=[str(NAMES)], n=0).rows}
    for row in top(stacks, n=0, value="time").rows:
        assert row.inclusive == pytest.approx(inclusive[row.name], abs=100)  # each context was rounded


def test_callers_and_callees_of_stacks(folded: Path) -> None:
    work = next(row for row in top(folded, tree="both").rows if row.name == "work")
    assert [(c.name, c.cost, c.calls) for c in work.callers] == [("main", 90, None)]
    assert [(c.name, c.cost, c.calls) for c in work.callees] == [("leaf", 60, None)]
    assert not next(row for row in top(folded, tree="callees").rows if row.name == "work").callers
    assert top(folded, tree="calling").rows == top(folded, tree="callees").rows  # the word of earlier releases


def test_several_inputs_are_added_up(graph: Path, tmp_path: Path) -> None:
    other = tmp_path / "h.callgrind"
    other.write_text("events: Dr Ir\nob=/bin/app\nfl=main.c\nfn=work\n20 4 1000\n")
    both = top([graph, other])
    work = both.rows[0]
    assert (work.name, work.self, both.total) == ("work", 1600, 1950)
    assert work.inclusive == 800 + 1000  # part by part: it has no caller in the second
    assert both.rows == top([other, graph], value="Ir").rows
    assert top(tmp_path).rows == both.rows  # a directory


def test_inputs_of_different_views(graph: Path, folded: Path, tmp_path: Path) -> None:
    stacks = tmp_path / "s.pb.gz"
    convert(folded, stacks)
    with pytest.raises(UsageError, match="value: unknown value type 'x', expected Ir, Dr, samples"):
        top([graph, folded], value="x")
    found = top([graph, folded], value="samples")
    assert {row.name: row.self for row in found.rows if row.self} == {"leaf": 60, "work": 30, "main": 10}
    assert found.log.warnings == ["value: some parts of the input have no samples, counted as 0"]
    assert top([graph, folded]).value.name == "Ir" and top([folded, graph]).value.name == "samples"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"focus": "("}, "focus: '\\(' is not a regular expression"),
        ({"tree": "both", "by": "line"}, "tree= shows functions, not by=line"),
        (
            {"cumulative": True, "sort": "calls"},
            "cumulative=True adds up self costs, but sort=calls does not sort by them",
        ),
        ({"by": "label"}, "g.callgrind: by=label: only stacks have labels"),
        ({"sort": "x"}, "sort: unknown key or value type 'x', expected self, inclusive, calls, Ir, Dr"),
        ({"threshold": 2}, "threshold: 2 is not a share from 0 to 1"),
        ({"n": -1}, "n: -1 is not a whole number"),
        ({"labels": ["own"]}, "unknown option 'labels'"),
        ({"samples": True}, "samples=True has no effect with callgrind"),
        ({"by": "moon"}, "by: 'moon' is not one of function, line"),
    ],
)
def test_what_cannot_be(graph: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        top(graph, **options)
    with pytest.raises(UsageError, match="no input given"):
        top([])


def test_lines_of_a_timeline_are_refused() -> None:
    with pytest.raises(UsageError, match=r"fdr5-pool-clang19\.xray: by=line: a timeline has no lines"):
        top(POOL, by="line")


def test_sums_beyond_64_bits_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "o.callgrind"
    most = (1 << 63) - 1
    path.write_text(f"events: Ir\nfn=f\n1 {most}\npart: 2\nevents: Ir\nfn=f\n1 1\n")
    with pytest.raises(FastprofError, match=r"o\.callgrind: top: the cost or the calls of a function exceeds 2\^63"):
        top(path)


# ---- printed output


def printed(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert main(["top", *args]) == code
    return capsys.readouterr().out


def test_text(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, str(graph), "-n", "2") == (
        f"{graph}: 950 Ir in 4 functions; --value shows Dr\n"
        "\n"
        "self  self %  sum %  inclusive  incl. %  calls  object  function\n"
        " 600    63.2   63.2        800     84.2      2  app     work\n"
        " 200    21.1   84.2        200     21.1      9  x.so    leaf\n"
        "... 2 more (15.8 %)\n"
    )
    assert printed(capsys, str(graph), "--by", "thread") == (
        f"{graph}: 950 Ir in 1 thread; --value shows Dr\n"
        "\n"
        "self  self %  sum %  thread\n"
        " 950   100.0  100.0  process 7, thread 2\n"
    )


def test_a_tree(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, str(graph), "--tree", "both", "-n", "1") == (
        f"{graph}: 950 Ir in 4 functions; --value shows Dr\n"
        "\n"
        "self  inclusive  incl. %  calls  object  function\n"
        "\n"
        "            800     84.2      2  app       < main\n"
        " 600        800     84.2      2  app     * work\n"
        "            200     21.1      9  x.so      > leaf\n"
        "\n"
        "... 3 more (36.8 %)\n"
    )


def test_a_tree_without_calls_that_somebody_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.folded").write_text("main;f 5\n")
    assert printed(capsys, str(tmp_path / "x.folded"), "--tree", "callees", "-n", "1").splitlines()[2:] == [
        "self  inclusive  incl. %  object  function",
        "",
        "   5          5    100.0          * f",
        "",
        "... 1 more (0.0 %)",
    ]


def test_self_and_inclusive_costs_are_in_one_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.callgrind"
    path.write_text("events: ns\nfn=main\n1 2000\ncfn=f\ncalls=1 1\n1 12000000\nfn=f\n1 12000000\n")
    for n in ("1", "2"):  # by inclusive cost the first is main, whose self cost is small
        shown = printed(capsys, str(path), "--sort", "inclusive", "-n", n)
        assert "self ms" in shown and "inclusive ms" in shown and "2.00 us     0.0    0.0          12.0" in shown
        assert "self ms  inclusive ms" in printed(
            capsys, str(path), "--sort", "inclusive", "-n", n, "--tree", "callees"
        )


def test_json_and_csv_have_exact_figures(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(printed(capsys, str(graph), "--json", "--tree", "callers", "-n", "1"))
    assert said["value"]["name"] == "Ir" and said["total"] == 950 and said["n_rows"] == 4
    (row,) = said["rows"]
    assert (row["name"], row["self"], row["callers"][0]["name"], row["callers"][0]["calls"]) == ("work", 600, "main", 2)
    assert said["log"]["losses"] == []
    rows = [*csv.DictReader(io.StringIO(printed(capsys, str(graph), "--csv", "--threshold", "10%")))]
    assert [(row["name"], row["self"], row["object"]) for row in rows] == [
        ("work", "600", "/bin/app"),
        ("leaf", "200", "/lib/x.so"),
        ("main", "150", "/bin/app"),
    ]
    assert main(["top", str(graph), "--csv", "--json"]) == 2


def test_functions_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.callgrind"
    path.write_text("events: ns\nfl=a.c\nfn=init\n1 7\nfl=b.c\nfn=init\n1 5\nfn=\x1b[2J\n2 0\n")
    assert printed(capsys, str(path)) == (
        f"{path}: 12 ns in 3 functions\n"
        "\n"
        "self ns  self %  sum %  inclusive ns  incl. %  function\n"
        "      7    58.3   58.3             7     58.3  init (a.c)\n"
        "      5    41.7  100.0             5     41.7  init (b.c)\n"
        "      0     0.0  100.0             0      0.0  \\x1b[2J\n"
    )


def test_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.callgrind"
    path.write_text("# callgrind format\nevents: Ir\n")
    assert printed(capsys, str(path)).startswith(f"{path}: 0 ")


def test_losses_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    damaged = str(CORPUS / "xray" / "bad" / "fdr5-cut-record.xray")
    assert main(["top", damaged]) == 1
    assert capsys.readouterr().out == ""
    assert main(["top", damaged, "--lenient"]) == 3
    assert "losses: 5 bytes skipped" in capsys.readouterr().err


CYCLE = """\
events: Ir
fn=main
1 0
cfn=a
calls=1 1
1 100
fn=a
1 30
cfn=b
calls=4 1
1 80
fn=b
1 50
cfn=a
calls=3 1
1 60
cfn=c
calls=9 1
1 20
fn=c
1 20
"""


def test_a_cycle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of docs/top.md."""
    path = tmp_path / "cycle.callgrind"
    path.write_text(CYCLE)
    found = {row.name: row for row in top(path, tree="both").rows}
    assert {name: (row.self, row.inclusive, row.calls, row.cycle) for name, row in found.items()} == {
        "<cycle 1>": (80, 100, 1, 1),
        "main": (0, 100, 0, None),
        "a": (30, 30, 4, 1),
        "b": (50, 70, 4, 1),
        "c": (20, 20, 9, None),
    }
    # a cycle is not a function
    assert printed(capsys, str(path)).startswith(f"{path}: 100 Ir in 4 functions and 1 cycle\n")
    assert printed(capsys, str(path), "--focus", "^a$|^<").startswith(f"{path}: 100 Ir in 1 function and 1 cycle\n")
    assert printed(capsys, str(path), "--no-cycles").startswith(f"{path}: 100 Ir in 4 functions\n")

    def calls(name: str, side: str) -> list[tuple[str, int | None, int, int | None]]:
        return [(c.name, c.cycle, c.cost, c.calls) for c in getattr(found[name], side)]

    assert calls("main", "callees") == [("<cycle 1>", None, 100, 1)]
    assert calls("<cycle 1>", "callers") == [("main", None, 100, 1)]
    assert calls("<cycle 1>", "callees") == [("b", 1, 70, 0), ("a", 1, 30, 0)]
    assert calls("a", "callers") == [("b", 1, 60, 3), ("<cycle 1>", None, 30, 0)]
    assert calls("a", "callees") == [("b", 1, 80, 4)]
    assert calls("c", "callers") == [("b", 1, 20, 9)]
    apart = {row.name: row.inclusive for row in top(path, cycles=False).rows}
    assert apart == {"main": 100, "a": 160, "b": 80, "c": 20}
    lines = printed(capsys, str(path), "-n", "2").splitlines()
    assert lines[3].split() == ["80", "80.0", "100", "100.0", "1", "<cycle", "1>"]  # left out of sum %
    assert lines[4].split() == ["50", "50.0", "50.0", "70", "70.0", "4", "b", "<cycle", "1>"]
    assert lines[5] == "... 3 more (50.0 %)"


UNCALLED = """\
events: Ir
fn=main
1 10
cfn=f
calls=2 1
1 40
fn=f
1 50
cfn=g
calls=3 1
1 30
cfn=f
calls=1 1
1 5
fn=g
1 30
"""


def test_calls_without_a_caller(tmp_path: Path) -> None:
    """Callers account for 40 of f, whose self cost is 50: some of its calls have no caller."""
    path = tmp_path / "uncalled.callgrind"
    path.write_text(UNCALLED)
    for cycles in (True, False):
        found = {row.name: (row.self, row.inclusive) for row in top(path, cycles=cycles).rows}
        assert found == {"main": (10, 50), "f": (50, 80), "g": (30, 30)}
    # in a cycle the inclusive costs of members overlap, so only their self costs are certain
    path.write_text(UNCALLED + "cfn=f\ncalls=1 1\n1 20\n")
    apart = {row.name: (row.self, row.inclusive) for row in top(path, cycles=False).rows}
    assert apart == {"main": (10, 50), "f": (50, 60), "g": (30, 30)}
    path.write_text(UNCALLED.replace("1 40", "1 25") + "cfn=f\ncalls=1 1\n1 5\n")
    apart = {row.name: (row.self, row.inclusive) for row in top(path, cycles=False).rows}
    assert apart == {"main": (10, 35), "f": (50, 50), "g": (30, 30)}


def test_costs_of_a_thread_beyond_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "large.callgrind"
    path.write_text(f"events: Ir\nfn=f\n1 {(1 << 63) - 1}\n2 1\n")
    with pytest.raises(FastprofError, match=f"^{path}: top: the sum of a thread's costs exceeds 2\\^63 - 1$"):
        top(path, by="thread")


def test_only_the_value_type_that_is_shown_has_to_be_in_all_inputs(tmp_path: Path) -> None:
    paths = [tmp_path / "a.callgrind", tmp_path / "b.callgrind"]
    for path, other in zip(paths, ("Dr", "Dw"), strict=True):
        path.write_text(f"events: Ir {other}\nfn=f\n1 2 3\n")
    assert top(paths, value="Ir").total == 4
    with pytest.raises(UsageError, match=r"has Ir, Dw, but .* has Ir, Dr"):
        top(paths)


def test_a_filter_has_to_leave_something_of_all_views_together(tmp_path: Path) -> None:
    graph, stacks = tmp_path / "a.callgrind", tmp_path / "b.folded"
    graph.write_text("events: samples\nfn=f\n1 2\n")
    stacks.write_text("main;g 3\n")
    assert [(row.name, row.self) for row in top([graph, stacks], function="^f$").rows] == [("f", 2)]
    with pytest.raises(UsageError, match="no row matches function="):
        top([graph, stacks], function="^h$")


def test_a_tree_adds_up_small_callees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("main;a 1000\n" + "".join(f"main;small{i} 2\n" for i in range(4)))
    printed_rows = printed(capsys, str(path), "--tree", "callees", "-n", "0").splitlines()
    assert [row.split(None, 2)[-1] for row in printed_rows if ">" in row] == ["> a", "> ... 4 more below 0.5 % of it"]
    (line,) = (row for row in printed_rows if "more below" in row)
    assert line.split()[:2] == ["8", "0.8"]
    said = json.loads(printed(capsys, str(path), "--tree", "callees", "--json"))
    assert [len(row["callees"]) for row in said["rows"] if row["name"] == "main"] == [5]


def test_arguments_of_names_are_elided_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("main;std::sort<int*>(int*, int*) 5\nmain;f(int) 3\nmain;f(long) 1\n")
    assert printed(capsys, str(path)).splitlines()[3].endswith("  std::sort<...>(...)")
    assert "f(long)" in printed(capsys, str(path)) and "f(int)" in printed(capsys, str(path))
    assert "std::sort<int*>(int*, int*)" in printed(capsys, str(path), "--demangle", "full")
    assert "std::sort<int*>(int*, int*)" in printed(capsys, str(path), "--csv")


def test_a_table_in_a_file(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same as printed; the suffix chooses the format, unless a flag does."""
    for name, flags in (("t.md", ["--markdown"]), ("t.csv", ["--csv"]), ("t.json", ["--json"]), ("t.out", [])):
        expected = printed(capsys, str(graph), *flags)
        assert printed(capsys, str(graph), "-o", str(tmp_path / name)) == ""
        assert (tmp_path / name).read_text() == expected
    printed(capsys, str(graph), "-o", str(tmp_path / "t.md"), "--csv")
    assert (tmp_path / "t.md").read_text().startswith("name,file,line")
    assert printed(capsys, str(graph), "-o", "-") == printed(capsys, str(graph))
    printed(capsys, str(graph), "-o", str(tmp_path / "no" / "t.md"), code=1)
    printed(capsys, str(tmp_path / "none"), "-o", str(tmp_path / "none.md"), code=1)
    assert not (tmp_path / "none.md").exists()


def test_other_value_types_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A heap has bytes in use by default, and says what else it has."""
    heap = str(REPO / "tests/corpus/pprof/good/go-heap.pb.gz")
    found = top(heap, symbolize=False)
    assert (found.value.name, found.other_values) == ("inuse_space", ["alloc_objects", "alloc_space", "inuse_objects"])
    first = printed(capsys, heap, "--no-symbols", "--width", "none").partition("\n")[0]
    assert first.endswith(" functions; --value shows alloc_objects, alloc_space or inuse_objects")
    one = "--no-symbols", "--value", "alloc_space", "--width"
    first = printed(capsys, heap, *one, "none").partition("\n")[0]
    assert first.endswith("; --value shows alloc_objects, inuse_objects or inuse_space")
    narrow = [printed(capsys, heap, *one, str(len(first) - lacks)).partition("\n")[0] for lacks in (0, 5, 20, 99)]
    assert [line.partition("--value shows ")[2] for line in narrow] == [
        "alloc_objects, inuse_objects or inuse_space",
        "alloc_objects, inuse_objects or 1 more",
        "alloc_objects or 2 more",
        "alloc_objects or 2 more",
    ]


@pytest.mark.parametrize("to", ["pprof", "folded", "callgrind", "otlp", "firefox"])
def test_samples_without_a_stack_have_the_same_name_in_every_format(to: str, tmp_path: Path) -> None:
    source = REPO / "tests" / "corpus" / "heap" / "good" / "go-threadcreate.heap"
    convert(source, tmp_path / "out", to=to)
    tables = [top(source), top(tmp_path / "out", from_=to)]
    assert [[(row.name, row.self) for row in table.rows] for table in tables] == [[("[no stack]", 4)]] * 2


@pytest.mark.parametrize(
    "name",
    [
        "xray/good/fdr5-pool-clang19.xray",
        "trace-event/good/",
        "perf/good/",
        "firefox/good/",
        "jfr/good/",
    ],
)
def test_functions_of_threads_are_those_of_each_thread_alone(name: str) -> None:
    path = next(p for p in sorted(CORPUS.glob(f"{name}*" if name.endswith("/") else name)) if p.is_file())
    ticks: Any = {"time_unit": "ticks"} if "xray" in name or "trace" in name else {}  # no rounding
    found = fastprof.top(path, by=("thread", "function"), n=0, **ticks)
    assert found.by == "thread,function" and found.total == fastprof.top(path, n=0, **ticks).total
    threads = {row.tid for row in found.rows if row.tid}
    for tid in threads:
        alone: Counter[str] = Counter()
        for row in fastprof.top(path, n=0, threads=[tid], cycles=False, **ticks).rows:
            alone[row.name] += row.self
        together: Counter[str] = Counter()
        for row in found.rows:
            together[row.name] += row.self if row.tid == tid else 0
        assert +together == +alone
    by_thread = fastprof.top(path, by="thread", n=0).rows
    assert {(row.pid, row.tid, row.thread) for row in by_thread} >= {(r.pid, r.tid, r.thread) for r in found.rows}
    assert threads


def test_threads_are_fields_of_csv_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
    (row, *_) = csv.DictReader(io.StringIO(printed(capsys, path, "--csv", "--by", "thread,function")))
    assert (row["pid"], row["tid"], row["thread"], row["name"]) == ("29280", "29280", "", "#9")
    (first, *_) = json.loads(printed(capsys, path, "--json", "--by", "thread"))["rows"]
    assert (first["pid"], first["tid"]) == (29280, 29280)
    assert "pid" not in json.loads(printed(capsys, path, "--json"))["rows"][0]
    tree = fastprof.top(path, by=("function", "thread"), tree="both", n=0)
    assert {row.tid for row in tree.rows} == {29280, 29283, 29284, 29285} and tree.rows[0].inclusive
