"""Spelling of options and counts in messages.

The command line names options by flag, Python by keyword argument.  A message has fields for its values and for the
options in it, which are spelled when it is printed:

    Message                                           on the command line             in Python
    a smaller {--prune} shows more                    a smaller --prune shows more    a smaller prune= shows more
    choose {--split:=}thread                          choose --split=thread           choose split=thread
    {--lenient} reads up to it                        --lenient reads up to it        lenient=True reads up to it
    {--value:name}: there is no value type {name!r}   --value: there is no ...        value: there is no ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastprof.core._typing import Any

# Arguments by flag: options add themselves; the others are listed here.
ARGUMENTS = {
    "--from": "from_=",
    "--to": "to=",
    "-o": "output=",
    "--name": "name=",
    "--skip-existing": "skip_existing=True",
    "--replace": "replace=True",
    "--keep-going": "keep_going=True",
}


DISTRIBUTION = "fastprof-tools"  # its name in registries, where fastprof is another project


def install(extra: str) -> str:
    """How to install an extra of pyproject.toml.  pip adds it to the installed version, also to one from a clone."""
    return f"run `pip install '{DISTRIBUTION}[{extra}]'`"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar known word, if one is close enough."""
    from difflib import get_close_matches

    # without dashes, which would make any two flags similar
    stem, stems = word.lstrip("-"), {one.lstrip("-"): one for one in known}
    near = get_close_matches(stem, stems, n=1, cutoff=_NEAR)
    near = near or [one for one in stems if len(stem) > 1 and one.startswith(stem)]
    return stems[near[0]] if near else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: "; did you mean 'self'?", or nothing."""
    near = nearest(word, known) if isinstance(word, str) else None
    return f"; did you mean {near!r}?" if near else ""


_NEAR = 0.75  # difflib's measure: topp and top have 0.86, bogus and counts 0.55


def counted(n: int, one: str, several: str = "") -> str:
    """A number and its noun: "1 file", "2,000 files"."""
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def some(values: list[Any]) -> str:
    """The first of these values."""
    more = ["..."] if len(values) > 20 else []
    return ", ".join([*map(str, values[:20]), *more])


class _Spelled:
    """An option in a message: `{--args}` is --args or args=True, `{--args:=}` --args= or args=, `{--args:name}` --args
    or args."""

    def __init__(self, flag: str, flags: bool) -> None:
        self._flag, self._flags = flag, flags

    def __getattr__(self, name: str) -> _Spelled:
        """-O FORMAT.NAME: str.format reads the text after the dot as an attribute."""
        return _Spelled(f"{self._flag}.{name}", self._flags)

    def __format__(self, spec: str) -> str:
        if self._flags:
            return self._flag + "=" * (spec == "=")
        argument = ARGUMENTS.get(self._flag, self._flag)
        return argument if not spec else argument.partition("=")[0] + "=" * (spec == "=")


class _Fields(dict[str, Any]):
    """Values by field name; a field without a value is an option."""

    flags = False

    def __missing__(self, field: str) -> _Spelled:
        return _Spelled(field, self.flags)


def filled(template: str, values: Iterable[tuple[str, Any]], *, flags: bool) -> str:
    """`template` with its values, and with its options as flags or as keyword arguments."""
    if "{" not in template:
        return template
    fields = _Fields((name, value.text(flags=flags) if isinstance(value, Message) else value) for name, value in values)
    fields.flags = flags
    return template.format_map(fields)


class Message:
    """A text with options in it, which are spelled as flags or as keyword arguments when it is printed.

    Message("{file}: use {--to}", file="a.pb")      on the command line: a.pb: use --to      in Python: a.pb: use to=
    """

    def __init__(self, template: str, **values: Any) -> None:
        self.template, self.values = template, tuple(values.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.template, self.values))

    def __str__(self) -> str:
        return self.text()

    def text(self, *, flags: bool = False) -> str:
        return filled(self.template, self.values, flags=flags)

    def __add__(self, text: str) -> Message:
        return Message("{message}{text}", message=self, text=text)


def spelled(flag: str, form: str = "") -> Message:
    """An option as a value of a message.  `form`: "=" or "name", as after the colon of a field."""
    return Message(f"{{{flag}:{form}}}")


def renamed(message: Message, names: Mapping[str, str]) -> Message:
    """The same with other arguments than those of options: by flag, such as {"--time-range": "time="}."""
    template = message.template
    for flag, name in names.items():
        template = template.replace(f"{{{flag}:", f"{{{name}:").replace(f"{{{flag}}}", f"{{{name}}}")
    values = {key: renamed(value, names) if isinstance(value, Message) else value for key, value in message.values}
    return Message(template, **values)


def joined(separator: str, messages: Iterable[Message | str]) -> Message:
    """Several messages as one."""
    values = {f"part{i}": message for i, message in enumerate(messages)}
    return Message(separator.join(f"{{{name}}}" for name in values), **values)


def packed(values: Iterable[tuple[str, Any]]) -> list[Any]:
    """Values as lists, which JSON preserves."""
    return [
        [name, *([value.template, packed(value.values)] if isinstance(value, Message) else [value])]
        for name, value in values
    ]


def unpacked(values: Iterable[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, Message(one[0], **dict(unpacked(one[1]))) if len(one) > 1 else one[0]) for name, *one in values)
