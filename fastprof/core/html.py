"""HTML for notebooks: results as tables, a page in a frame.  All text from profiles is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fastprof.core._typing import Any
from fastprof.core.errors import printable

_LONGEST = 300  # characters of a cell
_MOST = 1000  # rows


def cell(value: Any) -> str:
    """A table cell.  Numbers have digit groups and are right-aligned; control characters are escaped."""
    if value is None:
        return "<td></td>"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td style="text-align:right">{value:,}</td>'
    text = printable(str(value))
    return f'<td style="text-align:left">{escape(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")}</td>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """The first rows, and the number of further rows."""
    rows = [*rows]
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[:_MOST])
    titles = "".join(f'<th style="text-align:left">{escape(printable(title))}</th>' for title in head)
    above = f'<caption style="text-align:left">{escape(printable(caption))}</caption>' if caption else ""
    more = f"<p>... {len(rows) - _MOST:,} more</p>" if len(rows) > _MOST else ""
    return f"<table>{above}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{more}"


def pairs(values: Mapping[str, Any], caption: str = "") -> str:
    """Names and values; maps are flattened: "totals: cpu"."""
    return table(("", ""), _flat(values), caption)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{before}{str(key).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}: ")
        else:
            yield name, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def frame(page: str) -> str:
    """A page in a sandboxed frame: its scripts cannot access the notebook."""
    style = "width:100%;height:700px;border:1px solid #ccc"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'
