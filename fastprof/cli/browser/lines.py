"""A list of any length in the terminal, with a cursor; only visible lines are made.

Texts from profiles pass through `shown`, which escapes control and bidirectional characters, and are never markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fastprof.cli.text import cut
from fastprof.core import lazy_re as re
from fastprof.core.elided import shortened
from fastprof.core.errors import printable

Part = tuple[str, str]  # a text and its style
MORE, LESS, DIM, FOUND = "red", "dodger_blue1", "dim", "bold black on yellow"
# java/util/HashMap.get and java.util.HashMap.get: HashMap.get; run (/usr/lib/a.py:3): run (a.py:3); not operator/ and
# classes of lambdas
_PATHS = re.compile(r"(?<![\w.$@+~%-])(?:\w+://)?/?(?:(?!operator/)[\w.$@+~%-]+/)+(?=[A-Za-z_$(*])")
_PACKAGES = re.compile(r"(^|[\s(<,;])(?:[a-z_][\w$]*\.){2,}(?=[A-Z])")
_OWN = re.compile(r"(?!\[).*(?:::|[./])(?!(?:part|constprop|isra|cold|lto_priv|llvm|func)\b)([A-Za-z_~][^.:/]*)")
_LITTLE = 12  # columns
_CURSOR = Style(bgcolor="#264f78", bold=True)


def shown(text: str, width: int) -> str:
    """A name that fits: it loses arguments, template arguments, directories and packages, then its middle; where little
    fits its last part stays, as on the page."""
    text = printable(text)
    if len(text) > width:
        text = _PACKAGES.sub(r"\1", _PATHS.sub("", shortened(text, width))) or text
    if len(text) > width < _LITTLE and (own := _OWN.fullmatch(text)):
        text = own[1]
        return text if len(text) <= width else text[: max(width, 0)]
    return cut(text, width) if width > 4 else text[: max(width, 0)]


def padded(text: str, width: int) -> str:
    """At the right of a column."""
    return text.rjust(width)[:width] if len(text) <= width else "#" * width


class Lines(ScrollView, can_focus=True):
    """Calls `line(i, width)` for the parts of each visible line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "go(0)", "First", show=False),
        Binding("end", "go(-1)", "Last", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, lines: Lines) -> None:
            super().__init__()
            self.lines = lines

    class Chosen(Moved):
        """Enter, or a click on the line that has the cursor."""

    def __init__(self, line: Callable[[int, int], Sequence[Part]], *, id: str) -> None:
        super().__init__(id=id)
        self._line, self.n, self.cursor = line, 0, 0

    def show(self, n: int, cursor: int | None = None) -> None:
        """There are `n` lines, or the same ones have changed."""
        self.n = n
        self.virtual_size = Size(0, n)
        self.cursor = max(0, min(self.cursor if cursor is None else cursor, n - 1))
        self._follow()
        self.refresh()

    def move_to(self, cursor: int) -> None:
        self.cursor = max(0, min(cursor, self.n - 1))
        self._follow()
        self.refresh()
        self.post_message(self.Moved(self))

    def _follow(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def action_move(self, step: int) -> None:
        self.move_to(self.cursor + step)

    def action_page(self, step: int) -> None:
        self.move_to(self.cursor + step * max(1, self.size.height - 1))

    def action_go(self, line: int) -> None:
        self.move_to(line if line >= 0 else self.n - 1)

    def action_choose(self) -> None:
        if self.n:
            self.post_message(self.Chosen(self))

    def on_click(self, event: object) -> None:
        y = int(getattr(event, "y", 0)) + self.scroll_offset.y
        if y < self.n:
            was = self.cursor
            self.move_to(y)
            if y == was:
                self.action_choose()

    def render_line(self, y: int) -> Strip:
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= self.n:
            return Strip.blank(width)
        parts = [Segment(text, Style.parse(style)) for text, style in self._line(at, width) if text]
        strip = Strip(parts).adjust_cell_length(width)
        return strip.apply_style(_CURSOR) if at == self.cursor and self.has_focus else strip
