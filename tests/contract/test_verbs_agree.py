"""All verbs show the same default value type, totals and names of a file, with every value type and filter.

`top` is compared with `info`, whose totals are those of the rows as read, and all others with `top`.  Inlined functions
have the same names and costs in all of them.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import parquet

import fastprof
from fastprof import formats
from fastprof.core.errors import FastprofError, UsageError
from fastprof.verbs import annotate
from fastprof.verbs.annotate.sources import Sources
from tests.contract.dump import files
from tests.support.chosen import CHOSEN, cases
from tests.support.conversions import format_of
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
    """The available files with symbols depend on the machine, and conversions keep the frames of allocators."""
    if verb in (of_top, of_diff, of_annotate, of_report) and "keep_allocator" not in options:
        try:
            return without_symbols(verb, *inputs, keep_allocator=True, **options)
        except UsageError as error:
            if "keep_allocator=True has no effect" not in str(error):
                raise
    try:
        return verb(*inputs, symbolize=False, **options)
    except UsageError as error:
        if "symbolize=False has no effect" not in str(error):
            raise
        return verb(*inputs, **options)


def nonzero(totals: Mapping[Any, int]) -> dict[Any, int]:
    return {name: total for name, total in totals.items() if total}


@cache
def said_of(path: Path) -> Said:
    facts = fastprof.info(path).facts
    totals = facts.get("totals", {})
    return Said(facts["view"], facts.get("default_value_type", next(iter(totals), "")), totals)


class Figures(NamedTuple):
    value: str  # type
    total: int
    by_name: Mapping[str, float]  # self cost by function


def of_top(path: Path, _: Path, shown: str, **options: Any) -> Figures:
    found = fastprof.top(path, n=0, **options)
    by_name = Counter[str]()
    for row in found.rows:
        if row.cycle is None or row.name != f"<cycle {row.cycle}>":
            by_name[row.name] += row.self
    assert sum(by_name.values()) == found.total
    return Figures(found.value.name, found.total, by_name)


def of_diff(path: Path, _: Path, shown: str, **options: Any) -> Figures | None:
    """Of a file with itself."""
    found = fastprof.diff(path, path, n=0, **options)
    assert found.n_changed == 0
    by_name = Counter[str]()
    for row in found.rows:
        assert row.old == row.new
        by_name[row.name] += row.old[found.shown]
    if not (timed(path) or options.keys() - {"symbolize"}):
        assert nonzero({value.name: value.old for value in found.values}) == nonzero(said_of(path).totals)
    shown = found.values[found.shown] if found.values else None
    return Figures(shown.name, shown.old, by_name) if shown else None


def of_annotate(path: Path, _: Path, shown: str, **options: Any) -> Figures | None:
    """Lines have no functions, but files and callees: these have to be those of `top`.

    Lines are those of every file, also of unknown ones and of those with calls only: as if all were found, empty.
    """
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
            return None
        for listing in found.listings:
            name = listing.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            for line in chain.from_iterable(listing.blocks()):
                files[name] += line.values[found.value] if line.values else 0
                for call in line.calls:
                    callees[call.function, call.object] += call.values[found.value]

    of_top = Counter[str]()
    for row in fastprof.top(path, n=0, by="file", **options).rows:
        of_top[row.file] += row.self
    assert nonzero(files) == nonzero(of_top)
    assert nonzero(callees) == nonzero(called(path, **options))
    return Figures(found.value_types[found.value].name, found.totals[found.value], {})


def called(path: Path, **options: Any) -> Counter[tuple[str, str]]:
    """The inclusive costs of all calls, by the callee's name and object, as `top` has them."""
    callees = Counter[tuple[str, str]]()
    try:
        rows = fastprof.top(path, n=0, tree="callers", cycles=False, **options).rows
    except UsageError as error:
        assert "the profile has only self costs, no calls" in str(error)
        return callees
    for row in rows:
        callees[row.name, row.object] += sum(call.cost for call in row.callers)
    return callees


def of_report(path: Path, folder: Path, shown: str, **options: Any) -> Figures | None:
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
    return Figures(named[k], page.head["totals"][k], {} if page.head["rows"] > 2000 else by_name)


def of_table(rows: Iterable[Mapping[str, Any]], shown: str) -> Figures | None:
    """Of spans, samples or a graph."""
    by_name, total = Counter[str](), 0
    for row in rows:
        column = {"time": "self"}.get(shown, "") if "self" in row else f"{shown}_2" if shown == "thread" else shown
        cost = row[column] if column else 1
        if row.get("kind", "cost") == "cost" and cost is not None:
            by_name[row["function"] or ""] += cost
            total += cost
    return Figures(shown, total, by_name) if by_name else None


def of_rows(path: Path, _: Path, shown: str, **options: Any) -> Figures | None:
    if timed(path):
        options.pop("value", None)
    with fastprof.open(path, **options) as profile:
        return of_table(profile.rows(), shown)


def of_parquet(path: Path, folder: Path, shown: str, **options: Any) -> Figures | None:
    if timed(path):
        options.pop("value", None)
    fastprof.convert(path, folder / "out.parquet", **options)
    return of_table(parquet.read_table(folder / "out.parquet").to_pylist(), shown)


def of_merge(path: Path, folder: Path, shown: str, **options: Any) -> Figures:
    """Of a single file."""
    later = {"value": options.pop("value")} if timed(path) and "value" in options else {}
    if path == CORPUS / MIXED:  # its parts have different defaults
        options, later = options | {"union": True}, {"value": shown}
    fastprof.merge([path], folder / "out.fpa", **options)
    return topped(folder / "out.fpa", **later)


def of_pprof(path: Path, folder: Path, shown: str, **options: Any) -> Figures:
    fastprof.convert(path, folder / "out.pb", **options)
    return topped(folder / "out.pb")


def of_callgrind(path: Path, folder: Path, shown: str, **options: Any) -> Figures:
    fastprof.convert(path, folder / "out.callgrind", **options)
    return topped(folder / "out.callgrind")


def of_folded(path: Path, folder: Path, shown: str, **options: Any) -> Figures | None:
    """The file does not name its value type."""
    log = fastprof.convert(path, folder / "out.folded", nanoseconds=True, **options)
    if any(entry.code == "negative-values" for entry, _, _ in log.not_representable.counted()):
        return None
    if not (folder / "out.folded").stat().st_size:
        return Figures(shown, 0, {})
    return topped(folder / "out.folded")._replace(value=shown)


def topped(path: Path, **options: Any) -> Figures:
    found: Figures = without_symbols(of_top, path, path, "", **options)
    return found


VERBS = (
    of_diff,
    of_annotate,
    of_report,
    of_rows,
    of_parquet,
    of_merge,
    of_pprof,
    of_callgrind,
    of_folded,
)


def figures(verb: Callable[..., Figures | None], path: Path, folder: Path, shown: str, options: Any) -> Any:
    """The result of a verb, or the end of its error, which names the wrong option.  `shown`: the value type of `top`,
    for verbs without a default."""
    try:
        found: Figures | None = without_symbols(verb, path, folder, shown, **options)
    except FastprofError as error:
        if re.search("no (row|sample) has a cost", str(error)):  # only zeros are left; no profile is written
            return None
        text = str(error).replace(f"{path} and 1 more:", f"{path}:")
        return re.sub(r" (.+), \1$", r" \1", text)  # times of both
    if found is None:
        return None
    # some formats cannot write some characters, or samples without a stack
    costs = Counter[str]()
    for name, cost in found.by_name.items():
        name = re.sub(r"[^ -~]|\\x..|\\0|\?", "", name)
        if name and not name.startswith(("[", "<cycle ", " (")):
            costs[name] += cost
    return found._replace(by_name=nonzero(costs))


def differences(
    verb: Callable[..., Any], found: Mapping[str, float], expected: Mapping[str, float]
) -> dict[str, float]:
    if verb is of_folded:  # tells functions of equal names apart; changes blanks and signs
        found, expected = in_letters(unmarked(found, expected)), in_letters(expected)
    if verb is of_report:  # a page has doubles
        expected = {name: float(cost) for name, cost in expected.items()}
    names = {*found, *expected}
    return {name: found.get(name, 0) - expected.get(name, 0) for name in names}


def unmarked(costs: Mapping[str, float], names: Mapping[str, float]) -> Counter[str]:
    """Costs by name without what tells equal names apart: `main` for `main (b.h)`."""
    found = Counter[str]()
    for name, cost in costs.items():
        cuts = [m.start() for m in re.finditer(r" \(", name)]
        found[next((name[:at] for at in (len(name), *cuts) if name[:at] in names), name)] += cost
    return found


def in_letters(costs: Mapping[str, float]) -> Counter[str]:
    found = Counter[str]()
    for name, cost in costs.items():
        found[re.sub(r" \[\d+\]$|[\W_]", "", name)] += cost
    return found


def agree(path: Path, folder: Path, options: dict[str, Any]) -> Figures | None:
    """Checks that all verbs give the figures of `top`, or refuse with its message.  Returns them, if any."""
    slack = 1000 if timed(path) else 0
    expected = figures(of_top, path, folder, "", options)
    shown = "" if isinstance(expected, str) else expected.value
    for verb in VERBS:
        found = figures(verb, path, folder, shown, options)
        where = f"{verb.__name__} {options}"
        if isinstance(expected, str):
            assert found == expected, where
        elif isinstance(found, str):
            assert verb is of_folded and re.search("no row can be written|half a microsecond", found), where
        elif found is None:
            assert verb is of_folded or not (expected.total or expected.by_name), where
        else:
            assert found.value == expected.value, where
            assert found.total == pytest.approx(expected.total, abs=slack), where
            if found.by_name or not expected.by_name:
                assert {
                    n: d for n, d in differences(verb, found.by_name, expected.by_name).items() if abs(d) > slack
                } == {}
    return None if isinstance(expected, str) else expected


def timed(path: Path) -> bool:
    return said_of(path).view == "timeline"


@pytest.mark.parametrize("file", cases(FILES))
def test_verbs_agree(file: str, tmp_path: Path) -> None:
    path = CORPUS / file
    said, top = said_of(path), agree(path, tmp_path, {})
    assert top
    if said.view != "timeline":
        assert (top.value, top.total) == (said.default or top.value, said.total)
        out = tmp_path / "out.pb"  # not written without a cost
        written = nonzero(fastprof.info(out).facts.get("totals", {})) if out.exists() else {}
        assert written == nonzero({name: n for name, n in said.totals.items() if file != MIXED or name != "time"})


def test_each_format_is_chosen() -> None:
    assert {format_of(file) for file in CHOSEN} == {f.name for f in formats.formats() if f.reader}
    assert {*CHOSEN} <= {*FILES}


def choices(path: Path) -> Iterator[dict[str, Any]]:
    """Value types, filters and renames: of what the file has, and of what it lacks."""
    said = said_of(path)
    values = ["time", "calls"] if timed(path) else [*said.totals][:2]
    yield from ({"value": value} for value in values)
    yield from ({"part": 1}, {"part": 9}, {"function": "no such"}, {"mod_funcname": ("s/^(.)/X\\1/",)})
    rows = without_symbols(fastprof.top, path).rows
    function = re.escape(max(rows, key=lambda row: row.self).name) if rows else "main"
    yield from ({"function": function} | value for value in ({}, *({"value": value} for value in values[-1:])))
    with fastprof.open(path) as profile:
        first: dict[str, Any] = next(profile.rows(), {})
        if first.get("ts") is not None:
            yield {"time_range": ":60%"}
        yield {"threads": (first.get("thread") or 1,)}
        for key, label in json.loads(first.get("labels") or "{}").items() if not timed(path) else ():
            yield {"label": (f"{key}={label}",)}
            break


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", CHOSEN[::2])
def test_verbs_agree_on_values_and_filters(file: str, tmp_path: Path) -> None:
    """Either all verbs give the same figures, or all refuse with the same message."""
    agreed = [agree(CORPUS / file, tmp_path, options) for options in choices(CORPUS / file)]
    assert sum(figures is not None for figures in agreed) > 2


@pytest.mark.parametrize("folder", sorted({format_of(file) for file in FILES}))
def test_sql_agrees(folder: str) -> None:
    """One query for all files of a format, because to open DuckDB takes longer than most of them."""
    paths, queries, totals = [CORPUS / file for file in FILES if format_of(file) == folder], [], []
    for n, path in enumerate(paths, 1):
        said = said_of(path)
        if said.view == "timeline" or not said.totals:
            continue
        table, condition = ("graph", "where kind = 'cost'") if said.view == "graph" else ("samples", "")
        default = without_symbols(fastprof.top, path, n=1).value.name
        # the table names its column for threads of samples like this
        name = "thread_2" if default == "thread" else default.replace('"', '""')
        schema = f"p{n}." if len(paths) > 1 else ""
        queries.append(f'select {n}, coalesce(sum("{name}"), 0) from {schema}{table} {condition}')
        totals.append((n, said.totals[default]))
    if queries:
        with fastprof.sql(paths, " union all ".join(queries)) as answer:
            assert sorted(answer.rows()) == totals


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


@pytest.mark.parametrize("file", cases(FILES))
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
