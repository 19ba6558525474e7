"""OProfile against the slow reference: sample files of every layout, symbols of any table."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core._c import ffi, lib
from fastprof.core.model import Model
from tests.reference import oprofile as reference
from tests.support.elf import ElfSection, ElfSymbol, elf_file
from tests.support.oprofile import LAYOUTS, sample_file
from tests.support.product import batches, open_input

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
KEYS = st.one_of(st.integers(0, 20), st.integers(0, 2**23), U64)


@given(
    nodes=st.lists(st.tuples(KEYS, U32), max_size=300),
    layout=st.sampled_from(sorted(LAYOUTS)),
    order=st.sampled_from("<>"),
    trailing=st.integers(0, 19),
    stale=st.binary(min_size=1, max_size=3),
    window=st.sampled_from([1, 50, 1 << 18]),
)
def test_sample_files(
    nodes: list[tuple[int, int]], layout: str, order: str, trailing: int, stale: bytes, window: int
) -> None:
    data = sample_file(nodes, layout=layout, order=order, stale=stale)
    release, _, i386 = layout.partition("-")
    header, samples = reference.read(data, release, i386=bool(i386), order=order)
    opened = open_input(data + bytes(trailing), window=window, from_="oprofile")
    got: Counter[int] = Counter()
    last = -1
    for batch in batches(opened, 7):
        for address, value in zip(batch["address"], batch.values(0), strict=True):
            assert address > last  # sorted by key, without repeats
            last = address
            got[address] = value
    assert got == samples
    if samples:
        assert opened.model.parts[0].extra["period"] == header["ctr_count"]


SECTIONS = [
    ElfSection(".init", 0x401000, 0x100, 0x20),
    ElfSection(".plt", 0x401020, 0x120, 0x10),
    ElfSection(".text", 0x401040, 0x140, 0x40),
    ElfSection(".fini", 0x402000, 0x1C0, 0x10),
]


@given(
    drawn=st.lists(
        st.tuples(
            st.sampled_from(["main", "_start", "f", "g", "", "Letext", ".L1", "_init"]),
            st.integers(1, 4),
            st.integers(0, 0x40),
            st.sampled_from([0x00, 0x02, 0x12, 0x22, 0x10, 0x03, 0x04]),
        ),
        max_size=12,
    ),
    wide=st.booleans(),
    order=st.sampled_from("<>"),
)
def test_symbols(drawn: list[tuple[str, int, int, int]], wide: bool, order: str) -> None:
    drawn = [(name, section, min(at, SECTIONS[section - 1].nbytes - 1), info) for name, section, at, info in drawn]
    table = [ElfSymbol(name, SECTIONS[section - 1].address + at, section, info) for name, section, at, info in drawn]
    symbols = [
        reference.Symbol(name, section, SECTIONS[section - 1].offset + at, info >> 4 == 0, info >> 4 == 2)
        for name, section, at, info in drawn
        if info & 15 not in (3, 4) and not name.startswith(".L")
    ]
    ends = {i: s.offset + s.nbytes for i, s in enumerate(SECTIONS, 1)}
    model = Model()
    data = ffi.from_buffer("uint8_t[]", elf_file(SECTIONS, table, wide=wide, order=order))
    image = ffi.gc(lib.fp_oprofile_image_new(model.c, 0, 0), lib.fp_oprofile_image_free)
    assert lib.fp_oprofile_image_elf(image, data, len(data), ffi.NULL, 0, 0) >= 0
    size = ffi.new("size_t *")
    for position in range(0xF0, 0x1E0):
        found = ""
        for i in range(image.n_symbols):
            if image.symbols[i].start <= position < image.symbols[i].end:
                name = lib.fp_oprofile_name(image, i, size)
                found = ffi.buffer(name, size[0])[:].decode() or "??"
        assert found == reference.symbol_at(symbols, ends, position), hex(position)
        section = next((s for s in SECTIONS if s.offset <= position < s.offset + s.nbytes), None)
        expected = position + section.address - section.offset if section else position
        assert lib.fp_oprofile_address(image, position) == expected
