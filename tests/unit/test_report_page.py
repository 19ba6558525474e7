"""`fastprof report`: the data in the page.  A browser shows it in differential/test_report_browser.py."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fastprof import FastprofError, UsageError, archive_add, convert, diff, from_stacks, report, top
from fastprof.cli import main
from fastprof.core._c import ffi, lib
from fastprof.core.model import Batch, Model
from fastprof.core.workers import Workers
from fastprof.verbs.page import html
from tests.contract.dump import files
from tests.support.chosen import cases
from tests.support.pages import Page, summed
from tests.support.paths import CORPUS
from tests.support.xraylog import FdrLog
from tests.unit.test_diff import FIRST_HEAP, LATER_HEAP

FOLDED = "main;work 30\nmain;work;leaf 60\nmain;work;leaf;work 5\nmain 10\nother 1\n"
UNKNOWN = "(unknown)"


def page(tmp_path: Path, *texts: str, **options: object) -> Page:
    inputs = []
    for i, text in enumerate(texts):
        inputs.append(tmp_path / f"{i}.folded")
        inputs[-1].write_text(text)
    report(inputs, tmp_path / "page.html", **options)
    return Page(tmp_path / "page.html")


def test_contexts_and_functions_of_stacks(tmp_path: Path) -> None:
    found = page(tmp_path, FOLDED)
    assert found.stacks() == {
        (UNKNOWN, "main"): 10,
        (UNKNOWN, "main", "work"): 30,
        (UNKNOWN, "main", "work", "leaf"): 60,
        (UNKNOWN, "main", "work", "leaf", "work"): 5,
        (UNKNOWN, "other"): 1,
    }
    assert {name: costs for (name, *_), costs in found.rows().items()} == {
        "main": (10, 105),
        "work": (35, 95),
        "leaf": (60, 65),
        "other": (1, 1),
    }
    assert found.head["totals"] == [106]
    assert found.arcs()["work", "leaf"] == 65


def test_the_title_names_few_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many inputs, or several of one name, are titled by the argument."""
    monkeypatch.chdir(tmp_path)
    for host in "abcd":
        for day in ("mon", "tue"):
            Path(day, host).mkdir(parents=True)
            Path(day, host, "cpu.folded").write_text("f 1\n")
            Path(day, f"{host}.folded").write_text("f 1\n")

    def title(*inputs: str | bytes) -> str:
        report([*inputs], "page.html")
        return str(Page(Path("page.html")).head["title"])

    assert title("mon/a.folded") == "a.folded"
    assert title("mon/a.folded", "tue/b.folded") == "a.folded → b.folded"
    assert title("mon", "tue/b.folded") == "mon (8 inputs) → b.folded"
    archive_add("store.fpa", "mon")
    assert title("store.fpa:?.folded") == "store.fpa:?.folded (4 inputs)"
    assert title("store.fpa:[ab]/*", "store.fpa:a.folded") == "store.fpa:[ab]/* (2 inputs) → store.fpa:a.folded"
    assert title(b"f 1\n") == "<bytes>"
    report("mon", "flame.svg")
    assert ">mon (8 inputs): samples<" in Path("flame.svg").read_text()


# Estimated stacks end at --prune, so that contexts there show less than functions.
@pytest.mark.parametrize("file", cases(files("good")))
def test_figures_are_those_of_top(file: str, tmp_path: Path) -> None:
    """All formats, and each value type."""
    here = {"symbolize": False}  # the available files with symbols depend on the machine
    try:
        report(CORPUS / file, tmp_path / "page.html", prune=0, **here)
    except FastprofError as error:
        assert "exceeds 2^63 - 1" in str(error)  # a sum of one of the value types
        return
    found = Page(tmp_path / "page.html")
    events = found.head["events"]
    for k, value in enumerate(found.head["values"]):
        name = events[value["event"]]["name"]
        timed = found.head["inputs"][0]["view"] == "timeline"
        if timed and name == "calls":
            continue
        expected = top(CORPUS / file, n=0, **here, **({} if timed else {"value": name}))
        # a page has doubles: not every integer above 2^53 is exact
        rows = summed(
            ((r.name, r.file, r.object), float(r.self), None if r.inclusive is None else float(r.inclusive))
            for r in expected.rows
        )
        shown = found.rows(k)
        if timed:  # times are rounded to nanoseconds, per context or per function
            assert shown.keys() == rows.keys()
            rounded = len(found.columns["context up"])
            assert sum(own for own, _ in shown.values()) == pytest.approx(expected.total, abs=rounded)
            continue
        assert {key: shown.get(key) for key in rows} == rows
        assert found.head["totals"][k] == expected.total == pytest.approx(sum(found.stacks(k).values()))


def test_a_cycle_is_no_function(tmp_path: Path) -> None:
    graph = tmp_path / "cycle.callgrind"
    graph.write_text("events: Ir\nfn=a\n1 5\ncfn=b\ncalls=2 2\n1 9\nfn=b\n2 7\ncfn=a\ncalls=1 1\n2 4\n")
    assert report(graph, tmp_path / "page.html").rows["functions"] == 2
    found = Page(tmp_path / "page.html")
    assert (found.head["rows"], found.head["functions"]) == (3, [2])


def test_what_is_pruned_stays_in_the_total(tmp_path: Path) -> None:
    found = page(tmp_path, "a;b 900\na;c 60\na;c;d 25\na;c;e 15\nf 1\n", prune=0.03)
    assert found.stacks() == {
        (UNKNOWN, "a", "b"): 900,
        (UNKNOWN, "a", "c"): 60,
        (UNKNOWN, "a", "c", "[pruned]"): 40,
        (UNKNOWN, "[pruned]"): 1,
    }
    assert found.head["cut"] == [41]
    assert {name for name, *_ in found.rows()} == {"a", "b", "c", "d", "e", "f"}  # the table covers all stacks


def test_a_page_stays_small(tmp_path: Path) -> None:
    """The default prunes until it is smaller than 2 MB."""
    rng = random.Random(1)
    names = [f"std::vector<number_{i}, std::allocator<number_{i}>>::operator[]" for i in range(80)]
    lines = [f"main;{a};{b};{c};{a} {rng.randrange(10**10)}\n" for a, b, c in product(names, names, names[:60])]
    found = page(tmp_path, "".join(lines))
    assert 1_500_000 < len(found.bytes) < 2_000_000
    assert sum(found.stacks().values()) == found.head["totals"][0]
    assert found.head["cut"][0] > 0
    assert found.head["all_contexts"] > 384_000 * 2 > len(found.columns["context up"])


def test_contexts_of_two_value_types_get_the_whole_limit() -> None:
    """6 MiB hold 85,000: two value types get the whole limit."""
    rows = [(["main", f"f{i % 280}", f"g{i // 280}"], (1, 10)) for i in range(280 * 280)]
    made = from_stacks(rows, values=[("samples", "count"), ("cpu", "nanoseconds")])
    contexts = [report(made, max_memory=limit).rows["contexts"] for limit in (5 << 20, 6 << 20)]
    assert contexts[0] < len(rows) < contexts[1]


def test_what_is_pruned_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.folded").write_text("a;b 900\na;c 60\na;c;d 25\na;c;e 14\nf 1\n")
    assert main(["report", str(tmp_path / "a.folded"), "-o", str(tmp_path / "a.html"), "--prune", "0.03", "-v"]) == 0
    said = "not part of the output: 3 contexts too small for the page (up to 4.0 % of the cost), merged into [pruned]"
    assert said in capsys.readouterr().err


def test_the_largest_of_each_column_are_in_a_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers' inclusive costs exceed those of any leaf, and would leave room for callers only."""
    monkeypatch.setattr("fastprof.verbs.report._LARGEST", len(html(b"")) + 16_000)
    costs = {f"leaf{i}": 1000 + 7919 * i % 997 for i in range(1500)}
    lines = [f"main;caller{i % 700};{name} {cost}\n" for i, (name, cost) in enumerate(costs.items())]
    names = [name for name, _, _ in page(tmp_path, "".join(lines)).rows()]
    assert len(names) < 1500
    assert {*sorted(costs, key=costs.__getitem__)[-100:]} < {*names}


def test_as_much_is_shown_as_a_page_has_room_for(tmp_path: Path) -> None:
    lines = [f"main;a{a};b{b};c{c} {1 + a}\n" for a, b, c in product(range(40), repeat=3)]
    found = page(tmp_path, "".join(lines))
    assert found.head["cut"] == [0]
    assert len(found.columns["context up"]) == 1 + 1 + 40 + 1600 + 64_000


def test_calls_that_are_small_in_one_column_have_their_costs_in_all(tmp_path: Path) -> None:
    """The 15 largest callees of each column are shown: of 60 those that cost most in the old or in the new profile."""
    old = {f"f{i}": 100 + i for i in range(60)}
    new = {f"f{i}": 200 - 3 * i for i in range(60)}
    texts = ["".join(f"main;{name} {cost}\n" for name, cost in costs.items()) for costs in (old, new)]
    found = page(tmp_path, *texts)
    c = found.columns
    calls = [at for at, row in enumerate(c["arc row"]) if found.name(row) == "main" and c["arc callee"][at]]
    names = [found.name(c["arc function"][at]) for at in calls]
    assert sorted(names) == sorted([f"f{i}" for i in range(60) if i < 15 or i >= 45])
    for k, costs in enumerate((old, new)):
        assert [c[f"arc cost {k}"][at] for at in calls] == [costs[name] for name in names]


def test_functions_begin_at_their_first_line(tmp_path: Path) -> None:
    """The line in the profile, or else the first one of their own file that Callgrind lists, in order of addresses."""
    (tmp_path / "a.callgrind").write_text(
        "events: Ir\nfl=a.c\nfn=f\n12 5\nfi=a.h\n3 1\nfe=a.c\n+2 2\ncfn=g\ncalls=1 40\n11 7\nfn=g\n41 7\n"
    )
    report(tmp_path / "a.callgrind", tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    assert {found.name(i): line for i, line in enumerate(found.columns["function line"])} == {"f": 12, "g": 41}


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<!-- <script>", "]]>&lt'\"", "a\u2028b\x7f", "名前 ⚠ \U0001f525"]
)
def test_names_never_become_markup(name: str, tmp_path: Path) -> None:
    plain, hostile = page(tmp_path, "main;x 1\n").bytes, page(tmp_path, f"main;{name} 1\n")
    outside = re.compile(rb'id="data">[^<]*<')
    assert outside.sub(b"", hostile.bytes) == outside.sub(b"", plain)
    assert name in {shown for shown, *_ in hostile.rows()}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    assert page(tmp_path, FOLDED).bytes == page(tmp_path, FOLDED).bytes


def test_several_cores_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs of functions are added up while contexts are when there are many stacks, and large columns compressed."""
    rng, path = random.Random(1), tmp_path / "many.folded"
    path.write_text("".join(f"m;f{rng.randrange(60)};g{i};h{i % 7};f{i % 9} {1 + i % 5}\n" for i in range(12_000)))
    given = list[Any]()
    give = Workers.give

    def noted(self: Workers, call: Any) -> None:
        given.append(call.func)
        give(self, call)

    monkeypatch.setattr(Workers, "give", noted)
    pages = []
    for cores in (1, 3):
        assert not given
        pages.append(report(path, cores=cores).html)
    assert pages[0] == pages[1]
    assert {call.__name__ for call in given} == {"_take_functions", "_deflated_column"}


def test_nothing_is_allowed_from_outside(tmp_path: Path) -> None:
    text = page(tmp_path, FOLDED).bytes.decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert not re.search(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|fetch|XMLHttp)", text)
    assert not re.search(r"""\b(src|href)=["']?(?!data:)\w""", text)


def svg_boxes(path: Path) -> list[tuple[str, float, float, float]]:
    """Title, x, width and row of each box."""
    tree = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    found = []
    for group in tree.iter(f"{space}g"):
        (title,), (rect,) = group.findall(f"{space}title"), group.findall(f"{space}rect")
        x, y, width = (float(rect.get(name, "")) for name in ("x", "y", "width"))
        found.append((title.text or "", x, width + (width > 2), (y - 25.5) / 17))
    assert not list(tree.iter(f"{space}script"))
    return found


def test_a_flame_graph_as_a_picture(tmp_path: Path) -> None:
    """Boxes are as wide as costs, their titles have the exact costs; names cannot become markup."""
    hostile = "</title><script>alert(1)</script>&\x01"
    (tmp_path / "a.folded").write_text(f"main;work 30\nmain;work;leaf 60\nmain;{hostile} 10\n")
    log = report(tmp_path / "a.folded", tmp_path / "a.svg")
    boxes = svg_boxes(tmp_path / "a.svg")
    assert [(title, width, row) for title, _, width, row in sorted(boxes, key=lambda box: (box[3], box[1]))] == [
        ("everything: 100 count (100.0 %)", 1200, 0),
        ("main: 100 count (100.0 %)", 1200, 1),
        ("work: 90 count (90.0 %)", 1080, 2),
        ("</title><script>alert(1)</script>&\\x01: 10 count (10.0 %)", 120, 2),
        ("leaf: 60 count (60.0 %)", 720, 3),
    ]
    assert log.rows["boxes"] == 5


def test_small_ones_are_one_box_of_a_picture(tmp_path: Path) -> None:
    lines = [f"main;f{i};g{i} {1 + i % 3}\n" for i in range(9000)]
    (tmp_path / "a.folded").write_text("".join(lines) + "main;large 6000\n")
    (tmp_path / "b.folded").write_text("main;large 12000\n")
    report(tmp_path / "a.folded", tmp_path / "a.svg")
    shown = {title: width for title, _, width, row in svg_boxes(tmp_path / "a.svg") if row > 1}
    assert shown == {"large: 6,000 count (25.0 %)": 300, "9,000 small boxes: 18,000 count (75.0 %)": 900}
    report([tmp_path / "a.folded", tmp_path / "b.folded"], tmp_path / "c.svg")
    titles = [title for title, *_ in svg_boxes(tmp_path / "c.svg")]
    assert "large: 6,000 → 12,000 count" in titles and "9,000 small boxes: 18,000 → 0 count" in titles


def test_two_profiles_stand_side_by_side(tmp_path: Path) -> None:
    found = page(tmp_path, "main;a 10\nmain;b 5\n", "main;a 4\nmain;c 7\n")
    assert found.head["values"] == [{"event": 0, "side": 0}, {"event": 0, "side": 1}]
    assert found.head["totals"] == [15, 11]
    assert found.head["functions"] == [3, 3]
    rows = {name: (old[0], found.rows(1)[name, *rest][0]) for (name, *rest), old in found.rows(0).items()}
    assert rows == {"main": (0, 0), "a": (10, 4), "b": (5, 0), "c": (0, 7)}
    assert found.stacks(1) == {(UNKNOWN, "main", "a"): 4, (UNKNOWN, "main", "c"): 7}


def test_the_first_heap_of_a_program_and_a_later_one(tmp_path: Path) -> None:
    report([FIRST_HEAP, LATER_HEAP], tmp_path / "page.html", symbolize=False)
    found = Page(tmp_path / "page.html")
    assert [event["name"] for event in found.head["events"]] == ["objects", "space"]
    assert found.head["totals"] == [3, 30, 5, 70]
    assert sorted(found.rows(3).values()) == [(0, 70), (30, 30), (40, 40)]


def timeline() -> bytes:
    log = FdrLog(version=5)
    log.buffer(tid=7, pid=1).cpu(0, 1000).enter(1, 0).enter(2, 10).exit(2, 20).enter(2, 5).exit(2, 1).exit(1, 64)
    log.buffer(tid=8, pid=1).cpu(0, 1050).enter(3, 0).exit(3, 10)
    return log.bytes()


def test_calls_of_a_timeline_by_thread(tmp_path: Path) -> None:
    (tmp_path / "t.xray").write_bytes(timeline())
    report(tmp_path / "t.xray", tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    seven, eight = "process 1, thread 7", "process 1, thread 8"
    one, two, three = (next(n for n, *_ in found.rows() if n.endswith(str(i))) for i in (1, 2, 3))
    assert found.calls() == [
        (seven, one, 0, 0, 100),
        (seven, two, 1, 10, 20),
        (seven, two, 1, 35, 1),
        (eight, three, 0, 50, 10),
    ]
    rows = {found.name(i) for i in range(found.head["rows"])}
    assert {found.name(f) for f in found.columns["call function"] if f < found.head["rows"]} == rows
    assert found.head["time"] | {"threads": 2} == {
        "threads": 2,
        "ticks_per_second": 1_000_000_000,
        "length": 100,
        "shortest": 0,
        "left_out": 0,
    }
    assert found.stacks() == {(seven, one): 79, (seven, one, two): 21, (eight, three): 10}


def test_as_many_calls_are_shown_as_a_page_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest calls, independent of the number first tried."""
    rng, durations = random.Random(5), []
    log = FdrLog(version=5)
    buffer = log.buffer(tid=7, pid=1).cpu(0, 1000).enter(99, 0)
    for i in range(6_000):
        durations.append(1 + rng.randrange(10**6))
        buffer.enter(1 + i % 90, rng.randrange(10**6)).exit(1 + i % 90, durations[-1])
    (tmp_path / "t.xray").write_bytes(log.bytes())
    monkeypatch.setattr("fastprof.verbs.report._CALLS", 300)
    monkeypatch.setattr("fastprof.verbs.report._LARGEST", len(html(b"")) + 40_000)
    report(tmp_path / "t.xray", tmp_path / "page.html")
    found = Page(tmp_path / "page.html")
    shown = sorted(found.columns["call duration"])[:-1]  # without the caller of all others
    assert len(html(b"")) + 33_000 < len(found.bytes) < len(html(b"")) + 40_000
    assert shown == sorted(durations)[-len(shown) :]
    assert found.head["time"]["left_out"] == 6_000 - len(shown) > 1_000
    report(tmp_path / "t.xray", tmp_path / "page.html", prune=0)
    assert len(Page(tmp_path / "page.html").columns["call begin"]) == 6_001


def spans(rows: list[tuple[int, int, int]], room: int) -> tuple[list[tuple[int, int]], int, int]:
    """(start, duration) of the kept calls of one thread; the pixel; the number left out.  A row: time, op, number of
    the function."""
    model = Model()
    thread, functions = model.thread(1, 1), [model.function(f"f{n}") for n in range(1 + max(row[2] for row in rows))]
    batch = Batch("timeline", len(rows))
    for i, (time, op, function) in enumerate(rows):
        batch.c.time[i], batch.c.op[i], batch.c.thread[i], batch.c.function[i] = time, op, thread, functions[function]
    batch.c.n = len(rows)
    err = ffi.new("struct fp_err *")
    s = ffi.gc(lib.fp_spans_new(model.c, room), lib.fp_spans_free)
    assert lib.fp_spans_put(s, batch.c, err) == lib.fp_spans_end(s) == lib.FP_DONE
    return [(x.start, x.duration) for x in s.spans[0 : s.n]], int(s.pixel), int(s.left_out)


def test_short_calls_make_room_for_long_ones() -> None:
    calls = [(100 * i, 100 * i + 1 + i % 50) for i in range(1000)]
    kept, pixel, left_out = spans([(time, op, 0) for call in calls for op, time in enumerate(call)], 300)
    assert kept == [(start, end - start) for start, end in calls if end - start >= pixel]
    assert 0 < len(kept) <= 300
    assert left_out == 1000 - len(kept)


@pytest.mark.parametrize("seed", range(4))
def test_exits_whose_entries_were_lost_end_no_call(seed: int) -> None:
    """Many of them, in a deep stack: functions are then counted instead of searched."""
    rng = random.Random(seed)
    rows: list[tuple[int, int, int]] = []
    expected: list[tuple[int, int]] = []
    stack: list[tuple[int, int]] = []  # time, function
    for time in range(3000):
        op, function = (0, rng.randrange(40)) if rng.random() < 0.6 else (1, rng.choice((99, rng.randrange(40))))
        rows.append((time, op, function))
        if op == 0:
            stack.append((time, function))
        elif any(function == known for _, known in stack):
            ended = -1
            while ended != function:
                start, ended = stack.pop()
                expected.append((start, time - start))
    expected += [(start, 2999 - start) for start, _ in stack]
    assert sum(row[2] == 99 for row in rows) > 300
    assert spans(rows, 1 << 20) == (sorted(expected), 0, 0)


def test_contexts_that_do_not_fit_are_cut_while_they_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastprof.verbs.page.contexts._LEAST_CONTEXTS", 100)
    monkeypatch.setattr("fastprof.verbs.page.contexts.Room.is_full", lambda room, *rows: True)
    lines = [f"main;large 5000\nmain;f{i};g{i} {1 + i % 7}\n" for i in range(5000)]
    found = page(tmp_path, "".join(lines), prune=0, max_memory=4000)
    assert sum(found.stacks().values()) == found.head["totals"][0]
    assert found.stacks()[UNKNOWN, "main", "large"] == 25_000_000
    assert len(found.columns["context up"]) < 10_200


@pytest.mark.parametrize("inputs", [[], ["a", "b", "c"], ["-", "-"]])
def test_one_input_or_two(inputs: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"compares two, not (0$|3; sum=True shows their sum$)|only once"):
        report(inputs, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_inputs_are_added_up(n: int, tmp_path: Path) -> None:
    found = page(tmp_path, *[FOLDED, "main;work 7\nmore 2\n", *[FOLDED] * 3][:n], sum=True)
    want = top([tmp_path / f"{i}.folded" for i in range(n)], n=0)
    assert found.head["totals"] == [want.total]
    assert "→" not in str(found.head["title"])
    assert sum(found.stacks().values()) == want.total
    assert found.stacks()[UNKNOWN, "main", "work"] == {1: 30, 2: 37, 5: 127}[n]
    if n == 5:
        assert found.head["title"] == f"{tmp_path / '0.folded'} and 4 more (5 inputs)"


def test_a_sum_without_the_inputs_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a", FOLDED), ("b", FOLDED), ("c", "junk\n")):
        (tmp_path / f"{name}.folded").write_text(text)
    words = ["report", *(str(tmp_path / f"{name}.folded") for name in "abcd"), "-o", str(tmp_path / "page.html")]
    assert main([*words, "--sum"]) == 1
    assert not (tmp_path / "page.html").exists()
    assert main([*words, "--sum", "--keep-going"]) == 3
    assert "2 inputs that could not be read" in capsys.readouterr().err
    assert Page(tmp_path / "page.html").head["totals"] == [2 * 106]


def test_a_sum_is_not_a_comparison(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pair= applies to two inputs"):
        page(tmp_path, FOLDED, FOLDED, sum=True, pair="exact")


def test_an_unknown_value_type_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown value type 'no', expected"):
        page(tmp_path, FOLDED, value="no")
    assert not (tmp_path / "page.html").exists()


def test_a_damaged_input_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.xray").write_bytes(timeline()[:-3])
    with pytest.raises(FastprofError):
        report(tmp_path / "t.xray", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.folded").write_text(FOLDED)
    output = str(tmp_path / "page.html")
    assert main(["report", str(tmp_path / "a.folded"), "-o", output]) == 0
    assert re.search(r"wrote .*page.html: 6 contexts, 4 functions", capsys.readouterr().err)
    assert Page(tmp_path / "page.html").head["command"] == f"fastprof report {tmp_path / 'a.folded'} -o {output}"


def test_a_filter_may_leave_something_of_one_profile_only(tmp_path: Path) -> None:
    found = page(tmp_path, "main;f 10\n", "main;f 10\nmain;h 7\n", function="^h$")
    assert found.head["totals"] == [0, 7]
    with pytest.raises(UsageError, match="no row matches function="):
        page(tmp_path, "main;f 10\n", "main;f 12\n", function="^h$")


def test_heaps_that_are_graphs_are_compared_as_diff_does(tmp_path: Path) -> None:
    first, later = tmp_path / "first.callgrind", tmp_path / "later.callgrind"
    convert(CORPUS / "heap/good/symbolized.heap", first, symbolize=False)
    convert(CORPUS / "heap/good/go-heap.heap", later, symbolize=False)
    report([first, later], tmp_path / "page.html", pair="exact")
    values = diff(first, later).values
    head = Page(tmp_path / "page.html").head
    assert [event["name"] for event in head["events"]] == [value.name for value in values] == ["objects", "space"]
    assert head["totals"] == [*(value.old for value in values), *(value.new for value in values)]
