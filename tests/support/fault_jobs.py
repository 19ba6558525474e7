"""Jobs for tests/support/faults.py besides conversions of one file: other verbs, several outputs, sums that spill to
temporary files.

A job gets a folder for its inputs, which it fills, and one for its outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import copy
from unittest.mock import patch

import fastprof
from fastprof.core import sink, source, workers
from fastprof.formats.xray import pieces
from fastprof.store import adding
from fastprof.verbs.extract import extract
from tests.support import distinct
from tests.support.paths import CORPUS

Action = Callable[[], object]
Job = Callable[[Path, Path], Action]

TIMELINE, STACKS, GRAPH = (
    "xray/good/fdr5-pool-clang19.xray",
    "gperftools/good/64be.prof",
    "callgrind/good/xdebug.callgrind",
)
_ROWS = {"timeline": 3000, "labelled": 2500, "graph": 2500}


def given(file: str, inputs: Path) -> Path:
    return Path(copy(CORPUS / file, inputs))


def _merge(file: str, to: str) -> Job:
    def job(inputs: Path, out: Path) -> Action:
        path = given(file, inputs)
        return lambda: fastprof.merge([path, path], out / "out", to=to)

    return job


def _diff(inputs: Path, out: Path) -> Action:
    path = given(GRAPH, inputs)
    return lambda: fastprof.diff(path, path, out / "out", to="pprof")


def _split(inputs: Path, out: Path) -> Action:
    path = given(TIMELINE, inputs)
    return lambda: fastprof.convert(path, out / "out", to="trace-event", split="thread")


def _report(inputs: Path, out: Path) -> Action:
    path = given(STACKS, inputs)
    return lambda: fastprof.report(path, out / "out.html")


def _show(inputs: Path, out: Path) -> Action:
    """The output of the verbs that write no files."""
    timeline, stacks, graph = (given(file, inputs) for file in (TIMELINE, STACKS, GRAPH))

    def action() -> None:
        said: list[object] = [fastprof.info(timeline).facts, fastprof.top(timeline), fastprof.top(graph, by="line")]
        said += [fastprof.top(stacks), fastprof.diff(graph, graph), fastprof.annotate(graph).shares]
        (out / "out").write_text(repr(said))

    return action


def _extract(inputs: Path, out: Path) -> Action:
    store = str(inputs / "store.fpa")
    adding.add(store, [str(CORPUS / GRAPH)], name="folder/graph")
    return lambda: extract(store, ["folder/graph"], str(out), to="folded")


def _spilled(what: str, to: str) -> Job:
    def job(inputs: Path, out: Path) -> Action:
        path = inputs / what
        distinct.INPUTS[what](path, _ROWS[what])
        return lambda: fastprof.convert(path, out / "out", to=to, max_memory=1, cores=1)

    return job


def _parts(inputs: Path, out: Path) -> Action:
    """Rows that arrive by thread and are written by part."""
    path = inputs / "timeline"
    distinct.timeline(path, _ROWS["timeline"])
    return lambda: fastprof.convert(path, out / "out", to="callgrind", per_thread=True, max_memory=1, cores=1)


def _threads(what: str, packed: str, to: str) -> Job:
    """Work of several threads: decode, fold, spill runs, merge them, decompress input and compress output."""

    def job(inputs: Path, out: Path) -> Action:
        plain, path = inputs / what, inputs / f"{what}{packed}"
        distinct.INPUTS[what](plain, 2 * _ROWS[what])
        if packed:
            from tests.unit.test_io import PACK

            path.write_bytes(PACK[packed](plain.read_bytes()))
            plain.unlink()

        def action() -> None:
            with (
                patch.multiple(workers, FEW_ROWS=1),
                patch.object(sink, "_FEW", 1000),
                patch.multiple(source, _FEW=1000),
                patch.multiple(pieces, _BYTES=40_000, _PIECES=3, _FEW=2, _FIRST=2000),
            ):
                fastprof.convert(path, out / f"out{packed}", to=to, max_memory=1, cores=3)

        return action

    return job


JOBS: dict[str, Job] = {
    "merge stacks": _merge(STACKS, "pprof"),
    "merge graphs": _merge(GRAPH, "callgrind"),
    "merge timelines": _merge(TIMELINE, "archive"),
    "diff": _diff,
    "split": _split,
    "report": _report,
    "show": _show,
    "extract": _extract,
    "spill arcs": _spilled("timeline", "callgrind"),
    "spill call paths": _spilled("timeline", "pprof"),
    "spill labels": _spilled("labelled", "pprof"),
    "spill places": _spilled("graph", "cachegrind"),
    "spill parts": _parts,
    "threads": _threads("timeline", "", "callgrind"),
    "threads and gzip": _threads("timeline", ".gz", "callgrind"),
    "threads and zstd": _threads("timeline", ".zst", "pprof"),
}
