"""`fastprof top` of graphs shows the figures of KCachegrind, callgrind_annotate and cg_annotate; each test names their
errors."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from fastprof import Top, top
from tests.differential.peers import need
from tests.differential.test_callgrind_reference import contents
from tests.differential.test_callgrind_tools import CACHEGRIND, CALLGRIND, newer, one_part, run
from tests.differential.test_kcachegrind import FILE, MISREAD, Listed, listing, recorded
from tests.reference.cg_annotate import listed
from tests.reference.kcachegrind import Function, Loader, Shown, base_name, collapse, cycles, load
from tests.support.paths import needs_shared, shared_data

pytestmark = needs_shared


class Shows(NamedTuple):
    """One function, and its callers and callees by name: their costs and calls added up."""

    inclusive: int
    own: int
    called: int
    name: str
    object: str
    callers: frozenset[tuple[str, int, int]]
    callees: frozenset[tuple[str, int, int]]


def by_name(calls: list[tuple[str, int, int]]) -> frozenset[tuple[str, int, int]]:
    """Cycles are numbered differently by each program."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, cost, count in calls:
        known = sums[re.sub(r"<cycle \d+>", "<cycle>", name)]
        known[0] += cost
        known[1] += count
    return frozenset((name, cost, count) for name, (cost, count) in sums.items())


def as_shown(found: Top) -> Counter[Shows]:
    """Names and objects as KCachegrind shows them."""
    rows: Counter[Shows] = Counter()
    for row in found.rows:
        arcs = []
        for calls in (row.callers, row.callees):
            # the name marks the cycle itself
            marks = [f" <cycle {c.cycle}>" if c.cycle and not c.name.startswith("<cycle") else "" for c in calls]
            named = ["" if c.name == "???" else c.name + mark for c, mark in zip(calls, marks, strict=True)]
            arcs.append(by_name([(n, c.cost, c.calls or 0) for n, c in zip(named, calls, strict=True)]))
        name = re.sub(r"<cycle \d+>", "<cycle>", row.name)
        object = base_name(row.object.encode()).decode()
        assert row.inclusive is not None
        rows[Shows(row.inclusive, row.self, row.calls or 0, name, object, *arcs)] += 1
    return rows


def as_listed(rows: Counter[Listed]) -> Counter[Shows]:
    shown: Counter[Shows] = Counter()
    for row, n in rows.items():
        arcs = [
            by_name([(name, cost, count) for (cost, count, name), m in calls for _ in range(m)])
            for calls in (row.callers, row.callees)
        ]
        name = re.sub(r"<cycle \d+>", "<cycle>", row.name)
        shown[Shows(row.inclusive, row.own, row.called, name, row.object, *arcs)] += n
    return shown


def as_modelled(functions: dict[Function, Shown], found: list[set[Function]]) -> Counter[Shows]:
    def name(function: Function) -> str:
        mark = " <cycle>" if any(function in members for members in found) else ""
        return re.sub(r"<cycle \d+>", "<cycle>", function.name.decode()) + mark

    shown: Counter[Shows] = Counter()
    for function, s in functions.items():
        arcs = [by_name([(name(f), a.cost[0], a.count) for f, a in calls.items()]) for calls in (s.callers, s.callees)]
        own_name = re.sub(r"<cycle \d+>", "<cycle>", function.name.decode())
        shown[Shows(s.inclusive[0], s.own[0], s.called, own_name, function.object.decode(), *arcs)] += 1
    return shown


def loaded(path: Path, text: str) -> list[Path]:
    """Given a name, KCachegrind loads all files that begin with it; it refuses compressed ones."""
    names = set(re.findall(FILE, text))
    return [p for p in sorted(path.parent.iterdir()) if p.name in names and p.suffix != ".gz"]


def recorded_rightly() -> list[tuple[Path, Path]]:
    """Without the files that KCachegrind reads differently from their writers' intent (test_kcachegrind.py)."""
    wrong = {*MISREAD, "bom.callgrind", "more.callgrind"}  # no reader accepts the last two
    return [(path, expected) for path, expected in recorded() if path.name not in wrong]


# The first function of threads: these tools count only the calls from another thread, less than its self cost.
FIRST = "clone"


@pytest.mark.parametrize(("path", "expected"), recorded_rightly(), ids=lambda p: p.name)
def test_functions_callers_and_callees_are_those_of_kcachegrind(path: Path, expected: Path) -> None:
    text = expected.read_text()
    # it shows the first event, even if that is 0 everywhere
    value = {"value": "curB"} if path.name == "mt_xtmemory.kcg" else {}
    found = top(loaded(path, text), n=0, tree="both", cycles=False, **value)
    theirs = as_listed(listing(text))
    assert len(theirs) > 0
    missing = [(row.name, row.inclusive, row.own) for row in theirs - as_shown(found)]
    assert missing == ([(FIRST, 54, 75)] if path.name == "mt.callgrind.2" else [])
    assert sum(theirs.values()) == min(50, found.n_rows)


def kcachegrind(path: Path, expected: Path) -> Loader:
    return load(*(p.read_bytes() for p in loaded(path, expected.read_text())))


@pytest.mark.parametrize("name", ["pyprof2calltree.callgrind", "xdebug_single.cachegrind"])
def test_cycles_are_those_of_kcachegrind(name: str) -> None:
    """Its cycles lack the function at which its search began: a cycle of pyprof2calltree.callgrind then costs more than
    the whole program.  The model has that fault, too; without the fault it gives our figures."""
    path = shared_data("callgrind", name)
    expected = shared_data("callgrind", "expected", f"{name}.cgview.txt")
    loader = kcachegrind(path, expected)
    functions = loader.shown()
    with_faults, without = cycles(loader), cycles(loader, with_faults=False)
    theirs = as_listed(listing(expected.read_text()))
    assert not theirs - as_modelled(collapse(functions, with_faults), with_faults)
    ours = as_shown(top(path, n=0, tree="both"))
    assert ours == as_modelled(collapse(functions, without), without)
    roots = [b"<built-in method builtins.__import__>"] if "pyprof" in name else [b"App\\Kernel->handle"]
    assert [f.name for members in without for f in members if not any(f in m for m in with_faults)] == roots


# ---- callgrind_annotate


class Annotated(NamedTuple):
    """The recorded output for one `file:function`: its figure, its callees and its callers."""

    figure: int
    callers: Counter[tuple[str, int]]
    callees: Counter[tuple[str, int]]


def annotation(text: str) -> dict[str, Annotated]:
    """A report with --tree=both --show-percs=no, by file and function: inlined code has a separate row there."""
    found: dict[str, Annotated] = {}
    body = text[text.index("PROGRAM TOTALS") :]
    for block in body.split("\n\n"):
        callers: Counter[tuple[str, int]] = Counter()
        callees: Counter[tuple[str, int]] = Counter()
        name, figure = "", 0
        for line in block.splitlines():
            match = re.match(
                r" *([-\d,]+) +([<*>]) +(\S.*?)(?: \(([\d,]+)x\))?(?: \[(?:|[^][]*/[^][]*|\?\?\?)\])?$", line
            )
            if not match:
                continue
            cost, function = int(match[1].replace(",", "")), match[3]
            if match[2] == "*":
                name, figure = function, cost
            else:
                into = callers if match[2] == "<" else callees
                into[function, int((match[4] or "0").replace(",", ""))] += cost
        if name:
            assert name not in found
            found[name] = Annotated(figure, callers, callees)
    return found


EVENT = {"mt_xtmemory.kcg": "totB"}  # the others show their first event; here it is 0


def annotate(path: Path, inclusive: str, folder: Path) -> dict[str, Annotated]:
    copy = folder / "file"
    copy.write_bytes(contents(path))
    event = EVENT.get(path.name) or top(path, n=1).value.name
    options = (
        f"--show={event}",
        f"--sort={event}",
        "--auto=no",
        "--show-percs=no",
        "--threshold=100",
        "--tree=both",
        f"--inclusive={inclusive}",
    )
    return annotation(run(need("callgrind_annotate"), *options, copy))


# It counts rows of calls=0 as self costs; their figures are too high there.
ZERO_CALLS = {"pprof_style.callgrind", "mt_xtmemory.kcg", "mt.callgrind", "mt.callgrind.2"}


@pytest.mark.parametrize("path", [p for p in CALLGRIND if one_part(p)], ids=lambda p: p.name)
def test_self_costs_are_those_of_callgrind_annotate(path: Path, tmp_path: Path) -> None:
    """By file and function: it has a row for each file of a function's code."""
    rows = annotate(path, "no", tmp_path).items()
    theirs = {name.removeprefix("???"): row.figure for name, row in rows if row.figure}
    ours: Counter[str] = Counter()
    for row in top(path, by="line", n=0, value=EVENT.get(path.name)).rows:
        ours[f"{row.file}:{row.name}"] += row.self
    mine = {name: cost for name, cost in ours.items() if cost}
    if path.name in ZERO_CALLS:
        assert theirs.keys() >= mine.keys() and theirs != mine
        assert all(theirs[name] >= cost for name, cost in mine.items())
    else:
        assert theirs == mine


@pytest.mark.parametrize(
    "path", [p for p in CALLGRIND if one_part(p) and p.name not in ZERO_CALLS], ids=lambda p: p.name
)
def test_inclusive_costs_are_those_of_callgrind_annotate(path: Path, tmp_path: Path) -> None:
    """It counts each level of a recursion, so a recursive function costs more there."""
    found = top(path, n=0, tree="both", cycles=False)
    expected: dict[str, Counter[int]] = defaultdict(Counter)
    for row in found.rows:
        itself = sum(c.cost for c in row.callers if (c.name, c.file, c.object) == (row.name, row.file, row.object))
        assert row.inclusive is not None
        into = sum(c.cost for c in row.callers)
        if row.calls:
            expected[f"{row.file or '???'}:{row.name}"][into if row.name == FIRST else row.inclusive + itself] += 1
    theirs = annotate(path, "yes", tmp_path)
    compared = 0
    for name, figures in expected.items():
        if len(figures) > 1 or sum(figures.values()) > 1:
            continue  # functions of one name and file in several objects are one row there
        assert theirs[name].figure == next(iter(figures)) if name in theirs else 0 in figures
        compared += 1
    assert compared > len(found.rows) // 2


@pytest.mark.parametrize(
    "path", [p for p in CALLGRIND if one_part(p) and p.name not in ZERO_CALLS], ids=lambda p: p.name
)
def test_trees_are_those_of_callgrind_annotate(path: Path, tmp_path: Path) -> None:
    """By function name: it has a row for each file of a function's code, which calls and is called by the function
    itself."""
    rows = top(path, n=0, tree="both", cycles=False).rows
    names = {row.name for row in rows}
    theirs = annotate(path, "yes", tmp_path)

    def function(text: str) -> str:
        """Of "file:function"; both may contain colons."""
        return max((name for name in names if text.endswith(f":{name}")), key=len)

    def summed(calls: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
        sums: dict[str, tuple[int, int]] = {}
        for name, cost, count in calls:
            known = sums.get(name, (0, 0))
            sums[name] = known[0] + cost, known[1] + count
        return sums

    printed: dict[tuple[str, str], list[tuple[str, int, int]]] = defaultdict(list)
    for name, annotated in theirs.items():
        for side, calls in (("callers", annotated.callers), ("callees", annotated.callees)):
            printed[function(name), side] += [(function(other), cost, n) for (other, n), cost in calls.items()]
    for name in names:
        mine = [row for row in rows if row.name == name]
        for side in ("callers", "callees"):
            ours = summed((c.name, c.cost, c.calls) for row in mine for c in getattr(row, side))
            assert ours == summed(printed[name, side]), name


# ---- cg_annotate


@pytest.mark.parametrize("path", CACHEGRIND, ids=lambda p: p.name)
def test_functions_are_those_of_the_older_cg_annotate(path: Path) -> None:
    text = run(need("cg_annotate"), "--auto=no", "--threshold=0", "--show-percs=no", path)
    events = re.findall(r"^Events shown: +(.*)$", text, re.MULTILINE)[0].split()
    rows = re.findall(r"^ *((?:[\d,.]+ +)+)(\S.*:.*)$", text[text.index("file:function") :], re.MULTILINE)
    theirs = {name: [0 if n == "." else int(n.replace(",", "")) for n in counts.split()] for counts, name in rows}
    assert len(theirs) > 10
    for k, event in enumerate(events):
        found = top(path, n=0, value=event)
        ours = {f"{row.file or '???'}:{row.name}": row.self for row in found.rows}
        assert {name: cost for name, cost in ours.items() if cost} == {n: c[k] for n, c in theirs.items() if c[k]}
        assert f"{found.total:,}" in text[text.index("Ir") : text.index("PROGRAM TOTALS")]


@pytest.mark.parametrize("expected", newer(), ids=lambda p: p.name)
def test_functions_are_those_of_the_newer_cg_annotate(expected: Path) -> None:
    """Recorded: it is not in Debian 12.  Its threshold is ours."""
    text = expected.read_text()
    path = shared_data("callgrind", "cachegrind", expected.name.partition(".cg_annotate")[0])
    shown, functions = listed(text)
    threshold = re.findall(r"^Threshold: +(\S+)%$", text, re.MULTILINE)[0]
    sort = re.findall(r"^Event sort order: +(\S+)", text, re.MULTILINE)[0]
    for k, event in enumerate(shown):
        found = top(path, n=0, value=event)
        # functions without a line are also listed, as <unspecified>
        theirs = {function: counts[k] for function, counts in functions.items() if any(counts)}
        assert {(row.file or "???", row.name): row.self for row in found.rows}.items() >= theirs.items()
    at_least = top(path, value=sort, threshold=float(threshold) / 100)
    k = shown.index(sort)
    # with its threshold it shows all functions of a file that reaches it
    reach = {f for f, c in functions.items() if c[k] and abs(c[k]) >= abs(at_least.total) * float(threshold) / 100}
    assert {(row.file or "???", row.name) for row in at_least.rows if row.self} == reach
