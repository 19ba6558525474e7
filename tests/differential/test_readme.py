"""What README.md shows is what its commands print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.differential.peers import need
from tests.support.paths import REPO

BLOCKS = re.findall(r"^```\n(\$ .*?)^```$", (REPO / "README.md").read_text(), re.MULTILINE | re.DOTALL)
SHOWN = [block for block in BLOCKS if not all(line.startswith("$ ") for line in block.splitlines())]


def test_the_blocks_are_found() -> None:
    assert len(SHOWN) == 4 and len(BLOCKS) == 9


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_the_commands_print_what_is_shown(block: str, tmp_path: Path) -> None:
    for tool in ("callgrind_annotate", "zstd", "go"):
        need(tool)
    (tmp_path / "tests").symlink_to(REPO / "tests")
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    function = f'fastprof() {{ PYTHONPATH="{REPO}" "{sys.executable}" -m fastprof "$@"; }}'
    script = "\n".join(["set -e -o pipefail", function, *commands])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    if block in SHOWN:
        shown = "".join(line for line in block.splitlines(keepends=True) if not line.startswith("$ "))
        assert done.stdout == shown
