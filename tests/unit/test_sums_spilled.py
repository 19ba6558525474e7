"""Sums of graphs are the same for any `--max-memory`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import fastprof
from fastprof.bridges.sums import aggregate
from tests.contract.dump import CORPUS

GRAPHS = sorted(p for kind in ("callgrind", "cachegrind") for p in (CORPUS / kind / "good").iterdir() if p.is_file())


def converted(inputs: list[Path], to: str, folder: Path, **options: object) -> bytes:
    out = folder / f"out.{to}"
    fastprof.convert([str(path) for path in inputs], str(out), to=to, **options)
    return out.read_bytes()


@pytest.mark.parametrize("to", ["callgrind", "cachegrind"])
@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.name)
def test_a_byte_of_memory_gives_the_same_bytes(path: Path, to: str, tmp_path: Path) -> None:
    options = {"aggregate": True} if to == "callgrind" else {}
    assert converted([path], to, tmp_path, max_memory=1, **options) == converted([path], to, tmp_path, **options)


def big(path: Path, seed: int) -> Path:
    """Blocks that repeat, in no order, with calls, jumps, inlined files and late columns."""
    rng = random.Random(seed)
    lines = ["positions: instr line", "events: Ir Dr"]
    for n in range(900):
        if n == 450:
            lines += ["part: 2", "events: Dr Bc Ir"]
        function = rng.randrange(60)
        lines += [f"ob=o{function % 3}", f"fl=f{function % 7}.c", f"fn=g{function}"]
        for _ in range(rng.randrange(1, 40)):
            at = f"0x{4096 + 4 * rng.randrange(300):x} {rng.randrange(30)}"
            kind = rng.randrange(8)
            if kind == 0:
                lines.append(f"fi=h{rng.randrange(4)}.c")
            elif kind == 1:
                lines += [f"cfn=g{rng.randrange(60)}", f"calls={rng.randrange(9)} 0x99 1", f"{at} 7 {n}"]
            elif kind == 2:
                lines.append(f"jcnd={rng.randrange(5)}/9 0x1234 {rng.randrange(3)}")
                lines.append(at)
            else:
                lines.append(f"{at} {rng.randrange(1 << rng.randrange(1, 40))} {rng.randrange(3)}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("limit", [1, 10_000, 300_000])
@pytest.mark.parametrize("to", ["callgrind", "cachegrind"])
def test_many_runs_merged_give_the_same_bytes(to: str, limit: int, tmp_path: Path) -> None:
    inputs = [big(tmp_path / f"{seed}.callgrind", seed) for seed in range(3)]
    spilled = converted(inputs, to, tmp_path, max_memory=limit, union=True)
    assert spilled == converted(inputs, to, tmp_path, union=True)


@pytest.mark.parametrize("to", ["callgrind", "cachegrind"])
def test_the_order_of_inputs_does_not_show(to: str, tmp_path: Path) -> None:
    inputs = [big(tmp_path / f"{seed}.callgrind", seed) for seed in range(3)]
    assert converted(inputs, to, tmp_path, union=True) == converted(inputs[::-1], to, tmp_path, union=True)


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(aggregate.Runs):
        def add(self, pull: object) -> None:
            raise fastprof.FastprofError("temporary file: No space left on device")

    monkeypatch.setattr(aggregate, "Runs", Full)
    with pytest.raises(fastprof.FastprofError, match="temporary file"):
        converted([big(tmp_path / "in.callgrind", 1)], "cachegrind", tmp_path, max_memory=1000)
    assert not (tmp_path / "out.cachegrind").exists()
