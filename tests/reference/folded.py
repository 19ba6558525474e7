"""A slow, obvious reader of folded stacks: line by line, following docs/formats/folded.md."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor


@dataclass
class Profile:
    rows: list[tuple[tuple[bytes, ...], tuple[int, ...]]] = field(default_factory=list)  # frames from the root, counts
    bad: int = 0  # unreadable lines

    def totals(self) -> Counter[tuple[bytes, ...]]:
        """The sum of the last count of each stack."""
        found: Counter[tuple[bytes, ...]] = Counter()
        for frames, counts in self.rows:
            found[frames] += counts[-1]
        return found


def read(data: bytes, n_counts: int = 1, decimals: int = 0, lenient: bool = False) -> Profile:
    """Errors: ValueError(line number, text) for the first line that cannot be read, unless lenient."""
    profile = Profile()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, whole in enumerate(lines, 1):
        line = whole.removesuffix(b"\r").rstrip(b" \t")
        if not line or (line.startswith(b"#") and (line[1:2] in (b"", b" ", b"\t") or b";" not in line)):
            continue
        try:
            profile.rows.append(_stack(line, n_counts, decimals))
        except ValueError as error:
            if not lenient:
                raise ValueError(number, str(error)) from None
            profile.bad += 1
    return profile


def _stack(line: bytes, n_counts: int, decimals: int) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    counts: list[int] = []
    for _ in range(n_counts):
        found = re.fullmatch(rb"(.*?)[ \t]+([0-9]+)(\.[0-9]*)?", line, re.DOTALL)
        if not found:
            raise ValueError(f"{line!r} has no count")
        line = found[1]
        exact = Fraction((found[2] + (found[3] or b"")).decode().rstrip(".")) * 10**decimals
        counts.insert(0, floor(exact + Fraction(1, 2)))
        if counts[0] >= 1 << 63:
            raise ValueError(f"{counts[0]} is too large")
    frames = line.rstrip(b";").split(b";") if line.rstrip(b";") else []
    return tuple(frame or b"[unknown]" for frame in frames), tuple(counts)


def locations(frames: tuple[bytes, ...]) -> list[tuple[tuple[bytes, bytes], ...]]:
    """Frames from the root, whose suffixes are read: locations from the root, each of functions (name, object) from the
    innermost one on."""
    found: list[tuple[tuple[bytes, bytes], ...]] = []
    for frame in frames:
        suffix = re.search(rb"(?s)(?<=.)_\[([01ijk])\]\Z", frame)
        kind, name = (suffix[1], frame[:-4]) if suffix else (b"", frame)
        function = name, b"[kernel.kallsyms]" if kind == b"k" else b""
        if kind == b"i" and found:
            found[-1] = (function, *found[-1])
        else:
            found.append((function,))
    return found
