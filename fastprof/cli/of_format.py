"""-O NAME=VALUE: options of one format."""

import argparse

from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.named_alike import ANY, accepting, ambiguous, named
from fastprof.core.options import Option, Switch


class OfFormat(argparse.Action):
    """-O NAME=VALUE: sets the option of this name as its flag would."""

    def __init__(self, known: list[Option[Any]], **given: Any) -> None:
        super().__init__(**given)
        self._known = known

    def spellings(self) -> list[str]:
        """`NAME=` for each option of a format, `NAME` for a switch."""
        mine = [option for option in self._known if option.format]
        return [*dict.fromkeys(o.name + "=" * (not isinstance(o.kind, Switch)) for o in mine)]

    def __call__(self, parser: argparse.ArgumentParser, args: argparse.Namespace, text: Any, flag: Any = None) -> None:
        name, equals, value = text.partition("=")
        format_, dot, name = name.rpartition(".")
        name = format_.replace("_", "-") + dot + name.replace("-", "_")
        try:
            if general := [option for option in self._known if option.key == name and not option.format]:
                raise UsageError(f"{name!r} is not an option of a format: use {general[0].flag}")
            options = named(name, [option for option in self._known if option.format])
            options, found = accepting(options, lambda option: self._value(option, equals, value))
        except UsageError as error:
            raise argparse.ArgumentError(None, f"-O {text}: {error}") from None
        if found != found[:1] * len(found):
            raise argparse.ArgumentError(None, f"-O {text}: {ambiguous(name, options)}")
        key = options[0].key if len(options) == 1 else ANY + name
        setattr(args, key, [*getattr(args, key, ()), found[0]] if options[0].several else found[0])

    @staticmethod
    def _value(option: Option[Any], equals: str, text: str) -> Any:
        if not equals and not isinstance(option.kind, Switch):
            raise UsageError(f"{option.kind.metavar} is missing: {option.help}")
        try:
            return option.kind.parse(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
