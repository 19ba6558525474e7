"""The obvious reader of speedscope's JSON, following docs/formats/speedscope.md."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Row = tuple[str, int, str]  # enter or exit; nanoseconds; function
FACTORS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}


@dataclass
class Profile:
    rows: list[list[Row]] = field(default_factory=list)  # evented: by profile
    samples: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)  # by value type and stack
    rounded: int = 0
    others: int = 0  # profiles of another kind than the first


def whole(value: Decimal) -> int:
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def read(data: bytes) -> Profile:
    said = json.loads(data, parse_float=Decimal, parse_int=Decimal)
    names = [frame["name"] for frame in said["shared"]["frames"]]
    found = Profile()
    kind = said["profiles"][0]["type"]
    for profile in said["profiles"]:
        factor = FACTORS.get(profile["unit"], 1)
        if profile["type"] != kind:
            found.others += bool(profile.get("events") or profile.get("samples"))
        elif kind == "evented":
            found.rows.append([event_row(event, names, factor) for event in profile["events"]])
        else:
            is_time = profile["unit"] in FACTORS
            value_type = "time" if is_time else "size" if profile["unit"] == "bytes" else "weight"
            for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
                exact = (weight or Decimal()) * factor
                found.rounded += not is_time and exact != whole(exact)
                found.samples[value_type, tuple(names[int(i)] for i in sample)] += whole(exact)
    return found


def event_row(event: dict[str, Any], names: list[str], factor: int) -> Row:
    return "enter" if event["type"] == "O" else "exit", max(0, whole(event["at"] * factor)), names[int(event["frame"])]
