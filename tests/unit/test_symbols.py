"""Names, ELF objects and mappings, against llvm-symbolizer on programs built here."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import SymbolError
from fastprof.symbols.demangle import demangle
from fastprof.symbols.elf import ET_EXEC
from fastprof.symbols.file_cache import FileCache
from fastprof.symbols.finder import Finder, own_vdso
from fastprof.symbols.mappings import Mapping, Mappings
from fastprof.symbols.objects import ElfObject, cached_object
from fastprof.symbols.symbol import Symbol
from fastprof.symbols.symbolizer import Symbolizer
from tests.differential.peers import need
from tests.support.paths import NO_SHARED, shared
from tests.support.xraylog import FdrLog

SOURCE = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
#include <cstdio>
namespace { int hidden(int x) { return x * 3 + 1; }
struct Local { template <class T> T twice(T v) { return v + v; }
  int operator()(int a) const { return a * 7; } operator bool() const { return true; } }; }
namespace shop {
struct Item { std::string name; double price; bool operator<(const Item &o) const { return price < o.price; } };
template <class K, class V> struct Cache { std::unordered_map<K, V> m;
  const V &get(const K &k, const std::function<V(const K &)> &f) {
    auto it = m.find(k); return it != m.end() ? it->second : m.emplace(k, f(k)).first->second; } }; }
static int (*pick(int k))(int) { return k ? hidden : nullptr; }
__attribute__((noinline)) double total(std::vector<shop::Item> v) {
  std::sort(v.begin(), v.end()); double s = 0;
  for (auto &i : v) { if (i.price < 0) throw std::runtime_error("negative " + i.name); s += i.price; } return s; }
int main(int argc, char **) {
  shop::Cache<std::string, int> c; std::map<int, std::string> m; std::vector<shop::Item> v;
  for (int i = 0; i < argc * 10; i++) { m[i % 7] += std::to_string(i); v.push_back({m[i % 7], double(i * 37 % 11)});
    c.get(m[i % 7], [&](const std::string &s) { return int(s.size()) + Local()(i); }); }
  try { std::printf("%f %d %d\n", total(v), pick(argc)(3), Local().twice(argc)); }
  catch (const std::exception &e) { std::puts(e.what()); }
  std::stable_sort(v.begin(), v.end(), [](auto &a, auto &b) { return a.name < b.name; });
  return int(v.size()) + (Local() ? 1 : 0); }
"""
BUILDS = {
    "clang-pie": ("clang++-19", "-O2", "-g", "-fPIE", "-pie"),
    "clang-dwarf4-fixed": ("clang++-19", "-O2", "-g", "-gdwarf-4", "-fno-pie", "-no-pie"),
    "clang-g1": ("clang++-19", "-O2", "-g1", "-fPIE", "-pie"),
    "clang-split": ("clang++-19", "-O2", "-g", "-gsplit-dwarf", "-fPIE", "-pie"),
    "gcc-fixed": ("g++", "-O2", "-g", "-fno-pie", "-no-pie"),
    "gcc-dwarf2-compressed": ("g++", "-O2", "-g", "-gdwarf-2", "-gz=zlib", "-Wl,--build-id"),
    "gcc-shared-prelinked": ("g++", "-O2", "-g", "-fPIC", "-shared", "-Wl,-Ttext-segment=0x3000000000"),
    "gcc-gold-split-4": ("g++", "-O1", "-g", "-gdwarf-4", "-gsplit-dwarf", "-fuse-ld=gold"),
}


class Programs(dict[str, Path]):
    """The programs by name, each built on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "program.cpp").write_text(SOURCE)

    def __missing__(self, name: str) -> Path:
        compiler, *options = BUILDS[name]
        command = [need(compiler), *options, "-w", "-Wl,--build-id=sha1", "program.cpp", "-o", name]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        self[name] = self.folder / name
        return self[name]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


def code_addresses(path: Path, count: int = 10_000) -> list[int]:
    text = ElfObject(path).section(".text")
    assert text is not None
    return random.Random(7).choices(range(text.address, text.address + text.size), k=count)


def llvm_chains(path: Path, addresses: list[int]) -> list[list[tuple[str, str, int]]]:
    """The output of llvm-symbolizer, with `..` removed from file names."""
    tool = need("llvm-symbolizer-19", "llvm-symbolizer")
    questions = "".join(f"{address:#x}\n" for address in addresses)
    command = [tool, f"--obj={path}", "--output-style=JSON"]
    lines = subprocess.run(command, input=questions, check=True, capture_output=True, text=True).stdout.splitlines()
    chains = []
    for line in lines:
        frames = [f for f in json.loads(line)["Symbol"] if f["FunctionName"]]
        chains.append([place(f["FunctionName"], f["FileName"], f["Line"]) for f in frames])
    return chains


def place(name: str, file: str, line: int) -> tuple[str, str, int]:
    return name, os.path.normpath(file) if line else "", line


def chains_of(symbols: list[tuple[Symbol, ...]]) -> list[list[tuple[str, str, int]]]:
    return [[place(s.name, s.file, s.line) for s in chain] for chain in symbols]


def share_equal(mine: Sequence[object], theirs: Sequence[object]) -> float:
    assert len(mine) == len(theirs)
    return sum(a == b for a, b in zip(mine, theirs, strict=True)) / len(mine)


@pytest.mark.parametrize("name", BUILDS)
def test_same_chains_as_llvm_symbolizer(built: dict[str, Path], name: str) -> None:
    addresses = code_addresses(built[name], 3000)
    mine = chains_of(ElfObject(built[name]).lookup_many(addresses))
    theirs = llvm_chains(built[name], addresses)
    assert [chain[-1][0] if chain else "" for chain in mine] == [chain[-1][0] if chain else "" for chain in theirs]
    assert share_equal(mine, theirs) >= 0.98
    assert max(map(len, mine)) > 5  # there are inlined functions


@pytest.mark.parametrize("how", ["debuglink", "dot-debug", "build-id"])
@pytest.mark.parametrize("name", ["clang-pie", "gcc-fixed"])
def test_stripped_with_debug_file_equals_unstripped(
    built: dict[str, Path], tmp_path: Path, name: str, how: str
) -> None:
    whole = ElfObject(built[name])
    debug = {
        "debuglink": tmp_path / "x.debug",
        "dot-debug": tmp_path / ".debug" / "x.debug",
        "build-id": tmp_path / "dbg" / ".build-id" / whole.build_id[:2] / (whole.build_id[2:] + ".debug"),
    }[how]
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", built[name], debug], check=True)
    link = [] if how == "build-id" else [f"--add-gnu-debuglink={debug}"]
    subprocess.run(["objcopy", "--strip-all", *link, str(built[name]), str(tmp_path / "x")], check=True)
    addresses = code_addresses(built[name], 2000)
    stripped = ElfObject(tmp_path / "x", debug_dirs=[str(tmp_path / "dbg")])
    assert stripped.lookup_many(addresses) == whole.lookup_many(addresses)
    assert stripped.reason == ""


def test_debuglink_with_wrong_checksum_is_not_used(built: dict[str, Path], tmp_path: Path) -> None:
    debug = tmp_path / "x.debug"
    subprocess.run(["objcopy", "--only-keep-debug", built["gcc-fixed"], debug], check=True)
    program, copy = str(built["gcc-fixed"]), str(tmp_path / "x")
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program, copy], check=True)
    debug.write_bytes(debug.read_bytes() + b"\0")
    chain = ElfObject(tmp_path / "x", debug_dirs=()).lookup(code_addresses(built["gcc-fixed"], 1)[0])
    assert all(symbol.line == 0 for symbol in chain)


def test_old_versions_of_a_symbol_give_no_name_if_there_is_another(tmp_path: Path) -> None:
    """Like glibc's free, whose other name cfree@GLIBC_2.2.5 is last in the table."""
    source, versions, library = (tmp_path / name for name in ("v.c", "v.map", "v.so"))
    source.write_text(
        "int f(int x) { return x + 1; }\n"
        'int a(int) __attribute__((alias("f"))), z(int) __attribute__((alias("f")));\n'
        "int g(int x) { return x * 3; }\n"
        '__asm__(".symver a, af@V1; .symver z, zf@V1; .symver g, g@@@V2");\n'
    )
    versions.write_text("V1 { local: a; z; }; V2 { global: f; } V1;")
    command = [need("gcc"), "-shared", "-fPIC", f"-Wl,--version-script={versions}", source, "-o", library]
    subprocess.run(command, check=True)
    listed = subprocess.check_output([need("nm"), library], text=True)
    at = {name: int(address, 16) for address, name in re.findall(r"^(\w+) . (\S+)$", listed, re.MULTILINE)}
    assert at["zf@V1"] == at["af@V1"] == at["f"]
    elf = ElfObject(library, debug_dirs=())
    assert elf.lookup(at["f"])[0].name in ("f", "a", "z")
    assert elf.lookup(at["g@@V2"])[0].name == "g@@V2"
    subprocess.run([need("strip"), library], check=True)
    listed = subprocess.check_output([need("nm"), "-D", library], text=True)
    assert re.search(r"^0+ A V1$", listed, re.MULTILINE)
    before = ElfObject(library, debug_dirs=()).lookup_many(range(min(at["f"], at["g@@V2"])))
    assert "V1" not in {chain[0].name for chain in before if chain}  # a version's name is not an address


def test_addresses_outside_of_functions_have_no_name(built: dict[str, Path]) -> None:
    elf = ElfObject(built["clang-pie"])
    assert elf.lookup_many([0, 1, 1 << 40, (1 << 64) - 1]) == [(), (), (), ()]


def test_why_nothing_is_resolved(tmp_path: Path, built: dict[str, Path]) -> None:
    (tmp_path / "text").write_text("no elf")
    (tmp_path / "empty").touch()
    (tmp_path / "cut").write_bytes(built["clang-pie"].read_bytes()[:100])
    assert ElfObject(tmp_path / "none").reason == "No such file or directory"
    assert ElfObject(tmp_path / "text").reason == "not an ELF file"
    assert ElfObject(tmp_path / "empty").reason == "empty file"
    assert ElfObject(tmp_path / "cut").reason.startswith("damaged ELF file")
    assert "wrong build id" in ElfObject(built["clang-pie"], expect_build_id="00ff").reason


@pytest.mark.parametrize("table", [".symtab", ".strtab", ".shstrtab"])
def test_a_table_past_the_end_of_the_file_is_said(built: dict[str, Path], tmp_path: Path, table: str) -> None:
    whole = ElfObject(built["clang-pie"])
    data = bytearray(built["clang-pie"].read_bytes())
    section = whole.section(table)
    assert section is not None
    at = data.index(struct.pack("<QQ", section.offset, section.size), int.from_bytes(data[40:48], "little"))
    data[at + 8 : at + 16] = struct.pack("<Q", 1 << 40)
    (tmp_path / "x").write_bytes(data)
    reason = ElfObject(tmp_path / "x").reason
    assert reason.startswith("damaged ELF file: section ") and "1099511627776 bytes extend past the end" in reason
    with pytest.raises(SymbolError, match="extend past the end of the file"):
        Symbolizer([Mapping(1, 2, 0, "/x")], Finder(symbols=[tmp_path / "x"]))


def test_a_process_keeps_what_it_has_read(built: dict[str, Path], tmp_path: Path) -> None:
    shutil.copy(built["clang-pie"], tmp_path / "x")
    first = cached_object(tmp_path / "x")
    assert cached_object(tmp_path / "x") is first
    assert cached_object(tmp_path / "x", demangle="none") is not first
    shutil.copy(built["gcc-fixed"], tmp_path / "y")
    (tmp_path / "y").replace(tmp_path / "x")
    assert cached_object(tmp_path / "x").kind == ET_EXEC  # the current file
    (tmp_path / "x").unlink()
    assert cached_object(tmp_path / "x").reason == "No such file or directory"


def test_as_many_objects_are_kept_as_was_said(tmp_path: Path) -> None:
    kept = FileCache[str](2)
    for name in "abc":
        (tmp_path / name).touch()
    for asked, made in zip("abacab", "abacxb", strict=False):
        kept.get(tmp_path / asked, None, lambda made=made: made)  # type: ignore[misc]
    assert [kept.get(tmp_path / name, None, lambda: "new") for name in "ab"] == ["a", "b"]
    assert kept.get(tmp_path / "c", None, lambda: "new") == "new"


@pytest.mark.parametrize("seed", range(40))
def test_damaged_files_give_a_reason_or_an_answer(built: dict[str, Path], tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(built["gcc-dwarf2-compressed"].read_bytes())
    headers = int.from_bytes(data[40:48], "little")  # e_shoff
    for _ in range(8):
        data[rng.choice([rng.randrange(4, 64), rng.randrange(64, 800), rng.randrange(headers, len(data))])] ^= (
            1 << rng.randrange(8)
        )
    path = tmp_path / "x"
    path.write_bytes(data)
    elf = ElfObject(path, debug_dirs=())
    answers = elf.lookup_many(code_addresses(built["gcc-dwarf2-compressed"], 50))
    assert len(answers) == 50
    assert elf.reason == "" or not any(answers)


def test_shape_of_an_object(built: dict[str, Path]) -> None:
    elf = ElfObject(built["gcc-fixed"])
    assert (elf.machine, elf.bits, elf.order, elf.kind) == (62, 64, "<", ET_EXEC)
    assert len(elf.build_id) == 40
    assert elf.file_to_link(elf.segments[1].offset + 5) == elf.segments[1].address + 5
    assert elf.file_to_link(1 << 40) is None


# ---- run-time addresses


def code_mapping(path: Path, start: int = 0x7F0000000000) -> tuple[Mapping, int]:
    """A mapping of the code segment like the kernel's, and run-time minus link-time address."""
    elf = ElfObject(path)
    code = next(s for s in elf.segments if s.executable)
    page = code.offset & ~0xFFF
    limit = start + ((code.offset + code.file_size - page + 0xFFF) & ~0xFFF)
    return Mapping(start, limit, page, str(path), elf.build_id), start + (code.offset - page) - code.address


@pytest.mark.parametrize("name", ["clang-pie", "gcc-shared-prelinked", "gcc-gold-split-4"])
def test_runtime_addresses_of_moved_objects(built: dict[str, Path], name: str) -> None:
    mapping, bias = code_mapping(built[name])
    addresses = code_addresses(built[name], 500)
    found = Symbolizer([mapping]).resolve([a + bias for a in addresses])
    assert found == ElfObject(built[name]).lookup_many(addresses)


def test_fixed_programs_whatever_the_mapping_says(built: dict[str, Path]) -> None:
    path = built["gcc-fixed"]
    addresses = code_addresses(path, 300)
    expected = ElfObject(path).lookup_many(addresses)
    for mapping in (
        Mapping(0x400000, 0x500000, 0, str(path)),
        Mapping(0x401000, 0x500000, 0x1000, str(path)),
        Mapping(0x400000, 0x500000, 0x7000, str(path)),
    ):
        assert Symbolizer([mapping]).resolve(addresses) == expected


def test_fixed_programs_that_map_their_code_again(built: dict[str, Path]) -> None:
    """As V8 maps its built-in functions.  A mapping of all addresses is none of these."""
    path = built["gcc-fixed"]
    elf, addresses = ElfObject(path), code_addresses(path, 300)
    code = next(segment for segment in elf.segments if segment.executable)
    page = code.address & ~0xFFF
    for start in (0x7F9483E40000, 0x10000000):
        again = Mapping(start, start + (1 << 20), code.offset & ~0xFFF, str(path))
        given = Mapping(page, page + (1 << 20), code.offset & ~0xFFF, str(path))
        found = Symbolizer([given, again]).resolve([address - page + start for address in addresses])
        assert found == elf.lookup_many(addresses)
    assert Symbolizer([Mapping(0, (1 << 64) - 1, 0, str(path))]).resolve([code.offset + 1]) == [()]


def test_return_addresses_are_looked_up_inside_the_call(built: dict[str, Path]) -> None:
    mapping, bias = code_mapping(built["clang-pie"])
    address = code_addresses(built["clang-pie"], 1)[0] + bias
    tool = Symbolizer([mapping])
    assert tool.resolve([address], returns=True) == tool.resolve([address - 1])
    assert tool.resolve([address, address], returns=[False, True]) == tool.resolve([address, address - 1])


def test_huge_pages_belong_to_the_neighbour(built: dict[str, Path]) -> None:
    mapping, bias = code_mapping(built["clang-pie"])
    middle = mapping.start + 0x2000
    for name in ("/anon_hugepage (deleted)", "//anon"):
        halves = [
            mapping._replace(limit=middle, path=name, offset=0, build_id=""),
            mapping._replace(start=middle, offset=mapping.offset + 0x2000),
        ]
        addresses = [a + bias for a in code_addresses(built["clang-pie"], 200)]
        assert Symbolizer(halves).resolve(addresses)[0]
        mine = Symbolizer(halves).resolve(addresses)
        assert mine == Symbolizer([mapping]).resolve(addresses)


def test_mappings_find_the_narrow_range_before_the_wide_one() -> None:
    maps = Mappings(
        [Mapping(0x1000, 0x2000, 0, "/a"), Mapping(0, (1 << 64) - 1, 0, ""), Mapping(0x3000, 0x4000, 0, "/b")]
    )
    assert [maps.find(a) for a in (0x1000, 0x1FFF, 0x2000, 0x3001, 0x10, 1 << 63)] == [0, 0, 1, 2, 1, 1]
    assert maps.main() == 0
    assert Mappings([Mapping(1, 2, 0, "[vdso]")]).find(5) is None
    far = Mappings([Mapping(1, 2, 0, "[vdso]"), Mapping(7, 9, 0, "/x")])
    far.items = []  # no mapping is inspected
    assert far.find(9) is far.find(5) is far.find(0) is None


def test_mappings_added_one_by_one_are_those_given_at_once() -> None:
    pages = [Mapping(i << 12, (i + 1) << 12, i << 12, "/a" if i % 7 == 3 else "/anon_hugepage") for i in range(40)]
    pages += [Mapping(0x90000, 0xA0000, 0, ""), Mapping(0x98000, 0x99000, 0, "/b"), Mapping(0x98000, 0x98800, 0, "/c")]
    random.Random(3).shuffle(pages)
    whole, piecewise = Mappings(pages), Mappings(())
    for page in pages:
        piecewise.add([page])
    addresses = range(0, 0xB0000, 0x400)
    assert [piecewise.find(a) for a in addresses] == [whole.find(a) for a in addresses]
    assert "anon_hugepage" not in piecewise.names()
    assert {*whole.names()} == {"a", "b", "c", ""}


def test_where_files_are_searched(built: dict[str, Path], tmp_path: Path) -> None:
    program = built["clang-pie"]
    mapping, bias = code_mapping(program)
    gone = mapping._replace(path="/srv/gone/clang-pie")
    address = code_addresses(program, 1)[0] + bias
    expected = Symbolizer([mapping]).resolve([address])[0]
    assert expected
    root = tmp_path / "root"
    (root / "srv/gone").mkdir(parents=True)
    shutil.copy(program, root / "srv/gone/clang-pie")
    other = tmp_path / "other-name"
    shutil.copy(program, other)
    for options in (
        {"symbols": [program]},
        {"symbols": [program.parent]},
        {"symbols": [other]},
        {"sysroot": str(root)},
    ):
        assert Symbolizer([gone], Finder(**options)).resolve([address])[0] == expected
    other_root = Finder(sysroot=str(tmp_path))
    assert Symbolizer([mapping], other_root).resolve([address])[0] == expected
    unknown = mapping._replace(build_id="")  # this machine's file may be another version than the sysroot's
    assert Symbolizer([unknown], other_root).resolve([address])[0] == ()
    unnamed = gone._replace(build_id="")
    assert Symbolizer([unnamed], Finder(symbols=[other])).resolve([address])[0] == expected
    tool = Symbolizer([gone, Mapping(1, 9, 0, "[vdso]")])
    assert tool.resolve([address, address, 5, 20]) == [(), (), (), ()]
    assert sorted(tool.unresolved()) == [
        ("", "address outside all mappings", 1),
        ("/srv/gone/clang-pie", "No such file or directory", 1),
        ("[vdso]", "the kernel's own code, and no build id identifies the kernel", 1),
    ]


def test_wrong_build_ids(built: dict[str, Path]) -> None:
    program = built["clang-pie"]
    mapping, bias = code_mapping(program)
    wrong = mapping._replace(build_id="ab" * 20)
    address = code_addresses(program, 1)[0] + bias
    with pytest.raises(SymbolError, match="build id is"):
        Symbolizer([wrong], Finder(symbols=[program])).resolve([address])
    tool = Symbolizer([wrong])
    assert tool.resolve([address])[0] == ()
    assert "wrong build id" in tool.unresolved()[0][1]
    assert Symbolizer([wrong], Finder(symbols=[program], force=True)).resolve([address])[0]
    with pytest.raises(SymbolError, match="No such file"):
        Symbolizer([mapping], Finder(symbols=[program.parent / "nothing"]))


def test_a_directory_of_any_size_is_searched(built: dict[str, Path], tmp_path: Path) -> None:
    """30,000 other files, and several with the right name: the one with the build id is used."""
    program = built["clang-pie"]
    mapping, bias = code_mapping(program)
    for i in range(300):
        (tmp_path / f"d{i}").mkdir()
        for k in range(100):
            (tmp_path / f"d{i}" / f"f{k}").touch()
    for place, source in (("d7", "gcc-fixed"), ("d250", "clang-pie"), ("d299", "clang-g1")):
        shutil.copy(built[source], tmp_path / place / "clang-pie")
    address = code_addresses(program, 1)[0] + bias
    tool = Symbolizer([mapping._replace(path="/srv/gone/clang-pie")], Finder(symbols=[tmp_path]))
    assert tool.resolve([address])[0] == Symbolizer([mapping]).resolve([address])[0] != ()


def test_the_vdso_of_this_kernel() -> None:
    vdso = own_vdso()
    if vdso.reason:  # a kernel or a sandbox without one
        assert Symbolizer([Mapping(0, 9, 0, "[vdso]", "ab")]).resolve([5])[0] == ()
        return
    entry = next(n for n in range(0, 1 << 16, 16) if vdso.lookup(n) and "gettime" in vdso.lookup(n)[-1].name)
    start = 0x7FFD00000000
    same = Mapping(start, start + 0x2000, 0, "[vdso]", vdso.build_id)
    assert "gettime" in Symbolizer([same]).resolve([start + entry])[0][-1].name
    tool = Symbolizer([same._replace(build_id="ab" * 20)])
    assert tool.resolve([start + entry])[0] == ()
    assert "wrong build id" in tool.unresolved()[0][1]


def test_what_dwz_moved_away_is_said(built: dict[str, Path], tmp_path: Path) -> None:
    link, program = tmp_path / "link", tmp_path / "x"
    link.write_bytes(b"/usr/lib/debug/.dwz/x.debug\0" + bytes(20))
    add = f"--add-section=.gnu_debugaltlink={link}"
    subprocess.run(["objcopy", add, str(built["gcc-fixed"]), str(program)], check=True)
    mapping = Mapping(0x400000, 0x500000, 0, str(program))
    tool = Symbolizer([mapping])
    assert tool.resolve(code_addresses(program, 1))[0]
    assert tool.notes() == [
        (str(program), "names of inlined functions that dwz moved to /usr/lib/debug/.dwz/x.debug are not read")
    ]
    assert Symbolizer([mapping._replace(path=str(built["gcc-fixed"]))]).notes() == []
    stripped = tmp_path / "stripped"  # keeps the link, but has no inlined functions
    subprocess.run(["objcopy", "--strip-debug", str(program), str(stripped)], check=True)
    tool = Symbolizer([mapping._replace(path=str(stripped))])
    assert tool.resolve(code_addresses(stripped, 1))[0]
    assert tool.notes() == []


def test_split_debug_information_needs_llvm_symbolizer(built: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    split, pie = built["clang-split"], built["clang-pie"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    elf = ElfObject(split)
    assert elf.lookup(code_addresses(split, 1)[0])  # the symbol table exists
    assert "llvm-symbolizer" in elf.note
    whole = ElfObject(pie)
    assert whole.lookup(code_addresses(pie, 1)[0])
    assert whole.note == ""


# ---- names


def test_importing_is_cheap() -> None:
    check = "import sys, fastprof.symbols.symbolizer; print([m for m in ('lzma', 'pycxxfilt') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("_ZNKSt4lessIiEclERKiS2_", "std::less::operator()"),
        ("_ZStltIcEbiT_", "std::operator<"),
        ("_ZN1AIiElsIcEERS0_T_", "A::operator<<"),
        ("_ZN1AptEv", "A::operator->"),
        ("_ZNK5LocalcvbEv", "Local::operator bool"),
        ("_ZN12_GLOBAL__N_15Local5twiceIiEET_S2_", "(anonymous namespace)::Local::twice"),
        ("_ZN4mill5wordsEm.cold", "mill::words (.cold)"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
        ("_ZZNK3Foo3barEiENKUlvE_clEv", "Foo::bar::'lambda'::operator()"),
        ("_ZTV3Foo", "vtable for Foo"),
        ("_RNvC3foo3bar", "foo::bar"),
        ("main", "main"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert demangle(name, "short") == short


def test_short_names_are_those_of_pprof() -> None:
    raw = shared("gperftools", "threads", "threads.raw.txt")
    if raw is None:
        pytest.skip(NO_SHARED)
    pairs = set(
        re.findall(r"(?:M=\d+ | {12})(\S.*?) \S+:\d+(?::\d+)? s=\d+\((_Z\S+)\)$", raw.read_text(), re.MULTILINE)
    )
    mine = {(demangle(mangled, "short").removesuffix(" (.isra.0)"), mangled) for _, mangled in pairs}
    # one is in GNU's notation from before the standard, which LLVM does not read
    assert len(pairs) > 50 and {name for name, _ in pairs - mine} <= {"std::__fill_a1"}


def test_short_names_are_the_default_where_names_are_looked_at(built: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("- { id: 1, function: 1, function-name: _Z3fooi }\n")
    log = FdrLog()
    log.buffer().cpu(0, 1000).enter(1).exit(1, 100_000)
    (tmp_path / "x.xray").write_bytes(log.bytes())
    for name, options, expected in (
        ("a.folded", {}, b"foo"),
        ("b.folded", {"demangle": "full"}, b"foo(int)"),
        ("c.callgrind", {}, b"foo(int)"),
        ("d.callgrind", {"demangle": "short"}, b"foo"),
    ):
        fastprof.convert(tmp_path / "x.xray", tmp_path / name, symbols=[str(tmp_path / "map.yaml")], **options)
        assert re.search(rb"\bfoo\S*", (tmp_path / name).read_bytes())[0] == expected  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "full", "templates"),
    [
        ("main", "main", "main"),
        ("_Zinvalid", "_Zinvalid", "_Zinvalid"),
        ("_ZN4mill5wordsEm.cold", "mill::words(unsigned long) (.cold)", "mill::words (.cold)"),
        (
            "_ZNKSt4lessIiEclERKiS2_",
            "std::less<int>::operator()(int const&, int const&) const",
            "std::less<int>::operator()",
        ),
        ("_ZStltIcEbiT_", "bool std::operator<<char>(int, char)", "std::operator<<char>"),
        ("_ZN12_GLOBAL__N_16hiddenEi", "(anonymous namespace)::hidden(int)", "(anonymous namespace)::hidden"),
        (
            "_ZN12_GLOBAL__N_15Local5twiceIiEET_S2_",
            "int (anonymous namespace)::Local::twice<int>(int)",
            "(anonymous namespace)::Local::twice<int>",
        ),
        ("_ZNK5LocalcvbEv", "Local::operator bool() const", "Local::operator bool"),
        ("_ZnwmPv", "operator new(unsigned long, void*)", "operator new"),
        ("_ZTV3Foo", "vtable for Foo", "vtable for Foo"),
        ("_RNvC3foo3bar", "foo::bar", "foo::bar"),
        (
            "_ZN3std2rt28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "std::rt::{{closure}}",
            "std::rt::{{closure}}",
        ),
        (
            "_ZN4core52_$LT$impl$u20$core..fmt..Display$u20$for$u20$i32$GT$3fmt17h0123456789abcdefE",
            "core::<impl core::fmt::Display for i32>::fmt",
            "core::<impl core::fmt::Display for i32>::fmt",
        ),
        ("_D3std5stdio7writelnFZv", "std.stdio.writeln", "std.stdio.writeln"),
        ("_Dmain", "D main", "D main"),
        ("_D99x", "_D99x", "_D99x"),
    ],
)
def test_demangle(name: str, full: str, templates: str) -> None:
    assert (demangle(name), demangle(name, "templates"), demangle(name, "none")) == (full, templates, name)
