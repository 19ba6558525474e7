"""Writes fastprof/verbs/keywords.py, the types of the options of the Python interface, from their declarations.

The build runs it before anything is compiled, maybe for another machine: what is compiled, and packages that only run
time needs, are empty here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

REPO = Path(__file__).parents[1]
COMPILED = (path.relative_to(REPO).with_suffix("").parts for path in (REPO / "fastprof").rglob("*.pyx"))
EMPTY = {"fastprof.core._c", "isal", "lz4", "pycxxfilt", "zstandard", *map(".".join, COMPILED)}


class Empty:
    """Finds the modules that are empty here: each seems to have every name."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in EMPTY else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return MagicMock(__path__=[])

    def exec_module(self, module: ModuleType) -> None:
        pass


sys.meta_path.insert(0, Empty())  # type: ignore[arg-type]
sys.path.insert(0, str(REPO))

import fastprof  # noqa: E402
from fastprof import bridges, formats, plan  # noqa: E402
from fastprof.core.options import Option, quoted  # noqa: E402

KEYWORDS = '''\
"""Keyword options of the Python interface, for editors and type checkers: nothing imports this at run time.

Made from the declarations of the options by the build (csrc/make_keywords.py).  docs/options.md explains each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from fastprof.verbs.profile import Profile

Path = str | os.PathLike[str]


class Buffer(Protocol):
    """What holds bytes: bytes, a bytearray, a memoryview, an array."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class Readable(Protocol):
    """A binary file object to read from.  If it can seek, it is read from its beginning, and may be read again."""

    def read(self, n: int, /) -> bytes:
        """At most n bytes; none at the end."""


class Writable(Protocol):
    """A binary file object to write to, from its position on."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Returns the number of bytes written, or None for all."""


class Opened(Protocol):
    """An input, as `progress` gets it when it is opened."""

    name: str
    compressed_size: int | None  # bytes of the file; None if unknown

    def on_progress(self, moved: Callable[[int], object], closed: Callable[[], object]) -> None:
        """While it is read call `moved` with the position in the file, and `closed` at the end."""


Input: TypeAlias = "Path | Buffer | Readable | Profile"
Inputs: TypeAlias = "Input | Collection[Input]"  # at run time any iterable; an open text file is one of texts
Output = Path | Writable
Progress = Callable[[Opened], object]
'''


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
    known = formats.formats()
    words = {
        "ReadFormat": [one.name for one in known if one.is_read],
        "WrittenFormat": [one.name for one in known if one.writer],
        "View": [*bridges.TABLES],
        "TableName": [name for names in bridges.TABLES.values() for name in names],
    }
    made = [KEYWORDS + "".join(f"{name} = Literal[{', '.join(map(quoted, of))}]\n" for name, of in words.items())]
    by_format: dict[str, list[Option[Any]]] = {}
    for option in plan.known_options():
        if option.format:
            by_format.setdefault(option.format, []).append(option)
    names = {name: name.title().replace("-", "") for name in by_format}
    for name, options in by_format.items():
        made.append("\n".join(["", f"class {names[name]}(TypedDict, total=False):", *rows(options), ""]))
    before: dict[str, list[Option[Any]]] = {}
    for title, options in classes().items():
        # that of which it has all, and most
        of_it = [one for one in before if {*before[one]} <= {*options}]
        parent = max(of_it, key=lambda one: len(before[one]), default="")
        base = before.get(parent, [])
        own = [option for option in options if option not in base]
        known = {option.format for option in base}
        spaces = [f for f in dict.fromkeys(option.format for option in options if option.format) if f not in known]
        body = [*rows(own), *(f"    {name.replace('-', '_')}: {names[name]}" for name in spaces)]
        made.append("\n".join(["", f"class {title}({parent or 'TypedDict'}, total=False):", *body, ""]))
        before[title] = options
    return "\n".join(made)


if __name__ == "__main__":
    MADE = REPO / "fastprof" / "verbs" / "keywords.py"
    text = keywords()
    if not MADE.exists() or MADE.read_text() != text:
        MADE.write_text(text)
