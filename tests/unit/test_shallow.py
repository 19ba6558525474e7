"""Stacks deeper than --max-depth are cut if a format repeats all frames of a stack."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow
import pytest

import fastprof
from fastprof.core.errors import UsageError
from tests.support.paths import CORPUS


def nested(path: Path, n: int) -> Path:
    """A timeline of n calls, each within the one before, of 1 us each on the way in and out."""
    begins = [f'{{"ph":"B","ts":{i},"pid":1,"tid":1,"name":"f{i}"}}' for i in range(n)]
    ends = [f'{{"ph":"E","ts":{n + i},"pid":1,"tid":1,"name":"f{n - 1 - i}"}}' for i in range(n)]
    path.write_text(f"[{','.join(begins + ends)}]")
    return path


def lines(path: Path) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(count)
    return found


def inclusive(stacks: Counter[tuple[str, ...]], name: str) -> int:
    return sum(count for stack, count in stacks.items() if name in stack)


def codes(log: fastprof.Log) -> dict[str, int]:
    return {entry["code"]: entry["count"] for entry in log.not_representable.entries()}


@pytest.mark.parametrize("limit", [1, 2, 9, 10, 11])
def test_frames_below_the_limit_become_one(limit: int, tmp_path: Path) -> None:
    source, whole, cut = nested(tmp_path / "in.json", 10), tmp_path / "whole.folded", tmp_path / "cut.folded"
    fastprof.convert(source, whole)
    log = fastprof.convert(source, cut, max_depth=limit)
    every, kept = lines(whole), lines(cut)
    assert len(every) == 10 and sum(kept.values()) == sum(every.values())
    for depth in range(min(limit, 10)):
        assert inclusive(kept, f"f{depth}") == inclusive(every, f"f{depth}")
    assert max(map(len, kept)) == min(limit + 1, 10)
    assert codes(log).get("deep-stacks", 0) == max(10 - limit, 0)
    assert any("--max-depth=10" in warning or "max_depth=10" in warning for warning in log.warnings) == (limit < 10)
    assert inclusive(kept, "[deeper]") == sum(n for stack, n in every.items() if len(stack) > limit)


def test_a_cut_profile_is_not_cut_again(tmp_path: Path) -> None:
    source, once, twice = nested(tmp_path / "in.json", 10), tmp_path / "once.folded", tmp_path / "twice.folded"
    fastprof.convert(source, once, max_depth=4)
    log = fastprof.convert(once, twice, max_depth=5)
    assert twice.read_text() == once.read_text() and "deep-stacks" not in codes(log)


@pytest.mark.parametrize("to", ["pprof", "folded", "speedscope"])
def test_a_deep_timeline_makes_a_file_of_bounded_size(to: str, tmp_path: Path) -> None:
    """Without a limit it has 20,000^2 / 2 frames."""
    log = fastprof.convert(nested(tmp_path / "in.json", 20_000), tmp_path / "folded", to="folded", max_depth=100)
    assert (tmp_path / "folded").stat().st_size < 1_000_000
    assert codes(log)["deep-stacks"] == 19_900
    log = fastprof.convert(tmp_path / "folded", tmp_path / "out", to=to, max_depth=50)
    assert "deep-stacks" in codes(log)


def test_rows_of_other_threads_and_labels_stay_apart(tmp_path: Path) -> None:
    archive, out = tmp_path / "in.fpa", tmp_path / "out.pb"
    begins = [f'{{"ph":"B","ts":{i},"pid":1,"tid":{t},"name":"f{i}"}}' for t in (1, 2) for i in range(6)]
    ends = [f'{{"ph":"E","ts":{6 + i},"pid":1,"tid":{t}}}' for t in (1, 2) for i in range(6)]
    (tmp_path / "in.json").write_text(f"[{','.join(begins + ends)}]")
    fastprof.convert(tmp_path / "in.json", archive)
    fastprof.convert(archive, out, max_depth=2, per_thread=True)
    with fastprof.open(out) as profile:
        table = pyarrow.table(profile.table("samples"))
    assert table.num_rows == 6  # for each thread f0, f0;f1 and the remainder


def test_gperftools_has_no_name_for_what_is_cut(tmp_path: Path) -> None:
    source, cut = CORPUS / "gperftools" / "good" / "plain.prof", tmp_path / "cut.prof"
    assert codes(fastprof.convert(source, cut, max_depth=1))["deep-stacks"] > 0
    for path, name in ((source, "whole.folded"), (cut, "cut.folded")):
        fastprof.convert(path, tmp_path / name, symbolize=False)
    whole, after = lines(tmp_path / "whole.folded"), lines(tmp_path / "cut.folded")
    assert sum(after.values()) == sum(whole.values()) and {len(stack) for stack in after} == {1}


def test_formats_that_share_frames_have_no_limit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="max_depth"):
        fastprof.convert(nested(tmp_path / "in.json", 3), tmp_path / "out.callgrind", max_depth=2)
