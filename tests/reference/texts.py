"""Slow, obvious readers of text profiles: stacks from the root on, joined by `;`, with the sums of their values."""

from __future__ import annotations

import re
from collections import Counter


def _function(frame: str) -> str:
    """Without address, module and offset."""
    frame = re.sub(r"^[0-9a-f]{8,} +(?=\S)", "", frame.strip())
    frame = re.sub(r" (?:\[[^\s\[\]]+\]|\([^\s()]+\))$", "", frame)
    frame = re.sub(r"(?<=.)\+(?:0x[0-9a-f]+|\d[0-9a-f]*)$", "", frame)
    return re.sub(r"^[^`]+`(?=.)", "", frame)


_MAP = re.compile(r"^@(\w*)\[((?:\n|, *\n|\w+, *\n)(?:.*\n)*?[^\n]*?|(?:, [^\]]*)?)\]: (\d+)$", re.MULTILINE)


def bpftrace(text: str) -> dict[str, Counter[str]]:
    """By map.  The stacks of a key are joined; other keys are callers of all (of several, the first is innermost)."""
    found: dict[str, Counter[str]] = {}
    for name, key, value in _MAP.findall(text):
        words, callers = [], []
        for line in key.replace("\n, ", "\n,").split("\n"):
            if line[:1].isspace():
                words.append(_function(line))
            else:
                callers += [word for word in line.strip().removeprefix(",").rstrip(", ").split("\n") if word.strip()]
        stack = [word.strip() for word in callers][::-1] + words[::-1]
        found.setdefault(name, Counter())[";".join(stack)] += int(value)
    return found


def blocks(text: str) -> Counter[str]:
    """BCC and DTrace: indented lines up to one with a number alone."""
    found: Counter[str] = Counter()
    stack: list[str] = []
    callers: list[str] = []
    indent = 0
    for line in text.splitlines():
        word, depth = line.strip(), len(line) - len(line.lstrip())
        process = re.fullmatch(r"- +(.*) \(\d+\)|(.*) \[\d+\]", word)
        if not word or not depth or word in ("-", "--") or re.match(r"\d+ +\d+ +\S*:", word):
            continue
        if word.isdigit():
            found[";".join([*callers, *stack[::-1]])] += int(word)
            stack, callers = [], []
        elif process:
            stack.append(process[1] or process[2])
        else:
            if len(stack) == 1 and not callers and depth > indent:
                callers, stack = stack, []
            indent = depth if not stack else indent
            stack.append(_function(word))
    return found


def rprof(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if names := re.findall(r'"(.*?)"(?= |$)', line):
            found[";".join(names[::-1])] += 1
    return found


def luajit(text: str) -> Counter[str]:
    """Shares are in hundredths of a percent."""
    found: Counter[str] = Counter()
    top: list[str] = []
    value, scale = 0, 1
    for line in text.splitlines():
        mark, number, percent, key = re.fullmatch(r"(  <- |  -> |  -- |) *(\d+)(%?)  (.*)", line).groups()  # type: ignore[union-attr]
        words = key.split(" < ")[::-1] if " < " in key else key.split(" > ")
        if not mark:
            top, value, scale = words, int(number), 100 if percent else 1
            found[";".join(top)] += value * scale
            continue
        part = int(number) * (value if percent else 1)
        state = re.match("Compiled|Interpreted|C code|Garbage Collector|JIT Compiler", key)
        found[";".join(words + top if mark == "  <- " and not state else top + words)] += part
        found[";".join(top)] -= part
    return Counter({stack: n for stack, n in found.items() if n > 0})
