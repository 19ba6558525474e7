"""A slow reader of heaptrack's recordings."""

from __future__ import annotations

from collections import Counter

# objects and bytes: all, temporary ones, those left, those at the peak
COLUMNS = 8
Place = tuple[str, str, int]  # function, file, line; the function of an unknown one is its address
NEW = {f"operator new{of}(unsigned {size})" for of in ("", "[]") for size in ("long", "int")}
FIRST = {"main", "__libc_start_main", "__static_initialization_and_destruction_0"}


def read(text: str) -> dict[tuple[Place, ...], tuple[int, ...]]:
    """The values of each stack, outermost first."""
    version, last, live, peak = 0, 0, 0, 0
    strings, pointers, traces, allocations = [""], [((), "")], [((), 0)], list[tuple[int, int]]()
    sums: dict[int, list[int]] = {}
    for line in text.split("\n"):
        kind, rest = line[:1], line[2:]
        numbers = [int(word, 16) for word in rest.split()] if kind in tuple("vita+-") else []
        if kind == "v":
            version = numbers[1] if len(numbers) > 1 else 1
        elif kind == "s":
            strings.append(rest.partition(" ")[2] if version > 2 else rest)
        elif kind == "i":
            of = [numbers[k : k + 3] for k in range(2, len(numbers), 3)]
            places = [(strings[one[0]], strings[[*one, 0][1]], [*one, 0, 0][2]) for one in of if one[0]]
            pointers.append((tuple(places[::-1]) or ((hex(numbers[0]), "", 0),), strings[of[0][0]] if of else ""))
        elif kind == "t":
            pointer, caller = numbers
            while pointer and pointers[pointer][1] in NEW:
                pointer, caller = traces[caller]
            traces.append((pointer, caller))
        elif kind == "a":
            allocations.append((numbers[0], numbers[1]))
        elif kind in ("+", "-") and line:
            size, trace = allocations[numbers[0]]
            mine, sign = sums.setdefault(trace, [0] * COLUMNS), 1 if kind == "+" else -1
            if kind == "-" and not mine[4]:
                continue  # none is in use
            live += sign * size
            mine[4] += sign
            mine[5] += sign * size
            for k, more in enumerate((1, size)):
                mine[k] += more * (kind == "+")
                mine[2 + k] += more * (kind == "-" and last == numbers[0])
            last = numbers[0] if kind == "+" else 0
            if kind == "+" and live > peak:
                peak = live
                for one in sums.values():
                    one[6:] = one[4:6]
    found: dict[tuple[Place, ...], Counter[int]] = {}
    for trace, values in sums.items():
        stack: tuple[Place, ...] = ()
        while trace and (pointer := traces[trace][0]):
            places, first = pointers[pointer]
            stack = (*places, *stack)
            trace = 0 if first in FIRST else traces[trace][1]
        found.setdefault(stack, Counter()).update(dict(enumerate(values)))
    return {stack: tuple(sums[k] for k in range(COLUMNS)) for stack, sums in found.items() if any(sums.values())}
