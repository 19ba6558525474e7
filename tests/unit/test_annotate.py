"""fastprof annotate: source lines with their costs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.engine import read
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.inputs import open_reader
from fastprof.verbs.annotate.by_place import Places
from fastprof.verbs.annotation import Annotation, Call, Line, Listing
from tests.reference import profile_proto
from tests.support.paths import CORPUS

PROFILE = """\
events: Ir Dr
fl=zip/deflate.c
fn=deflate
10 5 1
12 700 20
cfi=zip/tree.c
cfn=tree
calls=3 4
12 90 9
cfi=zip/tree.c
cfn=tree
calls=2 4
30 10 1
30 40
fn=flush
12 60 2
cfi=zip/tree.c
cfn=tree
calls=1 4
12 15
fl=zip/tree.c
fn=tree
4 115 10
0 3 1
9 1
fl=lib/io.c
fn=write
7 80
fl=???
fn=0x1234
0 12 1
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile, and the sources of two of its three files, in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zip").mkdir()
    (tmp_path / "zip" / "deflate.c").write_text("".join(f"deflate {n}\n" for n in range(1, 41)))
    (tmp_path / "zip" / "tree.c").write_text("".join(f"tree {n}\n" for n in range(1, 8)))
    path = tmp_path / "callgrind.out.1"
    path.write_text(PROFILE)
    return path


def lines(listing: Listing) -> list[Any]:
    return [line for block in listing.blocks() for line in block]


def spent(listing: Listing) -> dict[int, list[int]]:
    return {line.number: line.values for line in lines(listing) if line.values is not None}


def named(found: Annotation) -> dict[str, Listing]:
    return {listing.name: listing for listing in found.listings}


def test_lines_with_what_they_cost_and_what_they_call(profile: Path) -> None:
    found = fastprof.annotate(profile, context=1)
    assert [t.name for t in found.value_types] == ["Ir", "Dr"] and found.value == 0
    assert found.totals == [1016, 35]
    deflate, tree = found.listings
    assert (deflate.name, deflate.path, deflate.values) == ("zip/deflate.c", "zip/deflate.c", [805, 23])
    calls = [Call(4, "tree", "zip/tree.c", "", [105, 9])]
    assert [*deflate.blocks()] == [
        [
            Line(9, "deflate 9"),
            Line(10, "deflate 10", [5, 1], []),
            Line(11, "deflate 11"),
            Line(12, "deflate 12", [760, 22], calls),
            Line(13, "deflate 13"),
        ],
        [
            Line(29, "deflate 29"),
            Line(30, "deflate 30", [40, 0], [Call(2, "tree", "zip/tree.c", "", [10, 1])]),
            Line(31, "deflate 31"),
        ],
    ]
    assert [*tree.blocks()] == [
        [Line(0, None, [3, 1], [])],
        [Line(3, "tree 3"), Line(4, "tree 4", [115, 10], []), Line(5, "tree 5")],
        [Line(9, None, [1, 0], [])],
    ]
    assert found.missing == [("lib/io.c", "no such file", [80, 0])]
    assert found.shares == {"shown": [924, 34], "not found": [80, 0], "unknown": [12, 1]}
    assert found.log.warnings == [
        "source files not found: 1, first lib/io.c; source=DIR adds a directory to search",
        "zip/tree.c: has 7 lines, but the profile has costs at line 9",
    ]


def blocks(profile: Path, context: int) -> list[list[int]]:
    listing = fastprof.annotate(profile, ["deflate.c"], context=context).listings[0]
    return [[line.number for line in block] for block in listing.blocks()]


def test_context(profile: Path) -> None:
    assert blocks(profile, 0) == [[10], [12], [30]]
    assert blocks(profile, 1) == [[9, 10, 11, 12, 13], [29, 30, 31]]
    assert blocks(profile, 8) == [[*range(2, 21)], [*range(22, 39)]]
    assert blocks(profile, 9) == [[*range(1, 40)]]  # the blocks touch
    assert blocks(profile, 1 << 40) == [[*range(1, 41)]]


def test_files_by_name(profile: Path) -> None:
    assert [*named(fastprof.annotate(profile, ["tree.c"]))] == ["zip/tree.c"]
    assert [*named(fastprof.annotate(profile, ["zip/tree.c", "./deflate.c"]))] == ["zip/deflate.c", "zip/tree.c"]
    assert [*named(fastprof.annotate(profile, [str(profile.parent / "zip" / "tree.c")]))] == ["zip/tree.c"]
    found = fastprof.annotate(profile, ["io.c", "tree.c"])
    assert [m.name for m in found.missing] == ["lib/io.c"] and [*named(found)] == ["zip/tree.c"]
    assert found.shares["not requested"] == [805, 23]
    for wrong in ("ree.c", "gzip/tree.c", "zip", "", "/"):
        with pytest.raises(FastprofError, match=r"callgrind\.out\.1: no costs in a file named"):
            fastprof.annotate(profile, ["deflate.c", wrong])


def test_a_file_that_only_calls_is_shown_if_it_is_asked_for(profile: Path) -> None:
    profile.write_text("events: Ir\nfl=zip/tree.c\nfn=f\ncfi=x.c\ncfn=g\ncalls=2 1\n3 50\nfl=x.c\nfn=g\n1 50\n")
    found = fastprof.annotate(profile, ["tree.c"], context=0)
    assert [*found.listings[0].blocks()] == [[Line(3, "tree 3", None, [Call(2, "g", "x.c", "", [50])])]]
    assert named(fastprof.annotate(profile)) == {}


def test_the_largest_function_decides(profile: Path) -> None:
    """Like the newer cg_annotate: the file's sum does not count; a cost equal to the threshold is enough."""
    assert [*named(fastprof.annotate(profile, threshold=745 / 1016))] == ["zip/deflate.c"]
    below = fastprof.annotate(profile, threshold=746 / 1016)
    assert named(below) == {} and below.shares["below the threshold"] == [1004, 34]
    by_reads = fastprof.annotate(profile, value="Dr", threshold=0.5)
    assert [(t.name) for t in by_reads.value_types] == ["Dr"] and [*named(by_reads)] == ["zip/deflate.c"]


def test_functions_of_one_name_in_a_file_are_one_and_ties_are_in_order(profile: Path, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("1\n2\n")
    text = "".join(f"ob=o{i}\nfl={file}\nfn=f\n1 1\n" for i, file in enumerate("cbacba"))
    profile.write_text(f"events: Ir\n{text}")
    assert [*named(fastprof.annotate(profile, threshold=2 / 6))] == ["a", "b", "c"]
    assert named(fastprof.annotate(profile, threshold=0.34)) == {}


def test_parts_and_inlined_code(profile: Path, tmp_path: Path) -> None:
    """Value types are matched by name; code under fi= belongs to its file; parts are added up."""
    profile.write_text(
        "events: Ir Dr\nfl=zip/tree.c\nfn=f\n1 5 7\nfi=zip/deflate.c\n2 3 1\nfe=zip/tree.c\n1 1\n\n"
        "part: 2\nevents: Dw Ir\nfl=zip/tree.c\nfn=f\n1 100 10\n"
    )
    found = fastprof.annotate(profile)
    assert [t.name for t in found.value_types] == ["Ir", "Dr", "Dw"]
    assert {name: spent(one) for name, one in named(found).items()} == {
        "zip/tree.c": {1: [16, 7, 100]},
        "zip/deflate.c": {2: [3, 1, 0]},
    }


def test_negative_costs(profile: Path) -> None:
    """Output of cg_diff: a total of 0 hides nothing, and files with the largest differences come first."""
    profile.write_text("events: Ir\nfl=zip/tree.c\nfn=f\n1 -7\nfl=zip/deflate.c\nfn=g\n1 3\n2 4\n")
    found = fastprof.annotate(profile)
    assert {name: spent(one) for name, one in named(found).items()} == {
        "zip/deflate.c": {1: [3], 2: [4]},
        "zip/tree.c": {1: [-7]},
    }


def test_sums_beyond_64_bits(profile: Path) -> None:
    big = (1 << 63) - 1
    head = "events: Ir\nfl=zip/tree.c\n"
    for text, what in (
        (f"fn=f\n3 {big}\n3 1\n", r"the cost of a position at line 3 in value type Ir exceeds 2\^63 - 1"),
        (f"fn=f\n3 {big}\nfn=g\n4 1\n", r"the cost of a file in value type Ir exceeds 2\^63 - 1"),
        (f"fn=f\ncfn=g\ncalls={big} 1\n3 1\ncfn=g\ncalls=1 1\n3 1\n", "the number of calls at a position at line 3"),
        (f"fn=f\ncfn=g\ncalls=1 1\n3 {big}\ncfn=g\ncalls=1 1\n3 1\n", "the cost of calls at a position at line 3"),
    ):
        profile.write_text(head + text)
        with pytest.raises(FastprofError, match=f"callgrind.out.1: sums by place: {what}"):
            fastprof.annotate(profile)


# ---- finding sources --------------------------------------------------------


def source_of(profile: Path, name: str, **options: Any) -> str:
    profile.write_text(f"events: Ir\nfl={name}\nfn=f\n1 1\n")
    found = fastprof.annotate(profile, **options)
    return found.listings[0].path if found.listings else ""


def test_the_longest_end_of_a_name_is_found(profile: Path, tmp_path: Path) -> None:
    for path in ("new/build/zip/a.c", "new/zip/a.c", "new/a.c", "other/a.c", "other/b.c", "x/y/b.c"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("one\n")
    assert source_of(profile, "/build/zip/a.c", source=["new"]) == "new/build/zip/a.c"
    assert source_of(profile, "/src/build/zip/a.c", source=["new"]) == "new/build/zip/a.c"
    assert source_of(profile, "/src/zip/a.c", source=["new"]) == "new/zip/a.c"
    assert source_of(profile, "./zip/../a.c", source=["new"]) == "new/a.c"
    assert source_of(profile, "../../a.c", source=["other", "new"]) == "other/a.c"
    assert source_of(profile, "/src/b.c", source=["new", "other"]) == "other/b.c"
    assert source_of(profile, "/src/c.c", source=["new", "other"]) == ""
    # the unchanged name comes first, and a directory is only searched if it is given
    assert source_of(profile, str(tmp_path / "other/a.c"), source=["new"]) == str(tmp_path / "other/a.c")
    assert source_of(profile, "/src/other/a.c") == ""


def test_a_source_that_is_asked_for_by_its_path(profile: Path, tmp_path: Path) -> None:
    profile.write_text("events: Ir\nfl=/build/zip/tree.c\nfn=f\n1 1\n")
    assert fastprof.annotate(profile, ["zip/tree.c"]).listings[0].path == "zip/tree.c"


def test_names_in_a_profile_open_nothing_but_files(profile: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), "pipe", "/dev/stdin", "/dev/zero", str(tmp_path), "zip", "a\0b", "x" * 5000):
        assert source_of(profile, name, source=["."]) == ""


def test_sources_that_were_changed_later(profile: Path) -> None:
    os.utime(profile, (1000, 1000))
    os.utime("zip/deflate.c", (1001, 1001))
    os.utime("zip/tree.c", (1000, 1000))
    changed = "was changed after the profile was recorded: line numbers may not match"
    assert f"zip/deflate.c {changed}" in fastprof.annotate(profile).log.warnings
    assert not any("tree.c was" in warning for warning in fastprof.annotate(profile).log.warnings)


def test_a_profile_that_says_when_it_was_recorded(profile: Path, tmp_path: Path) -> None:
    """pprof profiles record it, so the time of the copy does not matter."""
    p = profile_proto.Profile()
    p.string_table.extend(["", "samples", "count", "cpu", "nanoseconds", "f", "zip/tree.c", "main"])
    p.sample_type.add(type=1, unit=2)
    p.sample_type.add(type=3, unit=4)
    p.function.add(id=1, name=5, filename=6)
    p.function.add(id=2, name=7, filename=6)
    p.location.add(id=1).line.add(function_id=1, line=3)
    p.location.add(id=2).line.add(function_id=2, line=6)
    p.sample.add(location_id=[1, 2], value=[2, 20])
    p.sample.add(location_id=[2], value=[1, 10])
    p.time_nanos = 1_000_000_000_000
    path = tmp_path / "cpu.pb"
    for changed in (1001, 999):
        os.utime("zip/tree.c", (changed, changed))
        path.write_bytes(p.SerializeToString())
        found = fastprof.annotate(path, context=0)
        assert any("was changed after" in warning for warning in found.log.warnings) == (changed > 1000)
    assert found.value == 1  # cpu, which pprof also shows
    assert [*found.listings[0].blocks()] == [
        [Line(3, "tree 3", [2, 20], [])],
        [Line(6, "tree 6", [1, 10], [Call(None, "f", "zip/tree.c", "", [2, 20])])],
    ]
    for value, costs in ("samples", {3: [2], 6: [1]}), ("cpu", {3: [20], 6: [10]}):
        one = fastprof.annotate(path, context=0, value=value)
        assert ([t.name for t in one.value_types], one.value, spent(one.listings[0])) == ([value], 0, costs)


def test_bytes_that_are_no_text(profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zip" / "tree.c").write_bytes(b"caf\xe9\r\n\tif (\x1b[31m)\n\xe6\xbc\xa2\nlast")
    profile.write_bytes(
        b"events: Ir\nfl=zip/tree.c\nfn=na\xefve\n1 1\n2 1\n3 1\n4 1\n4 1\ncfn=(1) na\xefve\ncalls=1 1\n4 9\n"
    )
    listing = fastprof.annotate(profile).listings[0]
    assert [line.text for line in lines(listing)] == ["caf\udce9", "\tif (\x1b[31m)", "漢", "last"]
    assert main(["annotate", str(profile)]) == 0
    out = capsys.readouterr().out
    assert "caf\\xe9\n" in out and "  2          if (\\x1b[31m)\n" in out and "漢\n" in out and "na\\xefve (1x)" in out


# ---- inputs -----------------------------------------------------------------


def test_every_way_in_gives_the_same(profile: Path, tmp_path: Path) -> None:
    expected = {name: lines(one) for name, one in named(fastprof.annotate(profile)).items()}
    for to in ("callgrind.gz", "fpa"):
        fastprof.convert(profile, tmp_path / f"out.{to}")
        assert {n: lines(one) for n, one in named(fastprof.annotate(tmp_path / f"out.{to}")).items()} == expected
    command = [sys.executable, "-m", "fastprof", "annotate", "-", "--context=1"]
    piped = subprocess.run(command, input=PROFILE, text=True, capture_output=True, check=True)
    assert piped.stdout == PAGE
    for source in (PROFILE.encode(), io.BytesIO(PROFILE.encode())):
        assert {n: lines(one) for n, one in named(fastprof.annotate(source)).items()} == expected
    assert [*named(fastprof.annotate(PROFILE.encode(), "tree.c"))] == ["zip/tree.c"]
    both = tmp_path / "both"
    both.mkdir()
    (both / "a").write_text(PROFILE)
    (both / "b").write_text(PROFILE)
    twice = named(fastprof.annotate(both))
    assert spent(twice["zip/deflate.c"]) == {10: [10, 2], 12: [1520, 44], 30: [80, 0]}


@pytest.mark.parametrize(
    ("source", "options"),
    [("xray/good/fdr5-pool-clang19.xray", {}), ("pprof/good/go-cpulabels.pb.gz", {"symbolize": False})],
)
def test_other_views_by_their_bridge(source: str, options: dict[str, Any], tmp_path: Path) -> None:
    """The result equals that of the graph made by convert."""
    graph = tmp_path / "graph.callgrind"
    fastprof.convert(CORPUS / source, graph, **options)
    mine, its = fastprof.annotate(CORPUS / source, **options), fastprof.annotate(graph)
    assert mine.totals == its.totals != [0] * len(mine.totals)
    assert mine.shares == its.shares and sorted(mine.missing) == sorted(its.missing)
    assert mine.missing or "unknown" in mine.shares


def test_damage_is_an_error_or_a_loss(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile.write_text(PROFILE + "fn=x\ngarbage\n")
    with pytest.raises(FastprofError, match="garbage"):
        fastprof.annotate(profile)
    assert main(["annotate", str(profile)]) == 1
    assert capsys.readouterr().out == ""
    assert main(["annotate", str(profile), "--lenient", "tree.c"]) == 3


def test_options_that_would_do_nothing_are_refused(profile: Path) -> None:
    with pytest.raises(UsageError, match="symbols= has no effect with callgrind"):
        fastprof.annotate(profile, symbols=["x"])
    for name in ("aggregate", "compress_names", "per_thread", "labels", "stacks"):
        with pytest.raises(UsageError, match=f"unknown option '{name}'"):
            fastprof.annotate(profile, **{name: True})
    with pytest.raises(UsageError, match="threshold= has no effect"):
        fastprof.annotate(profile, ["tree.c"], threshold=0.1)
    with pytest.raises(UsageError, match="source= has no effect"):
        fastprof.annotate(profile, asm=True, source=["."])
    with pytest.raises(UsageError, match="demangle= has no effect with callgrind"):
        fastprof.annotate(profile, asm=True, demangle="none")
    for wrong in ({"context": -1}, {"threshold": 2}, {"source": 1}, {"asm": 1}):
        with pytest.raises(UsageError):
            fastprof.annotate(profile, **wrong)


def test_an_empty_profile(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile.write_text("events: Ir\nfl=zip/tree.c\nfn=f\n")
    found = fastprof.annotate(profile)
    assert (found.totals, found.listings, found.missing, found.shares) == ([0], [], [], {})
    assert main(["annotate", str(profile)]) == 0


def test_rows_are_kept_only_of_files_that_can_be_shown(profile: Path) -> None:
    model, log, options = Model(), Log(), Options()
    reader = open_reader(str(profile), None, model, options, log)
    asked = []

    def keep(group: int) -> bool:
        asked.append(model.string(group))
        return asked[-1] == b"zip/tree.c"

    places = Places(model)
    for batch in read(reader, capacity=1):
        places.put(batch, keep)
    reader.source.close()
    groups = places.end(1)
    assert asked == [b"zip/deflate.c", b"zip/tree.c", b"lib/io.c", b"???"]
    assert {model.string(group): sums for group, sums in groups.items()} == {
        b"zip/deflate.c": (21, [805, 23]),
        b"zip/tree.c": (11, [119, 11]),
        b"lib/io.c": (0, [80, 0]),
        b"???": (1, [12, 1]),
    }
    kept = {group: [row for batch in places.rows(group) for row in batch["line"]] for group in groups}
    assert {model.string(group): rows for group, rows in kept.items() if rows} == {b"zip/tree.c": [0, 4, 9]}


# ---- the command line -------------------------------------------------------

PAGE = """\
 Ir     %  Dr     %  line
805  79.2  23  65.7        zip/deflate.c
                           -- line 9 --
  .         .           9  deflate 9
  5   0.5   1   2.9    10  deflate 10
  .         .          11  deflate 11
760  74.8  22  62.9    12  deflate 12
105  10.3   9  25.7        => tree (4x)  [zip/tree.c]
  .         .          13  deflate 13
                           -- line 29 --
  .         .          29  deflate 29
 40   3.9   0          30  deflate 30
 10   1.0   1   2.9        => tree (2x)  [zip/tree.c]
  .         .          31  deflate 31

 Ir     %  Dr     %  line
119  11.7  11  31.4        zip/tree.c
  3   0.3   1   2.9        (of no known line)
                           -- line 3 --
  .         .           3  tree 3
115  11.3  10  28.6     4  tree 4
  .         .           5  tree 5
  1   0.1   0           9  (past the end of the file)

Ir    %  Dr  %  not found
80  7.9   0     lib/io.c

 Ir     %  Dr     %
924  90.9  34  97.1  shown
 80   7.9   0        not found
 12   1.2   1   2.9  unknown
"""


def test_the_page(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", str(profile), "--context", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.out == PAGE
    assert captured.err.count("warning: ") == 2
    assert main(["annotate", str(profile), "--context", "1", "-q"]) == 0
    assert capsys.readouterr() == captured


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_terminal(profile: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, columns: int) -> None:
    (tmp_path / "zip" / "tree.c").write_text("x" * 1_000_000 + "\n" + "y" * 90 + "\n" + "漢" * 60 + "\nz\n")
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["annotate", str(profile), "tree.c"]) == 0
    text = out.getvalue()
    wide = [sum(1 + (ord(c) > 0x3000) for c in line) for line in text.splitlines()]
    assert columns - 3 <= max(wide) <= columns
    assert ("Dr" in text) == (columns > 40)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    out.truncate(0)
    assert main(["annotate", str(profile), "tree.c"]) == 0
    assert "\x1b[1;31m115" in out.getvalue() and "\x1b[33m" not in out.getvalue()


def test_callees_lose_their_arguments_before_their_names(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "std::vector<int, std::allocator<int> >::insert(int, long, std::string)"
    profile.write_text(f"events: Ir\nfl=zip/tree.c\nfn=f\n1 9\ncfi=lib/io.c\ncfn={name}\ncalls=3 1\n1 9\n")
    for width in (120, 70, 45):
        assert main(["annotate", str(profile), *([f"--width={width}"] * (width < 120))]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= width
        assert ("=> std::vector<...>::insert(...) (3x)  [lib/io.c]" in out) == (width > 45)
        assert "=> std::vector<...>::insert(...) (3x)" in out or "..." in out.split("=> ")[1].split(" (3x)")[0]
    assert main(["annotate", str(profile), "--width=none", "--demangle=full"]) == 0
    assert f"=> {name} (3x)  [lib/io.c]" in capsys.readouterr().out


def test_the_most_expensive_files(profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By default 30, or -n; files that are named are all shown."""
    for i in range(40):
        (tmp_path / f"x{i}.c").write_text("line\n")
    profile.write_text("events: Ir\n" + "".join(f"fl=x{i}.c\nfn=f\n1 {i + 100}\n" for i in range(40)))
    for options, n in (({}, 30), ({"n": 5}, 5), ({"n": 0}, 40)):
        found = fastprof.annotate(profile, **options)
        assert len(found.listings) == n and ("beyond the first files" in found.shares) == (n < 40)
    assert len(fastprof.annotate(profile, [f"x{i}.c" for i in range(35)]).listings) == 35


def test_json(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", str(profile), "--json", "--context", "0", "deflate.c"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value_types"][0]["name"] == "Ir" and found["totals"] == [1016, 35]
    assert found["listings"][0]["lines"][1] == {
        "number": 12,
        "text": "deflate 12",
        "values": [760, 22],
        "calls": [{"times": 4, "function": "tree", "file": "zip/tree.c", "object": "", "values": [105, 9]}],
    }
    assert found["shares"]["not requested"] == [199, 11]


def test_many_missing_files_are_summed_up(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile.write_text("events: Ir\n" + "".join(f"fl=x{i}.c\nfn=f\n1 {i + 1}\n" for i in range(13)))
    assert main(["annotate", str(profile)]) == 0
    assert capsys.readouterr().out.splitlines()[:12] == [
        "Ir     %  not found",
        *(f"{i + 1:2}  {100 * (i + 1) / 91:4.1f}  x{i}.c" for i in range(12, 2, -1)),
        " 6   6.6  ... 3 more",
    ]


@pytest.mark.parametrize("most", [1, 3, 0])
def test_a_line_shows_so_many_calls_and_the_sum_of_the_others(most: int, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("dispatch();\n")
    (tmp_path / "p.callgrind").write_text(
        "events: Ir\nfl=a.c\nfn=main\n1 1\n" + "".join(f"cfn=f{k}\ncalls={k} 1\n1 {k}00\n" for k in range(1, 31))
    )
    found = fastprof.annotate(tmp_path / "p.callgrind", source=[str(tmp_path)], calls=most)
    ((line,),) = found.listings[0].blocks()
    calls = line.calls
    assert len(calls) == (most or 30)
    assert sum(call.values[0] for call in calls) == sum(range(1, 31)) * 100
    assert sum(call.times for call in calls) == sum(range(1, 31))
    if most == 3:
        assert [call.function for call in calls] == ["f30", "f29", "[28 other functions]"]


def test_lines_take_memory_for_the_calls_they_show_not_for_all(tmp_path: Path) -> None:
    def size(callees: int) -> int:
        (tmp_path / "a.c").write_text("dispatch();\n" * 400)
        rows = "".join(f"{line}\n" for line in (
            f"cfn=f{k % callees}\ncalls=1 1\n{1 + k // callees} 1" for k in range(400 * callees)
        ))  # fmt: skip
        (tmp_path / "p.callgrind").write_text("events: Ir\nfl=a.c\nfn=main\n1 1\n" + rows)
        found = fastprof.annotate(tmp_path / "p.callgrind", source=[str(tmp_path)])
        tracemalloc.start()
        try:
            for _ in found.listings[0].blocks():
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert size(200) < 1.5 * size(50)


def test_the_most_expensive_files_alone(tmp_path: Path) -> None:
    profile = tmp_path / "x.callgrind"
    for name in ("a.c", "b.c", "c.c"):
        (tmp_path / name).write_text("one\ntwo\n")
    profile.write_text("events: Ir\nfl=a.c\nfn=a\n1 10\nfl=b.c\nfn=b\n1 30\nfl=c.c\nfn=c\n1 20\n")
    found = fastprof.annotate(profile, source=[tmp_path], n=2)
    assert [listing.name for listing in found.listings] == ["b.c", "c.c"]
    assert found.shares == {"shown": [50], "beyond the first files": [10]}


def test_a_second_profile_is_not_a_source_file(profile: Path, tmp_path: Path) -> None:
    advice = "; to annotate several profiles, name their directory, or add them up first with `fastprof merge`"
    other = tmp_path / "callgrind.out.2"
    other.write_bytes(profile.read_bytes())
    (tmp_path / "other.c").write_text("int main;\n")
    for wanted, hint in ((other, advice), (tmp_path, advice), (tmp_path / "other.c", ""), (tmp_path / "none.c", "")):
        with pytest.raises(FastprofError) as error:
            fastprof.annotate(profile, [wanted])
        assert str(error.value).endswith(f"no costs in a file named {wanted}{hint}")
