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
from fastprof.formats.archive.sections import TABLES, Codec
from fastprof.formats.archive.shared import sketch_of
from fastprof.formats.xray import pieces
from fastprof.store import adding
from fastprof.symbols.dwarf import LineTables
from fastprof.symbols.elf import ElfFile
from fastprof.symbols.jitdump import JitDump
from fastprof.symbols.kernel import Kallsyms
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.unwind import UnwindTable
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


def _symbols(inputs: Path, out: Path) -> Action:
    """Symbol tables, line tables, inlined functions, unwind tables, code of a JIT compiler, and names of a kernel."""
    from tests.unit.test_jitdump import Dump

    program, kernel, dump = given("llvm-profile/small", inputs), inputs / "kallsyms", Dump()
    kernel.write_text("".join(f"{0xFFFFFFFF81000000 - 16 * i:016x} t name{i}\t[module]\n" for i in range(40)))
    for i in range(40):
        dump.lines(0x2000 - 16 * i, [(0x2000 - 16 * i + k, 9 - k, b"file%d" % k) for k in range(8, 0, -1)])
        dump.load(90 - i, 0x2000 - 16 * i, bytes(16), i, b"code%d" % i)
    recorded = dump.write(inputs)

    def action() -> None:
        elf = ElfFile(program)
        text = elf.section(".text")
        assert text
        tables, found = LineTables(elf), ElfObject(program)
        said: list[object] = [UnwindTable(elf, 1).stats.rows, Kallsyms(kernel).part("module").lookup_many([0])]
        for address in range(text.address, text.address + text.size, 1 + text.size // 16):
            said += [tables.find(address), tables.entry(address), tables.chain(address), tables.places(address)]
            said += found.lookup_many([address])
        (out / "out").write_text(repr([*said, JitDump(recorded).lookup_many([*range(40, 6000, 90)])]))

    return action


def _differences(inputs: Path, out: Path) -> Action:
    """Payloads of archives as differences to others, and back."""
    from tests.fuzz.make_archive_seeds import payloads
    from tests.unit.test_archive_alike import callgrind, folded

    of: list[list[tuple[int, bytes]]] = []
    for seed, (from_, make) in enumerate((("folded", folded), ("callgrind", callgrind)) * 2):
        path, archive = inputs / "profile", inputs / "archive"
        path.write_bytes(make(seed))
        fastprof.convert(path, archive, from_=from_, to="archive")
        of.append([*payloads(archive.read_bytes())])

    def action() -> None:
        codec, found = Codec(), []
        for base, own in zip(of[:2], of[2:], strict=True):
            for (type_, of_base), (_, of_own) in zip(base, own, strict=True):
                found.append(codec.difference(type_, of_base, of_own))
                if type_ == TABLES:
                    found.append(repr(sketch_of(of_own)).encode())
        assert all(found)
        (out / "out").write_bytes(b"".join(found))

    return action


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
# only tried without memory
CALLS: dict[str, Job] = {"symbols": _symbols, "differences": _differences}
