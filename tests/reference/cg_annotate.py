"""The newer cg_annotate (Python, since Valgrind 3.21): the Cachegrind files that it accepts, and its sums by function.

It refuses input that older readers skip, and so does this: another order of the header, text that is not UTF-8, any
line except the ones below, a summary that is not the exact sum.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict

Sums = dict[tuple[str, str], list[int]]  # by file and function
Lines = dict[tuple[str, int], list[int]]  # by file and line


class Refused(ValueError):
    pass


class Annotated:
    def __init__(self, data: bytes) -> None:
        # text mode: a CR ends a line as well
        lines = iter([*io.TextIOWrapper(io.BytesIO(data), "utf-8"), ""])
        self.descriptions = []
        line = next(lines)
        while match := re.match(r"desc:\s+(.*)", line):
            self.descriptions.append(match[1])
            line = next(lines)
        self.command = self.header("cmd", line)
        self.events = self.header("events", next(lines)).split()
        self.functions: Sums = defaultdict(self.zero)
        self.lines: Lines = defaultdict(self.zero)
        summary = None
        file = function = ""
        for line in lines:
            if match := re.match(r"(\d+)\s+(.*)", line):
                counts = self.counts(match[2])
                add(self.functions[file, function], counts)
                add(self.lines[file, int(match[1])], counts)
            elif line.startswith("fn="):
                function = line[3:-1]
            elif line.startswith("fl="):
                file, function = line[3:-1], "<unspecified>"
                self.functions[file, function]  # it is listed, with zeros
            elif match := re.match(r"summary:\s+(.*)", line):
                summary = self.counts(match[1])
            elif line not in ("", "\n") and not line.startswith("#"):
                raise Refused(f"malformed line {line!r}")
        if summary is None:
            raise Refused("missing summary")
        if summary != [sum(column) for column in zip(self.zero(), *self.functions.values(), strict=True)]:
            raise Refused("the summary is not the sum")

    def header(self, key: str, line: str) -> str:
        match = re.match(key + r":\s+(.*)", line)
        if not match:
            raise Refused(f"missing a {key}: line")
        return match[1]

    def zero(self) -> list[int]:
        return [0] * len(self.events)

    def counts(self, text: str) -> list[int]:
        counts = [int(word) for word in text.split()]
        if len(counts) > len(self.events):
            raise Refused(f"too many counts: {text!r}")
        return counts + self.zero()[len(counts) :]


def add(to: list[int], counts: list[int], sign: int = 1) -> None:
    to[:] = [a + sign * b for a, b in zip(to, counts, strict=True)]


def listed(text: str) -> tuple[list[str], Sums]:
    """The printed section "File:function summary", and the events of its columns."""
    events = re.findall(r"^Events shown: +(.*)$", text, re.MULTILINE)[0].split()
    found: Sums = {}
    file = ""
    section = text.partition("-- File:function summary")[2].partition("-- Function:file summary")[0]
    for line in section.splitlines():
        match = re.match(r"(<?)((?: *-?[\d,]+(?: +\([^)]*\))?){" + str(len(events)) + r"})  +(.*)$", line)
        if not match:
            continue
        counts = [int(n.replace(",", "")) for n in re.sub(r"\([^)]*\)", "", match[2]).split()]
        if not match[1]:
            found[file, match[3]] = counts
        elif match[3].endswith(":"):
            file = match[3][:-1]
        else:
            file, _, function = match[3].partition(":")
            found[file, function] = counts
    return events, found
