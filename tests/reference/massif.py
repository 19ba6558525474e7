"""A slow, obvious reader of Massif's trees: docs/formats/massif.md."""

from __future__ import annotations

import re
from collections import Counter

_NODE = re.compile(r"( *)n(\d+): (\d+) (.*)")


def read(text: str) -> dict[int, Counter[tuple[str, ...]]]:
    """By snapshot with a tree: bytes by stack, the texts of frames from the leaf on."""
    found = {}
    for block in text.split("snapshot=")[1:]:
        nodes = [m for line in block.splitlines() if (m := _NODE.fullmatch(line))]
        if nodes:
            found[int(block.split()[0])] = tree(nodes)
    return found


def tree(nodes: list[re.Match[str]]) -> Counter[tuple[str, ...]]:
    stacks: Counter[tuple[str, ...]] = Counter()
    path: list[str] = []
    for m in nodes:
        depth = len(m[1])
        del path[depth:]
        path.append(m[4])
        stacks[tuple(path[1:])] += int(m[3])
        if depth:
            stacks[tuple(path[1:depth])] -= int(m[3])
    return Counter({stack: n for stack, n in stacks.items() if n})
