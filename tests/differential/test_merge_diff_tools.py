"""fastprof merge and diff against cg_merge, cg_diff and pprof: the same figures."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need
from tests.differential.pprof_raw import go_pprof
from tests.support.paths import CORPUS, needs_shared, shared_data

NINE = ("mt.cachegrind", "mt_O0.cachegrind", "src_relative.cachegrind")  # nine events each
Costs = list[tuple[str, ...]]


def data(*names: str) -> list[Path]:
    return [shared_data("callgrind", "cachegrind", name) for name in names]


def costs(text: str) -> Costs:
    """(file, function, line, counts...) of a Cachegrind file."""
    file = function = ""
    found = []
    for line in text.splitlines():
        if line.startswith("fl="):
            file = line[3:]
        elif line.startswith("fn="):
            function = line[3:]
        elif re.match(r"-?\d", line):
            found.append((file, function, *line.split()))
    return found


def header(text: str) -> list[list[str]]:
    """The lines, split into words: tools differ in blanks."""
    return [line.split() for line in text.splitlines() if re.match("desc:|cmd:|events:|summary:", line)]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, check=True, cwd=cwd)
    return done.stdout.decode(errors="surrogateescape")


def merged(paths: list[Path], out: Path) -> str:
    fastprof.merge(paths, out, to="cachegrind")
    return out.read_text(errors="surrogateescape")


@needs_shared
@pytest.mark.parametrize("names", [*itertools.permutations(NINE, 2), (NINE[0],) * 3, ("shapes_branch.cachegrind",) * 2])
def test_cg_merge(names: tuple[str, ...], tmp_path: Path) -> None:
    """Row by row, in the same order; where headers differ, cg_merge keeps the first."""
    theirs = run(need("cg_merge"), "-o", tmp_path / "theirs", *data(*names)) + (tmp_path / "theirs").read_text()
    ours = merged(data(*names), tmp_path / "ours")
    assert costs(ours) == costs(theirs)
    assert header(ours)[-1] == header(theirs)[-1]
    if len(set(names)) == 1:
        assert header(ours) == header(theirs)


@needs_shared
@pytest.mark.parametrize("expected", ["merge_mt_mtO0.c-3.19.cachegrind", "merge_mt_mtO0.new.cachegrind"])
def test_recorded_cg_merges(expected: str, tmp_path: Path) -> None:
    """There are two versions; the newer keeps the order of the first file."""
    theirs = shared_data("callgrind", "expected", expected).read_text()
    ours = merged(data("mt.cachegrind", "mt_O0.cachegrind"), tmp_path / "ours")
    assert sorted(costs(ours)) == sorted(costs(theirs))
    assert header(ours)[-1] == header(theirs)[-1]


@needs_shared
def test_what_no_cg_merge_reads(tmp_path: Path) -> None:
    """Newer Cachegrinds write no desc: line without cache simulation, and both cg_merges fail on that."""
    path, plain = data("shapes_ir.cachegrind")[0], tmp_path / "plain"
    text = path.read_text()
    plain.write_text("\n".join(line for line in text.splitlines() if not line.startswith("desc:")) + "\n")
    assert subprocess.run([need("cg_merge"), plain, plain], capture_output=True).returncode != 0
    doubled = [(file, function, line, *(str(2 * int(n)) for n in rest)) for file, function, line, *rest in costs(text)]
    assert sorted(costs(merged([plain, plain], tmp_path / "ours"))) == sorted(doubled)


@needs_shared
@pytest.mark.parametrize("names", [*itertools.permutations(NINE, 2), (NINE[0], NINE[0])])
def test_cg_diff(names: tuple[str, str], tmp_path: Path) -> None:
    """cg_diff writes in hash order."""
    paths = data(*names)
    theirs = run(need("cg_diff"), *paths)
    fastprof.diff(*paths, tmp_path / "ours.cachegrind", pair="exact")
    ours = (tmp_path / "ours.cachegrind").read_text()
    assert sorted(costs(ours)) == sorted(costs(theirs))
    assert header(ours) == header(theirs)
    assert any(row[3] != "0" for row in costs(theirs)) == (len(set(names)) == 2)
    rows = fastprof.diff(*paths, n=0, pair="exact").rows
    told = [
        (row.file or "???", row.name, "0", *map(str, (b - a for a, b in zip(row.old, row.new, strict=True))))
        for row in rows
    ]
    assert sorted(told) == sorted(costs(theirs))


@needs_shared
def test_cg_diff_with_other_names(tmp_path: Path) -> None:
    """Perl's expressions and ours, which are Python's; rows whose names become equal are added up."""
    paths = data("mt.cachegrind", "mt_O0.cachegrind")
    names = ("--mod-filename=s/.*\\///", "--mod-funcname=s/(ack|fact|even|odd)/rec/i")
    theirs = run(need("cg_diff"), *names, *paths)
    options = {option.partition("=")[0][2:].replace("-", "_"): (option.partition("=")[2],) for option in names}
    fastprof.diff(*paths, tmp_path / "ours.cachegrind", pair="exact", **options)
    ours = (tmp_path / "ours.cachegrind").read_text()
    assert sorted(costs(ours)) == sorted(costs(theirs)) != sorted(costs(run(need("cg_diff"), *paths)))


@needs_shared
@pytest.mark.parametrize("expected", ["diff_mt_mtO0.perl-3.19.cachegrind", "diff_mt_mtO0.new.cachegrind"])
def test_recorded_cg_diffs(expected: str, tmp_path: Path) -> None:
    theirs = shared_data("callgrind", "expected", expected).read_text()
    fastprof.diff(*data("mt.cachegrind", "mt_O0.cachegrind"), tmp_path / "ours.cachegrind", pair="exact")
    assert sorted(costs((tmp_path / "ours.cachegrind").read_text())) == sorted(costs(theirs))


@needs_shared
def test_cg_annotate_reads_a_difference(tmp_path: Path) -> None:
    paths = data("mt.cachegrind", "mt_O0.cachegrind")
    (tmp_path / "theirs").write_text(run(need("cg_diff"), *paths))
    fastprof.diff(*paths, tmp_path / "ours", to="cachegrind")
    shown = []
    for name in ("theirs", "ours"):
        text = run(need("cg_annotate"), "--auto=no", "--threshold=0", tmp_path / name)
        shown.append(Counter(re.findall(r"^ *-?[1-9][\d,]* .*$", text, re.MULTILINE)))  # it omits some zeros
    assert shown[0] == shown[1] and len(shown[0]) > 20


@needs_shared
@pytest.mark.parametrize("by", ["function", "line", "arc"])
def test_callgrind_annotate_reads_a_difference(by: str, tmp_path: Path) -> None:
    """Its self costs are those of the two reports, subtracted."""
    # not those in parts/: callgrind_annotate counts a call with count 0 as a self cost
    paths = [shared_data("callgrind", "mt_default.callgrind"), shared_data("callgrind", "threads", "mt.callgrind-02")]
    fastprof.diff(*paths, tmp_path / "d.callgrind", by=by)
    difference = (tmp_path / "d.callgrind").read_bytes()
    (tmp_path / "d.callgrind").write_bytes(re.sub(rb"^calls=0 ", b"calls=1 ", difference, flags=re.MULTILINE))
    reports = []
    for path in (*paths, tmp_path / "d.callgrind"):
        text = run(need("callgrind_annotate"), "--auto=no", "--show-percs=no", "--threshold=100", path)
        found: Counter[str] = Counter()
        for cost, name in re.findall(r"^ *(-?[\d,]+) +(\S.*?)(?: \[.*\])?$", text, re.MULTILINE):
            if "PROGRAM TOTALS" in name:
                continue
            # by function, inlined code belongs to its function, like --inline=no of other tools
            found[name if by == "line" else name.rpartition(":")[2]] += int(cost.replace(",", ""))
        reports.append(found)
    old, new, difference = reports
    assert len(difference) > 5
    expected = {name: new[name] - old[name] for name in old | new if new[name] != old[name]}
    assert {name: cost for name, cost in difference.items() if cost} == expected


PAIRS = [
    ("xray/good/fdr5-busy.xray", "xray/good/fdr5-interp-args-clang14.xray"),
    ("gperftools/good/plain.prof", "gperftools/good/duplicates.prof"),
    ("gperftools/good/threads-be64.prof", "gperftools/good/plain.prof"),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_pprof_diff_base(pair: tuple[str, str], tmp_path: Path) -> None:
    """pprof gives the same reports for our difference and for the two files with -diff_base."""
    options = {} if "xray" in pair[0] else {"symbolize": False}
    profiles = [tmp_path / f"{n}.pb.gz" for n in (0, 1)]
    for file, path in zip(pair, profiles, strict=True):
        fastprof.convert(CORPUS / file, path, **options)
    fastprof.diff(*profiles, tmp_path / "d.pb.gz", **options)
    for report in ("-top", "-tree", "-traces"):
        arguments = ("-symbolize=none", report, "-nodecount=1000")
        ours = go_pprof(*arguments, tmp_path / "d.pb.gz")
        theirs = go_pprof(*arguments, "-diff_base", profiles[0], profiles[1])
        assert sorted(ours.splitlines()) == sorted(theirs.splitlines()), report
    assert "pprof::base:[true]" in go_pprof("-raw", tmp_path / "d.pb.gz")
