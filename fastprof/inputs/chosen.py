"""Profiles as inputs: a fastprof.Profile has a path, and maybe a format and options of its own.

If all inputs of a verb have the same, they are the verb's, and the plan is that of the command line.  Otherwise the
rows of each input first pass through a plan of its own:

    diff(p.where(threads=[1]), p.where(threads=[2]))

    p   stacks ── select 1 ──┐
    p   stacks ── select 2 ──┴── compared
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fastprof import plan
from fastprof.bridges import FUNCTION, LABEL, MOD_FILENAME, MOD_FUNCNAME, MOD_OBJECT, OBJECT, OPERATORS, SET_LABEL
from fastprof.bridges.transforms import (
    COLLAPSE_OBJECT,
    COLLAPSE_RECURSION,
    HIDE,
    HIDE_OBJECT,
    MERGE_LINES,
    ROOT_AT,
    SUBTREE,
)
from fastprof.core._typing import Any
from fastprof.core.engine import Capabilities, Format, Input
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.messages import renamed
from fastprof.core.model import Batch, Model
from fastprof.core.options import CORES, LENIENT, TIME_RANGE, Options
from fastprof.formats.archive import MEMBER
from fastprof.inputs.stored import Given

# Addresses get names only with `symbols`.
ROWS = plan.End("open", holds=Capabilities(verbatim=True), single=True, code="verbs.profile:pulled")

# In the order in which a plan applies them.
_IN_ORDER = (
    {FUNCTION.name, OBJECT.name},
    {MOD_FUNCNAME.name, MOD_FILENAME.name, MOD_OBJECT.name},
    {ROOT_AT.name},
    {SUBTREE.name},
    {MERGE_LINES.name},
    {HIDE.name, HIDE_OBJECT.name},
    {COLLAPSE_OBJECT.name},
    {COLLAPSE_RECURSION.name},
)
_ADDED = _IN_ORDER[1] | {ROOT_AT.name, HIDE.name, HIDE_OBJECT.name} | {SET_LABEL.name}  # a second one follows the first


# The arguments of a profile's steps, where they are called otherwise than their options.
_OF_STEPS: dict[Any, str] = {
    LABEL: "labels",
    TIME_RANGE: "time",
    **dict.fromkeys((MOD_FUNCNAME, MOD_FILENAME, MOD_OBJECT), "pattern"),
    **dict.fromkeys((HIDE, ROOT_AT), "function"),
    **dict.fromkeys((HIDE_OBJECT, COLLAPSE_OBJECT), "object"),
    COLLAPSE_RECURSION: "recursion",
    SUBTREE: "path",
    SET_LABEL: "labels",
}


@contextmanager
def steps_named(steps: Collection[str]) -> Iterator[None]:
    """Within it, errors name the arguments of steps that gave these options, not the options."""
    try:
        yield
    except UsageError as error:
        names = {option.flag: f"{name}=" for option, name in _OF_STEPS.items() if option.name in steps}
        error.args = (renamed(error.message(), names), *error.args[1:])
        raise


def below(given: Given, options: Mapping[str, Any]) -> Given | None:
    """The same with these options too; None if they apply to the rows that its own options leave."""
    own = given.options
    both = own.keys() & options.keys()
    first, then = ([k for k, names in enumerate(_IN_ORDER) if names & some.keys()] for some in (own, options))
    if both - _ADDED or (first and then and max(first) > min(then)):
        return None
    more = {name: (*own[name], *options[name]) for name in both}
    return Given(given.path, given.from_, {**own, **options, **more}, given.name, {*given.steps, *options})


def together(
    sides: Sequence[Sequence[Any]], from_: str | None, options: Options, end: plan.End
) -> tuple[list[list[Any]], str | None, Options]:
    """The inputs, format and options of a verb, after those that all inputs share have become the verb's.

    Options that its end does not have, such as `function` of `info`, stay those of the inputs.
    """
    given = [path for side in sides for path in side]
    first = given[0] if given else None
    if not isinstance(first, Given) or not all(
        isinstance(one, Given) and (one.from_, one.options) == (first.from_, first.options) for one in given
    ):
        return [[*side] for side in sides], from_, options
    if from_ and first.from_ and from_ != first.from_:
        raise UsageError(f"{first.name}: was opened as {first.from_}, not as {from_}")
    own = {option.name for operator in OPERATORS for option in operator.options} & first.options.keys()
    if below(first, options.given) is None or own - {option.name for option in plan.options_of(end)}:
        return [[*side] for side in sides], from_, options
    paths = [[one.path for one in side] for side in sides]
    return together(paths, from_ or first.from_, options.with_given(**first.options), end)


class Chosen(Input):
    """The rows of a reader, after a plan of their own."""

    def __init__(self, reader: Input, source: Any, options: Options, model: Model, log: Log) -> None:
        self.source, self._model, self._log = source, model, log
        for fact in ("name", "format", "view", "addresses", "allocator", "formulas", "labels"):
            setattr(self, fact, getattr(reader, fact))
        self._made = plan.make([[reader]], ROWS, options)

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        for batch in self._made.pipelines[0].rows(self._model, self._log, capacity):
            self.n_read += len(batch)
            yield batch
        self.labels = self._made.inputs[0].labels  # those that its options add


def reading(given: Given, format_: Format, options: Options) -> Options:
    """The options for the reader of an input: its own, and those of the verb that only a reader can use."""
    known = {LENIENT.name, CORES.name, MEMBER.name}.union(*((one.name, one.key) for one in format_.reads))
    return Options(**{**{name: value for name, value in options.given.items() if name in known}, **given.options})
