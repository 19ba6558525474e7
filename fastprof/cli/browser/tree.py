"""Contexts as a tree whose lines unfold, callers first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from fastprof.cli.browser.figures import Figures
from fastprof.cli.browser.lines import DIM, FOUND, Lines, Part, shown
from fastprof.core.function_names import Place
from fastprof.verbs.browse import Node, Tree

_HOT = 0.5  # a callee with this share of its caller is unfolded with it
_MOST = 5_000  # lines that one key unfolds


class TreeView(Lines):
    BINDINGS: ClassVar[list[BindingType]] = [
        *Lines.BINDINGS,
        Binding("right", "unfold(True)", "Unfold", show=False),
        Binding("left", "unfold(False)", "Fold", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(self._parts, id=id)
        self.nodes: list[Node] = []
        self.open: set[tuple[int, ...]] = set()
        self.is_match: Callable[[Place], bool] | None = None
        self.flags = bytearray()  # by context: it or one below it matches
        self.by_name = False

    def begin(self, tree: Tree, figures: Figures) -> None:
        """Show a tree, its hottest path unfolded."""
        self.contexts, self.figures = tree, figures
        self.open.clear()
        self.nodes = [tree.root]
        whole = tree.costs(tree.root)
        figures.fit([whole, whole])
        self._unfold(0)
        self.show(len(self.nodes), 0)

    def mark(self, place: Place) -> None:
        """Put the cursor at the first line of a function, if it has one."""
        at = next((i for i, node in enumerate(self.nodes) if node.place == place), self.cursor)
        self.show(len(self.nodes), at)

    def _children(self, node: Node) -> list[Node]:
        children = self.contexts.children(node)
        return sorted(children, key=lambda child: child.title) if self.by_name else children

    def _unfold(self, at: int) -> None:
        """Unfold a line, and callees that have most of its cost."""
        while at < len(self.nodes):
            node = self.nodes[at]
            children = self._children(node)
            if node.contexts in self.open or not children:
                return
            self.open.add(node.contexts)
            self.nodes[at + 1 : at + 1] = children
            largest = max(range(len(children)), key=lambda i: self.contexts.size(children[i]))
            if self.contexts.size(children[largest]) < _HOT * self.contexts.size(node):
                return
            at += 1 + largest

    def _fold(self, at: int) -> None:
        node, end = self.nodes[at], at + 1
        while end < len(self.nodes) and self.nodes[end].depth > node.depth:
            self.open.discard(self.nodes[end].contexts)
            end += 1
        self.open.discard(node.contexts)
        del self.nodes[at + 1 : end]

    def action_unfold(self, is_open: bool) -> None:
        if not self.nodes:
            return
        at, node = self.cursor, self.nodes[self.cursor]
        if is_open:
            self._unfold(at)
        elif node.contexts in self.open:
            self._fold(at)
        else:
            at = next((i for i in range(at, -1, -1) if self.nodes[i].depth < node.depth), 0)
        self.show(len(self.nodes), at)
        self.move_to(at)

    def action_choose(self) -> None:
        self.action_unfold(bool(self.nodes) and self.nodes[self.cursor].contexts not in self.open)

    def sort(self, by_name: bool) -> None:
        """Order callees by name, or by cost."""
        self.by_name = by_name
        open_, self.open = self.open, set()
        nodes, todo = [], [self.contexts.root]
        while todo:
            node = todo.pop()
            nodes.append(node)
            if node.contexts in open_:
                self.open.add(node.contexts)
                todo += reversed(self._children(node))
        self.nodes = nodes
        self.show(len(nodes))

    def find(self, step: int) -> bool:
        """Go to the next or the last line before that matches, which may have to be unfolded."""
        if not self.is_match:
            return False
        if step > 0:
            at, n = self.cursor, 0
            while at < len(self.nodes) and n < _MOST:
                node = self.nodes[at]
                if node.contexts not in self.open and self._is_above_match(node):
                    self.open.add(node.contexts)
                    self.nodes[at + 1 : at + 1] = self._children(node)
                at, n = at + 1, n + 1
                if at < len(self.nodes) and self._matches(self.nodes[at]):
                    break
        else:
            at = next((i for i in range(self.cursor - 1, -1, -1) if self._matches(self.nodes[i])), len(self.nodes))
        self.show(len(self.nodes))
        if at >= len(self.nodes) or not self._matches(self.nodes[at]):
            return False
        self.move_to(at)
        return True

    def _matches(self, node: Node) -> bool:
        return bool(self.is_match and node.place and self.is_match(node.place))

    def _is_above_match(self, node: Node) -> bool:
        return any(self._matches(child) or self._has_match(child) for child in self.contexts.children(node))

    def _has_match(self, node: Node) -> bool:
        return any(i < len(self.flags) and self.flags[i] for i in node.contexts)

    def _parts(self, at: int, width: int) -> Sequence[Part]:
        node, tree = self.nodes[at], self.contexts
        figures = self.figures.parts(tree.costs(node), tree.own(node))
        room = width - self.figures.width
        indent = min(node.depth, max(0, room // 2))  # deep stacks keep room for names
        mark = "▾ " if node.contexts in self.open else "▸ " if tree.children(node) else "  "
        name = shown(node.title, room - indent - 2)
        style = FOUND if self._matches(node) else DIM if not node.place else ""
        return [*figures, (" " * indent + mark, DIM), (name, style)]
