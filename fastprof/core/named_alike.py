"""Options by their names, of which several formats may have one: `format` of LLVM's profiles and of BOLT's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import UsageError
from fastprof.core.messages import nearest

if TYPE_CHECKING:
    from fastprof.core.options import Option

ANY = "*."  # begins the key of a name that several formats have, in arguments that are not yet those of one of them


def accepting(
    options: Sequence[Option[Any]], value_of: Callable[[Option[Any]], Any]
) -> tuple[tuple[Option[Any], ...], list[Any]]:
    """The options that take a value, which `value_of` checks, and the checked values: `fdata` is one of BOLT's only.

    Errors: the first one of `value_of`, if no option takes it.
    """
    found, values, errors = [], [], []
    for option in options:
        try:
            values.append(value_of(option))
            found.append(option)
        except UsageError as error:
            errors.append(error)
    if errors and not found:
        raise errors[0]
    return (*found,), values


@lru_cache(16)  # a batch checks the options of each file
def formats_of(known: tuple[Option[Any], ...]) -> dict[str, str]:
    """By their names in Python: the formats with options of their own."""
    return {option.format.replace("-", "_"): option.format for option in known if option.format}


@lru_cache(256)
def _named(name: str, known: tuple[Option[Any], ...]) -> tuple[Option[Any], ...]:
    by_key = tuple(option for option in known if option.key == name)
    return by_key or tuple(option for option in known if option.name == name)


def named(name: str, known: Iterable[Option[Any]]) -> tuple[Option[Any], ...]:
    """The options with this key or name; several formats may have one.  Errors: UsageError for an unknown name."""
    known = (*known,)
    if found := _named(name, known):
        return found
    format_, dot, _ = name.partition(".")
    names = [option.key for option in known if option.format == format_] if dot else [option.name for option in known]
    near = nearest(name, names or [option.key for option in known])  # or there is no such format
    hint = f"; did you mean {near!r}?" if near else f", expected {', '.join(sorted(set(names)))}" if names else ""
    raise UsageError(f"unknown option {name!r:.80}{hint}")


def ambiguous(name: str, options: Iterable[Option[Any]]) -> UsageError:
    """The error for a name that several formats of a conversion have."""
    return UsageError(f"option {name!r} is ambiguous: {' or '.join(option.key for option in options)}")
