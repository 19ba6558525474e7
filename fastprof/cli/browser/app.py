"""The application: a line with the answer, a view (tree, flame graph or functions), and callers and callees below."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import ContentSwitcher, Footer, Input, Static

from fastprof.cli.browser.chooser import Chooser
from fastprof.cli.browser.figures import Figures
from fastprof.cli.browser.flame import FlameView
from fastprof.cli.browser.lines import Lines, shown
from fastprof.cli.browser.table import ORDERS, CallList, FunctionTable
from fastprof.cli.browser.tree import TreeView
from fastprof.cli.text import percent
from fastprof.core import lazy_re as re
from fastprof.core.errors import printable
from fastprof.core.figures import quantity
from fastprof.core.function_names import Place
from fastprof.core.messages import counted
from fastprof.core.units import SIZES
from fastprof.verbs.browse import EVERYTHING, NO_VALUE, Browsed, Event, Selection, change_of, pattern

VIEWS = ("tree", "flame", "functions")
_WIDE = 100  # columns of a window whose lists of calls have bars


class Browser(App[None]):
    TITLE = "fastprof"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "view('tree')", "Tree"),
        Binding("2", "view('flame')", "Flame"),
        Binding("3", "view('functions')", "Functions"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "find(1)", "Next", show=False),
        Binding("N", "find(-1)", "Previous", show=False),
        Binding("s", "sort", "Sort"),
        Binding("v", "value", "Value"),
        Binding("t", "thread", "Thread"),
        Binding("l", "label", "Label"),
        Binding("d", "details", "Calls"),
        Binding("question_mark", "keys", "Keys", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]
    CSS = """
    #head, #answer, #columns, #name { height: 1; }
    #head { background: $primary-background; text-style: bold; }
    #columns { color: $text-muted; }
    #views { height: 1fr; }
    #calls { height: 30%; max-height: 14; border-top: solid $primary-background; }
    #calls Vertical { width: 1fr; }
    #calls .title { height: 1; color: $text-muted; }
    #search { height: 3; display: none; }
    """

    def __init__(self, browsed: Browsed) -> None:
        super().__init__()
        self.browsed = browsed
        self.event = browsed.events[browsed.default] if browsed.events else Event("nothing", "", (-1,))
        self.selection = EVERYTHING
        self.chosen: Place | None = None
        self._stale: set[str] = {*VIEWS}  # views that show another value type or selection

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Static(id="answer", markup=False)
        yield Static(id="columns", markup=False)
        with ContentSwitcher(id="views", initial="tree"):
            yield TreeView(id="tree")
            yield FlameView(id="flame")
            yield FunctionTable(id="functions")
        yield Input(id="search", placeholder="a regular expression for names, files and objects")
        with Vertical(id="calls"):
            yield Static(id="name", markup=False)
            with Horizontal():
                for title in ("callers", "callees"):
                    with Vertical():
                        yield Static(id=f"{title}-head", classes="title", markup=False)
                        yield CallList(id=title)
        yield Footer()

    def on_mount(self) -> None:
        self._show_all()
        self.query_one("#tree").focus()

    # ---- what is shown

    @property
    def view(self) -> str:
        return str(self.query_one(ContentSwitcher).current)

    def _figures(self, *titles: str) -> Figures:
        total = self.browsed.total(self.event)
        if self.selection != EVERYTHING:
            tree = self.browsed.tree(self.event, self.selection)
            total = tree.costs(tree.root)
        return Figures(self.event, total, titles)

    def _show_all(self) -> None:
        """Another value type or selection."""
        self._stale = {*VIEWS}
        found = self.browsed.largest(self.event, 1)
        if self.chosen is None and found:
            self.chosen = found[0].place
        self._show_view()
        self._show_head()
        self._show_calls()

    def _show_view(self) -> None:
        """Fill the current view, unless it is up to date."""
        view, browsed = self.view, self.browsed
        if view in self._stale:
            self._stale.discard(view)
            if view == "functions":
                rows = browsed.rows(self.event, self.selection)
                self.query_one(FunctionTable).begin(rows, self._figures("self", "incl."))
            else:
                tree, figures = browsed.tree(self.event, self.selection), self._figures("incl.", "self")
                (self.query_one(TreeView) if view == "tree" else self.query_one(FlameView)).begin(tree, figures)
                if view == "tree" and self.chosen:
                    self.query_one(TreeView).mark(self.chosen)
            self._mark_matches()
        self.query_one("#columns", Static).update(self._columns())

    def _columns(self) -> str:
        if self.view == "functions":
            table = self.query_one(FunctionTable)
            return f"{table.head()}   by {table.order}"
        tree = self.query_one(TreeView)
        if self.view == "tree":
            return f"{tree.figures.head()} function below its callers{', by name' if tree.by_name else ''}"
        return self._text_of_box()

    def _show_head(self) -> None:
        browsed = self.browsed
        chosen = [self.event.name]
        if self.selection.thread >= 0:
            chosen.append(f"thread: {browsed.threads[self.selection.thread]}")
        if self.selection.label:
            chosen.append(f"{self.selection.label[0]}: {_value(self.selection.label[1])}")
        title = printable(f" {browsed.title} · {' · '.join(chosen)}")
        self.query_one("#head", Static).update(title)
        self.query_one("#answer", Static).update(printable(" " + self._answer()))

    def _answer(self) -> str:
        """The sentence of the page."""
        browsed, event = self.browsed, self.event
        unit = event.unit or event.name
        if not browsed.events:
            return "There is nothing to show."
        if browsed.compared:
            before, after = browsed.total(event)
            words = [f"{quantity(before, unit)} → {quantity(after, unit)}"]
            rows = browsed.largest(event, 20)
            grew = [row for row in rows if change_of(row.self) > 0] if unit.lower() in SIZES else []
            rows = (grew or rows)[:3]
            changes = [f"{shown(row.place.name, 40)} {_signed(change_of(row.self), unit)}" for row in rows]
            if changes:
                words.append(("what grew most: " if grew else "self costs changed most in ") + ", ".join(changes))
            return "; ".join(words) if changes else "Nothing changed."
        if self.selection != EVERYTHING:
            tree = browsed.tree(event, self.selection)
            part, whole = tree.costs(tree.root)[-1], browsed.total(event)[-1]
            of_all = " Figures of functions are of all threads: contexts are an estimate." if browsed.estimated else ""
            return f"{quantity(part, unit)}, {percent(part, whole)} % of {quantity(whole, unit)}.{of_all}"
        found = browsed.largest(event, 1)
        if not found:
            return "All costs are 0."
        row, whole = found[0], browsed.total(event)[-1]
        callers = [call.place.name for call in browsed.calls(row.place, event, EVERYTHING)[0] if call.place]
        answer = f"{percent(row.self[-1], whole)} % of {quantity(whole, unit)} is {shown(row.place.name, 60)}"
        answer += f", called by {shown(callers[0], 40)}" if callers else ""
        answer += f"; {counted(row.calls, 'call')}" if row.calls else ""
        return answer + (f"  ({percent(browsed.cut)} % in contexts that do not fit memory)" if browsed.n_cut else "")

    def _text_of_box(self) -> str:
        flame = self.query_one(FlameView)
        box, unit = flame.box, self.event.unit or self.event.name
        if box is None:
            return ""
        if len(box.nodes) > 1:
            cost = sum(change_of(flame.contexts.costs(node)) for node in box.nodes)
            return f" {counted(len(box.nodes), 'function')} narrower than a cell: {quantity(cost, unit)}"
        node = box.nodes[0]
        costs, own = flame.contexts.costs(node), flame.contexts.own(node)
        if self.browsed.compared:
            figures = f"{quantity(costs[0], unit)} → {quantity(costs[1], unit)} ({_signed(change_of(costs), unit)})"
        else:
            share = percent(flame.figures.share(costs))
            figures = f"{quantity(costs[-1], unit)} ({share} %), self {quantity(own[-1], unit)}"
        return f" {figures}  {shown(node.title, max(20, self.size.width - len(figures) - 5))}"

    def _show_calls(self) -> None:
        place, width = self.chosen, max(20, self.size.width - 2)
        name = ""
        lists = [self.query_one(f"#{which}", CallList) for which in ("callers", "callees")]
        if place is not None:
            where = " · ".join(
                filter(None, (place.file + f":{place.line}" * bool(place.line and place.file), place.object))
            )
            room = width - min(len(printable(where)), width // 3) - 3
            name = f" {shown(place.name, room)}   {shown(where, width // 3)}"
            found = self.browsed.calls(place, self.event, self.selection)
            for widget, calls in zip(lists, found, strict=True):
                figures = self._figures("incl.")
                figures.has_bars = self.size.width >= _WIDE
                widget.begin(calls, figures)
                head = f"{widget.figures.head()} {counted(len(calls), str(widget.id)[:-1])}"
                self.query_one(f"#{widget.id}-head", Static).update(head)
        self.query_one("#name", Static).update(name)

    def _choose(self, place: Place | None) -> None:
        if place is not None and place != self.chosen:
            self.chosen = place
            self._show_calls()

    # ---- moves

    def on_lines_moved(self, event: Lines.Moved) -> None:
        lines = event.lines
        if isinstance(lines, TreeView) and lines.nodes:
            self._choose(lines.nodes[lines.cursor].place)
        elif isinstance(lines, FunctionTable) and lines.rows:
            self._choose(lines.rows[lines.cursor].place)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        lines = event.lines
        if isinstance(lines, CallList):
            place = lines.calls[lines.cursor].place
            self._choose(place)
            if place is not None and self.view == "functions":
                table = self.query_one(FunctionTable)
                table.move_to(table.index(place))

    def on_flame_view_moved(self) -> None:
        box = self.query_one(FlameView).box
        if box is not None and len(box.nodes) == 1:
            self._choose(box.nodes[0].place)
        self.query_one("#columns", Static).update(self._columns())

    # ---- keys

    def action_view(self, name: str) -> None:
        self.query_one(ContentSwitcher).current = name
        self._show_view()
        self.query_one(f"#{name}").focus()
        if name == "functions" and self.chosen:
            table = self.query_one(FunctionTable)
            table.move_to(table.index(self.chosen))

    def action_details(self) -> None:
        calls = self.query_one("#calls")
        calls.display = not calls.display

    def action_sort(self) -> None:
        if self.view == "functions":
            table = self.query_one(FunctionTable)
            table.order = ORDERS[(ORDERS.index(table.order) + 1) % len(ORDERS)]
            table.list_rows()
        elif self.view == "tree":
            tree = self.query_one(TreeView)
            tree.sort(not tree.by_name)
        self._show_view()

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.display = False
        self._mark_matches()
        self.query_one(f"#{self.view}").focus()
        wanted = pattern(event.value)
        if wanted is None:
            self._show_head()
            return
        found, _ = self.browsed.tree(self.event, self.selection).matched(wanted)
        whole = self.browsed.total(self.event)[-1]
        unit = self.event.unit or self.event.name
        text = f" {printable(event.value)}: {quantity(found, unit)}, {percent(found, whole)} % in matching functions"
        self.query_one("#answer", Static).update(text)
        if self.view != "functions":
            self.action_find(1)

    def _mark_matches(self) -> None:
        is_match = pattern(self.query_one("#search", Input).value)
        tree, flame, table = self.query_one(TreeView), self.query_one(FlameView), self.query_one(FunctionTable)
        changed = bool(is_match or table.is_match)
        tree.is_match = flame.is_match = table.is_match = is_match
        if is_match is not None:
            tree.flags = self.browsed.tree(self.event, self.selection).matched(is_match)[1]
        if changed and table.all and self.view == "functions":
            table.list_rows()
        tree.refresh()
        flame.refresh()

    def action_find(self, step: int) -> None:
        if self.view == "functions":
            return
        here = self.query_one(TreeView) if self.view == "tree" else self.query_one(FlameView)
        if not here.find(step):
            self.bell()

    def action_value(self) -> None:
        texts = [f"{event.name} ({event.unit})" if event.unit else event.name for event in self.browsed.events]

        def chosen(at: int | None) -> None:
            if at is not None and at >= 0:
                self.event = self.browsed.events[at]
                self._show_all()

        at = self.browsed.events.index(self.event) if self.event in self.browsed.events else 0
        self.push_screen(Chooser("Value type", texts, at), chosen)

    def action_thread(self) -> None:
        def chosen(at: int | None) -> None:
            if at is not None and at >= 0:
                self._select(self.selection._replace(thread=at - 1))

        process = re.match(r"process \d+, |[^:]+: ", self.browsed.threads[0] if self.browsed.threads else "")
        one = process[0] if process and all(name.startswith(process[0]) for name in self.browsed.threads) else ""
        texts = [f"all {len(self.browsed.threads):,}", *(name[len(one) :] for name in self.browsed.threads)]
        self.push_screen(Chooser("Thread", texts, self.selection.thread + 1), chosen)

    def action_label(self) -> None:
        values: list[tuple[str, str | None] | None] = [None]
        for key, texts in self.browsed.labels.items():
            values += [(key, text) for text in [*texts, NO_VALUE]]

        def chosen(at: int | None) -> None:
            if at is not None and at >= 0:
                self._select(self.selection._replace(label=values[at]))

        names = ["all samples", *(f"{one[0]}: {_value(one[1])}" for one in values if one)]
        at = values.index(self.selection.label) if self.selection.label in values else 0
        self.push_screen(Chooser("Label", names, at), chosen)

    def _select(self, selection: Selection) -> None:
        self.selection = selection
        self._show_all()

    def action_keys(self) -> None:
        keys = (
            "1 tree, 2 flame graph, 3 functions",
            "arrows move; in the tree right unfolds, left folds, Enter either",
            "flame graph: Enter zooms, Backspace zooms out, Esc shows everything",
            "/ searches; n and N: next and previous match; empty: no search",
            "s sorts functions (self, inclusive, calls, name) and the tree",
            "v value type, t thread, l label",
            "Tab goes to callers and callees, Enter follows; d hides them",
            "q quits",
        )
        self.push_screen(Chooser("Keys", keys, 0))


def _value(text: str | None) -> str:
    """The value of a label."""
    return "[others]" if text is None else text if text != NO_VALUE else "(none)"


def _signed(value: int, unit: str) -> str:
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{quantity(abs(value), unit)}"
