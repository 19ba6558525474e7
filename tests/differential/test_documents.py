"""README.md and docs/ show the real output of their commands.

A block that begins with `$ ` is run, in the order of its page; `...` alone on a line stands for any lines.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.differential.peers import need
from tests.support.paths import CORPUS, REPO, needs_shared, shared_data
from tests.unit.test_diff import NEW, OLD
from tests.unit.test_diff_runs import make_runs

BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    str(path.relative_to(REPO)): BLOCK.findall(path.read_text())
    for path in [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
}
# The number of blocks that are run, and of those that show their output
BLOCKS = {
    "README.md": (11, 7),
    "docs/annotate.md": (1, 1),
    "docs/batch.md": (1, 0),
    "docs/ci.md": (1, 1),
    "docs/get-started.md": (5, 3),
    "docs/merge-diff.md": (3, 2),
    "docs/report.md": (1, 1),
    "docs/store.md": (2, 2),
    "docs/tables.md": (1, 1),
    "docs/top.md": (1, 1),
    "docs/viewers.md": (5, 2),
}
NEED_SHARED = ("docs/annotate.md", "docs/top.md")


def test_the_blocks_are_found() -> None:
    found = {page: (len(blocks), sum(map(bool, map(shown, blocks)))) for page, blocks in PAGES.items() if blocks}
    assert found == BLOCKS


def commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def shown(block: str) -> str:
    return "".join(line for line in block.splitlines(keepends=True) if not line.startswith("$ "))


def run(block: str, folder: Path) -> str:
    function = f'fastprof() {{ PYTHONPATH="{REPO}" "{sys.executable}" -m fastprof "$@"; }}'
    script = "\n".join(["set -e -o pipefail", function, *commands(block)])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def pattern(text: str) -> str:
    """Compressed sizes depend on the version of zlib or zstandard."""
    escaped = "".join("(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in text.splitlines(keepends=True))
    return re.sub(r"(\.fpa|\.html|->)(:?\\ \\?\(?)[\d,]+\\ bytes", r"\1\2[\\d,]+\\ bytes", escaped)


def put_inputs(page: str, folder: Path) -> None:
    """The files that a page assumes."""
    (folder / "tests").symlink_to(REPO / "tests")
    if page in NEED_SHARED:
        for name in ("callgrind.out.101", "callgrind.out.5557"):
            shutil.copy(shared_data("callgrind", "src_relative.callgrind"), folder / name)
        shutil.copytree(shared_data("callgrind", "src"), folder / "src")
    elif page == "docs/batch.md":
        shutil.copytree(CORPUS / "gperftools" / "good", folder / "dumps")
        shutil.copy(CORPUS / "xray" / "pool-clang19", folder / "server")
    elif page == "docs/merge-diff.md":
        shutil.copytree(CORPUS / "gperftools" / "good", folder / "runs")
        (folder / "old.callgrind").write_bytes(OLD)
        (folder / "new.callgrind").write_bytes(NEW)
        make_runs(folder)
    elif page == "docs/report.md":  # which names the source of its input
        run(PAGES["docs/viewers.md"][0], folder)
    elif page == "docs/store.md":
        for host in range(100):
            for night in range(20):
                path = folder / "runs" / f"host{host + 1}" / f"{night}.prof"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(struct.pack("<12Q", 0, 3, 0, 10000, 0, host + 1, 2, 4096, 8192 + night, 0, 1, 0))
        run(
            "$ mkdir later; mv runs/host99 runs/host100 later\n$ fastprof archive add -q nightly.fpa runs/\n"
            "$ mv later/* runs/",
            folder,
        )


@pytest.mark.parametrize("page", [pytest.param(page, marks=[needs_shared] * (page in NEED_SHARED)) for page in BLOCKS])
def test_the_commands_print_what_is_shown(page: str, tmp_path: Path) -> None:
    if page == "README.md":
        for tool in ("callgrind_annotate", "zstd", "go"):
            need(tool)
    put_inputs(page, tmp_path)
    for block in PAGES[page]:
        printed = run(block, tmp_path)
        if shown(block):
            assert re.fullmatch(pattern(shown(block)), printed), f"{block}\nprints\n\n{printed}"
