"""Convert profiles, several merged into one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import deepcopy

from fastprof import formats, plan
from fastprof.core._typing import IO, Any
from fastprof.core.engine import Format, Holds, Input, Reader
from fastprof.core.errors import FastprofError, Outgrown, OutOfOrder, UsageError
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, SPLIT, Option, checked
from fastprof.core.report import Report
from fastprof.core.reported import REPORTED
from fastprof.core.streams import name_of
from fastprof.inputs import Inputs, Progress
from fastprof.inputs.expand import expand
from fastprof.verbs.outputs import Outputs


def convert(
    inputs: str | os.PathLike[str] | bytes | IO[bytes] | Iterable[str | os.PathLike[str] | bytes | IO[bytes]],
    output: str | os.PathLike[str] | IO[bytes],
    *,
    from_: str | None = None,
    to: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Convert `inputs`, merged into one profile, to `output` ("-": standard output).

    The target format is `to`, or what the suffix of the output says.  `options` are those of docs/options.md.
    Errors: FastprofError and its kinds; then nothing is left at `output`.

    Inputs may be bytes, the contents of a file.  Inputs and output may be binary file objects, which stay open.  One
    that can seek is read from its beginning.  An output that is one needs `to`, is not compressed, and is written as
    the rows come, from where it is: after an error it may have a part of them, as standard output may.

    >>> import fastprof
    >>> report = fastprof.convert("tests/corpus/callgrind/good/cfi.callgrind", "cfi.folded")
    >>> open("cfi.folded").read()
    'f 5\\nf;g 9\\n'
    >>> dict(report.not_representable)["call counts"]
    1
    """
    return converted(inputs, output, from_, to, progress, options)


def converted(
    inputs: str | os.PathLike[str] | bytes | IO[bytes] | Iterable[str | os.PathLike[str] | bytes | IO[bytes]],
    output: Any,
    from_: str | None,
    to: str | None,
    progress: Progress | None,
    options: dict[str, Any],
    *,
    merge: bool = False,
    keep_going: bool = False,
    durable: bool = True,
    idle: Callable[[Option[Any]], None] | None = None,
    of: tuple[str, Holds] | None = None,
) -> Report:
    """For `convert`, `merge` and `batch`.

    `merge`: any order of the inputs is the same, and parts of an only one become one.
    `durable`: the output is on disk when this returns; else the caller sees to that.
    `idle` is told of options that do nothing here but are for other files, so that they are not refused.
    `of`: the view to write, and what has to be held, of an archive that goes on to another format.
    """
    asked = checked(options, plan.known_options())
    report = Report()

    def failed(error: FastprofError) -> None:
        report.count(REPORTED["inputs-passed-over"])
        report.warn(str(error))

    given, output = _paths(inputs, output)
    target = target_of(output, to)
    defaults: dict[str, Any] = {"demangle": "short"} if target.holds.short_names else {}
    if asked[SPLIT] == "thread":
        defaults["per_thread"] = True  # samples of a part that is one thread say so
    asked = asked.with_defaults(**defaults)
    paths = expand(given, report.warn, failed if keep_going else None, lenient=asked[LENIENT])
    if merge:
        # what is listed, or numbered, comes in the order of the names, however they were given
        paths.sort(key=lambda path: path if isinstance(path, str) else name_of(path))

    def attempt(report: Report, *, hasty: bool) -> Report:
        model = Model()
        with Inputs(paths, from_, model, asked, report, progress, failed if keep_going else None) as found:
            if not found.all:
                raise FastprofError(f"no input can be read; the last: {report.warnings[-1]}")
            view, holds = of or (target.view_for(input_.view for input_ in found.all), target.holds)
            way = plan.make(found.all, view, holds, asked, merge=merge, hasty=hasty)
            plan.refuse_idle(asked, found.all, target, way, idle)
            rows = way.rows(model, asked, report)
            if way.several and target.holds.model_order:
                from fastprof.bridges.sums.renumber import renumbered

                rows, model = renumbered(rows, model)
            most_rows = _most_rows(found.all[0]) if hasty and len(found.all) == 1 else None
            with Outputs(output, target, view, model, asked, report, most_rows=most_rows, durable=durable) as outputs:
                writer = outputs.write(rows)
                plan.refuse_total_loss(found.all, writer, report)
                outputs.commit()
        return report

    if not keep_going and _repeatable(paths, output):
        try:
            return attempt(deepcopy(report), hasty=True)
        except (OutOfOrder, Outgrown):
            pass
    return attempt(report, hasty=False)


def _paths(inputs: Any, output: Any) -> tuple[list[Any], Any]:
    """The inputs, and the output.  Errors: UsageError for what is neither a path nor a file object of its own."""
    several: Any = [inputs] if isinstance(inputs, (str, bytes, os.PathLike)) or hasattr(inputs, "read") else inputs
    given, output = [_path(path) for path in several], _path(output)
    if not given:
        raise UsageError("there is no input")
    if not isinstance(output, str) and not hasattr(output, "write"):
        raise UsageError(f"output is {output!r:.80}, expected a path or a binary file object")
    if any(path is output for path in given if not isinstance(path, str)):
        raise UsageError(f"{name_of(output)}: a file object cannot be both input and output")
    return given, output


def _path(given: Any) -> Any:
    """A path as text; bytes and a file object as they are."""
    is_path = isinstance(given, os.PathLike)  # some of which have a `read`, too
    return given if not is_path and (hasattr(given, "read") or hasattr(given, "write")) else os.fspath(given)


def _repeatable(paths: list[Any], output: Any) -> bool:
    """Whether the inputs can be read twice, and nobody has seen the output of the first time."""
    if not isinstance(output, str) or not all(isinstance(path, str) for path in paths):
        return False
    unseen = output == os.devnull or (output != "-" and (os.path.isfile(output) or not os.path.exists(output)))
    return unseen and all(map(os.path.isfile, paths))


def _most_rows(input_: Input) -> int | None:
    """How many rows of a timeline there can be in a file; None: its size does not say it."""
    least = formats.get(input_.format).row_bytes
    size = input_.source.size if isinstance(input_, Reader) else None
    return size // least if least and size is not None else None


def target_of(output: Any, to: str | None) -> Format:
    """The format to write.  Errors: UsageError."""
    if to is None and output == "-":
        raise UsageError("writing to standard output needs --to=FORMAT, see `fastprof formats`; -o names a file")
    if to is None and not isinstance(output, str):
        raise UsageError(f"{name_of(output)}: writing to a file object needs `to`, see `fastprof formats`")
    target = formats.get(to) if to else formats.for_output(output)
    if not target.writer:
        raise UsageError(f"fastprof reads {target.name} but does not write it")
    return target
