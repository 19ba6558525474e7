"""Ten times the distinct rows need no more memory, whatever a profile becomes, except where docs/memory.md explains
why."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from docs.make_memory import ABOUT, commands, peaks_of, reasons
from tests.support.distinct import INPUTS
from tests.support.once import made_once
from tests.support.paths import REPO

SLACK = 7 << 20  # bytes, 1 MiB of which is the limit
# Call paths, which are dropped when they become many, and columns of 64 threads; a round of 500,000 contexts, which few
# stacks do not fill.
MORE_SLACK = {("timeline", "convert to firefox"): 5 << 20, ("stacks", "info"): 24 << 20}
# These fill a chunk first, which needs more rows than this test has; test_memory.py has longer files for them.
CHUNKED = ("archive", "parquet", "arrow")
CASES = [(name, word) for name in INPUTS for word in commands(name, "", "")]
BOUND = [case for case in CASES if not reasons(*case) and not any(chunked in case[1] for chunked in CHUNKED)]
# Each command with every third of its inputs: a case takes seconds.
TRIED = [case for word in sorted({word for _, word in BOUND}) for case in [one for one in BOUND if one[1] == word][::3]]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    @cache
    def make(name: str) -> list[str]:
        def write(folder: Path) -> None:
            for rows in (30_000, 300_000):
                INPUTS[name](folder / f"{rows}", rows)

        folder = made_once(tmp_path_factory, f"distinct-{name}", write)
        return [str(folder / "30000"), str(folder / "300000")]

    return make


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "word"),
    TRIED,
)
def test_distinct_rows_keep_to_the_limit(
    name: str, word: str, grown: Callable[[str], list[str]], tmp_path: Path
) -> None:
    few, many = (
        peaks_of([*commands(name, path, str(tmp_path))[word], "--cores", "1"], (1,))[0] for path in grown(name)
    )
    assert many < few + SLACK + MORE_SLACK.get((name, word), 0)


@pytest.mark.exhaustive
def test_of_several_timelines_one_is_folded_at_a_time(grown: Callable[[str], list[str]], tmp_path: Path) -> None:
    path, to = grown("timeline")[1], ["-o", str(tmp_path / "sum.callgrind"), "-q", "--cores", "1"]
    three, eight = (peaks_of(["merge", *[path] * n, *to], (8,))[0] for n in (3, 8))
    assert eight < three + SLACK


def test_every_path_is_in_the_table() -> None:
    sections = (REPO / "docs" / "memory.md").read_text().split("\n## ")
    shown = {section.split("\n")[0].lower(): section for section in sections}
    missing = [(name, word) for name, word in CASES if f"\n| {word} |" not in shown[name]]
    assert sorted(ABOUT) == sorted(INPUTS) and missing == [], "make memory"
