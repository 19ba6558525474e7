"""CI=true: a skipped test fails, unless it needs sample data that only some checkouts have."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# An example's duration depends on the machine, not on the code.
_UNHURRIED = [*settings().suppress_health_check, HealthCheck.too_slow]
settings.register_profile("unhurried", settings(), deadline=None, suppress_health_check=_UNHURRIED)
settings.load_profile("unhurried")

ALLOWED = ("no shared/data beside the repository",)
IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what the tests read out of the home directory, and not for ever: pytest removes its old folders, including
    those of killed runs."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ.pop("COLUMNS", None)  # would set the width of tables
    os.unsetenv("COLUMNS")  # readline may set it without os.environ


@pytest.fixture
def sections_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small profiles of a store have sections of their own, as large ones have."""
    monkeypatch.setattr("fastprof.formats.archive.packing.MOST_NBYTES", 0)


def pytest_collection_finish() -> None:
    """Exempt the thousands of collected tests from each garbage collection."""
    gc.freeze()


def _refuse_skip(log: Any) -> None:
    if not IN_CI or not log.skipped or hasattr(log, "wasxfail"):
        return
    reason = log.longrepr[2] if isinstance(log.longrepr, tuple) else str(log.longrepr)
    if not any(allowed in reason for allowed in ALLOWED):
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
