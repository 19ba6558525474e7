"""Writes formats/matrix.md from conversions of rich profiles: `make docs`."""

from __future__ import annotations

from pathlib import Path

from tests.support import rich
from tests.support.attributes import NAMES
from tests.support.matrix import TOLD_BY, leg, pairs, said, view_of

TITLE = """\
# What survives a conversion

Made by `make docs` from the conversions that `tests/contract/test_round_trips.py` checks: profiles that use all of
their formats are written in every format and read back.  A conversion that loses something reports it, under one of
the codes in the last table (`--json`: `not_representable`).

`+` all of it is kept, `-` some or all of it is lost, `(+)` it depends on the source.  Options keep more: `--labels`,
`--per-thread`, `--frames=address`, `--args`, `--table`.
"""
VIEWS = {"timeline": "From timelines", "stacks": "From stacks", "graph": "From call graphs"}


def _cell(view: str, name: str, to: str) -> str:
    lost = [
        name in leg(source, target).lost
        for source, target in pairs()
        if target == to and view_of(source) == view and said(source)[name]
    ]
    return "" if not lost else "-" if all(lost) else "(+)" if any(lost) else "+"


def _rows(rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]


def _table(view: str) -> list[str]:
    targets = [*dict.fromkeys(to for source, to in pairs() if view_of(source) == view)]
    sources = [name for name in rich.sources() if view_of(name) == view]
    names = [name for name in NAMES if any(said(source)[name] for source in sources)]
    rows = [("", *targets), ("---", *("---",) * len(targets))]
    rows += [(name, *(_cell(view, name, to) for to in targets)) for name in names]
    formats = ", ".join(dict.fromkeys(rich.sources()[name].format for name in sources))
    return [f"## {VIEWS[view]}", "", f"Sources: {formats}.", "", *_rows(rows), ""]


def text() -> str:
    lines = [TITLE]
    for view in VIEWS:
        lines += _table(view)
    codes = [(name, ", ".join(f"`{code}`" for code in sorted(TOLD_BY[name]))) for name in NAMES]
    lines += ["## Codes", "", *_rows([("lost", "reported as"), ("---", "---"), *codes])]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    (Path(__file__).parent / "formats" / "matrix.md").write_text(text())
