"""Annotated source: the output of callgrind_annotate and cg_annotate (old and new), line by line."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.options import Options
from fastprof.verbs.annotation import Annotation
from tests.differential.annotated import Source, not_found, sources
from tests.differential.peers import need
from tests.differential.test_callgrind_tools import CACHEGRIND, CALLGRIND, contents, one_part
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import needs_shared, shared_data

pytestmark = needs_shared


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with `src_relative` and its sources, as the current directory."""
    monkeypatch.chdir(shared_data("callgrind"))
    return shared_data("callgrind")


def ours(found: Annotation) -> dict[str, Source]:
    """The output in the shape of the peers' text.  They add up functions with the same file and name in different
    objects."""
    made = {}
    for listing in found.listings:
        source = made[listing.name] = Source({}, {}, {})
        for line in (line for block in listing.blocks() for line in block):
            values = None if line.values is None else tuple(line.values)
            if line.text is not None or not line.number:
                source.lines[line.number] = values
            elif values:
                source.beyond[line.number] = values
            for call in line.calls:
                key = line.number, f"{call.file or '???'}:{call.function}"
                times, costs = source.calls.get(key, (0, (0,) * len(call.values)))
                source.calls[key] = times + (call.times or 0), tuple(map(int.__add__, costs, call.values))
    return made


def same_lines(mine: dict[str, Source], theirs: dict[str, Source]) -> None:
    assert mine.keys() == theirs.keys() != set()
    for name, source in theirs.items():
        assert mine[name].beyond == source.beyond, name
        # it shows the last lines of a file as context of lines past its end
        assert mine[name].lines.items() <= source.lines.items(), name
        assert source.beyond or mine[name].lines.keys() == source.lines.keys(), name
        assert costs(mine[name]) == costs(source), name


def costs(source: Source) -> dict[int, tuple[int, ...]]:
    return {line: values for line, values in (source.lines | source.beyond).items() if values}


def same_calls(path: Path, mine: dict[str, Source], theirs: dict[str, Source]) -> int:
    """Equal except for lines of several functions: it shows the calls of only one.  Returns how many are equal."""
    callers = defaultdict[tuple[str, int], set[str]](set)
    uncounted = set()
    for row in read_parts(path)[0][0].rows:
        if row.kind == "call":
            place = row.file.decode("utf-8", "surrogateescape"), row.position[2]
            callers[place].add(row.function.name.decode("utf-8", "surrogateescape"))
            if not row.count:
                uncounted.add(place)
    n = 0
    for name, source in theirs.items():
        assert source.calls.keys() <= mine[name].calls.keys()
        for (line, callee), calls in mine[name].calls.items():
            if line not in source.lines:
                assert (line, callee) not in source.calls  # it shows none past the end of a file
            elif (name, line) in uncounted:
                pass  # calls=0 is not a call to it
            elif len(callers[name, line]) == 1:
                assert source.calls[line, callee] == calls, (name, line, callee)
                n += 1
            else:
                assert source.calls.get((line, callee), (0,))[0] <= calls[0]
    return n


# ---- recorded output of the tools -------------------------------------------


@pytest.mark.parametrize(
    ("expected", "files", "options"),
    [
        ("auto", (), {}),
        ("auto-context1", (), {"context": 1}),
        ("user-util.c", ("src/util.c",), {}),
    ],
)
def test_what_callgrind_annotate_printed(
    data: Path, expected: str, files: tuple[str, ...], options: dict[str, int]
) -> None:
    path = data / "src_relative.callgrind"
    text = (data / "expected" / f"src_relative.callgrind.{expected}.txt").read_text()
    theirs, mine = sources(text), ours(fastprof.annotate(path, files, n=0, **options))
    same_lines(mine, theirs)
    assert same_calls(path, mine, theirs) >= (1 if files else 24)
    if not files:
        # line 17 is in ack and in ack'2: the calls in the latter are missing there
        assert theirs["src/mt.c"].calls[17, "src/mt.c:ack'2"] == (6, (1579,))
        assert mine["src/mt.c"].calls[17, "src/mt.c:ack'2"] == (89, (7362,))


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        ("3.19-auto", {}),
        ("3.19-auto-sortDr", {"value": "Dr", "context": 2}),
        ("new", {}),
        ("new-sortDr", {"value": "Dr", "context": 2, "threshold": 0.01}),
    ],
)
def test_what_cg_annotate_printed(data: Path, expected: str, options: dict[str, Any]) -> None:
    path = data / "cachegrind" / "src_relative.cachegrind"
    text = (data / "expected" / f"src_relative.cachegrind.cg_annotate-{expected}.txt").read_text()
    shown = re.findall(r"^Events shown: +(.*)$", text, re.MULTILINE)[0].split()
    found = fastprof.annotate(path, n=0, **options)
    columns = [shown.index(t.name) for t in found.value_types]
    theirs = {name: only(source, columns) for name, source in sources(text).items()}
    same_lines(ours(found), theirs)
    assert {missing.name for missing in found.missing} == not_found(text)


def only(source: Source, columns: list[int]) -> Source:
    lines = {n: counts and tuple(counts[c] for c in columns) for n, counts in source.lines.items()}
    return Source(lines, source.calls, {n: tuple(v[c] for c in columns) for n, v in source.beyond.items()})


SHARES = {
    "  annotated: files known & above threshold & readable, line numbers known": "shown",
    "unannotated: files known & above threshold & unreadable": "not found",
    "unannotated: files known & below threshold": "below the threshold",
    "unannotated: files unknown": "unknown",
}


@pytest.mark.parametrize(("expected", "options"), [("new", {}), ("new-sortDr", {"threshold": 0.01})])
def test_what_becomes_of_the_total(data: Path, expected: str, options: dict[str, float]) -> None:
    """The newer cg_annotate's Annotation summary."""
    text = (data / "expected" / f"src_relative.cachegrind.cg_annotate-{expected}.txt").read_text()
    path = data / "cachegrind" / "src_relative.cachegrind"
    summary = re.findall(
        r"^(.*?)  ((?:  |un)annotated: .*?) *$", text.partition("-- Annotation summary")[2], re.MULTILINE
    )
    theirs = {}
    for counts, title in summary:
        numbers = [int(word.replace(",", "")) for word in re.sub(r"\([^)]*\)", "", counts).split()]
        if title in SHARES:
            theirs[SHARES[title]] = numbers
        else:
            assert not any(numbers), title
    if not options:
        assert fastprof.annotate(path).shares == theirs
        return
    # it shows Ir, then Dr, and sorts by Dr
    assert fastprof.annotate(path, value="Dr", **options).shares == {k: v[1:] for k, v in theirs.items()}


# ---- the tools themselves, on every file, with generated sources ------------


def made_sources(path: Path, root: Path) -> None:
    """A source for every file of a profile, so that all its lines are annotated.  Every fifth source is too short."""
    last: dict[str, int] = {}
    for row in read_parts(path)[0][0].rows:
        name = row.file.decode("utf-8", "surrogateescape")
        last[name] = max(last.get(name, 0), row.position[2] * (row.kind == "cost"))
    for i, (name, line) in enumerate(sorted(last.items())):
        if name in ("", "???") or ".." in name.split("/"):
            continue
        source = root / name.lstrip("/")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("".join(f"line {n}\n" for n in range(1, (line // 2 if i % 5 == 0 else line + 20) + 1)))


@pytest.mark.parametrize("path", [p for p in CALLGRIND if one_part(p)][::2], ids=lambda p: p.name)
def test_callgrind_annotate_on_every_second_file(path: Path, tmp_path: Path) -> None:
    tool = need("callgrind_annotate")
    profile = tmp_path / "profile"
    made_sources(path, tmp_path / "root")
    profile.write_bytes(contents(path))
    if path.parent.name == "parts":
        # It also reads lines relative to those of calls; Callgrind does not write them so in later parts of a dump.
        profile.write_bytes(rewrite(path, options=Options(compress_positions=False)))
    text = annotated_by(tool, tmp_path, "--threshold=100", "--auto=yes", "--context=2", "--show-percs=no", profile)
    found = fastprof.annotate(profile, source=[str(tmp_path / "root")], threshold=0.0, context=2, n=0)
    theirs, mine = sources(text), ours(found)
    # It counts the costs of calls=0 as self costs, which they are not.
    zeros = [0] * len(found.totals)
    wrong = defaultdict[str, dict[int, list[int]]](dict)
    for row in read_parts(profile)[0][0].rows:
        if row.kind == "call" and not row.count:
            of_file, line = wrong[row.file.decode("utf-8", "surrogateescape")], row.position[2]
            of_file[line] = [*map(int.__add__, of_file.get(line, zeros), row.values)]
    n = 0
    for name, source in theirs.items():
        shown = costs(source)
        right = {}
        for line, values in shown.items():
            right[line] = tuple(map(int.__sub__, values, wrong[name].get(line, zeros)))
        if name in mine:
            assert {k: v for k, v in right.items() if any(v)} == {k: v for k, v in costs(mine[name]).items() if any(v)}
            n += len(shown)
        else:  # it also shows files whose functions are all 0 in the first event, and the file without a name
            assert not name or not any(values[0] for values in right.values())
    assert n > 5 or path.name in ("pprof_style.callgrind", "mt_xtmemory.kcg")
    # It ends the file name at the first colon.
    assert {name for name in mine if ":" not in name} <= theirs.keys()
    same_calls(profile, mine, {name: theirs[name] for name in mine.keys() & theirs.keys()})


@pytest.mark.parametrize("path", CACHEGRIND, ids=lambda p: p.name)
def test_cg_annotate_on_every_file(path: Path, tmp_path: Path) -> None:
    tool = need("cg_annotate")
    profile = tmp_path / "profile"
    made_sources(path, tmp_path / "root")
    profile.write_bytes(path.read_bytes())
    text = annotated_by(tool, tmp_path, "--threshold=0", "--auto=yes", "--context=2", "--show-percs=no", profile)
    found = fastprof.annotate(profile, source=[str(tmp_path / "root")], threshold=0.0, context=2, n=0)
    theirs, mine = sources(text), ours(found)
    # it also shows files whose functions are all 0 in the first event
    assert {name for name in theirs if any(v[0] for v in costs(theirs[name]).values())} == mine.keys()
    same_lines(mine, {name: theirs[name] for name in mine})


def annotated_by(tool: str, tmp_path: Path, *arguments: str | Path) -> str:
    # not in the folder of the sources: it strips its current folder from some of the file names
    words = [tool, f"--include={tmp_path / 'root'}", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, errors="surrogateescape", check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(f"{tmp_path / 'root'}/ + ", "")
