"""V8's heap profiles: the statements of docs/formats/heapprofile.md."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support.paths import CORPUS
from tests.support.stackdump import Dump, dump

GOOD = CORPUS / "heapprofile" / "good"


def read(data: bytes | Path, **options: Any) -> tuple[Counter[tuple[str, ...]], Dump]:
    found = dump(data.read_bytes() if isinstance(data, Path) else data, "heapprofile", options=Options(**options))
    stacks: Counter[tuple[str, ...]] = Counter()
    for stack, _, (size,) in found.rows:
        stacks[tuple(frame[3][0][0].decode() for frame in reversed(stack))] += size
    return stacks, found


def expected(path: Path) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()

    def walk(node: Any, callers: tuple[str, ...]) -> None:
        found[callers] += node["selfSize"]
        for child in node.get("children", ()):
            name = child.get("callFrame", child)["functionName"]
            walk(child, (*callers, name or "(anonymous)"))

    walk(json.loads(path.read_text())["head"], ())
    return Counter({stack: size for stack, size in found.items() if size})


@pytest.mark.parametrize("name", sorted(path.name for path in GOOD.iterdir()))
def test_stacks(name: str) -> None:
    found = read(GOOD / name)[0]
    assert found == expected(GOOD / name) and found


def test_lines_and_columns_count_from_1() -> None:
    rows = {stack[0][3][0][0]: stack[0][3][0] for stack, _, _ in read(GOOD / "order.heapprofile")[1].rows if stack}
    assert {name: (line[2], line[4:]) for name, line in rows.items()} == {
        b"f": (b"a.js", (1, 1)), "gé".encode(): (b"b.js", (9, 5)), b"(anonymous)": (b"", (0, 0))
    }  # fmt: skip
    ((stack, _, _),) = read(GOOD / "flat.heapprofile")[1].rows
    assert stack[0][3][0][4:] == (3, 1)


def test_deep_trees() -> None:
    def node(name: str, children: str) -> str:
        return f'{{"callFrame":{{"functionName":"{name}"}},"selfSize":1,"children":[{children}]}}'

    tree = ""
    for depth in range(3000):
        tree = node(f"f{depth}", tree)
    found = read(f'{{"head":{node("(root)", tree)}}}'.encode())[0]
    assert len(found) == 3001 and max(map(len, found)) == 3000
    with pytest.raises(FormatError, match="at most 8,192 levels"):
        read(b'{"head":' + b'{"children":[' * 5000)


def test_lenient_keeps_what_was_read() -> None:
    bad = CORPUS / "heapprofile" / "bad"
    found, log = read(bad / "no-size.heapprofile", lenient=True)
    assert (found, log.log.losses) == (Counter(), {"broken-nodes": 1})
    found, log = read(bad / "cut.heapprofile", lenient=True)
    assert (found, log.log.losses) == (Counter({("f",): 5}), {"unreadable-rest": 1})
