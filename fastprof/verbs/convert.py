"""Convert profiles, several merged into one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from fastprof import formats, plan
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.engine import Capabilities, Format
from fastprof.core.errors import UsageError, usage_error
from fastprof.core.log import Log
from fastprof.core.options import SPLIT, Option, checked
from fastprof.core.streams import name_of
from fastprof.core.urls import is_url, shown
from fastprof.verbs.outputs import CODE
from fastprof.verbs.run import listed, path_of, run
from fastprof.verbs.weight_options import OPTIONS as WEIGHING

if TYPE_CHECKING:
    from fastprof.verbs.keywords import ConvertOptions, Inputs, Output, Progress, ReadFormat, WrittenFormat


def convert(
    inputs: Inputs,
    output: Output,
    *,
    from_: ReadFormat | None = None,
    to: WrittenFormat | None = None,
    progress: Progress | None = None,
    **options: Unpack[ConvertOptions],
) -> Log:
    """Convert `inputs`, merged into one profile, to `output` ("-": standard output).

    The target format is `to`, or given by the suffix of the output.
    `progress` is called with each input that is opened (docs/python.md).
    Errors: FastprofError and its kinds; then nothing is left at `output`.

    Inputs may be bytes, the contents of a file.  Inputs and output may be binary file objects, which stay open.  One
    that can seek is read from its beginning.  An output file object needs `to`, is not compressed, and is written as
    the rows come, from its position: after an error it may have some of them, as standard output may.

    >>> import fastprof
    >>> log = fastprof.convert("tests/corpus/callgrind/good/cfi.callgrind", "cfi.folded")
    >>> open("cfi.folded").read()
    'f 5\\nf;g 9\\n'
    >>> dict(log.not_representable)["call-counts"]
    1
    """
    return converted(inputs, output, from_, to, progress, options)


def converted(
    inputs: Inputs,
    output: Any,
    from_: str | None,
    to: str | None,
    progress: Progress | None,
    options: Mapping[str, Any],
    *,
    merge: bool = False,
    keep_going: bool | None = None,
    durable: bool = True,
    idle: Callable[[Option[Any]], None] | None = None,
    of: tuple[str, Capabilities] | None = None,
    columns: Iterable[str] = (),
) -> Log:
    """For `convert`, `merge` and `batch`.

    `merge`, `keep_going` and `idle` are those of `run`.
    `durable` is that of `outputs.written`.
    `of`: the view to write and the data to hold, for an archive that is converted to another format later.
    `columns`: those of a table that its path gives.
    """
    chosen = checked(options, [*plan.known_options(), *WEIGHING] if merge else plan.known_options())
    given, output = _paths(inputs, output)
    target = target_of(output, to)
    defaults: dict[str, Any] = {"demangle": "short"} if target.holds.short_names else {}
    if chosen[SPLIT] == "thread":
        defaults["per_thread"] = True  # samples in the part of a thread get its label
    chosen = chosen.with_defaults(**defaults)
    end = plan.writing(target, CODE)
    if of:
        end = end._replace(view=of[0], holds=of[1])
    if columns:
        end = end._replace(holds=end.holds._replace(columns=frozenset(columns)))

    weights = None
    if any(chosen[option] for option in WEIGHING):
        from fastprof.verbs.weighing import Weights

        weights = Weights(chosen, end, from_)
    log: Log = run(
        weights.end if weights else end,
        [given],
        chosen,
        from_,
        progress,
        {"output": output, "target": target, "renumber": True, "durable": durable},
        merge=merge,
        keep_going=keep_going,
        repeatable=lambda paths: _repeatable(paths, output),
        idle=idle,
        weights=weights,
    )
    return log


def _paths(inputs: Any, output: Any) -> tuple[list[Any], Any]:
    """The inputs and the output.  Errors: UsageError for anything but paths and distinct file objects."""
    given, output = listed(inputs), path_of(output)
    if not given:
        raise UsageError("no input given")
    if not isinstance(output, str) and not hasattr(output, "write"):
        raise UsageError(f"output is {output!r:.80}, expected a path or a binary file object")
    if any(path is output for path in given if not isinstance(path, str)):
        raise UsageError(f"{name_of(output)}: a file object cannot be both input and output")
    return given, output


def _repeatable(paths: list[Any], output: Any) -> bool:
    """Whether the inputs can be read twice, and the first output is not visible yet."""
    if not isinstance(output, str) or not all(isinstance(path, str) for path in paths):
        return False
    unseen = output == os.devnull or (output != "-" and (not os.path.exists(output) or os.path.isfile(output)))
    return unseen and all(map(os.path.isfile, paths))


def target_of(output: Any, to: str | None) -> Format:
    """The format to write.  Errors: UsageError."""
    if is_url(output) and output.endswith("/"):
        raise UsageError(f"{shown(output)}: names a folder, not an object")
    if to is None and output == "-":
        raise usage_error("standard output needs {--to:=}FORMAT (see `fastprof formats`), or name a file with {-o}")
    if to is None and not isinstance(output, str):
        raise UsageError(f"{name_of(output)}: a file object needs `to` (see `fastprof formats`)")
    target = formats.get(to) if to else formats.for_output(output)
    if not target.writer:
        raise UsageError(f"fastprof reads {target.name} but does not write it")
    return target
