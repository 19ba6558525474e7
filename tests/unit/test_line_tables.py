"""The begins of functions in programs of real compilers; and line tables as shown by readelf and llvm-dwarfdump."""

from __future__ import annotations

import itertools
import json
import posixpath
import re
import subprocess
from pathlib import Path

import pytest

from fastprof.core._c import lib
from fastprof.formats.xray.map import InstrumentationMap
from fastprof.symbols.dwarf import LineTables
from fastprof.symbols.elf import ElfFile
from fastprof.symbols.objects import ElfObject
from tests.differential.peers import need

# A function begins in the line with its name in a comment.
SOURCE = """
#include <cstdlib>
static inline int twice(int x) { return x + x; }
struct Shape {
  int sides;
  explicit Shape(int n);
  int area(int k) const;
};
Shape::Shape(int n) : sides(twice(n)) {} // Shape::Shape
int Shape::area(int k) const { // Shape::area
  return twice(sides) * k;
}
namespace {
__attribute__((noinline)) int hidden(int x) { return twice(x) * 3; } // hidden
}
__attribute__((noinline)) int loop(int n) { // loop
  int sum = 0;
  for (int i = 0; i < n; i++) sum += hidden(i) ^ sum << 1;
  return sum;
}
__attribute__((noinline)) int tail(int n) { return loop(n + 1); } // tail
__attribute__((noinline)) void never(int n) { std::exit(twice(n)); } // never
template <class T> __attribute__((noinline)) T pick(T a, T b) { return a < b ? twice(a) : b; } // pick
#line 700 "other/place.h"
__attribute__((noinline)) int elsewhere(int n) { return twice(n) - 1; } // elsewhere
int main(int argc, char **) { // main
  Shape s(argc);
  if (argc > 9) never(argc);
  return s.area(argc) + tail(argc) + pick(argc, 3) + elsewhere(argc) & 1;
}
"""
FUNCTIONS: dict[str, tuple[str, int, int]] = {}  # file, first and last line
LINES = SOURCE.splitlines()
MOVED = LINES.index('#line 700 "other/place.h"')
for at, text in enumerate(LINES):
    if name := re.search(r" // ([\w:]+)$", text):
        last = at if "}" in text else LINES.index("}", at)
        file, shift = ("other/place.h", 699 - MOVED) if at > MOVED else ("s.cpp", 1)
        FUNCTIONS[name[1]] = (file, at + shift, last + shift)


# The standard library's generic code is inlined many levels deep.
RUST = """
use std::collections::HashMap;
#[inline(always)]
fn twice(x: u64) -> u64 { x.wrapping_mul(2) }
#[inline(never)]
fn area(sides: &[u64], k: u64) -> u64 { sides.iter().map(|s| twice(*s) * k).filter(|a| a % 3 != 0).sum() }
#[inline(never)]
fn words(text: &str) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for word in text.split_whitespace() { *found.entry(word.to_lowercase()).or_insert(0) += 1; }
    found
}
fn main() {
    let sides: Vec<u64> = (0..std::env::args().count() as u64 + 9).collect();
    println!("{} {}", area(&sides, 3), words("a b a c").len());
}
"""
GO = """
package main

import ("fmt"; "os"; "sort"; "strings")

func twice(x int) int { return x + x }

func main() {
	words := strings.Fields(strings.Join(os.Args, " "))
	sort.Slice(words, func(i, j int) bool { return len(words[i]) < twice(len(words[j])) })
	fmt.Println(len(words), twice(len(words)))
}
"""


def build(folder: Path, compiler: str, *options: str) -> Path:
    source, text = {"rustc": ("s.rs", RUST), "go": ("s.go", GO)}.get(compiler, ("s.cpp", SOURCE))
    (folder / source).write_text(text)
    quiet = {"rustc": ["-Awarnings"], "go": []}.get(compiler, ["-w"])
    subprocess.run([need(compiler), *options, *quiet, "-o", "s", source], cwd=folder, check=True, capture_output=True)
    return folder / "s"


def short(name: str) -> str:
    return re.sub(r"\(anonymous namespace\)::|\(.*|<.*", "", name.removeprefix("int "))


def checked(functions: dict[str, tuple[str, int]], folder: Path, exactly: bool) -> None:
    """Each function is in its file and line; if no line is recorded, in a line between its braces."""
    found = {short(name): place for name, place in functions.items() if short(name) in FUNCTIONS}
    assert found.keys() == FUNCTIONS.keys()
    for name, (file, line) in found.items():
        expected, first, last = FUNCTIONS[name]
        assert (name, file.removeprefix(f"{folder}/")) == (name, expected)
        assert (name, first) <= (name, line) <= (name, first if exactly else last)


DEBUG = ["-g", "-g1", "-gline-tables-only"]


@pytest.mark.parametrize(("level", "debug"), [*itertools.product(["-O0", "-O1", "-O2", "-O3"], DEBUG)])
@pytest.mark.parametrize("compiler", ["clang++-14", "clang++-19"])
def test_xray_functions_have_their_lines(tmp_path: Path, compiler: str, level: str, debug: str) -> None:
    xray = ("-fxray-instrument", "-fxray-instruction-threshold=1")
    one = InstrumentationMap.load(build(tmp_path, compiler, level, debug, *xray))
    functions = [f for f in one.lookup_many(range(1, one.ids + 1)) if f]
    assert len(functions) == one.ids
    checked({f.name: (f.file, f.line) for f in functions}, tmp_path, level == "-O0" or debug == "-g")
    kinds = {short(f.name): f.sleds for f in functions}
    assert kinds["main"] == 0b11
    if level != "-O1":  # here some compilers make tail calls
        assert kinds["tail"] == (0b11 if level == "-O0" else 0b101)


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        ("g++", ("-O2", "-g", "-gdwarf-2")),
        ("g++", ("-O1", "-g", "-gdwarf-3", "-ffunction-sections")),
        ("g++", ("-O3", "-g", "-gdwarf-4", "-gz=zlib")),
        ("g++", ("-O2", "-g1", "-gz=zlib-gnu", "-gdwarf-4")),
        ("g++", ("-O2", "-g", "-gdwarf-5", "-gno-as-loc-support")),
        ("g++", ("-Os", "-g")),
        ("clang++-19", ("-O2", "-g", "-gdwarf-2")),
        ("clang++-19", ("-O2", "-g", "-gdwarf64")),
        ("clang++-19", ("-O1", "-g", "-gdwarf-4", "-gsplit-dwarf")),
        ("clang++-19", ("-O2", "-g", "-gsplit-dwarf")),
    ],
)
def test_functions_of_other_builds_have_their_lines(tmp_path: Path, compiler: str, options: tuple[str, ...]) -> None:
    elf = ElfObject(build(tmp_path, compiler, *options))
    names = subprocess.run([need("nm"), "-C", elf.path], capture_output=True, text=True, check=True).stdout
    addresses = [int(line.split()[0], 16) for line in names.splitlines() if re.match(r"[0-9a-f]+ [TtWw] ", line)]
    symbols = [symbol for symbol in elf.entries(addresses) if symbol]
    checked(
        {symbol.name: (symbol.file, symbol.line) for symbol in symbols if ".cold" not in symbol.name}, tmp_path, True
    )


def dumped_rows(path: Path) -> list[tuple[int, int, str, bool]]:
    """(address, line, file name, whether it ends a sequence) of each row as shown by llvm-dwarfdump."""
    text = subprocess.run(
        [need("llvm-dwarfdump-19"), "--debug-line", str(path)], capture_output=True, text=True, check=True
    )
    rows, files = [], {}
    for line in text.stdout.splitlines():
        if line.startswith("debug_line["):
            files = {}
        elif entry := re.match(r"file_names\[ *(\d+)\]:", line):
            number = int(entry[1])
        elif name := re.match(r" +name: \"(.*)\"", line):
            files[number] = name[1]
        elif row := re.match(r"0x([0-9a-f]{8,}) +(\d+) +\d+ +(\d+) .*", line):
            rows.append((int(row[1], 16), int(row[2]), files.get(int(row[3]), ""), "end_sequence" in line))
    return rows


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        ("g++", ("-O2", "-g", "-gdwarf-2")),
        ("g++", ("-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections")),
        ("clang++-19", ("-O2", "-g", "-gdwarf-4", "-ffunction-sections")),
        ("clang++-19", ("-O3", "-g", "-gz=zstd")),
        ("clang++-19", ("-O2", "-g", "-gdwarf64")),
    ],
)
def test_every_row_is_as_llvm_dwarfdump_shows_it(tmp_path: Path, compiler: str, options: tuple[str, ...]) -> None:
    path = build(tmp_path, compiler, *options)
    rows = dumped_rows(path)
    tables = LineTables(ElfFile(path))
    stats = lib.fp_dwarf_lines_stats(tables._lines)
    assert stats.damaged == 0
    assert stats.rows == sum(not end for *_, end in rows) > 30
    left_out = False
    for (address, line, name, end), (after, *_) in itertools.pairwise([(0, 0, "", True), *rows]):
        if end:
            left_out = after == 0  # by the linker
        if end or left_out or after <= address:
            continue  # of several rows at an address, the last one applies
        for asked in (address, after - 1):
            file, found = tables.find(asked)
            assert (found, file.rpartition("/")[2]) == (line, name.rpartition("/")[2]), hex(asked)


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        ("g++", ("-O3", "-g", "-gdwarf-2")),
        ("g++", ("-O2", "-g", "-gdwarf-4", "-ffunction-sections", "-Wl,--gc-sections")),
        ("g++", ("-O2", "-g", "-flto")),
        ("g++", ("-Os", "-g", "-gz=zlib")),
        ("clang++-14", ("-O2", "-g1")),
        ("clang++-19", ("-O3", "-g", "-ffunction-sections", "-Wl,--gc-sections")),
        ("clang++-19", ("-O2", "-g", "-gdwarf-4", "-gdwarf64")),
        ("clang++-19", ("-O1", "-gline-tables-only")),
        ("clang++-19", ("-O2", "-g", "-fdebug-info-for-profiling")),
        ("rustc", ("-O", "-g")),
        ("rustc", ("-Copt-level=0", "-g")),
        ("go", ("build",)),
    ],
)
def test_inlined_functions_are_those_of_llvm_symbolizer(
    tmp_path: Path, compiler: str, options: tuple[str, ...]
) -> None:
    """At every address of the program (Rust and Go: at some), with the files and lines of the calls."""
    path = build(tmp_path, compiler, *options)
    tables, elf = LineTables(ElfFile(path)), ElfFile(path)
    text = elf.section(".text")
    assert text is not None
    # most of a program in Rust or Go is the standard library
    addresses = range(text.address, text.address + text.size, 97 if compiler in ("rustc", "go") else 1)
    command = [need("llvm-symbolizer-19"), f"--obj={path}", "--output-style=JSON", "--no-demangle", "--inlines"]
    asked = subprocess.run(command, input="\n".join(map(hex, addresses)), capture_output=True, text=True, check=True)
    deepest = 0
    discriminators = set()
    places = ElfObject(path).places(addresses)
    for address, answer, place in zip(addresses, asked.stdout.splitlines(), places, strict=True):
        told = [(frame["StartLine"], frame["Line"], frame["Discriminator"]) for frame in json.loads(answer)["Symbol"]]
        if place:
            assert [one[1:4] for one in place] == told, hex(address)
            discriminators.update(one.discriminator for one in place)
        expected = [
            (frame["FunctionName"], posixpath.normpath(frame["FileName"]) if frame["Line"] else "", frame["Line"])
            for frame in json.loads(answer)["Symbol"]
        ]
        found = [(frame.name, frame.file if frame.line else "", frame.line) for frame in tables.chain(address)]
        if found:  # the name of the function around them comes from the symbol table
            assert (found[:-1], found[-1][1:]) == (expected[:-1], expected[-1][1:]), hex(address)
        assert found or len(expected) <= 1, hex(address)
        deepest = max(deepest, len(found))
    assert deepest >= 2
    assert len(discriminators) > 1 or "-fdebug-info-for-profiling" not in options
    assert not tables.has_damaged_units


def test_damaged_debug_information_is_noted(tmp_path: Path) -> None:
    path = build(tmp_path, "g++", "-O1", "-g", "-gdwarf-4")
    whole = ElfObject(path)
    section, text = whole.section(".debug_abbrev"), whole.section(".text")
    assert section and text
    addresses = range(text.address, text.address + text.size)
    expected = whole.lookup_many(addresses)
    assert whole.note == ""
    data = bytearray(path.read_bytes())
    data[section.offset : section.offset + section.size] = b"\xff" * section.size
    path.write_bytes(data)
    damaged = ElfObject(path)
    found = damaged.lookup_many(addresses)
    assert damaged.note == "damaged units in its debug information"
    assert [chain[-1].name for chain in found if chain] == [chain[-1].name for chain in expected if chain]
    assert max(map(len, found)) == 1 < max(map(len, expected))
