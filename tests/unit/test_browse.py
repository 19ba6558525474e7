"""`fastprof view --tui`: the figures are those of `top`, and the browser works in a terminal of any size."""

from __future__ import annotations

import asyncio
import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import UsageError
from fastprof.cli import main
from fastprof.core.function_names import Place
from fastprof.verbs.browse import EVERYTHING, NO_VALUE, Selection, browse, pattern
from tests.support.paths import CORPUS

LABELLED = CORPUS / "pprof" / "good" / "go-cpulabels.pb.gz"
POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"
PAIR = [CORPUS / "pair" / name for name in ("old.callgrind", "new.callgrind")]
# sets a window's title, turns the direction of writing, is longer than any line, and looks like markup
HOSTILE = "\x1b]0title\x07[bold]\u202eab std::vector<" + "x" * 300 + ">::push_back"


def ranked(path: Path, **options: Any) -> dict[tuple[str, str], tuple[int, int | None]]:
    found = fastprof.top(path, n=0, threshold=0, **options)
    return {(row.name, row.object): (row.self, row.inclusive) for row in found.rows}


@pytest.mark.parametrize(
    "path",
    [
        LABELLED,
        CORPUS / "callgrind" / "good" / "cfi.callgrind",
        CORPUS / "pprof" / "good" / "go-heap.pb.gz",
        CORPUS / "cachegrind" / "good" / "newer.cachegrind",
        POOL,
    ],
    ids=lambda path: path.name,
)
def test_functions_have_the_figures_of_top(path: Path) -> None:
    browsed = browse([path])
    event = browsed.events[browsed.default]
    rows = browsed.rows(event, EVERYTHING)
    mine = {
        (row.place.name, row.place.object): (row.self[0], row.inclusive[0] if row.inclusive else None) for row in rows
    }
    theirs = ranked(path, value=event.name)
    theirs = {key: costs for key, costs in theirs.items() if any(costs)}
    assert theirs and {key: mine.get(key) for key in theirs} == theirs
    tree = browsed.tree(event, EVERYTHING)
    assert sum(tree.costs(child)[0] for child in tree.children(tree.root)) == tree.costs(tree.root)[0]


@pytest.mark.parametrize("label", [("tenant", "acme"), ("kind", NO_VALUE)])
def test_a_label_selects_what_top_selects(label: tuple[str, str]) -> None:
    browsed = browse([LABELLED])
    event = browsed.events[browsed.default]
    key, text = label
    if text and text not in browsed.labels[key]:
        text = str(browsed.labels[key][0])
    rows = browsed.rows(event, Selection(label=(key, text)))
    mine = {
        (row.place.name, row.place.object): (row.self[0], row.inclusive[0] if row.inclusive else None) for row in rows
    }
    if text:
        assert mine == ranked(LABELLED, value=event.name, label=[f"{key}={text}"])
    else:
        with_key = [ranked(LABELLED, value=event.name, label=[f"{key}={one}"]) for one in browsed.labels[key]]
        whole = sum(own for own, _ in ranked(LABELLED, value=event.name).values())
        assert sum(own for own, _ in mine.values()) == whole - sum(own for of in with_key for own, _ in of.values())


def test_a_thread_is_a_part(tmp_path: Path) -> None:
    browsed = browse([POOL])
    event = browsed.events[browsed.default]
    assert len(browsed.threads) > 1
    trees = [browsed.tree(event, Selection(thread=t)) for t in range(len(browsed.threads))]
    whole = browsed.tree(event, EVERYTHING)
    assert sum(tree.costs(tree.root)[0] for tree in trees) == whole.costs(whole.root)[0]


def test_callers_and_callees_of_a_selection_are_those_of_everything() -> None:
    """Two ways: the arcs of the page, and the contexts."""
    browsed = browse([LABELLED])
    event = browsed.events[browsed.default]
    tree = browsed.tree(event, EVERYTHING)
    for row in browsed.rows(event, EVERYTHING):
        of_page, of_tree = browsed.calls(row.place, event, EVERYTHING), tree.calls(row.place)
        for listed, found in zip(of_page, of_tree, strict=True):
            assert {(c.place, c.costs) for c in listed} <= {(c.place, c.costs) for c in found}


def test_a_recursion_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "r.folded"
    path.write_text("main;f;g;f;h 3\nmain;f 2\nmain;g 1\n")
    browsed = browse([path])
    event = browsed.events[0]
    rows = {row.place.name: (row.self[0], row.inclusive) for row in browsed.tree(event, EVERYTHING).rows()}
    assert rows == {"main": (0, (6,)), "f": (2, (5,)), "g": (1, (4,)), "h": (3, (3,))}
    callers, callees = browsed.tree(event, EVERYTHING).calls(Place("f"))
    assert [(c.place.name, c.costs) for c in callers if c.place] == [("main", (5,)), ("g", (0,))]
    assert sorted((c.place.name, c.costs) for c in callees if c.place) == [("g", (3,)), ("h", (3,))]
    wanted = pattern("^[fg]$")
    assert wanted and browsed.tree(event, EVERYTHING).matched(wanted)[0] == 6


def test_patterns_that_the_library_cannot_compile() -> None:
    for text in ("a{9999999999999}", "(" * 5000 + ")" * 5000):
        wanted = pattern(text)
        assert wanted and wanted(Place(f"x{text}")) and not wanted(Place("a"))


def shown(
    inputs: list[Path], keys: str, look: Callable[[Any], Any] = lambda app: None, size: tuple[int, int] = (120, 40)
) -> tuple[Any, list[str]]:
    """After these keys: what `look` finds in the browser, and the lines of its screen."""
    from fastprof.cli.browser.app import Browser

    app = Browser(browse(inputs))

    async def play() -> tuple[Any, list[str]]:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            for key in keys.split():
                await pilot.press(key)
            await pilot.pause()
            strips = app.screen._compositor.render_strips()
            return look(app), ["".join(segment.text for segment in strip) for strip in strips]

    return asyncio.run(play())


def functions(app: Any) -> Any:
    return app.query_one("#functions").rows


def has(lines: list[str]) -> Callable[..., bool]:
    return lambda *words: any(all(word in line for word in words) for line in lines)


def test_the_tree_opens_on_the_hottest_path() -> None:
    _, lines = shown([LABELLED], "")
    assert " of 1.74 s is runtime.asyncPreempt" in lines[1]
    line = has(lines)
    assert line("94.8", "▾ main.job") and line("callers", "callees")


def test_the_flame_graph_zooms() -> None:
    def look(app: Any) -> Any:
        flame = app.query_one("#flame")
        return flame.path[-1].title, app.chosen.name, [len(row) for row in flame.rows[:5]]

    found, lines = shown([LABELLED], "2 down down down down enter", look)
    assert found == ("main.job", "main.job", [1] * 5) and has(lines)("main.job")
    found, lines = shown([LABELLED], "2 down down down down enter escape", look)
    assert found[0] == "everything" and has(lines)("everything")


def test_functions_are_searched_sorted_and_followed() -> None:
    rows, lines = shown([LABELLED], "3 slash s o r t enter", functions)
    assert rows and all("sort" in row.place.name + row.place.file + row.place.object for row in rows)
    assert has(lines)("sort", "in matching functions")
    rows, _ = shown([LABELLED], "3 s", functions)
    inclusive = [row.inclusive[0] for row in rows]
    assert inclusive == sorted(inclusive, reverse=True)

    def chosen(app: Any) -> Any:
        table = app.query_one("#functions")
        return app.chosen, table.rows[table.cursor].place, app.query_one("#callers").calls

    before, _ = shown([LABELLED], "3 s s s end", chosen)
    after, _ = shown([LABELLED], "3 s s s end tab enter", chosen)
    assert after[0] == after[1] == before[2][0].place != before[0]


def test_choosers_narrow_what_is_shown() -> None:
    selection, lines = shown([POOL], "t down enter 3", lambda app: app.selection)
    assert selection.thread == 0 and "thread: " in lines[0]
    selection, lines = shown([LABELLED], "l t e n a n t down enter", lambda app: app.selection)
    assert selection.label[0] == "tenant" and has(lines)("% of 1.74 s")
    assert shown([LABELLED], "v up enter", lambda app: app.event.name)[0] == "samples"
    assert shown([LABELLED], "l escape question_mark escape", lambda app: app.selection)[0] == EVERYTHING


def test_a_comparison_has_changes_with_signs() -> None:
    compared, lines = shown(PAIR, "", lambda app: app.browsed.compared)
    assert compared and "changed most in" in lines[1] and "+" in lines[1] + lines[3] + lines[4]
    assert has(shown(PAIR, "2 down")[1])("→")
    assert has(shown(PAIR, "3")[1])("Δ self")


@pytest.mark.parametrize("size", [(120, 40), (20, 6)])
@pytest.mark.parametrize("keys", ["", "2", "3"])
def test_hostile_names_stay_text(size: tuple[int, int], keys: str, tmp_path: Path) -> None:
    path = tmp_path / "h.folded"
    path.write_text(f"main;{HOSTILE} 5\n{';'.join(f'f{i}' for i in range(300))} 1\n")
    _, lines = shown([path], keys + " end home down down right slash x enter n", size=size)
    text = "\n".join(lines)
    assert not {"\x1b", "\x07", "\u202e"} & {*text}
    if size[0] == 120 and not keys:
        assert has(lines)("\\x1b]0title\\x07[bold]\\u202eab", "::push_back")  # both ends


def test_a_profile_without_costs_opens(tmp_path: Path) -> None:
    path = tmp_path / "z.folded"
    path.write_text("a;b 0\n")
    for keys in ("", "2 down enter", "3 s n"):
        assert "All costs are 0." in shown([path], keys)[1][1]


def test_without_textual_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "textual":
            raise ImportError(name)
        return original(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "textual", raising=False)
    assert main(["view", "--tui", str(LABELLED)]) == 2
    assert "--tui needs textual: run `pip install 'fastprof-tools[tui]'`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--tui"], "needs a terminal"),
        (["--tui", "--serve"], "leave out --serve"),
        (["--tui", "--port", "0"], "leave out --port"),
        ([str(LABELLED), "--serve"], "--serve passes one profile"),
    ],
)
def test_usage(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(LABELLED), *words]) == 2
    assert error in capsys.readouterr().err


def test_input_that_cannot_be_browsed() -> None:
    with pytest.raises(UsageError, match="cannot be the profile"):
        browse(["-"])
    with pytest.raises(UsageError, match="one input or compares two, not 3"):
        browse([LABELLED] * 3)
    with pytest.raises(UsageError, match="applies to two inputs"):
        browse([LABELLED], pair="exact")


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("java/util/HashMap.get", 21, "java/util/HashMap.get"),
        ("java/util/HashMap.get", 20, "HashMap.get"),
        ("java.util.concurrent.Exchanger.run", 20, "Exchanger.run"),
        ("run (/usr/lib/python3/threading.py:3)", 22, "run (threading.py:3)"),
        ("Work$$Lambda+0x7a08/623247230.run", 33, "Work$$Lambda+0x7a08/623247230.run"),
        ("Work$$Lambda+0x7a08/623247230.run", 9, "run"),
        ("std::vector<int>::operator/(int)", 24, "std::vector...ator/(int)"),
        ("some::name::space::method", 8, "method"),
        ("[libc.so.6+0x1234]", 8, "[li...4]"),
    ],
)
def test_names_that_do_not_fit_keep_their_last_part(name: str, width: int, expected: str) -> None:
    pytest.importorskip("textual")
    from fastprof.cli.browser import lines

    assert lines.shown(name, width) == expected
