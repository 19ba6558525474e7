"""The findings of a trend as a page without scripts of its own: a chart each, the profiles before and after compared,
and a heat map of functions over time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from math import log2

from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.errors import printable
from fastprof.verbs.trend.series import mean_of
from fastprof.verbs.trend.texts import figure_of, first_of, fitted, percent, sure

if TYPE_CHECKING:
    from fastprof.verbs.trend.result import Finding, Point, Trend

_LONGEST = 160  # characters of a name
_PATH = 240  # of a call path
_OTHERS, _COMMITS = 5, 50  # that are listed
_WIDTH, _HEIGHT, _LEFT = 640, 130, 70  # of a chart
_MOST_DOTS = 400
_CELLS = 120  # columns of the heat map
_STYLE = """\
:root{color-scheme:light dark}
body{font:14px system-ui,sans-serif;margin:1.5em;max-width:72em}
section{border-top:1px solid #8886;padding:.6em 0}
h1,h2,p,li,summary,th{overflow-wrap:anywhere}
h1{font-size:1.3em}
h2{font-size:1.05em;margin:.3em 0}
svg{display:block;max-width:100%}
svg text{font:11px system-ui,sans-serif;fill:currentColor}
.band{fill:#8883}.level{stroke:#d33;stroke-width:1.5;fill:none}.at{stroke:#d33;stroke-dasharray:3 3}
.dot{fill:#27c}
table{border-collapse:collapse}td,th{text-align:left;font-weight:normal;padding:1px 8px 1px 0;white-space:nowrap}
table th{white-space:normal;min-width:12em;max-width:30em}
p,li{max-width:60em}
div{overflow-x:auto;margin:1em 0}a{color:inherit}td.n{text-align:right}.titles{color:GrayText}
summary{cursor:pointer}
iframe{width:100%;height:40em;border:1px solid #8886}
"""


class Compared(NamedTuple):
    """A profile before a finding and one after it."""

    before: Point
    after: Point
    frame: str = ""  # both in a page
    same: int = 0  # the number of the first finding with both
    why: str = ""  # there is no frame


def page(found: Trend, compared: Sequence[Compared] = ()) -> str:
    """The whole page.  `compared`: of each finding, or of none."""
    shown = figure_of(found)
    more = found.n_found - len(found.findings)
    charts = [_section(found, i, shown, compared[i] if compared else None) for i in range(len(found.findings))]
    last = f"<p>... {more:,} more findings</p>" if more else ""
    none = "" if found.findings else "<p>No function changed by more than the noise.</p>"
    title = _text(found.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{none}{_overview(found, shown)}{last}"
        f"{''.join(charts)}{_heat_map(found, shown)}\n</body></html>\n"
    )


def _overview(found: Trend, shown: Callable[[float], str]) -> str:
    """The findings as a table; each name leads to its chart."""
    rows = [
        f'<tr><th><a href="#f{i}">{_text(one.shown_name)}</a></th><td class="n">{percent(one.change)}</td>'
        f"<td>{_text(one.since)}</td><td>{shown(one.before)} &rarr; {shown(one.after)}</td><td>{one.shown_kind}</td>"
        f"<td>{escape(sure(one.p))}</td></tr>"
        for i, one in enumerate(found.findings)
    ]
    titles = "".join(f"<td>{title}</td>" for title in ("", "change", "since", "before and after", "kind", "sure"))
    return f'<div><table><tr class="titles">{titles}</tr>{"".join(rows)}</table></div>' if rows else ""


def _section(found: Trend, i: int, shown: Callable[[float], str], compared: Compared | None) -> str:
    one = found.findings[i]
    title = f"{_text(one.shown_name)}: {percent(one.change)} since {_text(one.since)}"
    where = " ".join(filter(None, (one.label, one.file, one.object)))
    facts = f"{shown(one.before)} &rarr; {shown(one.after)}, {one.kind}, {one.cost} cost, {escape(sure(one.p))}"
    notes = [_note(fitted(cause.text, _PATH), _share(cause.share), cause.text) for cause in one.causes]
    if one.others:
        what = "cost went to " if one.kind == "cost shift" else "callers: "
        names = first_of([other.name for other in one.others], _OTHERS)
        notes.append(_note(f"{what}{names}"))
    if one.left:
        notes.append(_note(f"left to test: {first_of(one.left, _COMMITS)}"))
    return (
        f'<section id="f{i}"><h2 title="{_text(where)}">{title}</h2>\n'
        f"<p>{facts}</p>\n{_chart(found, one, shown)}\n<ul>{''.join(notes)}</ul>{_both(found, i, compared)}</section>\n"
    )


def _both(found: Trend, i: int, of: Compared | None) -> str:
    if of is None:
        return ""
    names = f"{_text(of.before.name)} and {_text(of.after.name)}"
    if of.frame:
        return f"<details><summary>{names} compared</summary>{of.frame}</details>"
    if of.same != i:
        other = _text(found.findings[of.same].shown_name)
        return f'<p>{names} are compared <a href="#f{of.same}">at {other}</a>.</p>'
    command = printable(shlex.join(["fastprof", "report", of.before.input, of.after.input, "-o", "compared.html"]))
    return f"<p>{names} are not compared here: {_text(of.why)}.  This does: <code>{escape(command)}</code></p>"


def _note(text: str, share: str = "", whole: str = "") -> str:
    title = f' title="{escape(printable(whole))}"' if whole not in ("", text) else ""
    return f"<li{title}>{escape(printable(text))}{share}</li>"


def _share(share: float | None) -> str:
    return " (at the same point)" if share is None else f" ({100 * share:.0f} % of it)"


def _chart(found: Trend, one: Finding, shown: Callable[[float], str]) -> str:
    """The values, the levels before and after with a band of two standard deviations, and the first changed point."""
    values, n = one.values, len(one.values)
    known = [value for value in values if value is not None]
    low = min(0.9 * min(known), min(one.before, one.after) - 3 * one.noise, *known)
    high = max(*known, max(one.before, one.after) + 3 * one.noise)
    span = (high - low) or 1.0

    def x(i: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - 8) * (i + 0.5) / n, 1)

    def y(value: float) -> float:
        return round(8 + (_HEIGHT - 28) * (high - value) / span, 1)

    at = one.since_index
    end = next((i + 1 for i, point in enumerate(found.points) if one.until and point.name == one.until), n)
    parts = [_band(x(-0.5), x(at - 0.5), one.before, one.noise, y)] if at else []
    if one.kind == "drift":
        parts.append(f'<path class="level" d="M{x(at)} {y(one.before)}L{x(end - 1)} {y(one.after)}H{x(n - 0.5)}"/>')
    else:
        parts.append(_band(x(at - 0.5), x(end - 0.5), one.after, one.noise, y))
        if end < n:
            parts.append(_band(x(end - 0.5), x(n - 0.5), one.before, one.noise, y))
    parts.append(f'<line class="at" x1="{x(at - 0.5)}" x2="{x(at - 0.5)}" y1="4" y2="{_HEIGHT - 20}"/>')
    step = max(1, -(-n // _MOST_DOTS))
    for i in range(0, n, step):
        mean = mean_of(values[i : i + step])
        if mean is None:
            continue
        title = f"{_text(found.points[i].name)}: {shown(mean)}"
        parts.append(f'<circle class="dot" cx="{x(i)}" cy="{y(mean)}" r="2"><title>{title}</title></circle>')
    first, last = _text(found.points[0].name), _text(found.points[-1].name)
    parts += [
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">{first}</text>',
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 4}" text-anchor="end">{last}</text>',
        f'<text x="{_LEFT - 6}" y="{y(one.before) + 4}" text-anchor="end">{shown(one.before)}</text>',
    ]
    if abs(y(one.after) - y(one.before)) > 12:
        parts.append(f'<text x="{_LEFT - 6}" y="{y(one.after) + 4}" text-anchor="end">{shown(one.after)}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">{"".join(parts)}</svg>'


def _band(left: float, right: float, level: float, noise: float, y: Callable[[float], float]) -> str:
    top, bottom = y(level + 2 * noise), y(level - 2 * noise)
    return (
        f'<rect class="band" x="{left}" y="{top}" width="{max(0, right - left):.1f}" height="{bottom - top:.1f}"/>'
        f'<path class="level" d="M{left} {y(level)}H{right}"/>'
    )


# ---- functions over time


def _heat_map(found: Trend, shown: Callable[[float], str]) -> str:
    """The rows with the highest costs; red is above a row's median, blue below."""
    if not found.rows or len(found.points) < 2:
        return ""
    n = len(found.points)
    columns = min(n, _CELLS)
    bounds = [i * n // columns for i in range(columns + 1)]
    lines = []
    for row in found.rows:
        all_ = [mean_of(row.values[a:b]) for a, b in pairwise(bounds)]
        means = [(i, mean) for i, mean in enumerate(all_) if mean is not None]
        middle = sorted(mean for _, mean in means)[len(means) // 2] if means else 0.0
        cells = []
        for i, mean in means:
            ratio = log2(max(mean, 1e-9) / max(middle, 1e-9)) if mean != middle else 0.0
            depth = min(90, round(300 * abs(ratio)))
            colour = "220 50 30" if ratio > 0 else "40 110 220"
            if depth > 2:
                title = f"{_text(found.points[bounds[i]].name)}: {shown(mean)}"
                place = f'x="{6 * i}" width="6" height="14" fill="rgb({colour}/{depth}%)"'
                cells.append(f"<rect {place}><title>{title}</title></rect>")
        picture = f'<svg width="{6 * columns}" height="14" style="background:#8881">{"".join(cells)}</svg>'
        name = row.name or row.file or row.object or row.label
        lines.append(f"<tr><th>{_text(name)}</th><td>{shown(middle)}</td><td>{picture}</td></tr>")
    return (
        "<h2>Functions over time</h2><p>Red is above the median of a row, blue below it; full colour is a difference "
        f"of a fifth.</p><div><table>{''.join(lines)}</table></div>"
    )


def _text(text: str) -> str:
    text = printable(text)
    return escape(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
