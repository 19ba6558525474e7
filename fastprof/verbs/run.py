"""From inputs to an end: the runner of all verbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress

from fastprof import plan
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Input, Writer
from fastprof.core.errors import FastprofError, Outgrown, OutOfOrder, UnrecognizedError, UsageError, inputs_of
from fastprof.core.log import Log
from fastprof.core.messages import Message, joined
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, Option, Options
from fastprof.core.streams import name_of
from fastprof.inputs import Inputs, Progress
from fastprof.inputs.expand import Failed, expand, skipped, with_advice
from fastprof.inputs.stored import Given
from fastprof.verbs.reads import Reads

if TYPE_CHECKING:
    from fastprof.verbs.weighing import Weights

Idle = Callable[[Option[Any]], None]


def listed(inputs: Any) -> list[Any]:
    """One input or several as a list, as `path_of` has them."""
    one = isinstance(inputs, (str, bytes, os.PathLike, Given)) or hasattr(inputs, "read") or hasattr(inputs, "as_input")
    one = one or not isinstance(inputs, Iterable) or _buffer(inputs) is not None
    return [path_of(given) for given in ([inputs] if one else inputs)]


def _buffer(given: Any) -> memoryview | None:
    """The bytes that an object holds: a bytearray, a memoryview, an array of bytes; None for others."""
    try:
        view = memoryview(given)
    except (TypeError, ValueError, BufferError):
        return None
    return view if view.format in ("B", "b", "c") else None


def path_of(given: Any) -> Any:
    """A path as text, what holds bytes as bytes, a Profile as an input; file objects and such inputs unchanged.

    Errors: UsageError for anything else, and for a path with a NUL byte.
    """
    if isinstance(given, str):
        if "\0" in given:
            raise UsageError(f"a path is {given!r:.80}, which has a NUL byte")
        return given
    if isinstance(given, Given):
        return given
    if hasattr(given, "as_input"):
        return given.as_input()
    if isinstance(given, os.PathLike):  # some paths also have a `read`
        return path_of(os.fspath(given))
    if isinstance(given, bytes) or hasattr(given, "read") or hasattr(given, "write"):
        return given
    held = _buffer(given)
    if held is None:
        raise UsageError(f"a path is {given!r:.80}, expected a text, bytes, a file object or a Profile")
    return bytes(held)


def run(
    end: plan.End,
    sides: Sequence[Iterable[Any]],
    options: Options,
    from_: str | None,
    progress: Progress | None,
    given: Mapping[str, Any] | None = None,
    *,
    merge: bool = False,
    keep_going: bool | None = None,
    repeatable: Callable[[list[Any]], bool] = lambda paths: False,
    idle: Idle | None = None,
    weights: Weights | None = None,
) -> Any:
    """Reads inputs and returns the result of an end's code.

    `sides`: what `path_of` returns; directories are replaced by their files, unless the end takes one input.
    `given`: arguments of the verb for the code.
    `merge`: the order of inputs does not matter, and the parts of a single input are merged.
    `keep_going`: inputs that cannot be read are skipped and counted as losses; None: the verb has no such option.
    `repeatable`: whether these inputs may be processed twice.  Then an optimistic plan is tried first.
    `idle` is called with options without effect, which are otherwise refused.
    `weights`: the factors of the inputs' values.
    Errors: FastprofError and its kinds.
    """
    own, both = options, [[*paths] for paths in sides]
    lists, from_, options = _together(both, from_, options, end)
    log, last = Log(), list[Message]()  # the error of an unreadable input

    def failed(error: FastprofError) -> None:
        skipped(error, log)
        last[:] = [error.message()]

    skip = failed if keep_going else None
    found = [_expanded(paths, end, log, skip, merge=merge, lenient=options[LENIENT]) for paths in lists]
    given = _without_overwriting(given or {}, found, options)

    def attempt(log: Log, *, optimistic: bool) -> Any:
        model, alone = Model(), len(found) == 1
        with ExitStack() as stack:
            sides = (Inputs(paths, from_, model, options, log, progress, skip, alone=alone) for paths in found)
            opened = [stack.enter_context(side).all for side in sides]
            if not all(opened):
                raise none_can_be_read(last[-1])
            if weights:
                weights.set(opened[0], log)
            made = plan.make(opened, end, options, merge=merge, optimistic=optimistic)
            _refuse_idle(made, own, options, idle)
            return result_of(made, model, options, log, given, weights)

    try:
        with _naming_steps(both, own):
            if not keep_going and repeatable([path for paths in found for path in paths]):
                first = Log()
                first.take_all(log)
                with suppress(OutOfOrder, Outgrown):
                    return attempt(first, optimistic=True)
            return attempt(log, optimistic=False)
    except UnrecognizedError as error:
        raise with_advice(error, sum(map(len, found)), keep_going) from None


def _expanded(
    paths: list[Any], end: plan.End, log: Log, skip: Failed | None, *, merge: bool, lenient: bool
) -> list[Any]:
    found = paths if end.single else expand(paths, log.warn, skip, lenient=lenient)
    if not found:
        raise UsageError("no input given")
    # listed or numbered items follow the order of names, not of arguments
    return sorted(found, key=_name) if merge else found


def _together(sides: list[list[Any]], from_: str | None, options: Options, end: plan.End) -> Any:
    """Inputs, format and options after those that all profiles share have become the verb's."""
    if not any(isinstance(path, Given) for paths in sides for path in paths):
        return sides, from_, options
    from fastprof.inputs.chosen import together  # imported for profiles only

    return together(sides, from_, options, end)


def _naming_steps(sides: list[list[Any]], own: Options) -> AbstractContextManager[None]:
    """Within it, errors name the arguments of profiles' steps, unless the verb was given these options itself."""
    steps = {name for paths in sides for path in paths if isinstance(path, Given) for name in path.steps}
    if not (steps := steps - own.given.keys()):
        return nullcontext()
    from fastprof.inputs.chosen import steps_named  # imported for profiles only

    return steps_named(steps)


def _name(path: Any) -> str:
    return path if isinstance(path, str) else name_of(path)


def _refuse_idle(made: plan.Plan, own: Options, options: Options, idle: Idle | None) -> None:
    """Refuse options of a verb that nothing uses; of others, which are those of profiles, only filters."""
    plan.refuse_idle(own, made, idle)
    if options is not own:
        plan.refuse_idle(options, made, lambda option: None)


def _without_overwriting(given: Mapping[str, Any], found: Sequence[list[Any]], options: Options) -> Mapping[str, Any]:
    """The arguments, after a check of the output; with `reads` for an end that may write more files."""
    reads = Reads([path for paths in found for path in paths], options)
    reads.refuse(given.get("output"))
    return {**given, "reads": reads} if "target" in given else given


def none_can_be_read(last: Message) -> FastprofError:
    """The error if all inputs are skipped.  `last`: why the last one cannot be read."""
    return FastprofError(Message("none of the inputs can be read; the last one: {error}", error=last))


def result_of(
    made: plan.Plan,
    model: Model,
    options: Options,
    log: Log,
    given: Mapping[str, Any] | None = None,
    weights: Weights | None = None,
) -> Any:
    """The result of the code of a plan's end.  Some ends return an iterator; the inputs then stay open.

    Errors: UsageError if an output would contain nothing of its inputs; then it does not become visible.
    """
    code = made.end.load()
    if not made.end.writes:
        return code(made.pipelines, model, options, log, **(given or {}))
    with code(made.pipelines, model, options, log, **(given or {})) as outputs:
        refuse_total_loss(made.inputs, outputs.writer, log)
        if weights:
            weights.check()
        outputs.commit()
    return log


def refuse_total_loss(inputs: Sequence[Input], writer: Writer, log: Log) -> None:
    """Check that something was written.

    Errors: UsageError if rows were read but none were written; FastprofError if none has a cost, except of a
    difference.
    """
    is_difference = not all(input_.format for input_ in inputs)
    if log.zeros and not is_difference:
        raise FastprofError(Message("{inputs}{zeros}", inputs=inputs_of(writer.model), zeros=log.zeros))
    if writer.written:
        return
    from fastprof.bridges.rows.unrepresentable import CODES

    no_rows = {*writer.costless, "labels-and-threads", "sample-labels", "sample-times", *CODES}
    not_written = log.not_representable.counted()
    lost = [entry.message(n, values) for entry, values, n in not_written if entry.code not in no_rows]
    has_rows = any(input_.n_read for input_ in inputs)
    if has_rows and not lost and writer.view == "stacks" and not is_difference:
        raise FastprofError(f"{inputs_of(writer.model)}no row has a cost")
    if lost and has_rows:
        nothing = f"{inputs_of(writer.model)}no row can be written as {writer.format}: "
        what = [joined(", ", sorted(lost, key=str)), *([writer.advice] if writer.advice else [])]
        raise UsageError(joined("", [nothing, joined("; ", what)]))
