"""10,000 addresses of a C++ program of 45 MB of DWARF, compared with llvm-symbolizer; and its line tables.

python -m pytest bench/bench_symbols.py          builds the program first, which takes a minute or two
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, peer
from fastprof.core._c import lib
from fastprof.symbols.dwarf import LineTables
from fastprof.symbols.elf import ElfFile
from fastprof.symbols.objects import ElfObject

HEADERS = ("algorithm", "functional", "map", "regex", "string", "unordered_map", "vector")
# containers of their own for each number: the library's templates are what fills debug information
UNIT = """
struct T{n} {{ int k; std::string s; bool operator<(const T{n} &o) const {{ return k < o.k; }} }};
int run{n}(int n) {{
  std::map<int, T{n}> m; std::vector<T{n}> v; std::unordered_map<std::string, T{n}> u;
  for (int i = 0; i < n; i++) {{ m[i].k = i; v.push_back(m[i]); u[m[i].s].k = i; }}
  std::sort(v.begin(), v.end());
  std::stable_sort(v.begin(), v.end(), [](auto &a, auto &b) {{ return a.s < b.s; }});
  return int(m.size() + v.size() + u.size());
}}
"""
LOOKUP = """
import sys
from fastprof.symbols.objects import ElfObject
answers = ElfObject(sys.argv[1]).lookup_many([int(line, 16) for line in open(sys.argv[2])])
assert len(answers) == 10_000 and sum(map(bool, answers)) > 9_000
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    source = "".join(f"#include <{header}>\n" for header in HEADERS) + "".join(UNIT.format(n=n) for n in range(120))
    calls = " + ".join(f"run{n}(c)" for n in range(120))
    (folder / "big.cpp").write_text(f"{source}\nint main(int c, char **) {{ return {calls}; }}\n")
    subprocess.run(["g++", "-O1", "-g", "big.cpp", "-o", "big"], cwd=folder, check=True)
    text = ElfObject(folder / "big").section(".text")
    assert text is not None
    code = range(text.address, text.address + text.size)
    (folder / "addresses").write_text("".join(f"{a:#x}\n" for a in random.Random(7).choices(code, k=10_000)))
    return folder / "big"


def _record(benchmark: Any, command: list[str]) -> None:
    best = min((Run(command) for _ in range(3)), key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["CPU seconds"] = round(best.cpu_seconds, 2)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


def test_lookup(benchmark: Any, program: Path) -> None:
    _record(benchmark, [sys.executable, "-c", LOOKUP, str(program), str(program.with_name("addresses"))])


def test_line_tables(benchmark: Any, program: Path) -> None:
    def rows() -> int:
        tables = LineTables(ElfFile(program))
        tables.find(0)  # they are read at the first lookup
        return int(lib.fp_dwarf_lines_stats(tables._lines).rows)

    n = benchmark.pedantic(rows, rounds=9)
    benchmark.extra_info["rows"] = n
    benchmark.extra_info["M rows/s"] = round(n / benchmark.stats.stats.min / 1e6)


def test_llvm_symbolizer(benchmark: Any, program: Path) -> None:
    tool, *options = peer(["llvm-symbolizer", f"--obj={program}", "--output-style=JSON"])
    _record(benchmark, [tool, *options, "@" + str(program.with_name("addresses"))])
