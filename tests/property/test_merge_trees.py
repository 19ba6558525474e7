"""The same contents give the same bytes, for any file names and any order, and if some files are merged before the
others, by way of archives."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import CORPUS

SETS = {
    "callgrind": ("callgrind", "*.callgrind"),
    "cachegrind": ("cachegrind", "*.cachegrind"),
    "gperftools": ("gperftools", "*.prof"),
    "pprof": ("pprof", "*.pb*"),
    "folded": ("folded", "*.folded"),
    "speedscope": ("speedscope", "*.json"),
    "xray": ("xray", "*.xray"),
}
TARGETS = {
    "callgrind": "graph",
    "cachegrind": "graph",
    "pprof": "stacks",
    "gperftools": "stacks",
    "folded": "stacks",
    "archive": "any",
}
# Their values are so large that a partial sum is an error, even if the total is not.
HUGE = ("everything.pb", "reversed.pb", "members.pb.gz", "huge.folded", "32_big_sum.json")


def known(name: str) -> list[Path]:
    """Inputs of one view: the tree of `batch merge` keeps several views apart."""
    folder, pattern = SETS[name]
    found = [path for path in sorted((CORPUS / folder / "good").glob(pattern)) if path.name not in HUGE]
    return [path for path in found if name != "speedscope" or fastprof.info(path).facts["view"] == "stacks"]


def merged(inputs: list[Path], out: Path, to: str) -> bytes:
    """The merged bytes; for an error its kind."""
    for options in ({"symbolize": False}, {}):
        try:
            fastprof.merge(inputs, out, to=to, union=True, **options)
            return out.read_bytes()
        except fastprof.FastprofError as error:
            if not options or "has no effect" not in str(error):
                return str(error).rpartition(":")[2].encode()
    raise AssertionError


def renamed(files: list[Path], folder: Path, rng: random.Random) -> list[Path]:
    """The same contents under other names, in any order."""
    folder.mkdir()
    names = rng.sample(range(1000), len(files))
    found = [folder / f"{name:03}.{file.name}" for name, file in zip(names, files, strict=True)]
    for file, path in zip(files, found, strict=True):
        shutil.copyfile(file, path)
    return rng.sample(found, len(found))


def tree(files: list[Path], folder: Path, rng: random.Random) -> list[Path]:
    """The remaining inputs after some were merged into archives, and some of those again."""
    n = 0
    while len(files) > 1 and rng.random() < 0.8:
        size = rng.randint(1, len(files))
        n += 1
        partial = folder / f"{rng.randrange(1000):03}-{n}.fpa"
        if merged(files[:size], partial, "archive") != partial.read_bytes():
            raise AssertionError(files[:size])
        files = rng.sample([*files[size:], partial], len(files) - size + 1)
    return files


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(2))
def test_any_tree_gives_the_same_bytes(name: str, to: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed}{name}{to}")
    files = [rng.choice(known(name)) for _ in range(rng.randint(3, 12))]
    expected = merged(renamed(files, tmp_path / "flat", rng), tmp_path / "expected", to)
    again = renamed(files, tmp_path / "again", rng)
    assert merged(again, tmp_path / "again.out", to) == expected
    # bridging each input differs from bridging their sum: `batch merge` bridges each input first
    of_each = name == "xray" or (name in ("callgrind", "cachegrind") and TARGETS[to] == "stacks")
    by_tree = not of_each
    for k in range(2 if by_tree else 0):
        (tmp_path / f"tree{k}").mkdir()
        inputs = tree(renamed(files, tmp_path / f"leaves{k}", rng), tmp_path / f"tree{k}", rng)
        assert merged(inputs, tmp_path / f"tree{k}.out", to) == expected, inputs
