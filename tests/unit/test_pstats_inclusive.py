"""Inclusive costs of cProfile's files are those that they record, and stacks begin where the profile begins.

In ordinary profiles imports close a cycle of hundreds of functions, from which costs of calls do not follow.
"""

from __future__ import annotations

import cProfile
import importlib
import marshal
import pstats
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.support.pages import Page
from tests.support.paths import CORPUS

Stats = dict[Any, Any]
ANSWERS = CORPUS / "answers"
FILES = [CORPUS / "pstats" / "good" / "py3.8.pstats", CORPUS / "pstats" / "good" / "py3.13.pstats"]
FILES += [ANSWERS / name for name in ("exec_in_import_cycle.pstats", "cprofile.pstats", "two.pstats")]
MODULES = ("json", "email.message", "xml.dom.minidom", "plistlib", "difflib", "calendar", "http.cookiejar", "csv")


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of a run that imports modules while functions of other modules are active."""
    again = {name.partition(".")[0] for name in MODULES}
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in again}
    for name in kept:
        del sys.modules[name]
    profile = cProfile.Profile()

    def nested(n: int) -> None:
        importlib.import_module(MODULES[n])
        exec("for _ in range(2000): str(_)")
        if n:
            nested(n - 1)

    try:
        profile.runcall(nested, len(MODULES) - 1)
    finally:
        sys.modules.update(kept)
    path = tmp_path_factory.mktemp("imports") / "imports.pstats"
    profile.dump_stats(path)
    assert len(stats_of(path)) > 140
    return path


def stats_of(path: Path) -> Stats:
    return pstats.Stats(str(path)).stats  # type: ignore[attr-defined, no-any-return]


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def expected(stats: Stats) -> Counter[tuple[str, int, int, int]]:
    """Name, calls, own and cumulative time."""
    return Counter((name, v[1], ns(v[2]), ns(v[3])) for (_, _, name), v in stats.items())


def outermost(stats: Stats) -> set[str]:
    """Functions with calls that no caller made."""
    return {
        name
        for (_, _, name), v in stats.items()
        if v[1] > sum(calls if isinstance(calls, int) else calls[0] for calls in v[4].values())
    }


def folded(path: Path, to: Path, **options: Any) -> Counter[str]:
    """Costs by outermost function."""
    fastprof.convert(path, to, **options)
    found = Counter[str]()
    for line in to.read_text().splitlines():
        stack, _, value = line.rpartition(" ")
        found[stack.split(";")[0]] += int(value)
    return found


@pytest.fixture(params=[path.name for path in FILES] + ["imports"])
def profile(request: pytest.FixtureRequest, imports: Path) -> Path:
    return next((path for path in FILES if path.name == request.param), imports)


def test_top_as_pstats(profile: Path) -> None:
    rows = fastprof.top(profile, n=0).rows
    found = Counter((row.name, row.calls, row.self, row.inclusive) for row in rows)
    assert found == expected(stats_of(profile))


@pytest.mark.parametrize("suffix", [".fpa", ".callgrind", ".pstats"])
def test_top_after_a_conversion(profile: Path, suffix: str, tmp_path: Path) -> None:
    fastprof.convert(profile, tmp_path / f"a{suffix}")
    assert sums(fastprof.top(tmp_path / f"a{suffix}", n=0).rows) == sums_of(stats_of(profile))


def sums(rows: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """Self and inclusive costs by name: some formats have no functions of equal name and file."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        own, inclusive = found.get(row.name, (0, 0))
        found[row.name] = own + row.self, inclusive + row.inclusive
    return found


def sums_of(stats: Stats) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name, _, own, cumulative in expected(stats).elements():
        before = found.get(name, (0, 0))
        found[name] = before[0] + own, before[1] + cumulative
    return found


@pytest.mark.parametrize("value", [None, "time"])
def test_diff(profile: Path, value: str | None, tmp_path: Path) -> None:
    """The inclusive costs of a side are those of `top`."""
    none = tmp_path / "none.pstats"
    none.write_bytes(marshal.dumps({("none.py", 1, "none"): (1, 1, 1.0, 1.0, {})}))
    options = {"value": value} if value else {}
    difference = fastprof.diff(none, profile, sort="inclusive", n=0, **options)
    found = Counter[str]()
    for row in difference.rows:
        found[row.name] += row.inclusive[1] if row.inclusive else 0
    assert +found == +Counter({name: inclusive for name, (_, inclusive) in sums_of(stats_of(profile)).items()})


def test_report(profile: Path, tmp_path: Path) -> None:
    fastprof.report(profile, tmp_path / "page.html")
    rows = Page(tmp_path / "page.html").rows()
    stats = stats_of(profile)
    alike = Counter((file, name) for file, _, name in stats)
    assert not any(name.startswith("<cycle") for name, *_ in rows)
    for (file, line, name), v in stats.items():
        if alike[file, name] == 1:
            found = rows[name, "" if file == "~" and not line else file, ""]
            assert found == pytest.approx((ns(v[2]), ns(v[3])))


def test_sql(profile: Path) -> None:
    pytest.importorskip("duckdb", reason="pip install duckdb")
    with fastprof.sql(
        profile, "select function, ncalls, time, cumulative_time from graph where kind = 'cost'"
    ) as answer:
        assert Counter(answer.rows()) == expected(stats_of(profile))


def test_stacks_begin_with_calls_from_outside(profile: Path, tmp_path: Path) -> None:
    stats = stats_of(profile)
    # thousands of stacks, each rounded to a microsecond, lose more than 1 % on a fast machine
    by_root = folded(profile, tmp_path / "a.folded", nanoseconds=True)
    total = sum(by_root.values())
    assert total == pytest.approx(sum(v[2] for v in stats.values()) * 1e9, rel=1e-6, abs=10)
    assert sum(by_root[name] for name in outermost(stats)) > 0.95 * total


def test_pyprof2calltree(profile: Path, tmp_path: Path) -> None:
    """Self costs and calls of functions; inclusive costs are those of calls, as the file does not have others."""
    converter: Any = pytest.importorskip("pyprof2calltree", reason="pip install pyprof2calltree")
    stats = stats_of(profile)
    converter.convert(str(profile), str(tmp_path / "a.callgrind"))
    rows = [row for row in fastprof.top(tmp_path / "a.callgrind", n=0).rows if not row.name.startswith("<cycle")]
    alike = Counter((file, name) for file, _, name in stats)
    theirs = {(row.file, row.name): (row.self, row.calls) for row in rows}
    for (file, line, name), v in stats.items():
        own, calls = theirs[file, name if alike[file, name] == 1 else f"{name}:{line}"]
        assert (own, calls) == (int(v[2] * 1e9), sum(c[0] for c in v[4].values()))
    by_root = folded(tmp_path / "a.callgrind", tmp_path / "a.folded")
    assert sum(by_root.values()) == sum(row.self for row in rows)


def test_gprof2dot(profile: Path) -> None:
    """Shares of functions and their total time."""
    gprof2dot: Any = pytest.importorskip("gprof2dot", reason="pip install gprof2dot")
    parsed = gprof2dot.PstatsParser(str(profile)).parse()
    theirs = sorted(ns(function[gprof2dot.TOTAL_TIME]) for function in parsed.functions.values())
    assert sorted(row.inclusive or 0 for row in fastprof.top(profile, n=0).rows) == theirs
