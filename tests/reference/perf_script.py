"""A slow, obvious reader of the text of perf script: sample by sample, following docs/formats/perf-script.md.

It only reads the usual form: start lines with a thread and a time, frames with addresses below them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_START = re.compile(
    r"\s*(?P<comm>.*?)\s*(?:(?P<pid>\d+)/)?(?P<tid>\d+)\s+(?:\[\d+\]\s+)?(?P<s>\d+)\.(?P<f>\d{9}|\d{6}):"
    r"\s+(?:(?P<period>\d+)\s+)?(?P<event>\S+):\s*(?P<place>.*)"
)
_PLACE = re.compile(r"[0-9a-f]+ (?P<name>.*?)(?:\+0x[0-9a-f]+)? \((?P<object>.*)\)")


class Sample(NamedTuple):
    comm: str
    thread: tuple[int, int]
    time_ns: int
    event: str
    period: int | None
    stack: tuple[tuple[str, str], ...]  # name and object, leaf first


def read(text: str) -> list[Sample]:
    samples: list[Sample] = []
    for block in re.split(r"\n\n+", text.strip("\n")):
        frames: list[tuple[str, str]] = []
        first, *rest = block.split("\n")
        for line in rest:
            found = _PLACE.fullmatch(line.strip())
            assert found, line
            frames.append((found["name"], found["object"].replace("[unknown]", "")))
        found = _START.fullmatch(first)
        assert found, first
        if found["place"]:
            place = _PLACE.fullmatch(found["place"].strip())
            assert place, first
            frames.append((place["name"], place["object"].replace("[unknown]", "")))
        time_ns = int(found["s"]) * 10**9 + int(found["f"].ljust(9, "0"))
        period = int(found["period"]) if found["period"] else None
        thread = int(found["pid"] or 0), int(found["tid"])
        samples.append(Sample(found["comm"], thread, time_ns, found["event"], period, tuple(frames)))
    return samples
