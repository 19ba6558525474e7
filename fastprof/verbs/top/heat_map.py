"""A matrix as a heat map: a page without scripts."""

from __future__ import annotations

from html import escape

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.errors import printable
from fastprof.core.html import STYLE
from fastprof.core.messages import counted

if TYPE_CHECKING:
    from fastprof.verbs.top import Top
    from fastprof.verbs.top.matrix import Matrix, Row

_LONGEST = 120  # characters of a name
_ABOVE, _BELOW = "220 50 30", "40 110 220"  # red, blue
_STYLE = f"""{STYLE}\
table{{border-collapse:collapse;margin:6px 4px;font-variant-numeric:tabular-nums}}
th,td{{padding:2px 6px;white-space:nowrap;text-align:right;font-weight:normal}}
th[scope=row]{{text-align:left;position:sticky;left:0;background:var(--back)}}
thead th{{position:sticky;top:0;background:var(--back);vertical-align:bottom;font-weight:600}}
thead th.c{{writing-mode:vertical-rl}}
tbody tr:hover th{{background:#8882}}
"""


def page(top: Top, found: Matrix) -> str:
    """The whole page."""
    inputs = ", ".join(top.inputs) if len(top.inputs) <= 3 else counted(len(top.inputs), "input")
    title = _text(f"{inputs}: functions by {found.key}")
    value = _text(f"{top.value.name} {top.value.unit}".strip())
    more = f"<p>... {found.n_rows - len(found.rows):,} more functions</p>" if found.n_rows > len(found.rows) else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>\n{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
        f"<p>Each cell is a function's share of the {value} of its column, in percent.  Red cells are above the median "
        "of their row, blue ones below it.  Functions and columns that differ most from the medians come first.</p>\n"
        f"{_table(found)}{more}\n</body></html>\n"
    )


def _table(found: Matrix) -> str:
    columns = "".join(
        f'<th class="c" scope="col" title="{column.total:,} in all">{_text(column.name)}</th>'
        for column in found.columns
    )
    differences = "".join(f"<td>{100 * column.difference:.1f}</td>" for column in found.columns)
    most = max((abs(row.difference) for row in found.rows), default=0) or 1
    rows = "\n".join(f"<tr>{_row(found, row, most)}</tr>" for row in found.rows)
    return (
        f'<table><thead><tr><th scope="row">function</th><th class="c" scope="col">median</th>{columns}</tr>\n'
        f'<tr><th scope="row">difference from the medians</th><td></td>{differences}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table>"
    )


def _row(found: Matrix, row: Row, most: float) -> str:
    where = _text(" ".join(filter(None, (row.file, row.object))))
    cells = [f'<th scope="row" title="{where}">{_text(row.name)}</th><td>{100 * row.median:.1f}</td>']
    for share, cost, column in zip(found.shares(row), row.costs, found.columns, strict=True):
        depth = round(80 * min(1, abs(share - row.median) / most))
        colour = _ABOVE if share > row.median else _BELOW
        style = f' style="background:rgb({colour}/{depth}%)"' if depth else ""
        title = f"{_text(column.name)}: {cost:,}, {100 * (share - row.median):+.1f}"
        cells.append(f'<td{style} title="{title}">{100 * share:.1f}</td>')
    return "".join(cells)


def _text(text: str) -> str:
    text = printable(text)
    return escape(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
