"""Every fuzz target over the corpus of its format, a few files of each other one and what fuzzers found, as plain
programs under the sanitizers.  `make fuzz` starts from the corpus of all formats."""

from __future__ import annotations

import fcntl
import gzip
import os
import subprocess
from pathlib import Path

import pytest

from tests.differential.peers import need
from tests.support.chosen import CHOSEN
from tests.support.paths import REPO

TARGETS = sorted(path.stem.removesuffix("_fuzz") for path in (REPO / "tests" / "fuzz").glob("*_fuzz.c"))
CORPUS = sorted(p for kind in ("good", "bad") for p in (REPO / "tests" / "corpus").glob(f"*/{kind}/*"))
FORMATS = {path.parent.parent.name for path in CORPUS}
FEW = {REPO / "tests" / "corpus" / name for name in CHOSEN}
CORPUS += sorted((REPO / "tests" / "fuzz" / "seeds").iterdir())  # findings of fuzzers


def write_inputs(folder: Path, target: str) -> list[str]:
    for path in CORPUS:
        format_ = path.parent.parent.name
        if format_ in FORMATS and not format_.startswith(target) and path not in FEW:
            continue
        data = path.read_bytes()
        name = "-".join(path.parts[-3:])
        packed = data.startswith(b"\x1f\x8b") and "-bad-" not in name
        (folder / name).write_bytes(gzip.decompress(data) if packed else data)
        (folder / f"{name}-cut").write_bytes(data[: len(data) * 5 // 8])
    return [str(p) for p in sorted(folder.iterdir())]


def test_there_are_targets_and_inputs() -> None:
    assert TARGETS and len(CORPUS) > 40


@pytest.fixture(scope="module")
def programs() -> Path:
    """Of all targets, from the objects of `make fuzz`: compiled once for both and for all pytest processes."""
    need("clang-19")
    made = REPO / "build" / "fuzz" / "replay"
    made.mkdir(parents=True, exist_ok=True)
    with open(made / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make = [need("make"), "-s", f"-j{os.cpu_count()}", *(f"build/fuzz/replay/{name}" for name in TARGETS)]
        done = subprocess.run(make, cwd=REPO, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
    return made


@pytest.mark.parametrize("target", TARGETS)
def test_replay(target: str, programs: Path, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, target)
    assert len(inputs) > 2 * len(FEW)
    done = subprocess.run([programs / target, *inputs], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{len(inputs)} inputs\n"
