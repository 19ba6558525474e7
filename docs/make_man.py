"""Writes the man pages, docs/man/*.1, from the declarations of verbs and options: `make docs`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from fastprof import cli
from fastprof.cli.parser import Parser
from fastprof.core.version import __version__

FOLDER = Path(__file__).parent / "man"
_INTRO = re.compile(r"^\w[\w ]*:$", re.MULTILINE)  # a heading of an epilog


def escaped(text: str) -> str:
    """Text as roff shows it: `-` is the ASCII minus of options, which can be searched and copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def page(name: str, summary: str, body: list[str]) -> str:
    head = [f'.TH {escaped(name.upper())} 1 "" "fastprof {__version__}" "fastprof"', ".nh", ".SH NAME"]
    return "\n".join([*head, f"{escaped(name)} \\- {escaped(summary)}", *body]) + "\n"


def paragraph(text: str) -> list[str]:
    """A line each sentence of roff source, as its fill mode expects."""
    return [escaped(line) for line in re.sub(r"\s*\n\s*", " ", text.strip()).replace(".  ", ".\n").splitlines()]


def invocation(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"\\fI{escaped(metavar)}\\fR"
    flags = ", ".join(f"\\fB{escaped(flag)}\\fR" for flag in action.option_strings)
    if action.nargs == 0:
        return flags
    equals = "=" if action.option_strings[0].startswith("-O ") else " "
    value = "|".join(map(str, action.choices)) if action.choices and not action.metavar else metavar
    return f"{flags}{equals}\\fI{escaped(value)}\\fR"


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for group in parser._action_groups:
        actions = [one for one in group._group_actions if not isinstance(one, argparse._SubParsersAction)]
        if not actions:
            continue
        yield f'.SS "{escaped(group.title or "options")}"'
        for action in actions:
            text, details = (action.help or "").replace("%%", "%"), getattr(action, "details", "")
            yield from (".TP", invocation(action), *paragraph(f"{text}.  {details}" if details else text))


def synopsis(parser: argparse.ArgumentParser) -> str:
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage:")).strip()
    command = re.match(r"[a-z ]+", usage)
    assert command is not None
    return f"\\fB{escaped(command[0].strip())}\\fR {escaped(usage[command.end() :])}"


def epilog(text: str) -> Iterator[str]:
    """`examples:` and lines as they are."""
    for block in re.split(r"\n\s*\n", text.strip()):
        heading, _, rest = block.partition("\n")
        if _INTRO.match(heading):
            title = heading[:-1].upper().replace("EXIT CODES", "EXIT STATUS")
            yield from (f'.SH "{escaped(title)}"', ".nf", *escaped(rest).splitlines(), ".fi")
        else:
            yield from (".PP", *paragraph(block))


def of_verb(verb: str, summary: str) -> str:
    module: Any = import_module(f"fastprof.cli.{verb}")
    parser = Parser(prog=f"fastprof {verb}")
    parser.offer_all_help()
    module.add_arguments(parser)
    actions = [
        (word, sub)
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for word, sub in action.choices.items()
    ]
    body = [".SH SYNOPSIS", *("\n.br\n".join(synopsis(one) for _, one in actions) or synopsis(parser)).splitlines()]
    body += [".SH DESCRIPTION", *paragraph(module.DESCRIPTION), ".SH OPTIONS", *options(parser)]
    for word, sub in actions:
        body += [f'.SH "{escaped(f"{verb} {word}".upper())}"', *paragraph(sub.description or ""), *options(sub)]
        body += [line.replace(".SH", ".SS") for line in epilog(sub.epilog or "")]
    body += [*epilog(module.EXAMPLES), '.SH "SEE ALSO"', ".BR fastprof (1)"]
    return page(f"fastprof-{verb}", summary, body)


def of_all() -> str:
    body = [".SH SYNOPSIS", "\\fBfastprof\\fR \\fIVERB\\fR [\\fIOPTION\\fR ...]"]
    body += [".SH DESCRIPTION", *paragraph(cli._DESCRIPTION), ".SH VERBS"]
    for verb, summary in cli.VERBS.items():
        body += [".TP", f"\\fBfastprof\\-{verb}\\fR(1)", escaped(summary)]
    body += [*epilog(cli._EXAMPLES), '.SH "SEE ALSO"', ", ".join(f"\\fBfastprof\\-{verb}\\fR(1)" for verb in cli.VERBS)]
    return page("fastprof", "convert, merge, compare and rank profiles", body)


def pages() -> dict[str, str]:
    """By file name."""
    found = {f"fastprof-{verb}.1": of_verb(verb, summary) for verb, summary in cli.VERBS.items()}
    return found | {"fastprof.1": of_all()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.1"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text)
