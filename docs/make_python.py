"""Writes what is made from the Python interface: fastprof/verbs/keywords.py, docs/python.md and the imports of
fastprof/__init__.py for type checkers.  `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fastprof
from fastprof import plan
from fastprof.core.options import Option

REPO = Path(__file__).parents[1]
INIT = REPO / "fastprof" / "__init__.py"
KEYWORDS = '''\
"""Keyword options of the Python interface, for editors and type checkers: nothing imports this at run time.

Made from the declarations of the options by `make docs`.  docs/options.md explains each.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

Path = str | os.PathLike[str]
'''
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


def classes() -> dict[str, list[Option[Any]]]:
    """The options of each class by its name.  Functions with the same options have one class."""
    found: dict[str, list[Option[Any]]] = {}
    for name in fastprof._OPTIONS:
        options = fastprof._options(name)
        if options not in found.values():
            found[f"{name.title().replace('_', '')}Options"] = options
    return found


def rows(options: Iterable[Option[Any]]) -> list[str]:
    """A line for each name, which several formats may have."""
    types: dict[str, dict[str, None]] = {}
    for option in options:
        types.setdefault(option.name, {})[option.annotation] = None
    return [f"    {name}: {' | '.join(one)}" for name, one in types.items()]


def keywords() -> str:
    made = [KEYWORDS]
    by_format: dict[str, list[Option[Any]]] = {}
    for option in plan.known_options():
        if option.format:
            by_format.setdefault(option.format, []).append(option)
    names = {name: name.title().replace("-", "") for name in by_format}
    for name, options in by_format.items():
        made.append("\n".join(["", f"class {names[name]}(TypedDict, total=False):", *rows(options), ""]))
    base, parent = [], ""
    for title, options in classes().items():
        inherits = parent and {*base} <= {*options}
        own = [option for option in options if not inherits or option not in base]
        known = {option.format for option in base if inherits}
        spaces = [f for f in dict.fromkeys(option.format for option in options if option.format) if f not in known]
        body = [*rows(own), *(f"    {name.replace('-', '_')}: {names[name]}" for name in spaces)]
        made.append("\n".join(["", f"class {title}({parent if inherits else 'TypedDict'}, total=False):", *body, ""]))
        if not parent:
            base, parent = options, title
    return "\n".join(made)


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
    (REPO / "fastprof" / "verbs" / "keywords.py").write_text(keywords())
    (REPO / "docs" / "python.md").write_text(page())
    INIT.write_text(interface())
