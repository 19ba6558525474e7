"""Profiles of the Firefox Profiler against tables by an independent reader (../shared/data)."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.core.errors import FormatError
from fastprof.core.model import Model
from fastprof.core.options import Options
from tests.differential.peers import need
from tests.support.paths import CORPUS, needs_shared, shared_folder
from tests.support.product import batches, open_input

FOLDER = shared_folder("firefox/read")
FILES = sorted(FOLDER.glob("*.json*"))
# the tables' names for types of weights
TYPES = {
    "samples": "samples",
    "time": "tracing-ms",
    "size": "bytes",
    "js_alloc_space": "jsAllocations",
    "native_inuse_space": "nativeAllocations",
}
MILLION = 10**6
PLACE = 1 << 40  # libraries whose addresses the profile lacks begin here


class Sums(NamedTuple):
    stacks: Counter[tuple[str, str, str]]  # by thread name, type and stack
    cpu: Counter[str]  # by thread name
    error: str


def expected(path: Path) -> Sums:
    table = path.parent / "expected" / f"{path.name}.tsv"
    text = table.read_text() if table.exists() else gzip.open(f"{table}.gz", "rt").read()
    lines = [line.split("\t") for line in text.splitlines()]
    names = {(line[1], line[2]): line[3] for line in lines if line[0] == "thread"}
    found = Sums(Counter(), Counter(), next(("\t".join(line) for line in lines if line[0] == "error"), ""))
    for line in lines:
        if line[0] == "stack":
            found.stacks[names[line[1], line[2]], line[3], line[5]] += Fraction(line[4])  # type: ignore[assignment]
        elif line[0] == "cpu":
            found.cpu[names[line[1], line[2]]] += int(line[3])
    return found


def name_of(model: Model, frame: int, *, raw: bool) -> str:
    """In the shape of the tables, which have names of functions: for addresses in raw profiles the library and the
    relative address, in processed ones the address as the version has it."""
    mapping, low, high, _, lines = model.row("frames", frame)
    if lines:
        return model.string(model.row("functions", model.row("lines", lines)[0])[2]).decode()
    address = low | high << 32
    if not mapping:
        return f"{address:#x}"
    object_id, start_low, start_high, _, _, offset_low, offset_high, _ = model.row("mappings", mapping)
    start = start_low | start_high << 32
    if start < PLACE and not raw:
        return f"{address:#x}"
    relative = address - start + (offset_low | offset_high << 32)
    library = os.path.basename(model.string(model.row("objects", object_id)[0]).decode())
    return f"{library}+{relative:#x}" if raw else f"{relative:#x}"


def ours(path: Path) -> Sums:
    opened = open_input(str(path), Options(symbolize=False), from_="firefox")
    model: Model = opened.model
    found = Sums(Counter(), Counter(), "")
    for batch in batches(opened):
        part = model.parts[batch.part]
        names = {(pid, tid): name.decode() for pid, tid, name in part.extra.get("thread_names", [])}
        for i in range(len(batch)):
            thread = names.get(model.row("threads", batch["thread"][i])[1:3], "")
            frames: list[str] = []
            stack: int = batch["stack"][i]
            while stack:
                stack, frame = model.row("stacks", stack)
                frames.append(name_of(model, frame, raw="gecko" in path.name))
            text = ";".join(reversed(frames)) or "-"
            for k, type_ in enumerate(part.value_types):
                value: Any = batch.values(k)[i]
                if type_.name in ("cpu", "cpu_cycles"):
                    found.cpu[thread] += value
                elif type_.name in TYPES:
                    value = Fraction(value, MILLION) if type_.name == "time" else value
                    found.stacks[thread, TYPES[type_.name], text] += value
    return found


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sums_of_stacks(path: Path) -> None:
    wanted = expected(path)
    if wanted.error:
        with pytest.raises(FormatError) as error:
            ours(path)
        assert error.value.offset is not None
        return
    found = ours(path)
    assert +found.stacks == +wanted.stacks
    assert found.stacks or path.name == "edge-no-threads.json"
    if "samply" in path.name:  # its microseconds become nanoseconds
        wanted.cpu.update({name: 999 * value for name, value in wanted.cpu.items()})
    assert +found.cpu == +wanted.cpu


@pytest.mark.parametrize(("pie", "base"), [("-pie", 0), ("-no-pie", 0x400000)])
@pytest.mark.parametrize("place", [{}, {"start": 0x7000_0000_0000, "end": 0x7000_0100_0000, "offset": 0x1000}])
def test_addresses_count_from_the_base_of_a_library(pie: str, base: int, place: dict[str, int], tmp_path: Path) -> None:
    source, program, file = tmp_path / "a.c", tmp_path / "a", tmp_path / "in.json"
    source.write_text("int work(void) { return 1; }\nint main(void) { return work(); }\n")
    subprocess.run([need("gcc"), "-g", pie, str(source), "-o", str(program)], check=True)
    symbols = subprocess.run([need("nm"), str(program)], capture_output=True, text=True, check=True).stdout
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T work")) - base
    text = (CORPUS / "firefox/good/version-41.json").read_text()
    profile = json.loads(text.replace("4660", str(address)).replace("0x1234", f"{address:#x}"))
    profile["libs"][0] |= {"path": str(program), "breakpadId": "", **place}
    file.write_text(json.dumps(profile))
    found = fastprof.top(file, n=0).rows
    assert [(row.file, row.line) for row in found if row.name == "work"] == [(str(source), 1)]
