"""HTML for notebooks: results as tables, a page in a frame.  All text from profiles is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import printable
from fastprof.core.figures import Scale

# The style of pages without code, that of the report (verbs/page/page.css): a bar with the title, its colours.
STYLE = """\
:root{color-scheme:light dark;--back:#ffffff;--front:#1d2129;--soft:#5b6270;--line:#d9dde3;--accent:#1f5fbf}
@media(prefers-color-scheme:dark){:root{--back:#16181d;--front:#e7e9ee;--soft:#a2a9b6;--line:#353a44;--accent:#7fb0ff}}
body{margin:0;font:13px/1.4 system-ui,-apple-system,"Segoe UI",sans-serif;background:var(--back);color:var(--front)}
h1{font-size:14px;line-height:40px;margin:0;padding:0 10px;border-bottom:1px solid var(--line)}
p{margin:6px 10px;max-width:60em;color:var(--soft)}
a{color:var(--accent)}
"""
_LONGEST = 300  # characters of a cell
_MOST = 1000  # rows
_COUNTS = ("losses", "repairs", "left_out", "not_representable")


class Figure(NamedTuple):
    """A cost in a unit; hovering shows it exactly.  `share`: of the total, the length of the bar."""

    text: str
    exact: int
    share: float = 0


def figures(values: Iterable[int | None], unit: str, total: int = 0) -> tuple[str, list[Figure | None]]:
    """The unit of a column, and its figures, of which those that it would show too roughly have their own."""
    values = [*values]
    known = [value for value in values if value is not None]
    scale = Scale.of(max(map(abs, known), default=0), unit, known)
    share = 1 / abs(total) if total else 0
    return scale.unit, [None if v is None else Figure(scale(v), v, min(1, abs(v) * share)) for v in values]


def cell(value: Any) -> str:
    """A table cell.  Numbers have digit groups and are right-aligned; control characters are escaped."""
    if isinstance(value, Figure):
        width = round(100 * value.share, 1)
        bar = f";background:linear-gradient(to right,#56b4e955 {width}%,transparent {width}%)" if width else ""
        return f'<td style="text-align:right{bar}" title="{value.exact:,}">{escape(value.text)}</td>'
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
    above = f'<caption style="text-align:left;min-width:30em">{escape(printable(caption))}</caption>' if caption else ""
    more = f"<p>... {len(rows) - _MOST:,} more</p>" if len(rows) > _MOST else ""
    return f"<table>{above}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{more}"


def notes(log: Any) -> str:
    """What a log has to say about a result, a paragraph for each note."""
    found = [*log.warnings, *(line for name in _COUNTS for line in getattr(log, name).lines())]
    return "".join(f"<p>{escape(printable(text))}</p>" for text in found)


def pairs(values: Mapping[str, Any], caption: str = "") -> str:
    """Names and values; maps are flattened: "totals: cpu"."""
    return facts(_flat(values), caption)


def facts(rows: Iterable[tuple[str, Any]], caption: str = "") -> str:
    """Names and values, numbers in line with the texts among them."""
    shown = ((name, f"{v:,}" if isinstance(v, (int, float)) and not isinstance(v, bool) else v) for name, v in rows)
    return table(("", ""), shown, caption)


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
