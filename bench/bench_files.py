"""Batches of 100, 1,000 and 10,000 small files: milliseconds of CPU per file and peak memory.

    python -m bench.bench_files [N ...]

The files are copies of one gperftools log, in folders of 100; and logs of 157 addresses of libc, which each file has at
another address.  A batch of one file, the start of a command, is subtracted.  CPU counts all processes, the peak is
that of the largest one.
"""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.bench_stores import SMALL
from tests.support.paths import CORPUS

ONE = CORPUS / "gperftools/good/plain.prof"
COMMANDS = {
    "`batch convert -t pprof -j 1`": "batch convert {dumps} -t pprof -j 1 -q -o {out}",
    "`batch merge`": "batch merge {dumps} -t pprof -q -o {out}",
    "`batch merge -j 2`": "batch merge {dumps} -t pprof -j 2 -q -o {out}",
    "`batch archive -j 1`": "batch archive {dumps} -j 1 -q -o {out}.fpa",
    "`archive add`": "archive add -q {out}.fpa {dumps}",
}


def make(folder: Path, n: int) -> Path:
    for i in range(n):
        target = folder / f"host{i // 100:03}" / f"{i:06}.prof"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ONE, target)
    return folder


def make_moved(folder: Path, n: int) -> Path:
    """Logs of 39 KB: 250 chains of 157 functions of libc, and 75 lines of mappings."""
    libc = next(line.split()[-1] for line in Path("/proc/self/maps").open() if "/libc.so" in line or "/libc-" in line)
    text = subprocess.run(["readelf", "-lW", "--dyn-syms", libc], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    offset, start, _, size = (int(word, 16) for word in next(x for x in lines if x[:1] == ["LOAD"] and "E" in x)[1:5])
    choose = random.Random(3)
    functions = sorted({int(x[1], 16) for x in lines if x[3:4] == ["FUNC"] and int(x[1], 16) > start})
    chosen = choose.sample(functions, 157)
    chains = [[choose.choice(chosen) + 5 - start for _ in range(choose.randint(5, 25))] for _ in range(250)]
    others = "".join(
        f"{i + 16:x}0000-{i + 16:x}8000 r-{'-x'[i % 6 == 0]}p 0 fe:00 {i}  /usr/lib/other{i}.so\n" for i in range(74)
    )
    folder.mkdir()
    for i in range(n):
        base = 0x7F0000000000 + i * 0x3000000
        words = [0, 3, 0, 10000, 0]
        for count, chain in enumerate(chains, 1):
            words += [count % 9 + 1, len(chain), *(base + at for at in chain)]
        words += [0, 1, 0]
        own = f"{base:x}-{base + (size + 4095) // 4096 * 4096:x} r-xp {offset:08x} fe:00 1  {libc}\n"
        (folder / f"{i:06}.prof").write_bytes(struct.pack(f"<{len(words)}Q", *words) + (others + own).encode())
    return folder


def cost(command: str, dumps: Path, runs: int) -> tuple[float, float]:
    """CPU seconds and peak MiB, the best of some runs.

    The outputs stay until the end: ext4 does not use the inode of a file again within five seconds of its removal, and
    looking for others took 0.4 ms for each file of the next run.
    """
    best = (1e9, 1e9)
    for _ in range(runs):
        folder = tempfile.mkdtemp(dir=dumps.parent)
        words = command.format(dumps=dumps, out=f"{folder}/out").split()
        python = [sys.executable, "-I", "-S", "-c", SMALL, sys.executable, "-m", "fastprof"]
        said = subprocess.run([*python, *words], check=True, capture_output=True, text=True).stdout
        cpu, peak = map(float, said.split())
        best = min(best, (cpu, peak))
    return best


def main(sizes: list[int]) -> None:
    rows: dict[str, list[str]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        one = make(Path(folder, "1"), 1)
        starts = {name: cost(command, one, 3)[0] for name, command in COMMANDS.items()}
        for n in sizes:
            dumps = make(Path(folder, str(n)), n)
            for name, command in COMMANDS.items():
                cpu, peak = cost(command, dumps, 3 if n <= 1000 else 1)
                rows[name].append(f"{1000 * (cpu - starts[name]) / (n - 1):.2f} ms, {peak:.0f} MiB")
        name, several = next(iter(COMMANDS)), 300
        start = cost(COMMANDS[name], make_moved(Path(folder, "moved-1"), 1), 3)[0]
        cpu, _ = cost(COMMANDS[name], make_moved(Path(folder, "moved"), several), 3)
        print(f"{name} of logs at other addresses: {1000 * (cpu - start) / (several - 1):.2f} ms\n")
    print(f"| command | {' | '.join(f'{n:,}' for n in sizes)} |\n|{' --- |' * (len(sizes) + 1)}")
    for name, found in rows.items():
        print(f"| {name} | {' | '.join(found)} |")


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or [100, 1000, 10_000])
