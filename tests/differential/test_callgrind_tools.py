"""The real readers print the same for the original and for the file that we write."""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

import fastprof
from fastprof.core.engine import read
from fastprof.core.options import Options
from tests.differential.peers import need
from tests.differential.test_callgrind_reference import GOOD, contents
from tests.reference.cg_annotate import Annotated, Refused, listed
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import SHARED, needs_shared, shared_data
from tests.support.product import open_input

pytestmark = needs_shared
# callgrind_annotate reads hex counts as 0 and keeps the file of fi= over fn=; for this file its figures differ from
# those of KCachegrind and the format document.
MISREAD = {"quirks_inherit.callgrind"}
CALLGRIND = [p for p in GOOD if p.parent.name not in ("cachegrind", "edge") and p.name not in MISREAD]
CACHEGRIND = [p for p in GOOD if p.parent.name == "cachegrind"]


def run(*command: str | Path) -> str:
    words = list(map(str, command))
    # not in the folder of the sources: callgrind_annotate strips its current folder from some of the file names
    done = subprocess.run(words, capture_output=True, text=True, errors="surrogateescape", check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr and "malformed" not in done.stderr, done.stderr
    return done.stdout


def figures(text: str) -> Counter[str]:
    """The lines of a report below its header, in any order (ties are in hash order) and with any widths."""
    body = text[text.rindex("\n", 0, text.index("PROGRAM TOTALS")) :]
    lines = (re.sub(r"\s+", " ", line).strip() for line in body.splitlines())
    # a summary from the file and a computed one have different captions
    return Counter(line.replace(" (calculated)", "") for line in lines if re.search(r"\d|\[", line))


@cache
def one_part(path: Path) -> bool:
    """Asked at import, by each test process: no rows are kept."""
    return len({batch.part for batch in read(open_input(path).reader)}) == 1


def without_doubtful_objects(counted: Counter[str], path: Path) -> Counter[str]:
    """callgrind_annotate gives functions of one file and name the object that it saw first; sums have another order."""
    objects = defaultdict(set)
    for part in read_parts(path)[0]:
        for row in part.rows:
            for function in (row.function, row.callee):
                if function:
                    objects[f"{function.file.decode()}:{function.name.decode()}"].add(function.object)
    doubtful = {name for name, found in objects.items() if len(found) > 1}
    shown: Counter[str] = Counter()
    for line, count in counted.items():
        unnamed = re.sub(r" \[[^]]*\]$", "", line)
        name = re.sub(r"^[\d,. ]+[<>*] | \(\d+x\)$", "", unnamed)
        shown[unnamed if name in doubtful else line] += count
    return shown


HOW = {
    "compressed": Options(),
    "in full": Options(compress_names=False, compress_positions=False),
    "summed up": Options(aggregate=True),
}


@pytest.mark.parametrize("path", [p for p in CALLGRIND if one_part(p)][::2], ids=lambda p: p.name)
@pytest.mark.parametrize(("how", "inclusive"), [("compressed", "no"), ("in full", "yes"), ("summed up", "yes")])
def test_callgrind_annotate_prints_the_same(path: Path, how: str, inclusive: str, tmp_path: Path) -> None:
    tool = need("callgrind_annotate")
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_bytes(contents(path))
    after.write_bytes(rewrite(path, options=HOW[how]))
    arguments = ("--auto=no", "--show-percs=no", "--threshold=100", "--tree=both", f"--inclusive={inclusive}")
    theirs, ours = figures(run(tool, *arguments, before)), figures(run(tool, *arguments, after))
    if how == "summed up":
        theirs, ours = (without_doubtful_objects(counted, path) for counted in (theirs, ours))
    if path.name == "pprof_style.callgrind":
        # It adds the cost of calls=0 to the total when no line states one, and loses the object of a function first
        # seen as a callee.
        theirs.subtract(["2,180 PROGRAM TOTALS", "40 * :syscall.Syscall"])
        ours.subtract(["940 PROGRAM TOTALS", "40 * :syscall.Syscall [/build/demo/srv]"])
    assert ours - theirs == theirs - ours == Counter()


@pytest.mark.parametrize("path", CACHEGRIND, ids=lambda p: p.name)
def test_cg_annotate_prints_the_same(path: Path, tmp_path: Path) -> None:
    tool = need("cg_annotate")
    after = tmp_path / "after"
    after.write_bytes(rewrite(path, "cachegrind"))
    arguments = ("--auto=no", "--threshold=0", "--show-percs=no")
    theirs, ours = figures(run(tool, *arguments, path)), figures(run(tool, *arguments, after))
    assert ours - theirs == theirs - ours == Counter()


def newer() -> list[Path]:
    return sorted(shared_data("callgrind", "expected").glob("*.cachegrind.cg_annotate-new*.txt")) if SHARED else []


@pytest.mark.parametrize("expected", newer(), ids=lambda p: p.name)
def test_the_newer_cg_annotate_prints_the_same(expected: Path) -> None:
    """It is not in Debian 12: a model of it reproduces its recorded output for the originals, and gives the same for
    our files."""
    path = shared_data("callgrind", "cachegrind", expected.name.partition(".cg_annotate")[0])
    text = expected.read_text()
    shown, functions = listed(text)
    theirs, ours = Annotated(path.read_bytes()), Annotated(rewrite(path, "cachegrind"))
    columns = [theirs.events.index(event) for event in shown]
    assert functions.items() <= {k: [v[c] for c in columns] for k, v in theirs.functions.items()}.items()
    if "Threshold:        0.0%" in text:
        assert len(functions) == len(theirs.functions)
    assert (ours.functions, ours.lines) == (theirs.functions, theirs.lines)
    assert (ours.events, ours.command) == (theirs.events, theirs.command)
    # the newer cg_merge needs one, which the newer Cachegrind does not write
    assert ours.descriptions == theirs.descriptions or not theirs.descriptions
    assert ours.descriptions


@needs_shared
def test_the_newer_cg_annotate_adds_up_and_compares_our_files(tmp_path: Path) -> None:
    """Also with --mod-filename and --mod-funcname: theirs change names while reading, ours before writing."""
    paths = [shared_data("callgrind", "cachegrind", name) for name in ("mt.cachegrind", "mt_O0.cachegrind")]
    for name, sign in (
        ("merge_mt_mtO0.cg_annotate-new-2files", 1),
        ("diff_mt_mtO0.cg_annotate-new-diff", -1),
        ("diff_mt_mtO0.cg_annotate-new-mod", -1),
    ):
        text = shared_data("callgrind", "expected", f"{name}.txt").read_text()
        changes: dict[str, list[str]] = {}
        for what, change in re.findall(r" --mod-(filename|funcname)=(\S+)", text):
            changes.setdefault(f"mod_{what}", []).append(change)
        assert bool(changes) == name.endswith("-mod")
        ours = []
        for path in paths:
            fastprof.convert(path, tmp_path / "out.cachegrind", **changes)
            ours.append(Annotated((tmp_path / "out.cachegrind").read_bytes()))
        sums = defaultdict(ours[0].zero)
        for one, factor in ((ours[0], sign), (ours[1], 1)):
            for function, counts in one.functions.items():
                sums[function] = [a + factor * b for a, b in zip(sums[function], counts, strict=True)]
        _, functions = listed(text)
        assert len(functions) > 10 and functions.items() <= sums.items(), name


@pytest.mark.parametrize("path", [*CALLGRIND, *CACHEGRIND], ids=lambda p: p.name)
def test_the_newer_cg_annotate_takes_whatever_we_write(path: Path) -> None:
    ours = Annotated(rewrite(path, "cachegrind"))
    sums = [Counter[str]() for _ in range(2)]
    for part in read_parts(path)[0]:
        sums[0].update(dict(zip(part.events, part.sums, strict=True)))
    for counts in ours.functions.values():
        sums[1].update(dict(zip(ours.events, counts, strict=True)))
    assert sums[0] == sums[1]
    assert ours.descriptions and ours.command


@pytest.mark.parametrize("text", ["fi=a\n", "fn=(1) f\n1 x\n", "1 1 1\n", "summary: 2\n", "\r1 1\n", "\t\n"])
def test_what_the_model_of_it_refuses(text: str) -> None:
    """They do reject a broken file, so accepting ours means something."""
    header = "desc: a: b\ncmd: x\nevents: Ir\nfl=a\nfn=f\n"
    assert Annotated(f"{header}1 1\nsummary: 1\n".encode()).functions["a", "f"] == [1]
    with pytest.raises((Refused, ValueError)):
        Annotated(f"{header}{text}summary: 3\n".encode())
    with pytest.raises(Refused):
        Annotated(b"events: Ir\nsummary: 0\n")


def test_an_xdebug_profile_summed_up_is_small_and_shows_the_same(tmp_path: Path) -> None:
    """In the shape that Xdebug writes, one block per call, callee first: 40 functions at 3 lines each, 20,000 calls."""
    tool = need("callgrind_annotate")
    before, after = tmp_path / "cachegrind.out", tmp_path / "after"
    lines = ["version: 1", "creator: xdebug 3.3 (PHP 8.2)", "cmd: /srv/a.php", "part: 1", "positions: line", ""]
    lines += ["events: Time_(10ns) Memory_(bytes)", ""]
    for n in range(20_000):
        callee, caller = n % 37 + 3, n % 7 + 1
        lines += [
            f"fl=({callee}) /srv/{callee}.php",
            f"fn=({callee}) C->m{callee}",
            f"{callee} {n % 90} {n % 11 - 5}",
            "",
        ]
        lines += [f"fl=({caller}) /srv/{caller}.php", f"fn=({caller}) C->m{caller}", f"{n % 3} {n % 50} {n % 64}"]
        lines += [f"cfl=({callee})", f"cfn=({callee})", "calls=1 0 0", f"{n % 3} {n % 90} {n % 11 - 5}", ""]
    before.write_text("\n".join([*lines, "summary: 1000000 1000", ""]))
    after.write_bytes(rewrite(before, options=Options(aggregate=True)))
    assert after.stat().st_size * 50 < before.stat().st_size
    for inclusive in ("no", "yes"):
        arguments = ("--auto=no", "--show-percs=no", "--threshold=100", "--tree=both", f"--inclusive={inclusive}")
        assert figures(run(tool, *arguments, after)) == figures(run(tool, *arguments, before))
    plain = tmp_path / "plain"
    plain.write_bytes(rewrite(before))
    assert rewrite(plain, options=Options(aggregate=True)) == after.read_bytes()


def test_cg_merge_takes_our_files(tmp_path: Path) -> None:
    tool = need("cg_merge")
    a, b, ours, theirs = (tmp_path / name for name in ("a", "b", "ours", "theirs"))
    a.write_bytes(rewrite(shared_data("callgrind", "cachegrind", "mt.cachegrind"), "cachegrind"))
    b.write_bytes(rewrite(shared_data("callgrind", "cachegrind", "mt_O0.cachegrind"), "cachegrind"))
    run(tool, "-o", theirs, a, b)
    from fastprof import convert

    convert([str(a), str(b)], str(ours), to="cachegrind")
    assert costs(ours) == costs(theirs)


def test_callgrind_becomes_cachegrind(tmp_path: Path) -> None:
    """Self costs by file, function and line; cg_annotate and callgrind_annotate agree on them."""
    path = shared_data("callgrind", "mt_default.callgrind")
    after = tmp_path / "after"
    after.write_bytes(rewrite(path, "cachegrind"))
    theirs = run(need("callgrind_annotate"), "--auto=no", "--show-percs=no", "--threshold=100", path)
    ours = run(need("cg_annotate"), "--auto=no", "--show-percs=no", "--threshold=0", after)

    def rows(text: str) -> Counter[str]:
        found = re.findall(r"^\s*([\d,]+)\s+(\S.*:.*?)(?: \[.*\])?$", text, re.MULTILINE)
        return Counter(f"{count} {name}" for count, name in found)

    assert rows(ours) == rows(theirs)


def costs(path: Path) -> list[tuple[str, ...]]:
    """A Cachegrind file as (file, function, line, counts...)."""
    file = function = ""
    found = []
    for line in path.read_text(errors="surrogateescape").splitlines():
        if line.startswith("fl="):
            file = line[3:]
        elif line.startswith("fn="):
            function = line[3:]
        elif line[:1].isdigit():
            found.append((file, function, *line.split()))
    return found


def test_what_we_merge_callgrind_annotate_adds_up(tmp_path: Path) -> None:
    """Three parts merged: each function's self cost is the sum of those in the parts' reports."""
    from fastprof import convert

    parts = sorted(shared_data("callgrind", "parts").iterdir())
    merged = tmp_path / "merged.callgrind"
    convert([str(p) for p in parts], str(merged))
    before = [row for p in parts for part in read_parts(p)[0] for row in part.rows]
    after = [row for part in read_parts(merged)[0] for row in part.rows]

    def summed(rows: list) -> Counter[tuple]:  # type: ignore[type-arg]
        sums: Counter[tuple] = Counter()  # type: ignore[type-arg]
        for r in rows:
            sums[r._replace(values=(), count=0, count2=0)] += r.values[0]
            sums["count", r._replace(values=(), count=0, count2=0)] += r.count
            sums["count2", r._replace(values=(), count=0, count2=0)] += r.count2
        return sums

    assert summed(after) == summed(before)
    assert len({r._replace(values=(), count=0, count2=0) for r in after}) == len(after)
    run(need("callgrind_annotate"), "--auto=no", merged)
