"""How near estimated stacks are to the truth: real stacks -> graph -> estimated stacks, compared with the real ones.

python bench/estimate_truth.py PROFILE...        (anything that holds stacks or a timeline)

For each input the share of the cost that the estimate puts on the right stack: counting the last function and its 1, 2
or 3 nearest callers, and whole stacks.  A function that is in a stack twice, which the estimate never makes, is taken
once: main > a > b > a > c is main > a > c.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import fastprof
from fastprof.bridges.estimate.estimate import to_stacks
from fastprof.bridges.project.project import to_graph
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options

Stacks = Counter[tuple[int, ...]]
DEPTHS = (1, 2, 3, 10**6)


def functions_of(model: Model, stack: int, ids: dict[bytes, int], memo: dict[int, int]) -> tuple[int, ...]:
    """The functions of a stack, from the root, each once; numbered by name."""
    frames: list[int] = []
    while stack:
        stack, frame = model.row("stacks", stack)
        if frame not in memo:
            line = outer = model.row("frames", frame)[4]
            while outer:
                line, outer = outer, model.row("lines", outer)[3]
            function = model.row("lines", line)[0] if line else 0
            name = model.get_function(function).name if function else b""
            if name.startswith(b"["):  # code without a name is named by its place: one for all
                name = b""
            memo[frame] = ids.setdefault(name, len(ids))
        frames.append(memo[frame])
    path: list[int] = []
    for function in reversed(frames):
        if function in path:
            del path[path.index(function) + 1 :]
        else:
            path.append(function)
    return tuple(path)


def add(total: Stacks, batch: Batch, model: Model, value: int, ids: dict[bytes, int], memo: dict[int, int]) -> None:
    for stack, cost in zip(batch["stack"], batch.values(value), strict=False):
        total[functions_of(model, stack, ids, memo)] += cost


def measure(path: str) -> tuple[list[float], int]:
    with tempfile.TemporaryDirectory() as folder:
        stacks = Path(folder) / "x.pb"
        fastprof.convert(path, stacks)
        ids: dict[bytes, int] = {}
        memo: dict[int, int] = {}
        truth: Stacks = Counter()
        estimate: Stacks = Counter()
        with fastprof.open(stacks) as profile:
            model = profile._model

            def noted() -> object:
                for batch in profile:
                    add(truth, batch, model, batch.c.n_values - 1, ids, memo)
                    yield batch

            graph = to_graph(noted(), model, Options(), Log())  # type: ignore[arg-type]
            for batch in to_stacks(graph, model, Options(), Log()):
                add(estimate, batch, model, batch.c.n_values - 1, ids, memo)
    shares = []
    for depth in DEPTHS:
        one: Stacks = Counter()
        other: Stacks = Counter()
        for total, found in ((one, truth), (other, estimate)):
            for path_, cost in found.items():
                total[path_[-depth - 1 :]] += cost
        shares.append(sum(min(cost, other[key]) for key, cost in one.items()) / sum(one.values()))
    return shares, len(truth)


print("| profile | stacks | 1 caller | 2 | 3 | whole stack |\n|---|---|---|---|---|---|")
for argument in sys.argv[1:]:
    found, n = measure(argument)
    name = "/".join(Path(argument).parts[-2:])
    print(f"| `{name}` | {n:,} | " + " | ".join(f"{100 * share:.1f} %" for share in found) + " |", flush=True)
