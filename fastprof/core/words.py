"""How messages call options: by their flags on the command line, by their keyword arguments in Python.

Messages are written with flags.  A value is joined to its flag, so that both are said in the same way:

    on the command line                          in Python
    a smaller --prune shows more                 a smaller prune= shows more
    choose --split=thread                        choose split=thread
    --lenient reads what is before it            lenient=True reads what is before it
    --value: there is no value type 'x'          value: there is no value type 'x'

What is no flag of fastprof stays as it is: `--tool=memcheck`, --lenient.prof.
"""

from __future__ import annotations

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
FLAG = r"(?<![^\s(])(--?[A-Za-z][a-z-]*)(?![\w-]|[./]\w)([=:]?)"

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
