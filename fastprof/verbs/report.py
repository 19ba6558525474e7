"""A page of HTML that shows a profile, or how two of them differ: flame graph, functions, callers and callees."""

from __future__ import annotations

import os
from collections.abc import Iterable

from fastprof import bridges, plan
from fastprof.core._typing import Any
from fastprof.core.engine import Holds, Input
from fastprof.core.errors import UsageError, inputs_of, printable
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, Option, Options, Share, checked
from fastprof.core.parts import zeros_warning
from fastprof.core.report import Report
from fastprof.core.sink import Sink
from fastprof.core.version import __version__
from fastprof.core.words import speaks_of_flags
from fastprof.inputs import Inputs, Progress
from fastprof.inputs.expand import expand
from fastprof.verbs.page import html
from fastprof.verbs.page.content import Content, Places, figures_of
from fastprof.verbs.page.contexts import Shown

PRUNE: Option[float | None] = Option(
    "prune",
    Share(),
    None,
    group="output",
    help="leave out what costs less; 0: leave out nothing",
    details="A share of the total.  With its callers' other small costs it becomes [pruned].  Default: as much as "
    "keeps the page smaller than 2 MB.",
)

# What others do with these, the page does by itself or has no use for.
_IDLE = (bridges.AGGREGATE, bridges.FRAMES, bridges.LABELS, bridges.PER_THREAD, bridges.INLINE_CALLS, bridges.PRUNE)
_HOLDS = Holds(apart=True)
_LARGEST = 1_900_000  # bytes of a page
_CONTEXTS = 45_000  # to begin with
_MOST_CONTEXTS = 200_000  # that a browser shows at once
_FUNCTIONS = 3_000
_ALL = (1 << 32) - 1

Path = str | os.PathLike[str]


def options() -> list[Option[Any]]:
    return [PRUNE, *plan.viewing_options(_IDLE)]


def report(
    inputs: Path | Iterable[Path],
    output: Path,
    *,
    from_: str | None = None,
    progress: Progress | None = None,
    command: str = "",
    **given: Any,
) -> Report:
    """Write a page that shows a profile (a file or a directory), or how the second of two differs from the first.

    `command` is what the page says that it was made with.  `prune` is explained in docs/report.md, `value` chooses one
    value type; the other options are those of docs/options.md that say how to read.
    Errors: FastprofError and its kinds; then nothing is left at `output`.

    >>> import fastprof
    >>> dict(fastprof.report("tests/corpus/callgrind/good/cfi.callgrind", "cfi.html").rows)
    {'contexts': 3, 'functions': 2}
    """
    asked = checked(given, options())
    paths = [os.fspath(path) for path in ([inputs] if isinstance(inputs, (str, os.PathLike)) else inputs)]
    if not 1 <= len(paths) <= 2:
        raise UsageError(
            f"a page shows one input, or compares two, not {len(paths)}: add several up first, with `fastprof merge`"
        )
    if paths == ["-", "-"]:
        raise UsageError("standard input (-) can be read only once")
    said = Report()
    page = _Page(paths, asked, said)
    page.read(from_, progress)
    with Sink(output) as sink:
        sink.write(page.text(command))
        sink.commit()
        said.facts["output_bytes"] = sink.output_bytes
    return said


class _Page:
    """What is read for a page, and its text."""

    def __init__(self, paths: list[str], asked: Options, said: Report) -> None:
        self._paths, self._asked, self._report = paths, asked, said
        self._model = Model()
        mine = {PRUNE.name, bridges.VALUE.name}
        self._reading = Options(**{name: value for name, value in asked.given.items() if name not in mine})
        prune = asked[PRUNE] or bridges.PRUNE.default
        self._shown = Shown(self._model, self._reading, said, compared=len(paths) == 2, prune=prune)
        self._inputs: list[dict[str, Any]] = []

    def read(self, from_: str | None, progress: Progress | None) -> None:
        model, said = self._model, self._report
        for side, path in enumerate(self._paths):
            paths = expand([path], said.warn, lenient=self._reading[LENIENT])
            with Inputs(paths, from_, model, self._reading, said, progress) as found:
                for input_ in found.all:
                    shown = {"name": printable(input_.name), "format": input_.format, "view": input_.view}
                    self._inputs.append({"side": side} | shown)
                for view in dict.fromkeys(input_.view for input_ in found.all):
                    self._add(side, view, [input_ for input_ in found.all if input_.view == view])
        self._shown.end()
        self._warn_of_zeros()

    def _warn_of_zeros(self) -> None:
        shown = self._shown
        if self._asked[bridges.VALUE] is None and len(shown.events) > 1 and shown.is_zero:
            self._report.warn(zeros_warning(shown.events[shown.default or 0], shown.events))

    def _add(self, side: int, view: str, inputs: list[Input]) -> None:
        way = plan.make(inputs, view, _HOLDS, self._reading)
        way.looked_at.add(bridges.MAX_MEMORY)
        if view == "timeline":
            way.looked_at.add(bridges.TIME_UNIT)
        elif view == "graph":
            way.looked_at.add(bridges.STACKS)
        plan.refuse_idle(self._reading, inputs, plan=way)
        self._shown.add(side, view, way.rows(self._model, self._reading, self._report))

    def text(self, command: str) -> bytes:
        """The whole page, with as much as it has room for, unless `prune` was given."""
        asked, n_contexts, kept = self._asked[PRUNE], _CONTEXTS, self._kept()
        places = Places(self._model, self._shown)
        figures = figures_of(self._model, self._shown, kept, _ALL if asked == 0 else _FUNCTIONS, places)
        was_too_large = False
        while True:
            self._shown.cut(asked or 0, _ALL if asked is not None else n_contexts)
            content = Content(self._model, self._shown, kept, figures, places)
            page = html(content.columns.packed(self._head(command) | content.head))
            if asked is not None or n_contexts < 100:
                break
            room = _LARGEST / len(page)
            if room >= 1:
                has_all = n_contexts > content.head["all contexts"]
                if has_all or was_too_large or room < 2 or n_contexts >= _MOST_CONTEXTS:
                    break
                n_contexts = min(_MOST_CONTEXTS, int(n_contexts * 0.8 * room))
                continue
            was_too_large = True
            share = min(0.8, room)
            n_contexts, figures = int(n_contexts * share), figures[: int(len(figures) * share) + 1]
        self._report.rows["contexts"] = len(content.columns["context up"])
        self._report.rows["functions"] = sum(not row.is_cycle for row in figures)
        return page

    def _kept(self) -> list[int]:
        """The columns of the value type that --value names, or all."""
        shown, value = self._shown, self._asked[bridges.VALUE]
        kept = [k for k, c in enumerate(shown.columns) if value in (None, shown.events[c.event].name)]
        if not kept and shown.columns:
            names = ", ".join(event.name for event in shown.events)
            raise UsageError(f"{inputs_of(self._model)}--value: there is no value type {value!r:.80}, only {names}")
        return kept

    def _head(self, command: str) -> dict[str, Any]:
        shown, said = self._shown, self._report
        commands = {part.command: None for part in self._model.parts if part.command}
        return {
            "made by": f"fastprof {__version__}",
            "command": printable(command),
            "inputs": self._inputs,
            "compared": len(self._paths) == 2,
            "programs": [printable(one.decode("utf-8", "backslashreplace")) for one in commands],
            "events": [{"name": e.name, "unit": e.unit, "long": e.long_name} for e in shown.events],
            "shown": shown.default or 0,
            "estimated": shown.estimated and any(costs.inclusive_known for costs in shown.costs),
            "said": {
                "repaired": said.repairs.said(flags=speaks_of_flags()),
                "lost": said.losses.said(flags=speaks_of_flags()),
                "left out": said.left_out.said(flags=speaks_of_flags()),
                "not shown": said.not_representable.said(flags=speaks_of_flags()),
                "warnings": said.warnings,
            },
        }
