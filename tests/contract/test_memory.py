"""Ten times the records need no more memory: each reader and each writer."""

from __future__ import annotations

import gzip
import json
import marshal
import os
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.source import Source
from fastprof.formats.archive.index import load
from fastprof.formats.archive.sections import Codec
from tests.contract.dump import CORPUS
from tests.reference import memray as writer
from tests.reference import mojo, simpleperf, tachyon, uftrace, xplane
from tests.support import gpu_sqlite
from tests.support import perfettotrace as t
from tests.support.conversions import OF_ANY
from tests.support.jfrfile import Chunk
from tests.support.once import made_once
from tests.support.oprofile import path_of, sample_file, tar_of
from tests.support.peak import DRIVER, peak
from tests.support.perfdata import PerfData
from tests.support.xraylog import FdrBuffer, FdrLog

SLACK = 6 << 20  # bytes
# The small file must fill what is allocated once; an archive's chunk is larger than that. Sums may grow to
# --max-memory (32 MiB) before rows are spilled; those of the estimate are smaller.
MORE_SLACK = {
    "cachegrind": 32 << 20,
    **dict.fromkeys(("gpu-sqlite", "xplane"), 32 << 20),  # calls that wait for their order
    **dict.fromkeys(("firefox", "folded", "otlp", "pprof", "speedscope"), 16 << 20),
    "archive": 24 << 20,  # also one batch per thread of several threads
    **dict.fromkeys(("arrow", "parquet"), 32 << 20),  # a few batches of 128 Ki rows, which a short file does not fill
}
# A small timeline has too few rows for threads; batches of a larger one wait for their tables (docs/architecture.md).
WAITING = dict.fromkeys(["xray", "trace-event", "perfetto"], min(os.cpu_count() or 1, 8) * (5 << 20))


def xray(path: Path, times: int) -> None:
    log = FdrLog(5, buffer_size=1 << 16, frequency=10**6)  # a tick is a microsecond; formats round to that
    for n in range(times * 20):
        buffer: FdrBuffer = log.buffer(tid=n % 4, seconds=n).cpu(0, n << 32)
        for i in range(2000):
            buffer.enter(i % 500 + 1, 3).exit(i % 500 + 1, 2)
    path.write_bytes(log.bytes())


def callgrind(path: Path, times: int) -> None:
    with path.open("wb") as file:
        file.write(b"# callgrind format\nevents: Ir\n\n")
        body = b"".join(b"fn=(%d) f%d\n%d 7\n+1 9\ncfn=(2)\ncalls=1 5\n+2 10\n" % (i, i, i) for i in range(1, 400))
        for _ in range(times * 100):
            file.write(body)


def cachegrind(path: Path, times: int) -> None:
    with path.open("wb") as file:
        file.write(b"desc: I1 cache: none\ncmd: x\nevents: Ir\n")
        for n in range(times * 150):
            file.write(b"fl=f.c\n" + b"".join(b"fn=f%d\n%d 7\n" % (i, n) for i in range(400)))
        file.write(b"summary: %d\n" % (400 * sum(range(times * 150))))


def perf(path: Path, times: int) -> None:
    """Samples of a thousand stacks, on four CPUs, in rounds."""
    with path.open("wb") as file:
        for n in range(20 * times):
            data = PerfData()
            for cpu in range(4):
                for i in range(250):
                    time = 1_000_000 * n + 1000 * i + cpu + 1
                    data.sample(7, [0x400000 + 16 * k for k in range(i, -1, -1)][:64], time)
            whole = data.round().bytes()
            file.write(whole if not n else whole[len(PerfData().bytes()) :])


def perf_script(path: Path, times: int) -> None:
    """Samples of a thousand stacks."""
    with path.open("w") as file:
        for i in range(20_000 * times):
            frames = "".join(f"\t{0x400000 + 16 * k:16x} f{k}+0x1 (/opt/app)\n" for k in range(i % 1000, i % 1000 + 5))
            file.write(f"app {i % 7:5d}/{i % 7:<5d} {i // 1000:5d}.{i % 1000:06d}:     250000 cpu-clock: \n{frames}\n")


def otlp(path: Path, times: int) -> None:
    """A profile with samples of 100 stacks that precede their dictionary."""
    samples = b"".join(bytes((0x12, 6, 8, i + 1, 0x22, 2, 0x87, 1)) for i in range(100)) * (times * 2000)
    stacks = b"".join(b"\x3a\4\x0a\2" + bytes((i + 1, 1)) for i in range(100))
    locations = b"\x12\0" + b"".join(b"\x12\2\x10" + bytes((i + 1,)) for i in range(101))
    message = b"\x0a\4\x08\1\x10\2" + samples
    for number in (2, 2, 1):
        message = bytes((number << 3 | 2,)) + length(len(message)) + message
    dictionary = locations + b"\x2a\0\x2a\3cpu\x2a\2ns\x3a\0" + stacks
    path.write_bytes(message + b"\x12" + length(len(dictionary)) + dictionary)


def length(n: int) -> bytes:
    found = bytearray()
    while n > 127:
        found.append(n & 127 | 128)
        n >>= 7
    return bytes((*found, n))


def folded(path: Path, times: int) -> None:
    lines = b"".join(b"main;worker_%d;f%d;g%d %d\n" % (i % 7, i % 50, i, i + 1) for i in range(400))
    path.write_bytes(lines * (times * 100))


def trace_event(path: Path, times: int) -> None:
    """Calls that end before their callers, in the order of complete events in a file."""
    with path.open("w") as file:
        file.write("[")
        for n in range(times * 140_000):
            file.write(f'{{"ph":"X","name":"f{n % 500}","ts":{n % 7 + 9 * n},"dur":1,"pid":1,"tid":{n % 4}}},\n')
        file.write('{"ph":"X","name":"main","ts":0,"dur":1,"pid":1,"tid":0}]\n')


def perfetto(path: Path, times: int) -> None:
    """Calls of four threads, out of order between the threads."""
    with path.open("wb") as file:
        for seq in range(1, 5):
            names = t.interned((i, f"f{i}") for i in range(1, 100))
            file.write(t.packet(seq=seq, flags=t.CLEARED, interned=names, track=t.thread(seq, 1, seq)))
            events = [t.event(t.BEGIN, iid=i, track=seq) for i in range(1, 100)] + [t.event(t.END, track=seq)]
            # a time of 2^21 to 2^28 has four bytes: packets are made once, and only those are replaced
            heads = [
                t.packet(seq=seq, flags=t.NEEDS_STATE, time=1 << 21, event=event).partition(t.varint(1 << 21))
                for event in events
            ]
            for i in range(times * 30_000):
                for at, (head, _, tail) in ((9 * i, heads[i % 99]), (9 * i + 5, heads[-1])):
                    file.write(head + t.varint(at + (1 << 21)) + tail)


def perfetto_v8(path: Path, times: int) -> None:
    """Samples of V8: chunks of 500, whose frames are known at first."""
    legacy, call = t.message((2, ord("P")), (6, 1)), {"scriptId": 1, "url": "a.js"}
    nodes = [{"id": i + 1, "callFrame": call | {"functionName": f"f{i}"}} for i in range(500)]
    with path.open("wb") as file:
        file.write(t.packet(flags=t.CLEARED, track=t.thread(7, 10, 12)))
        samples = {"timeDeltas": [9] * 500, "cpuProfile": {"samples": [*range(1, 501)]}}
        data = [("Profile", {"startTime": 1}), ("ProfileChunk", {"cpuProfile": {"nodes": nodes}, "timeDeltas": []})]
        for name, found in [*data, *[("ProfileChunk", samples)] * (250 * times)]:
            args = t.message((10, "data"), (9, json.dumps(found)))
            file.write(t.packet(event=t.message((4, args), (6, legacy), (11, 7), (23, name)), time=5))


def firefox(path: Path, times: int) -> None:
    """Samples that precede the tables they refer to."""
    n, stacks = times * 120_000, 500
    with path.open("w") as file:
        file.write('{"meta":{"preprocessedProfileVersion":60},"threads":[{"pid":"1","tid":1,"samples":{"stack":[0')
        file.writelines(f",{i % stacks}" for i in range(n))
        file.write('],"time":[0' + "".join(f",{i}.25" for i in range(n)) + ']}}],"shared":{"stringArray":["f"')
        file.write("".join(f',"f{i}"' for i in range(1, stacks)))
        numbers = ",".join(map(str, range(stacks)))
        file.write(f'],"stackTable":{{"frame":[{numbers}],"prefix":[null{",0" * (stacks - 1)}]}},"frameTable":')
        file.write(f'{{"func":[{numbers}]}},"funcTable":{{"name":[{numbers}]}}}}}}')


def speedscope(path: Path, times: int) -> None:
    with path.open("w") as file:
        frames = ",".join(f'{{"name":"f{n}"}}' for n in range(500))
        file.write(f'{{"shared":{{"frames":[{frames}]}},"profiles":[{{"type":"sampled","unit":"none","weights":[0')
        n = times * 60_000
        file.write(",7" * n + '],"samples":[[]' + "".join(f",[0,{i % 7},{i % 500}]" for i in range(n)) + "]}]}")


def cpuprofile(path: Path, times: int) -> None:
    """One profile whose samples are far from their times in the file."""
    with path.open("w") as file:
        call = '"callFrame":{"functionName":"f%d","scriptId":"0","url":"","lineNumber":1}'
        nodes = ",".join(f'{{"id":{n},"parent":{n // 2},{call % n}}}' for n in range(2, 500))
        file.write(f'{{"nodes":[{{"id":1,{call % 1}}},{nodes}],"startTime":1,"endTime":9,"samples":[1')
        n = times * 60_000
        file.write("".join(f",{i % 499 + 1}" for i in range(n)) + '],"timeDeltas":[7' + ",1000" * n + "]}")


def from_xray(to: str) -> Callable[[Path, int], None]:
    """Some stacks, converted, with their samples repeated."""

    def make(path: Path, times: int) -> None:
        log = path.with_name("small.xray")
        xray(log, 1)
        fastprof.convert([str(log)], str(path), to=to)
        data = path.read_bytes()
        if to == "pprof":
            # concatenated protocol buffers are merged: repeat the samples (field 2)
            data = gzip.decompress(data)
            samples = b"".join(field for number, field in fields(data) if number == 2)
            data += samples * (times * 400)
        path.write_bytes(data)

    return make


def gperftools(path: Path, times: int) -> None:
    """Records of 500 stacks, repeated."""
    records = b"".join(struct.pack("<5Q", 1, 3, 0x401000 + i, 0x402000 + i % 7, 0x403000) for i in range(500))
    path.write_bytes(struct.pack("<5Q", 0, 3, 0, 10_000, 0) + records * (times * 80) + struct.pack("<3Q", 0, 1, 0))


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """The top-level fields of a message, all of them length-delimited or varint."""
    found, at = [], 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at += value
        found.append((key >> 3, data[start:at]))
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def archive(path: Path, times: int) -> None:
    """Times that do not repeat, so that the file grows with its records."""
    noise, log = random.Random(1), FdrLog(5, buffer_size=1 << 16)
    for n in range(times * 40):
        buffer = log.buffer(tid=n % 4, seconds=n).cpu(0, n << 40)
        for i in range(2000):
            buffer.enter(i % 500 + 1, noise.getrandbits(28)).exit(i % 500 + 1, noise.getrandbits(28))
    raw = path.with_name("raw.xray")
    raw.write_bytes(log.bytes())
    fastprof.convert([str(raw)], str(path), to="archive")


def oprofile(path: Path, times: int) -> None:
    nodes = [(0x1000 + 7 * i % 50_000, i + 1) for i in range(4000)]
    path.write_bytes(
        tar_of({path_of("{root}/bin/x", tgid=1, tid=n + 1): sample_file(nodes) for n in range(times * 20)})
    )


def jfr(path: Path, times: int) -> None:
    """Chunks of the same stacks, with 20,000 samples each."""
    chunk = Chunk()
    frames = [("app/Main", f"f{i}", "()V", i, 2, "JIT compiled") for i in range(60)]
    stacks = [chunk.stack(frames[i:]) for i in range(50)]
    threads = [chunk.thread(f"worker-{i}", i, 100 + i) for i in range(1, 5)]
    state = chunk.state("STATE_RUNNABLE")
    for i in range(20_000):
        chunk.event("jdk.ExecutionSample", i * 10_000, threads[i % 4], stacks[i % 50], state)
    with path.open("wb") as file:
        for _ in range(times * 2):
            file.write(chunk.bytes())


def heap(path: Path, times: int) -> None:
    rows = (f" {n}: {n}00 [ {n}: {n}00] @ 0x40{n:04x} 0x7fbd1344524a 0x55cb1f9890f1\n" for n in range(1, 51))
    path.write_text("heap profile: 1: 2 [1: 2] @ heap_v2/524288\n" + "".join(rows) * times * 1000)


def massif(path: Path, times: int) -> None:
    """Snapshots with trees of the same frames; their figures take 72 bytes each."""
    nodes = "".join(f" n0: 10 0x{n:x}: function_with_a_long_name_{n} (source_file_{n}.c:{n})\n" for n in range(500))
    tree = f"n500: 5000 (heap allocation functions)\n{nodes}"
    with path.open("w") as file:
        file.write("desc: (none)\ncmd: ./a\ntime_unit: i\n")
        for n in range(times * 200):
            figures = f"time={n}\nmem_heap_B=5000\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
            file.write(f"#-----------\nsnapshot={n}\n#-----------\n{figures}heap_tree=detailed\n{tree}")


def dhat(path: Path, times: int) -> None:
    points = [f'{{"tb":{n},"tbk":1,"fs":[{n},{n + 1},{n + 2}]}}\n' for n in range(1, 101)]
    table = ",".join(f'"0x{n}: function{n} (a.c:{n})"' for n in range(103))
    head = '{"dhatFileVersion":2,"mode":"copy","bklt":false,"bkacc":false,"pps":['
    path.write_text(head + ",".join(points * (times * 1000)) + f'],"ftbl":[{table}]}}')


def pstats(path: Path, times: int) -> None:
    """Functions with the same names; a marshalled dict may repeat its keys."""
    functions = {("a.py", n, f"f{n}"): (1, 1, 0.5, 1.0, {("a.py", 1, "main"): (1, 1, 0.5, 1.0)}) for n in range(100)}
    path.write_bytes(b"{" + marshal.dumps(functions, 2)[1:-1] * (times * 500) + b"0")


def heapprofile(path: Path, times: int) -> None:
    """Samples, which nodes add up."""
    tree = '{"callFrame":{"functionName":"(root)"},"selfSize":8,"id":1,"children":[]}'
    path.write_text(
        f'{{"head":{tree},"samples":[' + ",".join(['{"size":8,"nodeId":1,"ordinal":1}'] * (times * 20_000)) + "]}"
    )


def memray(path: Path, times: int) -> None:
    events = [writer.Event(2, (("f", 10),), kind, 64, 8) for kind in (writer.MALLOC, writer.FREE)]
    head, record = writer.write(13, events[:1])[:-1], writer.write(13, events)
    path.write_bytes(head + (record[len(head) : -1] + b"\x86\x08") * (times * 200_000) + b"\1")


GROW: dict[str, Callable[[Path, int], None]] = {
    "xray": xray,
    "callgrind": callgrind,
    "cachegrind": cachegrind,
    "pprof": from_xray("pprof"),
    "otlp": otlp,
    "folded": folded,
    "perf": perf,
    "jfr": jfr,
    "perf-script": perf_script,
    "trace-event": trace_event,
    "perfetto": perfetto,
    "firefox": firefox,
    "cpuprofile": cpuprofile,
    "speedscope": speedscope,
    "gperftools": gperftools,
    "heap": heap,
    "massif": massif,
    "dhat": dhat,
    "pstats": pstats,
    "heapprofile": heapprofile,
    "tracer-stacks": lambda path, times: path.write_text("@[\n    f+1\n    g+0x2 [m]\n, a]: 12\n" * times * 20_000),
    "rprof": lambda path, times: path.write_text(
        "sample.interval=20000\n#File 1: a.R\n" + '1#2 "f" "g" 1#9 "main" \n' * times * 20_000
    ),
    "ghc-prof": lambda path, times: path.write_text(
        "\tTime and Allocation Profiling Report\n\ttotal time = (9 ticks @ 1 us)\n\ttotal alloc = 5 bytes\n"
        f"{'COST CENTRE':40} MODULE SRC no. entries ticks     bytes\n"
        + "a M <x> 1 2 0.0 0.0 0.0 0.0 3 4\n b M a.hs:4:1 1 2 0.0 0.0 0.0 0.0 3 4\n"
        * times
        * 20_000
    ),
    "pyinstrument": lambda path, times: path.write_text(
        '{"start_time": 1, "sample_count": 1, "frame_records": ['
        + ",".join([r'[["f\u0000a.py\u00001\u0001l2"], 0.001]'] * times * 20_000)
        + "]}"
    ),
    "stackprof": lambda path, times: path.write_text(
        '{"version":1.2,"mode":"cpu","interval":1000,"frames":{"7":{"name":"f","samples":1}},"raw":['
        + ",".join(["1,7,1"] * times * 100_000)
        + "]}"
    ),
    "uftrace": lambda path, times: path.write_bytes(
        uftrace.write({7: uftrace.data([uftrace.Record(5, k & 1, 0, 0) for k in range(24_000)]) * times})
    ),
    "tachyon": lambda path, times: path.write_bytes(
        tachyon.write([tachyon.Sample(7, 0, 0, 0, ())], data=(bytes(12) + b"\1\5\0\0") * (times * 40_000))
    ),
    "simpleperf": lambda path, times: path.write_bytes(
        simpleperf.HEAD
        + simpleperf.write([simpleperf.sample([(9, 0, -1)])])[12:-4] * (times * 20_000)
        + simpleperf.write([{"file": {"id": 0, "path": "a.so"}}])[12:]
    ),
    "scalene": lambda path, times: path.write_text(
        '{"alloc_samples": 1, "elapsed_time_sec": 2.5, "files": {"a.py": {"functions": [{"line": "f", "lineno": 1}], '
        '"lines": ['
        + ", ".join(['{"lineno": 2, "n_sys_percent": 0.5, "start_function_line": 1}'] * times * 20_000)
        + "]}}}"
    ),
    "ghc-json": lambda path, times: path.write_text(
        '{"program": "a", "rts_arguments": [], "tick_interval": 1, "cost_centres": [{"id": 1, "label": "f"}], '
        '"profile": {"id": 1, "entries": 1, "alloc": 0, "ticks": 0, "children": ['
        + ", ".join(['{"id": 1, "entries": 1, "alloc": 2, "ticks": 3, "children": []}'] * times * 20_000)
        + "]}}"
    ),
    "safari": lambda path, times: path.write_text(
        '{"version": 1, "recording": {"records": ['
        + ", ".join(['{"type": "timeline-record-type-cpu", "usage": 1}'] * times * 20_000)
        + '], "sampleStackTraces": [{"timestamp": 1, "stackFrames": [{"name": "f"}]}], "sampleDurations": [1]}}'
    ),
    "gpu-sqlite": lambda path, times: path.write_bytes(gpu_sqlite.many(20_000 * times)),
    "xplane": lambda path, times: path.write_bytes(xplane.many(30_000 * times)),
    "instruments": lambda path, times: path.write_text(
        "Bytes Used\tCount\tSymbol Name\n" + "9.5 KB\t2\tf\n7 KB\t1\t g\n" * times * 20_000
    ),
    "pprof-raw": lambda path, times: path.write_text(
        "PeriodType: cpu ns\nSamples:\ncpu/ns \n"
        + " 5: 1 2\n   a:[b]\n" * times * 20_000
        + "Locations\n 1: 0x1 f a.go:5 s=1\n 2: 0x2 g a.go:7 s=1\n"
    ),
    "luajit": lambda path, times: path.write_text("    9  f < g\n  <-     5  main\n" * times * 20_000),
    "archive": archive,
    "memray": memray,
    "gmon": lambda path, times: path.write_bytes(
        (CORPUS / "gmon/good/cycle.gmon").read_bytes() + (b"\1" + bytes(20)) * (times * 16_000)
    ),
    "gprof": lambda path, times: path.write_text(
        "Flat profile:\n\nEach sample counts as 0.01 seconds.\n time   seconds   seconds    calls\n"
        + "  9.00       1.00     1.00     9000     0.00     0.00  f\n" * (times * 8_000)
    ),
    "mojo": lambda path, times: path.write_bytes(
        mojo.write(3, "wall", [mojo.Sample(1, 1, (("a.py", "f", 1),), 5, 0)]) + b"\2\1\x001\0\x09\5" * (times * 50_000)
    ),
    "bolt": lambda path, times: path.write_text(
        "1 main 1f 1 walk 0 3 90\n1 walk 2a 0 [unknown] 0 0 8\n" * times * 30_000
    ),
    "llvm-profile": lambda path, times: path.write_text(
        "main:5:1\n 1: 5 leaf:2\n 2: size:3\n  0: 3\n" * times * 30_000
    ),
    "heaptrack": lambda path, times: path.write_bytes(b"v 10400 3\nX ./a\na 8 0\n" + b"+ 0\n- 0\n" * (times * 50_000)),
    "oprofile": oprofile,
}
READERS = [f.name for f in formats.formats() if f.reader]
WRITERS = OF_ANY


def sources(writer: str) -> list[str]:
    """A writer's inputs: for each view that it converts, the first format that is read."""
    if writer == "gperftools":
        return ["gperftools"]  # its inputs have only addresses, unlike the others here
    target, found = formats.get(writer), {}
    for f in formats.formats():
        if f.reader and f.view != "any" and (f.view == target.view or target.view != "timeline"):
            found.setdefault(f.view, f.name)
    return [*found.values()]


def pair(folder: Path, name: str) -> None:
    for times in (1, 10):
        (folder / f"{times}").mkdir()
        GROW[name](folder / f"{times}" / "profile", times)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The paths of a short and a long file of a format."""

    @cache
    def make(name: str) -> list[str]:
        assert name in GROW, f"no way is known to make a long {name} file: a reader comes with an entry in GROW"
        folder = made_once(tmp_path_factory, f"grown-{name}", lambda folder: pair(folder, name))
        paths = [folder / f"{times}" / "profile" for times in (1, 10)]
        once, ten_times = (path.stat().st_size for path in paths)
        assert ten_times > 5 * once and ten_times > SLACK // 2, (once, ten_times)
        return [*map(str, paths)]

    return make


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", READERS[::2])
def test_reading_needs_no_more_for_more_records(name: str, grown: Callable[[str], list[str]]) -> None:
    once, ten_times = (peak("info", path, "--from", name) for path in grown(name))
    assert ten_times < once + SLACK + MORE_SLACK.get(name, 0) + WAITING.get(name, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", READERS)
def test_top_needs_no_more_for_more_records(name: str, grown: Callable[[str], list[str]]) -> None:
    once, ten_times = (peak("top", path, "--from", name, "-q") for path in grown(name))
    assert ten_times < once + SLACK + MORE_SLACK.get(name, 0) + WAITING.get(name, 0)


@pytest.mark.exhaustive
def test_samples_of_v8_in_a_trace_need_no_more_for_more_records(tmp_path: Path) -> None:
    peaks = []
    for times in (1, 10):
        perfetto_v8(path := tmp_path / f"{times}.pftrace", times)
        peaks.append(peak("top", str(path), "-q", "-O", "perfetto.data=v8"))
    assert path.stat().st_size > SLACK
    assert peaks[1] < peaks[0] + SLACK


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", READERS[1::2])
def test_becoming_a_graph_needs_no_more_for_more_records(name: str, grown: Callable[[str], list[str]]) -> None:
    graph = next(f.name for f in formats.formats() if f.writer and f.view == "graph")
    once, ten_times = (converting(path, name, graph) for path in grown(name))
    assert ten_times < once + SLACK + MORE_SLACK.get(name, 0) + WAITING.get(name, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("to", "name"), [(to, name) for to in WRITERS for name in sources(to)])
def test_writing_needs_no_more_for_more_records(to: str, name: str, grown: Callable[[str], list[str]]) -> None:
    once, ten_times = (converting(path, name, to) for path in grown(name))
    assert ten_times < once + SLACK + MORE_SLACK.get(to, 0)


def test_every_writer_is_given_something() -> None:
    assert [to for to in WRITERS if not sources(to)] == [], "no format is read that could become one of these"


def converting(path: str, name: str, to: str) -> int:
    return peak("convert", "-q", path, "--from", name, "-o", "/dev/null", "--to", to)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["xray", "pprof", "callgrind"])
@pytest.mark.parametrize("level", ["3", "19"])
def test_archives_are_written_and_read_in_constant_memory(name: str, level: str, tmp_path: Path) -> None:
    """One file per view: some chunks, and ten times as many."""
    chunked = "from fastprof.formats.archive import write\nwrite.CHUNK_ROWS = 30_000\n" + DRIVER
    peaks = []
    for times in (1, 10):
        path, stored = tmp_path / f"{times}", tmp_path / f"{times}.fpa"
        GROW[name](path, times)
        wrote = peak("convert", "-q", str(path), "-o", str(stored), "--level", level, driver=chunked)
        with Source(str(stored)) as source:
            archive = load(source, Codec(), lenient=False)
            chunks = list(archive.member(archive.chosen(source)[0]).chunks.values())
        assert len(chunks) >= 2 * times
        peaks.append((wrote, peak("convert", "-q", str(stored), "-o", "/dev/null", "--to", name, driver=chunked)))
    for once, ten_times in zip(*peaks, strict=True):
        assert ten_times < once + SLACK


def call_paths(path: Path, times: int) -> None:
    """A trace in which nearly every call path is new."""
    log, noise = FdrLog(5, buffer_size=1 << 16, frequency=10**6), random.Random(1)
    for n in range(times * 10):
        buffer, stack = log.buffer(tid=n % 4, seconds=n).cpu(0, n << 32), []
        for _ in range(4000):
            if len(stack) < 20 and noise.random() < 0.55:
                stack.append(noise.randrange(1, 300))
                buffer.enter(stack[-1], 3)
            elif stack:
                buffer.exit(stack.pop(), 2)
        while stack:
            buffer.exit(stack.pop(), 2)
    path.write_bytes(log.bytes())


@pytest.mark.exhaustive
@pytest.mark.parametrize("to", ["pprof", "folded"])
def test_call_paths_need_no_memory(to: str, tmp_path: Path) -> None:
    peaks = []
    for times in (1, 10):
        path = tmp_path / f"{times}.xray"
        call_paths(path, times)
        # one thread: a short output starts none to compress, so their buffers would be the whole difference
        args = "convert", "-q", str(path), "-o", "/dev/null", "--to", to, "--max-memory", "1M", "--cores", "1"
        peaks.append(peak(*args))
    assert peaks[1] < peaks[0] + SLACK


def labelled(path: Path, n: int) -> None:
    """Samples of n stacks with n labels each: few entries in the model, many sums."""
    from tests.reference import profile_proto

    p = profile_proto.Profile()
    p.string_table.extend(["", "samples", "count", "size", *(f"f{i}" for i in range(n))])
    p.sample_type.add(type=1, unit=2)
    for i in range(n):
        p.function.add(id=i + 1, name=4 + i)
        p.location.add(id=i + 1).line.add(function_id=i + 1)
        for k in range(n):
            p.sample.add(location_id=[i + 1], value=[1]).label.add(key=3, num=k + 1)
    path.write_bytes(p.SerializeToString())


@pytest.mark.exhaustive
@pytest.mark.parametrize("inputs", [1, 2])
def test_sums_of_stacks_keep_to_the_limit(inputs: int, tmp_path: Path) -> None:
    path = str(tmp_path / "many.pb")
    labelled(Path(path), 700)
    of_both = ("convert", "-q", *[path] * inputs, "-o", "/dev/null", "--to", "pprof", "--max-memory")
    assert peak(*of_both, "1M") < peak(*of_both, "1G") - (10 << 20)


@pytest.mark.exhaustive
@pytest.mark.parametrize("to", ["page", "pb"])
def test_a_part_of_a_graph_takes_few_bytes(to: str, tmp_path: Path) -> None:
    def needed(parts: int) -> int:
        path = tmp_path / f"{parts}.callgrind"
        path.write_text("".join(f"part: {k + 1}\nevents: Ir\nfn=f\n1 1\n\n" for k in range(parts)))
        verb = ["report", "-o"] if to == "page" else ["convert", "--labels", "part", "-o"]
        return peak(*verb, str(tmp_path / f"out.{to}"), str(path), "-q")

    assert needed(2500) - needed(500) < 2000 * 8_000


def test_the_measure_sees_what_grows(tmp_path: Path) -> None:
    """Distinct functions do need memory: if this test saw no growth, the one above would prove nothing."""
    path = tmp_path / "names.callgrind"
    with path.open("wb") as file:
        file.write(b"events: Ir\n" + b"".join(b"fn=%d%s\n1 1\n" % (i, b"x" * 100) for i in range(150_000)))
    assert peak("info", str(path)) > peak("info", str(CORPUS / "callgrind" / "good" / "tab.callgrind")) + SLACK
