"""KCachegrind: the real program opens our files without a message; its rules give the recorded figures."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from fastprof.engine import Options
from fastprof.pipeline import convert
from tests.differential.test_callgrind_reference import GOOD
from tests.differential.test_callgrind_tools import need
from tests.graphs import rewrite
from tests.paths import REPO, SHARED, needs_shared, shared_data
from tests.reference.callgrind import Function, parse


def messages(path: Path, home: Path) -> list[str]:
    """What KCachegrind's loader complains of.  It has no exit of its own: it is stopped once it has loaded."""
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
            # this line is its last when a window comes up
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
    """So that their absence below means something."""
    path = tmp_path / "broken.callgrind"
    path.write_bytes((REPO / "tests/corpus/callgrind/bad/float.callgrind").read_bytes())
    assert any("Garbage at end of cost line" in m for m in messages(path, tmp_path / "home"))


@needs_shared
@pytest.mark.parametrize("name", ["shapes_combined", "mt_instr_jumps", "threads", "xdebug"])
def test_our_files_give_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "ours.callgrind"
    if name == "threads":
        inputs = [str(p) for p in sorted(shared_data("callgrind", "threads").iterdir())]
        convert(inputs, str(path), options=Options(per_thread=True))
    elif name == "xdebug":
        convert([str(shared_data("callgrind", "xdebug_single.cachegrind"))], str(path), options=Options(aggregate=True))
        # negative memory is 0 to KCachegrind, and it says nothing of it
    else:
        convert([str(shared_data("callgrind", f"{name}.callgrind"))], str(path))
    assert messages(path, tmp_path / "home") == []


# ---- its figures ---------------------------------------------------------------


Key = tuple[bytes, bytes, bytes]  # name, base names of file and object: what KCachegrind tells functions apart by


def key_of(f: Function) -> Key:
    def plain(text: bytes) -> bytes:
        return b"" if text == b"???" else text.rpartition(b"/")[2]

    return f.name, plain(f.file), plain(f.object)


def kcachegrind(data: bytes) -> dict[Key, tuple[int, int, int]]:
    """Inclusive and self cost of the first event, and calls, of each function, by KCachegrind's rules.

    Part by part: a function that is called costs what the calls into it cost, direct recursion left out;
    one that is not, itself and what it calls.
    """
    totals: dict[Key, list[int]] = defaultdict(lambda: [0, 0, 0])
    for part in parse(data):
        own: Counter[Key] = Counter()
        cost: Counter[tuple[Key, Key]] = Counter()
        calls: Counter[tuple[Key, Key]] = Counter()
        for row in part.rows:
            if row.kind == "cost":
                own[key_of(row.function)] += max(0, row.values[0])
            elif row.kind == "call":
                assert row.callee is not None
                arc = key_of(row.function), key_of(row.callee)
                cost[arc] += max(0, row.values[0])
                calls[arc] += row.count
        functions = {k for arc in cost for k in arc} | set(own)
        into: Counter[Key] = Counter()
        out: Counter[Key] = Counter()
        called: Counter[Key] = Counter()
        for (caller, callee), n in cost.items():
            called[callee] += calls[caller, callee]
            if caller != callee:
                into[callee] += n
                out[caller] += n
        for f in functions:
            total = totals[f]
            total[0] += into[f] if called[f] else own[f] + out[f]
            total[1] += own[f]
            total[2] += called[f]
    return {k: (v[0], v[1], v[2]) for k, v in totals.items()}


def listed(text: str) -> Counter[tuple[int, int, str]]:
    """The functions of a cgview listing: inclusive, self, name and object."""
    found: Counter[tuple[int, int, str]] = Counter()
    for line in text[text.index("=====") :].splitlines()[1:]:
        # "%14s%14s%13s  %s"; a caller or callee stands two columns further, without self cost
        inclusive, self_cost, name = line[:14], line[14:28], line[43:]
        if line.strip() and name[:4] not in ("  < ", "  > "):
            numbers = [int(n.replace(" ", "")) for n in (inclusive, self_cost)]
            found[numbers[0], numbers[1], name.rpartition(" (")[0]] += 1
    return found


def recorded() -> list[Path]:
    if SHARED is None:
        return []
    # The listing of parts/mt.callgrind is of all files whose name begins so.  In quirks_inherit KCachegrind
    # keeps a function in the file where its number was defined, although its block stands under another fl=.
    left_out = {"mt.callgrind", "quirks_inherit.callgrind"}
    return [p for p in GOOD if expected(p).exists() and p.name not in left_out]


def expected(path: Path) -> Path:
    folder = "" if path.parent.name == "callgrind" else path.parent.name + "_"
    return shared_data("callgrind", "expected", f"{folder}{path.name}.cgview-nocycles.txt")


@pytest.mark.parametrize("path", recorded(), ids=lambda p: p.name)
def test_our_files_have_the_figures_that_kcachegrind_showed(path: Path) -> None:
    ours = Counter((v[0], v[1], k[0].decode()) for k, v in kcachegrind(rewrite(path)).items())
    theirs = listed(expected(path).read_text())
    assert theirs and sum(theirs.values()) >= min(50, sum(1 for _ in ours)) // 2
    missing = theirs - ours
    assert not missing
