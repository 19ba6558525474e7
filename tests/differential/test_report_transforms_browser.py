"""Transforms of a page, in a browser: the shared examples, and what the options of the same names give."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import report
from tests.differential.test_report_browser import BOX, click, click_box, drive, tab, value
from tests.support.pages import Page
from tests.support.paths import CORPUS
from tests.support.transforms import options_of

EXAMPLES = json.loads((Path(__file__).parents[1] / "support" / "transforms.json").read_text())["examples"]
# The stacks with a cost: frames as name and object.
STACKS = """(() => {
    const {view: {tree, name}, data, state} = fastprof, k = state.event.old;
    const {texts} = data.head, objects = data.column('function object');
    return Array.from({length: tree.n}, (_, i) => i).filter(i => tree.self[k][i])
        .map(i => [tree.path(i).map(fn => fn === 4294967295 ? ['[pruned]', ''] : [name(fn), texts[objects[fn]]]),
            tree.self[k][i]]);
})()"""
DO = """(steps => {{
    for (const step of steps) fastprof.menu.do(step);
    return fastprof.transforms.address();
}})({})"""
UNDO = value("(fastprof.menu.undoAll(), null)")
CHIPS = value("[...document.querySelectorAll('#steps button')].map(b => b.textContent)")


def stacks(found: list[Any]) -> Counter[tuple[tuple[str, str], ...]]:
    sums: Counter[tuple[tuple[str, str], ...]] = Counter()
    for frames, cost in found:
        sums[tuple((one, "") if isinstance(one, str) else (one[0], one[1]) for one in frames)] += cost
    return sums


def test_the_shared_examples(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = []
    for number, example in enumerate(EXAMPLES):
        rows = [
            ([f if isinstance(f, str) else fastprof.Frame(f[0], object=f[1]) for f in stack], cost)
            for stack, cost in example["stacks"]
        ]
        # one page for all: each example below a root of its own, on which the page focuses first
        steps.append({"name": number, "rows": [([f"example {number}", *stack], cost) for stack, cost in rows]})
    made = fastprof.from_stacks([row for step in steps for row in step["rows"]])
    report(made, tmp_path / "page.html", prune=0)
    begin = [[["focus", f"^example {number}$"], ["hide", f"^example {number}$"]] for number in range(len(EXAMPLES))]
    ways = [first + example["do"] for first, example in zip(begin, EXAMPLES, strict=True)]
    done = [one for way in ways for one in (UNDO, value(DO.format(json.dumps(way))), value(STACKS))]
    for example, found in zip(EXAMPLES, drive(tmp_path / "page.html", *done)[2::3], strict=True):
        assert stacks(found) == stacks(example["result"]), example["name"]


def agrees(path: Path, tmp_path: Path) -> None:
    """The page of a profile with transforms has the contexts of the page of the transformed profile."""
    try:
        report(path, tmp_path / "page.html", prune=0)
    except fastprof.FastprofError as error:  # numbers of hand-made files add up to more than 2^63 - 1
        assert "2^63" in str(error)
        return
    plain = Page(tmp_path / "page.html")
    if not plain.columns.get("context up") or not plain.head["values"]:
        return
    column = next(k for k, one in enumerate(plain.head["values"]) if one["event"] == plain.head["shown"])
    names = Counter[str]()
    for (_, *functions), cost in plain.stacks(column).items():
        names.update({name: abs(cost) for name in functions if name not in NOT_FUNCTIONS})
    literal = [f"^{re.escape(name)}$" for name, _ in names.most_common(2) if name.isascii() and "\\" not in name]
    ways = [[["hide", one] for one in literal], [["collapse-recursion", ""]], [["merge-lines", ""]]]
    ways.append([["hide", "[aeiou]$"], ["hide-object", "[.]so"], ["collapse-object", "."], ["collapse-recursion", ""]])
    is_graph = plain.head["estimated"]
    if literal and all(one["view"] != "graph" for one in plain.head["inputs"]):
        stack = max(((cost, one) for (_, *one), cost in plain.stacks(column).items() if not NOT_FUNCTIONS & {*one}))[1]
        place = ";".join(re.sub(r"([\\;])", r"\\\1", name) for name in stack[: len(stack) // 2 + 1])
        ways += [[["focus", literal[0]], ["collapse-recursion", ""]], [["subtree", place]]]
    steps = [one for way in ways for one in (UNDO, value(DO.format(json.dumps(way))), value(STACKS))]
    found = drive(tmp_path / "page.html", *steps)[2::3]
    for way, page in zip(ways, found, strict=True):
        try:
            report(path, tmp_path / "changed.html", prune=0, **options_of(way))
        except fastprof.FastprofError as error:
            assert "2^63" in str(error)
            continue
        changed = Page(tmp_path / "changed.html")
        expected: Counter[tuple[str, ...]] = Counter()
        for (_, *functions), cost in changed.stacks(column).items():
            expected[tuple(functions)] += cost
        ours: Counter[tuple[str, ...]] = Counter()
        for frames, cost in page:
            ours[tuple(name for name, _ in frames)] += cost
        if is_graph:  # contexts are estimates
            assert sum(ours.values()) == pytest.approx(sum(expected.values())), (path, way)
        elif any(one["view"] == "timeline" for one in plain.head["inputs"]):  # times are rounded for each context
            assert ours == pytest.approx(expected, abs=20), (path, way)
        else:
            assert {k: v for k, v in ours.items() if v} == {k: v for k, v in expected.items() if v}, (path, way)


MOST = 1  # files of a format, unless FASTPROF_EVERY_FILE=1 asks for all: minutes
NOT_FUNCTIONS = {"[pruned]", "[no stack]", "[hidden]"}
FEW = [
    "folded/good/recursion.folded",
    "pprof/good/go-cpulabels.pb.gz",
    "perf-script/good/real-default-rust_v0.perf",
    "xray/good/fdr2-busy.xray",
    "callgrind/good/xdebug.callgrind",
]


@pytest.mark.parametrize("name", FEW)
def test_the_page_agrees_with_the_options(name: str, tmp_path: Path) -> None:
    agrees(CORPUS / name, tmp_path)


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in CORPUS.glob("*/good")))
def test_files_of_every_format(folder: str, tmp_path: Path) -> None:
    n = 0
    for path in sorted((CORPUS / folder / "good").iterdir()):
        try:
            fastprof.open(path).close()
        except (fastprof.FastprofError, OSError):  # part of another profile, or maps
            continue
        n += 1
        agrees(path, tmp_path)
        if n == MOST and not os.environ.get("FASTPROF_EVERY_FILE"):
            break


TEXT = "main;f;g;g 3\nmain;f;f;h 2\nmain;x 1\nf 4\n"
THEME = "(document.documentElement.dataset.theme === '{}' || document.getElementById('theme').click(), null)"
MENU = value("[...document.querySelectorAll('#transform-menu button span')].map(b => b.textContent)")
FOCUSED = value("document.activeElement.textContent")
DRAWN = value("fastprof.flame.drawn.map(d => fastprof.view.name(d.fn, d.id)).sort()")
ROWS = value(
    "[...document.querySelectorAll('#table .rows .row')]"
    ".map(row => [row.lastChild.textContent.trim(), row.firstChild.textContent])"
)


def right_click(expression: str) -> dict[str, Any]:
    return {"click": expression, "button": "right"}


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "a.folded").write_text(TEXT)
    report(tmp_path / "a.folded", tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1000, 700), (390, 844)])
def test_the_menu_of_a_box(width: int, height: int, page: Path) -> None:
    entries, fits, chips, drawn, closed = drive(
        page,
        right_click(BOX.format('"f"')),
        MENU,
        value("(b => [b.left >= 0, b.right <= innerWidth, b.bottom <= innerHeight])"
              "(document.getElementById('transform-menu').getBoundingClientRect())"),
        click("#transform-menu button"),
        CHIPS, DRAWN, value("document.getElementById('transform-menu').hidden"),
        width=width, height=height,
    )  # fmt: skip
    assert entries == ["Hide f", "Focus on f", "Focus on this subtree", "Collapse recursion", "Callers and callees"]
    assert fits == [True, True, True] and closed is True
    assert chips == ["hide f ✕"]
    assert drawn == ["[hidden]", "everything", "g", "g", "h", "main", "x"]


def test_the_menu_of_a_row_by_keyboard(page: Path) -> None:
    rows, _, first, second, text, after, back = drive(
        page,
        ROWS,
        value("(document.querySelector('#table .rows').focus(), null)"),
        {"keys": ["Home", "ContextMenu"]},
        FOCUSED,
        {"keys": ["ArrowDown"]},
        FOCUSED,
        {"keys": ["Escape", "ContextMenu", "r"]},
        CHIPS,
        ROWS,
        {"keys": ["u"]},
        ROWS,
    )
    assert first == "Hide fh" and second == "Focus on fx"
    assert text == ["collapse recursion ✕"]
    assert after == rows and back == rows  # self costs do not change


def test_keys_and_a_list_to_take_back(page: Path) -> None:
    one, two, three, address, chips, drawn, none = [
        found
        for found in drive(
            page,
            click_box("g"),
            {"keys": ["Escape", "h"]},
            CHIPS,
            {"keys": ["r"]},
            CHIPS,
            value("(fastprof.menu.do(['focus', '^main$']), null)"),
            CHIPS,
            value("new Promise(done => setTimeout(() => done(location.hash), 50))"),
            click("#steps button"),  # the first one
            CHIPS,
            DRAWN,
            {"keys": ["U"]},
            CHIPS,
        )
        if found is not None
    ]
    assert one == ["hide g ✕"] and two == [*one, "collapse recursion ✕"] and three == [*two, "focus on main ✕"]
    assert "do=hide%3A%5Eg%24&do=collapse-recursion&do=focus%3A%5Emain%24" in address
    assert chips == ["collapse recursion ✕", "focus on main ✕"]
    assert drawn == ["everything", "f", "g", "h", "main", "x"]
    assert none == []


def test_a_link_has_the_steps(page: Path) -> None:
    link = "(location.hash = 'do=hide%3A%5Eg%24&do=collapse-recursion&do=nonsense&do=hide%3A%5B&view=table', null)"
    _, chips, drawn, old = drive(
        page, value(link), CHIPS, value(STACKS),
        value("(location.hash = 'view=inverted&search=f', fastprof.transforms.steps.length)"),
    )  # fmt: skip
    assert chips == ["hide g ✕", "collapse recursion ✕", "hide /[/ ✕"]
    assert stacks(drawn) == {
        (("main", ""), ("f", "")): 3,
        (("main", ""), ("f", ""), ("h", "")): 2,
        (("main", ""), ("x", "")): 1,
        (("f", ""),): 4,
    }
    assert old == 0  # a link of today has none


@pytest.mark.parametrize("view", ["heavy", "inverted", "sandwich", "graph", "table"])
def test_every_tab_follows(view: str, page: Path) -> None:
    """Figures of table, details and graph come from the changed contexts."""
    self_of_f, chosen, graph = drive(
        page,
        tab(view),
        value("(fastprof.menu.do(['hide', '^[gh]$']), null)"),
        value("fastprof.table.order.map(fn => [fastprof.view.name(fn), fastprof.table.columns[0].value(fn)])"),
        value("fastprof.view.name(fastprof.state.chosen)"),
        value("(fastprof.graph.arrange(), fastprof.graph.nodes.map(n => fastprof.view.name(n.fn)).sort())"),
    )[-3:]
    assert dict(self_of_f) == {"f": 9, "x": 1, "main": 0}
    assert chosen == "f" and graph == ["f", "main", "x"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
def test_steps_are_legible(width: int, height: int, theme: str, page: Path) -> None:
    found = drive(
        page,
        value(THEME.format(theme)),
        value("(fastprof.menu.do(['hide', '^g$']), fastprof.menu.do(['collapse-recursion', '']), null)"),
        value("""[...document.querySelectorAll('#steps button')].map(b => {
            const box = b.getBoundingClientRect(), style = getComputedStyle(b);
            return [box.right <= innerWidth, box.height >= 18, style.color !== style.backgroundColor];
        })"""),
        value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"),
        width=width, height=height,
    )  # fmt: skip
    assert found[-2] == [[True, True, True]] * 2 and found[-1] == [width, height]


def test_figures_that_follow_from_those_before(tmp_path: Path) -> None:
    """What a page derives from the figures before a hide, such as widths of columns, is as if computed anew."""
    costs = [[7, 900], [1, 3], [3, 4], [1, 1], [40, 1]]  # of ends of stacks, in two profiles
    for side in range(2):
        rows = [([f"f{i % 9}", f"g{i}", "h" * (1 + i % 5)], costs[i % 5][side] * (i + 1)) for i in range(60)]
        fastprof.convert(fastprof.from_stacks([*rows, (["h"], 5)]), tmp_path / f"{side}.folded")
    hides = ["^f3$", "^g55$", "^hh$", "^g50$", "^h$", "^f.$", "^g1$", "^g3$", "^g[1-4].$", "^hhhhh$", "^h+$"]
    seen = value("""(() => {
        const {table, view: {name}} = fastprof;
        return [table.columns.map(({title, width}) => [title, width]),
            table.order.map(i => [name(i), ...table.columns.slice(0, -1).map(column => column.write(i))]),
            document.getElementById('answer').textContent];
    })()""")
    inputs: list[Any] = [tmp_path / "1.folded", [tmp_path / "0.folded", tmp_path / "1.folded"]]
    for number, one in enumerate(inputs):
        report(one, page := tmp_path / f"{number}.html", prune=0)
        do = [value(f"(fastprof.menu.do(['hide', {json.dumps(hide)}]), null)") for hide in hides]
        forget = value("""(() => {  // the trees, and so all that is derived from them
            const {menu, transforms} = fastprof, {steps} = transforms;
            transforms.steps = [];
            menu.page.changed();
            transforms.trees.clear();
            transforms.steps = steps;
            menu.page.changed();
        })()""")
        found = drive(page, *[step for hide in do for step in (hide, seen, forget, seen)])
        for hide, after, anew in zip(hides, found[1::4], found[3::4], strict=True):
            assert after == anew, (number, hide)
