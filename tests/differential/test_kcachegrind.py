"""KCachegrind: the real program opens our files without a message; a model of its loader gives the recorded figures for
the original files, and the same for ours."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from fastprof import convert
from fastprof.core.options import Options
from tests.differential.peers import need
from tests.differential.test_callgrind_reference import GOOD, contents
from tests.reference.callgrind import parse
from tests.reference.kcachegrind import Function, Loader, base_name, load
from tests.support.graphs import rewrite
from tests.support.paths import REPO, SHARED, needs_shared, shared_data


def messages(path: Path, home: Path) -> list[str]:
    """Messages of KCachegrind's loader.  It does not exit by itself: it is stopped once it has loaded."""
    tool = need("kcachegrind")
    home.mkdir()
    home.chmod(0o700)
    environment = os.environ | {
        "QT_QPA_PLATFORM": "offscreen",
        "QT_LOGGING_RULES": "*.debug=true;qt.*=false;kf.*=false",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
    }
    log = home / "log"
    with log.open("wb") as out:
        command = [need("dbus-run-session"), "--", tool, str(path)]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
        try:
            end = time.monotonic() + 60
            # its last line when a window opens
            while "does not support raise" not in log.read_text(errors="replace") and time.monotonic() < end:
                assert process.poll() is None, log.read_text(errors="replace")
                time.sleep(0.1)
        finally:
            os.killpg(process.pid, 15)
            process.wait()
    text = log.read_text(errors="replace")
    assert "does not support raise" in text, text
    return [line for line in text.splitlines() if line.startswith(("Loading", "Error"))]


def test_a_broken_file_gives_messages(tmp_path: Path) -> None:
    """It does print messages, so their absence below means something."""
    path = tmp_path / "broken.callgrind"
    path.write_bytes((REPO / "tests/corpus/callgrind/good/float.callgrind").read_bytes())
    assert any("Garbage at end of cost line" in m for m in messages(path, tmp_path / "home"))


@needs_shared
@pytest.mark.parametrize("name", ["shapes_combined", "mt_instr_jumps", "threads", "xdebug"])
def test_our_files_give_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "ours.callgrind"
    if name == "threads":
        inputs = [str(p) for p in sorted(shared_data("callgrind", "threads").iterdir())]
        convert(inputs, str(path), per_thread=True)
    elif name == "xdebug":
        convert([str(shared_data("callgrind", "xdebug_single.cachegrind"))], str(path), aggregate=True)
        # negative memory is 0 to KCachegrind, without a message
    else:
        convert([str(shared_data("callgrind", f"{name}.callgrind"))], str(path))
    assert messages(path, tmp_path / "home") == []


# ---- its figures ---------------------------------------------------------------


class Listed(NamedTuple):
    """One function in cgview's list: the first event's figures, and its arcs as (cost, count, other's name)."""

    inclusive: int
    own: int
    called: int
    name: str
    object: str
    callers: frozenset[tuple[tuple[int, int, str], int]]
    callees: frozenset[tuple[tuple[int, int, str], int]]


def listing(text: str) -> Counter[Listed]:
    """The recorded output of `cgview -e -b -n`."""
    found: Counter[Listed] = Counter()
    for block in text[text.index("=====") :].partition("\n")[2].split("exit status")[0].split("\n\n"):
        arcs: dict[str, Counter[tuple[int, int, str]]] = {"<": Counter(), ">": Counter()}
        figures: list[int] = []
        function = ""
        for line in filter(None, block.split("\n")):
            # thousands are separated by one blank, columns by two or more
            arc = re.match(r" *(\d[\d ]*?)  +(\d[\d ]*?)    ([<>]) (.*)$", line)
            if arc:
                arcs[arc[3]][integer(arc[1]), integer(arc[2]), arc[4]] += 1
            else:
                figures, function = [integer(column) for column in (line[:14], line[14:28], line[28:41])], line[43:]
        if figures:
            name, _, object = function.rpartition(" (")
            callers, callees = (frozenset(arcs[side].items()) for side in "<>")
            inclusive, own, called = figures
            found[Listed(inclusive, own, called, name, object[:-1].rpartition("/")[2], callers, callees)] += 1
    return found


def integer(text: str) -> int:
    return int(text.replace(" ", ""))


def as_listed(loader: Loader) -> Counter[Listed]:
    """The same of the model's functions, all of them."""
    found: Counter[Listed] = Counter()
    for function, shown in loader.shown().items():
        callers, callees = (
            frozenset(Counter((a.cost[0], a.count, other.name.decode()) for other, a in arcs.items()).items())
            for arcs in (shown.callers, shown.callees)
        )
        name, object = function.name.decode(), function.object.decode()
        found[Listed(shown.inclusive[0], shown.own[0], shown.called, name, object, callers, callees)] += 1
    return found


def recorded() -> list[tuple[Path, Path]]:
    """Files and their recorded cgview output.  Given a name, it loads all files that begin with it."""
    if SHARED is None:
        return []
    folder = shared_data("callgrind")
    found = [(p, folder / "expected" / f"{prefix(p)}{p.name}.cgview-nocycles.txt") for p in GOOD]
    edge = [(p, p.with_suffix(".cgview.txt")) for p in sorted(folder.glob("edge/*.callgrind"))]
    return [pair for pair in found + edge if pair[1].exists()]


FILE = re.compile(r'^Loading ".*/(.*)"$', re.MULTILINE)


def prefix(path: Path) -> str:
    return "" if path.parent.name == "callgrind" else path.parent.name + "_"


@pytest.mark.parametrize(("path", "expected"), recorded(), ids=lambda p: p.name)
def test_the_model_gives_what_kcachegrind_printed(path: Path, expected: Path) -> None:
    """Of the original files: functions, callers, callees, totals of every event, and lines that caused a message."""
    text = expected.read_text()
    loader = load(*(p.read_bytes() for p in sorted(path.parent.iterdir()) if p.name in re.findall(FILE, text)))
    assert loader.refused == text.count("Unknown file format")
    if "No event types found" in text:
        assert not loader.parts
        return
    assert loader.errors == [int(n) for n in re.findall(r"^Error in .*?, line (\d+) ", text, re.MULTILINE)]
    totals = re.findall(r"^ *(\d[\d ]*?)   .* \((\S+)\)$", text[: text.index("Sorted by")], re.MULTILINE)
    assert {name.decode(): n for name, n in loader.totals().items()} == {name: integer(n) for n, name in totals}
    listed = listing(text)
    assert sum(listed.values()) == min(50, len(loader.shown()))
    assert not listed - as_listed(loader)


# KCachegrind does not accept a tab for a blank, and binds numbers to the file and object that were current where they
# were defined, here at the top; a count ends at a point or an exponent.  Our copies of these files it reads correctly.
MISREAD = {
    "tab.callgrind": {b"f": [6, 6]},
    "float.callgrind": {b"f": [1002, 6]},
    "quirks_inherit.callgrind": {b"main": [34, 9, 3], b"from_y": [9, 0, 0]},
}


@needs_shared
@pytest.mark.parametrize(
    ("path", "compress"), [(p, i % 2 == 0) for i, p in enumerate(GOOD[::2])], ids=lambda p: str(p)[-30:]
)
def test_it_shows_the_same_of_our_files(path: Path, compress: bool) -> None:
    """Every figure of every function and arc, and so every figure that it derives; and every line's position."""
    data = rewrite(path, options=Options(compress_names=compress, compress_positions=compress))
    before, after = load(contents(path)), load(data)
    assert not after.errors and not after.refused
    if path.name in MISREAD:
        own = {f.name: s.own for f, s in after.shown().items()}
        assert own == own | MISREAD[path.name]
    else:
        assert after.shown() == before.shown()
        assert after.totals() == before.totals()
    lines: Counter[tuple[Function, bytes, int, int]] = Counter()
    for row in (row for part in parse(data) for row in part.rows if row.kind == "cost"):
        f = row.function
        function = Function(f.name, base_name(f.file), base_name(f.object))
        lines[function, base_name(row.file), row.position[0], row.position[2]] += 1
    assert sum((part.lines for part in after.parts), Counter()) == lines


def test_its_base_of_relative_positions_is_another() -> None:
    """So that the comparison of positions above means something."""
    header = b"events: Ir\nfl=a\nfn=f\n10 1\ncfn=g\ncalls=1 5\n20 1\n"
    (part,) = load(header + b"+1 1\n").parts
    assert [line for *_, line in part.lines] == [10, 21]
    assert [row.position[2] for row in parse(header + b"+1 1\n")[0].rows if row.kind == "cost"] == [10, 11]
