"""Symbols kept for the next profile: the same answers, looked up once, in bounded memory."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastprof.bridges.rows.symbolize import symbolize
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.symbols import chains, finder
from fastprof.symbols.finder import Finder
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.maps import MapsText
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.symbol import Symbol
from fastprof.symbols.symbolizer import Symbolizer
from tests.support import profiles
from tests.support.profiles import Frame, Sample

SOURCE = """\
int sink;
static inline __attribute__((always_inline)) int mix(int x) { return x * sink; }
__attribute__((noinline)) int work(int x) { sink += mix(x); return sink; }
int main(int argc, char **argv) { (void)argv; return work(argc) + 1; }
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chains, "_kept", 0)
    chains._holders.clear()
    (tmp_path / "prog.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-fPIE", "-pie", "-o", "prog", "prog.c"], cwd=tmp_path, check=True)
    return tmp_path / "prog"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The addresses looked up in ELF files."""
    addresses: list[int] = []
    look_up = ElfObject.lookup_many

    def noted(self: ElfObject, given: Sequence[int]) -> list[tuple[Symbol, ...]]:
        addresses.extend(given)
        return look_up(self, given)

    monkeypatch.setattr(ElfObject, "lookup_many", noted)
    return addresses


def rows(program: Path, start: int, addresses: Sequence[int]) -> tuple[list[tuple[object, ...]], list[str]]:
    """Frames of a process in which the program is at `start`, and the warnings."""
    mapping = (str(program), start, start + 0x10000, 0)
    samples = [Sample((Frame((), start + address, mapping),), (1,)) for address in addresses]
    model, log = Model(), Log()
    found = profiles.samples(model, symbolize(profiles.stacks(model, samples), model, Options(), log))
    return [(s.frames[0].address - start, s.frames[0].lines) for s in found], log.warnings


def code(program: Path) -> list[int]:
    (text,) = (s for s in ElfObject(program).sections if s.name == ".text")
    return list(range(text.address, text.address + text.size, 3))


def test_addresses_are_looked_up_once_wherever_the_program_lies(program: Path, asked: list[int]) -> None:
    addresses = code(program)
    first = rows(program, 0x7F0000000000, addresses)
    assert sorted(asked) == addresses
    assert len({line for _, line in first[0]}) > 5
    more = [address + 1 for address in addresses[:5]]
    assert rows(program, 0x550000000000, addresses) == first
    assert rows(program, 0x560000000000, more)[0] == rows(program, 0x570000000000, more)[0]
    assert sorted(asked) == sorted(addresses + more)


def test_without_the_memory_the_answers_are_the_same(
    program: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = code(program)
    kept = rows(program, 0x7F0000000000, addresses)
    os.utime(program, (1, 1))  # another file
    monkeypatch.setattr(chains, "MOST", 0)
    for _ in range(2):
        assert rows(program, 0x7F0000000000, addresses) == kept
    assert len(asked) == 3 * len(addresses)


def test_the_memory_is_bounded(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST", 5000)
    addresses, kept = code(program), []
    for i in range(0, len(addresses), 4):
        rows(program, 0x7F0000000000, addresses[i : i + 4])
        held = [names.chains for names in chains._holders if names.chains]
        kept.append(sum(one.nbytes for one in held))
        texts = sum(len(one.texts) + sum(map(len, one.at.values())) for one in held)
        assert kept[-1] == chains._kept and texts <= kept[-1]
    assert max(kept) in range(2500, 5001)


def test_long_names_count_by_their_bytes() -> None:
    packed, answer = chains.Chains(), (Symbol("f" * 100_000, "f", "f.c", 1, 1),)
    packed.add([16], [answer])
    first = packed.nbytes
    packed.add([17], [answer])
    assert first > 200_000 and packed.nbytes - first < 1000


def test_chains_are_the_symbols_that_were_looked_up() -> None:
    given = (
        Symbol("a", "_Za", "f.c", 12, 3),
        Symbol("b", "b", "", 0, 0),
        Symbol("\udcff", "\udcff", "f.c", (1 << 32) - 1, 0),
    )
    packed = chains.Chains()
    for chain in (given, given[1:], (), given[:1], given):
        assert packed.symbols(packed.pack(chain)) == chain
    assert len(packed.first_lines) == 3


def test_a_directory_of_symbols_is_walked_again_when_it_changes(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "symbols" / "a").mkdir(parents=True)
    walks: list[str] = []
    walk = os.walk
    monkeypatch.setattr(finder.os, "walk", lambda top: walks.append(top) or walk(top))  # type: ignore[attr-defined,func-returns-value]

    def named() -> bool:
        tool = Symbolizer([Mapping(0, 1 << 20, 0, "/gone/prog")], Finder(symbols=[tmp_path / "symbols"]))
        return any(tool.resolve(code(program)))

    for folder in ("symbols", "symbols/a"):
        os.utime(tmp_path / folder, (1, 1))
    assert [named() for _ in range(3)] == [False] * 3
    assert len(walks) == 1
    (tmp_path / "symbols" / "a" / "prog").write_bytes(program.read_bytes())
    assert [named() for _ in range(2)] == [True] * 2
    (tmp_path / "symbols" / "a" / "prog").unlink()
    assert not named()


ODD_LINES = [
    b"7f-80 r-xp 0 0:0 1   /a\\040b\\011c\\012d\\134e",  # escaped as in other files of /proc
    b"7f-80 r-xp 0 0:0 1   /a (deleted)",
    b"7f-80 r-xp 0 0:0 1   (deleted)",
    b"7f-80 r-xp 0 0:0 1   /a (deleted) (deleted)",
    b"7f-80 r-xp 0 0:0 1    (deleted)",
    b"7f-80 r-xp 0 0:0 1/a",
    b"7f-80 r-xp 0 0:0 1",
    b"7f-80 r-xp 0 0:0 ",
    b"7f-80 r-xp 0 0:0",  # no inode
    b"7f-80 r-xp 0 0:0 /a",
    b"7f-80 r-xp 0 0:0 0x1 /a",
    b"7f-80 r-xp 0 :0 1 /a",
    b"7f-80 r-xp 0 0: 1 /a",
    b"7f-80 r-xp  0 0:0 1 /a",
    b"7f-80 r-xp -1 0:0 1 /a",
    b"7f-80 r-x 0 0:0 1 /a",
    b"7f-80 xxxx 0 0:0 1 /a",
    b"7f-80 --xs 0 0:0 1 /a",
    b"80-7f r-xp 0 0:0 1 /a",  # inverted
    b"80-80 r-xp 0 0:0 1 /a",
    b"9-10 r-xp 0 0:0 1 /a",
    b"09-10 r-xp 0 0:0 1 /a",
    b"7F-8A r-xp A 0:0 1 /a",
    b"0x7f-0x80 r-xp 0x0 0:0 1 /a",
    b"fffffffffffffff0-ffffffffffffffff r-xp ffffffffffffffff 0:0 1 /a",  # widths of numbers
    b"0fffffffffffffff0-0ffffffffffffffff r-xp 0 0:0 1 /a",
    b"ffffffffffffffff-10000000000000000 r-xp 0 0:0 1 /a",
    b"7f-80 r-xp 0ffffffffffffffff 0:0 1 /a",
    b"7f-80 r-xp 10000000000000000 0:0 1 /a",
    b"7f-80 r-xp 0 123456789abcdef01234:0 99999999999999999999999 /a",
    b"-80 r-xp 0 0:0 1 /a",
    b"7f- r-xp 0 0:0 1 /a",
    b"7f-80 r-xp 0 0:0 1 /a\r",
    b"7f-80 r-xp 0 0:0 1 /a\rb",
    b"7f-80 r-xp 0 0:0 1 /a\0b\xff",
    b"7f-80 r-xp 0 0:0 1 \v/a\f",
    b"7f-80 r-xp 0 0:0 1\t/a",
    b"7f-80 r-xp 0 0:0 1 /$build/a$b",
]


def by_each_parser(text: bytes) -> tuple[MapsText, MapsText]:
    """The text as read by C and, without it, by Python."""
    quick, slow = MapsText(), MapsText()
    slow.lines = lambda text: 0  # type: ignore[method-assign]
    quick.line(text)
    slow.line(text)
    return quick, slow


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("line", ODD_LINES)
def test_both_parsers_read_odd_lines_alike(line: bytes, end: bytes) -> None:
    quick, slow = by_each_parser(line + end)
    assert (quick.objects, quick.unknown) == (slow.objects, slow.unknown)


def test_a_line_as_the_kernel_writes_it_is_read_like_any_other() -> None:
    choose = random.Random(1)
    lines = [
        b"7f5fc77b8000-7f5fc77de000 r-xp 00001000 fe:00 338944      /usr/lib/ld-linux.so.2\n",
        b"7ffd4d28a000-7ffd4d2ab000 rw-p 00000000 00:00 0           [stack]\n",
        b"7f-80 r-xp 0 0:0 1\n",
        b"7f-80 r--p 0 0:0 1   /a b (deleted)  \r\n",
        *(line + b"\n" for line in ODD_LINES),
    ]
    text = []
    for _ in range(4000):
        line = bytearray(choose.choice(lines))
        for _ in range(choose.randrange(3)):
            line[choose.randrange(len(line) - 1)] = choose.choice(b" \t\r-x$:=0f/\v")
        text.append(bytes(line[: None if choose.randrange(9) else -1]))
        quick, slow = by_each_parser(text[-1])
        assert (quick.objects, quick.unknown) == (slow.objects, slow.unknown), text[-1]
    every = b"\n".join(line.rstrip(b"\n") for line in text) + b"\n"
    quick, slow = MapsText(), MapsText()
    slow.lines = lambda text: 0  # type: ignore[method-assign]
    at = 0
    while at < len(every):
        if not (n := quick.lines(every[at : at + 300])):
            n = every.index(b"\n", at) + 1 - at
            quick.line(every[at : at + n])
        at += n
    for line_ in every.split(b"\n"):
        slow.line(line_)
    assert (quick.objects, quick.unknown) == (slow.objects, slow.unknown)
