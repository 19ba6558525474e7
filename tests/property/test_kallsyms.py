"""Symbols of a kernel, compared with a slow reader."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fastprof.symbols.kernel import Kallsyms

ADDRESSES = st.sampled_from(["ffffffff81000000", "ffffffff81000100", "ffffffff81000200", "0000000000000000", "c0de"])
KINDS = st.sampled_from([*"TtWwDdBbVvAr", "TT", ""])
NAMES = st.sampled_from(["_text", "f", "g.cold", "", "a b", "é", "x\t", "y\r", "[z]"])
ENDS = st.sampled_from(["", " ", "\t", "\t[m]", "\t[m] \t", "\t[n_o]", "\t[", "\t[]", "\t[m]x", " [m]", "\t\t[m]"])
SPACES = st.sampled_from([" ", "  ", "\t"])
LINES = st.tuples(ADDRESSES, SPACES, KINDS, st.just(" "), NAMES, ENDS).map("".join)
LINE = re.compile(rb"^([0-9a-f]{16}) [TtWwDdBbVv] ([^\s]+)(?:\t\[([^\]\s]+)\])?[ \t]*$", re.MULTILINE)


@given(st.lists(LINES, max_size=12), st.booleans())
def test_symbols(lines: list[str], ends: bool) -> None:
    text = "\n".join(["ffffffff80000000 T first", *lines]).encode() + b"\n" * ends
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kallsyms"
        path.write_bytes(text)
        names = Kallsyms(path)
    found = [(int(address, 16), name, module) for address, name, module in LINE.findall(text)]
    found.sort(key=lambda symbol: symbol[0])
    asked = [0, 2**64 - 1, 0xFFFFFFFF7FFFFFFF, 0xFFFFFFFF80000000, *range(0xFFFFFFFF81000000, 0xFFFFFFFF81000300, 64)]
    for module in ["", "m", "n_o", "other"]:
        part = names.part(module)
        own = [symbol for symbol in found if symbol[2] == module.encode()]
        for address, chain in zip(asked, part.lookup_many(asked), strict=True):
            below = [name for start, name, _ in own if start <= address]
            assert [symbol.system_name for symbol in chain] == [str(name, "utf-8", "replace") for name in below[-1:]]
        first = next((start for start, name, _ in own if name == b"_text"), None)
        assert part.address_of("_text") == first
        assert bool(part.reason) == (not own)
