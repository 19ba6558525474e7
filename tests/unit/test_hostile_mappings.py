"""Profiles with very many mappings: processor time and memory grow with their number, in any order."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fastprof.bridges.rows.new_addresses import _Ranges
from fastprof.symbols.mappings import Mapping, Mappings
from tests.support.paths import REPO
from tests.unit.test_pprof import message, number, varint

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
import fastprof
path, *symbols = sys.argv[1:]
fastprof.convert(path, path + ".folded", from_="pprof", symbols=symbols)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # ru_maxrss has the parent's, too
sys.exit(int(peak.split()[1]) > 240 << 10)
"""


def profile(n: int, mapping: Callable[[int], bytes], strings: list[bytes], sampled: int) -> bytes:
    """Mapping i has file i (modulo their number); the first `sampled` have an address each, in a sample."""
    table = [b"", b"samples", b"count", *strings]
    return b"".join(
        [
            message(1, number(1, 1) + number(2, 2)),
            *(message(2, message(1, varint(i)) + message(2, varint(1))) for i in range(1, sampled + 1)),
            *(message(4, number(1, i) + number(2, i) + number(3, i << 12)) for i in range(1, sampled + 1)),
            *(message(3, number(1, i) + mapping(i) + number(5, 3 + i % len(strings))) for i in range(1, n + 1)),
            *(message(6, text) for text in table),
        ]
    )


def upwards(i: int) -> bytes:
    return number(2, i << 12) + number(3, i + 1 << 12)


def downwards(i: int) -> bytes:
    return number(2, (1 << 40) - (i << 12)) + number(3, (1 << 40) - (i - 1 << 12))


# Before: 280 MB; 300,000 took 15 s, which grew with the square; 20,000 took more than half a minute.
FILES = {
    "many": lambda: profile(500_000, upwards, [b"[x]"], 1),
    "the last one first": lambda: profile(350_000, downwards, [b"[x]"], 1),
    "files of many names": lambda: profile(25_000, upwards, [b"/no/%d.so" % i for i in range(25_000)], 25_000),
}


@pytest.mark.parametrize("name", FILES)
def test_many_mappings(name: str, tmp_path: Path) -> None:
    path = tmp_path / "in.pb"
    path.write_bytes(FILES[name]())
    symbols = [sys.executable] if name == "files of many names" else []
    command = [sys.executable, "-c", LIMITED, str(path), *symbols]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def test_ranges_that_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastprof.bridges.rows.new_addresses._LATEST", 3)
    rnd = random.Random(1)
    for _ in range(300):
        ranges, there = _Ranges(), set[int]()
        for _ in range(40):
            start = rnd.randrange(60)
            limit = start + rnd.randrange(4)
            wanted = there.isdisjoint(range(start, limit))
            if start < limit:
                assert ranges.add(start, limit) == wanted
                if wanted:
                    there |= {*range(start, limit)}


def test_an_address_is_in_the_nearest_mapping_or_else_the_first() -> None:
    rnd = random.Random(2)
    for _ in range(200):
        given = [Mapping(s := rnd.randrange(50), s + rnd.randrange(30), 0, "/x") for _ in range(rnd.randrange(1, 12))]
        whole, piecewise = Mappings(given), Mappings(given[:3])
        piecewise.add(given[3:])
        for address in range(82):
            starts = [m.start for m in given if m.start <= address]
            nearest = next((i for i, m in enumerate(given) if starts and m.start == max(starts)), -1)
            holding = [i for i, m in enumerate(given) if m.start <= address < m.limit]
            wanted = nearest if nearest in holding else min(holding, default=None)
            assert whole.find(address) == piecewise.find(address) == wanted


def test_addresses_between_the_small_ones_in_a_large_one() -> None:
    """Each was searched for in all of them."""
    n = 100_000
    maps = Mappings([Mapping(0, 1 << 63, 0, "/all"), *(Mapping(16 * i + 8, 16 * i + 9, 0, "/x") for i in range(n))])
    assert {maps.find(16 * i) for i in range(n)} == {0}
