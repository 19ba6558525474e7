"""The outputs of a conversion: one file, or several, each no larger than its viewers open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from fastprof import formats, plan
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.chosen_value import defaulted
from fastprof.core.engine import Format, Input, Reader, Writer, write
from fastprof.core.errors import Outgrown, inputs_of, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import Message
from fastprof.core.model import Batch, Model
from fastprof.core.options import BUDGET, SPLIT, Options, cores_of
from fastprof.core.sink import Sink
from fastprof.core.streams import compression_of_name, name_of
from fastprof.core.thread_names import ThreadNames
from fastprof.core.urls import shown

if TYPE_CHECKING:
    from fastprof.bridges.budget.fit_stacks import Trim
    from fastprof.bridges.budget.fit_timeline import Fit
    from fastprof.verbs.reads import Reads

_NAME = 48  # bytes of a fairly long name
_INSTEAD = "raise it, or select less of the input with {--thread}, {--time-range}, {--function} or {--value}"

CODE = "verbs.outputs:written"  # of ends that write


@contextmanager
def written(
    pipelines: Sequence[plan.Pipeline],
    model: Model,
    options: Options,
    log: Log,
    *,
    output: Any,
    target: Format,
    reads: Reads,
    renumber: bool = False,
    durable: bool = True,
) -> Iterator[Outputs]:
    """The outputs with all rows, which are not visible yet.

    `reads`: the files that no output may be.
    `renumber`: entries of the model are written in an order that does not depend on the order of the inputs.
    `durable`: the output is on disk when it becomes visible; otherwise the caller synchronizes it.
    """
    first = pipelines[0]
    rows = [pipeline.rows(model, log) for pipeline in pipelines]
    if renumber and first.several and target.holds.model_order:
        from fastprof.bridges.sums.renumber import renumbered

        (one,) = rows
        one, model = renumbered(one, model)
        rows = [one]
    rows = [checked(one, pipeline.view, target, model, log) for pipeline, one in zip(pipelines, rows, strict=True)]
    inputs = [*first.inputs]
    most_rows = _most_rows(inputs[0]) if first.optimistic and len(inputs) == 1 else None
    views = [pipeline.view for pipeline in pipelines]
    how: dict[str, Any] = {"reads": reads, "most_rows": most_rows, "durable": durable}
    with Outputs(output, target, views, model, options, log, **how) as outputs:
        outputs.write(rows)
        yield outputs


def checked(rows: Iterator[Batch], view: str, target: Format, model: Model, log: Log) -> Iterator[Batch]:
    """Rows for a writer of all value types, one of which must have a cost; archives and tables keep any."""
    holds = target.holds
    is_kept = view == "timeline" or not holds.values or holds.verbatim or holds.table
    return rows if is_kept else defaulted(rows, model, log)


def _in_file_name(text: str) -> str:
    """`worker-A-8` of `worker A (8)`."""
    text = "-".join(re.findall(r"[\w.+]+", text))
    return text if len(text) <= _NAME else f"{text[: _NAME // 2]}-{text[-_NAME // 2 + 1 :]}"


def _after_each_other(rows: Iterable[Iterator[Batch]]) -> Iterator[Batch]:
    for its in rows:
        yield from its


def _most_rows(input_: Input) -> int | None:
    """An upper bound of the rows of a timeline, from the size of its file; None: unknown."""
    least = formats.get(input_.format).row_bytes
    size = input_.source.size if isinstance(input_, Reader) else None
    return size // least if least and size is not None else None


class Outputs:
    """The files of one conversion, which appear all together by `commit`, or not at all.

    In a format made for viewers (Format.budget) each file stays within --budget.  bridges/budget buffers the rows until
    it is known how many fit; the output is measured and, if still too large, written again.  Rows of several views
    follow each other, and all views shrink by the same factor.
    A timeline of at most `most_rows` rows is written while it is read.
    """

    def __init__(
        self,
        output: Any,
        target: Format,
        views: Sequence[str],
        model: Model,
        options: Options,
        log: Log,
        *,
        reads: Reads,
        most_rows: int | None = None,
        durable: bool = True,
    ) -> None:
        self._reads = reads
        self._output, self._target, self._views, self._durable = output, target, views, durable
        self._model, self._options, self._log = model, options, log
        self._budget = (options[BUDGET] or target.budget.nbytes) if target.budget else None
        self._split = options[SPLIT] if target.budget else None
        self._cores = cores_of(options)
        if self._split:
            if views[0] != "timeline" and self._split != "thread":
                raise usage_error(
                    "{inputs}{--split:=}time:SECONDS needs a timeline, but the input becomes {view}, which have "
                    "no times: choose {--split:=}thread",
                    inputs=inputs_of(model),
                    view=views[0],
                )
            if not isinstance(output, str):
                raise usage_error(
                    "{output}: {--split} writes several files, and cannot write to a file object",
                    output=name_of(output),
                )
            if shown(output) != output:
                raise usage_error(
                    "{output}: {--split} writes several files, which a URL with more than a path cannot name",
                    output=shown(output),
                )
            if output == "-" or (os.path.exists(output) and not os.path.isfile(output)):
                where = "standard output" if output == "-" else f"{output}, which is not a file"
                raise usage_error(
                    "{--split} writes several files, named after OUTPUT, and cannot write to {where}", where=where
                )
        self._most_rows = most_rows
        self._sinks: list[Sink] = []
        self._files: list[dict[str, Any]] = []
        self._stack = ExitStack()
        self.writer: Writer  # with several files the one with the most rows, once all are written
        # early, because it may fail
        self._first: Sink | None = self._new(output)

    def _new(self, path: Any) -> Sink:
        self._reads.refuse(path)  # --split names several
        cores = 1 if self._split else self._cores  # all files stay open until all are complete
        return self._stack.enter_context(Sink(path, self._budget, durable=self._durable, cores=cores))

    def write(self, rows: Sequence[Iterator[Batch]]) -> None:
        """Write all rows, of each view.  Errors: Outgrown, with `most_rows` alone."""
        if self._budget is None or self._would_fit(self._budget):
            sink, self.writer = self._written(self._output, _after_each_other(rows), self._log)
            if sink.is_over:
                raise Outgrown
            self._sinks.append(sink)
            return
        kept = [self._kept(view, self._budget) for view in self._views]
        for one, its in zip(kept, rows, strict=True):
            one.read(its)
        lost: list[list[Any]] = []  # of each file, by view
        writers = [self._fitted(kept, group, path, self._budget, lost) for path, group in self._paths(kept[0])]
        if not writers:
            raise usage_error(
                "{inputs}{--split} has nothing to split: there are no rows", inputs=inputs_of(self._model)
            )
        self.writer = max(writers, key=lambda writer: writer.written)
        for one, of_files in zip(kept, zip(*lost, strict=True), strict=True):
            one.log_to(of_files, self._log, self._budget)

    def _would_fit(self, budget: int) -> bool:
        size = self._target.budget
        if self._most_rows is None or self._views[0] != "timeline" or self._split or not size:
            return False
        return self._most_rows // 2 * (size.call + size.names * _NAME) <= budget

    def _kept(self, view: str, budget: int) -> Fit | Trim:
        """The buffer for rows of a view."""
        assert self._target.budget
        if view == "timeline":
            from fastprof.bridges.budget.fit_timeline import Fit

            return Fit(self._model, self._target.budget, budget, self._split)
        from fastprof.bridges.budget.fit_stacks import Trim

        return Trim(self._model, self._target.budget, self._options, self._target.holds, self._split)

    def _written(
        self, path: Any, rows: Iterator[Batch], log: Log, first_time: int | None = None
    ) -> tuple[Sink, Writer]:
        sink = self._first if self._first and path == self._output else None
        self._first = None
        sink = sink or self._new(path)
        writer = self._target.writer_class()(self._model, sink, self._options, log)
        writer.view, writer.first_time = self._views[0], first_time
        write(rows, writer)
        return sink, writer

    def _fitted(self, kept: list[Any], group: int, path: str, budget: int, lost: list[list[Any]]) -> Writer:
        """Write one file within the budget."""
        ranks = [one.first_rank(group, budget) for one in kept]
        while True:
            log = Log()
            first_time = None if self._split else kept[0].first_time
            rows = _after_each_other(one.rows(group, rank) for one, rank in zip(kept, ranks, strict=True))
            sink, writer = self._written(path, rows, log, first_time)
            if not sink.is_over:
                break
            sizes = [one.estimated(group, rank) * (rank < one.highest) for one, rank in zip(kept, ranks, strict=True)]
            if not any(sizes):
                raise usage_error(
                    "{inputs}{name} {least} would be {written:,} bytes, but {--budget} allows {budget:,}: {instead}",
                    inputs=inputs_of(self._model),
                    name=self._target.name,
                    least=" and ".join(one.least for one in kept),
                    written=sink.written,
                    budget=budget,
                    instead=Message(_INSTEAD),
                )
            sink.__exit__(None, None, None)
            for k, one in enumerate(kept):
                if sizes[k]:
                    goal = int(0.98 * sizes[k] * budget / sink.written)
                    ranks[k] = max(ranks[k] + 1, one.rank(group, goal))
        self._log.take(log)
        self._sinks.append(sink)
        lost.append([one.lost(group, rank) for one, rank in zip(kept, ranks, strict=True)])
        facts = {view: one.facts(its) for view, one, its in zip(self._views, kept, lost[-1], strict=True)}
        if self._split:
            self._files.append({"path": shown(path), "bytes": 0, "rows": writer.written, **facts[self._views[0]]})
        for view, found in facts.items() if not self._split else ():
            if found:
                self._log.facts["merged_calls" if view == "timeline" else "pruned_stacks"] = found
        return writer

    def _paths(self, kept: Any) -> list[tuple[str, int]]:
        """The name of each file, and its group."""
        if not self._split:
            return [(self._output, 0)]
        if self._split == "thread":
            names = self._thread_names(kept.threads())
        else:
            slices = kept.slices()
            first, last = min(slices, default=0), max(slices, default=0)
            width = len(str(last - first + 1))
            names = [f"slice-{number - first + 1:0{width}}" for number in slices]
        stem, suffix = self._stem()
        return sorted((f"{stem}.{name}{suffix}", group) for group, name in enumerate(names))

    def _thread_names(self, threads: list[int]) -> list[str]:
        names = ThreadNames(self._model)
        rows = [self._model.row("threads", thread) for thread in threads]
        for text in (lambda row: names.thread_text(*row), names.text_of):  # alone, or with its process
            found = [_in_file_name(text(row)) for row in rows]
            if "" not in found and len({name.casefold() for name in found}) == len(found):
                return found
        return [f"thread-{number}" for number in range(1, len(threads) + 1)]

    def _stem(self) -> tuple[str, str]:
        packed = compression_of_name(self._output)
        plain = self._output.removesuffix(packed)
        name = os.path.basename(plain)
        known = [suffix for suffix in self._target.suffixes if name.endswith(suffix)]
        suffix = known[0] if known else os.path.splitext(name)[1]
        return plain.removesuffix(suffix), suffix + packed

    def commit(self) -> None:
        """Rename all files or none.  Errors: FastprofError; files that were already replaced are not restored."""
        for sink in self._sinks:
            sink.finish()
        try:
            for sink in self._sinks:
                sink.commit()
        except BaseException:
            for sink in self._sinks:
                sink.undo_commit()
            raise
        self._log.facts["output_bytes"] = sum(sink.output_bytes for sink in self._sinks)
        if self._split:
            for file, sink in zip(self._files, self._sinks, strict=True):
                file["bytes"] = sink.output_bytes
            self._log.facts["files"] = self._files

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
