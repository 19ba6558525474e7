"""Profiles for compilers, as llvm-profdata, clang and gcc read them; the recipe of docs/pgo.md."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof.formats.pgo.gcov import gcov
from fastprof.formats.pgo.levels import Profile
from tests.differential.peers import need
from tests.support.paths import CORPUS, REPO
from tests.unit.test_llvm_profile_read import Stack, rows

FOLDER = CORPUS / "llvm-profile"

# Dispatch through a table: the profile makes clang compare with the likely target and inline it.
APP = """
static long add(long x) { return x + 3; }
static long mul(long x) { return x * 5 % 1000003; }
static long rare(long x) { for (int i = 0; i < 40; i++) x = (x * 31 + i) % 999983; return x; }
static long (*volatile table[64])(long);
static long step(int i, long x) { return table[i & 63](x); }
int main(int n, char **v) {
    long x = 1;
    for (int i = 0; i < 64; i++) table[i] = i == 63 ? rare : i % 16 == 15 ? mul : add;
    for (long i = 0; i < 300000; i++) x = step(i, x);
    return x < 0;
}
"""


def run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), f"{command}: {done.stderr}"
    return done.stdout + done.stderr


def profile(folder: Path, encoding: str) -> Path:
    output = folder / f"{encoding}.llvmprof"
    fastprof.convert(
        FOLDER / "small.callgrind.xz", output, symbols=[str(FOLDER / "small")], llvm_profile={"format": encoding}
    )
    return output


def test_encodings_are_one_profile(tmp_path: Path) -> None:
    """Functions, places, targets, levels and the summary, as llvm-profdata prints them."""
    tool = need("llvm-profdata-19")
    files = [profile(tmp_path, encoding) for encoding in ("text", "binary", "extbinary")]
    texts = {run(tmp_path, tool, "merge", "--sample", "--text", file, "-o", "-") for file in files}
    assert len(texts) == 1 and texts.pop().count("\n") > 140
    summaries = {
        run(tmp_path, tool, "show", "--sample", "--detailed-summary", "--function=main", file) for file in files
    }
    assert len(summaries) == 1 and "8 blocks with count >= 300000 account for 1 percentage" in summaries.pop()
    sections = run(tmp_path, tool, "show", "--sample", "--show-sec-info-only", files[2])
    assert "NameTableSection" in sections and "{uniq}" in sections


def test_a_profile_overlaps_with_itself_merged(tmp_path: Path) -> None:
    tool = need("llvm-profdata-19")
    one, two = tmp_path / "one.llvmprof", tmp_path / "two.llvmprof"
    source = FOLDER / "small.callgrind.xz"
    fastprof.convert(source, one, symbols=[str(FOLDER / "small")])
    fastprof.merge([source, source], two, symbols=[str(FOLDER / "small")])
    overlap = run(tmp_path, tool, "overlap", "--sample", one, two)
    assert re.search(r"Whole program profile similarity: 100.000%|Function overlap: 100.000%", overlap), overlap
    # merged by llvm-profdata and by us: every count twice
    assert run(tmp_path, tool, "merge", "--sample", "--text", one, one, "-o", "-") == run(
        tmp_path, tool, "merge", "--sample", "--text", two, "-o", "-"
    )


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_clang_uses_the_profile(tmp_path: Path, level: str) -> None:
    """Counts of entries are in clang's code, and the dispatch is compared with its likely target."""
    clang, valgrind = need("clang-19"), need("valgrind")
    (tmp_path / "app.c").write_text(APP)
    flags = ("-g", "-fdebug-info-for-profiling", "-funique-internal-linkage-names")
    run(tmp_path, clang, *flags, level, "app.c", "-o", "app.train")
    options = ("--tool=callgrind", "--dump-instr=yes", "--demangle=no", "--callgrind-out-file=out")
    run(tmp_path, valgrind, *options, "./app.train")
    fastprof.convert(tmp_path / "out", tmp_path / "app.llvmprof", symbols=[str(tmp_path / "app.train")])
    code = run(
        tmp_path, clang, *flags, "-O2", "-fprofile-sample-use=app.llvmprof", "-S", "-emit-llvm", "app.c", "-o", "-"
    )
    assert "ProfileSummary" in code and re.search(r'!"function_entry_count", i64 \d+', code)
    assert re.search(r"icmp eq ptr %\w+, @_ZL3addl|icmp eq ptr %\w+, @(?:_ZL3addl|add)\.__uniq", code), code[:3000]
    plain = run(tmp_path, clang, *flags, "-O2", "-S", "-emit-llvm", "app.c", "-o", "-")
    assert not re.search(r"icmp eq ptr %\w+, @", plain)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_gcc_uses_the_profile(tmp_path: Path, level: str) -> None:
    """The likely target of the dispatch is inlined."""
    gcc, valgrind = need("gcc"), need("valgrind")
    (tmp_path / "app.c").write_text(APP)
    run(tmp_path, gcc, "-g", level, "app.c", "-o", "app.train")
    options = ("--tool=callgrind", "--dump-instr=yes", "--demangle=no", "--callgrind-out-file=out")
    run(tmp_path, valgrind, *options, "./app.train")
    fastprof.convert(tmp_path / "out", tmp_path / "app.afdo", symbols=[str(tmp_path / "app.train")])
    for given, expected in (("-fauto-profile=app.afdo",), True), ((), False):
        run(tmp_path, gcc, "-g", "-O2", *given, "-fdump-tree-optimized=dump", "-S", "app.c", "-o", "app.s")
        assert bool(re.search(r"INLINE_ENTRY add\b", (tmp_path / "dump").read_text())) is expected


NEVER = """
int f(int n, short *t, int *o) {
    int c = 0, i;
    for (i = 0;
         i < n;
         i++) {
        if (t[i] & 98)
            c++;
    }
    o[0] = c;
    return c;
}
int main(int n, char **v) {
    static short t[100];
    int o[1];
    for (int k = 0; k < 100; k++) f(n, t, o);
    return o[0];
}
"""


def test_gcc_takes_loops_with_code_that_never_ran(tmp_path: Path) -> None:
    """gcc 12 divides by zero where the condition of a vectorized loop has no count, or 0."""
    gcc, valgrind = need("gcc"), need("valgrind")
    (tmp_path / "app.c").write_text(NEVER)
    run(tmp_path, gcc, "-g", "-O0", "app.c", "-o", "app")
    run(tmp_path, valgrind, "--tool=callgrind", "--dump-instr=yes", "--callgrind-out-file=out", "./app")
    fastprof.convert(tmp_path / "out", tmp_path / "app.afdo", symbols=[str(tmp_path / "app")])
    run(tmp_path, gcc, "-g", "-O2", "-fauto-profile=app.afdo", "-c", "app.c")


@pytest.mark.parametrize("counts", [(1, 1, 50), (1, 1, 500), (1, 1, 10**6), (10**4, 1, 10**7)])
def test_gcc_takes_loops_with_fewer_rounds_than_entries(tmp_path: Path, counts: tuple[int, int, int]) -> None:
    """As samples may state.  gcc 12 divides by zero at the first two of them as they are."""
    (tmp_path / "app.c").write_text(
        "int f(const int *t, int n)\n{\n  int c = 0;\n  for (int i = 0; i < n; i++)\n    if (t[i] & 98)\n      c++;\n"
        "  return c;\n}\n"
    )
    profile = Profile()
    function = profile.function("f")
    function.head = 2 * max(counts)
    for offset, count in enumerate((function.head, *counts, function.head), 2):
        function.count((offset, 0), count)
    (tmp_path / "app.afdo").write_bytes(b"".join(gcov(profile, sampled=True)))
    run(tmp_path, need("gcc"), "-g", "-O2", "-fauto-profile=app.afdo", "-c", "app.c")


@pytest.mark.parametrize("layout, version", [("padded", 2), ("version1", 1)])
def test_dump_gcov_reads_the_profile(tmp_path: Path, layout: str, version: int) -> None:
    """Functions, how often they were entered, and the largest count of each line; its totals are sums of these."""
    fastprof.convert(FOLDER / "lbr.data.xz", tmp_path / "a", to="llvm-profile", symbols=[str(FOLDER / "lbr")])
    expected: dict[str, tuple[int, dict[int, int]]] = {}
    for line in (tmp_path / "a").read_text().splitlines():
        if not line.startswith(" "):
            name, _, head = line.split(":")
            expected[name] = int(head), {}
        elif found := re.match(r" (\d+)(?:\.\d+)?: (\d+)\b", line):
            offset, count = map(int, found.groups())
            lines = expected[name][1]
            lines[offset] = max(lines.get(offset, 0), count)
    options = {"format": layout}
    fastprof.convert(FOLDER / "lbr.data.xz", tmp_path / "b.afdo", symbols=[str(FOLDER / "lbr")], gcov_profile=options)
    read: dict[str, tuple[int, dict[int, int]]] = {}
    for line in run(tmp_path, need("dump_gcov"), f"--gcov_version={version}", "b.afdo").splitlines():
        if found := re.fullmatch(r"(\S+) total:\d+ head:(\d+)", line):
            read[found[1]] = int(found[2]), {}
            lines = read[found[1]][1]
        elif found := re.match(r"  (\d+): (\d+)\b", line):
            lines[int(found[1])] = int(found[2])
    assert read == expected and len(read) > 10


def printed(text: str) -> tuple[dict[tuple[str, ...], tuple[int, int]], dict[str, tuple[int, int]]]:
    """What dump_gcov prints: by inline chain and line the largest count and the sum of the calls, of all
    discriminators; by function its total and the sum of all its counts."""
    lines: dict[tuple[str, ...], tuple[int, int]] = {}
    totals: dict[str, tuple[int, int]] = {}
    chain: tuple[str, ...] = ()
    for line in text.splitlines():
        depth, offset = (len(line) - len(line.lstrip())) // 2, line.split(":")[0].split(".")[0].strip()
        if found := re.match(r"\S+ total:(\d+) head", line):
            chain = (line.split()[0],)
            totals[chain[0]] = int(found[1]), 0
        elif found := re.search(r": (\S+) total:\d+$", line):
            chain = (*chain[: 2 * depth - 1], offset, found[1])
        elif found := re.match(r"[^:]+: (\d+)(.*)", line):
            at, n = (*chain[: 2 * depth - 1], offset), int(found[1])
            most, calls = lines.get(at, (0, 0))
            lines[at] = max(most, n), calls + sum(int(one) for one in re.findall(r":(\d+)", found[2]))
            totals[chain[0]] = totals[chain[0]][0], totals[chain[0]][1] + n
    return lines, totals


def test_create_gcov_agrees(tmp_path: Path) -> None:
    """Its totals are sums of the counts of lines and discriminators.  A line that calls has at least as many here."""
    peer, dump = need("create_gcov"), need("dump_gcov")
    (tmp_path / "test.lbr").write_bytes(lzma.decompress((FOLDER / "lbr.data.xz").read_bytes()))
    program = tmp_path / "test.binary"  # as in the recording
    program.write_bytes((FOLDER / "lbr").read_bytes())
    run(tmp_path, peer, "--binary=test.binary", "--profile=test.lbr", "--gcov=peer.afdo", "--gcov_version=2")
    options = {"format": "padded"}
    fastprof.convert(tmp_path / "test.lbr", tmp_path / "mine.afdo", symbols=[str(program)], gcov_profile=options)
    theirs, totals = printed(run(tmp_path, dump, "--gcov_version=2", "peer.afdo"))
    ours, _ = printed(run(tmp_path, dump, "--gcov_version=2", "mine.afdo"))
    assert theirs.keys() == ours.keys() and len(theirs) > 400
    assert all(ours[at][0] == n or n < ours[at][0] == calls for at, (n, calls) in theirs.items())
    assert all(total == sum_ for total, sum_ in totals.values())


def test_a_line_of_many_blocks_counts_as_often_as_gcc_ran_it(tmp_path: Path) -> None:
    """gcc numbers the blocks of a line; as discriminators of LLVM, some of these numbers would be factors."""
    gcc, valgrind = need("gcc"), need("valgrind")
    branches = " ".join(f"if (n & {1 << i}) k += {i}; else k ^= {i};" for i in range(12))
    code = f"volatile int k;\n__attribute__((noinline)) int work(int n) {{\n{branches}\nreturn k;\n}}\n"
    (tmp_path / "app.c").write_text(code + "int main(void) { for (int i = 0; i < 100; i++) work(i); return 0; }\n")
    run(tmp_path, gcc, "-g", "-O2", "app.c", "-o", "app")
    options = ("--tool=callgrind", "--dump-instr=yes", "--callgrind-out-file=out")
    run(tmp_path, valgrind, *options, "./app")
    fastprof.convert(
        tmp_path / "out", tmp_path / "app.afdo", symbols=[str(tmp_path / "app")], gcov_profile={"format": "padded"}
    )
    text = run(tmp_path, need("dump_gcov"), "--gcov_version=2", "app.afdo")
    assert re.search(r"^work total:\d+ head:100\n(?:  0: 100\n)?  1: 100\n", text, re.MULTILINE), text
    fastprof.convert(tmp_path / "out", tmp_path / "app.llvmprof", symbols=[str(tmp_path / "app")])
    of_work = (tmp_path / "app.llvmprof").read_text().partition("work:")[2].partition("main:")[0]
    counts = [int(n) for n in re.findall(r"^ [\d.]+: (\d+)$", of_work, re.MULTILINE)]
    assert max(counts) == 100 and len(counts) > 2, of_work


RUST = """
#[inline(never)]
fn step(x: u64, k: u64) -> u64 { if x % 64 == 63 { x * 31 % 999983 + k } else { x + 3 } }
fn main() { let mut x = 1u64; for i in 0..50000 { x = step(x, i); } println!("{}", x); }
"""


def test_the_recipes(tmp_path: Path) -> None:
    """The commands of docs/pgo.md, as printed: clang, rustc, gcc, BOLT, Go."""
    for tool in ("valgrind", "rustc"):
        need(tool)
    folder, dumps = tmp_path / "bin", tmp_path / "dumps"
    folder.mkdir()
    tools = {"clang": need("clang-19"), "llvm-bolt": need("llvm-bolt-19"), "fastprof": f"{sys.executable} -m fastprof"}
    for name, command in tools.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    (tmp_path / "app.c").write_text(APP)
    (tmp_path / "app.rs").write_text(RUST)
    dumps.mkdir()
    for copy in (dumps / "a.prof", tmp_path / "web1.prof", tmp_path / "canary.prof"):
        copy.write_bytes((CORPUS / "pprof/compiler.pb.gz").read_bytes())
    blocks = re.findall(r"^```sh\n(.*?)^```$", (REPO / "docs/pgo.md").read_text(), re.MULTILINE | re.DOTALL)
    expected = ["llvmprof", "llvmprof", "afdo", "bolt", "pgo"]
    assert len(blocks) == len(expected)
    environment = f"PATH={folder}:{os.environ['PATH']}:/usr/bin:/bin", "RUSTC_BOOTSTRAP=1"
    for block, suffix in zip(blocks, expected, strict=True):
        before = {*tmp_path.glob(f"*.{suffix}")}
        for path in before:
            path.unlink()
        run(tmp_path, "env", *environment, "sh", "-ec", block)
        (made,) = tmp_path.glob(f"*.{suffix}")
        content = made.read_bytes()
        if "rustc" in block:
            flags = "-g -Z debug-info-for-profiling -O -Z profile-sample-use=app.llvmprof --emit=llvm-ir"
            run(tmp_path, "env", *environment, "rustc", *flags.split(), "app.rs", "-o", "app.ll")
            assert re.search(r'"function_entry_count", i64 5000[01]\b', (tmp_path / "app.ll").read_text())
        elif suffix == "llvmprof":
            assert content.startswith(b"main:")
        elif suffix == "afdo":
            assert content.startswith(b"adcg")
        elif suffix == "bolt":
            assert run(tmp_path, tmp_path / "app.bolt") == run(tmp_path, tmp_path / "app")


def perf2bolt() -> str:
    """The program acts by its name: as perf2bolt-19 it would be llvm-bolt."""
    return str(Path(need("perf2bolt-19")).resolve().parent / "perf2bolt")


def test_perf2bolt_reads_branches(tmp_path: Path) -> None:
    """Its entries are ours, with the same counts; llvm-bolt takes both, and counts without branches."""
    program, lbr = FOLDER / "lbr", FOLDER / "lbr.data.xz"
    fastprof.convert(lbr, tmp_path / "a.preagg", symbols=[str(program)])
    run(tmp_path, perf2bolt(), "-p", "a.preagg", "-pa", "-o", "peer.fdata", program)
    fastprof.convert(lbr, tmp_path / "a.fdata", symbols=[str(program)], bolt={"format": "fdata"})
    peer, mine = ({*(tmp_path / name).read_text().splitlines()} for name in ("peer.fdata", "a.fdata"))
    assert len(peer) > 250 and not peer - mine and len(mine - peer) <= 3
    fastprof.convert(lbr, tmp_path / "a.pb.gz", symbolize=False)
    fastprof.convert(tmp_path / "a.pb.gz", tmp_path / "samples.fdata", to="bolt", symbols=[str(program)])
    bolt = Path(perf2bolt()).with_name("llvm-bolt")
    for data in ("a.fdata", "samples.fdata"):
        said = run(tmp_path, bolt, program, "-o", "out", "-data", data, "-reorder-blocks=ext-tsp")
        (changed,) = re.findall(r"reordering modified layout of (\d+) functions", said)
        assert int(changed) > 10, said


def test_llvm_profgen_agrees(tmp_path: Path) -> None:
    """About branch stacks, read by perf."""
    tool, profdata = need("llvm-profgen-19"), need("llvm-profdata-19")
    need("perf")
    (tmp_path / "test.lbr").write_bytes(lzma.decompress((FOLDER / "lbr.data.xz").read_bytes()))
    (tmp_path / "test.binary").write_bytes((FOLDER / "lbr").read_bytes())
    run(tmp_path, tool, "--perfdata=test.lbr", "--binary=test.binary", "--output=peer", "--format=text")
    fastprof.convert(
        tmp_path / "test.lbr", tmp_path / "mine", to="llvm-profile", symbols=[str(tmp_path / "test.binary")]
    )
    texts = [run(tmp_path, profdata, "merge", "--sample", "--text", name, "-o", "-") for name in ("peer", "mine")]
    assert texts[0] == texts[1] and texts[0].count("\n") > 200


EXT = ("--extbinary", "--compress-all-sections", "--use-md5")


def with_md5(found: dict[str, Counter[Stack]]) -> dict[str, Counter[Stack]]:
    """The rows with the numbers that LLVM gives names."""

    def number(name: str) -> str:
        return str(int.from_bytes(hashlib.md5(name.encode(), usedforsecurity=False).digest()[:8], "little"))

    return {
        type_: Counter({tuple((number(name), *at) for name, *at in stack): n for stack, n in sums.items()})
        for type_, sums in found.items()
    }


ENCODINGS = [("--binary",), EXT[:1], EXT[:2], EXT, (EXT[0], EXT[2])]


@pytest.mark.parametrize(
    "source, flags",
    [(source, flags) for source in ("lbr.llvmprof", "small.llvmprof") for flags in ENCODINGS]
    + [("contexts", flags) for flags in ENCODINGS[1:]],  # the first one has none
)
def test_encodings_of_llvm_profdata_are_read(tmp_path: Path, flags: tuple[str, ...], source: str) -> None:
    """The rows are those of the text."""
    tool = need("llvm-profdata-19")
    given = FOLDER / source
    if source == "contexts":
        given = tmp_path / "contexts"
        inlined = " 3: size:12\n  0: 12\n  !CFGChecksum: 7\n !CFGChecksum: 9\n !Attributes: 1\n"
        given.write_text(f"[main:3 @ walk]:20:2\n 1: 20\n 2.1: 8 leaf:5 other:3\n{inlined}[main]:4:1\n 0: 4\n")
    run(tmp_path, tool, "merge", "--sample", *flags, given, "-o", "out")
    expected = rows(given.read_bytes())
    assert rows((tmp_path / "out").read_bytes()) == (with_md5(expected) if EXT[2] in flags else expected)


PAIRS = [
    (
        "main:9:0\n 1: 90\n 2.1: 5\n 3: g:9\n  1: 7\n  2: h:1\n   1: 1\n",
        "main:9:3\n 1: 4\n 2.2: 500\n 3: g:9\n  1: 70\n",
    ),
    ("a:9:0\n 1: 1000000\nb:9:0\n 1: 3\n 2: 0\n", "b:9:0\n 1: 30\n 2: 4\nc:8:8\n 2: 7\n"),
    ("a:9:0\n 1: 6\n 2: x:1\n  1: 9\n 2: y:1\n  1: 2\n", "a:9:0\n 1: 6\n 2: y:1\n  1: 9\n 4: x:1\n  1: 2\n"),
    ("small.llvmprof", "small.llvmprof"),
    ("lbr.llvmprof", "small.llvmprof"),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("turned", [False, True])
def test_overlap_is_that_of_llvm_profdata(tmp_path: Path, pair: tuple[str, str], turned: bool) -> None:
    """All its figures."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, content in zip(paths[::-1] if turned else paths, pair, strict=True):
        path.write_text((FOLDER / content).read_text() if "\n" not in content else content)
    said = run(tmp_path, need("llvm-profdata-19"), "overlap", "--sample", *paths)
    peer = [line.rpartition(": ")[2] for line in said.splitlines()[2:] if ": " in line]
    found = fastprof.diff(*paths, from_="llvm-profile", stats=True).overlap
    assert found
    shares = [found.similarity, found.samples, found.only_old, found.only_new]
    mine = [f"{100 * share:.3f}%" for share in shares] + [str(found.old_samples), str(found.new_samples)]
    for one in (found.functions, found.hot_functions, found.hot_blocks):
        mine += [f"{100 * one.share:.3f}%", str(one.both), str(one.only_old), str(one.only_new)]
    assert mine == peer
