"""The call graph as a picture for documents: SVG without script; each function and each arc has a title.

Functions are drawn in layers below their callers, as `pprof -svg` draws them:

    main                        layer 0: nobody calls it
     │ ╲
     a  b                       as low as the longest way from the top
     │ ╱
     c                          an arc upwards belongs to a recursion

Fewer arcs cross if a function moves to the mean place of those that it is connected with
(barycentre), several times downwards and upwards.  Figures are those of the page's table and of `top --tree`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.core._typing import NamedTuple
from fastprof.core.log import percent
from fastprof.core.words import counted
from fastprof.verbs.page.figures import Figures, Place
from fastprof.verbs.page.picture import colour_of_share, text_of

MOST = 60  # functions
LEAST = 0.005  # of the total: cheaper functions and arcs are dropped
_SWEEPS = 12
_LETTER, _LINE, _GAP_X, _GAP_Y = 6.4, 15, 24, 56  # pixels
_LONGEST = 42  # letters of a name
_PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" \
height="{height:.0f}" font-family="sans-serif" font-size="11">
<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="8" y="18" font-weight="bold" font-size="13">{title}</text>
<text x="8" y="34" fill="#555">{note}</text>
{arcs}
{boxes}
</svg>
"""


class _Node(NamedTuple):
    place: Place
    self: int
    inclusive: int
    calls: int | None
    lines: list[str]

    @property
    def width(self) -> float:
        return 16 + _LETTER * max(map(len, self.lines))


class _Arc(NamedTuple):
    caller: int
    callee: int
    cost: int
    calls: int


class CallGraph:
    """`rows`: of a table with one value column, which is number `column` of the page, out of `n_all` functions."""

    def __init__(self, rows: Sequence[Figures], column: int, total: int, unit: str, n_all: int) -> None:
        self._total, self._unit, self._n_all = total or 1, unit, n_all
        known = [(row, row.costs[column]) for row in rows if column in row.costs]
        ranked = sorted(known, key=lambda one: (-abs(one[1].inclusive or 0), -abs(one[1].self), one[0].place))
        large = [(row, cost) for row, cost in ranked if abs(cost.inclusive or 0) >= LEAST * abs(self._total)][:MOST]
        self._nodes = [
            _Node(
                row.place,
                cost.self,
                cost.inclusive or 0,
                cost.calls,
                self._lines(row.place, cost.self, cost.inclusive or 0),
            )
            for row, cost in large
        ]
        at = {node.place: i for i, node in enumerate(self._nodes)}
        self._arcs: list[_Arc] = []
        for i, (row, _) in enumerate(large):
            for arc in row.arcs:
                if arc.is_callee and arc.place in at and abs(arc.costs[0]) >= LEAST * abs(self._total):
                    self._arcs.append(_Arc(i, at[arc.place], arc.costs[0], max(arc.calls)))
        self._down = self._without_cycles()
        self._layers = self._in_layers()

    def _lines(self, place: Place, self_: int, inclusive: int) -> list[str]:
        name = place.name or "???"
        name = name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-(_LONGEST // 2 - 1) :]}"
        mine, whole = (f"{100 * cost / self._total:.1f} %" for cost in (self_, inclusive))
        return [name, mine if self_ == inclusive else f"{mine} of {whole}"]

    # ---- layers

    def _without_cycles(self) -> list[_Arc]:
        """The arcs that lead downwards: those to a function that is on the way here lead upwards."""
        out: list[list[_Arc]] = [[] for _ in self._nodes]
        for arc in self._arcs:
            out[arc.caller].append(arc)
        called = {arc.callee for arc in self._arcs}
        down, state = [], [0] * len(self._nodes)  # 0: not visited, 1: on the way, 2: done
        for root in sorted(range(len(self._nodes)), key=lambda i: (i in called, i)):
            if state[root]:
                continue
            state[root] = 1
            way = [(root, iter(out[root]))]
            while way:
                node, arcs = way[-1]
                found = next(arcs, None)
                if found is None:
                    state[node] = 2
                    way.pop()
                elif state[found.callee] != 1:
                    down.append(found)
                    if not state[found.callee]:
                        state[found.callee] = 1
                        way.append((found.callee, iter(out[found.callee])))
        return down

    def _in_layers(self) -> list[list[int]]:
        """The functions of each layer, from left to right."""
        n = len(self._nodes)
        layer, left = [0] * n, [0] * n
        for arc in self._down:
            left[arc.callee] += 1
        ready = [i for i in range(n) if not left[i]]
        for i in ready:  # which grows
            for arc in self._down:
                if arc.caller == i:
                    layer[arc.callee] = max(layer[arc.callee], layer[i] + 1)
                    left[arc.callee] -= 1
                    if not left[arc.callee]:
                        ready.append(arc.callee)
        layers: list[list[int]] = [[] for _ in range(max(layer, default=0) + 1)]
        for i in range(n):
            layers[layer[i]].append(i)
        joined: list[list[int]] = [[] for _ in range(n)]
        for arc in self._down:
            joined[arc.caller].append(arc.callee)
            joined[arc.callee].append(arc.caller)
        place = {i: (at + 0.5) / len(one) for one in layers for at, i in enumerate(one)}
        for sweep in range(_SWEEPS):
            for one in layers if sweep % 2 else reversed(layers):
                means = {i: sum(place[j] for j in joined[i]) / len(joined[i]) if joined[i] else place[i] for i in one}
                one.sort(key=lambda i: (means[i], i))
                place.update((i, (at + 0.5) / len(one)) for at, i in enumerate(one))
        return layers

    # ---- the picture

    def svg(self, title: str) -> bytes:
        widths = [sum(self._nodes[i].width + _GAP_X for i in layer) for layer in self._layers]
        whole = max([500.0, *widths])
        boxes: dict[int, tuple[float, float]] = {}
        for depth, (layer, width) in enumerate(zip(self._layers, widths, strict=True)):
            x = (whole - width + _GAP_X) / 2
            for i in layer:
                boxes[i] = x + self._nodes[i].width / 2, 52 + depth * (2 * _LINE + 8 + _GAP_Y)
                x += self._nodes[i].width + _GAP_X
        note = f"self of inclusive cost; the {len(self._nodes)} most expensive of {counted(self._n_all, 'function')}"
        note += f", and calls of {percent(LEAST)} of the total or more"
        height = 52 + len(self._layers) * (2 * _LINE + 8 + _GAP_Y) - _GAP_Y + 20
        arcs = "\n".join(self._arc(arc, boxes) for arc in sorted(self._arcs, key=lambda arc: abs(arc.cost)))
        drawn = "\n".join(self._box(self._nodes[i], *boxes[i]) for i in boxes)
        return _PAGE.format(
            width=whole + 16, height=height, title=text_of(title), note=text_of(note), arcs=arcs, boxes=drawn
        ).encode()

    def _box(self, node: _Node, x: float, y: float) -> str:
        share = abs(node.self / self._total)
        calls = f"; {counted(node.calls, 'call')}" if node.calls else ""
        cost = (
            f"{node.place.name or '???'}: self {node.self:,}, inclusive {node.inclusive:,} {self._unit}".rstrip()
            + calls
        )
        texts = "".join(
            f'<text x="{x:.1f}" y="{y + _LINE * (line + 1):.1f}" text-anchor="middle">{text_of(text)}</text>'
            for line, text in enumerate(node.lines)
        )
        return (
            f"<g><title>{text_of(cost)}</title>"
            f'<rect x="{x - node.width / 2:.1f}" y="{y:.1f}" width="{node.width:.1f}" height="{2 * _LINE + 8}" rx="4" '
            f'fill="{colour_of_share(share)}" stroke="#777"/>{texts}</g>'
        )

    def _arc(self, arc: _Arc, boxes: dict[int, tuple[float, float]]) -> str:
        (x, y), (to_x, to_y) = boxes[arc.caller], boxes[arc.callee]
        high, share = 2 * _LINE + 8, abs(arc.cost / self._total)
        if to_y > y:
            middle = (to_y - y - high) / 2
            bend = f"{x:.1f} {y + high + middle:.1f} {to_x:.1f} {to_y - middle:.1f}"
            path = f"M{x:.1f} {y + high:.1f}C{bend} {to_x:.1f} {to_y:.1f}"
        else:  # upwards, at the side
            side = max(x, to_x) + 120
            bend = f"{side:.1f} {y - 40:.1f} {side:.1f} {to_y + high + 40:.1f}"
            path = f"M{x:.1f} {y:.1f}C{bend} {to_x:.1f} {to_y + high:.1f}"
        names = " → ".join(self._nodes[i].place.name or "???" for i in (arc.caller, arc.callee))
        calls = f", {counted(arc.calls, 'call')}" if arc.calls else ""
        title = f"{names}: {arc.cost:,} {self._unit}".rstrip() + f" ({percent(share)}){calls}"
        return (
            f'<path d="{path}" fill="none" stroke="#555" stroke-opacity="{0.35 + 0.5 * min(1, share):.2f}" '
            f'stroke-width="{0.6 + 5 * min(1, share):.1f}" marker-end="url(#to)"><title>{text_of(title)}</title></path>'
        )
