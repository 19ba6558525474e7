"""Addresses of an ELF file, moved one by one and all together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fastprof.symbols.elf import Segment
from fastprof.symbols.objects import ElfObject
from tests.support.elf import ElfSection, ElfSymbol, elf_file

_PROGRAM = elf_file([ElfSection(".text", 0x1000, 64, 64)], [ElfSymbol("main", 0x1000, 1)], kind=3)  # ET_DYN

_small = st.integers(0, 40)
_segments = st.lists(st.builds(Segment, _small, _small, _small, _small, st.booleans()), max_size=4)


@given(_segments, _small, st.integers(0, 20), st.integers(-20, 20), _small)
def test_together_as_one_by_one(segments: list[Segment], first: int, n: int, start: int, offset: int) -> None:
    """Also with segments that overlap, that are empty and that contain only a part of the addresses."""
    program = ElfObject("program", content=_PROGRAM)
    assert not program.reason
    program.segments = tuple(segments)
    move = program.link_move(first, first + n, start, offset)
    addresses = range(first, first + n + 1)
    found = [program.link_address(at, start, offset) for at in addresses]
    if move is not None:
        assert found == [at + move for at in addresses]
    else:
        assert len(segments) != 1 or None in found  # a single segment moves all its addresses


def test_moved_together() -> None:
    program = ElfObject("program", content=_PROGRAM)
    program.segments = (Segment(0x5000, 0x1000, 0x100, 0x100, True),)
    assert program.link_move(0x7000, 0x70FF, 0x7000, 0x1000) == 0x5000 - 0x7000
    assert program.link_move(0x7000, 0x7100, 0x7000, 0x1000) is None
