"""The tests that run by default in a clone without sample data: neither phantoms nor gaps."""

from __future__ import annotations

import pytest

from fastprof import formats
from tests.conftest import left_out
from tests.support.paths import REPO

MOST = 20_000
pytestmark = pytest.mark.exhaustive  # to know what is left out, everything must be collected


@pytest.fixture
def every(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """All tests, if this run collected them; to collect them again takes a quarter of a minute."""
    if {item.path for item in request.session.items} < {*(REPO / "tests").glob("*/test_*.py")}:
        pytest.skip("needs all tests: run pytest -m ''")
    return request.session.items


@pytest.fixture
def collected(every: list[pytest.Item]) -> list[str]:
    """The names of those that run by default, with samples; tests/conftest.py refuses those of files outside the
    repository."""
    return [item.nodeid for item in every if not item.get_closest_marker("exhaustive")]


def test_there_are_no_phantoms(collected: list[str]) -> None:
    """A pattern that starts at the current folder once collected 40,000 files of a virtual environment."""
    assert 5_000 < len(collected) < MOST
    assert [name for name in collected if "site-packages" in name or ".venv" in name] == []


@pytest.mark.parametrize(
    ("test", "kind"), [("golden", "good"), ("cut_anywhere", "good"), ("bad_files_fail_where_recorded", "bad")]
)
def test_each_format_has_a_good_and_a_bad_file(test: str, kind: str, collected: list[str]) -> None:
    names = [name for name in collected if name.startswith(f"tests/contract/test_contract.py::test_{test}[")]
    missing = [f.name for f in formats.formats() if f.reader and not any(f"[{f.name}/{kind}/" in n for n in names)]
    assert missing == []


def test_what_is_left_out_exists(every: list[pytest.Item]) -> None:
    known = {item.nodeid.partition("[")[0] for item in every}
    assert {name.removesuffix("[1:]") for name in left_out()} <= known


def test_each_verb_and_each_mended_fault_is_tried(collected: list[str]) -> None:
    """tests/unit/test_verbs.py wants a command of each verb in README.md; test_answers.py has the faults."""
    assert "tests/unit/test_docs.py::test_commands_are_understood[README.md]" in collected
    tests = {name.partition("[")[0] for name in collected}
    assert {
        f"tests/unit/{one}" for one in ("test_answers.py::test_answer", "test_verbs.py::test_what_a_module_alone_lacks")
    } <= tests
