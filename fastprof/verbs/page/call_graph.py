"""The call graph as a picture for documents: SVG without scripts; each function and arc has a title.

Functions are drawn in layers below their callers, like those of `pprof -svg`:

    main                        layer 0: no caller
     │ ╲
     a  b                       the layer is the length of the longest path from the top
     │ ╱
     c                          an arc upwards is a recursion; a loop, a function that calls itself

To reduce crossings, each function moves to the mean position of its neighbours (barycentre), several times downwards
and upwards.  The figures are those of the page's table and of `top --tree`; of two profiles, old and new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fastprof.core._typing import NamedTuple
from fastprof.core.elided import shortened
from fastprof.core.function_names import Place
from fastprof.core.log import percent
from fastprof.core.messages import counted
from fastprof.verbs.page.figures import Figures
from fastprof.verbs.page.picture import colour_of_change, colour_of_share, text_of

MOST = 60  # functions
LEAST = 0.005  # of the total: cheaper functions and arcs are dropped
_SWEEPS = 12
_LETTER, _LINE, _GAP_X, _GAP_Y, _LOOP = 6.4, 15, 24, 56, 30  # pixels
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
    self: list[int]  # old and new, or of a single profile
    inclusive: list[int]
    calls: int | None
    lines: list[str]
    loop: float  # the width of the arc of its calls to itself

    @property
    def width(self) -> float:
        return 16 + _LETTER * max(map(len, self.lines))


class _Arc(NamedTuple):
    caller: int
    callee: int
    costs: list[int]
    calls: int


class CallGraph:
    """Draws `rows` of the page's table, out of `n_all` functions, in its value columns `columns` (one, or old and new).

    `itself`: the cost of calls of functions to themselves, where arcs lack it.
    """

    def __init__(
        self,
        rows: Sequence[Figures],
        columns: Sequence[int],
        totals: Sequence[int],
        unit: str,
        n_all: int,
        itself: Mapping[Place, list[int]],
    ) -> None:
        self._totals, self._unit, self._n_all, self._itself = totals, unit, n_all, itself
        self._total = max(map(abs, totals)) or 1
        known = []
        for row in rows:
            costs = [row.costs.get(column) for column in columns]
            own, all_ = ([(cost and getattr(cost, name)) or 0 for cost in costs] for name in ("self", "inclusive"))
            calls = next((cost.calls for cost in costs if cost and len(costs) == 1), None)
            known.append((row, own, all_, calls))
        known.sort(key=lambda one: (-_size(one[2]), -_size(one[1]), one[0].place))
        large = [one for one in known if _size(one[2]) >= LEAST * self._total][:MOST]
        at = {row.place: i for i, (row, *_) in enumerate(large)}
        self._arcs: list[_Arc] = []
        for i, (row, *_) in enumerate(large):
            arcs = row.arcs
            for k, place in enumerate(arcs.places[arcs.n_callers :], arcs.n_callers):
                costs_ = (itself.get(row.place) if place == row.place else None) or [of[k] for of in arcs.costs]
                if place in at and _size(costs_) >= LEAST * self._total:
                    self._arcs.append(_Arc(i, at[place], costs_, max(calls[k] for calls in arcs.calls)))
        loops = {arc.caller for arc in self._arcs if arc.caller == arc.callee}
        self._nodes = [
            _Node(row.place, own, all_, calls, self._lines(row.place, own, all_), _LOOP * (i in loops))
            for i, (row, own, all_, calls) in enumerate(large)
        ]
        self._down = self._without_cycles()
        self._layers = self._in_layers()

    def _lines(self, place: Place, self_: list[int], inclusive: list[int]) -> list[str]:
        name = shortened(place.name or "???", _LONGEST)
        name = name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-(_LONGEST // 2 - 1) :]}"
        mine, whole = (" → ".join(f"{100 * c / self._total:.1f} %" for c in costs) for costs in (self_, inclusive))
        return [name, whole if self_ == inclusive or len(inclusive) > 1 else f"{mine} of {whole}"]

    # ---- layers

    def _without_cycles(self) -> list[_Arc]:
        """The arcs that lead downwards; an arc to a function on the current path leads upwards."""
        out: list[list[_Arc]] = [[] for _ in self._nodes]
        for arc in self._arcs:
            if arc.caller != arc.callee:
                out[arc.caller].append(arc)
        called = {arc.callee for arc in self._arcs if arc.caller != arc.callee}
        down, state = [], [0] * len(self._nodes)  # 0: not visited, 1: on the path, 2: done
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
        for i in ready:  # grows in the loop
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
        widths = [sum(self._nodes[i].width + self._nodes[i].loop + _GAP_X for i in layer) for layer in self._layers]
        whole = max([500.0, *widths])
        boxes: dict[int, tuple[float, float]] = {}
        for depth, (layer, width) in enumerate(zip(self._layers, widths, strict=True)):
            x = (whole - width + _GAP_X) / 2
            for i in layer:
                node = self._nodes[i]
                boxes[i] = x + node.width / 2, 52 + depth * (2 * _LINE + 8 + _GAP_Y)
                x += node.width + node.loop + _GAP_X
        figures = "old and new inclusive cost" if len(self._totals) > 1 else "self of inclusive cost"
        note = f"{figures}; the {len(self._nodes)} most expensive of {counted(self._n_all, 'function')}"
        note += f", and calls of {percent(LEAST)} of the total or more"
        height = 52 + len(self._layers) * (2 * _LINE + 8 + _GAP_Y) - _GAP_Y + 20
        arcs = "\n".join(self._arc(arc, boxes) for arc in sorted(self._arcs, key=lambda arc: _size(arc.costs)))
        drawn = "\n".join(self._box(self._nodes[i], *boxes[i]) for i in boxes)
        return _PAGE.format(
            width=whole + 16, height=height, title=text_of(title), note=text_of(note), arcs=arcs, boxes=drawn
        ).encode()

    def _box(self, node: _Node, x: float, y: float) -> str:
        calls = f"; {counted(node.calls, 'call')}" if node.calls else ""
        own, all_ = (" → ".join(f"{cost:,}" for cost in costs) for costs in (node.self, node.inclusive))
        cost = f"{node.place.name or '???'}: self {own}, inclusive {all_} {self._unit}".rstrip() + calls
        compared = len(node.self) > 1
        fill = colour_of_change(self._change(node.inclusive)) if compared else colour_of_share(self._share(node.self))
        texts = "".join(
            f'<text x="{x:.1f}" y="{y + _LINE * (line + 1):.1f}" text-anchor="middle">{text_of(text)}</text>'
            for line, text in enumerate(node.lines)
        )
        return (
            f"<g><title>{text_of(cost)}</title>"
            f'<rect x="{x - node.width / 2:.1f}" y="{y:.1f}" width="{node.width:.1f}" height="{2 * _LINE + 8}" rx="4" '
            f'fill="{fill}" stroke="#777"/>{texts}</g>'
        )

    def _share(self, costs: list[int]) -> float:
        return _size(costs) / self._total

    def _change(self, costs: list[int]) -> float:
        return (costs[1] - costs[0]) / self._total

    def _arc(self, arc: _Arc, boxes: dict[int, tuple[float, float]]) -> str:
        (x, y), (to_x, to_y) = boxes[arc.caller], boxes[arc.callee]
        high, share = 2 * _LINE + 8, self._share(arc.costs)
        if arc.caller == arc.callee:
            x, y = x + self._nodes[arc.caller].width / 2, y + high / 2
            far = f"{x + _LOOP + 8:.1f}"
            path = f"M{x:.1f} {y - 8:.1f}C{far} {y - 26:.1f} {far} {y + 26:.1f} {x:.1f} {y + 8:.1f}"
        elif to_y > y:
            middle = (to_y - y - high) / 2
            bend = f"{x:.1f} {y + high + middle:.1f} {to_x:.1f} {to_y - middle:.1f}"
            path = f"M{x:.1f} {y + high:.1f}C{bend} {to_x:.1f} {to_y:.1f}"
        else:  # upwards, at the side
            side = max(x, to_x) + 120
            bend = f"{side:.1f} {y - 40:.1f} {side:.1f} {to_y + high + 40:.1f}"
            path = f"M{x:.1f} {y:.1f}C{bend} {to_x:.1f} {to_y + high:.1f}"
        names = " → ".join(self._nodes[i].place.name or "???" for i in (arc.caller, arc.callee))
        calls = f", {counted(arc.calls, 'call')}" if arc.calls else ""
        cost = " → ".join(f"{cost:,}" for cost in arc.costs)
        shares = "" if len(arc.costs) > 1 else f" ({percent(share)})"
        title = f"{names}: {cost} {self._unit}".rstrip() + shares + calls
        change = self._change(arc.costs) if len(arc.costs) > 1 else 0
        stroke = colour_of_change(change) if abs(change) >= 0.001 else "#555"
        return (
            f'<path d="{path}" fill="none" stroke="{stroke}" stroke-opacity="{0.5 + 0.5 * min(1, share):.2f}" '
            f'stroke-width="{0.6 + 5 * min(1, share):.1f}" marker-end="url(#to)"><title>{text_of(title)}</title></path>'
        )


def _size(costs: Iterable[int]) -> int:
    """The larger of two compared costs."""
    return max(map(abs, costs))
