"""What tests of each file of the corpus, or of each written format, run with by default; the rest is exhaustive."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import CORPUS

# Of each format that is read, a file of each shape: several value types, parts, threads, labels, times, inlined code
CHOSEN = [
    f"{folder}/good/{name}"
    for folder, names in {
        "archive": "graph.fpa stacks.fpa timeline.fpa",
        "cachegrind": "head.cachegrind newer.cachegrind",
        "callgrind": "contexts.callgrind quirks_inherit.callgrind unloaded.callgrind xtree.callgrind",
        "cpuprofile": "hits.cpuprofile node20.cpuprofile",
        "dhat": "heap.dhat.json",
        "firefox": "gecko-24.json written.json",
        "folded": "odd_names.folded recursion.folded two_values.folded",
        "gmon": "cycle.gmon",
        "gprof": "cycle.gprof.txt flat.gprof.txt",
        "gperftools": "small.prof symbolized.prof",
        "heap": "go-heap.heap negative.heap symbolized.heap",
        "heapprofile": "order.heapprofile",
        "heaptrack": "version1.heaptrack",
        "memray": "version11.memray",
        "mojo": "memory.mojo wall.mojo",
        "jfr": "made-datadog.jfr made-two-jvms.jfr",
        "llvm-profile": "contexts.llvmprof inlined.llvmprof compressed.llvmprof",
        "bolt": "branches.fdata memory.fdata",
        "massif": "inlined.massif",
        "oprofile": "deps.tar ppc.oprofile threads.tar",
        "otlp": "lines.otlp.jsonl v1.10-both.otlp",
        "perf": "made-switches.data real-dwarf.data",
        "perf-script": "real-default-dwarf.perf real-hide-chain.perf",
        "perfetto": "streaming-profile.pftrace tracks.pftrace",
        "pprof": "everything.pb go-block.pb.gz",
        "pstats": "profile.pstats",
        "ghc-prof": "labels.ghc.prof p.ghc.prof",
        "ghc-json": "lab.ghc.json",
        "pyinstrument": "threads.pyisession",
        "stackprof": "flat.stackprof object.stackprof",
        "safari": "fib-recording.json",
        "scalene": "memory.scalene.json",
        "instruments": "bytes.instruments.txt time.instruments.txt",
        "luajit": "fv.luajit s.luajit",
        "pprof-raw": "everything.pprof.txt go-block.pprof.txt",
        "rprof": "memory.Rprof",
        "tracer-stacks": "keys.dtrace maps.bpftrace profile.bcc",
        "speedscope": "28_recursion.json weights_first.json",
        "trace-event": "12_threads_apart.json profile_chunks.json sampled_mixed.json",
        "gpu-sqlite": "trace.rpd",
        "xplane": "cpu.xplane.pb device.xplane.pb",
        "simpleperf": "app.simpleperf.trace",
        "tachyon": "plain.tachyon",
        "uftrace": "args.tar",
        "xray": "fdr5-busy.xray profile-swapped.xray",
    }.items()
    for name in names.split()
]


# Of each view, a written format
WRITTEN = ["callgrind", "perfetto", "pprof"]


def cases(names: Iterable[Any], default: Iterable[Any] = (*CHOSEN, *WRITTEN), every: int = 1) -> list[Any]:
    """Files, or formats to write, as parameters of a test: the default ones and every n-th of the others.

    Paths are those of the corpus."""
    few, names = {*default}, [*names]
    chosen = [(name.relative_to(CORPUS).as_posix() if isinstance(name, Path) else name) in few for name in names]
    return [
        name if is_default else pytest.param(name, marks=pytest.mark.exhaustive)
        for i, (name, is_default) in enumerate(zip(names, chosen, strict=True))
        if is_default or i % every == 0
    ]
