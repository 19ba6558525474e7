"""The annotated sources that callgrind_annotate and cg_annotate (Perl and Python) print, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NONE = "."


class Source(NamedTuple):
    lines: dict[int, tuple[int, ...] | None]  # all that are printed; None: without counts
    calls: dict[tuple[int, str], tuple[int, tuple[int, ...]]]  # (line, "file:function"): times, costs
    beyond: dict[int, tuple[int, ...]]  # past the end of the file


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """(title, lines below it) of what stands between rules of 80 dashes."""
    pieces = re.split(r"^-{80}\n", text, flags=re.MULTILINE)
    for title, body in zip(pieces[1::2], pieces[2::2], strict=False):
        yield title.strip(), body.splitlines()


def sources(text: str) -> dict[str, Source]:
    """By file name.  A file that could not be read is not in it."""
    found = {}
    for title, body in sections(text):
        match = re.fullmatch(r"-- (?:Auto-annotated|User-annotated|Annotated) source(?: file)?: (.*)", title)
        if match and not body[0].startswith("Unannotated"):
            found[match[1]] = _source(len(body[0].split()), body[2:])
    return found


def figures(n: int, line: str) -> tuple[tuple[int, ...] | None, str] | None:
    """The counts of `n` events at the beginning of a line, and the rest; None if that is not what it is."""
    match = re.match(r"((?: *(?:-?[\d,]+|\.)(?: *\(\s*(?:-?[\d.]+%%|n/a)\))?){%d}) {1,2}(.*)" % n, line)
    if not match:
        return None
    words = re.sub(r"\([^)]*\)", "", match[1]).split()
    if all(word == _NONE for word in words):
        return None, match[2]
    return tuple(0 if word == _NONE else int(word.replace(",", "")) for word in words), match[2]


def _source(n: int, body: list[str]) -> Source:
    found = Source({}, {}, {})
    number = 1
    for line in body:
        if match := re.match(r"-- line (\d+) -+$", line):
            number = int(match[1])
            continue
        if not line:
            continue
        read = figures(n, line)
        assert read is not None, line
        counts, rest = read
        rest = rest.strip()
        if match := re.fullmatch(r"<bogus line (\d+)>", rest):
            assert counts is not None
            found.beyond[int(match[1])] = counts
        elif re.fullmatch(r"<(?:unknown \(line 0\)|counts for unidentified lines in .*)>", rest):
            found.lines[0] = counts
        elif match := re.fullmatch(r"=> (.*) \(([\d,]+)x\)", rest):
            assert counts is not None
            found.calls[number - 1, match[1]] = int(match[2].replace(",", "")), counts
        else:
            found.lines[number] = counts
            number += 1
    return found
