"""Modules by name, and shallow copies: `importlib` and `copy` do both, but import much."""

import sys

from fastprof.core._typing import Any, T


def loaded(place: str) -> Any:
    """The module "fastprof.plan", imported at its first use, or what "fastprof.plan:make" names there."""
    module, _, name = place.partition(":")
    __import__(module)
    return getattr(sys.modules[module], name) if name else sys.modules[module]


def copied(one: T) -> T:
    """A shallow copy of an object whose attributes are its own."""
    made: T = object.__new__(type(one))
    vars(made).update(vars(one))
    return made
