"""The binary encodings of a sample profile.

    binary      magic, version, summary, names, functions
    extbinary   magic, version, a table of sections (type, flags, offset, size: 4 u64 each), the sections

Numbers are ULEB128 unless said otherwise; a name is its index.  A function is its head and a level:

    level = name, total, places { offset, discriminator, count, targets { name, count } },
            inlined { offset, discriminator, level }

Source: LLVM's SampleProf.h and SampleProfWriter.cpp, version 103.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.varint import varint

if TYPE_CHECKING:
    from fastprof.formats.pgo.levels import Level, Profile

_VERSION = 103
_BINARY, _EXTBINARY = 0xFF, 4
_UNIQUE = 1 << 34  # a flag of the names: `.__uniq.` is part of them
_SUMMARY, _NAMES, _OFFSETS, _FUNCTIONS = 1, 2, 4, 32  # types of sections
# Parts of a million for which a summary has the smallest count needed to reach them.
_CUTOFFS = (10_000, *range(100_000, 1_000_000, 100_000), 950_000, 990_000, 999_000, 999_900, 999_990, 999_999)


def _numbers(*values: int) -> bytes:
    return b"".join(map(varint, values))


def _magic(kind: int) -> bytes:
    return _numbers(int.from_bytes(b"SPROF42", "big") << 8 | kind, _VERSION)


def _levels(profile: Profile) -> Iterator[Level]:
    for level in profile.functions.values():
        yield from level.all()


def _summary(profile: Profile) -> bytes:
    """Total and largest counts, and how many of the largest counts make up each share of the total."""
    found = Counter(count for level in _levels(profile) for count in level.body.values())
    counts = sorted(found, reverse=True)
    total = sum(count * n for count, n in found.items())
    heads = max((level.head for level in profile.functions.values()), default=0)
    largest, n = max(counts, default=0), found.total()
    out = [_numbers(total, largest, heads, n, len(profile.functions), len(_CUTOFFS))]
    seen = at = places = 0  # counts of one size are taken together
    for cutoff in _CUTOFFS:
        while seen < total * cutoff // 1_000_000:
            seen += counts[at] * found[counts[at]]
            places += found[counts[at]]
            at += 1
        out.append(_numbers(cutoff, counts[at - 1] if at else 0, places))
    return b"".join(out)


def _names(indexes: Iterable[str]) -> bytes:
    names = [name.encode("utf-8", "surrogateescape") + b"\0" for name in indexes]
    return varint(len(names)) + b"".join(names)


def _level(name: str, level: Level, indexes: dict[str, int]) -> bytes:
    out = [_numbers(indexes[name], level.total, len(level.body))]
    for at in sorted(level.body):
        targets = level.sorted_targets(at)
        out.append(_numbers(*at, level.body[at], len(targets)))
        out += (_numbers(indexes[target], count) for target, count in targets)
    inner = [(at, name, levels[name]) for at, levels in sorted(level.nested.items()) for name in sorted(levels)]
    out.append(varint(len(inner)))
    for at, inlinee, one in inner:
        out += (_numbers(*at), _level(inlinee, one, indexes))
    return b"".join(out)


def _function(name: str, level: Level, indexes: dict[str, int]) -> bytes:
    return varint(level.head) + _level(name, level, indexes)


def binary(profile: Profile) -> Iterator[bytes]:
    indexes = profile.names()
    yield _magic(_BINARY) + _summary(profile) + _names(indexes)
    for name, level in profile.sorted():
        yield _function(name, level, indexes)


def extbinary(profile: Profile) -> Iterator[bytes]:
    """Sections; the table of offsets lets a compiler read only the functions of its module."""
    indexes = profile.names()
    functions, offsets = [], []
    at = 0
    for name, level in profile.sorted():
        offsets.append(_numbers(indexes[name], at))
        functions.append(_function(name, level, indexes))
        at += len(functions[-1])
    sections = (
        (_SUMMARY, _summary(profile)),
        (_NAMES, _names(indexes)),
        (_FUNCTIONS, b"".join(functions)),
        (_OFFSETS, varint(len(offsets)) + b"".join(offsets)),
    )
    head = _magic(_EXTBINARY) + struct.pack("<Q", len(sections))
    place = len(head) + 32 * len(sections)
    unique = any(".__uniq." in name for name in indexes)
    for kind, data in sections:
        head += struct.pack("<4Q", kind, _UNIQUE * (unique and kind == _NAMES), place, len(data))
        place += len(data)
    yield head
    for _, data in sections:
        yield data
