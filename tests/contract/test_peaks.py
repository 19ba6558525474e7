"""Memory of distinct stacks by format and verb, within the bound of docs/memory.md: 10,000 and 100,000 stacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from docs.make_memory import MIB, VERBS, of_verb
from tests.support.once import made_once
from tests.support.peak import peaks
from tests.support.stack_files import WRITE, stacks

# What a process may take beyond --max-memory.  A page takes 30 MiB while it is made, DuckDB's library 35 to 50.
EXTRA = {"report": 96, "sql": 96}
OTHERS = 64
FEW_LEFT = 16  # 10,000 stacks leave at least this much of it
STAY = {"trace-event", "cpuprofile"}  # formats whose stacks stay in the model (docs/memory.md)
TRIED = (*VERBS, "merge")
LIMIT = {10_000: 8, 100_000: 32}  # MiB


def one_of(format_: str) -> str:
    """A verb for a format, so that each verb has one."""
    return TRIED[[*WRITE].index(format_) % len(TRIED)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], str]:
    some = cache(stacks)

    def make(format_: str, n: int) -> str:
        folder = made_once(tmp_path_factory, f"{n}-{format_}", lambda folder: WRITE[format_](folder / "input", some(n)))
        return str(folder / "input")

    return make


def beyond(format_: str, n: int, verbs: tuple[str, ...], path: str, folder: Path) -> dict[str, int]:
    """The verbs that take more MiB than they may, and how many."""
    limit = LIMIT[n]
    commands = [[*of_verb(verb, path, str(folder)), "--max-memory", f"{limit}M"] for verb in verbs]
    left = FEW_LEFT if n == 10_000 else 0
    found = dict(zip(verbs, (nbytes // MIB for nbytes in peaks(commands)), strict=True))
    bounds = {verb: limit + EXTRA.get(verb, OTHERS) - left for verb in verbs}
    return {verb: mib for verb, mib in found.items() if mib > bounds[verb]}


@pytest.mark.parametrize("format_", WRITE)
def test_one_verb_of_each_format(format_: str, made: Callable[[str, int], str], tmp_path: Path) -> None:
    assert beyond(format_, 10_000, (one_of(format_),), made(format_, 10_000), tmp_path) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("format_", WRITE)
def test_quick_verbs(format_: str, made: Callable[[str, int], str], tmp_path: Path) -> None:
    rest = ("folded", "callgrind", "archive", "info", "top", "diff")
    assert beyond(format_, 10_000, rest, made(format_, 10_000), tmp_path) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("format_", [name for name in WRITE if name not in STAY])
def test_ten_times_the_stacks(format_: str, made: Callable[[str, int], str], tmp_path: Path) -> None:
    assert beyond(format_, 100_000, (one_of(format_),), made(format_, 100_000), tmp_path) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("format_", ["perf-script", "dhat"])
def test_largest_pages(format_: str, made: Callable[[str, int], str], tmp_path: Path) -> None:
    """Contexts that just fit, and eleven value types."""
    assert beyond(format_, 100_000, ("report", "callgrind", "firefox"), made(format_, 100_000), tmp_path) == {}


@pytest.mark.exhaustive
def test_what_stays_is_seen(made: Callable[[str, int], str], tmp_path: Path) -> None:
    """The measure sees stacks that stay: those of Chrome's traces."""
    assert [*beyond("trace-event", 100_000, ("folded",), made("trace-event", 100_000), tmp_path)] == ["folded"]
