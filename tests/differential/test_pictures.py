"""docs/make_pictures.mjs, which makes the pictures of docs/viewers.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.differential.peers import need, node
from tests.support.paths import REPO


def test_the_pictures_of_the_page_are_made(tmp_path: Path) -> None:
    """As wide and high as those in docs, and with something in them: what was not drawn compresses to a few KB."""
    for program in ("chromium", "pngquant"):
        need(program)
    command = [node(), "docs/make_pictures.mjs", "--into", str(tmp_path), "report"]
    subprocess.run(command, cwd=REPO, check=True, capture_output=True, timeout=120)
    names = ["report-time-dark.png", "report.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        found, shown = (tmp_path / name).read_bytes(), (REPO / "docs/pictures" / name).read_bytes()
        assert found[:24] == shown[:24]  # PNG's signature, and the size
        assert len(found) > len(shown) / 2
