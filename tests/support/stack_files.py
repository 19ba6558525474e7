"""The same distinct stacks in each format of stacks: `WRITE[format](path, stacks(n))`.

Stacks have 30 functions of 2,000.  Near the root they are alike, as in real programs; half of the frames of a stack are
its own.  Equal prefixes are far apart, so a reader that adds up what it just saw gains nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from tests.support import perfettotrace as t
from tests.support.jfrfile import Chunk
from tests.support.perfdata import USER, PerfData

FUNCTIONS, DEPTH = 2000, 30
_BITS = 17
MOST = 1 << _BITS  # stacks
NAMES = [f"ns::function_{i}" for i in range(FUNCTIONS)]
_BASE = 0x401000
_MAPS = "00400000-00500000 r-xp 00000000 08:01 7          /usr/bin/app\n"

Stack = list[int]  # functions, root first


def stacks(n: int) -> list[Stack]:
    """`n` stacks, at most MOST."""
    found = []
    for i in range(n):
        k = i * 40_503 % MOST
        found.append([((k >> max(0, _BITS - d)) * 31 + d * 67) % FUNCTIONS for d in range(DEPTH)])
    return found


def _tree(of: Iterable[Stack]) -> tuple[list[int], list[tuple[int, int]]]:
    """The node of each stack; caller and function of each node, from 1 on."""
    nodes: dict[tuple[int, int], int] = {}
    leaves = []
    for stack in of:
        node = 0
        for function in stack:
            node = nodes.setdefault((node, function), len(nodes) + 1)
        leaves.append(node)
    return leaves, [*nodes]


def gperftools(path: Path, of: list[Stack]) -> None:
    record = struct.Struct(f"<{DEPTH + 2}Q").pack
    with path.open("wb") as file:
        file.write(struct.pack("<5Q", 0, 3, 0, 10_000, 0))
        file.writelines(record(1, DEPTH, *[_BASE + 16 * f + 1 for f in reversed(stack)]) for stack in of)
        file.write(struct.pack("<3Q", 0, 1, 0) + _MAPS.encode())


def folded(path: Path, of: list[Stack]) -> None:
    with path.open("w") as file:
        file.writelines(";".join([NAMES[f] for f in stack]) + " 1\n" for stack in of)


def perf_script(path: Path, of: list[Stack]) -> None:
    lines = [f"\t{_BASE + 16 * i:16x} {name}+0x{i % 64:x} (/usr/bin/app)\n" for i, name in enumerate(NAMES)]
    with path.open("w") as file:
        for i, stack in enumerate(of):
            head = f"app  4711 [000] {i // 1000}.{i % 1000:03}000:     250000 cpu-clock: \n"
            file.write(head + "".join([lines[f] for f in reversed(stack)]) + "\n")


def perf(path: Path, of: list[Stack]) -> None:
    sample = struct.Struct(f"<IHH Q II QQ QQ {DEPTH}Q").pack
    with path.open("wb") as file:
        file.write(PerfData().mmap(7, 0x400000, 1 << 20, b"/usr/bin/app").comm(7, 7, b"app").bytes())
        for i, stack in enumerate(of):
            chain = [_BASE + 16 * f + 1 for f in reversed(stack)]
            file.write(sample(9, 2, 56 + 8 * DEPTH, chain[0], 7, 7, 1000 * i, 250_000, DEPTH + 1, USER, *chain))
            if i % 10_000 == 0:
                file.write(struct.pack("<IHH", 68, 0, 8))  # the end of a round


def pprof(path: Path, of: list[Stack]) -> None:
    number = [t.varint(i + 1) for i in range(FUNCTIONS)]
    texts = ["", "samples", "count", "a.c", *NAMES]
    places = (
        (
            (5, t.message((1, i + 1), (2, i + 4), (4, 3))),
            (4, t.message((1, i + 1), (2, 1), (3, _BASE + 16 * i + 1), (4, t.message((1, i + 1), (2, i + 1))))),
        )
        for i in range(FUNCTIONS)
    )
    with path.open("wb") as file:
        file.write(t.message(*((6, text) for text in texts), (1, t.message((1, 1), (2, 2)))))
        file.write(t.message((3, t.message((1, 1), (2, 0x400000), (3, 0x500000)))))
        file.writelines(t.message(*fields) for fields in places)
        for stack in of:
            body = b"".join([number[f] for f in reversed(stack)])
            file.write(t.message((2, t.message((1, body), (2, b"\1")))))


def otlp(path: Path, of: list[Stack]) -> None:
    number = [t.varint(i + 1) for i in range(FUNCTIONS)]
    texts = ["", "samples", "count", "cpu", "nanoseconds", *NAMES]
    with path.open("wb") as file:
        tables = [t.message((1, b"")), t.message((3, b"")), t.message((2, b""))]
        for i in range(FUNCTIONS):
            tables.append(t.message((3, t.message((1, i + 5))), (2, t.message((3, t.message((1, i + 1), (2, i + 1)))))))
        tables += [t.message((4, b"")), *(t.message((5, text)) for text in texts), t.message((6, b""), (7, b""))]
        tables += [t.message((7, t.message((1, b"".join([number[f] for f in reversed(s)]))))) for s in of]
        samples = b"".join(t.message((2, t.message((1, i + 1), (4, b"\1")))) for i in range(len(of)))
        profile = t.message((1, t.message((1, 1), (2, 2)))) + samples
        file.write(t.message((1, t.message((2, t.message((2, profile))))), (2, b"".join(tables))))


def speedscope(path: Path, of: list[Stack]) -> None:
    frames = ",".join(f'{{"name":"{name}"}}' for name in NAMES)
    with path.open("w") as file:
        file.write('{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[' + frames)
        file.write(f']}},"profiles":[{{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":{len(of)},')
        file.write('"samples":[' + ",".join(str(stack).replace(" ", "") for stack in of))
        file.write('],"weights":[' + ",".join(["1"] * len(of)) + "]}]}")


def _table(n: int, **columns: Iterable[object]) -> str:
    inner = ",".join(f'"{name}":[{",".join(map(str, column))}]' for name, column in columns.items())
    return f'{{"length":{n},{inner}}}'


def firefox(path: Path, of: list[Stack]) -> None:
    leaves, nodes = _tree(of)
    n, each = FUNCTIONS, range(FUNCTIONS)
    null, none = ["null"] * n, [-1] * n
    with path.open("w") as file:
        file.write(
            '{"meta":{"interval":1.0,"preprocessedProfileVersion":60,"processType":0,"startTime":1.1},"libs":[],'
        )
        file.write(f'"shared":{{"stringArray":{json.dumps(NAMES)},"frameTable":')
        file.write(_table(n, address=none, category=[0] * n, func=each, line=null, column=null) + ',"funcTable":')
        file.write(_table(n, name=each, resource=none, source=null, lineNumber=null))
        file.write(',"resourceTable":{"length":0,"lib":[],"name":[]},"stackTable":')
        prefixes = (caller - 1 if caller else "null" for caller, _ in nodes)
        file.write(_table(len(nodes), prefix=prefixes, frame=(f for _, f in nodes)))
        samples = _table(len(of), stack=(leaf - 1 for leaf in leaves), time=range(len(of)), weight=["1"] * len(of))
        file.write(f'}},"threads":[{{"name":"t","pid":"1","tid":1,"samples":{samples}}}]}}')


def cpuprofile(path: Path, of: list[Stack]) -> None:
    leaves, nodes = _tree(of)
    calls = [f'"callFrame":{{"functionName":"{name}","scriptId":"1","url":"a.js","lineNumber":1}}' for name in NAMES]
    with path.open("w") as file:
        file.write(f'{{"nodes":[{{"id":1,{calls[0]}}}')
        file.writelines(f',{{"id":{i},"parent":{caller + 1},{calls[f]}}}' for i, (caller, f) in enumerate(nodes, 2))
        file.write(f'],"startTime":0,"endTime":{100 * len(of)},"samples":[' + ",".join(str(i + 1) for i in leaves))
        file.write('],"timeDeltas":[' + ",".join(["100"] * len(of)) + "]}")


def chrome(path: Path, of: list[Stack]) -> None:
    leaves, nodes = _tree(of)
    with path.open("w") as file:
        file.write('{"traceEvents":[],"stackFrames":{')
        for i, (caller, f) in enumerate(nodes, 1):
            parent = f',"parent":"{caller}"' if caller else ""
            file.write("," * (i > 1) + f'"{i}":{{"name":"{NAMES[f]}"{parent}}}')
        file.write('},"samples":[')
        one = '{{"cpu":0,"tid":1,"ts":{}.0,"name":"cycles","sf":"{}","weight":1}}'.format
        file.write(",".join(one(i, leaf) for i, leaf in enumerate(leaves)) + "]}")


def dhat(path: Path, of: list[Stack]) -> None:
    values = '{"tb":16,"tbk":1,"tl":100,"mb":16,"mbk":1,"gb":16,"gbk":1,"eb":0,"ebk":0,"rb":0,"wb":0,"fs":['
    table = [f'"0x{_BASE + 16 * i:X}: {name} (a.c:{i + 1})"' for i, name in enumerate(NAMES)]
    with path.open("w") as file:
        file.write('{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true,"tu":"instrs",')
        file.write('"Mtu":"Minstr","tuth":500,"cmd":"./a","pid":1,"te":1000000,"tg":500000,"pps":[')
        for i, stack in enumerate(of):
            file.write(",\n"[not i] + values + ",".join([str(f + 1) for f in reversed(stack)]) + "]}\n")
        file.write('],"ftbl":["[root]",' + ",".join(table) + "]}\n")


def heap(path: Path, of: list[Stack]) -> None:
    addresses = [f" 0x{_BASE + 16 * i + 1:x}" for i in range(FUNCTIONS)]
    n = len(of)
    with path.open("w") as file:
        file.write(f"heap profile: {n}: {16 * n} [{n}: {16 * n}] @ heapprofile\n")
        file.writelines(f"1: 16 [1: 16] @{''.join([addresses[f] for f in reversed(stack)])}\n" for stack in of)
        file.write("\nMAPPED_LIBRARIES:\n" + _MAPS)


def jfr(path: Path, of: list[Stack]) -> None:
    rest, done = iter(of), 0
    with path.open("wb") as file:
        while part := [*islice(rest, 10_000)]:
            chunk = Chunk()
            thread, state = chunk.thread("main", 1, 4711), chunk.state("STATE_RUNNABLE")
            frames = []
            for i in range(FUNCTIONS):
                method, line, code, kind = chunk.frame(f"app/C{i % 100}", f"f{i}", "()V", i + 1, 4, "JIT compiled")
                frames.append(chunk.number(method) + chunk.number(line, 4) + chunk.number(code, 4) + chunk.number(kind))
            head, pool = b"\0" + chunk.number(DEPTH, 4), chunk.pools.setdefault("jdk.types.StackTrace", {})
            for k, stack in enumerate(part, 1):
                pool[k] = head + b"".join([frames[f] for f in reversed(stack)])
                chunk.event("jdk.ExecutionSample", 20_000_000 * (done + k), thread, k, state)
            done += len(part)
            file.write(chunk.bytes())


def perfetto(path: Path, of: list[Stack]) -> None:
    m = t.message
    names = ((5, m((1, i + 1), (2, name))) for i, name in enumerate(NAMES))
    frames = ((6, m((1, i + 1), (2, i + 1), (3, 1), (4, 16 * i))) for i in range(FUNCTIONS))
    mapping = (17, m((1, 1), (2, "app"))), (19, m((1, 1), (5, 0x400000), (6, 0x500000), (8, 1)))
    fields = [b"\x10" + t.varint(i + 1) for i in range(FUNCTIONS)]
    with path.open("wb") as file:
        defaults = (59, m((58, t.MONOTONIC)))
        file.write(t.packet(defaults, flags=t.CLEARED, interned=m(*names, *mapping, *frames)))
        file.write(t.packet(t.snapshot((t.BOOTTIME, 0, 0, 0), (t.MONOTONIC, 0, 0, 0))))
        for k, stack in enumerate(of, 1):
            callstack = m((7, m((1, k)) + b"".join([fields[f] for f in stack])))
            sample = (66, m((1, 0), (2, 7), (3, 7), (4, k), (6, 1)))
            file.write(t.packet(sample, time=1000 * k, flags=t.NEEDS_STATE, interned=callstack))


WRITE: dict[str, Callable[[Path, list[Stack]], None]] = {
    "gperftools": gperftools,
    "folded": folded,
    "perf-script": perf_script,
    "perf": perf,
    "pprof": pprof,
    "otlp": otlp,
    "speedscope": speedscope,
    "firefox": firefox,
    "perfetto": perfetto,
    "jfr": jfr,
    "dhat": dhat,
    "heap": heap,
    "trace-event": chrome,
    "cpuprofile": cpuprofile,
}
