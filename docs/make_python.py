"""Writes what is made from the Python interface: docs/python.md and the imports of fastprof/__init__.py for type
checkers.  `make docs`."""

from __future__ import annotations

import re
from pathlib import Path

import fastprof

REPO = Path(__file__).parents[1]
INIT = REPO / "fastprof" / "__init__.py"
PAGE = """\
# The Python interface

Made from the code by `make docs`.

```python
import fastprof

fastprof.convert("trace.xray", "out.folded", symbols=["./program"], folded={"root": "main"})
for row in fastprof.top("out.folded", n=5).rows:
    print(row.self, row.name)
```

`help(fastprof.convert)` lists the options of a function, with their types and defaults; [options.md](options.md) has
their details. Editors complete them, and type checkers refuse a wrong name or value (`fastprof/verbs/keywords.py`). An
option of a format is given by its name or in a dictionary of that format: `root="main"`, `folded={"root": "main"}`.

## Notebooks

What `top`, `diff`, `info` and other functions return is shown as a table with exact figures; what `report` returns is
the page, in a frame whose scripts cannot reach the notebook:

```python
fastprof.top("cpu.pb.gz", n=5)
fastprof.report("cpu.pb.gz", "cpu.html")
```

A table of a profile ([tables.md](tables.md)) becomes a data frame in one call:

```python
with fastprof.open("cpu.pb.gz") as profile:
    samples = pandas.DataFrame(profile.table("samples"))  # needs no pyarrow
    samples = polars.DataFrame(profile.table("samples"))
```

For millions of rows `pandas.DataFrame.from_arrow(profile.table("samples"))` is faster; it needs pandas 3 and pyarrow.

## Names

A module is imported when one of its names is first used. Other names are not part of the interface.

| name | module | |
| --- | --- | --- |
"""


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
    lines = []
    for name, module in sorted(fastprof._HOMES.items(), key=lambda item: (item[1], item[0])):
        first = (getattr(fastprof, name).__doc__ or "").partition("\n\n")[0].strip()
        lines.append(f"| `{name}` | `fastprof.{module}` | {' '.join(first.split())} |\n")
    return PAGE + "".join(lines)


if __name__ == "__main__":
    (REPO / "docs" / "python.md").write_text(page())
    INIT.write_text(interface())
