"""Options of several formats that have one name: `format` of LLVM's profiles and of BOLT's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import UsageError

if TYPE_CHECKING:
    from fastprof.core.options import Option


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
