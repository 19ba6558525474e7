"""Random stacks within random budgets: kept stacks are exact, the cheapest are pruned, and totals are kept."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import event, given
from hypothesis import strategies as st

import fastprof
from fastprof.bridges.budget import fit_stacks
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from tests.reference import firefox

Stacks = dict[tuple[str, ...], int]

# for each profile (a thread and a value type): stacks, outermost function first, with their weights
PROFILES = st.lists(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8).map(tuple),
            st.one_of(st.integers(1, 9), st.integers(1, 10**6)),
        ),
        max_size=60,
    ),
    min_size=1,
    max_size=4,
).filter(any)
UNITS = {"nanoseconds": "time", "bytes": "size"}


def source(profiles: list[list[tuple[tuple[str, ...], int]]]) -> bytes:
    """Threads of two value types in turn; a whole file would make equal names distinct."""
    names = [*"abcdef"]
    said = [
        {
            "type": "sampled",
            "name": f"thread {i}",
            "unit": [*UNITS][i % 2],
            "startValue": 0,
            "endValue": sum(weight for _, weight in stacks),
            "samples": [[names.index(name) for name in stack] for stack, _ in stacks],
            "weights": [weight for _, weight in stacks],
        }
        for i, stacks in enumerate(profiles)
    ]
    frames = [{"name": name} for name in names]
    schema = "https://www.speedscope.app/file-format-schema.json"
    return json.dumps({"$schema": schema, "shared": {"frames": frames}, "profiles": said}).encode()


def read_speedscope(data: bytes) -> dict[str, Stacks]:
    said = json.loads(data)
    names = [frame["name"] for frame in said["shared"]["frames"]]
    found: dict[str, Stacks] = {}
    for profile in said["profiles"]:
        stacks = [tuple(names[i] for i in sample) for sample in profile["samples"]]
        assert len({*stacks}) == len(stacks), "equal stacks are one"
        found[profile["name"]] = dict(zip(stacks, profile["weights"], strict=True))
    return found


def read_firefox(data: bytes) -> dict[str, Stacks]:
    found: dict[str, Stacks] = {}
    for thread in firefox.read(data):
        factor = 10**6 if thread.weight_type == "tracing-ms" else 1
        found[thread.name] = {path: int(weight * factor) for _, path, weight in thread.samples if weight}
    return found


READ = {".speedscope.json": read_speedscope, ".profile.json": read_firefox}


def shares(profiles: dict[str, Stacks]) -> dict[tuple[str, ...], float]:
    """For each stack, the share of all its continuations: the mean over value types."""
    totals: Counter[str] = Counter()
    of_type = {name: next(t for t in UNITS.values() if t in name) for name in profiles}
    for name, stacks in profiles.items():
        totals[of_type[name]] += sum(stacks.values())
    found: dict[tuple[str, ...], float] = {}
    for name, stacks in profiles.items():
        for stack, weight in stacks.items():
            for depth in range(1, len(stack) + 1):
                share = weight / totals[of_type[name]] / sum(total > 0 for total in totals.values())
                found[stack[:depth]] = found.get(stack[:depth], 0.0) + share
    return found


def losses(log: Log) -> dict[str, int]:
    return {entry["code"]: entry["count"] for entry in log.not_representable.entries()}


def pruned_at(stacks: Stacks, kept: set[tuple[str, ...]]) -> Stacks:
    """The slow way to prune."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in stacks.items():
        depth = max(d for d in range(len(stack) + 1) if d == 0 or stack[:d] in kept)
        found[stack if depth == len(stack) else (*stack[:depth], "[pruned]")] += weight
    return dict(found)


@given(PROFILES, st.floats(0, 1), st.sampled_from([*READ]), st.booleans())
def test_what_is_left_is_exact_and_within_the_budget(
    profiles: list[Any], part: float, suffix: str, spilled: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(fit_stacks, "_BUFFERED", 0 if spilled else 1 << 20):
        path, out = Path(folder, "in.speedscope.json"), Path(folder, f"out{suffix}")
        path.write_bytes(source(profiles))
        otherwise = losses(fastprof.convert(path, out))
        whole, most = READ[suffix](out.read_bytes()), out.stat().st_size
        budget = max(1, round(part * most))
        out.unlink()
        try:
            log = fastprof.convert(path, out, budget=budget)
        except UsageError as error:
            assert "with everything in [pruned]" in str(error) and not out.exists()
            event("refused")
            return
        assert out.stat().st_size <= budget
        left, said = READ[suffix](out.read_bytes()), log.facts.get("pruned_stacks")
        event("pruned" if said else "whole")
        if not said:
            assert left == whole and losses(log) == otherwise
            return
        cost = shares(whole)
        # stacks that cost exactly the limit may be on either side of it
        sides = [
            {stack for stack, share in cost.items() if share >= said["pruned_below"] * (1 + by)} for by in (-1e-9, 1e-9)
        ]
        either = [{name: pruned_at(stacks, kept) for name, stacks in whole.items()} for kept in sides]
        assert left in either
        kept = sides[either.index(left)]
        gone = {stack for stacks in whole.values() for stack in stacks} - kept
        assert said["pruned_stacks"] == len(gone)
        for kind in UNITS.values():
            of = [(stack, w) for name, stacks in whole.items() if kind in name for stack, w in stacks.items()]
            share = sum(w for stack, w in of if stack in gone) / max(1, sum(w for _, w in of))
            assert abs(said["pruned_share"].get(kind, 0) - share) < 1e-9
        assert losses(log) == otherwise | {"pruned-stacks": len(gone)}


@given(PROFILES, st.sampled_from([*READ]))
def test_files_of_threads_together_are_the_whole(profiles: list[Any], suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "in.speedscope.json"), Path(folder, f"out{suffix}")
        path.write_bytes(source(profiles))
        fastprof.convert(path, out)
        whole = {name: stacks for name, stacks in READ[suffix](out.read_bytes()).items() if stacks}
        try:
            log = fastprof.convert(path, out, split="thread")
        except UsageError as error:
            assert "no sample has a thread" in str(error) and "thread" not in "".join(whole)
            return
        found: dict[str, Stacks] = {}
        for file in log.facts["files"]:
            for name, stacks in READ[suffix](Path(file["path"]).read_bytes()).items():
                assert name not in found or not stacks
                found |= {name: stacks} if stacks else {}
        assert found == whole
