"""The content of a page of `fastprof report`, decoded like the page's code does."""

from __future__ import annotations

import base64
import json
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

NONE = 0xFFFFFFFF
_TYPES = {"u1": "B", "u4": "I", "f8": "d"}


def summed(
    rows: Iterable[tuple[tuple[str, str, str], float, float | None]],
) -> dict[tuple[str, str, str], tuple[float, float | None]]:
    """Self and inclusive costs by name, file and object, which functions at several lines share."""
    found: dict[tuple[str, str, str], tuple[float, float | None]] = {}
    for place, own, all_ in rows:
        before, above = found.get(place, (0.0, 0.0))
        found[place] = before + own, None if all_ is None or above is None else above + all_
    return found


class Page:
    def __init__(self, path: Path) -> None:
        self.bytes = path.read_bytes()
        found = re.findall(rb'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', self.bytes)
        assert len(found) == 1
        data = zlib.decompress(base64.b64decode(found[0], validate=True))
        at = 4 + int.from_bytes(data[:4], "little")
        self.head: dict[str, Any] = json.loads(data[4:at])
        self.columns: dict[str, list[Any]] = {}
        for name, type_, n in self.head["columns"]:
            column = array(_TYPES[type_])
            width = column.itemsize
            column.frombytes(b"".join(bytes(data[at + k * n + i] for k in range(width)) for i in range(n)))
            self.columns[name] = list(column)
            at += n * width
        assert at == len(data)

    def name(self, function: int) -> str:
        return "[pruned]" if function == NONE else str(self.head["texts"][self.columns["function name"][function]])

    def place(self, function: int) -> tuple[str, str, str]:
        texts = self.head["texts"]
        file, object_ = (texts[self.columns[f"function {what}"][function]] for what in ("file", "object"))
        return self.name(function), file, object_

    def rows(self, column: int = 0) -> dict[tuple[str, str, str], tuple[float, float | None]]:
        """Self and inclusive cost of the table's functions, the sums of those at one place; None: the input has no such
        cost."""
        own = self.columns[f"row self {column}"]
        all_ = self.columns.get(f"row inclusive {column}", [None] * len(own))
        return summed((self.place(i), own[i], all_[i]) for i in range(self.head["rows"]))

    def stacks(self, column: int = 0) -> Counter[tuple[str, ...]]:
        """The self cost of each context, which begins with the name of its thread."""
        found: Counter[tuple[str, ...]] = Counter()
        paths: list[tuple[str, ...]] = []
        up, threads = self.columns["context up"], self.columns["context thread"]
        for i, function in enumerate(self.columns["context function"]):
            above = paths[i - up[i]] if up[i] else ()
            paths.append((*above, self.name(function) if up[i] else self.head["threads"][threads[i]]))
            if value := self.columns[f"context self {column}"][i]:
                found[paths[i]] += value
        return found

    def samples(self, column: int = 0) -> Counter[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The self cost of each context in each label set, as ("host=a", ...)."""
        c = self.columns
        found: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
        rest = dict(enumerate(c[f"context self {column}"]))
        at = 0
        entries = [c.get(f"label {name}", []) for name in ("context", "set", f"self {column}")]
        for step, set_, cost in zip(*entries, strict=True):
            at += step
            rest[at] -= cost
            found[self.path(at), self.label_set(set_)] += cost
        for i, cost in rest.items():
            found[self.path(i), self.label_set(c["context set"][i] if "context set" in c else 0)] += cost
        return Counter({key: cost for key, cost in found.items() if cost})

    def label_set(self, number: int) -> tuple[str, ...]:
        c, keys, texts = self.columns, self.head.get("labels", {}).get("keys"), self.head["texts"]
        if not number:
            return ()
        begin = sum(c["set size"][:number])
        values = c["set value"][begin : begin + c["set size"][number]]
        named = [(c["value key"][v], c["value text"][v]) for v in values]
        return tuple(f"{keys[key]['name']}={'[others]' if text == NONE else texts[text]}" for key, text in named)

    def path(self, context: int) -> tuple[str, ...]:
        """The names of a context's functions, after the name of its thread."""
        up = self.columns["context up"][context]
        if not up:
            return (str(self.head["threads"][self.columns["context thread"][context]]),)
        return (*self.path(context - up), self.name(self.columns["context function"][context]))

    def inclusive(self, column: int = 0) -> Counter[str]:
        """The inclusive costs of the contexts' functions, each counted once per stack."""
        found: Counter[str] = Counter()
        for path, value in self.stacks(column).items():
            for name in set(path[1:]):
                found[name] += value
        return found

    def arcs(self, column: int = 0) -> dict[tuple[str, str], float]:
        """The costs of calls between the table's functions, by the names of caller and callee."""
        c = self.columns
        columns = zip(c["arc row"], c["arc function"], c["arc callee"], c[f"arc cost {column}"], strict=True)
        return {(self.name(other), self.name(row)): cost for row, other, callee, cost in columns if not callee}

    def calls(self) -> list[tuple[str, str, int, float, float]]:
        """Thread, function, depth, begin and duration, in their order."""
        c = self.columns
        begins: list[float] = []
        for i, (thread, step) in enumerate(zip(c["call thread"], c["call begin"], strict=True)):
            begins.append(step + (begins[-1] if i and c["call thread"][i - 1] == thread else 0))
        columns = zip(
            *(c[f"call {n}"] for n in ("thread", "function", "depth")), begins, c["call duration"], strict=True
        )
        found = [(t, self.name(f), depth, begin, length) for t, f, depth, begin, length in columns]
        assert all(a[0] < b[0] or (a[0] == b[0] and a[3] <= b[3]) for a, b in pairwise(found))
        return [(self.head["time"]["threads"][t], *rest) for t, *rest in found]
