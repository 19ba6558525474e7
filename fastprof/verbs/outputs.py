"""What a conversion writes: one file, or several, each no larger than its viewers open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Format, Writer, write
from fastprof.core.errors import UsageError, inputs_of
from fastprof.core.model import Batch, Model
from fastprof.core.options import BUDGET, SPLIT, Options
from fastprof.core.report import Report
from fastprof.core.sink import Sink
from fastprof.core.streams import compression_of_name, name_of

if TYPE_CHECKING:
    from fastprof.bridges.fit import Fit, Merged

_INSTEAD = "choose a larger one, or less of the input by --thread, --time-range, --function or --value"


class Outputs:
    """The files of one conversion, which appear all together by `commit`, or not at all.

    Of a format that is made for viewers (Format.budget) a file keeps to --budget.  A timeline is kept by bridges/fit.py
    until it is known which calls fit; what is written is measured, and if it is too large after all, written again.
    """

    def __init__(
        self,
        output: Any,
        target: Format,
        view: str,
        model: Model,
        options: Options,
        report: Report,
        *,
        durable: bool = True,
    ) -> None:
        self._output, self._target, self._view, self._durable = output, target, view, durable
        self._model, self._options, self._report = model, options, report
        self._budget = (options[BUDGET] or target.budget.nbytes) if target.budget else None
        self._split = options[SPLIT] if target.budget else None
        if self._split:
            if view != "timeline":
                raise UsageError(f"--split is for timelines, and the input becomes {view}: choose by --thread instead")
            if not isinstance(output, str):
                raise UsageError(f"{name_of(output)}: --split writes several files, and cannot write to a file object")
            if output == "-" or (os.path.exists(output) and not os.path.isfile(output)):
                where = "standard output" if output == "-" else f"{output}, which is no file"
                raise UsageError(f"--split writes several files, named after OUTPUT, and cannot write to {where}")
        self._sinks: list[Sink] = []
        self._files: list[dict[str, Any]] = []
        self._stack = ExitStack()
        # at once, because it may not be possible
        self._first: Sink | None = self._stack.enter_context(Sink(output, self._budget, durable=durable))

    def write(self, rows: Iterator[Batch]) -> Writer:
        """Write all rows.  The writer, or of several the one that has written most."""
        if self._target.budget is None or self._view != "timeline":
            sink, writer = self._written(self._output, rows, self._report)
            if sink.is_over:
                raise UsageError(
                    f"{inputs_of(self._model)}{self._target.name} would be {sink.written:,} bytes, more than the "
                    f"{self._budget:,} of --budget that viewers open: {_INSTEAD}"
                )
            self._sinks.append(sink)
            return writer
        from fastprof.bridges.fit import Fit

        assert self._budget is not None
        fit = Fit(self._model, self._target.budget, self._budget, self._split)
        fit.read(rows)
        merged: list[Merged] = []
        most: Writer | None = None
        for path, group in self._paths(fit):
            writer = self._fitted(fit, group, path, merged)
            if most is None or writer.written > most.written:
                most = writer
        if most is None:
            raise UsageError(f"{inputs_of(self._model)}there are no rows, so --split has nothing to split")
        self._tell(merged)
        return most

    def _written(
        self, path: Any, rows: Iterator[Batch], report: Report, first_time: int | None = None
    ) -> tuple[Sink, Writer]:
        sink = self._first if self._first and path == self._output else None
        self._first = None
        sink = sink or self._stack.enter_context(Sink(path, self._budget, durable=self._durable))
        writer = self._target.writer_class()(self._model, sink, self._options, report)
        writer.view, writer.first_time = self._view, first_time
        write(rows, writer)
        return sink, writer

    def _fitted(self, fit: Fit, group: int, path: str, merged: list[Merged]) -> Writer:
        """One file of a timeline."""
        budget = goal = self._budget or 0
        rank = fit.rank(group, goal)
        while True:
            report = Report()
            sink, writer = self._written(path, fit.rows(group, rank), report, None if self._split else fit.first_time)
            if not sink.is_over:
                break
            if rank >= fit.highest:
                raise UsageError(
                    f"{inputs_of(self._model)}{self._target.name} without any call that can be merged would be "
                    f"{sink.written:,} bytes, more than the {budget:,} of --budget: {_INSTEAD}"
                )
            sink.__exit__(None, None, None)
            goal = int(0.98 * min(goal, fit.estimated(group, rank)) * budget / sink.written)
            rank = max(rank + 1, fit.rank(group, goal))
        self._report.take(report)
        self._sinks.append(sink)
        merged.append(found := fit.merged(group, rank))
        if self._split:
            self._files.append({"path": path, "bytes": 0, "rows": writer.written, **_said(found)})
        elif found.calls:
            self._report.facts["merged calls"] = _said(found)
        return writer

    def _tell(self, merged: list[Merged]) -> None:
        calls, time, of = (sum(column) for column in [*zip(*merged, strict=True)][1:])
        below = max((m.below for m in merged if m.calls), default=0)
        unit = "ns" if all(part.extra.get("ticks_per_second") for part in self._model.parts) else "ticks"
        self._report.not_representable.add(
            "short-calls",
            f"calls shorter than {'up to ' * (len(merged) > 1)}{below:,} {unit} (with {time / max(of, 1):.2%} of the "
            f"time), merged into their callers to keep within {self._budget:,} bytes (--budget)",
            calls,
        )

    def _paths(self, fit: Fit) -> list[tuple[str, int]]:
        """The name of each file, and its group."""
        if not self._split:
            return [(self._output, 0)]
        if self._split == "thread":
            names = self._thread_names(fit.threads())
        else:
            slices = fit.slices()
            first, last = min(slices, default=0), max(slices, default=0)
            width = len(str(last - first + 1))
            names = [f"slice-{number - first + 1:0{width}}" for number in slices]
        stem, suffix = self._stem()
        return sorted((f"{stem}.{name}{suffix}", group) for group, name in enumerate(names))

    def _thread_names(self, threads: list[int]) -> list[str]:
        ids = [self._model.row("threads", thread) for thread in threads]
        for n in (1, 2):  # the number alone, or with its process
            names = ["thread-" + "-".join(map(str, row[-n:])) for row in ids]
            if len({*names}) == len(names):
                return names
        return [f"thread-{number}" for number in range(1, len(threads) + 1)]

    def _stem(self) -> tuple[str, str]:
        packed = compression_of_name(self._output)
        plain = self._output.removesuffix(packed)
        name = os.path.basename(plain)
        known = [suffix for suffix in self._target.suffixes if name.endswith(suffix)]
        suffix = known[0] if known else os.path.splitext(name)[1]
        return plain.removesuffix(suffix), suffix + packed

    def commit(self) -> None:
        """All files appear."""
        for sink in self._sinks:
            sink.commit()
        self._report.facts["output bytes"] = sum(sink.output_bytes for sink in self._sinks)
        if self._split:
            for file, sink in zip(self._files, self._sinks, strict=True):
                file["bytes"] = sink.output_bytes
            self._report.facts["files"] = self._files

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def _said(merged: Merged) -> dict[str, Any]:
    """For JSON."""
    if not merged.calls:
        return {}
    return {"merged calls": merged.calls, "merged below": merged.below, "merged share": merged.time / max(merged.of, 1)}
