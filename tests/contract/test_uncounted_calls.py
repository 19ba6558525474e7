"""Calls that nobody counted have no number: not in verbs of samples, not in a graph made of them, not in verbs of that.

Each file of samples in the corpus without a value type that counts calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from tests.contract.dump import files
from tests.support.chosen import cases
from tests.support.pages import Page
from tests.support.paths import CORPUS

BEYOND = {"callgrind/good/everything.callgrind", "folded/good/two_fractions.folded"}  # sums that pass 2^63 - 1
FILES = [
    file
    for file in files("good")
    if file not in BEYOND and not file.startswith(("archive/good/several", "arrow/", "parquet/"))
]


def without_symbols(verb: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    try:
        return verb(*inputs, symbolize=False, **options)
    except UsageError as error:
        assert "symbolize=False has no effect" in str(error)
        return verb(*inputs, **options)


def counts(path: Path, folder: Path, of: str) -> Iterator[Any]:
    """All numbers of calls in the output of the verbs."""
    found = without_symbols(fastprof.top, path, n=0, tree="both")
    for row in found.rows:
        yield row.calls
        yield from (call.calls for call in (*row.callers, *row.callees))
    found = without_symbols(fastprof.annotate, path, calls=0)
    for line in chain.from_iterable(chain.from_iterable(listing.blocks() for listing in found.listings)):
        yield from (call.times for call in line.calls)
    without_symbols(fastprof.report, path, folder / f"{of}.html")
    columns = Page(folder / f"{of}.html").columns
    for name in columns:
        if name.startswith(("row calls", "arc calls")):
            yield from columns[name]


@pytest.mark.parametrize("file", cases(FILES))
def test_calls_that_nobody_counted_have_no_number(file: str, tmp_path: Path) -> None:
    path = CORPUS / file
    facts = fastprof.info(path).facts
    if facts["view"] != "stacks" or "calls" in map(str.lower, facts.get("totals", {})):
        return  # its calls are counted
    try:
        without_symbols(fastprof.convert, path, tmp_path / "out.callgrind")
    except FastprofError as error:
        assert "has a cost" in str(error)
        return
    text = (tmp_path / "out.callgrind").read_text("utf-8", "surrogateescape")
    assert set(re.findall(r"^calls=(\d+)", text, re.MULTILINE)) <= {"0"}
    assert "\ndesc: Calls: not counted" in text
    assert not any(counts(path, tmp_path, "samples"))
    assert not any(counts(tmp_path / "out.callgrind", tmp_path, "graph"))
    with fastprof.open(tmp_path / "out.callgrind") as profile:
        assert {row["calls"] for row in profile.rows()} <= {None}
    fastprof.convert(tmp_path / "out.callgrind", tmp_path / "again.callgrind")
    again = (tmp_path / "again.callgrind").read_text("utf-8", "surrogateescape")
    assert set(re.findall(r"^calls=(\d+)", again, re.MULTILINE)) <= {"0"}


@pytest.mark.parametrize("file", ["folded/good/recursion.folded", "callgrind/good/pprof_style.callgrind"])
def test_rows_without_counts_are_not_sorted_by_them(file: str) -> None:
    with pytest.raises(UsageError, match="calls: the profile does not count calls"):
        fastprof.top(CORPUS / file, sort="calls")
