"""What surrounds the views of a page, in a browser: tabs, drawer, overview, the answer, selection, groups, print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastprof import report, top
from fastprof.core.errors import UsageError
from tests.differential.test_report_browser import DRAWN, FOLDED, choose, click_box, drive, tab, text_of, value
from tests.support.paths import CORPUS

CPU = CORPUS / "pprof/good/go-cpulabels.pb.gz"
SIZES = """['#bar', '#stage', '#flame', '#drawer', '#table', '#details'].map(one => document.querySelector(one))
    .map(e => e.checkVisibility() ? [e.clientWidth, e.offsetHeight] : null)"""
# a drag within the overview, from one share of its width to another
OVER = """(c => [c.left + {} * c.width, c.top + 9, c.left + {} * c.width, c.top + 9])
    (document.getElementById('minimap').getBoundingClientRect())"""
ZOOM = value("[fastprof.flame.from, fastprof.flame.to].map(x => Math.round(100 * x))")


def _without_none(values: list[Any]) -> list[Any]:
    return [one for one in values if one is not None]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "a.folded").write_text(FOLDED)
    report(tmp_path / "a.folded", tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (800, 600), (390, 844)])
def test_the_graph_fills_the_window(width: int, height: int, page: Path) -> None:
    """Below a bar of 40 pixels; a phone has one view at a time."""
    sizes, _, of_table, _, of_details, scrolled = drive(
        page, value(SIZES), tab("table"), value(SIZES), tab("details"), value(SIZES),
        value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"),
        width=width, height=height,
    )  # fmt: skip
    bar, stage, flame, drawer, _, _ = sizes
    assert scrolled == [width, height]
    if width < 760:
        assert drawer is None and flame[1] > 0.7 * height
        assert of_table[1] is of_table[5] is None and of_table[4][1] > 0.7 * height  # the table alone
        assert of_details[4] is None and of_details[5][1] > 0.7 * height
    else:
        assert bar[1] == 40 and stage[1] + (drawer[1] if width < 1000 else 0) > 0.88 * height
        assert flame[1] > (600 if width > 1000 else 250)
        assert of_table[4][0] > 0.6 * width


def test_the_drawer_moves_and_its_size_is_kept(page: Path) -> None:
    drag = """(c => [c.left + 2, c.top + 200, c.left - 198, c.top + 200])
        (document.getElementById('splitter').getBoundingClientRect())"""
    place = """(s => { s.value = 'below'; s.dispatchEvent(new Event('change'));
        return document.querySelector('#stage').clientWidth; })"""
    before, after, kept, below, keys = _without_none(
        drive(
            page,
            value("document.querySelector('#drawer').clientWidth"),
            {"drag": drag},
            value("document.querySelector('#drawer').clientWidth"),
            value("JSON.parse(localStorage['fastprof page']).size"),
            value(f"{place}(document.getElementById('place'))"),
            value("document.getElementById('splitter').focus()"),
            {"keys": ["ArrowUp"]},
            value("(kept => { localStorage.clear(); return kept; })(JSON.parse(localStorage['fastprof page']))"),
        )
    )
    assert after == pytest.approx(before + 200, abs=8) and 40 < kept < 60
    assert below == 1200 and keys == {"place": "below", "size": 42}


def test_the_page_opens_on_the_answer(page: Path, tmp_path: Path) -> None:
    """leaf costs most itself; it is selected, and the boxes on its path are marked."""
    answer, name, path, stack = drive(
        page,
        text_of("#answer"),
        text_of("#details h2"),
        value("(({flame: f, view: v}) => [...f.pathOf(f.focused)].map(i => v.name(v.tree.fn[i], i)))(fastprof)"),
        value("[...document.querySelectorAll('.stack button')].map(e => e.textContent)"),
    )
    assert answer == "56.6 % of 106 samples is leaf, called by work"
    assert (name, path, stack) == ("leaf", ["leaf", "work", "main", "everything"], ["main", "work", "leaf"])
    report(CORPUS / "xray/good/fdr5-pool-clang19.xray", tmp_path / "pool.html")
    (said,) = drive(tmp_path / "pool.html", text_of("#answer"))
    first = top(CORPUS / "xray/good/fdr5-pool-clang19.xray").rows[0]
    assert said.startswith(f"{100 * first.self_share:.1f} % of ") and said.endswith(f"; {first.calls} call")


def test_a_selected_box_has_its_instances_and_its_stack(page: Path) -> None:
    box, _, after = drive(
        page,
        click_box("work"),
        text_of(".box"),
        value("document.querySelector('.stack button').click()"),
        text_of("#details h2"),
    )
    assert box == "95 (89.6 %), self 30; one of 2 boxes of this function"
    assert after == "main"


def test_a_selected_box_of_a_comparison_has_both_costs(tmp_path: Path) -> None:
    (tmp_path / "old.folded").write_text("main;a 50\nmain;b 50\n")
    (tmp_path / "new.folded").write_text("main;a 90\nmain;b 10\n")
    report([tmp_path / "old.folded", tmp_path / "new.folded"], tmp_path / "page.html")
    assert drive(tmp_path / "page.html", text_of(".box")) == ["50 → 90, self 50 → 90; the only box of this function"]


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("source", ["pprof/good/go-heap.pb.gz", "xray/good/fdr5-pool-clang19.xray"])
def test_no_figure_is_cut(source: str, width: int, tmp_path: Path) -> None:
    """Each fits its cell, whole; and the table needs no more than its width."""
    report(CORPUS / source, tmp_path / "page.html")
    wide = """(range => [...document.querySelectorAll('#table .rows .cell:not(.name)')].map(cell => {
        range.selectNodeContents(cell);
        return range.getBoundingClientRect().width - cell.clientWidth;
    }))(document.createRange())"""
    overflow = value("(table => table.scrollWidth - table.clientWidth)(document.getElementById('table'))")
    _, beyond, sideways = drive(tmp_path / "page.html", tab("table"), value(wide), overflow, width=width, height=844)
    assert len(beyond) > 20 and max(beyond) <= 0 and sideways == 0


def test_the_overview_zooms_and_moves(page: Path) -> None:
    """Edges zoom, the window moves, a click elsewhere centres it."""
    zoomed, moved, clicked = drive(
        page,
        {"drag": OVER.format(0.996, 0.5)},
        ZOOM,
        {"drag": OVER.format(0.2, 0.4)},
        ZOOM,
        {"drag": OVER.format(0.05, 0.05)},
        ZOOM,
    )
    assert (zoomed, moved, clicked) == ([0, 50], [20, 70], [0, 50])


def test_groups_of_rows_add_up_and_unfold(tmp_path: Path) -> None:
    """Self costs are those of the members; inclusive ones count a group within itself once, as `top --by` does."""
    report(CPU, tmp_path / "page.html", prune=0)
    group = "(s => { s.value = 'file'; s.dispatchEvent(new Event('change')); })(document.getElementById('group'))"
    rows = """(({table, view, state}) => table.order.map(i => [view.name(i),
        ...['self', 'incl.'].map(name => table.columns.find(one => one.title.startsWith(name)).value(i))]))(fastprof)"""
    found = _without_none(
        drive(
            tmp_path / "page.html",
            tab("table"),
            value(group),
            value(rows),
            value("(document.querySelector('#table .of-group').click(), fastprof.table.order.length)"),
            value("[location.hash.includes('group=file'), document.querySelectorAll('#table .member').length]"),
        )
    )
    groups, unfolded, (_, members) = found
    expected = {row.file: (row.self, row.inclusive) for row in top(CPU, by="file", n=0).rows}
    assert {name: (own, all_) for name, own, all_ in groups} == {
        name or "(none)": costs for name, costs in expected.items()
    }
    assert unfolded == len(groups) + members and members > 0


def test_print_has_all_levels(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text(";".join(f"f{i}" for i in range(100)) + " 5\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    rows = value("new Set(fastprof.flame.drawn.map(d => d.row)).size")
    printed = value("(dispatchEvent(new Event('beforeprint')), new Set(fastprof.flame.drawn.map(d => d.row)).size)")
    before, whole = drive(tmp_path / "page.html", rows, printed, height=500)
    assert before < 40 and whole == 101


def test_print_is_of_a_light_page_with_table_and_details(tmp_path: Path) -> None:
    """Paper is as narrow as a phone, whose page has one of them at a time; and a picture must not be dark."""
    (tmp_path / "a.folded").write_text("main;f 5\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    rules = """[...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).map(rule => rule.media?.mediaText || '')
        .filter(text => text.includes('760px'))"""
    colours = "[document.documentElement.dataset.theme, ...fastprof.flame.drawn.map(d => fastprof.view.colour(d)[0])]"
    phone, light, dark, printed, after = drive(
        tmp_path / "page.html",
        value(rules),
        value(colours),
        value(f"(document.getElementById('theme').click(), {colours})"),
        value(f"(dispatchEvent(new Event('beforeprint')), {colours})"),
        value(f"(dispatchEvent(new Event('afterprint')), {colours})"),
    )
    assert phone == ["screen and (max-width: 760px)"]
    assert printed == light and after == dark and light[0] == "light" and dark[0] == "dark"
    assert not {*light} & {*dark}


def test_long_names_keep_both_ends(tmp_path: Path) -> None:
    """Of a C++ name; a Java name loses its package first, and in a narrow box its class."""
    names = [
        "some::very::long::name::space_of_mine::method",
        "org/example/very/long/package/Class.method",
        "a/b/Class.area",
    ]
    (tmp_path / "a.folded").write_text(f"{names[0]} 3\n{names[1]} 3\n{names[2]} 1\nother 46\n")
    report(tmp_path / "a.folded", tmp_path / "page.html")
    script = """(texts => {
        const {flame} = fastprof, fill = flame.pen.fillText;
        flame.pen.fillText = text => texts.push(text);
        flame.paint();
        return texts;
    })([])"""
    (texts,) = drive(tmp_path / "page.html", value(script), width=3000)
    (cut,) = (text for text in texts if "…" in text)
    assert cut.startswith("some::") and cut.endswith("ethod")
    assert {"Class.method", "area"} <= {*texts}


def test_a_document_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text(FOLDED)
    for name in ("x.png", "x.PDF"):
        with pytest.raises(UsageError, match="a report is HTML or SVG, not P"):
            report(tmp_path / "a.folded", tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("view", ["time", "inverted", "sandwich", "graph", "table"])
def test_views_in_dark_and_on_a_phone(view: str, tmp_path: Path) -> None:
    """Each opens from a link, shows boxes and logs no error."""
    report(CORPUS / "xray/good/fdr5-pool-clang19.xray", tmp_path / "page.html")
    shown = value("[fastprof.state.order, fastprof.flame.drawn.length > 3, document.documentElement.scrollWidth]")
    _, _, wide = drive(tmp_path / "page.html", value("document.getElementById('theme').click()"), tab(view), shown)
    _, narrow = drive(tmp_path / "page.html", tab(view), shown, width=390, height=844)
    assert wide[0] == narrow[0] == view and narrow[2] == 390
    assert wide[1] or view in ("graph", "table")


def test_the_sandwich_of_a_profile_whose_first_row_is_a_cycle(tmp_path: Path) -> None:
    (tmp_path / "a.callgrind").write_text(CYCLE)
    report(tmp_path / "a.callgrind", tmp_path / "page.html")
    first, _, drawn = drive(
        tmp_path / "page.html", value("fastprof.view.name(fastprof.table.order[0])"), tab("sandwich"), value(DRAWN)
    )
    assert first.startswith("<cycle") and len(drawn) > 1 and drawn[0][1] > 100


CYCLE = """events: Ir
fl=a.c
fn=main
1 5
cfn=a
calls=1 2
1 100
fn=a
2 40
cfn=b
calls=1 3
2 60
fn=b
3 50
cfn=a
calls=1 2
3 10
"""


def test_the_treemap_of_a_profile_without_calls(tmp_path: Path) -> None:
    """Areas are costs, by file; a click on a title zooms, one on a function selects it; the search marks."""
    lines = [f"fn=f{i}\n1 {cost}\n" for i, cost in enumerate((400, 200, 100, 50))]
    small = "".join(f"fn=s{i}\n1 1\n" for i in range(250))
    text = f"events: Ir\nfl=a.c\n{''.join(lines[:2])}fl=b.c\n{''.join(lines[2:])}fl=c.c\n{small}"
    (tmp_path / "a.cachegrind").write_text("desc: x\ncmd: ./x\n" + text + "summary: 1000\n")
    report(tmp_path / "a.cachegrind", tmp_path / "page.html")
    areas = value(
        "(({treemap, view}) => treemap.drawn.filter(d => !d.group).map(d => [d.many ? 'small' : view.name(d.fn),"
        " d.w * d.h, d.cost]))(fastprof)"
    )
    at = """(test => (d => (c => [c.left + d.x + 9, c.top + d.y + 9])(fastprof.treemap.canvas.getBoundingClientRect()))
        (fastprof.treemap.drawn.find(test)))"""
    title = f"{at}(d => d.group && d.group.title === 'b.c')"
    function = f"{at}(d => d.fn < 4e9 && fastprof.view.name(d.fn) === 'f3')"
    seen, tip, zoomed, name, matching, whole = drive(
        tmp_path / "page.html",
        areas,
        {"move": function},
        text_of("#hover"),
        {"click": title},
        areas,
        {"click": function},
        text_of("#details h2"),
        {"keys": ["Escape", "/"]},
        {"type": "^f1$"},
        value("fastprof.treemap.drawn.filter(d => fastprof.view.colour(d)[0] === '#c95fdc').length"),
        value("fastprof.treemap.drawn.length"),
    )
    sizes = {name: (area, cost) for name, area, cost in seen if cost > 40}
    assert sizes.keys() == {"f0", "f1", "f2", "f3"}
    density = [area / cost for area, cost in sizes.values()]
    assert max(density) < 1.25 * min(density)  # titles take some space
    assert sum(cost for *_, cost in seen) == 1000
    assert tip == "50 · 5.0 % of the totalf3b.c:1"
    assert {name for name, *_ in zoomed} == {"f2", "f3"}
    assert (name, matching) == ("f3", 1) and whole > len(zoomed)


@pytest.mark.parametrize("width", [1366, 800, 390])
def test_the_legend_is_not_cut(width: int, tmp_path: Path) -> None:
    """Also that of a comparison: names of many packages lose their middle, or have no entry."""
    stacks = "".join(f"com.example.package{i}.Main.run {99 - i}\n" for i in range(12))
    inputs = [tmp_path / "old.folded", tmp_path / "new.folded"]
    for path in inputs:
        path.write_text(stacks)
    report(inputs, tmp_path / "page.html")
    cut = "[...document.querySelectorAll('#legend span')].map(e => [e.textContent, e.scrollWidth > e.clientWidth])"
    of_legend = "(document.querySelector('#legend'))"
    inside = f"(l => l.scrollWidth <= l.clientWidth && l.scrollHeight <= l.clientHeight){of_legend}"
    _, shown, fits = drive(
        tmp_path / "page.html", choose("#colours", "package"), value(cut), value(inside), width=width, height=768
    )
    assert len(shown) > 3 and shown[-1] == ["stronger: more self cost", False]
    assert fits and not any(is_cut for _, is_cut in shown)
