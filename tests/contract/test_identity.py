"""Verbs agree on which functions and threads a profile has, what they are called and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.function_names import Place, marks
from fastprof.verbs.top import Top
from tests.support.pages import Page
from tests.support.paths import CORPUS

FILES = [
    path
    for path in sorted(CORPUS.glob("*/good/*"))
    if path.is_file() and path.suffix not in (".md", ".tsv") and path.stat().st_size < 60_000
]


def call(verb: Callable[..., Any], *paths: Path, **options: Any) -> Any:
    """A verb without the symbols of this machine, with the frames of allocators, which conversions keep.  None: it
    refuses, as there is nothing to rank or a sum exceeds 64 bits."""
    for more in ({"keep_allocator": True}, {}):
        try:
            return verb(*paths, **options, **more)
        except UsageError as error:
            if "has no effect" not in str(error):
                return None
        except FastprofError:
            return None
    return None


def top(path: Path, **options: object) -> Top | None:
    found: Top | None = call(fastprof.top, path, n=0, cycles=False, symbolize=False, **options)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_functions(path: Path, tmp_path: Path) -> None:
    if not (found := top(path)):
        return
    rows = {Place(row.name, row.file, row.line, row.object): row.self for row in found.rows}
    assert len(rows) == found.n_rows == len(found.rows)
    assert sum(rows.values()) == found.total
    if not call(fastprof.report, path, tmp_path / "x.html", prune=0.0, value=found.value.name, symbolize=False):
        return  # a sum of arcs exceeds 64 bits
    page = Page(tmp_path / "x.html")
    if page.head["rows"] == found.n_rows:
        own = [(*page.place(i), page.columns["row self 0"][i]) for i in range(page.head["rows"])]
        assert Counter(own) == Counter((at.name, at.file, at.object, float(own)) for at, own in rows.items())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_threads(path: Path) -> None:
    found, functions = top(path, by="thread"), top(path)
    if not found or not functions:
        return
    names = [row.name for row in found.rows]
    assert len({*names}) == len(names)
    assert sum(row.self for row in found.rows) == found.total
    assert abs(found.total - functions.total) <= len(names)  # of each thread, ticks are rounded to nanoseconds
    info = fastprof.info(path).facts
    if "thread_names" in info:
        assert {*names} - {"(unknown)"} <= {*info["thread_names"]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_folded(path: Path, tmp_path: Path) -> None:
    found, info = top(path), call(fastprof.info, path)
    if not found or not info or info.facts.get("view") != "stacks":  # stacks would be estimated, or times rounded
        return
    rows = {Place(row.name, row.file, row.line, row.object): row.self for row in found.rows if row.self}
    if min(rows.values(), default=-1) < 0:
        return  # folded stacks have no costs below 0
    fastprof.convert(
        path, tmp_path / "x.folded", to="folded", nanoseconds=True, value=found.value.name, symbolize=False
    )
    lines = [line.rpartition(" ") for line in (tmp_path / "x.folded").read_text(errors="replace").splitlines()]
    costs = Counter[str]()
    for stack, _, value in lines:
        costs[stack.rpartition(";")[2]] += int(value)
    assert sorted(costs.values()) == sorted(rows.values())
    texts = marks(Place(row.name, row.file, row.line, row.object) for row in found.rows)
    plain = {at: f"{at.name} ({texts[at]})" if at in texts else at.name for at in rows}
    if all(name.isascii() and name.isprintable() and not {*";#\\"} & {*name} for name in plain.values()):
        assert {name: own for at, own in rows.items() for name in [plain[at]]} == {**costs}
