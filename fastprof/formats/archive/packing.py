"""Packs the sections of a member: those of a small profile as a bundle, see bundle.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from fastprof.core.varint import varint
from fastprof.formats.archive.bundle import KINDS
from fastprof.formats.archive.sections import (
    BASES_OF_BUNDLE,
    BUNDLE,
    DIFFERENCE,
    FORGET,
    OPTIONAL,
    TABLES,
    Chunk,
    Codec,
    Member,
)

MOST_NBYTES = 64 << 10  # of the payloads in a bundle; for larger profiles headers matter little

# Finds the base of a new section, given its type, the number of sections of this type in the member so far and its
# payload.
BaseOf = Callable[[int, int, bytes], tuple[int, bytes] | None]


def bundled(codec: Codec, number: int, sections: Sequence[tuple[int, bytes]], base_of: BaseOf) -> bytes | None:
    """The BUNDLE section of member `number` with these (type, payload); None if its tables do not resemble the base."""
    body, bases, ranks = bytearray(), [0, 0], Counter[int]()
    for type_, raw in sections:
        rank = ranks[type_]
        ranks[type_] += 1
        stored, flags = raw, 0
        if type_ in KINDS and (base := base_of(type_, rank, raw)) is not None and not rank:
            difference = codec.difference(type_, base[1], raw)
            if difference:
                stored, flags = difference, DIFFERENCE
                bases[KINDS.index(type_)] = base[0]
        if type_ == TABLES and not bases[0]:
            return None
        body += bytes((type_, flags)) + varint(len(stored)) + stored
    return codec.pack_bundle(number, BASES_OF_BUNDLE.pack(*bases) + body, base_of(BUNDLE, 0, b""))


class Sections:
    """The sections of a member: those of a small one become a bundle, if its family is known.

    The methods return the bytes to append to the output, where `at` is the offset of the first ones; `member` is filled
    in.
    """

    def __init__(self, at: int, codec: Codec, member: Member, base_of: BaseOf | None):
        self.at, self._codec, self._member, self._base_of = at, codec, member, base_of
        self._held: list[tuple[int, bytes, Chunk | None]] | None = None if base_of is None else []
        self._left = MOST_NBYTES
        self._ranks = Counter[int]()

    def add(self, type_: int, raw: bytes, chunk: Chunk | None = None) -> bytes:
        """Errors: SectionError if the payload is too large."""
        if self._held is None:
            return self._packed(type_, raw, chunk)
        self._held.append((type_, raw, chunk))
        self._left -= len(raw)
        is_small = self._left >= 0 and type_ != FORGET and sum(one is not None for *_, one in self._held) <= 1
        return b"" if is_small else self._released()

    def _released(self) -> bytes:
        held, self._held = self._held, None
        return b"".join(self._packed(*one) for one in held or ())

    def _packed(self, type_: int, raw: bytes, chunk: Chunk | None) -> bytes:
        base = self._base_of(type_, self._ranks[type_], raw) if self._base_of else None
        self._ranks[type_] += 1
        flags = OPTIONAL if type_ == FORGET else 0
        return self._placed(type_, self._codec.pack(type_, self._member.number, raw, flags, base), chunk)

    def _placed(self, type_: int, data: bytes, chunk: Chunk | None) -> bytes:
        self._member.sections.append((self.at, type_, len(data)))
        if chunk is not None:
            self._member.chunks[self.at] = chunk._replace(offset=self.at)
        self.at += len(data)
        return data

    def end(self) -> bytes:
        """To be called after the last section."""
        chunks = [chunk for *_, chunk in self._held or () if chunk is not None]
        if self._held and self._base_of is not None and chunks:
            held = [(type_, raw) for type_, raw, _ in self._held]
            if (data := bundled(self._codec, self._member.number, held, self._base_of)) is not None:
                self._held = None
                return self._placed(BUNDLE, data, chunks[0])
        return self._released()
