"""The page of `fastprof report` in a real browser, with its mouse and keyboard; figures are those of `fastprof top`."""

from __future__ import annotations

import json
import random
import re
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fastprof import convert, report, top
from tests.differential.peers import need, viewer
from tests.reference import profile_proto
from tests.support.paths import CORPUS, REPO
from tests.unit.test_report_page import timeline

LARGE = [CORPUS / file for file in ("callgrind/good/xdebug.callgrind", "pprof/good/go-heap.pb.gz")]
# the middle of an element, of the box of a function in the flame graph
AT = "(e => [e.left + e.width / 2, e.top + e.height / 2])"
BOX = (
    "(name => {{ const d = fastprof.flame.drawn.find(d => d.fn !== 4294967295 && fastprof.view.name(d.fn) === name),"
    " c = document.getElementById('canvas').getBoundingClientRect();"
    " return [c.left + d.x + d.w / 2, c.top + d.y + 9]; }})({})"
)
DRAWN = "fastprof.flame.drawn.map(d => [fastprof.view.name(d.fn, d.id), Math.round(d.w)])"
ROWS = "[...document.querySelectorAll('.rows .row')].map(r => [...r.children].map(c => c.textContent))"
FOLDED = "main;work 30\nmain;work;leaf 60\nmain;work;leaf;work 5\nmain 10\nother 1\n"


class Seen(NamedTuple):
    values: list[Any]
    said: list[Any]
    requests: list[str]


def drive(page: Path, *steps: dict[str, Any], width: int = 1200, height: int = 900) -> list[Any]:
    """The values of the steps; see tests/viewers/report.mjs.  No page may log an error or request anything."""
    need("chromium")
    seen = Seen(**viewer("report", page, str(width), str(height), json.dumps(steps)))
    assert seen.said == [] and seen.requests == [], seen
    return seen.values


def value(expression: str) -> dict[str, Any]:
    return {"value": expression}


def click(selector: str) -> dict[str, Any]:
    return {"click": f"{AT}(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"}


def click_box(name: str) -> dict[str, Any]:
    return {"click": BOX.format(json.dumps(name))}


def point(name: str) -> dict[str, Any]:
    """The mouse, at the box of a function."""
    return {"move": BOX.format(json.dumps(name))}


def choose(selector: str, text: str) -> dict[str, Any]:
    """An entry of a <select>, whose list the browser draws outside of the page."""
    return value(
        f"(s => {{ s.value = [...s.options].find(o => o.text === {json.dumps(text)}).value;"
        f" s.dispatchEvent(new Event('change')); }})(document.querySelector({json.dumps(selector)}))"
    )


def tab(view: str) -> dict[str, Any]:
    """The tab of a view."""
    return value(f"(document.querySelector('#tabs [data-view={view}]').click(), null)")


def text_of(selector: str) -> dict[str, Any]:
    return value(f"document.querySelector({json.dumps(selector)}).textContent")


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    (tmp_path / "a.folded").write_text(FOLDED)
    report(tmp_path / "a.folded", tmp_path / "page.html")
    return tmp_path / "page.html"


def test_boxes_are_as_wide_as_costs_and_a_click_zooms(folded: Path) -> None:
    whole, zoomed, hover, out = drive(
        folded,
        value(DRAWN),
        click_box("leaf"),
        value(DRAWN),
        point("leaf"),
        text_of("#hover"),
        {"keys": ["Escape"]},
        value(DRAWN),
    )
    everything = dict(whole)["everything"]
    assert dict(whole)["main"] == pytest.approx(everything * 105 / 106, abs=2)
    assert dict(whole)["leaf"] == pytest.approx(everything * 65 / 106, abs=2)
    assert dict(zoomed)["leaf"] == dict(zoomed)["main"] == everything
    assert "other" not in dict(zoomed)
    assert hover == "65 · 61.3 % of the total · 68.4 % of workself 60 (56.6 %)leaf"
    assert out == whole


ROWS_OF_BOXES = """(() => {
    const {flame, view} = fastprof, k = fastprof.state.event.old;
    return flame.drawn.map(d => [d.row, view.name(d.fn, d.id),
        flame.boxes.cost(d, k), Math.round(1060 * d.width) / 10]);
})()"""


def test_the_inverted_flame_graph_and_the_sandwich(folded: Path) -> None:
    """Costs are exact at any depth; a recursive function is its own caller, and counts once in its sandwich."""
    _, inverted, hint, row, _, sandwich, says = drive(
        folded,
        tab("inverted"),
        value(ROWS_OF_BOXES),
        text_of("#answer"),
        click(".rows .row:nth-child(2)"),
        text_of("#details h2"),
        value("(document.querySelector('#details button').click(), 0)"),
        value(ROWS_OF_BOXES),
        text_of("#answer"),
    )
    assert sorted(map(tuple, inverted)) == [
        (0, "everything", 106, 106),
        (1, "leaf", 60, 60),
        (1, "main", 10, 10),
        (1, "other", 1, 1),
        (1, "work", 35, 35),
        (2, "leaf", 5, 5),
        (2, "main", 30, 30),
        (2, "work", 60, 60),
        (3, "main", 60, 60),
        (3, "work", 5, 5),
        (4, "main", 5, 5),
    ]
    assert hint.startswith("Each box of the first row is a function; its width is its self cost. Its callers")
    assert row == "work"
    assert sorted(tuple(box[:3]) for box in sandwich) == [
        (0, "main", 95),
        (1, "work", 95),
        (2, "leaf", 65),
        (3, "work", 5),
    ]
    assert says.startswith("work: its callers above, its callees below")


def test_groups_of_many_small_ones_add_up(tmp_path: Path) -> None:
    """Each row of the inverted graph costs the self cost of all stacks of at least its length."""
    rng = random.Random(2)
    stacks: dict[str, int] = {}
    for _ in range(20_000):
        stack = ";".join(f"f{rng.randrange(300)}" for _ in range(rng.randint(1, 12)))
        stacks[stack] = stacks.get(stack, 0) + 1 + int(rng.paretovariate(1))
    (tmp_path / "a.folded").write_text("".join(f"{stack} {cost}\n" for stack, cost in stacks.items()))
    report(tmp_path / "a.folded", tmp_path / "page.html")
    rows = """(() => {
        const found = {}, {flame} = fastprof, width = flame.holder.clientWidth, all = fastprof.view.tree.weight[0];
        for (const d of flame.drawn) found[d.row] = (found[d.row] || 0) + d.w / width * all;
        return [found, flame.drawn.filter(d => d.many).length];
    })()"""
    _, (drawn, runs) = drive(tmp_path / "page.html", tab("inverted"), value(rows))
    total = sum(stacks.values())
    for row in range(1, 13):
        expected = sum(cost for stack, cost in stacks.items() if stack.count(";") + 1 >= row)
        assert drawn[str(row)] == pytest.approx(expected, abs=total / 200)
    assert runs > 100


def test_back_returns_and_a_link_opens_what_was_seen(folded: Path) -> None:
    back = "new Promise(done => { addEventListener('popstate', () => setTimeout(done, 100, 0)); history.back(); })"
    go = (
        "new Promise(done => { addEventListener('hashchange', () => setTimeout(done, 100, 0)); location.hash = LINK; })"
    )
    wait = value("new Promise(done => setTimeout(done, 400, 0))")
    hashed = value("location.hash")
    whole, _, zoomed, address, _, again, empty = drive(
        folded, value(DRAWN), click_box("leaf"), wait, value(DRAWN), hashed, value(back), value(DRAWN), hashed
    )
    assert again == whole != zoomed
    assert "zoom=" in address and "chosen=" not in address and "zoom" not in empty  # leaf costs most
    _, opened, name = drive(
        folded, value(go.replace("LINK", json.dumps(address))), value(DRAWN), text_of("#details h2")
    )
    assert (opened, name) == (zoomed, "leaf")
    link = "#view=inverted&search=%5Ework%24&filter=wo&flip=1&zoom=x,2&chosen=9:nobody"  # of an older page
    seen = "[state.order, flame.flipped, flame.from, flame.to, state.chosen, matches.textContent]"
    leaf, _, state, rows, _, _, centred = drive(
        folded,
        value("fastprof.state.chosen"),
        value(go.replace("LINK", json.dumps(link))),
        value(f"(({{state, flame}}) => {seen})(fastprof)"),
        value(ROWS),
        value(go.replace("LINK", json.dumps("#filter=nothing"))),
        value(go.replace("LINK", json.dumps("#view=sandwich&centre=9:nobody"))),
        text_of("#answer"),
    )
    assert state == ["inverted", True, 0, 1, leaf, "89.6 % in 1 matching function"]
    assert [row[-1].split()[0] for row in rows] == ["work"]
    assert re.match("(main|work|leaf): its callers above", centred)


def test_search_says_the_share_of_matches(folded: Path) -> None:
    """work calls itself once, and counts once: 95 of 106."""
    steps = {"keys": ["/"]}, {"type": "^work$"}, text_of("#matches"), {"keys": ["Escape"]}, text_of("#matches")
    assert drive(folded, *steps) == ["89.6 % in 1 matching function", ""]


def test_the_table_is_sorted_and_filtered(folded: Path) -> None:
    heading = ".head .cell:nth-child({}) button"
    _, by_self, by_inclusive, turned, by_name, filtered, count = drive(
        folded,
        tab("table"),
        value(ROWS),
        click(heading.format(4)),
        value(ROWS),
        click(heading.format(4)),
        value(ROWS),
        click(heading.format(6)),
        value(ROWS),
        {"keys": ["t"]},
        {"type": "^[wl]"},
        value(ROWS),
        text_of("#count"),
    )
    names = [[row[-1].split()[0] for row in rows] for rows in (by_self, by_inclusive, turned, by_name, filtered)]
    assert names == [
        ["leaf", "work", "main", "other"],
        ["main", "work", "leaf", "other"],
        ["other", "leaf", "work", "main"],
        ["leaf", "main", "other", "work"],
        ["leaf", "work"],
    ]
    assert by_self[0][:5] == ["60", "56.6", "56.6", "65", "61.3"]
    assert count == "2 functions"


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.name)
def test_figures_are_those_of_top(path: Path, tmp_path: Path) -> None:
    report(path, tmp_path / "page.html")
    rows = """Array.from({length: fastprof.data.head.rows}, (_, i) => [fastprof.view.name(i),
        fastprof.data.column(`row self ${fastprof.state.event.old}`)[i],
        fastprof.data.column(`row inclusive ${fastprof.state.event.old}`)[i]])"""
    shown, first = drive(tmp_path / "page.html", value(rows), value(ROWS))
    expected = top(path, n=0).rows
    assert sorted(map(tuple, shown)) == sorted((row.name, row.self, row.inclusive) for row in expected)
    assert first[0][1] == f"{100 * expected[0].self_share:.1f}"


def test_a_row_shows_callers_and_callees(folded: Path) -> None:
    (details,) = drive(folded, click(".rows .row:nth-child(1)"), text_of("#details"))
    assert details.startswith("leaf")
    assert details.index("Callers") < details.index("work") < details.rindex("Callees")
    focus = value("document.querySelector('.rows').focus()")
    _, name = drive(folded, click(".rows .row"), focus, {"keys": ["ArrowDown"]}, text_of("#details h2"))
    assert name == "work"


def test_long_names_lose_what_stands_in_templates(tmp_path: Path) -> None:
    shortened = {
        "std::__1::unordered_map<std::string, std::vector<int>>::operator[](std::string const&)": (
            "std::__1::unordered_map<…>::operator[](std::string const&)"
        ),
        "<alloc::vec::Vec<T, A> as core::iter::traits::Iterator<X>>::next": (
            "<alloc::vec::Vec<…> as core::iter::traits::Iterator<…>>::next"
        ),
        "bool operator< <int, std::allocator<int>>(std::vector<int> const&)": (
            "bool operator< <int, std::allocator<…>>(std::vector<…> const&)"
        ),
        "a name with < and nothing behind it, which is no template at all": (
            "a name with < and nothing behind it, which is no template at all"
        ),
        "short<int>": "short<int>",
    }
    (tmp_path / "a.folded").write_text("".join(f"{name} {i + 1}\n" for i, name in enumerate(shortened)))
    report(tmp_path / "a.folded", tmp_path / "page.html")
    steps = value(ROWS), click(".rows .row:nth-child(5)"), text_of("#details h2")
    rows, title = drive(tmp_path / "page.html", *steps, width=2800)
    assert [row[-1].strip() for row in rows] == [*reversed(shortened.values())]
    assert title == next(iter(shortened))


def test_a_profile_of_nothing_says_so(tmp_path: Path) -> None:
    report(CORPUS / "gperftools/good/norecords.prof", tmp_path / "page.html")
    texts = drive(tmp_path / "page.html", *map(text_of, ("#summary", "#answer", "#count", "#details")))
    assert texts == ["Nothing was recorded.", "Nothing to show.", "0 functions", "No functions"]


def test_keys_walk_the_flame_graph(folded: Path) -> None:
    steps = {"keys": ["g", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"]}, text_of("#details h2"), value(DRAWN)
    name, drawn = drive(folded, *steps)
    assert name == "work"
    assert drawn.index(["work", dict(drawn)["everything"]]) == 2


def test_value_types_threads_and_time(tmp_path: Path) -> None:
    (tmp_path / "t.xray").write_bytes(timeline())
    report(tmp_path / "t.xray", tmp_path / "page.html")
    seen = drive(
        tmp_path / "page.html",
        value(DRAWN),
        choose("#thread", "thread 8"),
        value(DRAWN),
        value(ROWS),
        text_of("#count"),
        choose("#thread", "all 2"),
        choose("#value", "calls"),
        value(ROWS),
        tab("time"),
        value(DRAWN),
        value("fastprof.view.marks(0, 1, 5).map(m => m[1])"),
    )
    whole, one, rows_of_one, count, calls, timed, axis = (one for one in seen if one is not None)
    assert [row[:-1] for row in rows_of_one] == [["10", "100.0", "100.0"]]
    assert count == "1 function, in contexts of this thread"
    assert [len(drawn) for drawn in (whole, one, timed)] == [4, 2, 4]
    assert one[0][1] == one[1][1]
    assert sorted(row[0] for row in calls) == ["1", "1", "2"]
    widths = sorted(width for _, width in timed)
    assert [round(width / widths[-1], 2) for width in widths] == [0.01, 0.1, 0.2, 1]
    assert axis == ["0 ns", "20 ns", "40 ns", "60 ns", "80 ns"]


def test_one_unit_for_what_is_compared(tmp_path: Path) -> None:
    """An axis or a pair has a single unit; so has a column, unless most of it would be 0.00: once `0 ns, 2,000 us, 10
    ms`."""
    report(CORPUS / "xray/good/fdr5-pool-clang19.xray", tmp_path / "page.html")
    marks = "fastprof.view.marks(0, 1, 12).map(m => m[1].split(' ')[1])"
    _, units, near = drive(
        tmp_path / "page.html",
        tab("time"),
        value(marks),
        value("fastprof.view.marks(0.5, 0.50001, 8).map(m => m[1])"),
    )
    assert len(units) > 4 and len({*units}) == 1
    assert len({*near}) == len(near) > 3
    report(CORPUS / "pprof/good/go-heap.pb.gz", tmp_path / "heap.html")
    _, rows, summary = drive(tmp_path / "heap.html", tab("table"), value(ROWS), text_of("#summary"))
    assert [row[0] for row in rows[:4]] == ["31.7 MiB", "4.52 KiB", "4.21 KiB", "0"]
    assert summary.endswith("inuse_space: 31.7 MiB")


def test_units_of_the_page_are_those_of_the_terminal(folded: Path) -> None:
    """The same figures as in test_text.py."""
    columns = json.loads((REPO / "tests/support/figures.json").read_text())
    write = """COLUMNS.map(({largest, unit, figures}) => {
        const scale = fastprof.scaleOf(largest, unit);
        return [scale.unit, figures.map(([value]) => [value, scale.write(value).replace("µs", "us")])];
    })""".replace("COLUMNS", json.dumps(columns))
    (found,) = drive(folded, value(write))
    assert found == [[column["title"], column["figures"]] for column in columns]


def test_a_difference_is_coloured(tmp_path: Path) -> None:
    (tmp_path / "old.folded").write_text("main;a 50\nmain;b 50\nmain;c 50\n")
    (tmp_path / "new.folded").write_text("main;a 90\nmain;b 10\nmain;c 50\nother 30\n")
    report([tmp_path / "old.folded", tmp_path / "new.folded"], tmp_path / "page.html")
    colour = "fastprof.flame.drawn.map(d => [fastprof.view.name(d.fn, d.id), fastprof.view.colour(d)[0]])"
    light = value("document.documentElement.dataset.theme === 'dark' && document.getElementById('theme').click()")
    _, colours, rows, title, legend, says = drive(
        tmp_path / "page.html",
        light,
        value(colour),
        value(ROWS),
        text_of("#title"),
        value("[...document.querySelectorAll('#legend span')].map(e => e.textContent)"),
        text_of("#answer"),
    )
    assert dict(colours)["a"].startswith("hsl(4 ") and dict(colours)["b"].startswith("hsl(213 ")
    assert dict(colours)["c"] == dict(colours)["main"] == "#dfe2e7"
    assert dict(colours)["everything"].startswith("hsl(4 ")
    assert [row[0] for row in rows] == ["+40", "-40", "+30", "0", "0"]
    assert rows[0][:2] == ["+40", "+80.0"]
    assert legend == ["cost increased", "cost decreased", "unchanged"]
    assert says == "150 → 180 (+30, +20.0 %); self costs changed most in a +40, b -40 and other +30 (new)"
    assert title == "old.folded → new.folded"


HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def test_colours_by_package_and_object(tmp_path: Path) -> None:
    """Go's packages are the default.  Groups have different hues, which the legend names; the more of a box's cost is
    its own, the stronger is its colour."""
    report(CORPUS / "pprof/good/go-heap.pb.gz", tmp_path / "page.html")
    colour = """fastprof.flame.drawn.filter(d => d.fn !== 4294967295)
        .map(d => [fastprof.view.name(d.fn), fastprof.colours.hueOf(d.fn)])"""
    legend = """[...document.querySelectorAll('#legend span')].filter(e => e.firstElementChild)
        .map(e => [e.textContent, getComputedStyle(e.firstElementChild).backgroundColor])"""
    strengths = """(() => {
        const {colours, view} = fastprof, fn = fastprof.state.chosen, fills = own => colours.of({fn, id: 0, own})[0];
        return [fills(0), fills(0.5), fills(1)];
    })()"""
    kind, drawn, shown, fills = drive(
        tmp_path / "page.html",
        value("document.querySelector('#colours').value"),
        value(colour),
        value(legend),
        value(strengths),
    )
    assert kind == "package" and len({*fills}) == 3
    by_package: dict[str, set[str]] = {}
    for name, fill in drawn:
        by_package.setdefault(name.split(".")[0], set()).add(fill)
    assert all(len(fills) == 1 for fills in by_package.values())
    assert {"runtime", "main"} <= {name for name, _ in shown} & by_package.keys()
    assert len({fill for _, fill in shown}) == len(shown)


def test_colours_of_clones_and_versions(tmp_path: Path) -> None:
    """Suffixes that compilers and linkers append to C names are not packages, and neither are type arguments of Go."""
    (tmp_path / "a.folded").write_text("m.n;q.sorted[...].func1;sort.part.0;f@@GLIBC_2.34;g.constprop.0.isra.1 3\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    legend = "[...document.querySelectorAll('#legend span')].map(e => e.textContent)"
    _, shown = drive(tmp_path / "page.html", choose("#colours", "package"), value(legend))
    assert sorted(shown) == ["m", "no package", "q", "stronger: more self cost"]


def test_colours_of_nested_classes(tmp_path: Path) -> None:
    """A class within another one that has no package has its colour."""
    (tmp_path / "a.folded").write_text("Work.main;Work$Square.run;Work$$Lambda+0x7a08/623.run;a.b.Other$C.run 3\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    legend = "[...document.querySelectorAll('#legend span')].map(e => e.textContent)"
    _, shown = drive(tmp_path / "page.html", choose("#colours", "package"), value(legend))
    assert sorted(shown) == ["Work", "a.b", "stronger: more self cost"]


def test_names_are_text_and_nothing_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text(f"main;{HOSTILE} 3\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    tries = """(async () => {
        const script = document.createElement('script');
        script.textContent = 'window.ran = 1';
        document.body.append(script);
        new Image().src = 'https://example.com/x.png';
        await fetch('https://example.com/').catch(() => {});
        await new Promise(done => setTimeout(done, 200));
        return [window.ran ?? 0, document.images.length, window.refused.length];
    })()"""
    script = [click(".rows .row"), text_of("#details h2"), value("document.images.length"), value(tries)]
    need("chromium")
    name, images, (ran, loaded, refused) = viewer("report", tmp_path / "page.html", "1200", "900", json.dumps(script))[
        "values"
    ]
    assert (name, images, ran, loaded) == (HOSTILE, 0, 0, 0)
    assert refused >= 3


def test_a_phone_has_room_for_everything(folded: Path) -> None:
    """Nothing extends beyond the window, and no control covers another."""
    boxes = """[...document.querySelectorAll('select, input, button, h1, #hover')]
        .filter(e => e.checkVisibility() && !e.closest('#tabs, #flame'))
        .map(e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"""
    tabs = value("(tabs => [tabs.scrollWidth, tabs.clientWidth])(document.querySelector('#tabs'))")
    width, found, (needed, room) = drive(
        folded, value("document.documentElement.scrollWidth"), value(boxes), tabs, width=390, height=844
    )
    assert width <= 390 and needed <= room
    assert all(left >= 0 and right <= 390 for left, _, right, _ in found)
    for (i, a), (j, b) in product(enumerate(found), repeat=2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert i == j or apart


@pytest.mark.parametrize("width", [700, 800, 1081, 1240, 1241, 1900])
def test_names_in_the_table_of_a_difference_are_seen(width: int, tmp_path: Path) -> None:
    """With changes in percent and old costs, which have less room in a smaller window."""
    (tmp_path / "old.folded").write_text(FOLDED)
    (tmp_path / "new.folded").write_text(FOLDED.replace("30", "90"))
    report([tmp_path / "old.folded", tmp_path / "new.folded"], tmp_path / "page.html")
    room = "document.querySelector('#table').getBoundingClientRect().right"
    left = f"{room} - document.querySelector('.rows .cell.name').getBoundingClientRect().left"
    _, seen, columns = drive(tmp_path / "page.html", tab("table"), value(left), value(ROWS), width=width)
    assert seen >= 100
    assert len(columns[0]) >= (7 if width > 800 else 6)
    (beside, _) = drive(tmp_path / "page.html", value(left), value(ROWS), width=max(width, 800))
    assert beside >= 100


@pytest.mark.parametrize("width", [700, 800, 1081, 1400])
def test_names_in_the_table_are_seen(width: int, tmp_path: Path) -> None:
    """With all columns; in a window of 800 pixels the callers covered all but their first two letters."""
    names = """[...document.querySelectorAll('.rows .cell.name')].map(e => e.getBoundingClientRect().left)
        .map(left => document.querySelector('#table').getBoundingClientRect().right - left)"""
    report(CORPUS / "callgrind/good/xdebug.callgrind", tmp_path / "page.html")
    beside, _, seen = drive(tmp_path / "page.html", value(names), tab("table"), value(names), width=width)
    assert seen and min(seen) >= 100
    assert width < 760 or (beside and min(beside) >= 100)  # a phone has one view at a time


# by row: the drawn and the actual share of the visible range; then how many runs are drawn
COVERED = """(() => {
    const {flame, view: {tree}} = fastprof, {from, to} = flame, width = flame.holder.clientWidth;
    const drawn = new Float64Array(tree.deepest + 1), real = drawn.slice();
    for (const d of flame.drawn) drawn[d.row] += d.w / width;
    for (let i = 0; i < tree.n; i++) {
        const inside = Math.min(to, tree.x(i) + tree.width(i)) - Math.max(from, tree.x(i));
        if (inside > 0) real[tree.depth[i]] += inside / (to - from);
    }
    return [[...drawn], [...real], flame.drawn.filter(d => d.many).length];
})()"""
RUN = (
    "(() => { const d = fastprof.flame.drawn.filter(d => d.many).sort((a, b) => b.many.length - a.many.length)[0],"
    " c = document.getElementById('canvas').getBoundingClientRect();"
    " return [c.left + d.x + d.w / 2, c.top + d.y + 9]; })()"
)


def test_small_boxes_are_drawn_as_one(tmp_path: Path) -> None:
    """No row shows a gap where functions are, at any zoom; 40 % of the leaves' row was blank."""
    rng = random.Random(1)
    lines = (
        f"main;{'even' if a % 2 else 'odd'}{a};b{b};c{c};d {1 + int(rng.paretovariate(0.8))}\n"
        for a, b, c in product(range(30), range(30), range(30))
    )
    (tmp_path / "a.folded").write_text("".join(lines))
    report(tmp_path / "a.folded", tmp_path / "page.html")
    whole, says, first, second, matched = drive(
        tmp_path / "page.html",
        value(COVERED),
        {"move": RUN},
        text_of("#hover"),
        {"click": RUN},
        value(COVERED),
        {"click": RUN},
        value(COVERED),
        {"keys": ["Escape", "/"]},
        {"type": "^c1$"},
        value("fastprof.flame.drawn.filter(d => d.many && fastprof.view.colour(d)[0] === '#c95fdc').length"),
    )
    for drawn, real, _ in (whole, first, second):
        assert drawn == pytest.approx(real, abs=0.005)
    assert whole[2] > first[2] > 0
    assert " boxes too narrow to draw" in says and says.endswith("together; a click zooms to them")
    assert matched > 10


@pytest.mark.parametrize("archived", [False, True])
def test_cachegrind_has_self_costs_alone(archived: bool, tmp_path: Path) -> None:
    """Like `top`: the files hold no calls, so no inclusive costs are shown, nor any claim that a function calls
    nothing."""
    source = CORPUS / "cachegrind/good/newer.cachegrind"
    if archived:
        convert(source, source := tmp_path / "x.fpa")
    report(source, tmp_path / "page.html")
    head, says, flame, details, figures, about = drive(
        tmp_path / "page.html",
        value("[...document.querySelectorAll('#table .head .cell')].map(cell => cell.textContent)"),
        text_of("#answer"),
        text_of("#summary"),
        click(".rows .row"),
        value("[...document.querySelectorAll('#details h3')].map(e => e.textContent)"),
        value("[...document.querySelectorAll('#details .figures span')].map(e => e.textContent)"),
        text_of("#about"),
    )
    assert [title.split(" ")[0] for title in head] == ["self", "self", "sum", "Function"]
    assert " % of 1 Ir is " in says and "estimated" not in flame + about
    assert (details, figures) == ([], ["self"])
    assert top(source).rows[0].inclusive is None


INHERITED = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]


def test_names_that_every_object_of_javascript_has(tmp_path: Path) -> None:
    """Regression: a unit called `constructor` broke the page."""
    p = profile_proto.Profile()
    p.string_table.extend(["", *INHERITED])
    for number, _ in enumerate(INHERITED, 1):
        p.sample_type.add(type=number, unit=number)
        p.function.add(id=number, name=number, filename=number)
        p.location.add(id=number).line.add(function_id=number, line=1)
        sample = p.sample.add(location_id=[number, number % len(INHERITED) + 1], value=[number] * len(INHERITED))
        sample.label.add(key=number, str=number)
    (tmp_path / "a.pb").write_bytes(p.SerializeToString())
    report(tmp_path / "a.pb", tmp_path / "page.html")
    figures = (
        "[...document.querySelectorAll('.rows .row')].map(r => [r.children[0].textContent, r.lastChild.textContent])"
    )
    steps = [step for name in INHERITED for step in (choose("#value", name), value(figures))]
    shown = drive(tmp_path / "page.html", value(DRAWN), *steps)
    assert {*dict(shown[0])} == {"everything", *INHERITED}
    for rows in shown[2::2]:
        assert sorted(rows) == sorted([str(number), f"{name} {name}"] for number, name in enumerate(INHERITED, 1))
