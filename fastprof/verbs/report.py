"""An HTML page that shows a profile or the difference of two: flame graph, functions, callers and callees."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO

from fastprof import bridges, plan
from fastprof.bridges.sums.heap_values import Heaps
from fastprof.core import urls
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from fastprof.core.engine import Capabilities, OtherView
from fastprof.core.errors import UsageError, inputs_of, printable, usage_error
from fastprof.core.function_names import Place
from fastprof.core.log import Log, percent
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Model
from fastprof.core.options import TIME_RANGE, FolderPath, Option, Options, checked, cores_of
from fastprof.core.sink import Sink
from fastprof.core.streams import name_of
from fastprof.core.unknown_names import text_of
from fastprof.core.version import __version__
from fastprof.verbs import annotate, scaling
from fastprof.verbs.annotate.sources import Confined
from fastprof.verbs.comparing import PAIR, read_all
from fastprof.verbs.page import call_graph, html
from fastprof.verbs.page.asm import MOST as MOST_FUNCTIONS
from fastprof.verbs.page.asm import Instructions
from fastprof.verbs.page.content import Content
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.page.figures import Places, Table
from fastprof.verbs.page.picture import Picture
from fastprof.verbs.page.source import Source
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import listed, run

if TYPE_CHECKING:
    from fastprof.verbs.keywords import Inputs, Output, Progress, ReadFormat, ReportOptions

SOURCE: Option[tuple[str, ...]] = Option(
    "source",
    FolderPath("DIR"),
    (),
    several=True,
    group="output",
    help="include source lines with their costs from files below DIR; repeatable",
    details="/build/src/a.c is looked up as DIR/build/src/a.c, DIR/src/a.c and DIR/a.c.  No other file is opened, "
    "whatever the profile names and wherever links lead.  Reads the profile twice.",
)
ASM = Option.switch(
    "asm",
    group="output",
    help="include the instructions of the most expensive functions",
    details="Those of `annotate --asm`: needs instruction addresses in the profile, and the program.  Reads the "
    "profile once more.",
)
SUM = Option.switch("sum", group="input", help="add up all inputs, as top does, instead of comparing two")

_NAMED = 3  # inputs in a title
END = plan.End(
    "report",
    holds=Capabilities(unmerged=True, allocator=False),
    options=(bridges.PRUNE, SOURCE, ASM, PAIR, SUM, bridges.MAX_MEMORY),
    performs=(bridges.FOLD_TO_STACKS, bridges.PROJECT, bridges.ESTIMATE, bridges.SUM_PLACES, bridges.ONE_VALUE),
    fixes={
        bridges.PER_THREAD: True,
        bridges.LABELS: None,
        bridges.INLINES: True,
        bridges.AGGREGATE: True,
        bridges.FRAMES: "function",
    },
    code="verbs.report:written",
)
_LARGEST = 1_960_000  # bytes of a page
_DETAILED = 4  # times as many of one that stays on this machine
_AIM = 0.97  # share of that size to aim at
_CONTEXTS = 45_000  # first attempt
_CELLS = 70_000  # rows times value columns, first attempt
_CALLS = 50_000  # of a timeline, first attempt
_NEARLY = 0.95  # share of the size limit at which a page is accepted
_SPARE = 30_000  # bytes that a page with fewer calls should leave
_TRIES = 8  # maximum attempts; then the last page is written even if it is too large
_FUNCTIONS = 3_000
_ALL = (1 << 32) - 1

Path = str | os.PathLike[str]


@cache
def options() -> list[Option[Any]]:
    return plan.options_of(END)


class Page(Log):
    """A page, and its log.  A notebook shows the page itself, that of a file as long as it exists."""

    output: Output | None = None  # None: `html` has the page

    @property
    def html(self) -> str:
        """The page as text.  Errors: OSError if its file is gone; ValueError if it was not written to a file."""
        if isinstance(self.output, BytesIO):
            return self.output.getvalue().decode()
        if not isinstance(self.output, (str, os.PathLike)):
            raise ValueError("the page was written to a file object")
        with open(os.fspath(self.output), encoding="utf-8") as file:
            return file.read()

    def _repr_html_(self) -> str:
        from fastprof.core.html import frame

        try:
            return frame(self.html)
        except (OSError, ValueError):  # standard output, a file object, a URL, a compressed file
            return super()._repr_html_()


def report(
    inputs: Inputs,
    output: Output | None = None,
    *,
    from_: ReadFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    command: str = "",
    **given: Unpack[ReportOptions],
) -> Page:
    """Write a page that shows a profile, or the difference of the second from the first.

    Without `output` the page is the result's `html`.  An `output` that ends in .svg gets only the flame
    graph, as a picture; graph.svg or NAME.graph.svg, the call graph.  A notebook shows the page that is returned.

    The page shows `command` as the command that made it.  docs/report.md explains `prune`; `value` selects one value
    type.  `sum` shows the sum of any number of inputs.  `progress` is called with each input that is opened
    (docs/python.md).
    With `keep_going`, unreadable inputs are skipped and counted as losses.
    Errors: FastprofError and its subclasses; nothing is left at `output` then.

    >>> import fastprof
    >>> dict(fastprof.report("tests/corpus/callgrind/good/cfi.callgrind", "cfi.html").rows)
    {'contexts': 3, 'functions': 2}
    """
    how = {"from_": from_, "keep_going": keep_going, "progress": progress}
    return _report(inputs, BytesIO() if output is None else output, how, command, given, _LARGEST)


def detailed(inputs: Inputs, output: Path, *, from_: str | None = None, **given: Any) -> Page:
    """`report` for a page that stays on this machine, and so may be larger."""
    how = {"from_": from_, "keep_going": False, "progress": None}
    return _report(inputs, output, how, "", given, _DETAILED * _LARGEST)


def _report(
    inputs: Any, output: Output, how: dict[str, Any], command: str, given: Mapping[str, Any], largest: int
) -> Page:
    """`how`: the keywords for reading."""
    chosen = checked(given, options())
    _refuse_documents(output)
    paths = listed(inputs)
    sides = [paths] if chosen[SUM] and paths else [[path] for path in paths]
    if not 1 <= len(sides) <= 2:
        what = "a page shows one input or compares two, not {n}" + "; {--sum} shows their sum" * (len(sides) > 2)
        raise usage_error(what, n=len(sides))
    if paths == ["-", "-"]:
        raise UsageError("standard input (-) can be read only once")
    if PAIR in chosen and len(sides) == 1:
        raise usage_error("{--pair} applies to two inputs, which the page compares")

    given_as = [printable(urls.shown(path) if isinstance(path, str) else name_of(path)) for path in paths]
    if len(paths) > len(sides):
        given_as = [f"{given_as[0]} and {len(paths) - 1} more"]
    for_end: dict[str, Any] = {"output": output, "command": command, "largest": largest, "given_as": given_as}
    twice = [option.name for option in (SOURCE, ASM) if chosen[option]]
    _refuse_two_readings(paths, output, twice)
    if chosen[SOURCE]:
        for_end["source"] = _lines(sides, chosen, how)
    if chosen[ASM]:
        for_end["asm"] = _instructions(sides, chosen, how)
    page = Page()
    page.take_all(run(END, sides, chosen, given=for_end, **how))
    page.output = output
    return page


def _refuse_two_readings(paths: list[Any], output: Output, options: list[str]) -> None:
    """`options`: those that read the profile once more."""
    for name in options:
        if "-" in paths:
            raise usage_error(f"{{--{name}}} reads the profile twice, and standard input (-) can be read only once")
        if any(hasattr(path, "read") for path in paths):
            raise usage_error(f"{{--{name}}} reads the profile twice, and a file object can be read only once")
        if _is_picture(output):
            raise usage_error(f"{{--{name}}} has no effect: a picture has no source lines or instructions")


def _instructions(sides: list[list[Any]], chosen: Options, how: dict[str, Any]) -> Instructions:
    """The instructions of the profiles, as `annotate --asm` finds them."""
    found, chosen = Instructions(), chosen.with_given(**{annotate.N.name: MOST_FUNCTIONS})
    for side, inputs in enumerate(sides):
        given: dict[str, Any] = {"wanted": [], "value": chosen[bridges.VALUE]}
        found.add(side, run(annotate.INSTRUCTIONS, [inputs], chosen, given=given, idle=lambda option: None, **how))
    return found


def _lines(sides: list[list[Any]], chosen: Options, how: dict[str, Any]) -> Source:
    """The source lines of the profiles, as `annotate` finds them."""
    for folder in chosen[SOURCE]:
        if not os.path.isdir(folder):
            raise usage_error("{--source:=}{folder} is not a directory", folder=folder)
    found, chosen = Source(), chosen.with_given(**{annotate.N.name: 0, ASM.name: False})
    for side, inputs in enumerate(sides):
        given = {"wanted": [], "sources": Confined(chosen[SOURCE]), "value": chosen[bridges.VALUE]}
        lines = run(annotate.END, [inputs], chosen, given=given, idle=lambda option: None, **how)
        found.add(side, lines)
    return found


def _name(output: Any) -> str:
    """The name of an output, in lower case."""
    return (os.fspath(output) if isinstance(output, (str, os.PathLike)) else name_of(output)).lower()


_DOCUMENTS = (".png", ".pdf", ".jpg", ".jpeg", ".webp")


def _refuse_documents(output: Output) -> None:
    """Pictures of pixels would be HTML under a wrong name."""
    name = _name(output)
    for suffix in _DOCUMENTS:
        if name.endswith(suffix):
            what = "{output}: a report is HTML or SVG, not {suffix}; write x.html, whose menu exports PNG, or x.svg"
            raise usage_error(what, output=printable(os.path.basename(name)), suffix=suffix[1:].upper())


def _is_picture(output: Output) -> bool:
    return _name(output).endswith(".svg")


def written(
    pipelines: Sequence[plan.Pipeline],
    model: Model,
    chosen: Options,
    log: Log,
    *,
    output: Output,
    command: str,
    largest: int,
    given_as: Sequence[str],
    source: Source | None = None,
    asm: Instructions | None = None,
) -> Log:
    page = PageData(pipelines, model, chosen, log, given_as, source, asm, largest)
    with Sink(output) as sink:
        name = os.path.basename(_name(output))
        is_graph = name == "graph.svg" or name.endswith(".graph.svg")
        sink.write(page.graph() if is_graph else page.picture() if _is_picture(output) else page.text(command))
        sink.commit()
        log.facts["output_bytes"] = sink.output_bytes
    return log


class _Size(NamedTuple):
    """The size of a page."""

    contexts: int  # without those named [pruned]
    nbytes: int


class PageData:
    """The data of a page, added up when it is made, and its text."""

    def __init__(
        self,
        pipelines: Sequence[plan.Pipeline],
        model: Model,
        chosen: Options,
        log: Log,
        given_as: Sequence[str],
        source: Source | None = None,
        asm: Instructions | None = None,
        largest: int = _LARGEST,
    ) -> None:
        """`given_as`: the argument of each side.  `largest`: bytes of a page that is fitted."""
        self._model, self._chosen, self._log, self._source, self._largest = model, chosen, log, source, largest
        self._asm = asm
        self.compared = pipelines[-1].side > 0
        self._inputs = [
            {"side": pipeline.side, "name": printable(input_.name), "format": input_.format, "view": input_.view}
            for pipeline in pipelines
            for input_ in pipeline.inputs
        ]
        self._parts: tuple[dict[int, None], ...] = {}, {}  # by side
        self.title = " → ".join(self._title_of(side, name) for side, name in enumerate(given_as))
        prune: float | None = chosen[bridges.PRUNE]
        self.shown = shown = Shown(
            model,
            chosen,
            log,
            compared=self.compared,
            prune=bridges.PRUNED if prune is None else prune,
            alone=len(pipelines) == 1,
            timed=len(self._inputs) == 1,  # clocks of several may differ
            keeps_stacks=not all(pipeline.renews_stacks for pipeline in pipelines),
            sparse=True,
        )
        timeline = self._timeline_of(pipelines)
        for side, view, rows in self._rows(pipelines):
            shown.add(side, view, rows)
        if timeline:
            shown.add_timeline(timeline.rows())
        shown.end()
        if shown.tracks is not None:
            shown.tracks.is_limited = TIME_RANGE in chosen
            shown.tracks.fit(0 if prune is not None else max(1, largest // _LARGEST))
        if self.compared:
            self._note(given_as)

    def _timeline_of(self, pipelines: Sequence[plan.Pipeline]) -> OtherView | None:
        """The timeline of the only input that is next to what the page shows of it."""
        first = next(pipelines[0].inputs)
        if len(self._inputs) > 1 or not first.has_tracks or first.view == first.other_view:
            return None
        return OtherView(first)

    def _title_of(self, side: int, given_as: str) -> str:
        """The base names of a few inputs, or the argument that stands for many."""
        names = [os.path.basename(str(input_["name"])) for input_ in self._inputs if input_["side"] == side]
        if len(names) <= _NAMED and len({*names}) == len(names):
            return ", ".join(names)
        return f"{given_as} ({counted(len(names), 'input')})"

    def _rows(self, pipelines: Sequence[plan.Pipeline]) -> list[tuple[int, str, Iterator[Batch]]]:
        """The rows by side and view."""
        model, log = self._model, self._log
        sides = [(one.side, one.view, self._noted(one.side, one.rows(model, log))) for one in pipelines]
        if self.compared:
            heaps = Heaps(model, self._chosen, log)
            sides = [
                (side, view, heaps.paired(rows, next(pipeline.inputs).name))
                for pipeline, (side, view, rows) in zip(pipelines, sides, strict=True)
            ]
        if not self.compared or self._chosen[PAIR] == "exact":
            return sides
        folded = [
            (side, "stacks" if view == "timeline" else view, self.shown.folded(view, rows))
            for side, view, rows in sides
        ]
        renews_stacks = all(pipeline.renews_stacks for pipeline in pipelines)
        return read_all(folded, model, self._chosen, log, renews_stacks=renews_stacks)

    def _noted(self, side: int, rows: Iterator[Batch]) -> Iterator[Batch]:
        for batch in rows:
            self._parts[side][batch.part] = None
            yield batch

    def _note(self, given_as: Sequence[str]) -> None:
        """Warn of recordings that are not comparable."""
        n_inputs = Counter(input_["side"] for input_ in self._inputs)
        old, new = (
            [scaling.Side(name, n_inputs[side], [self._model.parts[part] for part in self._parts[side]], {})]
            for side, name in enumerate(given_as)
        )
        scaling.note(old, new, self._log, scales=False)

    def text(self, command: str) -> bytes:
        """The whole page, as detailed as its size limit allows, unless `prune` was given."""
        chosen, kept = self._chosen[bridges.PRUNE], self.kept()
        places = Places(self._model, self.shown)
        table = Table(self._model, self.shown, kept, _ALL if chosen == 0 else _FUNCTIONS, places)

        made_of, rows, contexts = (-1, -1, -1), None, None
        last: tuple[Content, bytes] | None = None

        def made(n_rows: int, n_contexts: int, n_calls: int) -> tuple[Content, bytes]:
            nonlocal made_of, rows, contexts, last
            self.shown.cut(chosen or 0, n_contexts, fits=chosen is None)
            before, made_of = made_of, (n_rows, self.shown.contexts.n, n_calls)
            if last and made_of == before:
                return last
            if not rows or n_rows != before[0]:
                rows, contexts = Content(self._model, self.shown, kept, table.first(n_rows), places), None
            if not contexts or made_of[1] != before[1]:
                contexts = rows.with_contexts()
                if self._source:
                    self._source.add_to(contexts.columns, contexts.head, self.shown, kept)
                if self._asm:
                    self._asm.add_to(contexts.head, self.shown, kept)
            content = contexts.with_calls(n_calls)
            last = content, html(content.columns.packed(self._head(command) | content.head, cores_of(self._chosen)))
            return last

        content, page = made(len(table), _ALL, _ALL) if chosen is not None else self._fitted(len(table), made)
        self._report_pruned(content.head, len(content.columns["context up"]))
        if self._source:
            self._source.log(self._log)
        if labels := content.head.get("labels"):
            self._log.count(REPORTED["merged-label-values"], sum(key["merged"] for key in labels["keys"]))
            for first in labels["left_out"][:1]:
                values = counted(first["values"], "value")
                self._log.warn(REPORTED["labels-left-out"], n=labels["n_left_out"], name=first["name"], values=values)
        self._log.rows["contexts"] = len(content.columns["context up"])
        self._log.rows["functions"] = content.n_functions
        return page

    def _drawn(self) -> tuple[list[int], str, str]:
        """Columns, title and unit of a picture, which shows the value type of --value or the default."""
        kept, shown = self.kept(), self.shown
        first = [k for k in kept if shown.columns[k].event == (shown.default or 0)] or kept[:1]
        event = shown.events[shown.columns[first[0]].event] if first else None
        title = f"{self.title}: {event.name}" if event else self.title
        return first, title, (event.unit or event.name) if event else ""

    def graph(self) -> bytes:
        """The call graph.  Errors: UsageError for a profile without calls."""
        columns, title, unit = self._drawn()
        costs = [self.shown.costs[column] for column in columns]
        if not all(one.inclusive_known for one in costs):
            what = "{inputs}the profile has only self costs; a call graph needs calls"
            raise usage_error(what, inputs=inputs_of(self._model))
        places = Places(self._model, self.shown)
        table = Table(self._model, self.shown, columns, call_graph.MOST, places)
        totals, n = [one.sum("self") for one in costs] or [0], max((one.count for one in costs), default=0)
        itself: dict[Place, list[int]] = {}
        for function, own in self.shown.calls_to_itself(columns).items():
            before = itself.get(places[function], [0] * len(own))
            itself[places[function]] = [a + b for a, b in zip(before, own, strict=True)]
        drawn = call_graph.CallGraph(table.first(len(table)), columns, totals, unit, n, itself)
        self._log.rows["functions"] = n
        return drawn.svg(title)

    def picture(self) -> bytes:
        """The flame graph."""
        chosen, shown = self._chosen[bridges.PRUNE], self.shown
        first, title, unit = self._drawn()
        shown.cut(chosen or 0, _ALL)
        content = Content(self._model, shown, first, [], Places(self._model, shown)).with_contexts().with_calls(0)
        text, self._log.rows["boxes"] = Picture(content, range(len(first)), unit).svg(title)
        self._report_pruned(content.head, len(content.columns["context up"]))
        return text

    def _fitted(self, most: int, made: Callable[[int, int, int], tuple[Content, bytes]]) -> tuple[Content, bytes]:
        """Nearly the largest page within the limit, of at most `most` rows.  Calls get the space left by contexts."""
        n_rows = min(most, 1 + _CELLS // max(1, len(self.shown.columns)))
        largest = self._largest
        n_contexts, n_calls = (first * largest // _LARGEST for first in (_CONTEXTS, _CALLS))
        best, fitted_rows = None, 0
        fitted: _Size | None = None  # the largest page that fits
        too_large: _Size | None = None  # the smallest page that does not, of as many rows
        for _ in range(_TRIES):
            content, page = made(n_rows, n_contexts, n_calls)
            size = _Size(len(content.columns["context up"]) - content.head["cuts"], len(page))
            spare = largest - len(page)
            if spare >= 0:
                # contexts of equal cost are cut together: if no context was added, the next ones do not fit
                final = size == fitted or not content.head["cuts"] or spare < (1 - _NEARLY) * largest
                best, fitted, fitted_rows = (content, page), size, n_rows
                if n_rows < most:  # `most` rows might not have fitted
                    most = n_rows = min(most, n_rows + int(spare / _each(content, "row", "arc")))
                    if spare > (1 - _NEARLY) * largest:
                        continue
                if final:
                    break
            elif fitted:
                too_large, n_rows = (size if n_rows == fitted_rows else None), fitted_rows
            elif -2 * spare < (size_of_calls := _nbytes_in_time(content)):
                # fewer calls are quicker than another tree
                n_calls = max(1, int(content.n_calls * (1 + (spare - _SPARE) / size_of_calls)))
                continue
            else:
                # callers, callees and contexts keep their functions, so a page shrinks less than its rows
                share = min(0.9, (largest / len(page)) ** 1.5)
                n_contexts, n_rows = int(min(n_contexts, size.contexts) * share), int(n_rows * share) + 1
                most = n_rows
                continue
            each = _each(content, "context")
            if too_large:
                each = (too_large.nbytes - fitted.nbytes) / max(1, too_large.contexts - fitted.contexts)
            n_contexts = min(_ALL, fitted.contexts + 1 + int((_AIM * largest - fitted.nbytes) / each))
        content, page = best or (content, page)
        while fitted and n_calls < self.shown.n_calls and len(page) < _NEARLY * largest:
            each = max(1, _nbytes_in_time(content)) / n_calls
            n_calls = int(n_calls + _NEARLY * (largest - len(page)) / each)
            more = made(fitted_rows, fitted.contexts, n_calls)
            if len(more[1]) > largest:
                break
            content, page = more
        return content, page

    def _report_pruned(self, head: dict[str, Any], n: int) -> None:
        """Report the pruned contexts.  `n`: the contexts in the page, including those named [pruned]."""
        shares = [abs(cut / total) for cut, total in zip(head["cut"], head["totals"], strict=True) if total]
        pruned = head["all_contexts"] + head["cuts"] - n
        self._log.count(REPORTED["pruned-contexts"], pruned, share=percent(max(shares, default=0)))

    def kept(self) -> list[int]:
        """The columns of the value type of --value, or all."""
        shown, value = self.shown, self._chosen[bridges.VALUE]
        shown.value.known(self._model)
        return [k for k, c in enumerate(shown.columns) if value in (None, shown.events[c.event].name)]

    def _head(self, command: str) -> dict[str, Any]:
        shown, log = self.shown, self._log
        commands = {part.command: None for part in self._model.parts if part.command}
        series = {} if self.compared else _series(log.facts)
        return series | {
            "made_by": f"fastprof {__version__}",
            "command": printable(command),
            "title": self.title,
            "inputs": self._inputs,
            "compared": self.compared,
            "programs": [printable(text_of(one)) for one in commands],
            "events": [{"name": e.name, "unit": e.unit, "long": e.long_name} for e in shown.events],
            "shown": shown.default or 0,
            "estimated": shown.estimated and any(costs.inclusive_known for costs in shown.costs),
            "logged": {
                "repaired": log.repairs.lines(flags=bool(command)),
                "lost": log.losses.lines(flags=bool(command)),
                "left_out": log.left_out.lines(flags=bool(command)),
                "not_shown": log.not_representable.lines(flags=bool(command)),
                "warnings": [warning["text"] for warning in log.warned(flags=bool(command))],
            },
        }


def _series(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Memory over time, for a profile with snapshots (series.js)."""
    keys = ("number", "time", "heap_bytes", "extra_bytes", "stacks_bytes")
    snapshots = [
        [*(one[key] for key in keys), int(one["read"]), one.get("resident_bytes", 0)]
        for one in facts.get("snapshots", ())
    ]
    return {"series": {"unit": facts.get("time_unit", ""), "snapshots": snapshots}} if snapshots else {}


def _nbytes_in_time(content: Content) -> int:
    """The approximate bytes in a page of calls or samples in time order."""
    return content.columns.nbytes("call ") + content.columns.nbytes("sample ")


def _each(content: Content, *kinds: str) -> float:
    """The approximate bytes of an entry of the first kind in a page, with those of the other kinds."""
    first = "context up" if kinds[0] == "context" else f"{kinds[0]} cycle"
    nbytes = sum(content.columns.nbytes(f"{kind} ") for kind in kinds)
    return max(1.0, nbytes) / max(1, len(content.columns[first]))
