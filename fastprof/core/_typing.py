"""Replacements for names of `typing`.  Importing it and creating its NamedTuples would take 5 ms of the 32 ms of a
start.  The types of the C core (fastprof/core/_c.pyi) come from here, too: only type checkers know them."""

from collections import namedtuple

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO as IO
    from typing import Any as Any
    from typing import ClassVar as ClassVar
    from typing import Generic as Generic
    from typing import Literal as Literal
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import Self as Self
    from typing import TypeVar
    from typing import Unpack as Unpack
    from typing import overload as overload

    from fastprof.core._c import *  # noqa: F403
    from fastprof.core._c import CData, Pointer, fp_err, fp_fold_tree, fp_merge, fp_walk

    T = TypeVar("T")
    C = TypeVar("C", bound=CData)
    Merger = TypeVar("Merger", bound=fp_merge | fp_fold_tree | fp_walk)  # merges runs

    # Types of the interface to the C core (fastprof/core/_c.pyi has the rest).
    Pull = Callable[[Pointer[int], int], int]  # writes up to n words or bytes of records, returns how many; 0: end
    Numbers = Sequence[int] | Pointer[int]  # a C array is read like a list
    Check = Callable[[int, fp_err], int]  # returns the status; raises an error for a negative one
else:
    IO = Any = ClassVar = NoReturn = Self = T = C = Unpack = Merger = Pull = Check = Numbers = object

    def __getattr__(name):
        if not name.startswith(("fp_", "CData", "FFI", "Pointer")):
            raise AttributeError(name)
        return globals().setdefault(name, object)

    def overload(function):
        return function

    class Generic:
        def __class_getitem__(cls, parameters):
            return cls

    Literal = Generic

    class _Fields(type):
        """Turns a class that derives from NamedTuple into a tuple of its annotated names."""

        def __new__(kind, name, bases, body):
            if not bases:
                return super().__new__(kind, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults)
            for key, value in body.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Fields):
        pass

    class _RecordFields(type):
        """Fields as those of a NamedTuple, of an object that is no tuple: polars would take it for a column."""

        def __new__(kind, name, bases, body):
            made = super().__new__(kind, name, bases, body)
            if bases:
                made._of = _Fields(name, (NamedTuple,), {"__annotations__": body["__annotations__"], **made._own(body)})
            return made

    class Record(metaclass=_RecordFields):
        @staticmethod
        def _own(body):
            return {field: body[field] for field in body["__annotations__"] if field in body}

        def __init__(self, *values, **named):
            vars(self).update(self._of(*values, **named)._asdict())

        def __eq__(self, other):
            return type(self) is type(other) and vars(self) == vars(other)

        def __repr__(self):
            return repr(self._of(**vars(self)))

        def _asdict(self):
            return dict(vars(self))

        def _replace(self, **named):
            return type(self)(**{**vars(self), **named})
