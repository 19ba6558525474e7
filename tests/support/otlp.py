"""Our reader's rows in the shape of the slow reference (tests/reference/otlp.py)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastprof.core.engine import read
from fastprof.core.model import Model
from fastprof.core.options import Options
from tests.support.product import open_input


def rows(data: bytes, options: Options | None = None, from_: str = "otlp") -> Counter[tuple[Any, ...]]:
    opened = open_input(data, options, None, from_)
    model, found = opened.model, Counter[tuple[Any, ...]]()
    for batch in read(opened.reader):
        types = model.parts[batch.part].value_types
        for i in range(len(batch)):
            frames, labels = _frames(model, batch["stack"][i]), _labels(model, batch["label"][i])
            for k, type_ in enumerate(types):
                if value := batch.values(k)[i]:
                    found[type_.name, type_.unit, frames, labels, batch["time"][i]] += value
    return found


def _frames(model: Model, node: int) -> tuple[str, ...]:
    found: list[str] = []
    while node:
        node, frame = model.row("stacks", node)
        _, low, high, _, chain = model.row("frames", frame)
        names = []
        while chain:
            function, _, _, chain = model.row("lines", chain)
            names.append(model.get_function(function).name.decode("utf-8", "surrogateescape"))
        found += names or [f"{low | high << 32:#x}"]
    return tuple(found)


def _labels(model: Model, label: int) -> tuple[tuple[str, str], ...]:
    found = {}
    while label:
        label, key, string, low, high, _ = model.row("labels", label)
        number = low | high << 32
        text = model.string(string).decode("utf-8", "surrogateescape") if string else number - (number >> 63 << 64)
        found.setdefault(model.string(key).decode("utf-8", "surrogateescape"), str(text))
    return tuple(sorted(found.items()))
