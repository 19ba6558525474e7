"""A result of `top` as columns, as an Arrow stream, and as HTML for notebooks."""

from __future__ import annotations

import os

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.arrow_column import stream_of
from fastprof.core.figures import of_value
from fastprof.core.html import figures, frame, notes, table
from fastprof.verbs.function_costs import Durations
from fastprof.verbs.top.matrix import Row

if TYPE_CHECKING:
    from fastprof.verbs.top import Top

_COSTS = ("self", "inclusive")
_FIGURES = ("self", "self_share", "cumulated_share", "inclusive", "inclusive_share", "calls")
_NAMES = ("label", "pid", "tid", "thread", "name", "file", "line", "object")
_SHARES = {"self_share": "self %", "inclusive_share": "incl. %"}


def columns(found: Top) -> dict[str, list[Any]]:
    """The rows as columns, by title: what Top.columns returns."""
    if found.matrix:
        rows = found.matrix.rows
        cells = {name: [getattr(row, name) for row in rows] for name in Row._fields[:-1]}
        return cells | {one.name: [row.costs[k] for row in rows] for k, one in enumerate(found.matrix.columns)}
    cells = {second: [row.second for row in found.rows] for second in _second(found)}
    cells |= {name: [getattr(row, name) for row in found.rows] for name in (*_FIGURES, *_NAMES)}
    for name in Durations._fields if found.stats else ():
        cells[name] = [row.durations and getattr(row.durations, name) for row in found.rows]
    return cells


def _second(found: Top) -> list[str]:
    """The column of the value type by which rows are sorted, if it is not that of the others."""
    taken = (*_FIGURES, *_NAMES)
    return [f"{found.second.name} [2]" if found.second.name in taken else found.second.name] if found.second else []


def stream(found: Top) -> object:
    units = dict.fromkeys(_COSTS, found.value.unit)
    units |= dict.fromkeys(_second(found), found.second.unit if found.second else "")
    units |= dict.fromkeys(Durations._fields[1:], found.stats.unit) if found.stats else {}
    return stream_of(columns(found), units)


def html(found: Top) -> str:
    """The rows with figures as printed, exact ones on hovering; a matrix as a heat map."""
    if found.matrix:
        from fastprof.verbs.top.heat_map import page

        return frame(page(found, found.matrix))
    unit, cells = found.value.unit or found.value.name, columns(found)
    head = _SHARES | {"name": "function"}
    for name in _COSTS:
        own, cells[name] = figures(cells[name], unit, found.total)
        head[name] = f"{name} {own}".strip()
    cells |= {name: [round(100 * (share or 0), 1) for share in cells[name]] for name in _SHARES}
    cells |= {name: [os.path.basename(path) for path in cells[name]] for name in ("file", "object")}
    cells["line"] = [line or None for line in cells["line"]]
    kept = [name for name in cells if name != "cumulated_share" and any(cell not in (None, "") for cell in cells[name])]
    if "inclusive" not in kept:
        kept = [name for name in kept if name != "inclusive_share"]
    names = ", ".join(map(os.path.basename, found.inputs))
    caption = f"{names}: {of_value([found.total], found.value.name, found.value.unit)}"
    rows = zip(*(cells[name] for name in kept), strict=True)
    return table([head.get(name, name) for name in kept], rows, caption) + notes(found.log)
