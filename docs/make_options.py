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
`open`.  `fastprof VERB --help` shows the usual options of a verb, `fastprof VERB --help-all` all of them with details,
`fastprof formats NAME` those of one format.

`-O NAME=VALUE` sets an option of one format; some also have a flag.  A switch takes `yes`, `no` or no
value.  `-O FORMAT.NAME=VALUE` is for a name that both formats of a conversion have.  In Python `root="main"` and
`folded={"root": "main"}` do the same:

    fastprof convert callgrind.out.101 -O root=main -o out.folded
    fastprof convert callgrind.out.101 -O folded.root=main -O nanoseconds=no -o out.folded

An option that nothing in a conversion looks at is refused, unless what it asks for holds anyway, so that a script may
give the same options for every file: `--no-symbols` is fine where no addresses are looked up, `--max-memory` where
nothing is added up, and a value that equals the default is fine everywhere.

What an option does is the effect of its flag.  In Python, a switch that is on by default has this effect as
`NAME=False`.
"""
HEAD = ("flag", "keyword", "values", "default", "what it does", "looked at by")


def values(option: Option[Any]) -> str:
    """What may follow the flag."""
    kind = option.kind
    return (
        "" if isinstance(kind, Switch) and not option.format else f"`{kind.values or kind.metavar}`".replace("|", "\\|")
    )


def row(option: Option[Any]) -> tuple[str, ...]:
    own = f"-O {option.name}" + "=no" * (option.default is True) if option.format else option.short
    flags = ", ".join(
        f"`{flag}`" for flag in dict.fromkeys((own, option.flag.replace(f"{option.format}.", ""))) if flag
    )
    default = f"`{option.default!r}`"
    keyword = option.name + "=False" * (option.default is True)
    return flags, f"`{keyword}`", values(option), default, full_help(option), plan.owners(option)


def text() -> str:
    lines = [TITLE]
    for heading, options in by_heading(plan.known_options()).items():
        rows = [HEAD, ("---",) * len(HEAD), *map(row, options)]
        lines += [f"## {heading}", "", *("| " + " | ".join(cells) + " |" for cells in rows), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "options.md").write_text(text())
