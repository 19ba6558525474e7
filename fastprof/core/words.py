"""How messages call options, and how they count.

Options are called by their flags on the command line, by their keyword arguments in Python.

Messages are written with flags.  A value is joined to its flag, so that both are said in the same way:

    on the command line                          in Python
    a smaller --prune shows more                 a smaller prune= shows more
    choose --split=thread                        choose split=thread
    --lenient reads what is before it            lenient=True reads what is before it
    --value: there is no value type 'x'          value: there is no value type 'x'

What is no flag of fastprof stays as it is: `--tool=memcheck`, --lenient.prof.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core._typing import Any

# The arguments by their flags: of options, each of which adds itself, and those that are not declared as options.
ARGUMENTS = {
    "--from": "from_=",
    "--to": "to=",
    "-o": "output=",
    "--name": "name=",
    "--skip-existing": "skip_existing=True",
    "--replace": "replace=True",
    "--keep-going": "keep_going=True",
}
# Behind a blank or a bracket, and not the beginning of a longer word or of a file's name.
FLAG = r"(?<![^\s(])(-O [a-z-]+\.[a-z_]+|--?[A-Za-z][a-z-]*)(?![\w-]|[./]\w)([=:]?)"

_by_flags = False


def speak_of_flags(yes: bool) -> bool:
    """Say whether messages of this process are for the command line; returns what was said before."""
    global _by_flags
    before, _by_flags = _by_flags, yes
    return before


def speaks_of_flags() -> bool:
    return _by_flags


def worded(message: str) -> str:
    """A message as its reader knows the options."""
    if _by_flags or "-" not in message:
        return message
    import re

    return re.sub(FLAG, _argument, message)


def _argument(found: Any) -> str:
    flag, behind = found.groups()
    argument = ARGUMENTS.get(flag)
    if argument is None:
        return str(found[0])
    name, _, value = argument.partition("=")
    return f"{name}{behind}" if behind else f"{name}={value}"


def install(extra: str) -> str:
    """How to install an extra of pyproject.toml: from a clone, as the registry has another project of this name."""
    return f"run `pip install '.[{extra}]'` in the clone of fastprof"


# What does not end in the s of several things.
_NO_PLURALS = "address|as|class|cross|has|is|its|less|loss|ms|ns|pass|process|stackless|this|thus|us|was|across"
_PLURAL = rf"\b(?!(?:{_NO_PLURALS})\b)[a-z]+s\b(?![=:])"
_VERBS = {"are": "is", "were": "was", "have": "has", "do": "does", "need": "needs", "reach": "reaches"}
_VERBS |= {
    "name": "names",
    "tell": "tells",
    "end": "ends",
    "keep": "keeps",
    "cost": "costs",
    "leave": "leaves",
    "stay": "stays",
}


def counted(n: int, things: str) -> str:
    """So many of them.  `things` are named in the plural: the first words are what is counted.

    2 orphan exits                1 orphan exit
    2 calls and jumps             1 call or jump
    2 lines that were indented    1 line that was indented
    """
    if n != 1:
        return f"{n:,} {things}"
    import re

    def one(plural: str) -> str:
        if plural == "leaves":
            return "leaf"
        if plural.endswith("ies"):
            return plural[:-3] + "y"
        return plural[: -2 if plural.endswith(("xes", "sses", "ches")) else -1]

    head = re.search(rf"{_PLURAL}(?:(?:, | and | or ){_PLURAL})*", things)
    if head is None:
        return f"1 {things}"
    singular = re.sub(_PLURAL, lambda found: one(found[0]), head[0]).replace(" and ", " or ")
    rest = re.sub(
        rf"(^| and| that| which| they) ({'|'.join(_VERBS)})\b",
        lambda found: f"{found[1]} {_VERBS[found[2]]}",
        things[head.end() :],
    )
    rest = re.sub(r"\b(they|their)\b", lambda found: {"they": "it", "their": "its"}[found[0]], rest)
    return f"1 {things[: head.start()]}{singular}{rest}"


class _Fields(dict[str, Any]):
    """Values by the names of their fields; a field that has none is an option."""

    flags = False

    def __missing__(self, field: str) -> str:
        if self.flags:
            return field
        flag, joined = (field[:-1], "=") if field.endswith("=") else (field, "")
        name, _, value = ARGUMENTS[flag].partition("=")
        return f"{name}{joined}" if joined else f"{name}={value}"


def filled(template: str, values: Iterable[tuple[str, Any]], *, flags: bool) -> str:
    """`template` with its values, and with its options as flags or as keyword arguments."""
    if "{" not in template:
        return template
    fields = _Fields((name, value.told(flags=flags) if isinstance(value, Message) else value) for name, value in values)
    fields.flags = flags
    return template.format_map(fields)


class Message:
    """A text with options in it, which whoever prints it spells as flags or as keyword arguments.

    Message("{file}: use {--to}", file="a.pb")      on the command line: a.pb: use --to      in Python: a.pb: use to=
    """

    def __init__(self, template: str, **values: Any) -> None:
        self.template, self.values = template, tuple(values.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.template, self.values))

    def __str__(self) -> str:
        return self.told()

    def told(self, *, flags: bool = False) -> str:
        return filled(self.template, self.values, flags=flags)


def packed(values: Iterable[tuple[str, Any]]) -> list[Any]:
    """Values as lists that JSON keeps."""
    return [
        [name, *([value.template, packed(value.values)] if isinstance(value, Message) else [value])]
        for name, value in values
    ]


def unpacked(values: Iterable[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, Message(one[0], **dict(unpacked(one[1]))) if len(one) > 1 else one[0]) for name, *one in values)
