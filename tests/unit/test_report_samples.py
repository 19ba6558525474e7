"""Samples with times in the page of `report`: each has its context, and of all of them the costs of the contexts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from fastprof import report
from tests.support.pages import NONE, Page
from tests.support.paths import CORPUS

FILES = [
    "cpuprofile/good/node20.cpuprofile",
    "firefox/good/version-70.json",
    "jfr/good/real-async.jfr.gz",
    "perf-script/good/real-F-regs.perf",
    "speedscope/good",
]


def text(samples: list[tuple[int, int, str]]) -> str:
    """What perf script prints, of (thread, time in milliseconds, stack from the root)."""
    return "".join(
        f"app  7/{thread} {ms / 1000:.6f}:          3 cycles:\n"
        + "".join(f"\t{hash(name) % 997 + 1:16x} {name} (/bin/app)\n" for name in reversed(stack.split(";")))
        + "\n"
        for thread, ms, stack in samples
    )


SAMPLES = [(7 + i % 2, 1000 + 10 * i, f"main;{'ab'[i // 8 % 2]};leaf{i % 3}") for i in range(64)]


def written(tmp_path: Path, samples: list[tuple[int, int, str]], **options: object) -> Page:
    (tmp_path / "in.perf").write_text(text(samples))
    report(tmp_path / "in.perf", tmp_path / "page.html", **options)  # type: ignore[arg-type]
    return Page(tmp_path / "page.html")


def contexts_of(page: Page) -> list[str]:
    """The stack of each context."""
    found: list[str] = []
    for i, (up, fn) in enumerate(zip(page.columns["context up"], page.columns["context function"], strict=True)):
        found.append((f"{found[i - up]};" * bool(page.columns["context up"][i - up]) + page.name(fn)) if up else "")
    return found


def decoded(page: Page) -> list[tuple[float, str, float]]:
    """Time, stack and value of each sample, thread by thread."""
    columns, stacks, at, found = page.columns, contexts_of(page), 0, []
    for length in columns["sample run"]:
        time = 0.0
        for i in range(at, at + length):
            time += columns["sample time"][i]
            found.append((time, stacks[columns["sample context"][i]], columns["sample value"][i]))
        at += length
    return found


def test_samples_have_their_times_stacks_and_values(tmp_path: Path) -> None:
    page = written(tmp_path, SAMPLES[::-1])
    expected = [((ms - 1000) * 1e6, stack, 3) for thread in (7, 8) for t, ms, stack in SAMPLES if t == thread]
    assert sorted(decoded(page)) == sorted(expected) and page.columns["sample run"] == [32, 32]
    assert page.head["samples"] | {"event": 0} == {"event": 0, "n": 64, "all": 64, "length": 630e6}


@pytest.mark.parametrize("path", [CORPUS / name for name in FILES], ids=lambda path: path.name)
def test_the_samples_of_a_context_have_its_cost(path: Path, tmp_path: Path) -> None:
    for one in sorted(path.iterdir()) if path.is_dir() else [path]:
        report(one, tmp_path / "page.html", prune=0)
        page = Page(tmp_path / "page.html")
        samples = page.head.get("samples")
        if path.is_dir() and (not samples or "value" not in "".join(page.columns)):
            continue
        assert samples, one
        column = next(k for k, value in enumerate(page.head["values"]) if value["event"] == samples["event"])
        sums: Counter[int] = Counter()
        for context, value in zip(page.columns["sample context"], page.columns["sample value"], strict=True):
            sums[context] += value
        own = page.columns[f"context self {column}"]
        assert {i: cost for i, cost in sums.items() if cost} == {i: cost for i, cost in enumerate(own) if cost}, one
        assert sum(page.columns["sample run"]) == samples["n"] == samples["all"]


def test_pruned_contexts_keep_their_samples(tmp_path: Path) -> None:
    page = written(tmp_path, [*SAMPLES, (7, 1005, "main;a;rare")], prune=0.05)
    pruned = [
        i for i, fn in enumerate(page.columns["context function"]) if fn == NONE and page.columns["context up"][i]
    ]
    at = {
        context for context, up in zip(page.columns["sample context"], page.columns["sample value"], strict=True) if up
    }
    assert pruned and at & {*pruned} and sum(page.columns["sample value"]) == 3 * 65


def test_inputs_whose_clocks_may_differ_have_no_order_of_time(tmp_path: Path) -> None:
    for name in ("a.perf", "b.perf"):
        (tmp_path / name).write_text(text(SAMPLES))
    for options in ({"sum": True}, {}):
        report([tmp_path / "a.perf", tmp_path / "b.perf"], tmp_path / "page.html", **options)  # type: ignore[arg-type]
        assert "samples" not in Page(tmp_path / "page.html").head
    assert "samples" not in written(tmp_path, SAMPLES[:1]).head  # of one sample neither


def test_many_samples_are_chosen_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastprof.verbs.report._LARGEST", 400_000)
    rng = Random(1)  # compresses badly
    many = [(7 + i % 3, 1000 + 999 * i + rng.randrange(900), f"f{rng.randrange(3000)}") for i in range(60_000)]
    page = written(tmp_path, many)
    samples = page.head["samples"]
    assert samples["all"] == 60_000 > samples["n"] > 1_000 and len(page.bytes) < 400_000
    runs = page.columns["sample run"]
    assert len(runs) == 3 and max(runs) - min(runs) <= 1 and sum(runs) == samples["n"]
