"""Symbols of a model's stacks, with a program compiled here."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fastprof.bridges.project.project import to_graph
from fastprof.bridges.rows.symbolize import symbolize
from fastprof.core.errors import SymbolError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.symbolizer import Symbolizer
from tests.support import profiles
from tests.support.profiles import Frame, Sample
from tests.unit.test_cli import run

SOURCE = """\
int sink;
static inline __attribute__((always_inline)) int mix(int x) {
    return x * sink;
}
__attribute__((noinline)) int work(int x) {
    sink += mix(x);
    return sink;
}
int main(int argc, char **argv) {
    (void)argv;
    return work(argc) + 1;
}
"""
START = 0x7F0000000000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "prog.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-fPIE", "-pie", "-o", "prog", "prog.c"], cwd=folder, check=True)
    return folder / "prog"


def places(program: Path) -> tuple[int, int]:
    """Link addresses of a multiplication in work() and of the return from its call in main()."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True
    ).stdout
    multiply = re.search(r"<work>:\n(?:.+\n)*?\s*([0-9a-f]+):\s+imul", text)
    after = re.search(r"call.+<work>\n\s*([0-9a-f]+):", text)
    assert multiply and after
    return int(multiply[1], 16), int(after[1], 16)


def test_frames_get_lines_and_keep_addresses(program: Path) -> None:
    multiply, after = places(program)
    mapping = (str(program), START, START + 0x10000, 0)
    caller, leaf = Frame((), START + after, mapping, returns=True), Frame((), START + multiply, mapping)
    # more than one batch: known addresses are not looked up again
    samples = [Sample((caller, leaf), (1,)), Sample((caller,), (2,)), Sample((caller, leaf), (4,))]
    results = []
    for capacity in (1, 2, 1000):
        model, log = Model(), Log()
        batches = symbolize(profiles.stacks(model, samples, capacity), model, Options(), log)
        results.append(profiles.samples(model, batches))
        assert not log.warnings
    assert results[0] == results[1] == results[2]
    found = results[0]
    assert [s.values for s in found] == [(1,), (2,), (4,)]
    assert [[(f.name, line) for f, line in frame.lines] for frame in found[0].frames] == [
        [("main", 11)],
        [("mix", 3), ("work", 6)],
    ]
    assert [(f.address, f.returns, f.mapping) for f in found[0].frames] == [
        (START + after, True, mapping),
        (START + multiply, False, mapping),
    ]


def test_a_graph_has_the_names(program: Path) -> None:
    multiply, after = places(program)
    mapping = (str(program), START, START + 0x10000, 0)
    samples = [Sample((Frame((), START + after, mapping, True), Frame((), START + multiply, mapping)), (1,))]
    model, log = Model(), Log()
    named = symbolize(profiles.stacks(model, samples), model, Options(), log)
    rows = [r for _, r in profiles.graph_rows(model, to_graph(named, model, Options(), log))]
    assert [(r.at.function.name, r.at.line, r.callee and r.callee.name) for r in rows] == [
        ("main", 11, "work"),
        ("mix", 3, None),
        ("work", 6, "mix"),
    ]
    assert {r.at.function.object for r in rows} == {str(program)}


def test_an_archive_has_the_names_of_a_program_that_is_named(program: Path, tmp_path: Path) -> None:
    multiply, _ = places(program)
    prof = tmp_path / "x.prof"
    words = struct.pack("<11Q", 0, 3, 0, 10000, 0, 1, 1, START + multiply, 0, 1, 0)
    prof.write_bytes(words + f"{START:x}-{START + 0x10000:x} r-xp 00000000 08:01 4711 /gone/prog\n".encode())
    for options, named in (([], False), (["-s", str(program)], True)):
        added, converted = tmp_path / f"added{named}.fpa", tmp_path / f"converted{named}.fpa"
        run("archive", "add", str(added), str(prof), *options)
        run("convert", str(prof), *options, "-o", str(converted))
        for store in (added, converted):
            out = run("convert", str(store), "--no-symbols", "--to", "callgrind").stdout
            assert (b") work\n" in out) == named


def test_two_processes_with_other_places_of_one_program(program: Path) -> None:
    multiply, _ = places(program)
    one = Frame((), START + multiply, (str(program), START, START + 0x10000, 0))
    two = Frame((), START + 0x800 + multiply, (str(program), START + 0x800, START + 0x10800, 0))
    model, log = Model(), Log()
    batches = symbolize(profiles.stacks(model, [Sample((one,), (1,)), Sample((two,), (2,))]), model, Options(), log)
    assert [s.frames[0].lines[-1][0].name for s in profiles.samples(model, batches)] == ["work", "work"]


def test_processes_are_told_apart_in_thousands_of_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0

    class Counted(Mapping):
        @property
        def limit(self) -> int:  # type: ignore[override]
            nonlocal looked_at
            looked_at += 1
            return self[1]

    processes: list[list[Mapping]] = []

    class Symbols(Symbolizer):
        def __init__(self, mappings: Any, finder: Any) -> None:
            processes.append([])
            super().__init__(mappings, finder)

        def add(self, mappings: Any) -> None:
            processes[-1] += [Mapping(*m) for m in mappings]
            super().add([Mapping(*m) for m in mappings])

    monkeypatch.setattr("fastprof.bridges.rows.new_addresses.Mapping", Counted)
    monkeypatch.setattr("fastprof.bridges.rows.new_addresses.Symbolizer", Symbols)
    places = [random.Random(1).sample(range(2000), 2000), range(2000), [5]]
    model = Model()
    frames = []
    for process, starts in enumerate(places):
        frames += [Frame((), s << 12, (f"/gone/{process}.so", s << 12, (s + 1) << 12, 0)) for s in starts]
    frames.append(Frame((), 1 << 40, ("/gone/empty.so", 1 << 40, 1 << 40, 0)))
    rows = profiles.stacks(model, [Sample((frame,), (1,)) for frame in frames])
    assert len(list(symbolize(rows, model, Options(), Log())))
    assert [len(p) for p in processes] == [2000, 2000, 2]
    assert looked_at < 40 * len(frames)


def test_mappings_that_come_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input adds mappings, because programs are loaded at different addresses: no mapping is processed twice."""
    given: list[Mapping] = []
    add = Symbolizer.add
    monkeypatch.setattr(Symbolizer, "add", lambda self, new: (given.extend(new), add(self, new))[1])
    model = Model()
    starts = random.Random(1).sample(range(2000), 200)
    frames = [Frame((), s << 12, ("/gone/a.so", s << 12, (s + 1) << 12, 0)) for s in starts]
    log = Log()
    rows = profiles.stacks(model, [Sample((frame,), (1,)) for frame in frames], capacity=1)
    assert len(list(symbolize(rows, model, Options(), log))) == 200
    assert [m.start for m in given] == [s << 12 for s in starts]
    assert "/gone/a.so: 200 addresses without a symbol" in log.warnings[0]


def test_what_has_no_symbol_is_said_and_left_alone(tmp_path: Path) -> None:
    gone = Frame((), START + 5, (str(tmp_path / "gone.so"), START, START + 0x1000, 0))
    nowhere = Frame((), 0x55)
    named = Frame(((profiles.Fn("f", "f.c"), 3),), START + 6, (str(tmp_path / "gone.so"), START, START + 0x1000, 0))
    model, log = Model(), Log()
    samples = [Sample((named, gone, nowhere), (1,))]
    assert profiles.samples(model, symbolize(profiles.stacks(model, samples), model, Options(), log)) == samples
    assert len(log.warnings) == 3 and "some addresses have no symbols" in log.warnings[2]
    assert any("gone.so: 1 address without a symbol: " in w for w in log.warnings)
    assert "no object: 1 address without a symbol: address outside all mappings" in log.warnings


def test_a_given_file_is_checked_though_every_frame_has_its_name(tmp_path: Path) -> None:
    named = Frame(((profiles.Fn("f", "f.c"), 3),), START + 6, ("/gone.so", START, START + 0x1000, 0))
    model, options = Model(), Options(symbols=(str(tmp_path / "absent"),))
    rows = symbolize(profiles.stacks(model, [Sample((named,), (1,))]), model, options, Log())
    with pytest.raises(SymbolError, match=r"absent: No such file"):
        next(rows)
