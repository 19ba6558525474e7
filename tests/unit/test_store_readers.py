"""Reading a store while another process changes it: a reader sees one complete state."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.source import Source
from fastprof.formats.archive.index import load
from fastprof.formats.archive.sections import Codec
from fastprof.inputs.state import State
from fastprof.store import adding, compact, listing
from tests.support.dying import dying
from tests.support.paths import REPO

N = 5
NAMES = [f"{i}.callgrind" for i in range(N)]
# The file of dump i of one generation: functions and costs identify it.
DUMP = "events: Ir\nfl=a.c\nfn=f{i}\n1 {cost}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two generations of dumps, and a store with the first."""
    monkeypatch.chdir(tmp_path)
    for generation in (1, 2):
        (tmp_path / f"in{generation}").mkdir()
        for i in range(N):
            (tmp_path / f"in{generation}" / f"{i}.callgrind").write_text(DUMP.format(i=i, cost=generation * 10**i))
    assert main(["archive", "add", "-q", "s.fpa", "in1"]) == 0
    return tmp_path


FOLDED = {g: "".join(f"f{i} {g * 10**i}\n" for i in range(N)) for g in (1, 2)}


ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPO)}


def replace() -> None:
    assert main(["archive", "add", "-q", "s.fpa", "in2", "--replace"]) == 0


def remove() -> None:
    assert main(["archive", "rm", "-q", "s.fpa", "*"]) == 0


def compact_() -> None:
    replace()
    assert main(["archive", "compact", "-q", "s.fpa"]) == 0


def vanish() -> None:
    os.unlink("s.fpa")


def half() -> None:
    """A process that dies in the middle of an append."""
    code = dying("from fastprof.store import adding; adding.add('s.fpa', ['in2'], replace=True)")
    done = subprocess.run([sys.executable, "-c", code, "200"], env=ENVIRONMENT)
    assert done.returncode == -9 and State("s.fpa").archive.notes


CHANGES = [replace, remove, compact_, vanish, half]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("at", [1, 2, N])
@pytest.mark.parametrize("lenient", [False, True])
def test_an_input_stays_what_it_was(folder: Path, change: Callable[[], None], at: int, lenient: bool) -> None:
    """The store changes when profile number `at` is opened."""
    seen: list[str] = []

    def progress(source: Any) -> None:
        seen.append(source.name)
        if len(seen) == at:
            change()

    log = fastprof.merge("s.fpa:*", "all.folded", progress=progress, lenient=lenient)
    assert Path("all.folded").read_text() == FOLDED[1]
    assert seen == [f"s.fpa:{name}" for name in NAMES] and not log.warnings and not log.losses


@pytest.mark.parametrize("change", CHANGES)
def test_all_that_are_extracted_are_of_one_state(folder: Path, change: Callable[[], None]) -> None:
    from fastprof.verbs.extract import extract

    extract("s.fpa", NAMES, "out", to="folded", done=lambda name, n, of: change() if n == 1 else None)
    assert "".join(Path("out", f"{name}.folded").read_text() for name in NAMES) == FOLDED[1]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_verified_is_one_state(folder: Path, change: Callable[[], None]) -> None:
    done: list[str] = []

    def step(name: str, n: int, of: int) -> None:
        done.append(name)
        if n == 1:
            change()

    assert compact.verify("s.fpa", done=step) == [] and done == NAMES


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", ["s.fpa:2*", "one.fpa"])
def test_an_open_profile_stays_what_it_was(folder: Path, change: Callable[[], None], path: str) -> None:
    if path == "one.fpa":
        adding.add("one.fpa", ["in1/2.callgrind"])
    with fastprof.open(path) as profile:
        assert profile.table("graph")
        before = [batch.values(0).tolist() for batch in profile]
        change()
        adding.add("one.fpa", ["in2/3.callgrind"])
        assert [batch.values(0).tolist() for batch in profile] == before == [[100]]


def test_several_archives_with_one_that_grows(folder: Path) -> None:
    """Not selected by a pattern."""
    adding.add("a.fpa", ["in1/1.callgrind"])
    adding.add("b.fpa", ["in1/2.callgrind"])
    grown: list[bool] = []

    def progress(source: Any) -> None:
        if not grown:
            grown.append(True)
            adding.add("b.fpa", ["in2/3.callgrind"])

    fastprof.merge(["a.fpa", "b.fpa"], "all.folded", progress=progress)
    assert Path("all.folded").read_text() == "f1 10\nf2 100\n"


def test_what_is_wrong_with_a_store_is_reported_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adding.add("one.fpa", ["in1/1.callgrind"])
    whole = Path("one.fpa").read_bytes()
    adding.add("one.fpa", ["in1/2.callgrind"])
    longer = Path("one.fpa").read_bytes()
    for torn in (whole + b"torn", longer[:-16]):  # the second only lacks the trailer
        for path in ("s.fpa", "one.fpa"):
            Path(path).write_bytes(torn)
        with fastprof.open("s.fpa") as profile:
            assert [batch.values(0).tolist() for batch in profile] == [[10]] and len(profile.log.warnings) == 1
        assert len(fastprof.info("s.fpa:1*").warnings) == 1
        for paths in (["s.fpa"], ["s.fpa:*"], ["s.fpa:*", "s.fpa:1*"]):
            assert len(fastprof.merge(paths, "all.folded").warnings) == 1
        assert len(fastprof.merge(["s.fpa", "one.fpa"], "all.folded").warnings) == 2
        capsys.readouterr()
        assert main(["archive", "extract", "s.fpa", "*", "-o", "one.folded"]) == 0
        assert capsys.readouterr().err.count("unfinished append") == 1


def test_no_file_stays_open(folder: Path) -> None:
    """Even without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd")), State._n_open
        fastprof.convert("s.fpa:1*", "all.folded")
        fastprof.merge("s.fpa:*", "all.folded")
        fastprof.top("s.fpa:*")
        with fastprof.open("s.fpa:1*") as profile:
            assert profile.table("graph")
        del profile
        compact.verify("s.fpa")
        assert main(["archive", "extract", "-q", "s.fpa", "*", "-t", "folded", "-o", "out"]) == 0
        assert (len(os.listdir("/proc/self/fd")), State._n_open) == before
    finally:
        gc.enable()


@pytest.fixture
def uncommitted(folder: Path) -> Iterator[adding.Adding]:
    """A process is appending: its data so far is not part of the store."""
    with adding.adding("s.fpa") as session:
        session.add("in2/0.callgrind", "new")
        session.add("in2/1.callgrind", "1.callgrind", replace=True)
        yield session


@pytest.mark.parametrize("lenient", [False, True])
def test_what_is_being_appended_is_not_there(uncommitted: adding.Adding, lenient: bool) -> None:
    options: dict[str, Any] = {"lenient": True} if lenient else {}
    assert listing.names("s.fpa", lenient=lenient) == NAMES
    log = fastprof.merge("s.fpa:*", "all.folded", **options)
    assert Path("all.folded").read_text() == FOLDED[1] and not log.warnings and not log.losses
    for path, more in (("s.fpa:1.callgrind", options), ("s.fpa", {"member": "1.callgrind", **options})):
        log = fastprof.info(path, **more)
        assert log.facts["totals"] == {"Ir": 10} and not log.warnings and not log.losses
    assert fastprof.info("s.fpa").facts["profiles"] == N
    uncommitted.commit()
    assert listing.names("s.fpa", lenient=lenient) == [NAMES[0], *NAMES[2:], "new", NAMES[1]]


def test_what_a_dead_process_appended_is_left_out_and_reported(folder: Path) -> None:
    half()
    log = fastprof.merge("s.fpa:*", "all.folded")
    assert Path("all.folded").read_text() == FOLDED[1]
    (warning,) = log.warnings
    assert warning.startswith("s.fpa: the file does not end with its index: ") and "lenient=True reads them" in warning
    log = fastprof.merge("s.fpa:*", "all.folded", lenient=True)
    assert log.losses["archive-indexes"] and log.losses["archive-unfinished-profiles"]


@pytest.mark.parametrize("torn", [200, 4000])
def test_a_file_that_is_cut_and_grows_again_while_its_index_is_looked_for(folder: Path, torn: int) -> None:
    """It is opened in the middle of an append, which fails; the next append writes other bytes, fewer or more."""
    with open("s.fpa", "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.write(b"\xff" * torn)
        file.flush()
        with Source("s.fpa") as source:
            file.truncate(end)
            adding.add("s.fpa", ["in2/0.callgrind"], name="new")
            assert end + 200 < os.path.getsize("s.fpa") < end + 4000
            assert [one.name for one in load(source, Codec(), lenient=False).chosen(source)] == [*NAMES, "new"]


WRITER = """
import itertools
from fastprof.store import adding, compact
for i in itertools.count():
    adding.add("s.fpa", [f"in{i % 2 + 1}"], replace=True)
    compact.remove("s.fpa", ["0*"])
    with adding.adding("s.fpa") as session:
        session.add("in1/0.callgrind", "0.callgrind")
    if i % 3 == 2:
        compact.compact("s.fpa")
    print(i, flush=True)
"""


def test_readers_beside_a_writer(folder: Path) -> None:
    """The writer replaces, removes and compacts as fast as it can."""
    with subprocess.Popen([sys.executable, "-c", WRITER], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            for n in range(40):
                if n % 10 == 0:
                    assert writer.stdout.readline()
                log = fastprof.merge("s.fpa:[1234]*", "all.folded")
                lines = Path("all.folded").read_text().splitlines()
                assert len(lines) == N - 1 and not log.warnings
                log = fastprof.merge("s.fpa:*", "all.folded", lenient=True)
                assert len(Path("all.folded").read_text().splitlines()) >= N - 1
                assert not log.warnings and not log.losses
                assert len(listing.members("s.fpa")) >= N - 1
                assert main(["archive", "extract", "-q", "s.fpa", "[1234]*", "-t", "folded", "-o", "out"]) == 0
                assert compact.verify("s.fpa", ["[1234]*"]) == []
                assert writer.poll() is None
        finally:
            writer.kill()
    assert compact.verify("s.fpa") == []
