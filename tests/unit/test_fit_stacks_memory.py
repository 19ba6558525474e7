"""What is chosen for a viewer does not depend on the limit of memory, and its stacks take none."""

from __future__ import annotations

import random
from pathlib import Path
from unittest import mock

import pytest

import fastprof
from fastprof.bridges.budget import fit_stacks
from tests.support.peak import peak


def stacks(path: Path, n: int, depth: int) -> str:
    chosen = random.Random(1)
    lines = (";".join(f"f{chosen.randrange(200)}" for _ in range(depth)) + f" {i % 7 + 1}\n" for i in range(n))
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.parametrize("to", ["speedscope", "firefox"])
@pytest.mark.parametrize("budget", [50_000, 1 << 20, 100 << 20])
def test_a_small_limit_gives_the_same_bytes(to: str, budget: int, tmp_path: Path) -> None:
    path = stacks(tmp_path / "in.folded", 20_000, 12)
    written = []
    for limit, nodes in ((1 << 30, 1 << 30), (1 << 20, 1 << 10)):
        out = tmp_path / str(limit)
        with mock.patch.object(fit_stacks, "_NODES", nodes):
            fastprof.convert(path, str(out), to=to, budget=budget, max_memory=limit)
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("to", ["speedscope", "firefox"])
def test_stacks_for_a_viewer_leave_memory(to: str, tmp_path: Path) -> None:
    """2.4 million contexts: 60 bytes of each would be 144 MB."""
    path = stacks(tmp_path / "in.folded", 120_000, 20)
    assert peak("convert", "-q", path, "-o", "/dev/null", "--to", to, "--budget", "2M") < 90 << 20


@pytest.mark.parametrize("to", ["speedscope", "firefox"])
@pytest.mark.parametrize("budget", [100_000, 1 << 20, 100 << 20])
def test_samples_with_times_do_not_depend_on_the_limit(to: str, budget: int, tmp_path: Path) -> None:
    """Their stacks are no walk: they stay in the model, and are nodes only if they are weighed."""
    path = tmp_path / "in.perf"
    chosen = random.Random(1)
    with path.open("w") as file:
        for i in range(10_000):
            file.write(f"a 1/1 {i // 1000}.{i % 1000:03}000: 7 cycles:\n")
            file.writelines(f"\t{n:x} f{n} (/a)\n" for n in (chosen.randrange(200) for _ in range(20)))
            file.write("\n")
    written = []
    for limit in (1 << 20, 1 << 30):
        fastprof.convert(str(path), str(tmp_path / "out"), to=to, budget=budget, max_memory=limit)
        written.append((tmp_path / "out").read_bytes())
    assert written[0] == written[1]
