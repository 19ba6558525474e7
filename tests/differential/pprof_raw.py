"""Run `go tool pprof -raw` and parse its output, with ids resolved."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.differential.peers import need


def go_pprof(*arguments: str | Path) -> str:
    done = subprocess.run([need("go"), "tool", "pprof", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Raw:
    """`samples`: summed values by stack, leaf first, of (address, mapping, lines) frames, and labels."""

    header: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    samples: Counter[tuple[object, ...]] = field(default_factory=Counter)
    mappings: list[str] = field(default_factory=list)


_LOCATION = re.compile(r"\s*(\d+): (0x[0-9a-f]+)(?: M=(\d+))? ?(.*)$")
# mappings that pprof invents for addresses outside of all mappings
NO_MAPPING = ("0x0/0xffffffffffffffff/0x0", "0x0/0x0/0x0")


def parse(text: str) -> Raw:
    raw = Raw()
    samples: list[tuple[tuple[int, ...], list[int], str]] = []
    locations: dict[int, tuple[str, int, str]] = {}
    mappings: dict[int, str] = {}
    section, last = "header", 0
    for line in text.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            section = line
        elif section == "header":
            raw.header.append(line)
        elif section == "Samples:":
            if not raw.types:
                raw.types = line.split()
            elif m := re.match(r"\s*(-?\d+(?:\s+-?\d+)*):((?: \d+)*)\s*$", line):
                samples.append((tuple(map(int, m[1].split())), list(map(int, m[2].split())), ""))
            else:
                values, ids, labels = samples[-1]
                samples[-1] = values, ids, labels + line.strip() + "\n"
        elif section == "Locations":
            if m := _LOCATION.match(line):
                last = int(m[1])
                locations[last] = m[2], int(m[3] or 0), m[4].strip()
            else:
                address, mapping, lines = locations[last]
                locations[last] = address, mapping, lines + "\n" + line.strip()
        elif m := re.match(r"\s*(\d+): (\S+)(.*)$", line):
            mappings[int(m[1])] = "" if m[2] in NO_MAPPING else m[2] + " " + m[3].strip()
    for values, ids, labels in samples:
        stack = []
        for i in ids:
            address, mapping, lines = locations[i]
            stack.append((address, mappings.get(mapping, ""), lines))
        for k, value in enumerate(values):
            raw.samples[tuple(stack), labels, k] += value
    raw.mappings = list(mappings.values())
    return raw


def raw(path: Path) -> Raw:
    return parse(go_pprof("-raw", "-symbolize=none", path))
