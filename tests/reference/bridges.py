"""Slow, obvious versions of the bridges between stacks and graph, to test the fast ones against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from tests.support.profiles import At, Fn, Frame, Row, Sample

Values = tuple[int, ...]


def plus(a: Values, b: Values) -> Values:
    return tuple(x + y for x, y in zip(a, b, strict=True))


# ---- stacks -> graph ------------------------------------------------------


def positions(frame: Frame | None, inlines: bool) -> list[At]:
    """The places of a frame, outermost first; None is a sample without a stack."""
    if frame is None:
        return [At(Fn("[no stack]", "???"), "???", 0)]
    where = frame.mapping[0] if frame.mapping else ""

    def named(f: Fn) -> Fn:
        f = f._replace(file=f.file or "???")
        if f.name:
            return f._replace(object=f.object or where)
        if not frame.address:
            return f._replace(name="[unknown]", object=f.object or where)
        return Fn(at_address(), f.file, where)

    def at_address() -> str:
        code = frame.address - (frame.returns and frame.address > 0)
        if not frame.mapping or not where:
            return f"{code:#x}"
        _, start, _, offset = frame.mapping
        return f"[{where.split('/')[-1].strip('[]')}+{(code - start + offset) % 2**64:#x}]"

    if not frame.lines:
        return [At(Fn(at_address(), "???", where), "???", 0, frame.address)]
    if inlines:
        return [At(named(f), f.file or "???", line or f.line, frame.address) for f, line in reversed(frame.lines)]
    innermost, line = frame.lines[0]
    return [At(named(frame.lines[-1][0]), innermost.file or "???", line or innermost.line, frame.address)]


def graph(
    samples: Iterable[Sample], inlines: bool = False, calls: int | None = None
) -> dict[tuple[At, Fn | None], tuple[int, Values]]:
    """(place, callee or None) -> (call count, values)."""
    selfs: dict[At, Values] = {}
    arcs: dict[tuple[At, Fn], Values] = {}
    by_stack: dict[tuple[Frame, ...], Values] = {}
    counts: dict[tuple[At, Fn], int] = defaultdict(int)
    for sample in samples:
        zero = (0,) * len(sample.values)
        path = [p for f in sample.frames or (None,) for p in positions(f, inlines)]
        selfs[path[-1]] = plus(selfs.get(path[-1], zero), sample.values)
        for i in range(1, len(path)):
            arc = path[i - 1], path[i].function
            outermost = all(p.function != path[i].function for p in path[1:i])
            arcs[arc] = plus(arcs.get(arc, zero), sample.values if outermost else zero)
        by_stack[sample.frames] = plus(by_stack.get(sample.frames, zero), sample.values)
    if calls is not None:
        # the calls of a stack are calls of its leaf frame (and of functions inlined in it)
        for frames, values in by_stack.items():
            if not frames:
                continue
            path = [p for f in frames for p in positions(f, inlines)]
            leaf = len(positions(frames[-1], inlines))
            for i in range(max(len(path) - leaf, 1), len(path)):
                counts[path[i - 1], path[i].function] += max(values[calls], 0)
    rows: dict[tuple[At, Fn | None], tuple[int, Values]] = {(at, None): (0, v) for at, v in selfs.items()}
    rows.update({arc: (counts[arc], v) for arc, v in arcs.items()})
    return rows


# ---- graph -> stacks ------------------------------------------------------


def shares(rows: Iterable[Row], function: Fn) -> dict[tuple[At, ...], Fraction]:
    """The ways in which `function` is called: its callers from the root, and the share of each such path.

    For graphs in which the first value of every arc is positive, without pruning.
    """
    arcs: dict[tuple[At, Fn], int] = defaultdict(int)
    weight: dict[Fn, int] = defaultdict(int)
    selfs: dict[At, int] = defaultdict(int)
    for row in rows:
        if row.callee is None:
            selfs[row.at] += row.values[0]
        elif row.callee != row.at.function:
            arcs[row.at, row.callee] += row.values[0]
    for at, v in selfs.items():
        weight[at.function] += abs(v)
    for (at, _), v in arcs.items():
        weight[at.function] += abs(v)
    callers: dict[Fn, list[tuple[At, int]]] = defaultdict(list)
    for (at, callee), v in arcs.items():
        callers[callee].append((at, abs(v)))

    def reaches(start: Fn, end: Fn) -> bool:
        seen, todo = set(), [start]
        while todo:
            f = todo.pop()
            for at, _ in callers[f]:
                if at.function == end:
                    return True
                if at.function not in seen:
                    seen.add(at.function)
                    todo.append(at.function)
        return False

    out: dict[tuple[At, ...], Fraction] = defaultdict(Fraction)

    def climb(f: Fn, path: tuple[At, ...], on_path: frozenset[Fn], share: Fraction) -> None:
        called = sum(w for _, w in callers[f])
        beyond = weight[f] - called
        uncalled = beyond if called and beyond > 0 and not reaches(f, f) else 0
        open_ = [(at, w) for at, w in callers[f] if at.function not in on_path]
        total = sum(w for _, w in open_) + uncalled
        if not open_ or not total:
            out[path] += share
            return
        if uncalled:
            out[path] += share * Fraction(uncalled, total)
        for at, w in open_:
            climb(at.function, (at, *path), on_path | {at.function}, share * Fraction(w, total))

    climb(function, (), frozenset({function}), Fraction(1))
    return out
