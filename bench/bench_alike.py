"""Stores of similar dumps against `tar | zstd -19 --long=27` of the same files: python -m bench.bench_alike [N]

Prints a table: bytes for each of N dumps (100).
"""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fastprof.store.adding import add

Dump = Callable[[random.Random], bytes]


def stacks(choose: random.Random, n: int) -> list[list[int]]:
    """Distinct stacks of a program of 400 functions, as numbers."""
    callees = [[choose.randrange(400) for _ in range(4)] for _ in range(400)]
    found: dict[tuple[int, ...], None] = {}
    while len(found) < n:
        stack = [0]
        for _ in range(choose.randrange(3, 25)):
            stack.append(callees[stack[-1]][min(3, int(choose.expovariate(1)))])
        found[tuple(stack)] = None
    return [[*stack] for stack in found]


def noisy(own: random.Random, mean: int) -> int:
    return max(1, int(own.gauss(mean, mean**0.5)))


def folded(n: int, others: int = 0, program: int = 1) -> Dump:
    choose = random.Random(program)
    names = [
        f"{choose.choice(['core', 'io', 'net', 'db'])}{program}::{choose.choice(['read', 'find', 'run'])}_{i}"
        for i in range(400)
    ]
    texts = [";".join(names[i] for i in stack) for stack in stacks(choose, n + others)]
    means = {text: max(1, int(choose.paretovariate(0.8) * 5)) for text in texts}
    base, spare = texts[:n], texts[n:]

    def dump(own: random.Random) -> bytes:
        chosen = [s if own.random() >= 0.15 else own.choice(spare) if spare else "" for s in base]
        return "".join(f"{s} {noisy(own, means[s])}\n" for s in sorted({*chosen} - {""})).encode()

    return dump


def several(n: int, programs: int) -> Dump:
    dumps = [folded(n, program=i) for i in range(programs)]
    return lambda own: own.choice(dumps)(own)


def gperftools(n: int) -> Dump:
    choose = random.Random(2)
    addresses = [0x400000 + choose.randrange(0x100000) for _ in range(400)]
    samples = [(max(1, int(choose.paretovariate(0.8) * 2)), stack) for stack in stacks(choose, n)]
    maps = b"00400000-00500000 r-xp 00000000 08:01 1234 /usr/bin/server\n"

    def dump(own: random.Random) -> bytes:
        words = [0, 3, 0, 10000, 0]
        for mean, stack in samples:
            if own.random() >= 0.15:
                words += [noisy(own, mean), len(stack), *(addresses[i] for i in reversed(stack))]
        words += [0, 1, 0]
        return struct.pack(f"<{len(words)}Q", *words) + maps

    return dump


def callgrind(functions: int, *, missing: float = 0, changed: bool = True) -> Dump:
    choose = random.Random(3)
    costs = [(f"fn_{i}", [(line, choose.randrange(1, 10**6)) for line in range(1, 6)]) for i in range(functions)]

    def dump(own: random.Random) -> bytes:
        lines = ["events: Ir", "fl=a.c"]
        for name, rows in costs:
            lines.append(f"fn={name}")
            for line, cost in rows:
                if missing and own.random() >= missing:
                    lines.append(f"{line} {noisy(own, cost) if changed else cost}")
                elif not missing:
                    lines.append(f"{line} {cost + (own.randrange(100) if own.random() < 0.15 else 0)}")
        return ("\n".join(lines) + "\n").encode()

    return dump


KINDS: dict[str, tuple[str, Dump]] = {
    "folded, 1,000 stacks": ("folded", folded(1000)),
    "folded, 1,000 stacks, new": ("folded", folded(1000, 2000)),
    "folded, 1,000 stacks, 2 programs": ("folded", several(1000, 2)),
    "folded, 1,000 stacks, 5 programs": ("folded", several(1000, 5)),
    "folded, 1,000 stacks, 20 programs": ("folded", several(1000, 20)),
    "folded, 150 stacks": ("folded", folded(150)),
    "gperftools, 1,000 stacks": ("prof", gperftools(1000)),
    "gperftools, 60 stacks": ("prof", gperftools(60)),
    "Callgrind, 9,500 lines, other values": ("cg", callgrind(1900)),
    "Callgrind, 1,500 lines, other values": ("cg", callgrind(300)),
    "Callgrind, 9,500 lines, missing, same values": ("cg", callgrind(1900, missing=0.15, changed=False)),
    "Callgrind, 1,500 lines, missing, same values": ("cg", callgrind(300, missing=0.15, changed=False)),
    "Callgrind, 1,500 lines, missing": ("cg", callgrind(300, missing=0.15)),
}


def measure(name: str, n: int) -> str:
    suffix, dump = KINDS[name]
    with tempfile.TemporaryDirectory() as folder:
        dumps, store = Path(folder, "dumps"), Path(folder, "s.fpa")
        dumps.mkdir()
        for i in range(n):
            Path(dumps, f"{i:04}.{suffix}").write_bytes(dump(random.Random(i)))
        raw = sum(path.stat().st_size for path in dumps.iterdir())
        peer = subprocess.run(
            f"tar -c --sort=name -C {folder} dumps | zstd -19 --long=27 -c", shell=True, check=True, capture_output=True
        )
        add(str(store), [str(dumps)])
        size, other = store.stat().st_size, len(peer.stdout)
    return f"| {name} | {' | '.join(f'{x / n:,.0f}' for x in (raw, other, size))} | {size / other:.2f} |"


if __name__ == "__main__":
    for kind in KINDS:
        print(measure(kind, int(sys.argv[1]) if len(sys.argv) > 1 else 100), flush=True)
