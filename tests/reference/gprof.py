"""Prints a flat profile and a call graph as gprof does, slowly."""

from __future__ import annotations

import random

Arcs = dict[tuple[int, int], tuple[int, int]]  # calls, and hundredths of a second


def seconds(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}"


def printed(own: list[int], arcs: Arcs, names: list[str], seed: int = 0) -> str:
    """Function k has index [k + 1].  Arcs of a function to itself have calls alone.  Entries come in any order."""
    flat = [f"  1.00       1.00 {seconds(own[k]):>8}        1     0.00     0.00  {names[k]}" for k in range(len(own))]
    lines = [
        "Flat profile:",
        "",
        "Each sample counts as 0.01 seconds.",
        " time   seconds   seconds    calls  name",
        *flat,
    ]
    lines += ["", "\t\t\tCall graph", "", "", "granularity: each sample hit covers 2 byte(s)", ""]
    lines.append("index % time    self  children    called     name")

    def call(k: int, arc: tuple[int, int]) -> str:
        calls, time = arcs[arc]
        if arc[0] == arc[1]:
            return f"{calls:>36}             {names[k]} [{k + 1}]"
        own_part = min(time, own[arc[1]])
        return f"{seconds(own_part):>20} {seconds(time - own_part):>11} {calls:>7}/{calls:<7}     {names[k]} [{k + 1}]"

    order = [*range(len(own))]
    random.Random(seed).shuffle(order)
    for k in order:
        into = [call(caller, (caller, callee)) for caller, callee in arcs if callee == k]
        lines += into or [" " * 49 + "<spontaneous>"]
        lines.append(f"{f'[{k + 1}]':<6} 100.0 {seconds(own[k]):>7}        0.00       1         {names[k]} [{k + 1}]")
        lines += [call(callee, (caller, callee)) for caller, callee in arcs if caller == k]
        lines.append("-----------------------------------------------")
    return "\n".join([*lines, "", "Index by function name", ""])
