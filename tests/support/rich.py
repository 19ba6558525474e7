"""Small profiles that use all features of their formats, which conversions must keep or report."""

from __future__ import annotations

import io
import json
import marshal
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import fastprof
from tests.reference.profile_proto import Profile
from tests.support.jfrfile import Chunk
from tests.support.paths import CORPUS
from tests.support.perfdata import PerfData
from tests.support.xraylog import FdrLog


class Source(NamedTuple):
    name: str
    format: str
    data: bytes


CALLGRIND = b"""# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 42
cmd: ./prog --fast
part: 1
thread: 1

# of the night
desc: I1 cache: 32768 B, 64 B, 8-way
desc: Trigger: Program termination

positions: instr line
event: Ir : Instruction Fetches
event: Sum = Ir + 2 Dr : weighted
events: Ir Dr
summary: 115 12

ob=/bin/prog
fl=a.c
fn=main
0x401000 10 10 2
fi=mix.h
0x401004 3 5 1
fe=a.c
cob=/lib/liba.so
cfi=u.c
cfn=init
calls=2 0x7f0000001000 1
0x401008 11 40 3
cob=/lib/libb.so
cfi=u.c
cfn=init
calls=3 0x7f0000002000 1
0x40100c 12 60 6
jcnd=3/4 0x401000 10
0x401010 13
jump=7 0x401000 10
0x401014 14

ob=/lib/liba.so
fl=u.c
fn=init
0x7f0000001000 1 30 1
cfn=deep
calls=4 0x7f0000001800 7
0x7f0000001004 2 10 2

fn=deep
0x7f0000001800 7 10 2

ob=/lib/libb.so
fl=u.c
fn=init
0x7f0000002000 1 60 6
totals: 115 12

part: 2
thread: 2

desc: Trigger: Client Request

positions: line
events: Ir Dr

fl=a.c
fn=main
10 1 2
totals: 1 2
"""

CACHEGRIND = b"""desc: I1 cache: 32768 B, 64 B, 8-way associative
cmd: ./prog --fast
events: Ir Dr
fl=a.c
fn=main
10 10 2
fn=init
1 90 7
fl=b.c
fn=init
4 5 1
summary: 105 10
"""

FOLDED = b"main;work;mix 5\nmain;work 3\nmain;idle;wait 2\nother 1\n"


PERF_SCRIPT = b"""# hostname : demo-host
# cmdline : /usr/bin/perf record -g ./prog
demo   10/11    [001]     5.000001:     250000 cpu-clock:
\t            13f8 leaf+0x28
  mix.h:11 (inlined)
\t            13f8 hot+0x28 (/srv/prog)
  a.c:13
\t            118e main+0x5e (/srv/prog)
  a.c:21

demo   10/11    [001]     5.000002:          3 page-faults:
\t            2222 [unknown] (/usr/lib/libc.so.6)
\t            118e main+0x5e (/srv/prog)
  a.c:21

V8 Worker 1/2   10/12 5.000900:     250000 cpu-clock:
\t            13f8 hot+0x28 (/srv/prog)
  a.c:13
 ABI:2    AX:0xb605    BX:0x7ffc6e5577e8

"""


def _pprof() -> bytes:
    texts = [""]

    def text(of: str) -> int:
        if of not in texts:
            texts.append(of)
        return texts.index(of)

    p = Profile()
    for name, unit in (("samples", "count"), ("cpu", "nanoseconds"), ("alloc", "bytes")):
        p.sample_type.add(type=text(name), unit=text(unit))
    p.default_sample_type = text("cpu")
    p.period_type.type, p.period_type.unit, p.period = text("cpu"), text("nanoseconds"), 10_000_000
    p.time_nanos, p.duration_nanos = 1_700_000_000_000_000_000, 5_000_000_000
    p.drop_frames, p.keep_frames, p.doc_url = text("drop.*"), text("keep.*"), text("https://example.org/doc")
    p.comment.append(text("of the night"))
    for i, (file, build_id) in enumerate((("/bin/prog", "abcdef01"), ("/lib/liba.so", "abcdef02"))):
        start = 0x400000 + i * 0x100000
        p.mapping.add(
            id=i + 1,
            memory_start=start,
            memory_limit=start + 0x10000,
            file_offset=0x1000,
            filename=text(file),
            build_id=text(build_id),
            has_functions=True,
            has_filenames=True,
            has_line_numbers=True,
            has_inline_frames=True,
        )
    names = (("main", "_Z4mainv", "a.c", 8), ("work", "_Z4workv", "a.c", 20), ("mix", "_Z3mixv", "mix.h", 2))
    for i, (name, system, file, line) in enumerate((*names, ("init", "init", "u.c", 1), ("init", "init", "v.c", 5))):
        p.function.add(id=i + 1, name=text(name), system_name=text(system), filename=text(file), start_line=line)
    # by location: mapping, address, lines (function, line, column) with the innermost first
    for i, (mapping, address, lines) in enumerate(
        (
            (1, 0x400100, [(1, 10, 3)]),
            (1, 0x400200, [(3, 3, 7), (2, 22, 5)]),
            (1, 0x400300, [(2, 24, 1)]),
            (2, 0x500100, [(4, 1, 0)]),
            (1, 0x400400, [(5, 6, 0)]),
        )
    ):
        location = p.location.add(id=i + 1, mapping_id=mapping, address=address)
        for function, line, column in lines:
            location.line.add(function_id=function, line=line, column=column)
    _pprof_samples(p, text)
    p.string_table.extend(texts)
    return bytes(p.SerializeToString())


def _pprof_samples(p: Profile, text: Callable[[str], int]) -> None:
    for stack, values, labels in (
        ([2, 1], [5, 50_000_000, 100], [("tenant", "blue")]),
        ([4, 3, 1], [3, 30_000_000, 200], [("tenant", "red")]),
        ([5, 3, 1], [2, 20_000_000, 7], [("bytes", 512)]),
        ([1], [1, 10_000_000, 0], [("thread", 7)]),
    ):
        sample = p.sample.add(location_id=stack, value=values)
        for key, value in labels:
            label = sample.label.add(key=text(key))
            if isinstance(value, str):
                label.str = text(value)
            else:
                label.num, label.num_unit = value, text("bytes" if key == "bytes" else "")


def _trace_event() -> bytes:
    def named(what: str, pid: int, tid: int, name: str) -> dict[str, object]:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}

    def event(ph: str, name: str, ts: float, tid: int = 7, **others: object) -> dict[str, object]:
        return {"ph": ph, "name": name, "ts": ts, "pid": 1, "tid": tid, **others}

    events = [
        named("process_name", 1, 7, "server"),
        named("thread_name", 1, 7, "worker"),
        named("thread_name", 1, 9, "never started"),
        named("process_name", 5, 5, "never ran"),
        event("B", "main", 1, args={"arg0": 3, "arg1": 4}),
        event("B", "work", 2, cat="cpu_op"),
        event("B", "mix", 3),
        event("i", "event", 4, s="t", args={"type": 5, "data": "00ff"}),
        event("C", "heap", 4, args={"value": 12.5}),
        event("E", "mix", 5),
        event("E", "work", 9),
        event("E", "main", 11),
        event("X", "alone", 2, 8, dur=6, cat="a,b"),
    ]
    return json.dumps({"traceEvents": events}).encode()


def _speedscope() -> bytes:
    frames = [
        {"name": "main", "file": "a.c", "line": 8, "col": 1},
        {"name": "work", "file": "a.c", "line": 20},
        {"name": "mix", "file": "mix.h", "line": 2},
    ]
    shared = {"type": "sampled", "startValue": 0, "endValue": 9, "unit": "milliseconds"}
    profiles = [
        {**shared, "name": "worker", "samples": [[0], [0, 1], [0, 1, 2]], "weights": [2, 3, 4]},
        {**shared, "name": "helper", "samples": [[0, 1]], "weights": [5]},
    ]
    schema = "https://www.speedscope.app/file-format-schema.json"
    said = {"$schema": schema, "name": "nightly", "exporter": "someone", "activeProfileIndex": 1}
    return json.dumps({**said, "shared": {"frames": frames}, "profiles": profiles}).encode()


def _speedscope_calls() -> bytes:
    def calls(name: str, *events: tuple[str, int, int]) -> dict[str, object]:
        rows = [{"type": type_, "frame": frame, "at": at} for type_, frame, at in events]
        said = {"type": "evented", "name": name, "unit": "microseconds"}
        return {**said, "startValue": 0, "endValue": 20, "events": rows}

    frames = [{"name": "main", "file": "a.c", "line": 8}, {"name": "work", "file": "a.c", "line": 20}, {"name": "mix"}]
    profiles = [
        calls("worker", ("O", 0, 1), ("O", 1, 2), ("O", 2, 3), ("C", 2, 5), ("C", 1, 9), ("C", 0, 11)),
        calls("helper", ("O", 0, 4), ("C", 0, 6)),
        calls("idle"),
    ]
    schema = "https://www.speedscope.app/file-format-schema.json"
    return json.dumps({"$schema": schema, "shared": {"frames": frames}, "profiles": profiles}).encode()


def _xray() -> bytes:
    log = FdrLog(version=5)
    log.buffer(tid=7, pid=1).cpu(3, 1000).enter_args(1, 10, 5).enter(2, 10).enter(3, 10).custom(b"hello", 5).exit(
        3, 20
    ).typed(9, b"\0\1", 5).exit(2, 40).exit(1, 60)
    log.buffer(tid=8, pid=1).cpu(1, 1500).enter(1, 10).exit(1, 30)
    return log.bytes()


def _corpus(file: str) -> bytes:
    return (CORPUS / file).read_bytes()


def _perf() -> bytes:
    """Two threads of a process; an object, and an address outside of it."""
    data = PerfData().comm(7, 7, b"app").mmap(7, 0x400000, 0x1000, b"/srv/app", 0x1000)
    data.sample(7, [0x400010, 0x400120, 0x400230], 1_000_000_100, 20_000_000)
    data.sample(7, [0x400340, 0x400120, 0x400230], 1_000_000_200, 30_000_000, tid=8)
    return data.sample(7, [0x900000, 0x400230], 1_000_000_300, 10_000_000).bytes()


def _jfr() -> bytes:
    """Two threads, a period in the settings, allocations and delays."""
    chunk = Chunk()
    frames = [("app/Main", "work", "(I)V", 7, 3, "JIT compiled"), ("app/Main", "main", "()V", 3, 9, "Interpreted")]
    stack, state, class_ = chunk.stack(frames), chunk.state("STATE_RUNNABLE"), chunk.class_("[Ljava/lang/String;")
    main, worker = chunk.thread("main", 1, 70), chunk.thread("worker", 12, 71)
    chunk.event("jdk.JVMInformation", 0, "VM", "21", "-Dsecret=1", 69)
    chunk.setting("jdk.ExecutionSample", "period", "20 ms")
    chunk.event("jdk.ExecutionSample", 5, main, stack, state)
    chunk.event("jdk.ExecutionSample", 9, worker, chunk.stack(frames[1:]), state)
    chunk.event("jdk.ObjectAllocationInNewTLAB", 11, worker, stack, class_, 24, 2048)
    chunk.event("jdk.JavaMonitorEnter", 12, 700, main, stack, class_)
    return chunk.bytes()


def _pstats() -> bytes:
    main, work, built_in = ("/srv/app.py", 40, "main"), ("/srv/lib/work.py", 7, "work"), ("~", 0, "<built-in sum>")
    return marshal.dumps(
        {
            main: (1, 1, 1e-6, 9e-6, {}),
            work: (3, 3, 5e-6, 8e-6, {main: (3, 3, 5e-6, 8e-6)}),
            built_in: (4, 4, 3e-6, 3e-6, {work: (4, 4, 3e-6, 3e-6)}),
        },
        4,
    )


@cache
def sources() -> dict[str, Source]:
    """By name: the format, and a suffix if there are several."""
    found = [
        Source("callgrind", "callgrind", CALLGRIND),
        Source("cachegrind", "cachegrind", CACHEGRIND),
        Source("pprof", "pprof", _pprof()),
        Source("otlp", "otlp", _corpus("otlp/good/v1.10-both.otlp")),
        Source("folded", "folded", FOLDED),
        Source("heap", "heap", _corpus("heap/good/java.heap")),
        Source("massif", "massif", _corpus("massif/good/inlined.massif")),
        Source("dhat", "dhat", _corpus("dhat/good/copy.dhat.json")),
        Source("heapprofile", "heapprofile", _corpus("heapprofile/good/node20.heapprofile")),
        Source("heaptrack", "heaptrack", _corpus("heaptrack/good/small.heaptrack")),
        Source("memray", "memray", _corpus("memray/good/small.memray")),
        Source("mojo", "mojo", _corpus("mojo/good/full.mojo")),
        Source("llvm-profile", "llvm-profile", _corpus("llvm-profile/good/contexts.llvmprof")),
        Source("pyinstrument", "pyinstrument", _corpus("pyinstrument/good/threads.pyisession")),
        Source("stackprof", "stackprof", _corpus("stackprof/good/wall.stackprof")),
        Source("stackprof, flat", "stackprof", _corpus("stackprof/good/flat.stackprof")),
        Source("bolt", "bolt", _corpus("bolt/good/branches.fdata")),
        Source("uftrace", "uftrace", _corpus("uftrace/good/args.tar")),
        Source("simpleperf", "simpleperf", _corpus("simpleperf/good/app.simpleperf.trace")),
        Source("tachyon", "tachyon", _corpus("tachyon/good/zstd.tachyon")),
        Source("gmon", "gmon", _corpus("gmon/good/cycle.gmon")),
        Source("gprof", "gprof", _corpus("gprof/good/lines.gprof.txt")),
        Source("pstats", "pstats", _pstats()),
        Source("tracer-stacks", "tracer-stacks", _corpus("tracer-stacks/good/maps.bpftrace")),
        Source("rprof", "rprof", _corpus("rprof/good/memory.Rprof")),
        Source("ghc-prof", "ghc-prof", _corpus("ghc-prof/good/labels.ghc.prof")),
        Source("safari", "safari", _corpus("safari/good/fib-recording.json")),
        Source("gpu-sqlite", "gpu-sqlite", _corpus("gpu-sqlite/good/nsys.sqlite")),
        Source("xplane", "xplane", _corpus("xplane/good/device.xplane.pb")),
        Source("scalene", "scalene", _corpus("scalene/good/memory.scalene.json")),
        Source("ghc-json", "ghc-json", _corpus("ghc-json/good/lab.ghc.json")),
        Source("instruments", "instruments", _corpus("instruments/good/time.instruments.txt")),
        Source("pprof-raw", "pprof-raw", _corpus("pprof-raw/good/go-labels.pprof.txt")),
        Source("luajit", "luajit", _corpus("luajit/good/s.luajit")),
        Source("perfetto", "perfetto", _corpus("perfetto/good/tracks.pftrace")),
        Source("firefox", "firefox", _corpus("firefox/good/version-70.json")),
        Source("gperftools", "gperftools", _corpus("gperftools/good/build_var.prof")),
        Source("gperftools, symbolized", "gperftools", _corpus("gperftools/good/symbolized.prof")),
        Source("speedscope, samples", "speedscope", _speedscope()),
        Source("speedscope, calls", "speedscope", _speedscope_calls()),
        Source("trace-event", "trace-event", _trace_event()),
        Source("perf", "perf", _perf()),
        Source("jfr", "jfr", _jfr()),
        Source("perf-script", "perf-script", PERF_SCRIPT),
        Source("cpuprofile", "cpuprofile", _corpus("cpuprofile/good/small.cpuprofile")),
        Source("xray", "xray", _xray()),
        Source("xray, profile", "xray", _corpus("xray/good/profile-bare.xray")),
        Source("oprofile", "oprofile", _corpus("oprofile/good/threads.tar")),
    ]
    archives = [_archived(source) for source in found if source.name in ("callgrind", "pprof", "trace-event")]
    return {source.name: source for source in [*found, *archives]}


def _archived(source: Source) -> Source:
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(source.data), out, from_=source.format, to="archive")
    return Source(f"archive, {source.name}", "archive", out.getvalue())
