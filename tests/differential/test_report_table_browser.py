"""The table of a page, in a browser: groups that unfold, by file, object, package, thread and label; sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import report
from tests.differential.test_report_browser import choose, click, drive, tab, value

ROWS = value("""[...document.querySelectorAll('#table .rows .row')].map(row => [row.classList.contains('of-group'),
    row.lastChild.textContent.trim(), ...[...row.children].slice(0, -1).map(cell => cell.textContent)])""")
KINDS = value("[...document.getElementById('group').options].map(option => option.text)")
THEME = "(document.documentElement.dataset.theme === '{}' || document.getElementById('theme').click(), null)"
HEAD = value("[...document.querySelectorAll('#table .head .cell')].map(cell => cell.textContent)")
# thread, label, stack, cost
SAMPLES: list[tuple[int, str, list[Any], int]] = [
    (1, "a", ["main", ("work", "w.c", 3)], 40),
    (1, "b", ["main", ("work", "w.c", 3), ("leaf", "l.c", 9)], 20),
    (2, "a", ["main", ("work", "w.c", 3), ("leaf", "l.c", 9)], 30),
    (2, "a", ["main", "idle"], 10),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("table") / "page.html"
    rows = [(stack, cost, thread, label) for thread, label, stack, cost in SAMPLES]
    report(fastprof.from_stacks(rows, labels=["thread", "host"]), path)
    return path


def figures(rows: list[Any]) -> list[tuple[bool, str, str]]:
    return [(is_group, name, self_) for is_group, name, self_, *_ in rows]


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_groups_by_thread_unfold(width: int, height: int, theme: str, page: Path) -> None:
    """A function is in each thread with its costs there."""
    found = drive(
        page,
        value(THEME.format(theme)),
        tab("table"),
        choose("#group", "by thread"),
        ROWS,
        click("#table .rows .row"),
        ROWS,
        value("document.querySelector('#table .rows .row').getAttribute('aria-expanded')"),
        value("document.documentElement.scrollWidth"),
        width=width,
        height=height,
    )  # fmt: skip
    folded, unfolded, expanded, scrolled = found[-4:]
    assert [row[0] for row in folded] == [True, True]
    assert sorted(row[2] for row in folded) == ["40", "60"]
    assert figures(unfolded)[1:4] == [(False, "work w.c", "40"), (False, "leaf l.c", "20"), (False, "main", "0")]
    assert expanded == "true" and scrolled == width


def test_groups_by_label_follow_filters_and_transforms(page: Path) -> None:
    found = drive(
        page,
        tab("table"),
        choose("#group", "by label host"),
        ROWS,
        value("(fastprof.menu.do(['hide', '^leaf$']), null)"),
        click("#table .rows .row"),
        ROWS,
        value("(fastprof.menu.undo(), null)"),
        value("fastprof.table.order.map(row => [fastprof.view.name(row), fastprof.table.columns[0].value(row)])"),
    )
    before, hidden, back = (one for one in found if one)
    assert [row[1:3] for row in before] == [["▸ a (4)", "80"], ["▸ b (3)", "20"]]
    assert figures(hidden)[:4] == [
        (True, "▾ a (3)", "80"),
        (False, "work w.c", "70"),
        (False, "idle", "10"),
        (False, "main", "0"),
    ]
    assert dict(map(tuple, back))["work"] == 40


def test_kinds_and_sums(page: Path) -> None:
    """The share of all self costs of the groups down to each."""
    kinds, head, rows = (
        one for one in drive(page, tab("table"), KINDS, choose("#group", "by file"), HEAD, ROWS, width=1600) if one
    )
    assert {"one by one", "by file", "by thread", "by label host"} <= {*kinds}
    column = next(k for k, title in enumerate(head) if title.startswith("sum %"))
    assert [(row[1], row[2], row[2 + column]) for row in rows] == [
        ("▸ l.c (1)", "50", "50.0"),
        ("▸ w.c (1)", "40", "90.0"),
        ("▸ (none) (2)", "10", "100.0"),
    ]


def test_the_keyboard_folds(page: Path) -> None:
    link = "(location.hash = 'view=table&group=by%20thread', null)"
    found = drive(
        page,
        value(link),
        value("(document.querySelector('#table .rows').focus(), null)"),
        {"keys": ["Home", "ArrowRight"]},
        value("fastprof.table.order.length"),
        {"keys": ["ArrowDown"]},
        value("fastprof.view.name(fastprof.state.chosen)"),
        {"keys": ["Home", "ArrowLeft"]},
        value("fastprof.table.order.length"),
        value("document.querySelector('#table .rows .chosen').textContent.includes('▸')"),
    )
    assert [one for one in found if one is not None] == [5, "work", 2, True]


def test_groups_of_two_profiles(tmp_path: Path) -> None:
    """Changes by group."""
    (tmp_path / "a.folded").write_text("main;net::send 30\nmain;fs::read 20\n")
    (tmp_path / "b.folded").write_text("main;net::send 50\nmain;fs::read 10\n")
    report([tmp_path / "a.folded", tmp_path / "b.folded"], tmp_path / "page.html")
    found = drive(tmp_path / "page.html", tab("table"), choose("#group", "by package"), ROWS)
    names = {row[1]: row[2] for row in found[-1]}
    assert names == {"▸ net (1)": "+20", "▸ fs (1)": "-10", "▸ (none) (1)": "0"}


@pytest.mark.parametrize("width", [360, 1366])
def test_a_file_is_shown_with_several_letters_or_not_at_all(width: int, tmp_path: Path) -> None:
    """Next to a name that leaves little room, no single letter of the file stays."""
    rows = [(["main", ("a" * n, "file_with_a_name.c", 3)], 50 - n) for n in range(1, 50)]
    report(fastprof.from_stacks(rows), tmp_path / "page.html")
    seen = value("""[...document.querySelectorAll('#table .rows .row')].map(row => {
        const [name, file] = [...row.lastChild.children].map(part => part.getBoundingClientRect());
        const {bottom, right} = row.getBoundingClientRect();
        return [row.lastChild.clientHeight, name.right <= right,
            file.top >= bottom ? 0 : Math.min(file.right, right) - file.left];
    }).filter(([, , room]) => room !== null)""")
    _, found = drive(tmp_path / "page.html", tab("table"), seen, width=width)
    assert len(found) > 20 and all(height == 24 and fits for height, fits, _ in found)
    rooms = [room for _, _, room in found]
    assert all(room == 0 or room > 30 for room in rooms) and max(rooms) > 100
    assert (0 in rooms) == (width == 360)


def test_numbered_classes_of_java_are_of_the_package_of_their_class(tmp_path: Path) -> None:
    """The number of a hidden class is no package."""
    names = "org/x/Work$$Lambda/0x00000000.run", "org/x/Work$$Lambda+0x7a08/62.run", "org/x/Work$$Lambda+0x7a08.run"
    rows = [([name], 5) for name in (*names, "Work$$Lambda/0x0000000084045210.run")]
    report(fastprof.from_stacks(rows), tmp_path / "page.html")
    *_, seen = drive(tmp_path / "page.html", tab("table"), choose("#group", "by package"), ROWS)
    assert sorted(row[1] for row in seen) == ["▸ Work (1)", "▸ org/x (3)"]


def test_a_cut_name_has_its_dots_once(tmp_path: Path) -> None:
    """Where the cut meets the dots of its arguments."""
    names = [f"std::{'a' * n}<int>::replace(unsigned long, char const*) [clone .constprop.0]" for n in range(5, 20)]
    report(fastprof.from_stacks([([name], 9) for name in names]), tmp_path / "page.html")
    _, seen = drive(tmp_path / "page.html", tab("table"), ROWS, width=480)
    assert len(seen) == 15 and all("…" in row[1] for row in seen)
    assert not [row for row in seen if "……" in row[1]]
