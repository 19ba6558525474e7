"""Writes what is made from the Python interface: the names in docs/python.md and the imports of fastprof/__init__.py
for type checkers.  `make docs`."""

from __future__ import annotations

import re
from pathlib import Path

import fastprof

REPO = Path(__file__).parents[1]
INIT = REPO / "fastprof" / "__init__.py"
PAGE = REPO / "docs" / "python.md"


def interface() -> str:
    """fastprof/__init__.py with an import for each public name in its block for type checkers, in ruff's order."""
    head, block, rest = re.split(
        r"(?<=^if TYPE_CHECKING:\n)(.*?\n)(?=\n^# )", INIT.read_text(), maxsplit=1, flags=re.MULTILINE | re.DOTALL
    )
    found = [(f"fastprof.{module}", name, f"{name} as {name}") for name, module in fastprof._HOMES.items()]
    # what this module needs itself
    found += [(module, name, name) for module, name in re.findall(r"^ +from (\S+) import (\w+)$", block, re.MULTILINE)]
    found.sort(key=lambda line: (line[0], line[1].islower(), line[1]))
    return head + "".join(f"    from {module} import {text}\n" for module, _, text in found) + rest


def page() -> str:
    """docs/python.md with its table of names."""
    lines = []
    for name, module in sorted(fastprof._HOMES.items(), key=lambda item: (item[1], item[0])):
        first = (getattr(fastprof, name).__doc__ or "").partition("\n\n")[0].strip()
        lines.append(f"| `{name}` | `fastprof.{module}` | {' '.join(first.split())} |\n")
    before, head, _ = PAGE.read_text().partition("| name | module | |\n| --- | --- | --- |\n")
    return before + head + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
    INIT.write_text(interface())
