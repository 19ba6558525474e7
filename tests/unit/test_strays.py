"""Folders with files that are no profiles: empty ones are skipped, others are an error that names the way around."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fastprof
from fastprof import cli
from fastprof.core.errors import FastprofError, UnrecognizedError
from tests.support.paths import CORPUS

GRAPHS = ("tab", "cfi")
VERBS = {
    "merge": "merge in -o out.callgrind",
    "convert": "convert in -o out.callgrind",
    "top": "top in",
    "annotate": "annotate in",
    "report": "report in --sum -o out.html",
    "diff": "diff in in",
    "sql": "sql in --csv",
    "archive": "archive add out.fpa in",
    "batch": "batch convert in -t folded -o out -j 1",
    "batch archive": "batch archive in -o out.fpa -j 1",
    "batch merge": "batch merge in -o out.callgrind",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in GRAPHS:
        shutil.copy(CORPUS / f"callgrind/good/{name}.callgrind", tmp_path / "in")
    return tmp_path


def words(verb: str) -> list[str]:
    return VERBS[verb].split() + ["select count(*) from graph"] * (verb == "sql")


@pytest.mark.parametrize("verb", VERBS)
def test_empty_files_are_skipped_with_a_count(verb: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """gperftools leaves them in processes that it does not profile."""
    (folder / "in/below").mkdir()
    for name in ("cpu.prof_1", "cpu.prof_2", "below/cpu.prof_3"):
        (folder / "in" / name).touch()
    assert cli.main(words(verb)) == 0
    assert capfd.readouterr().err.count("in: skipped 3 empty files") == 1


def test_a_folder_of_empty_files(folder: Path) -> None:
    (folder / "void").mkdir()
    (folder / "void/a").touch()
    with pytest.raises(FastprofError, match=r"^void: the directory has no files that are not empty$"):
        fastprof.top("void")
    with pytest.raises(FastprofError, match="the file is empty"):
        fastprof.top("void/a")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("batch", "batch archive")])
def test_a_stray_file_names_the_option_that_skips_it(
    verb: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "in/notes.txt").write_text("These are notes: nothing to read.\n")
    assert cli.main(words(verb)) == 1
    said = capfd.readouterr().err
    assert "in/notes.txt: unknown format" in said and "--keep-going" in said
    if "merge` skips it with" not in said:
        assert cli.main([*words(verb), "--keep-going"]) == 3


def test_a_single_stray_file_has_nothing_to_go_on_with(folder: Path) -> None:
    (folder / "notes.txt").write_text("These are notes: nothing to read.\n")
    with pytest.raises(UnrecognizedError) as caught:
        fastprof.top("notes.txt")
    assert "keep_going" not in str(caught.value)


@pytest.mark.parametrize("verb", ["batch", "batch archive"])
def test_equal_failures_are_one_line_and_a_count(verb: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for n in range(20):
        (folder / f"in/n{n}.txt").write_text(f"Notes {n}: nothing to read.\n")
    (folder / "in/torn.callgrind").write_text("events: Ir\nfn=f\n1 x\n")
    assert cli.main(words(verb)) == 1
    first, *others = [line for line in capfd.readouterr().err.splitlines() if "n1" in line or "failed as" in line]
    assert ": unknown format" in first
    (more,) = others
    assert "19 more files failed as " in more and more.endswith(".fastprof has all")
    status = fastprof.batch_status("out" if verb == "batch" else "out.fpa")
    assert len(status.failed) == 21
