"""The annotated sources printed by callgrind_annotate and cg_annotate (Perl and Python), as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NONE = "."
_COUNT = r" *(?:-?[\d,]+|\.)(?: *\(\s*(?:-?[\d.]+%|n/a)\))?"  # "3,750 ( 1.51%)"


class Source(NamedTuple):
    lines: dict[int, tuple[int, ...] | None]  # all printed lines; None: without counts
    calls: dict[tuple[int, str], tuple[int, tuple[int, ...]]]  # (line, "file:function"): times, costs
    beyond: dict[int, tuple[int, ...]]  # past the end of the file


_SECTION = re.compile(
    r"^-{80}\n-- (?:Auto-annotated|User-annotated|Annotated) source(?: file)?: (.*)\n-{80}\n((?:.*\n)*?)(?=-{80}\n|\Z)",
    re.MULTILINE,
)


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """(file, its lines), for all selected files."""
    return ((name, body.splitlines()) for name, body in _SECTION.findall(text))


def sources(text: str) -> dict[str, Source]:
    """By file name.  Unreadable files are missing."""
    return {
        name: _source(len(body[0].split()), body[2:])
        for name, body in sections(text)
        if not body[0].startswith("Unannotated")
    }


def not_found(text: str) -> set[str]:
    """Selected files that could not be read."""
    newer = {name for name, body in sections(text) if body[0].startswith("Unannotated")}
    listed = text.partition("chosen for auto-annotation could not be found:\n")[2]
    return newer | set(re.findall(r"^  (.*)$", listed.partition("\n\n")[0], re.MULTILINE))


def figures(n: int, line: str) -> tuple[tuple[int, ...] | None, str] | None:
    """The counts of `n` events at the start of a line, and the rest; None if the line has none."""
    match = re.match(rf"((?:{_COUNT}){{{n}}}) {{1,2}}(.*)", line)
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
        if not line or line.startswith("@"):  # a warning
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
