"""docs/make_pictures.mjs, which renders the pictures of docs/viewers.md, and the texts of what they show."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.differential.peers import need, node
from tests.support.paths import REPO


def test_the_pictures_of_the_page_are_made(tmp_path: Path) -> None:
    """They show the boxes and texts of the pictures in docs, with the same size; a blank one would compress to a few
    KB."""
    for program in ("chromium", "pngquant"):
        need(program)
    command = [node(), "docs/make_pictures.mjs", "--into", str(tmp_path), "report"]
    subprocess.run(command, cwd=REPO, check=True, capture_output=True, timeout=120)
    names = ["report", "report-time-dark"]
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(f"{name}.{ending}" for name in names for ending in ("png", "txt"))
    for name in names:
        pictures = REPO / "docs/pictures"
        found, shown = ((folder / f"{name}.png").read_bytes() for folder in (tmp_path, pictures))
        assert found[:24] == shown[:24]  # PNG's signature, and the size
        assert len(found) > len(shown) / 2
        texts = (tmp_path / f"{name}.txt").read_text(), (pictures / f"{name}.txt").read_text()
        assert texts[0] == texts[1], "the pictures show an older page: make pictures"


def test_the_profiles_that_other_viewers_show_are_those_of_their_pictures(tmp_path: Path) -> None:
    """The pictures themselves take a minute and programs that are not needed elsewhere."""
    command = [node(), "docs/make_pictures.mjs", "--into", str(tmp_path), "--texts"]
    subprocess.run(command, cwd=REPO, check=True, capture_output=True, timeout=120)
    for name in ("kcachegrind", "perfetto", "pprof", "speedscope"):
        found, shown = (folder / f"{name}.txt" for folder in (tmp_path, REPO / "docs/pictures"))
        assert found.read_text() == shown.read_text(), f"{name}.png shows another profile: make pictures"
