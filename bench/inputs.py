"""Inputs of any size for benches, made from what is in the repository or by Valgrind: the same bytes every time."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.differential.record_xray import ALL_CALLS, Recipe, Recorder, Recording
from tests.support.paths import CORPUS

XRAY_SAMPLE = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"
_NEW_CPU, _TSC_WRAP, _WALL_TIME, _EXTENTS = 0x05, 0x07, 0x09, 0x0F


def repeated_xray(log: bytes, nbytes: int) -> bytes:
    """An FDR log's buffers again and again, each round later than the one before."""
    body, tscs, walls = bytearray(log[32:]), [], []
    at = 0
    while at < len(body):
        if not body[at] & 1:
            at += 8
            continue
        if body[at] == _NEW_CPU:
            tscs.append(at + 3)
        elif body[at] == _TSC_WRAP:
            tscs.append(at + 1)
        elif body[at] == _WALL_TIME:
            walls.append(at + 1)
        size = struct.unpack_from("<i", body, at + 1)[0] if body[at] in (0x0B, 0x11) else 0
        at += 16 + size
    out = bytearray(log[:32])
    step = 1 << 32
    while len(out) < nbytes:
        out += body
        for place in tscs:
            struct.pack_into("<Q", body, place, struct.unpack_from("<Q", body, place)[0] + step)
        for place in walls:
            struct.pack_into("<Q", body, place, struct.unpack_from("<Q", body, place)[0] + 1)
    return bytes(out)


def gperftools(path: Path, nbytes: int) -> None:
    """Random stacks of 8 to 30 frames over 2,000 call sites, each four times."""
    times = 4
    rng, records = random.Random(1), bytearray()
    for _ in range(nbytes // (168 * times)):
        depth = rng.randrange(8, 31)
        # few choices near the root, many at the leaf, as in real programs
        frames = [0x400000 + 16 * rng.randrange(1 + 60 * (depth - i)) + 1 for i in range(depth)]
        records += struct.pack(f"<{depth + 2}Q", rng.randrange(1, 9), depth, *frames)
    with path.open("wb") as out:
        out.write(struct.pack("<5Q", 0, 3, 0, 10_000, 0))
        for _ in range(times):
            out.write(records)
        out.write(struct.pack("<3Q", 0, 1, 0))
        out.write(b"00400000-00500000 r-xp 00000000 08:01 7          /usr/bin/app\n")


def walked(path: Path, nbytes: int) -> None:
    """The same of a program in which each of 4,000 call sites calls up to eight others, the first of them most often:
    stacks share their outer frames, as in real programs."""
    rng = random.Random(1)
    sites = range(4000)
    callees = [[rng.choice(sites) for _ in range(rng.randrange(1, 9))] for _ in sites]
    with path.open("wb") as out:
        out.write(struct.pack("<5Q", 0, 3, 0, 10_000, 0))
        while out.tell() < nbytes:
            at, frames = 0, []
            for _ in range(rng.randrange(8, 31)):
                frames.append(0x400000 + 16 * at + 1)
                at = callees[at][min(int(rng.paretovariate(1.2)), len(callees[at])) - 1]
            out.write(struct.pack(f"<{len(frames) + 2}Q", rng.randrange(1, 9), len(frames), *reversed(frames)))
        out.write(struct.pack("<3Q", 0, 1, 0))
        out.write(b"00400000-00500000 r-xp 00000000 08:01 7          /usr/bin/app\n")


def cachegrind(path: Path, nbytes: int, seed: int) -> None:
    """Functions in files, nine events a line; of two seeds half the functions have the same names."""
    rng, size = random.Random(seed), 0
    total = [0] * 9
    with path.open("w") as out:
        out.write("desc: I1 cache: 32768 B, 64 B, 8-way associative\ncmd: ./app\n")
        out.write("events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\n")
        for function in range(1 << 30):
            if size > nbytes:
                break
            kind = "shared" if function % 2 else f"only{seed}"
            text = (
                f"fl=/src/{kind}/part{function // 40}.cpp\nfn=ns::{kind}::Class{function // 7}::method{function}(int)\n"
            )
            line = rng.randrange(1, 2000)
            for _ in range(rng.randrange(2, 14)):
                line += rng.randrange(1, 5)
                ir = rng.randrange(1, 1 << rng.randrange(4, 27))
                counts = [ir, ir >> 11, ir >> 15, ir // 3, ir >> 7, ir >> 12, ir // 5, ir >> 8, ir >> 13]
                total = [a + b for a, b in zip(total, counts, strict=True)]
                text += f"{line} {' '.join(map(str, counts))}\n"
            out.write(text)
            size += len(text)
        out.write(f"summary: {' '.join(map(str, total))}\n")


def firefox(path: Path, nbytes: int, threads: int = 8) -> None:
    """A profile of the Firefox Profiler as samply writes it: stacks over 20,000 addresses, samples with CPU times."""
    rng, n_frames, n_stacks = random.Random(7), 20_000, nbytes // 140

    def table(n: int, **columns: Iterable[object]) -> str:
        texts = (f'"{name}":[{",".join(map(str, items))}]' for name, items in columns.items())
        return f'{{"length":{n},{",".join(texts)}}}'

    def times(n: int) -> Iterator[str]:
        now = 0
        for _ in range(n):
            now += 1_000_000 + rng.randrange(10_000)
            yield f"{now // 1_000_000}.{now % 1_000_000:06}"

    with path.open("w") as out:
        out.write(
            '{"meta":{"interval":1.0,"preprocessedProfileVersion":60,"processType":0,"startTime":1671458961578.1055,'
        )
        out.write(
            '"sampleUnits":{"time":"ms","threadCPUDelta":"ns"}},"libs":[{"name":"app","path":"/usr/bin/app"}],"shared":{'
        )
        out.write(f'"stringArray":[{",".join(json.dumps(hex(4096 + 16 * i)) for i in range(n_frames))}],"frameTable":')
        numbers, zeros, nulls = range(n_frames), [0] * n_frames, ["null"] * n_frames
        addresses = range(4096, 4096 + 16 * n_frames, 16)
        out.write(table(n_frames, address=addresses, category=zeros, func=numbers, line=nulls, column=nulls))
        out.write(f',"funcTable":{table(n_frames, name=numbers, resource=zeros, source=nulls, lineNumber=nulls)}')
        prefixes = ["null", *(i - 1 if rng.random() < 0.7 else rng.randrange(i) for i in range(1, n_stacks))]
        frames = (int(n_frames * rng.random() ** 2) for _ in range(n_stacks))
        out.write(f',"resourceTable":{table(1, lib=[0], name=[0])}')
        out.write(f',"stackTable":{table(n_stacks, prefix=prefixes, frame=frames)}}},"threads":[')
        n = (nbytes - out.tell()) // threads // 35
        for k in range(threads):
            stacks, spent = (
                (rng.randrange(n_stacks) for _ in range(n)),
                (rng.randrange(900_000, 1_100_000) for _ in range(n)),
            )
            samples = table(n, stack=stacks, time=times(n), weight=[1] * n, threadCPUDelta=spent)
            out.write(f'{"," * (k > 0)}{{"name":"worker {k}","pid":"1","tid":{1 + k},"samples":{samples}}}')
        out.write("]}")


def perfetto(path: Path, nbytes: int, threads: int = 16) -> None:
    """A Perfetto trace: calls of 2,000 functions, a packet for each begin and end, threads in bursts of 256 KiB."""
    from tests.support import perfettotrace as t

    rng, burst = random.Random(7), 256 << 10
    with path.open("wb") as out:
        out.write(t.packet(track=t.process(1 << 32, 100, "app"), seq=None))
        bursts = []
        for seq in range(1, threads + 1):
            defaults = t.message((11, t.message((11, seq))), (58, t.OWN))
            names = t.interned((i + 3, f"ns::function_{i}_of_the_app") for i in range(2000))
            out.write(t.packet((59, defaults), seq=seq, flags=t.CLEARED, interned=names))
            out.write(t.packet(t.snapshot((t.OWN, 0, True, 0), (t.BOOTTIME, 0, False, 0)), seq=seq))
            out.write(t.packet(seq=seq, track=t.thread(seq, 100, 200 + seq, f"worker {seq}")))
            packets, depth = bytearray(), 0
            while depth or len(packets) < burst:
                begins = len(packets) < burst and depth < 40 and (not depth or rng.random() < 0.5)
                event = t.event(t.BEGIN, iid=3 + int(2000 * rng.random() ** 2)) if begins else t.event(t.END)
                depth += 1 if begins else -1
                packets += t.packet(seq=seq, flags=t.NEEDS_STATE, time=rng.randrange(20, 4000), event=event)
            bursts.append(bytes(packets))
        while out.tell() < nbytes:
            out.writelines(bursts)


def v8(path: Path, nbytes: int, threads: int = 4) -> None:
    """A Perfetto trace of Chrome with samples of JavaScript: chunks of 250 samples and 20 new nodes, as JSON texts."""
    from tests.support import perfettotrace as t

    def event(name: str, profile: int, data: object) -> bytes:
        annotation = t.message((1, 1), (9, json.dumps(data, separators=(",", ":"))))
        legacy = t.message((2, ord("P")), (6, profile))
        return t.event(t.INSTANT, (4, annotation), (6, legacy), name=name, track=profile)

    rng, known = random.Random(7), [1] * threads
    root = {"id": 1, "callFrame": {"functionName": "(root)", "scriptId": 0, "url": "", "lineNumber": 0}}
    with path.open("wb") as out:
        out.write(t.packet(flags=t.CLEARED, interned=t.message((3, t.message((1, 1), (2, "data"))))))
        out.write(t.packet(t.snapshot((t.BOOTTIME, 0, 0, 0), (t.MONOTONIC, 0, 0, 0))))
        for k in range(threads):
            out.write(t.packet(track=t.thread(k + 1, 100, 200 + k, f"page {k}")))
            out.write(t.packet(time=5, event=event("Profile", k + 1, {"startTime": 100})))
            out.write(t.packet(time=5, event=event("ProfileChunk", k + 1, {"cpuProfile": {"nodes": [root]}})))
        while out.tell() < nbytes:
            k = rng.randrange(threads)
            nodes = [
                {"id": id_, "parent": rng.randrange(max(1, id_ - 200), id_)}
                | {"callFrame": root["callFrame"] | {"functionName": f"f{id_ % 5000}", "url": "https://x/app.js"}}
                for id_ in range(known[k] + 1, known[k] + 21)
            ]
            known[k] += 20
            samples = [rng.randrange(max(2, known[k] - 400), known[k] + 1) for _ in range(250)]
            deltas = [rng.randrange(90, 200) for _ in samples]
            data = {"cpuProfile": {"nodes": nodes, "samples": samples}, "timeDeltas": deltas, "lines": [7] * 250}
            out.write(t.packet(time=5, event=event("ProfileChunk", k + 1, data)))


def kineto(path: Path, nbytes: int) -> None:
    """A trace of PyTorch's profiler: operators and Python functions of a thread, kernels of two streams, flows."""
    rng = random.Random(7)
    kernels = [
        f"void at::native::vectorized_elementwise_kernel<{i}, at::native::CUDAFunctor_add<float>>" for i in range(40)
    ]
    shapes = '"Input type": ["float", "float", ""], "Input Dims": [[32, 1024], [1024, 1024], []]'

    def event(ph: str, cat: str, name: str, pid: int, tid: int, ts: int, rest: str) -> str:
        ids = f'"ph": "{ph}", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}'
        return f'  {{\n    {ids},\n    "ts": {ts // 1000}.{ts % 1000:03},{rest}\n  }},\n'

    def complete(cat: str, name: str, pid: int, tid: int, ts: int, dur: int, args: str) -> str:
        rest = f' "dur": {dur // 1000}.{dur % 1000:03},\n    "args": {{\n      {args}\n    }}'
        return event("X", cat, name, pid, tid, ts, rest)

    with path.open("w") as out:
        out.write('{\n  "schemaVersion": 1,\n  "baseTimeNanoseconds": 1725984384000000000,\n  "traceEvents": [\n')
        now, n, free = 6148914691236517, 0, {7: 0, 20: 0}
        while out.tell() < nbytes:
            n, begin, stream = n + 1, now, 20 if rng.random() < 0.1 else 7
            inner, now = begin + rng.randrange(500, 1500), begin + rng.randrange(9000, 19000)
            at = max(now + 2000, free[stream])
            free[stream] = at + rng.randrange(2000, 9000)
            grid = f'"stream": {stream}, "correlation": {n}, "grid": [64, 1, 1], "block": [128, 1, 1]'
            name = f"torch/nn/modules/module.py({rng.randrange(1500, 1620)}): forward"
            out.write(complete("cuda_runtime", "cudaLaunchKernel", 1, 1, inner + 300, 3000, f'"correlation": {n}'))
            out.write(event("s", "ac2g", "ac2g", 1, 1, inner + 300, f' "id": {n}'))
            out.write(complete("cpu_op", f"aten::op{rng.randrange(60)}", 1, 1, inner, 6000, f'"Ev Idx": {n}, {shapes}'))
            out.write(complete("python_function", name, 1, 1, begin, now - begin, f'"Python id": {n}, "Ev Idx": {n}'))
            out.write(complete("kernel", rng.choice(kernels), 0, stream, at, free[stream] - at, grid))
            out.write(event("f", "ac2g", "ac2g", 0, stream, at, f' "id": {n}, "bp": "e"'))
            now += 500
        out.write(event("i", "", "Record Window End", 1, 1, now, ' "s": "g"')[:-2] + "\n  ]\n}\n")


def spans(path: Path, nbytes: int) -> None:
    """A trace of asynchronous calls alone: up to 64 open at once, each with its own id."""
    rng, ids, now = random.Random(7), 0, 0
    open_: list[tuple[int, int]] = []
    with path.open("w") as out:
        out.write("[")
        while out.tell() < nbytes:
            now += rng.randrange(1, 2000)
            if len(open_) < 64 and (not open_ or rng.random() < 0.5):
                ph, ids = "b", ids + 1
                open_.append((ids, rng.randrange(1000)))
                id_, name = open_[-1]
            else:
                ph, (id_, name) = "e", open_.pop(rng.randrange(len(open_)))
            out.write(
                f'{{"cat":"request","name":"handler_{name}","ph":"{ph}","id":"0x{id_:x}","pid":1,"tid":1,'
                f'"ts":{now // 1000}.{now % 1000:03}}},\n'
            )
        out.write(f'{{"ph":"i","name":"end","pid":1,"tid":1,"ts":{now // 1000 + 1}}}]')


def recorded_xray(folder: Path, mb: int) -> Recording:
    """A log of `mb` MB or more by clang's runtime, of a small interpreter that computes Fibonacci numbers."""
    n = 24 + math.ceil(math.log(mb / 71, 1.618))  # fib(24) makes 72 MB
    options = f"buffer_size=1048576 buffer_max={2 * mb + 16} {ALL_CALLS}"
    return Recorder(folder).make("log", Recipe("interp", "xray-fdr", options, (str(n),)), True)


def callgrind(path: Path) -> None:
    """A real one, some 110 MB: Callgrind runs a Python that compiles and parses its own library."""
    script = (
        "import ast, argparse, inspect, tokenize, json, csv, decimal, fractions, tarfile, difflib\n"
        "for m in argparse, inspect, tokenize, tarfile, difflib:\n"
        "    ast.parse(inspect.getsource(m)), compile(inspect.getsource(m), '', 'exec')\n"
        "json.dumps(json.loads('[{\"a\": [1.5, null]}]'), indent=1)\n"
        "fractions.Fraction(1, 3) ** 9, decimal.Decimal(2).sqrt()"
    )
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", "--separate-callers=10"]
    command += [f"--callgrind-out-file={path}", sys.executable, "-c", script]
    subprocess.run(command, check=True, capture_output=True)


def contexts(path: Path) -> None:
    """Folded stacks: 100,000 of seven functions each, which are 475,000 contexts."""
    rng = random.Random(1)
    with path.open("w") as out:
        for i in range(100_000):
            deep = [f"deep{level}::step{(i * level) % 900}<std::vector<int>>" for level in (1, 3, 7)]
            k = i % 75_000
            names = ["main", f"mod{k % 7}::run", f"work{k}", f"step{i % 613}", *deep]
            out.write(f"{';'.join(names)} {rng.randint(1, 1000)}\n")
