"""OProfile, slow and obvious: sample files by the names of their fields, symbols as BFD passes them to OProfile."""

from __future__ import annotations

import struct
from collections import Counter
from typing import NamedTuple

# The fields of a header in order, each with its size.  "time" is a C long before 0.9.8; "pad" is the compiler's
# padding before words of 8 bytes where those are aligned to 8.
COMMON = ["magic:4", "version:4", "cpu_type:4", "ctr_event:4", "ctr_um:4", "ctr_count:4", "is_kernel:4", "cpu_speed:8"]
SPU = ["spu_profile:4", "embedded_offset:8"]
ANON = ["anon_start:8", "cg_to_anon_start:8"]
FIELDS = {
    "1.0": [*COMMON, "mtime:8", "cg_to_is_kernel:4", *ANON],
    "0.9.8": [*COMMON, "mtime:8", "cg_to_is_kernel:4", *SPU, *ANON, "reserved:4"],
    "0.9.3": [*COMMON, "mtime:long", "cg_to_is_kernel:4", *SPU, *ANON, "reserved:4"],
    "0.9": [*COMMON, "mtime:long", "cg_to_is_kernel:4", *ANON, "reserved:4"],
    "0.7.1": [*COMMON, "mtime:long", "cg_to_is_kernel:4", *["reserved:4"] * 5],
}


def offsets(release: str, *, i386: bool) -> tuple[dict[str, tuple[int, int]], int]:
    """(offset, bytes) of each field, and the header's size, as a C compiler lays out the struct."""
    align, at, found = 4 if i386 else 8, 0, {}
    for field in FIELDS[release]:
        name, _, width = field.partition(":")
        nbytes = (4 if i386 else 8) if width == "long" else int(width)
        at += -at % min(nbytes, align)
        found[name] = at, nbytes
        at += nbytes
    return found, at + -at % align


def read(data: bytes, release: str, *, i386: bool, order: str) -> tuple[dict[str, int], Counter[int]]:
    """Header fields, and the samples by key."""
    fields, size = offsets(release, i386=i386)
    header = {
        name: int.from_bytes(data[at : at + nbytes], "little" if order == "<" else "big")
        for name, (at, nbytes) in fields.items()
    }
    _, used = struct.unpack_from(f"{order}II", data, size)
    samples: Counter[int] = Counter()
    for slot in range(1, used):
        key, value, _ = struct.unpack_from(f"{order}QII", data, size + 32 + 16 * slot)
        samples[key] += value
    return header, samples


class Symbol(NamedTuple):
    """A symbol of the table: its section's number, its place in the file, whether it is local or weak."""

    name: str
    section: int
    position: int
    local: bool = False
    weak: bool = False


def survivor(one: Symbol, other: Symbol) -> Symbol:
    """The symbol that BFD's reader in OProfile keeps of two at one place; `one` comes first in the table."""
    for boring in (
        lambda s: s.name == "Letext",
        lambda s: s.name == "",
        lambda s: s.local,
        lambda s: s.name.startswith("_"),
        lambda s: s.weak,
    ):
        if boring(one) != boring(other):
            return other if boring(one) else one
    return one


def symbol_at(symbols: list[Symbol], ends: dict[int, int], position: int) -> str:
    """The name of the symbol that a position belongs to, "" for none.  `ends` are those of the sections."""
    kept: dict[int, Symbol] = {}
    for symbol in symbols:
        at = symbol.position
        kept[at] = survivor(kept[at], symbol) if at in kept else symbol
    before = [at for at in kept if at <= position]
    if not before:
        return ""
    mine = kept[max(before)]
    after = [at for at in kept if at > position]
    if after and kept[min(after)].section != mine.section and position >= ends[mine.section]:
        return ""
    return mine.name or "??"
