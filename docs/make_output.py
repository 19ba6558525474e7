"""Renews what commands print in the pages that show tables: `make docs`.

tests/differential/test_documents.py runs the same blocks, and fails if one prints something else than its page shows.
Pages that need a tool or data that is missing here are left as they are, and named.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from tests.differential import test_documents as documents
from tests.support.paths import REPO, SHARED

# By page: the tools that it needs
PAGES = {
    "README.md": ("callgrind_annotate", "zstd", "go"),
    "docs/get-started.md": (),
    "docs/top.md": (),
    "docs/viewers.md": (),
}


def renewed(piece: str, printed: str) -> str:
    """A command and what it prints; `...` stands for all between the lines that remain above and below it."""
    shown = documents.shown(piece)
    if not shown or re.fullmatch(documents.pattern(shown), printed):
        return piece
    lines = printed.splitlines(keepends=True)
    first, *rest = [part.count("\n") for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    if rest:
        lines = [*lines[:first], "...\n", *lines[max(first, len(lines) - rest[-1]) :]]
    return piece.removesuffix(shown) + "".join(lines)


def renew(page: str) -> None:
    text = (REPO / page).read_text()
    with tempfile.TemporaryDirectory() as name:
        documents.put_inputs(page, Path(name))
        for block in documents.PAGES[page]:
            pieces = re.findall(r"^\$ .*\n(?:(?!\$ ).*\n)*", block, re.MULTILINE)
            text = text.replace(block, "".join(renewed(one, documents.run(one, Path(name))) for one in pieces), 1)
    (REPO / page).write_text(text)


def main() -> None:
    for page, tools in PAGES.items():
        missing = [tool for tool in tools if not shutil.which(tool)]
        missing += ["shared data"] * (page in documents.NEED_SHARED and SHARED is None)
        if missing:
            print(f"{page}: not renewed without {', '.join(missing)}")
        else:
            renew(page)


if __name__ == "__main__":
    main()
