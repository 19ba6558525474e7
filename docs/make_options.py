"""Writes options.md from the options' declarations: `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastprof import plan
from fastprof.cli.arguments import by_heading, full_help
from fastprof.core.options import Option, Switch

TITLE = """\
# Options

Made from their declarations in the code by `make docs`.  A keyword is an argument of `fastprof.convert`, `info` and
`open`.  `fastprof VERB --help-all` says the same of the options of one verb.  An option that nothing in a conversion
looks at is refused, unless what it asks for holds anyway, so that a script may give the same options for every file:
`--no-symbols` is fine where no addresses are looked up, and a value that equals the default is fine everywhere.
"""
HEAD = ("flag", "keyword", "values", "default", "what it does", "looked at by")


def values(option: Option[Any]) -> str:
    """What may follow the flag."""
    kind = option.kind
    return "" if isinstance(kind, Switch) else f"`{kind.values or kind.metavar}`".replace("|", "\\|")


def row(option: Option[Any]) -> tuple[str, ...]:
    flags = ", ".join(f"`{flag}`" for flag in (option.short, option.flag) if flag)
    default = f"`{option.default!r}`"
    return flags, f"`{option.name}`", values(option), default, full_help(option), plan.owners(option)


def text() -> str:
    lines = [TITLE]
    for heading, options in by_heading(plan.known_options()).items():
        rows = [HEAD, ("---",) * len(HEAD), *map(row, options)]
        lines += [f"## {heading}", "", *("| " + " | ".join(cells) + " |" for cells in rows), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "options.md").write_text(text())
