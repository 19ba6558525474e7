"""Profiles recorded here: the real readers print the same for them and for the files that we write from them."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fastprof import convert
from fastprof.core.options import Options
from tests.differential.peers import need
from tests.differential.test_callgrind_tools import costs, figures, run
from tests.reference.callgrind import Part, Row, parse
from tests.reference.kcachegrind import load
from tests.support.graphs import read_parts, rewrite

PROGRAMS = Path(__file__).parent / "programs"
ANNOTATE = ("--auto=no", "--show-percs=no", "--threshold=100", "--tree=both")
# name: options of Callgrind, and the number of threads that the program starts
CALLGRIND = {
    "default": ([], 2),
    "jumps": (["--dump-instr=yes", "--collect-jumps=yes"], 2),
    "jumps-by-line": (["--collect-jumps=yes"], 0),
    "contexts": (["--separate-recs=4", "--separate-callers=2"], 0),
    "events": (
        ["--cache-sim=yes", "--branch-sim=yes", "--collect-bus=yes", "--collect-systime=nsec", "--cacheuse=yes"],
        2,
    ),
    "write-back": (["--cache-sim=yes", "--simulate-wb=yes", "--dump-instr=yes"], 0),
    "names-in-full": (["--compress-strings=no", "--collect-jumps=yes"], 0),
    "positions-in-full": (["--compress-pos=no", "--dump-instr=yes", "--collect-jumps=yes"], 0),
    "all-in-full": (["--compress-strings=no", "--compress-pos=no"], 0),
    "instructions-only": (["--dump-instr=yes", "--dump-line=no"], 0),
    "no-inlining-info": (["--read-inline-info=no", "--toggle-collect=work*"], 1),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "grind"
    source = PROGRAMS / "grind.cpp"
    subprocess.run([need("g++"), "-g", "-O2", "-pthread", str(source), "-o", str(path)], check=True)
    return path


def record(tool: str, program: Path, out: Path, options: list[str], threads: int = 0) -> list[Path]:
    """Run the program under a Valgrind tool.  Returns the files that it wrote, in the order of their names."""
    command = [need("valgrind"), "-q", f"--tool={tool}", f"--{tool}-out-file={out}", *options, program, str(threads)]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return sorted(out.parent.glob(out.name + "*"))


def annotated(path: Path, inclusive: str) -> Counter[str]:
    return figures(run(need("callgrind_annotate"), *ANNOTATE, f"--inclusive={inclusive}", path))


def check(recorded: Path, tmp_path: Path) -> list[Part]:
    """Compare one recorded file with our copies, in full and compressed.  Returns its parts."""
    before, log = read_parts(recorded)
    assert not log.losses and not log.warnings and not log.not_representable
    for part in before:
        assert part.totals is not None
        assert part.totals + [0] * (len(part.events) - len(part.totals)) == part.sums
    ours = tmp_path / "ours"
    # of several parts it adds up unrelated rows
    theirs = {inclusive: annotated(recorded, inclusive) for inclusive in ("no", "yes") if len(before) == 1}
    for compress in (True, False):
        data = rewrite(recorded, options=Options(compress_names=compress, compress_positions=compress))
        assert rewrite(data, options=Options(compress_names=compress, compress_positions=compress)) == data
        assert [p.rows for p in parse(data)] == [p.rows for p in before]
        ours.write_bytes(data)
        for inclusive, printed in theirs.items():
            assert annotated(ours, inclusive) == printed
    return before


@pytest.mark.parametrize("name", CALLGRIND)
def test_callgrind_annotate_prints_the_same(name: str, program: Path, tmp_path: Path) -> None:
    options, threads = CALLGRIND[name]
    files = record("callgrind", program, tmp_path / "callgrind.out", options, threads)
    assert len(files) == 1
    (part,) = check(files[0], tmp_path)
    kinds = {row.kind for row in part.rows}
    assert kinds == {"cost", "call"} | ({"jump", "jcnd"} if "--collect-jumps=yes" in options else set())
    assert len(part.events) == {"events": 21, "write-back": 12}.get(name, 1)


# ---- several forms of Callgrind's output ---------------------------------------


def summed(parts: list[Part]) -> tuple[Counter[Row], Counter[Row]]:
    """For each place (a row without its figures), the sum of the first event, and of the counts."""
    values: Counter[Row] = Counter()
    counts: Counter[Row] = Counter()
    for row in (row for part in parts for row in part.rows):
        place = row._replace(values=(), count=0, count2=0)
        values[place] += row.values[0]
        counts[place] += row.count + row.count2
    return values, counts


@pytest.mark.parametrize(
    ("options", "other"),
    [
        (["--dump-instr=yes", "--collect-jumps=yes"], ["--compress-pos=no"]),
        (["--dump-instr=yes", "--dump-bb=yes", "--collect-jumps=yes"], ["--compress-pos=no"]),
        (["--dump-instr=yes", "--collect-jumps=yes"], ["--compress-strings=no"]),
        (["--separate-recs=4", "--separate-callers=2"], ["--compress-mangled=yes"]),
    ],
    ids=["positions", "blocks", "names", "mangled"],
)
def test_what_callgrind_compresses_reads_as_what_it_does_not(
    options: list[str], other: list[str], program: Path, tmp_path: Path
) -> None:
    """Two runs of one thread count the same; blocks and lines of one place come in the order of heap addresses."""
    (one,) = record("callgrind", program, tmp_path / "one", options)
    (two,) = record("callgrind", program, tmp_path / "two", [*options, *other])
    assert summed(read_parts(one)[0]) == summed(read_parts(two)[0])


def test_contexts_that_are_not_part_of_names(program: Path, tmp_path: Path) -> None:
    """With --mangle-names=no, blocks state caller and recursion next to the name, and also define numbers there;
    Callgrind then never writes the names of some functions."""
    options = ["--separate-recs=3", "--separate-callers=2"]
    (mangled,) = record("callgrind", program, tmp_path / "mangled", options)
    (apart,) = record("callgrind", program, tmp_path / "apart", [*options, "--mangle-names=no"])
    assert b"\nrec=" in apart.read_bytes() and b"\nfrfn=" in apart.read_bytes()
    costs: list[Counter[tuple[bytes, ...]]] = []
    for path in (mangled, apart):
        parts, log = read_parts(path)
        assert set(log.repairs) <= {"unnamed-numbers"} and not log.warnings
        costs.append(Counter())
        for row in parts[0].rows:
            if row.kind == "cost":
                costs[-1][row.function.object, row.function.file, row.function.name.partition(b"'")[0]] += row.values[0]
    named = {function: n for function, n in costs[1].items() if function[2][:1] != b"(" or function in costs[0]}
    assert named.items() <= costs[0].items()
    assert len(named) > 0.9 * len(costs[0]) == 0.9 * len(costs[1])
    assert costs[0].total() == costs[1].total()


PARTS = ["--dump-instr=yes", "--collect-jumps=yes", "--dump-every-bb=20000"]


def test_addresses_of_later_parts_do_not_depend_on_compression(program: Path, tmp_path: Path) -> None:
    """These may have a relative position after a call line; KCachegrind, unlike Callgrind, counts it from that line."""
    runs = {}
    for how in ("yes", "no"):
        (tmp_path / how).mkdir()
        files = record("callgrind", program, tmp_path / how / "cg", [*PARTS, f"--compress-pos={how}"])
        runs[how] = {f.name: [summed([part]) for part in read_parts(f)[0]] for f in files}
    assert len(runs["yes"]) > 3
    assert runs["yes"] == runs["no"]


@pytest.mark.parametrize("combined", [True, False], ids=["one file", "files"])
def test_parts_re_emitted(combined: bool, program: Path, tmp_path: Path) -> None:
    """Each part separately, by callgrind_annotate; all of them, by the model of KCachegrind; and merged."""
    options = [*PARTS, "--compress-pos=no", f"--combine-dumps={'yes' if combined else 'no'}"]
    (tmp_path / "parts").mkdir()
    files = record("callgrind", program, tmp_path / "parts" / "cg", options, 1)
    assert (len(files) == 1) == combined
    parts = [part for file in files for part in check(file, tmp_path)]
    assert len(parts) > 3
    assert any(row.kind == "call" and row.count == 0 for part in parts for row in part.rows)
    before, after = load(*(f.read_bytes() for f in files)), load(*(rewrite(f) for f in files))
    assert after.shown() == before.shown()
    assert not after.errors

    merged = tmp_path / "merged.callgrind"
    convert([str(tmp_path / "parts")], str(merged))
    if not combined:
        assert summed(read_parts(merged)[0]) == summed(parts)


def test_threads_apart_and_together(program: Path, tmp_path: Path) -> None:
    """Callgrind leaves an empty file with the plain name in addition to those of the threads."""
    (tmp_path / "apart").mkdir()
    options = ["--dump-instr=yes", "--collect-jumps=yes", "--separate-threads=yes"]
    files = record("callgrind", program, tmp_path / "apart" / "cg", options, 2)
    assert [f.name for f in files if f.stat().st_size] == ["cg-01", "cg-02"]
    assert [f.name for f in files if not f.stat().st_size] == ["cg"]
    parts = [part for file in files[1:] for part in check(file, tmp_path)]
    merged = tmp_path / "merged.callgrind"
    for inputs in ([str(tmp_path / "apart")], [str(f) for f in files]):
        convert(inputs, str(merged))
        assert summed(read_parts(merged)[0]) == summed(parts)

    convert([str(tmp_path / "apart")], str(merged), per_thread=True)
    assert [summed([part]) for part in read_parts(merged)[0]] == [summed([part]) for part in parts]
    assert [part.header["thread"] for part in parse(merged.read_bytes())] == ["1", "2"]


def test_memory_of_a_program_as_a_tree_of_calls(program: Path, tmp_path: Path) -> None:
    """Output of --xtree-memory: a function has lines of other files, which were inlined there."""
    recorded, ours = tmp_path / "xtree.kcg", tmp_path / "ours"
    options = ["--tool=memcheck", "--xtree-memory=full", f"--xtree-memory-file={recorded}"]
    subprocess.run([need("valgrind"), "-q", *options, str(program), "1"], check=True, capture_output=True)
    data = rewrite(recorded)
    assert rewrite(data) == data
    ours.write_bytes(data)
    before, after = load(recorded.read_bytes()), load(data)
    assert after.shown() == before.shown()
    assert not before.errors and not after.errors
    assert any(row.file != row.function.file for row in parse(data)[0].rows)
    for inclusive in ("no", "yes"):
        assert annotated(ours, inclusive) == annotated(recorded, inclusive)


# ---- Cachegrind --------------------------------------------------------------------

CACHEGRIND = {"default": [], "branches": ["--branch-sim=yes"], "instructions": ["--cache-sim=no"]}
CG_ANNOTATE = ("--auto=no", "--threshold=0", "--show-percs=no")


@pytest.mark.parametrize("name", CACHEGRIND)
def test_cg_annotate_prints_the_same(name: str, program: Path, tmp_path: Path) -> None:
    (recorded,) = record("cachegrind", program, tmp_path / "cachegrind.out", CACHEGRIND[name])
    ours = tmp_path / "ours"
    ours.write_bytes(rewrite(recorded, "cachegrind"))
    assert rewrite(ours.read_bytes(), "cachegrind") == ours.read_bytes()
    before, after = (figures(run(need("cg_annotate"), *CG_ANNOTATE, path)) for path in (recorded, ours))
    assert before == after
    assert costs(recorded) == costs(ours)


def test_cg_merge_and_cg_diff_make_the_same_of_ours(program: Path, tmp_path: Path) -> None:
    theirs = [record("cachegrind", program, tmp_path / f"{n}-threads", [], n)[0] for n in (0, 1)]
    ours = [tmp_path / f"ours{n}" for n in (0, 1)]
    for path, recorded in zip(ours, theirs, strict=True):
        path.write_bytes(rewrite(recorded, "cachegrind"))
    merged = [tmp_path / "theirs-merged", tmp_path / "ours-merged", tmp_path / "merged-by-us"]
    run(need("cg_merge"), "-o", merged[0], *theirs)
    run(need("cg_merge"), "-o", merged[1], *ours)
    convert([str(path) for path in theirs], str(merged[2]), to="cachegrind")
    assert costs(merged[0]) == costs(merged[1]) == costs(merged[2])
    reports = [figures(run(need("cg_annotate"), *CG_ANNOTATE, path)) for path in merged]
    assert reports[0] == reports[1] == reports[2]

    differences = [tmp_path / "theirs-diff", tmp_path / "ours-diff"]
    for out, pair in zip(differences, (theirs, ours), strict=True):
        out.write_text(run(need("cg_diff"), *pair))
    # cg_diff writes in hash order, and counts below 0
    assert sorted(costs(differences[0])) == sorted(costs(differences[1]))
    again = tmp_path / "diff-by-us"
    again.write_bytes(rewrite(differences[0], "cachegrind"))
    assert sorted(costs(again)) == sorted(costs(differences[0]))
    assert figures(run(need("cg_annotate"), *CG_ANNOTATE, again)) == figures(
        run(need("cg_annotate"), *CG_ANNOTATE, differences[0])
    )
