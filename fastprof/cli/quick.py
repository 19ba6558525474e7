"""A parser of plain command lines, for the verbs whose start matters: argparse takes a third of `info` of a small file.

It takes the flags of the verb, whole, each with its value, and the inputs next to each other.  Anything else, also an
error or --help, is left to `Parser`, with which tests compare it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from fastprof.cli.arguments import add_option
from fastprof.core._typing import Any
from fastprof.core.options import CORES, LENIENT, Option

_SUPPRESS = "not an argument"


class Arguments:
    """The parsed arguments, like argparse's Namespace.  `options`: the keys of the options among them."""

    def __init__(self, values: dict[str, Any], options: set[str]) -> None:
        vars(self).update(values)
        self.options = options


class _Argument:
    """What `add_argument` of argparse returns: only helps set its attributes."""

    details, rare, completes, words = "", False, "", ()


class Quick:
    """Stands for a Parser, and for the groups of its arguments."""

    _action_groups = ()

    def __init__(self) -> None:
        self._flags: dict[str, dict[str, Any]] = {}
        self._values: dict[str, Any] = {}  # the defaults
        self._options: set[str] = set()

    # ---- as `add_arguments` of a verb calls them

    def add_inputs(self, **_: Any) -> None:
        pass

    def add_argument_group(self, title: str) -> Quick:
        return self

    last_group = add_argument_group

    def add_argument(self, *flags: str, **given: Any) -> _Argument:
        given.setdefault("dest", flags[-1].lstrip("-").replace("-", "_"))
        self._flags |= dict.fromkeys(flags, given)
        default = given.get("default", False if given.get("action") == "store_true" else None)
        if default != _SUPPRESS:
            self._values[given["dest"]] = default
        return _Argument()

    def add_own(self, own: Iterable[Option[Any]]) -> None:
        """Options that are known without a registration; any other one is left to the Parser."""
        for option in chain(own, (LENIENT, CORES)):
            add_option(self, option, _SUPPRESS)
            self._options.add(option.key)

    # ----

    def parsed(self, words: Sequence[str]) -> Arguments | None:
        """The arguments; None: leave them to the Parser."""
        values, inputs, ended = dict(self._values), list[str](), False
        rest = iter(words)
        for word in rest:
            if word == "-" or not word.startswith("-"):
                if ended:
                    return None
                inputs.append(word)
                continue
            ended = bool(inputs)
            flag, equals, text = word.partition("=")
            given = self._flags.get(flag)
            if given is None or (equals and not flag.startswith("--")):
                return None
            action, key = given.get("action", "store"), given["dest"]
            if action in ("store_true", "store_const"):
                if equals:
                    return None
                values[key] = given.get("const", True)
                continue
            text = text if equals else next(rest, "-")
            if text.startswith("-") and not equals:
                return None
            try:
                value = given.get("type", str)(text)
            except Exception:
                return None
            if value not in given.get("choices", (value,)) or action not in ("store", "append"):
                return None
            values[key] = [*values.get(key, ()), value] if action == "append" else value
        if not inputs:
            return None
        return Arguments({**values, "inputs": inputs}, self._options)
