"""A flame graph of cells: callers above callees, the largest first.

main                                      a box for each function below its callers
work                        |parse        neighbours narrower than a cell are one box, ·
inflate            |copy|·  |read
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fastprof.cli.browser.figures import Figures
from fastprof.cli.browser.lines import shown
from fastprof.core.function_names import Place
from fastprof.verbs.browse import Node, Tree

# Okabe and Ito's colours, which people with any colour vision can distinguish; the last are of the rest.
_COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#8fb8de", "#b8b08d")
_GREY = "#8a8a8a"
_ROWS = 4_000  # at most


class Box(NamedTuple):
    """From cell `left` to `right`; of several nodes if they are narrower than a cell."""

    left: int
    right: int
    nodes: tuple[Node, ...]


class FlameView(ScrollView, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Caller", show=False),
        Binding("down,j", "step(1)", "Callee", show=False),
        Binding("left,h", "next(-1)", "Left", show=False),
        Binding("right", "next(1)", "Right", show=False),
        Binding("enter", "zoom", "Zoom", show=False),
        Binding("backspace", "back", "Zoom out", show=False),
        Binding("escape,home", "reset", "All", show=False),
    ]

    class Moved(Message):
        """Another box has the cursor."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.rows: list[list[Box]] = []
        self.path: list[Node] = []  # from the root to the node that has the whole width
        self.row = self.at = 0  # the box with the cursor
        self.is_match: Callable[[Place], bool] | None = None

    def begin(self, tree: Tree, figures: Figures) -> None:
        self.contexts, self.figures = tree, figures
        self.path = [tree.root]
        self._lay_out()

    def on_resize(self) -> None:
        if self.path:
            self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        self.rows = [[Box(0, width, (node,))] for node in self.path]
        # by box of the last row: its exact place
        last = [(0.0, float(width), self.path[-1])]
        while width and last and len(self.rows) < _ROWS:
            boxes: list[Box] = []
            below: list[tuple[float, float, Node]] = []
            for left, right, node in last:
                self._put(boxes, below, left, right, node)
            if not boxes:
                break
            self.rows.append(boxes)
            last = below
        self.row = min(self.row, len(self.rows) - 1)
        self.at = min(self.at, len(self.rows[self.row]) - 1)
        self.virtual_size = Size(0, len(self.rows))
        self.refresh()

    def _put(
        self, boxes: list[Box], below: list[tuple[float, float, Node]], left: float, right: float, node: Node
    ) -> None:
        """Append the boxes of a node's callees."""
        scale, at, narrow = (right - left) / (self.contexts.size(node) or 1), left, list[Node]()
        start = left
        for child in self.contexts.children(node):
            end = at + self.contexts.size(child) * scale
            if round(end) > round(at) and not narrow:
                boxes.append(Box(round(at), round(end), (child,)))
                below.append((at, end, child))
                start = end
            else:  # the largest come first, so all that follow are narrow, too
                narrow.append(child)
            at = end
        if round(at) > round(start) and narrow:
            boxes.append(Box(round(start), round(at), tuple(narrow)))

    @property
    def box(self) -> Box | None:
        return self.rows[self.row][self.at] if self.rows and self.rows[self.row] else None

    def _go(self, row: int, at: int) -> None:
        self.row = max(0, min(row, len(self.rows) - 1))
        self.at = max(0, min(at, len(self.rows[self.row]) - 1))
        self.scroll_to_region(Region(0, self.row, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved())

    def action_next(self, step: int) -> None:
        if self.rows:
            self._go(self.row, self.at + step)

    def action_step(self, step: int) -> None:
        box, row = self.box, self.row + step
        if box is None or not 0 <= row < len(self.rows):
            return
        middle = (box.left + box.right - 1) // 2
        here = [i for i, other in enumerate(self.rows[row]) if other.left < box.right and other.right > box.left]
        if here:  # the largest callee comes first
            above = next((i for i in here if self.rows[row][i].left <= middle < self.rows[row][i].right), here[0])
            self._go(row, here[0] if step > 0 else above)

    def action_zoom(self) -> None:
        box = self.box
        if box is None or len(box.nodes) > 1:
            return
        found, row, left = [box.nodes[0]], self.row - 1, box.left
        while row >= 0:  # its callers, row by row
            above = next(b for b in self.rows[row] if b.left <= left < b.right)
            found.append(above.nodes[0])
            row -= 1
        self.path = found[::-1]
        self.row, self.at = len(self.path) - 1, 0
        self._lay_out()
        self._go(self.row, 0)

    def action_back(self) -> None:
        if len(self.path) > 1:
            self.path.pop()
            self._lay_out()
            self._go(len(self.path) - 1, 0)

    def action_reset(self) -> None:
        self.path = self.path[:1]
        self._lay_out()
        self._go(0, 0)

    def find(self, step: int) -> bool:
        """Go to the next box that matches, or to the last one before."""
        if not self.is_match:
            return False
        all_ = [(row, at) for row, boxes in enumerate(self.rows) for at in range(len(boxes))]
        here = all_.index((self.row, self.at))
        for row, at in all_[here + 1 :] if step > 0 else all_[:here][::-1]:
            if self._matches(self.rows[row][at]):
                self._go(row, at)
                return True
        return False

    def _matches(self, box: Box) -> bool:
        return self.is_match is not None and any(node.place and self.is_match(node.place) for node in box.nodes)

    def on_click(self, event: object) -> None:
        row, x = int(getattr(event, "y", 0)) + self.scroll_offset.y, int(getattr(event, "x", 0))
        for at, box in enumerate(self.rows[row] if row < len(self.rows) else ()):
            if box.left <= x < box.right:
                was = self.row, self.at
                self._go(row, at)
                if was == (row, at):
                    self.action_zoom()
                return

    def render_line(self, y: int) -> Strip:
        row, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if row >= len(self.rows):
            return Strip.blank(width)
        parts, at = list[Segment](), 0
        for i, box in enumerate(self.rows[row]):
            wide = box.right - box.left
            if box.left > at:
                parts.append(Segment(" " * (box.left - at)))
            at = box.right
            gap = wide > 3
            name = shown(box.nodes[0].title, wide - gap) if len(box.nodes) == 1 else "·"
            style = self._style(box, is_here=(row, i) == (self.row, self.at) and self.has_focus)
            parts += Strip([Segment(name, style)]).adjust_cell_length(wide - gap, style)
            parts.append(Segment(" " * gap))
        return Strip(parts).adjust_cell_length(width)

    def _style(self, box: Box, *, is_here: bool) -> Style:
        if is_here:
            return Style(color="white", bgcolor="#264f78", bold=True)
        node = box.nodes[0]
        if self.is_match:
            return Style(color="black", bgcolor="#d0a0ff" if self._matches(box) else "#c8c8c8")
        if self.figures.compared:
            return Style(color="black", bgcolor=_changed(self.figures.share(self.contexts.costs(node))))
        if len(box.nodes) > 1 or not node.place:
            return Style(color="black", bgcolor=_GREY)
        group = node.place.object or node.place.file or node.place.name.partition("::")[0].partition(".")[0]
        return Style(color="black", bgcolor=_COLOURS[zlib.crc32(group.encode("utf-8", "replace")) % len(_COLOURS)])


def _changed(share: float) -> str:
    """Red where a function costs more, blue where it costs less, the stronger the larger the change."""
    pale = round(215 - 150 * min(1.0, abs(share) * 10) ** 0.5)
    if not share:
        return "#d7d7d7"
    return f"#ff{pale:02x}{pale:02x}" if share > 0 else f"#{pale:02x}{pale + (215 - pale) // 2:02x}ff"
