"""Names of a kernel, of its modules and of code made at run time, and where they are searched."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard

import fastprof
from fastprof.core.errors import SymbolError
from fastprof.symbols import kernel
from fastprof.symbols.finder import Finder
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.perf_map import PerfMap
from fastprof.symbols.symbolizer import Symbolizer
from tests.support.perfdata import KERNEL, PerfData

TEXT = 0xFFFFFFFF81000000
KALLSYMS = """\
0000000000000000 A fixed_percpu_data
ffffffff81000100 t second
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000200 D data
ffffffff81000300 r constant
ffffffffc0001000 t in_module\t[ext4]
ffffffffc0001080 t bpf_prog_6deef7357e7b4530_sd\t[bpf]
"""


def kernel_map(shift: int = 0, build_id: str = "", offset: int | None = None) -> Mapping:
    start = TEXT + shift
    return Mapping(start, start + 0x1000, start if offset is None else offset, "[kernel.kallsyms]", build_id)


def names(mappings: list[Mapping], found: Finder, addresses: list[int]) -> list[str]:
    """Innermost names, "" for none."""
    tool = Symbolizer(mappings, found)
    return [chain[0].name if chain else "" for chain in tool.resolve(addresses)]


@pytest.fixture
def kallsyms(tmp_path: Path) -> Path:
    (tmp_path / "kallsyms").write_text(KALLSYMS)
    return tmp_path / "kallsyms"


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vmlinux")
    (folder / "v.s").write_text(
        ".globl _text, _start\n_text: nop\n.type f, @function\nf: .fill 16, 1, 0x90\n.size f, 16\n"
        ".type g, @function\ng: .fill 16, 1, 0x90\n.size g, 16\n_start: nop\n"
    )
    link = ["-static", "-nostdlib", "-no-pie", f"-Wl,-Ttext={TEXT:#x}", "-Wl,--build-id=sha1"]
    subprocess.run(["gcc", *link, "-o", "vmlinux", "v.s"], cwd=folder, check=True)
    return folder / "vmlinux"


@pytest.mark.parametrize("shift", [0, 0x1400000])
def test_kallsyms_whatever_the_boot(kallsyms: Path, shift: int) -> None:
    """A symbol extends to the next one, of code or data; of several at one address the last is used."""
    addresses = [TEXT + shift + at for at in (0, 0xFF, 0x100, 0x210, 0x310)]
    expected = ["_text", "_text", "second", "data", "data"]
    assert names([kernel_map(shift)], Finder(symbols=[kallsyms]), addresses) == expected
    assert names([kernel_map(shift)], Finder(symbols=[kallsyms.parent]), addresses) == expected


def test_the_kallsyms_of_proc_have_a_size_of_0() -> None:
    try:
        Finder(symbols=[kernel.PROC_KALLSYMS])
    except SymbolError as error:
        assert "all addresses are hidden" in str(error)


def test_no_call_is_in_the_padding_before_a_function(kallsyms: Path) -> None:
    """A caller at its first byte was interrupted there, or is the target of a retpoline."""
    with open(kallsyms, "a") as file:
        file.write("ffffffff81000400 t first\nffffffff81000410 t __pfx_second\nffffffff81000420 t second\n")
    tool = Symbolizer([kernel_map()], Finder(symbols=[kallsyms]))
    places = [(0x420, True), (0x418, False), (0x420, False), (0x410, True), (0x425, True)]
    found = tool.resolve([TEXT + at for at, _ in places], [flag for _, flag in places])
    assert [chain[0].name for chain in found] == ["second", "__pfx_second", "second", "first", "second"]


def test_an_unknown_place_of_the_kernel(kallsyms: Path) -> None:
    """A kernel with kptr_restrict shows 0."""
    assert names([kernel_map(offset=0)], Finder(symbols=[kallsyms]), [TEXT + 0x100]) == ["second"]


@pytest.mark.parametrize("path", ["[stack]", "[heap]", "[vvar]", "[vsyscall]"])
def test_what_a_process_has_without_a_file_is_no_module(path: str) -> None:
    assert not kernel.module_of(path)
    assert Finder().find(path, "") == (None, "not a file")


def test_modules_are_named_by_kallsyms_of_the_same_boot(kallsyms: Path) -> None:
    start = 0xFFFFFFFFC0001000
    for path in ("[ext4]", "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz"):
        module = Mapping(start, start + 0x1000, 0, path)
        found = Finder(symbols=[kallsyms])
        assert names([module, kernel_map()], found, [start + 0x10, start + 0x90]) == ["in_module", "in_module"]
        assert names([module, kernel_map(0x1000000)], Finder(symbols=[kallsyms]), [start + 0x10]) == [""]
        assert names([module], Finder(symbols=[kallsyms]), [start + 0x10]) == [""]
    other = Mapping(start, start + 0x1000, 0, "[xfs]")
    assert names([other, kernel_map()], Finder(symbols=[kallsyms]), [start + 0x10]) == [""]


def test_kallsyms_without_addresses_name_nothing(kallsyms: Path) -> None:
    kallsyms.write_text("".join("0" * 16 + line[16:] for line in KALLSYMS.splitlines(True)))
    with pytest.raises(SymbolError, match="all addresses are hidden"):
        Finder(symbols=[kallsyms])


@pytest.mark.parametrize("shift", [0, 0x1400000])
def test_vmlinux_whatever_the_boot(vmlinux: Path, shift: int) -> None:
    addresses = [TEXT + shift + at for at in (1, 16, 17)]
    for build_id in ("", ElfObject(vmlinux).build_id):
        found = Finder(symbols=[vmlinux])
        assert names([kernel_map(shift, build_id)], found, addresses) == ["f", "f", "g"]
    with pytest.raises(SymbolError, match=r"the profile's \[kernel.kallsyms\] has abab"):
        names([kernel_map(shift, "ab" * 20)], Finder(symbols=[vmlinux]), addresses)


def test_a_vmlinux_is_not_the_profiles_program(vmlinux: Path) -> None:
    program = Mapping(TEXT, TEXT + 0x1000, 0, "/srv/program")
    assert names([program], Finder(symbols=[vmlinux]), [TEXT + 1]) == [""]


def test_the_running_kernel_if_it_is_the_recorded_one(kallsyms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PROC_KALLSYMS", str(kallsyms))
    monkeypatch.setattr(kernel, "own_build_id", lambda: "ab" * 20)
    assert names([kernel_map(build_id="ab" * 20)], Finder(), [TEXT]) == ["_text"]
    for build_id, reason in (("cd" * 20, "wrong build id: this machine's has abab"), ("", "no build id identifies")):
        tool = Symbolizer([kernel_map(build_id=build_id)])
        assert tool.resolve([TEXT])[0] == ()
        assert tool.unresolved()[0][1].startswith(reason)


def test_the_build_id_of_the_running_kernel() -> None:
    assert len(kernel.own_build_id()) in (0, 40)


@pytest.mark.parametrize("how", ["file", "elf"])
def test_perfs_cache(vmlinux: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """~/.debug/.build-id/xx/yyyy is a directory with the file; in old versions of perf it is the file itself."""
    monkeypatch.setenv("HOME", str(tmp_path))
    build_id = ElfObject(vmlinux).build_id
    folder = tmp_path / ".debug/.build-id" / build_id[:2]
    folder.mkdir(parents=True)
    if how == "elf":
        (folder / build_id[2:]).mkdir()
    shutil.copy(vmlinux, folder / build_id[2:] / ("elf" if how == "elf" else ""))
    assert names([kernel_map(build_id=build_id)], Finder(), [TEXT + 1]) == ["f"]


def test_kallsyms_in_perfs_cache(kallsyms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".debug/.build-id/ab" / ("ab" * 19)
    folder.mkdir(parents=True)
    kallsyms.rename(folder / "kallsyms")
    assert names([kernel_map(build_id="ab" * 20)], Finder(), [TEXT]) == ["_text"]


def test_a_short_build_id_that_was_filled_with_zeros(tmp_path: Path) -> None:
    (tmp_path / "x.s").write_text(".globl _start\n.type _start, @function\n_start: nop\n.size _start, 1\n")
    link = ["-static", "-nostdlib", "-no-pie", "-Wl,-Ttext=0x401000", "-Wl,--build-id=md5"]
    subprocess.run(["gcc", *link, "-o", "x", "x.s"], cwd=tmp_path, check=True)
    build_id = ElfObject(tmp_path / "x").build_id
    assert len(build_id) == 32
    mapping = Mapping(0x401000, 0x402000, 0x1000, str(tmp_path / "x"), build_id + "0" * 8)
    assert names([mapping], Finder(), [0x401000]) == ["_start"]
    folder = tmp_path / "debug/.build-id" / build_id[:2]
    folder.mkdir(parents=True)
    (tmp_path / "x").rename(folder / (build_id[2:] + ".debug"))
    assert names([mapping], Finder(debug_dirs=[str(tmp_path / "debug")]), [0x401000]) == ["_start"]


def test_the_build_id_comes_before_a_file_without_one(tmp_path: Path) -> None:
    """A file at the path that may be another build is used only if no file has the profile's build id."""
    for name, symbol, build_id in (("at-path", "other", "none"), ("by-id", "recorded", "sha1")):
        (tmp_path / "x.s").write_text(
            f".globl _start\n.type {symbol}, @function\n_start:\n{symbol}: nop\n.size {symbol}, 1\n"
        )
        link = ["-static", "-nostdlib", "-no-pie", "-Wl,-Ttext=0x401000", f"-Wl,--build-id={build_id}"]
        subprocess.run(["gcc", *link, "-o", name, "x.s"], cwd=tmp_path, check=True)
    recorded = ElfObject(tmp_path / "by-id").build_id
    mapping = Mapping(0x401000, 0x402000, 0x1000, str(tmp_path / "at-path"), recorded)
    assert names([mapping], Finder(), [0x401000]) == ["other"]
    folder = tmp_path / "debug/.build-id" / recorded[:2]
    folder.mkdir(parents=True)
    (tmp_path / "by-id").rename(folder / recorded[2:])
    assert names([mapping], Finder(debug_dirs=[str(tmp_path / "debug")]), [0x401000]) == ["recorded"]


MAP = b"""\
0x2000 0x100 int java.lang.Object.hashCode()
1000 80 old; with blanks\xff
  3000 0 empty
\t1000 40 new one \t
1800\t10\ttabs
1fffffffffffffffff 10 too large
no numbers at all
ffffffffffffff00 200 last
4000 10
1900 20 _ZN1f1gEv
"""


def test_a_map_of_compiled_code(tmp_path: Path) -> None:
    """Not sorted; where entries overlap, the later one is used."""
    (tmp_path / "perf-12.map").write_bytes(MAP)
    table = PerfMap(tmp_path / "perf-12.map")
    expected = {
        0xFFF: "",
        0x1000: "new one \t",
        0x1040: "old; with blanks\ufffd",
        0x107F: "old; with blanks\ufffd",
        0x1080: "",
        0x1800: "tabs",
        0x1900: "f::g()",
        0x20FF: "int java.lang.Object.hashCode()",
        0x3000: "",
        0xFFFFFFFFFFFFFF00: "last",
    }
    found = table.lookup_many([*expected])
    assert [chain[0].name if chain else "" for chain in found] == [*expected.values()]
    assert table.note == "3 lines are not understood"


def test_where_maps_of_compiled_code_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = Mapping(0x1000, 0x3000, 0, "/tmp/perf-4242424.map")
    (tmp_path / "root/tmp").mkdir(parents=True)
    there = tmp_path / "root/tmp/perf-4242424.map"
    there.write_bytes(MAP)
    named = tmp_path / "saved.perf-4242424.map"
    shutil.copy(there, named)
    for found in (Finder(sysroot=str(tmp_path / "root")), Finder(symbols=[there]), Finder(symbols=[named])):
        assert names([mapping], found, [0x1800]) == ["tabs"]
    assert names([mapping], Finder(symbols=[there.parent]), [0x1800]) == ["tabs"]
    assert names([mapping._replace(path="/tmp/perf-4242425.map")], Finder(symbols=[there]), [0x1800]) == [""]
    at_path = mapping._replace(path=str(there))
    assert names([at_path], Finder(), [0x1800]) == ["tabs"]
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if not there.stat().st_uid:
        os.chown(there, 12345, 12345)
    assert names([at_path], Finder(), [0x1800]) == [""]  # it belongs to another user


MODULE = """\
.section .gnu.linkonce.this_module, "aw"
.quad 0
.section .init.text, "ax"
.type starts, @function
starts: .fill 64, 1, 0x90
.size starts, 64
.text
.type f, @function
f: .fill 20, 1, 0x90
.size f, 20
.section .text.unlikely, "ax"
.p2align 4
.type g, @function
g: .fill 16, 1, 0x90
.size g, 16
.section .exit.text, "ax"
.type ends, @function
ends: .fill 8, 1, 0x90
.size ends, 8
"""
LOADED = 0xFFFFFFFFC0100000


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nfs-common.ko: when it is loaded, .text has 20 bytes, .text.unlikely begins at 32 and .exit.text at 48."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "m.s").write_text(MODULE)
    subprocess.run(["gcc", "-c", "-o", "m.o", "m.s"], cwd=folder, check=True)
    subprocess.run(["ld", "-r", "--build-id=sha1", "-o", "nfs-common.ko", "m.o"], cwd=folder, check=True)
    return folder / "nfs-common.ko"


def module_names(found: Finder, build_id: str = "", path: str = "[nfs_common]") -> list[str]:
    mapping = Mapping(LOADED, LOADED + 0x1000, 0, path, build_id)
    return names([mapping], found, [LOADED + at for at in (0, 19, 20, 32, 47, 48, 55, 56, 0x200)])


EXPECTED = ["f", "f", "", "g", "g", "ends", "ends", "", ""]


@pytest.mark.parametrize("path", ["[nfs_common]", "/lib/modules/6.1/kernel/fs/nfs_common/nfs-common.ko.xz"])
def test_modules_are_named_by_their_files(module: Path, path: str) -> None:
    build_id = ElfObject(module).build_id
    assert len(build_id) == 40
    for symbols in (module, module.parent):
        for given in ("", build_id):
            assert module_names(Finder(symbols=[symbols]), given, path) == EXPECTED
    assert module_names(Finder(symbols=[module]), path="[nfs]") == [""] * 9
    with pytest.raises(SymbolError, match="has abab"):
        module_names(Finder(symbols=[module]), "ab" * 20, path)


@pytest.mark.parametrize("kind", ["", ".gz", ".xz", ".zst", ".bz2"])
def test_installed_modules_are_found_by_build_id(module: Path, tmp_path: Path, kind: str) -> None:
    """Of any kernel, and with any compression."""
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress,
            ".zst": zstandard.ZstdCompressor().compress}  # fmt: skip
    folder = tmp_path / "lib/modules/6.1/kernel/fs"
    folder.mkdir(parents=True)
    data = module.read_bytes()
    (folder / f"nfs-common.ko{kind}").write_bytes(pack[kind](data))
    build_id = ElfObject(module).build_id
    assert module_names(Finder(sysroot=str(tmp_path)), build_id) == EXPECTED
    for given in ("ab" * 20, ""):
        assert module_names(Finder(sysroot=str(tmp_path)), given) == [""] * 9
    (folder / f"nfs-common.ko{kind}").write_bytes(pack[kind](data)[:-40])
    assert module_names(Finder(sysroot=str(tmp_path)), build_id) == [""] * 9


def test_a_module_in_perfs_cache(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    build_id = ElfObject(module).build_id
    folder = tmp_path / ".debug/.build-id" / build_id[:2] / build_id[2:]
    folder.mkdir(parents=True)
    (folder / "elf").write_bytes(lzma.compress(module.read_bytes()))
    assert module_names(Finder(), build_id) == EXPECTED


def elf32(address: int) -> bytes:
    """A program of 32 bits with the symbols _text, and f of 16 bytes one byte later."""
    text, names = b"\x90" * 17, b"\0_text\0f\0"
    symbols = (
        bytes(16)
        + struct.pack("<IIIBBH", 1, address, 0, 0x10, 0, 1)
        + struct.pack("<IIIBBH", 7, address + 1, 16, 2, 0, 1)
    )
    at = 84 + len(text)
    kinds = [(0, 0, 0, 0, 0, 0), (1, 6, address, 84, len(text), 0), (2, 0, 0, at, len(symbols), 3)]
    kinds += [(3, 0, 0, at + len(symbols), len(names), 0), (3, 0, 0, at + len(symbols) + len(names), 32, 0)]
    called = b"\0.text\0.symtab\0.strtab\0.shstrtab".ljust(32, b"\0")
    sections = b"".join(
        struct.pack("<IIIIIIIIII", name, kind, flags, where, offset, size, link, 1, 1, 16 * (kind == 2))
        for name, (kind, flags, where, offset, size, link) in zip((0, 1, 7, 15, 23), kinds, strict=True)
    )
    body = text + symbols + names + called
    head = (
        b"\x7fELF\1\1\1"
        + bytes(9)
        + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, address, 52, 84 + len(body), 0, 52, 32, 1, 40, 5, 4)
    )
    return head + struct.pack("<IIIIIIII", 1, 84, address, address, len(text), len(text), 5, 1) + body + sections


@pytest.mark.parametrize("shift", [0, 0x1400000])
def test_kernels_of_32_bits_are_moved(tmp_path: Path, shift: int) -> None:
    (tmp_path / "vmlinux").write_bytes(elf32(0xC1000000))
    start = 0xC1000000 + shift
    mapping = Mapping(start, start + 0x1000, start, "[kernel.kallsyms]")
    assert names([mapping], Finder(symbols=[tmp_path / "vmlinux"]), [start + 1, start + 16]) == ["f", "f"]


def recorded(text: int, host: str = "", release: str = "") -> bytes:
    """A sample of the kernel's `second` in a pipe, as `perf record -z` and pipes record it: without build ids."""
    made = PerfData()
    own = os.uname()
    for number, value in ((3, host or own.nodename), (4, release or own.release)):
        padded = value.encode() + b"\0" * (64 - len(value))
        made.record(80, 0, made.pack("QI", number, 64) + padded)
    head = made.pack("IIQQQ", 0xFFFFFFFF, 0, text, 0x100000, text)
    made.record(1, 1, head + b"[kernel.kallsyms]_text\0\0" + made.pack("IIQ", 0, 0, 0))
    made.comm(7, 7, b"program").sample(7, [KERNEL, text + 0x105], 100)
    return made.bytes()


WORD = "kernel names are this machine's"


@pytest.mark.parametrize(
    ("change", "is_named"),
    [({}, True), ({"host": "elsewhere"}, False), ({"release": "2.6.32"}, False), ({"text": TEXT + 0x200000}, False)],
    ids=["equal", "host", "release", "address"],
)
def test_a_kernel_without_build_id_that_is_this_machines(
    kallsyms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], is_named: bool
) -> None:
    """Host, release and the address of `_text` have to agree.  The result has the build id."""
    monkeypatch.setattr(kernel, "PROC_KALLSYMS", str(kallsyms))
    monkeypatch.setattr(kernel, "own_build_id", lambda: "ab" * 20)
    path = tmp_path / "perf.data"
    path.write_bytes(recorded(**{"text": TEXT, **change}))
    found = fastprof.top(path)
    assert [row.name for row in found.rows if row.object == "[kernel.kallsyms]"] == (
        ["second"] if is_named else [f"[kernel.kallsyms+{change.get('text', TEXT) + 0x105:#x}]"]
    )
    assert any(WORD in warning for warning in found.log.warnings) == is_named
    assert not any(WORD in warning for warning in fastprof.info(path, symbolize=False).warnings)
