"""What somebody else has put at a name that fastprof uses for files that it makes and removes stays as it is."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import fastprof
from fastprof.core import newfile
from fastprof.core.errors import FastprofError
from fastprof.core.made_folders import PrivateFolder, WorkFolder
from fastprof.store import adding, compact
from fastprof.verbs.batch.partial_key import proof_of
from tests.support.paths import CORPUS

GRAPH = CORPUS / "callgrind/good/tab.callgrind"
ZEROS = "0" * 16  # names are random: here they can be known
TEMPORARY = f".fastprof-{ZEROS}.tmp"


def inputs(folder: Path) -> Path:
    """A folder with a few profiles."""
    (folder / "in").mkdir()
    for name in "abc":
        shutil.copy(GRAPH, folder / "in" / f"{name}.callgrind")
    return folder / "in"


def _archive(folder: Path) -> None:
    fastprof.batch_archive(inputs(folder), folder / "out.fpa", jobs=1)


def _merge(folder: Path) -> None:
    fastprof.batch_merge(inputs(folder), folder / "out.callgrind", jobs=2, fan_in=2)


def _batch(folder: Path) -> None:
    fastprof.batch_convert(inputs(folder), folder / "out", to="folded", jobs=1)


def _convert(folder: Path) -> None:
    fastprof.convert(GRAPH, folder / "out.folded")


def _replace(folder: Path) -> None:
    (folder / "out.folded").write_bytes(b"old")
    _convert(folder)


def _compact(folder: Path) -> None:
    (folder / "out.fpa").exists() or adding.add(str(folder / "out.fpa"), [str(GRAPH)])
    compact.compact(str(folder / "out.fpa"))


def _token(folder: Path) -> None:
    with proof_of([], str(folder)):
        pass


MADE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "pieces": (".out.fpa.pieces", _archive),
    "partials": ("out.callgrind.partials", _merge),
    "records": ("out/.fastprof", _batch),
    "manifest": ("out/.fastprof/1-of-1.jsonl", _batch),
    "records of a store": (".fastprof", _archive),
    "manifest of a store": (".fastprof/out.fpa.jsonl", _archive),
    "output": (TEMPORARY, _convert),
    "replaced output": (TEMPORARY, _replace),
    "compacted store": (TEMPORARY, _compact),
    "token": ("0" * 32 + ".token", _token),
}


def _link(path: Path, to: Path) -> None:
    path.symlink_to(to)


def _folder(path: Path, victim: Path) -> None:
    """A folder with files whose names are those that fastprof gives."""
    path.mkdir()
    for name in ("0.fpa", "0" * 32 + ".fpa", "0" * 32 + ".fpa.json", TEMPORARY, "precious"):
        (path / name).write_bytes(b"precious\n")


PLANTED: dict[str, Callable[[Path, Path], None]] = {
    "link to a folder": _link,
    "link to a file": lambda path, victim: _link(path, victim / "0.fpa"),
    "link to nothing": lambda path, victim: _link(path, victim / "missing"),
    "folder": _folder,
    "empty folder": lambda path, victim: path.mkdir(),
    "file": lambda path, victim: path.write_bytes(b"precious"),
    "file of lines": lambda path, victim: path.write_bytes(b"precious\nlines\nwithout an end"),
}


def state(*paths: Path) -> dict[str, object]:
    """All that is at and below these paths."""
    found: dict[str, object] = {}
    for above in paths:
        for path in [above, *sorted(above.rglob("*"))] if above.is_dir() and not above.is_symlink() else [above]:
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path)] = path.lstat().st_ino, content
    return found


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize(
    ("made", "named"), [(m, n) for m in MADE for n in (False, True) if not n or MADE[m][0] == TEMPORARY]
)
def test_what_is_planted_stays(
    made: str, planted: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, work = MADE[made]
    if made == "compacted store":
        _compact(tmp_path)
    victim = tmp_path / "victim"
    _folder(victim, victim)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    PLANTED[planted](path, victim)
    before = state(path, victim)
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    if named:  # as on file systems where files need a name
        monkeypatch.setattr(newfile, "_open_nameless", lambda *_: None)
    try:
        work(tmp_path)
    except FastprofError as error:
        assert name.split("/")[0] in str(error) or "out." in str(error)
    after = state(path, victim)
    if path.name == ".fastprof":  # files are added, and never removed
        after = {key: value for key, value in after.items() if key in before}
    assert after == before


@pytest.mark.parametrize("planted", ["link to a folder", "folder", "empty folder"])
def test_what_takes_the_place_of_a_folder_stays(planted: str, tmp_path: Path) -> None:
    """While it is used."""
    victim = tmp_path / "victim"
    _folder(victim, victim)
    for k, (make, end) in enumerate(
        [
            (lambda path: WorkFolder(str(path), r".*\.fpa"), WorkFolder.close),
            (lambda path: PrivateFolder("p", str(tmp_path)), PrivateFolder.remove),
        ]
    ):
        made = make(tmp_path / f"made{k}")
        path = Path(made.path)
        (path / "1.fpa").write_bytes(b"ours")
        path.rename(tmp_path / f"elsewhere{k}")
        PLANTED[planted](path, victim)
        before = state(path, victim)
        end(made)  # type: ignore[operator]
        assert state(path, victim) == before


def test_a_temporary_folder_gets_a_name_that_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fastprof-a").symlink_to(tmp_path)
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: iter("ab"))
    with PrivateFolder(within=str(tmp_path)) as path:
        assert os.path.basename(path) == "fastprof-b" and os.stat(path).st_mode & 0o777 == 0o700
    assert [each.name for each in tmp_path.iterdir()] == ["fastprof-a"]


def test_the_folder_of_a_killed_process_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "made"
    made = WorkFolder(str(path), r"[0-9]+\.fpa")
    (path / "1.fpa").write_bytes(b"ours")
    (path / TEMPORARY).write_bytes(b"ours")
    with pytest.raises(FastprofError, match="made: another batch is running here"):
        WorkFolder(str(path), ".*")
    made._opened.close()  # as a killed process leaves it
    again = WorkFolder(str(path), r"[0-9]+\.fpa")
    assert again.empty() and [each.name for each in path.iterdir()] == [".made-by-fastprof"]
    (path / "2.fpa").write_bytes(b"ours")
    again.close(keep=True)
    assert (path / "2.fpa").exists()
    last = WorkFolder(str(path), r"[0-9]+\.fpa")
    (path / "foreign").write_bytes(b"not ours")
    last.close()
    assert sorted(each.name for each in path.iterdir()) == [".made-by-fastprof", "foreign"]
    (path / "foreign").unlink()
    WorkFolder(str(path), r"[0-9]+\.fpa").close()
    assert [*tmp_path.iterdir()] == []


def test_a_store_at_the_end_of_a_link(tmp_path: Path) -> None:
    """A link that leads to no file yet was opened for ever."""
    (tmp_path / "link.fpa").symlink_to("real.fpa")
    with pytest.raises(FastprofError):
        adding.add(str(tmp_path / "link.fpa"), [str(tmp_path / "missing")])
    assert [each.name for each in tmp_path.iterdir()] == ["link.fpa"]
    adding.add(str(tmp_path / "link.fpa"), [str(GRAPH)])
    assert (tmp_path / "link.fpa").is_symlink() and (tmp_path / "real.fpa").is_file()
