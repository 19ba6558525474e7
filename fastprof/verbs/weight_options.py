"""The options of verbs/weighing.py, which is imported if one is given."""

from fastprof import plan
from fastprof.core._typing import Any
from fastprof.core.options import Option, Pair, ValueOption

WEIGHT: Option[tuple[str, ...]] = ValueOption(
    "weight",
    Pair("NAME=N"),
    (),
    several=True,
    help="count the input NAME N times; repeatable",
    details="NAME is the name of inputs, with or without folders and suffixes, or a value of a label of inputs; "
    "* and ? match as in a shell.  KEY=VALUE=N is for samples with a label, their own or that of their input.  All "
    "values and numbers of calls are multiplied.  Several that match are multiplied, too.",
)
NORMALIZE = ValueOption.switch(
    "normalize",
    help="scale inputs to equal totals, before --weight",
    details="The totals of the default value type, or that of --value, become the largest one of all inputs.  Inputs "
    "are read twice.  What is rounded in a row is carried to the next one, so that totals are exact.",
)
OPTIONS: tuple[Option[Any], ...] = (WEIGHT, NORMALIZE)


def options() -> list[Option[Any]]:
    """The options of `merge`."""
    return [*plan.known_options(), *OPTIONS]
