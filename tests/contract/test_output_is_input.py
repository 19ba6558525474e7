"""No verb writes its output over a file that it reads, whatever the name by which that is given."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fastprof
from fastprof import cli
from fastprof.core.errors import UsageError
from fastprof.store import adding
from tests.support.paths import CORPUS

# The output is OUT, another name of the input "in/a.folded".
COMMANDS = [
    "convert in/a.folded -o OUT -t folded",
    "convert in/a.folded in/b.folded -o OUT -t pprof",
    "convert in -o OUT -t folded",
    "convert in/a.folded -t speedscope -o OUT",
    "merge in/a.folded in/b.folded -o OUT -t folded",
    "merge in -o OUT -t folded --keep-going",
    "diff in/a.folded in/b.folded -o OUT -t folded",
    "diff in/b.folded in/a.folded -o OUT -t folded",
    "diff in/b.folded in/a.folded -o OUT.txt",
    "report in/a.folded -o OUT",
    "report in/b.folded in/a.folded -o OUT",
    "report in --sum -o OUT",
    "top in/a.folded -o OUT.txt",
    "top in -o OUT.csv",
    "top in --matrix label:x -o OUT.html",
    "batch merge in -o OUT -t folded",
    "batch merge in -j 2 -o OUT -t folded",
    "batch plan in -o OUT",
    "archive extract in/s.fpa a.folded -o STORE -t folded",
    "convert in/s.fpa:a.folded -o STORE -t folded",
    "convert in/b.folded --labels-from in/a.folded -t pprof -o OUT",
    "convert in/b.folded -s in/a.folded -t pprof -o OUT",
]
NAMES: dict[str, Callable[[Path, Path], object]] = {
    "itself": lambda path, to: None,
    "symbolic link": lambda path, to: path.symlink_to(to),
    "hard link": lambda path, to: os.link(to, path),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.folded").write_text("main;f 1\nmain;g 2\n")
    (tmp_path / "in/b.folded").write_text("main;f 3\n")
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_refused(command: str, name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = command.split()
    if "s.fpa" in command:
        adding.add("in/s.fpa", ["in/a.folded"])
    at = next(i for i, word in enumerate(words) if word.startswith(("OUT", "STORE")))
    kind, suffix = os.path.splitext(words[at])
    read = "in/s.fpa" if kind == "STORE" else "in/a.folded"
    if suffix:
        os.rename(read, (to := f"in/a{suffix}"))
        words = [to if word == read else word for word in words]
        read = to
    other = "in/../in/" + os.path.basename(read) if name == "itself" else f"other{os.path.splitext(read)[1]}"
    NAMES[name](folder / other, folder / read)
    words[at] = other
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code = cli.main(words)
    said = capfd.readouterr().err
    assert code == 2 and "choose another output" in said, said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_store_is_not_replaced_by_one_of_its_profiles(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    adding.add("in/s.fpa", ["in/a.folded"], name="s")
    adding.add("in/s.fpa", ["in/b.folded"])
    before = (folder / "in/s.fpa").read_bytes()
    os.link("in/s.fpa", "s.fpa")
    for output in ("in/", "."):
        assert cli.main(["archive", "extract", "in/s.fpa", "s", "b.folded", "-t", "archive", "-o", output]) == 1
        assert "'s' would replace the archive" in capfd.readouterr().err
    assert (folder / "in/s.fpa").read_bytes() == before


def test_a_batch_through_links(folder: Path) -> None:
    (folder / "out").mkdir()
    shutil.copy("in/a.folded", "out/b.folded.folded")
    (folder / "in/c.folded").symlink_to(folder / "out/b.folded.folded")
    with pytest.raises(UsageError, match=r"b\.folded would become out/b\.folded\.folded, which is the same file as"):
        fastprof.batch_convert("in", "out", to="folded", jobs=1)
    assert (folder / "out/b.folded.folded").read_bytes() == (folder / "in/a.folded").read_bytes()


def test_each_file_of_a_split(folder: Path) -> None:
    fastprof.convert(CORPUS / "xray/good/fdr5-pool-clang19.xray", "t.pftrace", to="perfetto", symbolize=False)
    log = fastprof.convert("t.pftrace", "out.trace.json", split="thread")
    first = log.facts["files"][0]["path"]
    os.replace("t.pftrace", first)
    before = Path(first).read_bytes()
    with pytest.raises(UsageError, match=f"^{first}: is an input; choose another output$"):
        fastprof.convert(first, "out.trace.json", split="thread", from_="perfetto")
    assert Path(first).read_bytes() == before


def test_what_is_not_refused(folder: Path) -> None:
    """A device, a stream, a new file, another file, and a copy."""
    shutil.copy("in/a.folded", "copy.folded")
    for output in ("/dev/null", "copy.folded", "new.folded", "in/b.folded"):
        assert cli.main(["convert", "in/a.folded", "-t", "folded", "-q", "-o", output]) == 0
    assert cli.main(["archive", "add", "s.fpa", "in", "-q"]) == 0
    assert cli.main(["archive", "add", "s.fpa", "s.fpa", "in", "--replace", "-q"]) == 0
    with open("in/a.folded", "rb") as file, pytest.raises(UsageError, match="is an input"):
        fastprof.convert(file, "in/a.folded", to="folded")
