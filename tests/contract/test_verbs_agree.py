"""All verbs show the same default value type, totals and names of a file, with every value type and filter.

The others are compared with `info`; its totals are those of the rows as read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from fastprof.verbs import annotate
from fastprof.verbs.annotation import Annotation
from fastprof.verbs.sources import Sources
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


# Parts with other value types, one of which pprof leaves out
MIXED = "trace-event/good/sampled_mixed.json"


class Said(NamedTuple):
    """The output of `info`."""

    view: str
    default: str  # value type
    totals: dict[str, int]

    @property
    def total(self) -> int:
        return self.totals.get(self.default, 0)


def without_symbols(verb: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """The available files with symbols depend on the machine."""
    try:
        return verb(*inputs, symbolize=False, **options)
    except UsageError as error:
        if "symbolize=False has no effect" not in str(error):
            raise
        return verb(*inputs, **options)


def nonzero(totals: Mapping[Any, int]) -> dict[Any, int]:
    return {name: total for name, total in totals.items() if total}


def said_of(path: Path) -> Said:
    facts = fastprof.info(path).facts
    totals = facts.get("totals", {})
    return Said(facts["view"], facts.get("default_value_type", next(iter(totals), "")), totals)


class Annotated(NamedTuple):
    """All lines of a profile with costs, whatever its files are."""

    found: Annotation | None  # None: no rows
    files: Counter[str]  # self costs
    callees: Counter[tuple[str, str]]  # inclusive costs of calls, by the callee's name and object


def known(file: str) -> str:
    return "" if file == "???" else file


def annotated_as_a_whole(path: Path, **options: Any) -> Annotated:
    """Of every file, also of unknown ones and of those with calls only: as if all were found, without lines."""
    files, callees = Counter[str](), Counter[tuple[str, str]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sources, "find", lambda self, name: os.devnull)
        patch.setattr(annotate, "ends_alike", lambda wanted, file: True)
        patch.setattr(annotate, "UNKNOWN", ())
        try:
            found = fastprof.annotate(path, "any", calls=0, **options)
        except FastprofError as error:
            if "no costs in a file named any" not in str(error):
                raise
            return Annotated(None, files, callees)
        for listing in found.listings:
            name = listing.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            for line in chain.from_iterable(listing.blocks()):
                files[known(name)] += line.values[found.value] if line.values else 0
                for call in line.calls:
                    callees[call.function, call.object] += call.values[found.value]
    return Annotated(found, files, callees)


def called(path: Path, **options: Any) -> Counter[tuple[str, str]]:
    """The inclusive costs of all calls, by the callee's name and object, as `top` has them."""
    callees = Counter[tuple[str, str]]()
    try:
        rows = fastprof.top(path, n=0, tree="caller", cycles=False, **options).rows
    except UsageError as error:
        assert "the profile has only self costs, no calls" in str(error)
        return callees
    for row in rows:
        callees[row.name, row.object] += sum(call.cost for call in row.callers)
    return callees


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
        assert shown == (top.value.name, top.value.unit, top.total, top.total)
        if said.view != "timeline":
            assert nonzero({v.name: v.old for v in same.values}) == nonzero(said.totals)
    found = Counter[tuple[str, str, str]]()
    for row in same.rows:
        found[row.name, row.file, row.object] += row.old[same.shown]
    assert +found == +by_name and -found == -by_name

    # annotate: self costs by file, calls by callee
    annotated = without_symbols(annotated_as_a_whole, path)
    if annotated.found:
        value = annotated.found.value
        assert annotated.found.totals[value] == top.total
        assert annotated.found.value_types[value].name == top.value.name
        by_file = Counter[str]()
        for row in without_symbols(fastprof.top, path, n=0, by="file").rows:
            by_file[known(row.file)] += row.self
        assert nonzero(annotated.files) == nonzero(by_file)
        assert nonzero(annotated.callees) == nonzero(without_symbols(called, path))

    # report
    without_symbols(fastprof.report, path, tmp_path / "page.html")
    head = Page(tmp_path / "page.html").head
    if head["events"]:
        values = dict(zip((value["event"] for value in head["values"]), head["totals"], strict=True))
        # ticks of a timeline become nanoseconds per context, so each context may lose up to half of one
        assert values[head["shown"]] == pytest.approx(float(top.total), abs=said.view == "timeline" and 1000)
        assert head["events"][head["shown"]]["name"] == top.value.name

    # sql
    if said.view != "timeline" and said.totals:
        table, condition = ("graph", "where kind = 'cost'") if said.view == "graph" else ("samples", "")
        # the table names its column for threads of samples like this
        name = "thread_2" if said.default == "thread" else said.default.replace('"', '""')
        with fastprof.sql(path, f'select coalesce(sum("{name}"), 0) from {table} {condition}') as answer:
            assert [*answer.rows()] == [(top.total,)]

    # convert: a format with one value type per column, and one with a single value type
    if said.view != "timeline":
        out = tmp_path / "out.pb"
        without_symbols(fastprof.convert, path, out)
        again = fastprof.info(out).facts
        assert nonzero(again.get("totals", {})) == nonzero(
            {name: total for name, total in said.totals.items() if file != MIXED or name != "time"}
        )
        assert again.get("default_value_type", said.default) == said.default


Figures = tuple[str, int, Counter[str]]  # value type, total, self cost by function


def of_top(path: Path, _: Path, **options: Any) -> Figures:
    found = fastprof.top(path, n=0, **options)
    by_name = Counter[str]()
    for row in found.rows:
        if row.cycle is None or row.name != f"<cycle {row.cycle}>":
            by_name[row.name] += row.self
    return found.value.name, found.total, by_name


def of_diff(path: Path, _: Path, **options: Any) -> Figures | None:
    found = fastprof.diff(path, path, n=0, **options)
    by_name = Counter[str]()
    for row in found.rows:
        by_name[row.name] += row.old[found.shown]
    value = found.values[found.shown] if found.values else None
    return (value.name, value.old, by_name) if value else None


def of_annotate(path: Path, _: Path, **options: Any) -> Figures | None:
    found = fastprof.annotate(path, **options)
    value = found.value
    return (found.value_types[value].name, found.totals[value], Counter()) if found.totals else None


def of_report(path: Path, folder: Path, **options: Any) -> Figures | None:
    fastprof.report(path, folder / "page.html", **options)
    page = Page(folder / "page.html")
    events = page.head["events"]
    named = [events[value["event"]]["name"] for value in page.head["values"]]
    if not named:
        return None
    k = named.index(events[page.head["shown"]]["name"]) if "value" not in options else 0
    by_name = Counter[str]()
    for (name, *_), (own, _) in page.rows(k).items():
        by_name[name] += int(own)
    return named[k], page.head["totals"][k], Counter() if page.head["rows"] > 2000 else by_name


def of_pprof(path: Path, folder: Path, **options: Any) -> Figures:
    fastprof.convert(path, folder / "out.pb", **options)
    found: Figures = without_symbols(of_top, folder / "out.pb", folder)
    return found


def of_callgrind(path: Path, folder: Path, **options: Any) -> Figures:
    fastprof.convert(path, folder / "out.callgrind", **options)
    found: Figures = without_symbols(of_top, folder / "out.callgrind", folder)
    return found


def of_folded(path: Path, folder: Path, **options: Any) -> Figures | None:
    fastprof.convert(path, folder / "out.folded", **options)
    return None  # units differ, negative values are left out


VERBS = (of_diff, of_annotate, of_report, of_pprof, of_callgrind, of_folded)


def figures(verb: Callable[..., Figures | None], path: Path, folder: Path, options: dict[str, Any]) -> Any:
    """The result of a verb, or the end of its error, which names the wrong option."""
    try:
        found = without_symbols(verb, path, folder, **options)
    except FastprofError as error:
        return str(error).replace(f"{path} and 1 more:", f"{path}:")
    if found is None:
        return None
    # a page has doubles; some formats cannot write some characters, or samples without a stack
    costs = {re.sub(r"[^ -~]|\\x..|\\0|\?", "", name): float(cost) for name, cost in found[2].items() if cost}
    return (*found[:2], {(name, cost) for name, cost in costs.items() if not name.startswith(("[", "<cycle "))})


@pytest.mark.parametrize("file", FILES[::2])
def test_verbs_agree_on_values_and_filters(file: str, tmp_path: Path) -> None:
    """Either all verbs give the same figures, or all refuse with the same message."""
    path, said = CORPUS / file, said_of(CORPUS / file)
    timed = said.view == "timeline"
    name = max((row for row in without_symbols(fastprof.top, path).rows), key=lambda row: row.self, default=None)
    function = {"function": re.escape(name.name if name else "main")}
    filters: list[dict[str, Any]] = [{"part": 1}, {"part": 9}, function, {"function": "no such"}]
    filters += [{"mod_funcname": ("s/^(.)/X\\1/",)}]
    values = [{"value": value} for value in (["time", "calls"] if timed else [*said.totals][:2])]
    for options in (*values, *filters, *(function | value for value in values[-1:])):
        expected = figures(of_top, path, tmp_path, options)
        for verb in VERBS:
            found = figures(verb, path, tmp_path, options)
            where = f"{verb.__name__} {options}"
            if isinstance(expected, str):
                assert found == expected, where
            elif isinstance(found, str):
                assert verb is of_folded and re.search("no row can be written|half a microsecond", found), where
            elif found is not None:
                assert found[0] == expected[0], where
                assert found[1] == pytest.approx(expected[1], abs=1000 if timed else 0), where
                assert timed or found[2] <= expected[2], where


def least(profile: Path, **options: Any) -> int:
    """Checks that no function's inclusive cost is below its self cost, in any value type.  Returns the number of
    functions checked."""
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
    """Also for the graph made from stacks and timelines."""
    path = CORPUS / file
    if least(path) and said_of(path).view != "timeline":
        out = tmp_path / "out.callgrind"
        without_symbols(fastprof.convert, path, out)
        least(out)


SESSIONS = ("abi-i386", "abi-x86_64", "callgraph", "callgraph-cross", "jit", "threads")


@needs_shared
@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_and_their_callgrind_output_cost_the_same(name: str, tmp_path: Path) -> None:
    """With symbols: without them, arcs between functions of one image are calls to itself."""
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
