"""JSON that is read with a temporary file: more complete events than are sorted at once, more samples than are kept."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof.core._c import lib


def test_complete_events_in_any_order(tmp_path: Path) -> None:
    n = 2 * lib.FP_TRACE_RECORDS + 7
    events = [
        {"ph": "X", "name": f"f{i % 50}", "ts": 10 * i, "dur": 1 + i % 5, "pid": 1, "tid": i % 3} for i in range(n)
    ]
    expected = Counter({"main": 10_000 * n})
    for event in events:
        expected[event["name"]] += event["dur"] * 1000
        expected["main"] -= event["dur"] * 1000 * (event["tid"] == 0)
    events.append({"ph": "X", "name": "main", "ts": 0, "dur": 10 * n, "pid": 1, "tid": 0})
    random.Random(1).shuffle(events)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    assert {row.name: row.self for row in fastprof.top(path, n=0).rows} == expected


@pytest.mark.parametrize("first", ["samples", "weights"])
def test_samples_far_from_their_weights(first: str, tmp_path: Path) -> None:
    """Twice, so that what one profile left in the file is not taken for the next one's."""
    dice = random.Random(1)
    weights = [dice.randrange(1, 9) for _ in range(3 * lib.FP_SPEEDSCOPE_KEPT + 5)]
    samples = [[0, dice.randrange(40)] for _ in weights]
    lists = {"samples": samples, "weights": weights}
    profile = {"type": "sampled", first: lists.pop(first), **lists, "name": "p", "unit": "none"}
    path = tmp_path / "p.json"
    path.write_text(
        json.dumps({"profiles": [profile] * 2, "shared": {"frames": [{"name": f"g{i}"} for i in range(40)]}})
    )
    expected: Counter[str] = Counter()
    for stack, weight in zip(samples, weights, strict=True):
        expected[f"g{stack[-1]}"] += 2 * weight
    rows = fastprof.top(path, n=0, from_="speedscope").rows
    assert {row.name: row.self for row in rows if row.self} == expected
