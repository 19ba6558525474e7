"""All sections of a small profile in one, compressed with those of another profile of its family as the dictionary.

docs/formats/archive.md describes the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.core._typing import NamedTuple
from fastprof.core.varint import varint_at
from fastprof.formats.archive.sections import (
    BASES_OF_BUNDLE,
    BUNDLE,
    DIFFERENCE,
    FORGET,
    HEADER_NBYTES,
    ROWS,
    TABLES,
    Codec,
    Section,
    SectionError,
)

KINDS = (TABLES, ROWS)  # of sections that may be differences
MOST_SECTIONS = 64  # in a bundle: even an empty one takes hundreds of bytes of memory


class Inner(NamedTuple):
    """A section in a bundle.  `base`: the offset of its base, if it is a difference."""

    section: Section
    stored: bytes
    base: int


def opened(bundle: Section, payload: bytes) -> list[Inner]:
    """The sections of a bundle.  Errors: SectionError."""
    found: list[Inner] = []
    if len(payload) < BASES_OF_BUNDLE.size:
        raise SectionError(bundle.offset + HEADER_NBYTES, "the bases of a bundle are missing")
    bases = dict(zip(KINDS, BASES_OF_BUNDLE.unpack_from(payload), strict=True))
    at = BASES_OF_BUNDLE.size
    while at < len(payload):
        if len(payload) - at < 3:
            raise SectionError(bundle.offset + HEADER_NBYTES, "a bundle ends inside a section")
        type_, flags = payload[at : at + 2]
        n, at = _size_at(payload, at + 2)
        if n > len(payload) - at:
            raise SectionError(bundle.offset + HEADER_NBYTES, f"a bundle ends inside a section of {n} bytes")
        base = bases.get(type_, 0) if flags == DIFFERENCE else 0
        if flags != (DIFFERENCE if base else 0) or type_ in (BUNDLE, FORGET):
            raise SectionError(bundle.offset + HEADER_NBYTES, "a section of a bundle has wrong flags")
        if base:
            bases[type_] = 0  # otherwise a large base would be decompressed again for each of many small sections
        if len(found) == MOST_SECTIONS:
            raise SectionError(bundle.offset + HEADER_NBYTES, f"a bundle has more than {MOST_SECTIONS} sections")
        # the stored bytes limit the memory for metadata, so they are at most those in the file
        section = Section(bundle.offset, type_, flags, bundle.member, min(n, bundle.stored), n, 0)
        found.append(Inner(section, payload[at : at + n], base))
        at += n
    return found


def _size_at(data: bytes, at: int) -> tuple[int, int]:
    """The size at this place of `data`, and its end; a huge one if it is not complete, or has more than 5 bytes."""
    try:
        n, nbytes = varint_at(data[at : at + 5], 0)
    except IndexError:
        return 1 << 40, at
    return n, at + nbytes


def restored(codec: Codec, inner: list[Inner]) -> Iterator[tuple[int, bytes]]:
    """Types and payloads.  Errors: SectionError."""
    for one in inner:
        yield one.section.type, codec.restore(one.section, one.stored, one.base)
