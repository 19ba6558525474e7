"""CI=true: every test runs, and a skipped one fails unless it needs sample data that only some checkouts have.

Elsewhere exhaustive tests are left out (pyproject.toml), a test whose program is missing is skipped, and the last line
counts both.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.differential.peers import missing
from tests.support.paths import NO_SHARED, REPO, SHARED

# An example's duration depends on the machine, not on the code.
_UNHURRIED = [*settings().suppress_health_check, HealthCheck.too_slow]
for _name, _n in (("default", 15), ("exhaustive", 50)):
    settings.register_profile(_name, deadline=None, suppress_health_check=_UNHURRIED, max_examples=_n)

IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what the tests read out of the home directory, and not for ever: pytest removes its old folders, including
    those of killed runs."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["FASTPROF_SYMBOL_CACHE"] = "0"  # a test must not have the answers of another one
    os.environ.pop("COLUMNS", None)  # would set the width of tables
    os.unsetenv("COLUMNS")  # readline may set it without os.environ


@pytest.fixture
def sections_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small profiles of a store have sections of their own, as large ones have."""
    monkeypatch.setattr("fastprof.formats.archive.packing.MOST_NBYTES", 0)


def pytest_configure(config: pytest.Config) -> None:
    default = config.option.markexpr == "not exhaustive"
    if IN_CI and default:
        config.option.markexpr = ""
    settings.load_profile("default" if default and not IN_CI else "exhaustive")


def left_out() -> set[str]:
    """The tests of exhaustive.txt: names, or `name[1:]` for all cases but the first."""
    lines = (REPO / "tests" / "exhaustive.txt").read_text().splitlines()
    return {line.split()[1] for line in lines if not line.startswith("#")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of exhaustive.txt.  Refuse tests of files that are no part of the repository, such as a virtual
    environment's."""
    names, seen = left_out(), set[str]()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in names or (name in seen and f"{name}[1:]" in names):
            item.add_marker(pytest.mark.exhaustive)
        seen.add(name)
    homes = [REPO / name for name in ("tests", "docs", "fastprof", "csrc", "bench")]
    homes += [path for path in REPO.iterdir() if path.is_file()] + ([SHARED, SHARED.resolve()] if SHARED else [])
    inside = tuple(f"{home.absolute()}{os.sep * home.is_dir()}" for home in homes)
    for item in items:
        for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
            if isinstance(value, Path) and not os.path.abspath(value).startswith(inside):
                raise pytest.UsageError(f"{item.nodeid} tests a file outside tests/ and shared/: {value}")


def pytest_collection_finish() -> None:
    """Exempt the thousands of collected tests from each garbage collection."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    yield from _skip_without_program()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    yield from _skip_without_program()


def _skip_without_program() -> Iterator[None]:
    """A program that a test starts and that is not installed is a skip, as one that it asks `need` for."""
    try:
        yield
    except FileNotFoundError as error:
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        name = str(error.filename)
        started = trace and Path(trace.tb_frame.f_code.co_filename).name == "subprocess.py"
        if not started or "/" in name or shutil.which(name):
            raise
        pytest.skip(missing(name))


def _reason(log: Any) -> str:
    text = log.longrepr[2] if isinstance(log.longrepr, tuple) else str(log.longrepr)
    return str(text).removeprefix("Skipped: ")


def _refuse_skip(log: Any) -> None:
    if not IN_CI or not log.skipped or hasattr(log, "wasxfail"):
        return
    reason = _reason(log)
    if NO_SHARED not in reason:
        log.outcome = "failed"
        log.longrepr = f"skipped in CI: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    outcome: Any = yield
    _refuse_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    outcome: Any = yield
    _refuse_skip(outcome.get_result())


# ---- the line at the end: what did not run

_left_out = [0]  # exhaustive tests


def pytest_deselected(items: list[pytest.Item]) -> None:
    _left_out[0] += sum(item.get_closest_marker("exhaustive") is not None for item in items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = _left_out[0]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Of pytest-xdist: each worker collects all tests."""
    _left_out[0] = max(_left_out[0], getattr(node, "workeroutput", {}).get("left_out", 0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped: Counter[str] = Counter()
    for log in terminalreporter.stats.get("skipped", ()):
        reason = _reason(log)
        install = re.search(r"(?:apt-get|pip) install (.+)", reason)
        skipped[install[1] if install else reason] += 1
    parts = [f"{n:,} {why}" for why, n in skipped.most_common()]
    lines = [f"skipped {skipped.total():,}: {', '.join(parts)}"] if parts else []
    lines += [f"left out {_left_out[0]:,} exhaustive tests: pytest -m '' runs them"] if _left_out[0] else []
    if lines:
        terminalreporter.write_line("; ".join(lines))
