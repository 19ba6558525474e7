"""Profiles for gcc's -fauto-profile (AutoFDO's gcov files), as gcc 12 and later read them, or earlier ones.

All numbers are little-endian u32 words, except counts (u64) and the bytes of names:

    "adcg" as 0x67636461, version 2, 0
    0xaa000000, words, n; n names: bytes with the NUL, the bytes
    0xac000000, words, n; n functions: head u64, node
    0xae000000, words, 0                                                     no modules
    node = name, places, calls; places { offset << 16, targets, count u64, targets { 7, name u64, count u64 } },
           calls { offset << 16, node }

gcc 12 ignores discriminators, so each line has the largest of its counts, at least 1: its vectorizer divides by zero
where code in a loop has no count, or one that is rounded to 0 once it is multiplied by the probabilities of branches.
Samples contradict each other, and a loop with fewer rounds than entries has such code.  So their counts are multiplied
by 1000, and each line has at least a thousandth of its function's largest count.  gcc 12 accepts no padding after
names.  Earlier ones and dump_gcov count names in words, padded, and dump_gcov wants a section of working sets after all
others: for each 128th of the sum of all counts, how many of the largest ones make it up, and the least of them.

    0xaf000000, 384; 128 sets: counts, least u64

Source: gcc/auto-profile.cc, gcc/gcov-io.cc; AutoFDO's profile_reader.cc.
"""

import struct
from collections import Counter
from collections.abc import Iterator

from fastprof.formats.pgo.levels import Level, Profile

_MAGIC = 0x67636461
_NAMES, _FUNCTIONS, _MODULES, _WORKING_SETS = 0xAA000000, 0xAC000000, 0xAE000000, 0xAF000000
_INDIRECT_CALL = 7  # the kind of a histogram
_SETS = 128
_MOST = (1 << 63) - 1
_TIMES = 1000


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _section(tag: int, content: bytes) -> bytes:
    return _words(tag, (len(content) + 3) // 4) + content


def _short(name: str) -> str:
    """gcc cuts names at the first dot: `main._omp_fn.0` would replace `main`."""
    return name.partition(".")[0] or name


def _node(name: str, level: Level, indexes: dict[str, int], least: int) -> bytes:
    lines: dict[int, tuple[int, Counter[str]]] = {}
    for at, count in level.body.items():
        most, targets = lines.get(at[0], (0, Counter()))
        for target, calls in level.targets.get(at, {}).items():
            targets[_short(target)] += calls
        lines[at[0]] = max(most, count, least), targets
    inlined: dict[tuple[int, str], list[Level]] = {}
    for at, levels in level.nested.items():
        for callee, inner in levels.items():
            inlined.setdefault((at[0], _short(callee)), []).append(inner)
    out = [_words(indexes[name], len(lines), len(inlined))]
    for offset, (count, targets) in sorted(lines.items()):
        out.append(struct.pack("<IIQ", offset << 16, len(targets), count))
        for target, calls in sorted(targets.items(), key=lambda item: (-item[1], item[0])):
            out.append(struct.pack("<IQQ", _INDIRECT_CALL, indexes[target], min(calls, _MOST)))
    for (offset, callee), copies in sorted(inlined.items(), key=lambda item: item[0]):
        whole = copies[0] if len(copies) == 1 else Level.sum(copies)
        whole.limit()
        out += (_words(offset << 16), _node(callee, whole, indexes, least))
    return b"".join(out)


def _text(name: str, padded: bool) -> bytes:
    text = name.encode("utf-8", "surrogateescape") + b"\0"
    if not padded:
        return struct.pack("<I", len(text)) + text
    n = (len(text) + 3) // 4
    return struct.pack("<I", n) + text.ljust(4 * n, b"\0")


def _working_sets(profile: Profile) -> bytes:
    counts = sorted(n for top in profile.functions.values() for level in top.all() for n in level.body.values() if n)
    out, total, reached, n = [], sum(counts), 0, 0
    least = 0
    for share in range(1, _SETS + 1):
        while counts and reached * _SETS < total * share:
            least = counts.pop()
            reached += least
            n += 1
        out.append(struct.pack("<IQ", n, least))
    return b"".join(out)


def _smoothed(function: Level) -> int:
    """Multiply the counts of a function.  The least count of a line."""
    most = function.head
    for level in function.all():
        most = max(most, *level.body.values(), 0)
        level.head *= _TIMES
        level.body = {at: count * _TIMES for at, count in level.body.items()}
        for targets in level.targets.values():
            targets.update({name: calls * _TIMES for name, calls in targets.items()})
    return min(max(most, 1), _MOST)


def gcov(given: Profile, layout: str = "gcc12", sampled: bool = False) -> Iterator[bytes]:
    """Functions whose names are equal for gcc are added up.  `layout`: of GCOV_LAYOUT.  `sampled`: not each line
    has the number of its executions."""
    profile = Profile()
    for name, level in given.functions.items():
        profile.function(_short(name)).add(level)
    least = dict.fromkeys(profile.functions, int(layout == "gcc12"))
    if layout == "gcc12" and sampled:
        least = {name: _smoothed(function) for name, function in profile.functions.items()}
    profile.limit()
    short = sorted({_short(name) for name in profile.names()})
    indexes = {name: index for index, name in enumerate(("", *short))}  # gcc refuses index 0
    padded = layout != "gcc12"
    names = b"".join(_text(name, padded) for name in indexes)
    functions = [struct.pack("<Q", one.head) + _node(name, one, indexes, least[name]) for name, one in profile.sorted()]
    yield _words(_MAGIC, 1 if layout == "version1" else 2, 0)
    yield _section(_NAMES, _words(len(indexes)) + names)
    yield _section(_FUNCTIONS, _words(len(functions)) + b"".join(functions))
    yield _section(_MODULES, _words(0))
    if padded:
        yield _section(_WORKING_SETS, _working_sets(profile))
