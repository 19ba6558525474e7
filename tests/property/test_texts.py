"""Profiles in lines of text against slow readers of the same text, or against what they were written from."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import texts
from tests.support.stackdump import dump
from tests.unit.test_texts import name_of

CHUNK = st.none() | st.integers(1, 64)
CAPACITY = st.none() | st.integers(1, 5)
NAME = st.sampled_from(["f", "main", "g(int, char)", "operator new", "größe", "<lambda>", "a`b"])
PLAIN = st.sampled_from(["f", "main", "g", "read_line", "größe", "C_code"])
COUNT = st.integers(0, 1 << 40)
# A tree: an own value and children, by name
TREE: Any = st.recursive(
    st.tuples(PLAIN, COUNT, st.just([])), lambda node: st.tuples(PLAIN, COUNT, st.lists(node, max_size=3)), max_leaves=8
)


def sums(text: str, format_: str, chunk: int | None, capacity: int | None) -> Counter[str]:
    """Values by stack, without those that are 0."""
    found: Counter[str] = Counter()
    for stack, _, values in dump(text.encode(), format_, chunk=chunk, capacity=capacity).rows:
        found[";".join(map(name_of, reversed(stack)))] += values[0]
    return Counter({stack: n for stack, n in found.items() if n})


def nodes(tree: Any, depth: int = 0, above: tuple[str, ...] = ()) -> list[tuple[int, tuple[str, ...], int, int]]:
    """In depth-first order: depth, stack, own value, and that with callees."""
    name, own, children = tree
    below = [node for child in children for node in nodes(child, depth + 1, (*above, name))]
    whole = own + sum(n for d, _, _, n in below if d == depth + 1)
    return [(depth, (*above, name), own, whole), *below]


def costs(tree: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, stack, own, _ in nodes(tree):
        found[";".join(stack)] += own
    return Counter({stack: n for stack, n in found.items() if n})


FRAME = st.builds(
    "{}{}{}".format, NAME, st.sampled_from(["", "+5", "+0x1f"]), st.sampled_from(["", " [ext4]", " (/l)"])
)
STACK = st.lists(FRAME, min_size=1, max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["", "k"]), STACK, STACK | st.none(), COUNT), min_size=1), CHUNK, CAPACITY)
def test_maps_of_bpftrace(rows: list[Any], chunk: int | None, capacity: int | None) -> None:
    text = "Attaching 1 probe...\n\n"
    for name, stack, user, value in rows:
        text += f"@{name}[\n" + "".join(f"    {frame}\n" for frame in stack)
        if user:
            text += ",\n" + "".join(f"    {frame}\n" for frame in user) + ", my app"
        text += f"]: {value}\n"
    expected: dict[str, Counter[str]] = texts.bpftrace(text)
    merged = sum(expected.values(), Counter())
    found: Counter[str] = Counter()
    for frames, _, values in dump(text.encode(), "tracer-stacks", chunk=chunk, capacity=capacity).rows:
        found[";".join(map(name_of, reversed(frames)))] += sum(values)
    assert +found == +merged


@given(st.lists(st.tuples(STACK, st.none() | PLAIN, COUNT), min_size=1), st.booleans(), CHUNK, CAPACITY)
def test_blocks_of_bcc(rows: list[Any], kernel: bool, chunk: int | None, capacity: int | None) -> None:
    text = "Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end.\n\n"
    for stack, process, value in rows:
        text += "".join(f"    {frame}\n" for frame in stack)
        text += "    --\n" * kernel + f"    -                {process} (71)\n" * bool(process)
        text += f"        {value}\n\n"
    assert sums(text, "tracer-stacks", chunk, capacity) == +texts.blocks(text)


@given(st.lists(st.lists(NAME, max_size=5), max_size=8), st.integers(1, 10**9), CHUNK, CAPACITY)
def test_samples_of_r(samples: list[list[str]], interval: int, chunk: int | None, capacity: int | None) -> None:
    text = f"sample.interval={interval}\n" + "".join("".join(f'"{name}" ' for name in one) + "\n" for one in samples)
    assert sums(text, "rprof", chunk, capacity) == texts.rprof(text)


PARTS = st.lists(st.tuples(st.integers(1, 20), PLAIN), max_size=3)
LINES = st.lists(st.tuples(st.integers(0, 100), st.lists(PLAIN, min_size=1, max_size=3), PARTS), min_size=1)


@given(LINES, st.sampled_from(["<-", "->", "--"]), st.sampled_from("<>"), st.booleans(), CHUNK, CAPACITY)
def test_lines_of_luajit(
    lines: list[Any], mark: str, order: str, percent: bool, chunk: int | None, capacity: int | None
) -> None:
    text = ""
    for value, chain, parts in lines:
        of = value + sum(n for n, _ in parts) if not percent else value
        text += f"{of:3d}{'%' * percent}  {f' {order} '.join(chain)}\n"
        text += "".join(f"  {mark} {n:3d}{'%' * percent}  {name}\n" for n, name in parts)
    assert sums(text, "luajit", chunk, capacity) == texts.luajit(text)


@given(TREE, st.integers(1, 1000), CHUNK, CAPACITY)
def test_cost_centres_of_ghc(tree: Any, tick: int, chunk: int | None, capacity: int | None) -> None:
    text = (
        "\tTue Jan 1 00:00 2026 Time and Allocation Profiling Report  (Final)\n\n\t   app +RTS -P -RTS\n\n"
        f"\ttotal time  =        0.02 secs   ({min(nodes(tree)[0][3], 10**12 - 1)} ticks @ {tick} us, 1 processor)\n"
        "\ttotal alloc =          80 bytes  (excludes profiling overheads)\n\n"
        "COST CENTRE  MODULE  SRC  no.  entries  %time %alloc   %time %alloc  ticks     bytes\n\n"
    )
    for depth, stack, own, _ in nodes(tree):
        text += f"{' ' * depth}{stack[-1]}  Main  a.hs:4:1-64  7  1  0.5 0.5  0.5 0.5  {own}  8\n"
    expected = Counter({stack: n * tick * 1000 for stack, n in costs(tree).items()})
    assert sums(text, "ghc-prof", chunk, capacity) == expected


@given(TREE, st.booleans(), CHUNK, CAPACITY)
def test_call_trees_of_instruments(tree: Any, own_column: bool, chunk: int | None, capacity: int | None) -> None:
    text = "Weight\tSelf Weight\t\tSymbol Name\n" if own_column else "Weight\tSymbol Name\n"
    for depth, stack, own, whole in nodes(tree):
        text += f"{whole} ns  50.0%\t" + f"{own:,} ns\t \t" * own_column + f"{' ' * (depth + 1)}{stack[-1]}\n"
    assert sums(text, "instruments", chunk, capacity) == costs(tree)


LOCATION = st.tuples(st.integers(0, (1 << 64) - 1), st.integers(0, 2), st.lists(st.tuples(NAME, COUNT), max_size=2))
SAMPLE = st.tuples(st.lists(st.integers(1, 3), max_size=4), st.integers(-(1 << 40), 1 << 40), st.integers(0, 3))


@given(st.lists(LOCATION, min_size=3, max_size=3), st.lists(SAMPLE, max_size=6), CHUNK, CAPACITY)
def test_what_pprof_prints(locations: list[Any], samples: list[Any], chunk: int | None, capacity: int | None) -> None:
    text = "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count cpu/nanoseconds[dflt]\n"
    for ids, value, label in samples:
        text += f"{1:10d} {value:10d}: {' '.join(map(str, ids))} \n" + f"                n:[{label}]\n" * (label > 0)
    text += "Locations\n"
    for i, (address, mapping, lines) in enumerate(locations, 1):
        shown = [f"{name} /srv/a b/a.go:{line % (1 << 31)}:0 s=3" for name, line in lines]
        text += f"{i:6d}: {address:#x}" + f" M={mapping}" * (mapping > 0) + "".join(
            (" " if k == 0 else " " * 13) + line + "\n" for k, line in enumerate(shown or [""])
        )  # fmt: skip
    text += "Mappings\n1: 0x400000/0x500000/0x0 /srv/app id [FN]\n2: 0x700000/0x800000/0x10  \n"
    found = []
    for stack, labels, values in dump(text.encode(), "pprof-raw", chunk=chunk, capacity=capacity).rows:
        frames = [(f[1], f[0] and f[0][2], [(line[0].decode(), line[4]) for line in f[3]]) for f in stack]
        found.append((frames, [label[2] for label in labels], values))
    starts = (None, 0x400000, 0x700000)
    expected = []
    for ids, value, label in samples:
        chosen = [locations[i - 1] for i in ids]
        frames = [(a, starts[m], [(name, line % (1 << 31)) for name, line in lines]) for a, m, lines in chosen]
        expected.append((frames, [label] * (label > 0), (1, value)))
    assert found == expected
