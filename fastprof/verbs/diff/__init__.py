"""Compare two profiles.

old: main 10, f 40        new: main 10, f 30, g 5
rows by |difference|: f 40 -> 30, g 0 -> 5, main 10 -> 10
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache

from fastprof import bridges, plan
from fastprof.bridges.rows.coarse import BY as BY_WORDS
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.engine import Capabilities, Format
from fastprof.core.errors import UsageError, inputs_of, usage_error
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Option, Options, Share, Whole, Words, checked
from fastprof.core.streams import name_of
from fastprof.verbs import scaling
from fastprof.verbs.comparing import PAIR
from fastprof.verbs.convert import target_of
from fastprof.verbs.diff.difference import Difference as Difference
from fastprof.verbs.diff.gate import FAIL_OVER, failed
from fastprof.verbs.diff.rows import RowOptions
from fastprof.verbs.diff.sides import Both
from fastprof.verbs.groups import Grouping, RowOption, keys_of
from fastprof.verbs.outputs import CODE
from fastprof.verbs.reads import Reads
from fastprof.verbs.run import listed, result_of, run

if TYPE_CHECKING:
    from fastprof.verbs.keywords import DiffOptions, Inputs, Progress, ReadFormat, WrittenFormat

Path = str | os.PathLike[str]


BY = RowOption(
    "by",
    Grouping(*BY_WORDS, "input"),
    "function",
    help="line, file, object, arc, input or a label",
    details="Default: function.  An arc is a call from one function to another.  label:KEY groups by the value of one "
    "label, label:KEY,KEY,... by several; the key `function` stands for the function of the sample.  `input` is "
    "label:input with --label-input.",
)
N = RowOption("n", Whole(0, 1 << 31), 30, flag="-n", help="print N rows (default: 30; 0: all)")
SORT = RowOption(
    "sort",
    Words("self", "inclusive", "percent", metavar="KEY"),
    "self",
    help="sort by change of self or inclusive cost, or percent",
    details="Default: self.  `percent`: of the old self cost; new rows come first.  `inclusive`: only of functions.",
)
THRESHOLD: Option[float | None] = RowOption(
    "threshold",
    Share(),
    None,
    help="show rows with at least this share of a total",
    details="Of OLD or of NEW: 0.01 or 1%.  Without it, every change counts.",
)
SIGNIFICANCE = RowOption(
    "significance",
    Share(),
    0.05,
    help="false discovery rate of several runs (default: 0.05)",
    details="Welch's t-test selects the rows; at most this share of them differs by chance.  1 shows all.",
)
STATS = RowOption.switch(
    "stats",
    rare=True,
    help="profiles for compilers: how much they overlap",
    details="The figures of `llvm-profdata overlap --sample`: similarity, samples, functions and blocks that both "
    "have.  Filters do not apply to them.",
)
_PRINTED = (N, SORT, THRESHOLD, SIGNIFICANCE, STATS)
# Options of the comparison.
_COMPARED = (PAIR, *scaling.OPTIONS, FAIL_OVER)

# All rows of a profile are added up by BY; inlined functions have their own rows.
_FIXED: dict[Option[Any], Any] = {
    bridges.PER_THREAD: False,
    bridges.LABELS: None,
    bridges.AGGREGATE: False,
    bridges.FRAMES: bridges.FRAMES.default,
    bridges.INLINES: True,
}


# An end that converts to a graph, for the inclusive costs of functions.
_FUNCTIONS = plan.End(
    "diff",
    holds=Capabilities(unmerged=True, allocator=False),
    performs=(bridges.FOLD_TO_GRAPH, bridges.PROJECT, bridges.SUM_PLACES, bridges.NAMED_VALUE),
    fixes=_FIXED,
    code="verbs.diff:found",
)
# Only stacks have labels, so other views become stacks: of a graph, functions with the self costs of its own rows.
_LABELS = plan.End(
    "diff",
    view="stacks",
    holds=Capabilities(unmerged=True, allocator=False),
    performs=(bridges.NAMED_VALUE,),
    fixes=_FIXED | {bridges.FRAMES: "function", bridges.STACKS: "self"},
    code="verbs.diff:found",
)


@cache
def options() -> list[Option[Any]]:
    return [BY, *_PRINTED, *_COMPARED, *(option for option in plan.known_options() if option not in _FIXED)]


def diff(
    old: Inputs,
    new: Inputs,
    output: Path | None = None,
    *,
    from_: ReadFormat | None = None,
    to: WrittenFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    **options_: Unpack[DiffOptions],
) -> Difference:
    """Compare the costs of two profiles, or of several a side: files, directories or binary file objects.

    `by` groups the rows: "function" (default), "line", "file", "object", "arc", "input" or "label:KEY,...".
    `pair` is "name" (default), which
    finds functions in another build of the program, or "exact".  Without `output` and `to` the result has the `n` rows
    with the largest differences (default: 30; 0: all).  With them the differences, new - old, are written as a profile,
    and the result has the totals.  In stacks the samples of `old` have negated values and the label pprof::base, like
    those of `pprof -diff_base`.  Of several profiles a side, costs are means, and rows that differ by chance are left
    out (`significance`).  With `keep_going`, unreadable inputs are skipped and counted as losses.
    `progress` is called with each input that is opened (docs/python.md).
    Errors: FastprofError and its kinds; then nothing is left at `output`.

    >>> import fastprof
    >>> old = "tests/corpus/callgrind/good/cfi.callgrind"
    >>> twice = fastprof.merge([old, old], "twice.callgrind")
    >>> [(row.name, row.old, row.new) for row in fastprof.diff(old, "twice.callgrind").rows]
    [('g', (9, 0), (18, 0)), ('f', (5, 6), (10, 12))]
    """
    given = checked(options_, options())
    written_to = "-" if output is None else os.fspath(output)
    target = target_of(written_to, to) if output is not None or to is not None else None
    paths = _paths(old), _paths(new)
    names = _names(paths[0]), _names(paths[1])
    _check(given, target, names)
    last = _last_of(target)
    if given[BY] == "input":
        given = given.with_given(**{BY.name: "label:input", bridges.LABEL_INPUT.name: True})
    end = _end_of(given[BY], target, last)
    rest = Options(**{option.key: given[option] for option in last if option in given})
    passed_on = {"target": target, "output": written_to, "onward": rest} if target else {}
    difference: Difference = run(
        end,
        [[path] for path in paths[0] + paths[1]],
        given,
        from_,
        progress,
        {"names": names} | passed_on,
        keep_going=keep_going,
    )
    if given[STATS]:
        from fastprof.verbs.diff.overlap import overlap

        return difference._replace(overlap=overlap(paths[0][0], paths[1][0], from_, Options()))
    return difference


def _end_of(by: str, target: Format | None, last: list[Option[Any]]) -> plan.End:
    options_: tuple[Option[Any], ...] = (BY, *_PRINTED, *_COMPARED, *last)
    if by.startswith("label:"):
        return _LABELS._replace(options=options_)
    if not target and by == "function":
        return _FUNCTIONS._replace(options=options_)
    return plan.End(
        target.name if target else "diff",
        lambda views: _view(target, views),
        Capabilities(allocator=target is not None),
        options=options_,
        performs=(bridges.NAMED_VALUE,),
        fixes=_FIXED,
        code="verbs.diff:written" if target else "verbs.diff:found",
    )


def _paths(side: Any) -> list[Any]:
    paths = listed(side)
    if not paths:
        raise UsageError("no input given")
    return paths


def _names(paths: list[Any]) -> list[str]:
    return [path if isinstance(path, str) else name_of(path) for path in paths]


def _check(given: Options, target: Format | None, names: tuple[list[str], list[str]]) -> None:
    for option in _PRINTED if target else ():
        if option in given:
            raise usage_error(f"{{{option.flag}}} chooses printed rows; the profile of {{-o}} has all")
    if target and given[BY].startswith(("label:", "input")):
        raise usage_error(
            "{--by:=}{by} groups printed rows; the profile of {-o} has the labels themselves", by=given[BY]
        )
    if [*names[0], *names[1]].count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    if SIGNIFICANCE in given and min(map(len, names)) < 2:
        raise usage_error("{--significance} applies to several profiles a side")
    if given[STATS] and max(map(len, names)) > 1:
        raise usage_error("{--stats} compares two profiles, not several a side")
    if given[STATS] and "-" in [*names[0], *names[1]]:
        raise usage_error("{--stats} reads profiles twice, and standard input (-) can be read only once")
    if given[SORT] == "inclusive" and given[BY] != "function":
        raise usage_error("{--sort:=}inclusive sorts functions, not {--by:=}{by}", by=given[BY])


def _row_options(options: Options) -> RowOptions:
    watched = frozenset(name for name, _ in options[FAIL_OVER] or () if name)
    return RowOptions(
        options[BY],
        options[PAIR] == "name" and (not (keys := keys_of(options[BY])) or "function" in keys),
        options[N] or None,
        options[SORT],
        options[THRESHOLD] or 0,
        options[SIGNIFICANCE],
        watched,
    )


def found(
    pipelines: Sequence[plan.Pipeline], model: Model, options: Options, log: Log, *, names: tuple[list[str], list[str]]
) -> Difference:
    """The rows with the largest differences, and the totals."""
    how = _row_options(options)
    both = Both(names, pipelines, options, how, model, log, inclusive=how.by == "function")
    result, watched = both.found()
    return result._replace(failed=failed(result, options[FAIL_OVER] or (), watched, how.alpha))


def written(
    pipelines: Sequence[plan.Pipeline],
    model: Model,
    options: Options,
    log: Log,
    *,
    names: tuple[list[str], list[str]],
    target: Format,
    output: str,
    onward: Options,
    reads: Reads,
) -> Difference:
    """The totals.  The differences are the input of a second plan, which leads to `output`."""
    view = pipelines[0].view
    if view == "stacks" and BY in options:
        what = "{inputs}{--by} applies to tables and graphs; a difference of stacks keeps whole stacks"
        raise usage_error(what, inputs=inputs_of(model))
    how = _row_options(options)
    both = Both(names, pipelines, options, how, model, log)
    end = plan.writing(target, CODE)._replace(view=view)
    # rows of a graph with calls are already added up and sorted
    made = plan.make([[both]], end, onward, merge=view == "stacks" or not target.holds.calls)
    result_of(made, model, onward, log, {"output": output, "target": target, "reads": reads})
    result = both.totals()
    return result._replace(failed=failed(result, options[FAIL_OVER] or (), None, how.alpha))


def _last_of(target: Format | None) -> list[Option[Any]]:
    """The options that apply to the difference.  The others apply to its sides."""
    end = plan.writing(target) if target else plan.End("diff")
    return plan.options_after(end._replace(fixes=_FIXED), ("stacks", "graph"))


def _view(target: Format | None, views: Iterable[str]) -> str:
    """The view in which both sides are compared."""
    if target is None:
        return "graph"
    if target.view == "timeline":
        raise UsageError(f"a difference has no times, which {target.name} requires")
    view = target.view_for(views)
    if view == "timeline":
        return "graph" if target.view == "any" else target.view
    return view
