"""From inputs to an end, for all verbs that read them once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from copy import deepcopy

from fastprof import plan
from fastprof.core._typing import Any, T
from fastprof.core.errors import FastprofError, Outgrown, OutOfOrder, UsageError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, Option, Options
from fastprof.core.streams import name_of
from fastprof.core.words import Message
from fastprof.inputs import Inputs, Progress
from fastprof.inputs.expand import expand
from fastprof.verbs.reported import REPORTED

Code = Callable[[plan.Plan, Model, Log], T]


def run(
    end: plan.End,
    sides: Sequence[Iterable[Any]],
    options: Options,
    code: Code[T],
    from_: str | None,
    progress: Progress | None,
    *,
    merge: bool = False,
    keep_going: bool = False,
    repeatable: Callable[[list[Any]], bool] = lambda paths: False,
    idle: Callable[[Option[Any]], None] | None = None,
) -> T:
    """Returns the result of `code`, which gets the plan of an end and pulls the rows of its ways.

    `sides`: paths, bytes and file objects; directories are replaced by their files.
    `merge`: the order of inputs does not matter, and the parts of a single input are merged.
    `keep_going`: inputs that cannot be read are skipped and counted as losses.
    `repeatable`: whether these inputs may be processed twice.  Then an optimistic plan is tried first.
    `idle` is called with options that do nothing here, instead of refusing them.
    Errors: FastprofError and its kinds.
    """
    log = Log()
    last: list[Message] = []  # the error of an unreadable input

    def failed(error: FastprofError) -> None:
        log.count(REPORTED["inputs-passed-over"])
        log.warn(REPORTED["unread-inputs"], error=error.message())
        last[:] = [error.message()]

    skip = failed if keep_going else None
    found = [expand(paths, log.warn, skip, lenient=options[LENIENT]) for paths in sides]
    if not all(found):
        raise UsageError("there is no input")
    if merge:
        # listed or numbered items follow the order of names, not of arguments
        for paths in found:
            paths.sort(key=lambda path: path if isinstance(path, str) else name_of(path))

    def attempt(log: Log, *, optimistic: bool) -> T:
        model = Model()
        with ExitStack() as stack:
            opened = [
                stack.enter_context(Inputs(paths, from_, model, options, log, progress, skip)).all for paths in found
            ]
            if not all(opened):
                raise FastprofError(Message("no input can be read; the last: {error}", error=last[-1]))
            made = plan.make(opened, end, options, merge=merge, optimistic=optimistic)
            plan.refuse_idle(options, made, idle)
            return code(made, model, log)

    if not keep_going and repeatable([path for paths in found for path in paths]):
        try:
            return attempt(deepcopy(log), optimistic=True)
        except (OutOfOrder, Outgrown):
            pass
    return attempt(log, optimistic=False)
