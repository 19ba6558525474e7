"""The flame graph as a picture for documents: SVG without scripts; each box has a title.

Contexts are merged and laid out as on the page (tree.js, flame.js): callers above, the largest first, and neighbours
narrower than a pixel as one box.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from colorsys import hls_to_rgb
from html import escape

from fastprof.core._typing import NamedTuple
from fastprof.core.elided import shortened
from fastprof.core.errors import printable
from fastprof.core.log import percent
from fastprof.verbs.page import NONE
from fastprof.verbs.page.content import Content

_WIDTH, _ROW, _LETTER = 1200, 17, 6.7  # pixels
_MANY, _GREY = "#cdbfa9", "#dfe2e7"
_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="4" y="15" font-weight="bold">{title}</text>
{boxes}
</svg>
"""


class _Box(NamedTuple):
    x: float
    width: float
    row: int
    nodes: list[int]


class Picture:
    """The picture of a value type: its value column, or the two compared."""

    def __init__(self, content: Content, columns: Sequence[int], unit: str) -> None:
        self._content, self._unit = content, unit
        self._parents, self._functions = [0], [NONE]
        self._totals = [[0.0] for _ in columns]
        self._merge(columns)
        n = len(self._parents)
        self._weights = [max(abs(total[i]) for total in self._totals) for i in range(n)]
        self._children: list[list[int]] = [[] for _ in range(n)]
        for i in range(n - 1, 0, -1):
            parent = self._parents[i]
            self._weights[parent] += self._weights[i]
            for total in self._totals:
                total[parent] += total[i]
            if self._weights[i]:
                self._children[parent].append(i)
        for children in self._children:
            children.sort(key=lambda i: (-self._weights[i], i))

    def _merge(self, columns: Sequence[int]) -> None:
        """Merge contexts of all threads with the same callers."""
        table = self._content.columns
        values = [table[f"context self {k}"] for k in columns]
        nodes: list[int] = []
        known: dict[tuple[int, int], int] = {}
        for i, (up, function) in enumerate(zip(table["context up"], table["context function"], strict=True)):
            key = (nodes[i - up] if up else 0, function)
            if not up and not any(value[i] for value in values):
                nodes.append(0)  # the root of a thread, which has no cost unless threads were cut
                continue
            if key not in known:
                known[key] = len(self._parents)
                self._parents.append(key[0])
                self._functions.append(function)
                for total in self._totals:
                    total.append(0)
            nodes.append(known[key])
            for total, value in zip(self._totals, values, strict=True):
                total[nodes[i]] += value[i]

    def _boxes(self) -> list[_Box]:
        scale = _WIDTH / (self._weights[0] or 1)
        found: list[_Box] = []
        waiting = [_Box(0, _WIDTH, 0, [0])]
        while waiting:
            box = waiting.pop()
            found.append(box)
            children = [child for node in box.nodes for child in self._children[node]]
            wide = [child for child in children if len(box.nodes) == 1 and self._weights[child] * scale >= 1]
            x = box.x
            for child in wide:
                waiting.append(_Box(x, self._weights[child] * scale, box.row + 1, [child]))
                x += self._weights[child] * scale
            small = children[len(wide) :]
            width = sum(self._weights[child] for child in small) * scale
            if width >= 0.1:
                waiting.append(_Box(x, width, box.row + 1, small))
        return found

    def svg(self, title: str) -> tuple[bytes, int]:
        """The picture and its number of boxes."""
        boxes = self._boxes()
        height = _ROW * (3 + max(box.row for box in boxes))
        text = "\n".join(map(self._drawn, boxes))
        return _PAGE.format(width=_WIDTH, height=height, title=text_of(title), boxes=text).encode(), len(boxes)

    def _drawn(self, box: _Box) -> str:
        name = self._name(box)
        y, room = _ROW * (box.row + 1.5), int((box.width - 6) / _LETTER)
        label = shortened(name, room) if room > 2 else name
        label = label if len(label) <= room else label[: room - 1] + "…" if room > 2 else ""
        text = f'<text x="{box.x + 3:.1f}" y="{y + 12:.1f}">{text_of(label)}</text>' if label else ""
        gap = 1 if box.width > 3 else 0
        return (
            f"<g><title>{text_of(f'{name}: {self._cost(box)}')}</title>"
            f'<rect x="{box.x:.2f}" y="{y:.1f}" width="{box.width - gap:.2f}" height="{_ROW - 1}" '
            f'fill="{self._colour(box, name)}"/>{text}</g>'
        )

    def _name(self, box: _Box) -> str:
        if len(box.nodes) > 1:
            return f"{len(box.nodes):,} small boxes"
        function = self._functions[box.nodes[0]]
        if function == NONE:
            return "[pruned]" if box.row else "everything"
        return self._content.name(function) or "???"

    def _costs(self, box: _Box) -> list[float]:
        return [sum(total[node] for node in box.nodes) for total in self._totals]

    def _cost(self, box: _Box) -> str:
        costs = self._costs(box)
        figures = " → ".join(f"{cost:,.0f}" for cost in costs) + f" {self._unit}".rstrip()
        whole = self._totals[-1][0]
        return f"{figures} ({percent(costs[0] / whole)})" if len(costs) == 1 and whole and costs[0] > 0 else figures

    def _colour(self, box: _Box, name: str) -> str:
        costs = self._costs(box)
        if len(costs) == 2:
            return colour_of_change((costs[1] - costs[0]) / (self._weights[0] or 1))
        if len(box.nodes) > 1:
            return _MANY
        if self._functions[box.nodes[0]] == NONE:
            return _GREY
        value = 7
        for letter in name[:200]:
            value = (value * 31 + ord(letter)) & 0xFFFFFFFF
        return _rgb(8 + value % 44, 88, 66 + (value >> 8) % 12)


def _rgb(hue: float, saturation: float, light: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in hls_to_rgb(hue / 360, light / 100, saturation / 100))


def colour_of_change(change: float) -> str:
    """The colour of a change, a share of the total: red for more, blue for less."""
    if abs(change) < 0.001:
        return _GREY
    strength = min(1.0, (8 * abs(change)) ** 0.5)
    return _rgb(4 if change > 0 else 213, 40 + 50 * strength, 92 - 30 * strength)


def colour_of_share(share: float) -> str:
    """The colour of a self cost, a share of the total: from grey to red."""
    return _rgb(8, 15 + 75 * min(1, share) ** 0.5, 94 - 34 * min(1, share) ** 0.5)


def text_of(text: str) -> str:
    """The text of an element: printable and escaped."""
    return escape(_NO_XML.sub("?", printable(text)))
