"""Heaps as text, compared with go tool pprof on the same file, profiles of DHAT, and of Massif, compared with ms_print:
CPU time and peak memory.

python -m pytest bench/bench_heap.py             100 MB, a stack for each row: 10^6 stacks
FASTPROF_BENCH_SIZE=10M python -m pytest ...     any other size
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.bench_gperf import _record
from bench.peers import fastprof, peer

_SITES = [0x55CB1F980000 + 32 * k for k in range(20_000)]  # of calls


def heap(path: Path, nbytes: int) -> None:
    """A heap of tcmalloc in which nearly each row has a separate stack: walks of 4 to 8 calls from the root, at each
    of which the program may go on in 12 ways."""
    noise = random.Random(1)
    with path.open("w") as file:
        file.write("heap profile: 4065: 18834874 [ 7075: 35665475] @ heap_v2/524288\n")
        while file.tell() < nbytes:
            for _ in range(1000):
                place, stack = 0, []
                for _ in range(noise.randint(4, 8)):
                    place = (place * 31 + noise.randrange(12) * 7919 + 1) % len(_SITES)
                    stack.append(hex(_SITES[place]))
                count, each = noise.randint(1, 400), 16 * noise.randint(1, 64)
                pair = f"{count:6d}: {count * each:8d}"
                file.write(f"{pair} [{pair}] @ {' '.join(reversed(stack))}\n")
        file.write("\nMAPPED_LIBRARIES:\n55cb1f980000-55cb1fa80000 r-xp 00001000 08:01 4711  /srv/demo/server\n")


def _made(path: Path, write: Callable[[Path, int], None]) -> Path:
    size = os.environ.get("FASTPROF_BENCH_SIZE", "100M")
    write(path, int(size[:-1]) * {"M": 10**6, "G": 10**9}[size[-1]])
    return path


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("bench") / "big.heap", heap)


@pytest.mark.parametrize("target", ["out.pb.gz", "out.pb", "out.folded"])
def test_convert(benchmark: Any, profile: Path, target: str, tmp_path: Path) -> None:
    _record(benchmark, profile, fastprof("convert", "-q", "--no-symbols", profile, "-o", tmp_path / target))


def test_top(benchmark: Any, profile: Path) -> None:
    _record(benchmark, profile, fastprof("top", "-q", "--no-symbols", profile))


def test_go_tool_pprof(benchmark: Any, profile: Path, tmp_path: Path) -> None:
    command = ["go", "tool", "pprof", "-proto", "-symbolize=none", f"-output={tmp_path / 'out.pb.gz'}", str(profile)]
    _record(benchmark, profile, peer(command))


def dhat(path: Path, nbytes: int) -> None:
    """A profile of DHAT: points of 6 to 20 frames out of 20,000, with lifetimes and accesses."""
    noise = random.Random(1)
    frames = [f"0x{site:X}: work_{k % 3000}(int, char const*) (unit{k % 90}.cc:{k})" for k, site in enumerate(_SITES)]
    keys = ("tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk", "rb", "wb")
    with path.open("w") as file:
        file.write(
            '{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true,"cmd":"./a","pid":7,'
        )
        file.write('"tu":"instrs","Mtu":"Minstr","tuth":500,"te":900000,"tg":800000,"pps":\n')
        separator = "["
        while file.tell() < nbytes:
            values = ",".join(f'"{key}":{noise.randint(1, 100_000)}' for key in keys)
            place, stack = 0, list[int]()
            for _ in range(noise.randint(6, 20)):
                place = (place * 31 + noise.randrange(3) * 7919 + 1) % len(_SITES)
                stack.insert(0, place + 1)
            file.write(f'{separator}{{{values},"acc":[-{noise.randint(1, 64)},{noise.randint(1, 90)}],"fs":{stack}}}\n')
            separator = ","
        file.write(f'],"ftbl":{json.dumps(["[root]", *frames])}}}\n')


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("bench") / "dhat.out", dhat)


@pytest.mark.parametrize("target", ["out.pb.gz", "out.folded"])
def test_convert_points(benchmark: Any, points: Path, target: str, tmp_path: Path) -> None:
    _record(benchmark, points, fastprof("convert", "-q", points, "-o", tmp_path / target))


def test_info_of_points(benchmark: Any, points: Path) -> None:
    _record(benchmark, points, fastprof("info", points))


def massif(path: Path, nbytes: int) -> None:
    """A profile of Massif: each snapshot has a tree of some 7,000 nodes; the peak is in the middle."""
    noise = random.Random(1)
    names = [f"0x{site:X}: work_{k % 3000}(int, char const*) (unit{k % 90}.cc:{k})" for k, site in enumerate(_SITES)]

    def tree(place: int, depth: int, most: int, of: list[str]) -> int:
        """Append a node and those below it; its bytes."""
        at, total = len(of), noise.randint(16, 4096)
        of.append("")
        n = noise.randint(1, most) if depth < 9 else 0
        for _ in range(n):
            total += tree((place * 31 + noise.randrange(3) * 7919 + 1) % len(names), depth + 1, most, of)
        name = names[place] if depth else "(heap allocation functions) malloc/new/new[], --alloc-fns, etc."
        of[at] = f"{' ' * depth}n{n}: {total} {name}\n"
        return total

    trees: list[str] = []
    total = tree(0, 0, 4, trees)
    while len(trees) < 7000:  # a random tree may be small
        trees.clear()
        total = tree(0, 0, 4, trees)
    text = "".join(trees)
    count = max(1, nbytes // len(text))
    with path.open("w") as file:
        file.write("desc: --massif-out-file=massif.out\ncmd: ./a\ntime_unit: B\n")
        for k in range(count):
            kind = "peak" if k == count // 2 else "detailed"
            file.write(f"#-----------\nsnapshot={k}\n#-----------\ntime={k}000\nmem_heap_B={total}\n")
            file.write(f"mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree={kind}\n{text}")


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("bench") / "massif.out", massif)


def test_convert_snapshot(benchmark: Any, snapshots: Path, tmp_path: Path) -> None:
    _record(benchmark, snapshots, fastprof("convert", "-q", snapshots, "-o", tmp_path / "out.pb.gz"))


def test_info_of_snapshots(benchmark: Any, snapshots: Path) -> None:
    _record(benchmark, snapshots, fastprof("info", snapshots))


def test_ms_print(benchmark: Any, snapshots: Path) -> None:
    _record(benchmark, snapshots, peer(["ms_print", str(snapshots)]))
