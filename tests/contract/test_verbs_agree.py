"""All verbs show the same default value type, totals and names of a file.

`info` is what the others are compared with; its totals are those of the rows as they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.core.errors import UsageError
from tests.contract.dump import files
from tests.support.pages import Page
from tests.support.paths import CORPUS, needs_shared, shared_data

# Archives of several profiles, and Arrow files, which are not read, are other inputs
BEYOND = {"callgrind/good/everything.callgrind", "folded/good/two_fractions.folded"}  # sums that pass 2^63 - 1
FILES = [
    file
    for file in files("good")
    if file not in BEYOND and not file.startswith(("archive/good/several", "arrow/", "parquet/"))
]


# Parts with other value types: a merge, which `diff` is, puts them in an order that does not depend on that of inputs,
# and pprof takes those of the first part
MIXED = "trace-event/good/sampled_mixed.json"


class Said(NamedTuple):
    """What `info` says."""

    view: str
    default: str  # value type
    totals: dict[str, int]

    @property
    def total(self) -> int:
        return self.totals.get(self.default, 0)


def without_symbols(verb: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Which files with symbols there are differs from machine to machine."""
    try:
        return verb(*inputs, symbolize=False, **options)
    except UsageError as error:
        assert "symbolize=False would do nothing" in str(error)
        return verb(*inputs, **options)


def nonzero(totals: dict[str, int]) -> dict[str, int]:
    return {name: total for name, total in totals.items() if total}


def said_of(path: Path) -> Said:
    facts = fastprof.info(path).facts
    totals = facts.get("totals", {})
    return Said(facts["view"], facts.get("default value type", next(iter(totals), "")), totals)


@pytest.mark.parametrize("file", FILES)
def test_verbs_agree(file: str, tmp_path: Path) -> None:
    path = CORPUS / file
    said = said_of(path)
    top = without_symbols(fastprof.top, path, n=0)
    by_name = Counter[tuple[str, str, str]]()
    for row in top.rows:
        if row.cycle is None or row.name != f"<cycle {row.cycle}>":
            by_name[row.name, row.file, row.object] += row.self
    assert sum(by_name.values()) == top.total
    if said.view != "timeline":
        assert (top.value.name, top.total) == (said.default or top.value.name, said.total)

    # diff: of a file with itself
    same = without_symbols(fastprof.diff, path, path, n=0)
    assert same.n_changed == 0
    if same.values:
        shown = same.values[same.shown]
        if said.view == "timeline":
            assert (shown.old, shown.new) == (top.total, top.total)
        else:
            if file != MIXED:
                assert shown == (top.value.name, top.value.unit, top.total, top.total)
            assert nonzero({v.name: v.old for v in same.values}) == nonzero(said.totals)
    found = Counter[tuple[str, str, str]]()
    for row in same.rows:
        found[row.name, row.file, row.object] += row.old[same.shown]
    assert file == MIXED or (+found == +by_name and -found == -by_name)

    # annotate
    annotated = without_symbols(fastprof.annotate, path)
    if annotated.totals:
        assert annotated.totals[annotated.value] == top.total
        if said.view != "timeline":
            assert annotated.value_types[annotated.value].name == top.value.name

    # report
    without_symbols(fastprof.report, path, tmp_path / "page.html")
    head = Page(tmp_path / "page.html").head
    if head["events"]:
        values = dict(zip((value["event"] for value in head["values"]), head["totals"], strict=True))
        # of a timeline ticks become nanoseconds context by context, so half of one may be lost in each
        assert values[head["shown"]] == pytest.approx(float(top.total), abs=said.view == "timeline" and 1000)
        if said.view != "timeline":
            assert head["events"][head["shown"]]["name"] == top.value.name

    # sql
    if said.view != "timeline" and said.totals:
        table, condition = ("graph", "where kind = 'cost'") if said.view == "graph" else ("samples", "")
        name = said.default.replace('"', '""')
        with fastprof.sql(path, f'select coalesce(sum("{name}"), 0) from {table} {condition}') as answer:
            assert [*answer.rows()] == [(top.total,)]

    # convert: a format with one value type per column, and one with a single one
    if said.view != "timeline":
        out = tmp_path / "out.pb"
        without_symbols(fastprof.convert, path, out)
        again = fastprof.info(out).facts
        assert nonzero(again.get("totals", {})) == nonzero(
            {name: total for name, total in said.totals.items() if file != MIXED or name != "time"}
        )
        assert again.get("default value type", said.default) == said.default


def least(profile: Path, **options: Any) -> int:
    """Checks that no function costs less inclusively than by itself, in any value type.  How many were looked at."""
    looked_at = 0
    for value in said_of(profile).totals:
        for cycles in (True, False):
            found = without_symbols(fastprof.top, profile, n=0, value=value, cycles=cycles, **options)
            if any(row.self < 0 or row.inclusive < 0 for row in found.rows if row.inclusive is not None):
                continue  # a difference
            below = [row for row in found.rows if row.inclusive is not None and row.inclusive < row.self]
            assert not below, (value, cycles)
            looked_at += len(found.rows)
    return looked_at


@pytest.mark.parametrize("file", FILES)
def test_inclusive_costs_are_not_below_self_costs(file: str, tmp_path: Path) -> None:
    """Also of the graph that becomes of stacks and timelines."""
    path = CORPUS / file
    if least(path) and said_of(path).view != "timeline":
        out = tmp_path / "out.callgrind"
        without_symbols(fastprof.convert, path, out)
        least(out)


SESSIONS = ("abi-i386", "abi-x86_64", "callgraph", "callgraph-cross", "jit", "threads")


@needs_shared
@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_and_their_callgrind_output_cost_the_same(name: str, tmp_path: Path) -> None:
    """With symbols: arcs between functions of one image are calls to itself without them."""
    options: dict[str, Any] = {"sysroot": str(shared_data("oprofile", "root"))}
    session, out = shared_data("oprofile", "sessions", name), tmp_path / "out.callgrind"
    fastprof.convert(session, out, **options)

    def figures(profile: Path, **more: Any) -> Counter[tuple[Any, ...]]:
        rows = fastprof.top(profile, n=0, **more).rows
        assert all(row.inclusive is not None and row.inclusive >= row.self for row in rows)
        return Counter((row.name, row.object, row.self, row.inclusive, row.calls) for row in rows)

    assert figures(out) == figures(session, **options)
    fastprof.report(session, tmp_path / "page.html", **options)
    rows = Page(tmp_path / "page.html").rows()
    assert rows and all(inclusive is not None and inclusive >= own for own, inclusive in rows.values())
