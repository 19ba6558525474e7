"""Writes the picture of docs/terminal.md as SVG: `python -m docs.make_terminal OUT.svg`, see make_pictures.mjs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fastprof.cli.browser.app import Browser
from fastprof.verbs.browse import browse

REPO = Path(__file__).resolve().parent.parent
PROFILE = REPO / "tests/corpus/pprof/good/go-cpulabels.pb.gz"
TITLE = "fastprof view cpu.pb.gz --tui"


async def picture() -> str:
    app = Browser(browse(PROFILE))
    async with app.run_test(size=(110, 32)) as pilot:
        for key in ("down", "down", "down", "down"):
            await pilot.press(key)
        await pilot.pause()
        return app.export_screenshot(title=TITLE)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(asyncio.run(picture()), encoding="utf-8")
