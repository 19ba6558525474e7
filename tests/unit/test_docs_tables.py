"""docs/tables.md: its code prints the output below it, and its table of columns is right."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pyarrow
import pytest

import fastprof
from fastprof.bridges import TABLES
from tests.support.paths import CORPUS, REPO

PAGE = (REPO / "docs" / "tables.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COLUMNS = dict(re.findall(r"^\| `(\w+)` \| [\w ]+ \| (.*?) \|$", PAGE, re.MULTILINE))
OF = {
    "timeline": "xray/good/fdr5-busy.xray",
    "stacks": "pprof/good/everything.pb",
    "graph": "callgrind/good/cfi.callgrind",
}


def test_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, as one program."""
    monkeypatch.chdir(REPO)
    names: dict[str, Any] = {}
    printed = []
    for code, _ in BLOCKS:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        printed.append(out.getvalue())
    assert printed == [shown for _, shown in BLOCKS] and len(printed) == 4
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize(("view", "name"), [(view, name) for view, names in TABLES.items() for name in names])
def test_the_columns(view: str, name: str) -> None:
    said = re.findall(r"`(\w+)`", COLUMNS[name])
    with fastprof.open(CORPUS / OF[view]) as profile:
        assert pyarrow.schema(profile.table(name)).names[: len(said)] == said
