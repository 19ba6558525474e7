"""A window with a list to choose from, narrowed by typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from fastprof.cli.browser.lines import Lines, Part, shown


class Chooser(ModalScreen[int]):
    """Returns the index of a text; -1: none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel"),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Chooser { align: center middle; }
    Chooser > Vertical { width: 94%; max-width: 100; height: 70%; border: round $accent; background: $surface; }
    Chooser Static { padding: 0 1; }
    """

    def __init__(self, title: str, texts: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title, self._texts, self._chosen = title, texts, chosen
        self._kept = [*range(len(texts))]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, markup=False)
            yield Input(placeholder="type to narrow the list")
            yield Lines(self._parts, id="choices")

    def on_mount(self) -> None:
        self.query_one(Lines).show(len(self._kept), self._chosen)
        self.query_one(Input).focus()

    def _parts(self, at: int, width: int) -> Sequence[Part]:
        is_here = at == self.query_one(Lines).cursor
        return [
            ("▸ " if is_here else "  ", "bold"),
            (shown(self._texts[self._kept[at]], width - 2), "bold" if is_here else ""),
        ]

    def on_input_changed(self, event: Input.Changed) -> None:
        wanted = event.value.casefold()
        self._kept = [i for i, text in enumerate(self._texts) if wanted in text.casefold()]
        self.query_one(Lines).show(len(self._kept), 0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._choose()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        event.stop()
        self._choose()

    def _choose(self) -> None:
        at = self.query_one(Lines).cursor
        self.dismiss(self._kept[at] if at < len(self._kept) else -1)

    def action_move(self, step: int) -> None:
        lines = self.query_one(Lines)
        lines.move_to(lines.cursor + step)

    def action_leave(self) -> None:
        self.dismiss(-1)
