"""Stores of 100, 10,000 and 100,000 profiles: CPU seconds and peak memory of each command.

    python -m bench.bench_stores [N ...]

The profiles are copies of one small profile, with names of 200 hosts: what is measured is finding them, not their rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from fastprof.formats.archive.index import read_header, read_stored
from fastprof.formats.archive.sections import Member, with_header
from fastprof.store.adding import adding

REPO = Path(__file__).parents[1]
CORPUS = REPO / "tests" / "corpus" / "callgrind" / "good"
ONE = "host007/2026-08-08/000007.cg"
COMMANDS = {
    "`archive list` of one": f"archive list {{}} {ONE}",
    "`top` of one": f"top -q {{}}:{ONE}",
    "`archive extract` of one": f"archive extract -q {{}} {ONE} -o {{}}.folded",
    "`archive add` of one": f"archive add -q {{}} {CORPUS}/tab.callgrind --name new",
    "`archive rm` of one": "archive rm -q {} new",
    "`archive list 'host007/2026-08*'`": "archive list {} host007/2026-08*",
    "`archive list`, all": "archive list {}",
    "`archive list --sort size`, all": "archive list {} --sort size",
    "`info`": "info {}",
}
SQL = {
    "`sql`, sum over 20,000": ["sql", "-q", "{}", "select sum(Ir) from graph where kind = 'cost'"],
    "`sql`, count of 20,000": ["sql", "-q", "{}", "select count(*) from graph"],
}


def make(path: str, n: int) -> None:
    """A store of n profiles: the sections of one are copied, which takes less than adding each."""
    with adding(path) as session:
        session.add(str(CORPUS / "cfi.callgrind"), _name(0))
        session.add(str(CORPUS / "cfi.callgrind"), _name(1))
        first = session._changes[_name(1)]
        assert first is not None
        headers = [read_header(session._source, offset) for offset, _, _ in first.sections]
        stored = [(header, read_stored(session._source, header)) for header in headers]
        for i in range(2, n):
            copy, at = Member(session._next, _name(i), first.view), session._end
            copy.about, copy.summary = first.about, first.summary
            for header, data in stored:
                section = with_header(header, copy.number, data)
                copy.sections.append((at, header.type, len(section)))
                if header.offset in first.chunks:
                    copy.chunks[at] = first.chunks[header.offset]._replace(offset=at)
                session._file.write(section)
                at += len(section)
            session._end, session._next = at, copy.number + 1
            session._changes[copy.name] = copy


def _name(i: int) -> str:
    return f"host{i % 200:03}/2026-{i % 12 + 1:02}-{i % 28 + 1:02}/{i:06}.cg"


# The peak of a process begins with that of the process that started it, so a small one stands between.
SMALL = """
import os, sys
null = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, used = os.wait4(pid, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(status != 0)
"""


def cost(words: list[str]) -> tuple[float, float]:
    """CPU seconds and peak MiB of a command and its children; the best of three runs."""
    best = (1e9, 1e9)
    for _ in range(3 if "new" not in words else 1):
        command = [sys.executable, "-I", "-S", "-c", SMALL, sys.executable, "-m", "fastprof", *words]
        cpu, peak = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
        best = min(best, (cpu, peak))
    return best


def main(sizes: list[int]) -> None:
    rows: dict[str, list[str]] = {name: [] for name in (*COMMANDS, *SQL)}
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = f"{folder}/{n}.fpa"
            make(path, n)
            for name, command in COMMANDS.items():
                cpu, peak = cost([word.replace("{}", path) for word in command.split()])
                rows[name].append(f"{cpu:.2f} s, {peak:.0f} MiB")
            for name, words in SQL.items():
                if n != sizes[-1]:
                    rows[name].append("")
                    continue
                if not Path(folder, "sql.fpa").exists():
                    make(f"{folder}/sql.fpa", min(20_000, 200 * n))
                cpu, peak = cost([word.replace("{}", f"{folder}/sql.fpa") for word in words])
                rows[name].append(f"{cpu:.1f} s, {peak:.0f} MiB")
    print(f"| command | {' | '.join(f'{n:,}' for n in sizes)} |\n|{' --- |' * (len(sizes) + 1)}")
    for name, found in rows.items():
        print(f"| {name} | {' | '.join(found)} |")


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or [100, 10_000, 100_000])
