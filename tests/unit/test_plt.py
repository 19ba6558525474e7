"""Names of stubs in procedure linkage tables, of symbols without size, and of addresses with several names."""

from __future__ import annotations

import random
import struct
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from fastprof.symbols.demangle import demangle
from fastprof.symbols.objects import ElfObject
from tests.differential.peers import need
from tests.support.elf import ElfSection, ElfSymbol, elf_file
from tests.support.paths import CORPUS

FOLDER = CORPUS / "plt"
FILES = sorted(FOLDER.glob("*.so"))
AT = 0x400000


def test_all_files_are_there() -> None:
    assert {path.name for path in FILES} == {*expected()}


def expected() -> dict[str, dict[int, str]]:
    stubs: dict[str, dict[int, str]] = defaultdict(dict)
    for line in (FOLDER / "expected.tsv").read_text().splitlines():
        file, start, name = line.split("\t")
        stubs[file][int(start, 16)] = name
    return stubs


def name_of(elf: ElfObject, address: int) -> str:
    chain = elf.lookup(address)
    return chain[0].system_name if chain else ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stubs_are_those_of_objdump(path: Path) -> None:
    elf, stubs = ElfObject(path), expected()[path.name]
    tables = [s for s in elf.sections if s.name.startswith((".plt", ".iplt"))]
    found = {}
    for table in tables:
        for address in range(table.address, table.address + table.size):
            name = name_of(elf, address)
            extent = elf.extent(address)
            assert extent and extent[0] <= address < extent[1]
            if name == table.name:  # the first entry, or what follows the last
                assert not any(extent[0] <= start < extent[1] for start in stubs)
            else:
                assert extent[1] - extent[0] <= 32
                found[extent[0]] = name
    assert found == stubs
    assert not elf.note


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_damaged_objects_give_an_answer(path: Path, tmp_path: Path) -> None:
    good, rng, damaged = path.read_bytes(), random.Random(path.name), tmp_path / "damaged.so"
    tables = [s for s in ElfObject(path).sections if s.name.startswith((".plt", ".iplt"))]
    addresses = [table.address + at for table in tables for at in range(0, table.size, 4)]
    (headers,) = struct.unpack_from("<Q", good, 40) if good[4] == 2 else struct.unpack_from("<I", good, 32)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            # most section headers matter here
            at = rng.randrange(headers, len(bad)) if rng.random() < 0.7 else rng.randrange(len(bad))
            bad[at] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        damaged.write_bytes(bad[: rng.choice((len(bad), rng.randrange(len(bad))))])
        elf = ElfObject(damaged)
        for chain in elf.lookup_many(addresses):
            assert len(chain) <= 1


def test_tables_that_overlap_are_not_read_again_and_again(tmp_path: Path) -> None:
    """Each of 2,000 sections has all bytes of a file of 1 MB: 2 GB of stubs."""
    sections = [ElfSection(".plt", AT, 64, 1 << 20) for _ in range(2000)]
    path = tmp_path / "program"
    path.write_bytes(elf_file(sections, [ElfSymbol("main", AT, 1)]))
    elf = ElfObject(path)
    assert name_of(elf, AT) == "main"
    assert name_of(elf, AT + 100) == ".plt"
    assert elf.note.startswith("its procedure linkage table cannot be read: ")
    assert elf.note.endswith(": more than 16 MiB of stubs")


def test_a_symbol_without_size_ends_with_its_section(tmp_path: Path) -> None:
    """`_init` had the names of all stubs after it, and the last symbol of .text those of the next section."""
    sections = [
        ElfSection(".init", AT, 64, 16),
        ElfSection(".stubs", AT + 16, 80, 64),
        ElfSection(".text", AT + 80, 144, 64),
        ElfSection(".fini", AT + 144, 208, 64),
    ]
    symbols = [
        ElfSymbol("_init", AT, 1),
        ElfSymbol("label", AT + 80, 3, 0x10),
        ElfSymbol("next", AT + 96, 3, 0x10),
        ElfSymbol("etext", AT + 144, 3, 0x10),
    ]
    made = bytearray(elf_file(sections, symbols))
    (headers,) = struct.unpack_from("<Q", made, 0x28)
    (table,) = struct.unpack_from("<Q", made, headers + 5 * 64 + 0x18)
    for i in range(len(symbols)):
        struct.pack_into("<Q", made, table + 24 * (i + 1) + 16, 0)
    path = tmp_path / "program"
    path.write_bytes(made)
    elf = ElfObject(path)
    runs = [(AT, 16, "_init"), (AT + 16, 64, ""), (AT + 80, 16, "label"), (AT + 96, 48, "next"), (AT + 144, 64, "")]
    for start, size, name in runs:
        assert {name_of(elf, address) for address in range(start, start + size)} == {name}
        assert elf.extent(start) == ((start, start + size) if name else None)


def test_a_label_inside_a_function_is_not_a_function(tmp_path: Path) -> None:
    """As V8's `construct_stub_invoke_deopt_addr`; the kernel has global ones, which perf shows."""
    sections = [ElfSection(".text", AT, 64, 64)]
    symbols = [
        ElfSymbol("function", AT, 1),
        ElfSymbol("inside", AT + 8, 1, 0),
        ElfSymbol("entry", AT + 16, 1, 0x10),
        ElfSymbol("after", AT + 32, 1, 0),
    ]
    made = bytearray(elf_file(sections, symbols))
    (headers,) = struct.unpack_from("<Q", made, 0x28)
    (table,) = struct.unpack_from("<Q", made, headers + 2 * 64 + 0x18)
    for i, size in enumerate((32, 0, 0, 0), 1):
        struct.pack_into("<Q", made, table + 24 * i + 16, size)
    path = tmp_path / "program"
    path.write_bytes(made)
    elf = ElfObject(path)
    for start, size, name in [(0, 16, "function"), (16, 16, "entry"), (32, 32, "after")]:
        assert {name_of(elf, AT + address) for address in range(start, start + size)} == {name}


ALIASES = """
#define SPIN(n) int n(int k){volatile int s=0; for(int i=0;i<k;i++) s+=i; return s;}
#define A(a,b) extern __typeof(a) b __attribute__((alias(#a)));
#define W(a,b) extern __typeof(a) b __attribute__((weak,alias(#a)));
#define L(a,b) static __typeof(a) b __attribute__((alias(#a),used));
SPIN(__one) W(__one,one)
SPIN(two) A(two,__two)
SPIN(three) A(three,three_long)
SPIN(_four) L(_four,four)
static SPIN(__five) L(__five,five)
extern __typeof(__five) weak_five __attribute__((weak,alias("__five")));
SPIN(six) A(six,six_) W(six,sixweaklong)
SPIN(abc) A(abc,xyz)
SPIN(_under) A(_under,longer_name)
int main(void){int k=20000000; return (__one(k)+two(k)+three(k)+_four(k)+__five(k)+six(k)+abc(k)+_under(k))&1;}
"""
SHOWN = {"__one", "two", "three_long", "_four", "five", "six_", "abc", "longer_name"}  # by perf script of Linux 6.1


@pytest.fixture(scope="module")
def aliases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aliases")
    (folder / "a.c").write_text(ALIASES)
    command = [need("gcc"), "-O1", "-fno-inline", "-fno-ipa-cp", "a.c", "-o", "a"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "a"


def test_the_name_that_perf_shows(aliases: Path) -> None:
    """Not weak, global, few underscores in front, long."""
    elf = ElfObject(aliases)
    nm = subprocess.run([need("nm"), aliases], capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in nm.splitlines() if len(line.split()) == 3]
    for name in SHOWN:
        (start,) = (int(address, 16) for address, _, symbol in symbols if symbol == name)
        others = [symbol for address, _, symbol in symbols if int(address, 16) == start]
        assert len(others) > 1
        assert name_of(elf, start + 1) == name, others


def test_names_with_suffixes_are_demangled() -> None:
    assert demangle("_ZNSolsEi@plt", "templates") == "std::ostream::operator<<@plt"
    assert demangle("_RNvC6_123foo3bar@plt") == "123foo::bar@plt"
    assert demangle("_D3std5stdio7writelnFZv@plt") == "std.stdio.writeln@plt"
    assert demangle("_ZNSolsEi@@GLIBCXX_3.4") == "std::ostream::operator<<(int)@@GLIBCXX_3.4"
    assert demangle("?f@@YAHXZ") == "int __cdecl f(void)"
    assert demangle("__libc_start@plt") == "__libc_start@plt"
