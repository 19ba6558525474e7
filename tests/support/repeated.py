"""Texts that repeat a piece at a place where it may stand, for each format: python -m tests.support.repeated WHAT

A quadratic pattern takes 10^9 steps and more in such a text, half a minute at least, and a linear one milliseconds.  So
all texts of a format together have a limit of processor time that is far from both.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError
from tests.support.paths import REPO

N = 50_000  # bytes of a repeated piece
SECONDS = 25
PIECES = [*" \t0aZ_:;(){}[]<>-+*/=,.#'\"\\$@&|~^%!\x7f", " (", "(:1", " a", "1 ", ":1] ", "a:1]", "--", "operator--"]
PIECES += ["deadbeef ", ".ko", "@ 0x1", "name = ", "::", " (a:1", ".1", "-1", "0x1 ", "$build", "S", "_ZS", ", "]

_SAMPLE = b"c 1/1 [000] 1.000000:          1 cycles:u: \n\t            1000 f+0x0 (/l.so)\n\n"
_SNAPSHOT = (
    b"#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=5\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree="
)
_HEAP = b"heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x400005\n"
_JAVA = b"--- heapz 1 ---\nformat = java\nresolution = bytes\n 1 8 @ 0x00000001\n"
_TRACE = b"v 10200 2\nX a\ns f\ni 1 0 1\nt 1 0\na 8 1\n+ 0\n"
_DHAT = b'{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true,"tu":"i","Mtu":"M","cmd":"x","pid":1,"tg":1,"te":2,"pps":[{"tb":8,"tbk":1,"tl":1,"mb":8,"mbk":1,"gb":8,"gbk":1,"eb":0,"ebk":0,"rb":1,"wb":1,"fs":[1]}],"ftbl":["[root]","%s"]}'  # noqa: E501
# By format; %s is where pieces stand.
TEMPLATES: dict[str, list[bytes]] = {
    "dhat": [_DHAT.replace(b"%s", frame) for frame in (b"0x1: a%s", b"0x1: a (%s)", b"0x1: a (b.c:%s)", b"%s")],
    "heaptrack": [
        _TRACE.replace(b"X a", b"X a%s"),
        _TRACE.replace(b"s f", b"s f%s"),
        _TRACE.replace(b"i 1 0 1", b"i 1 0 %s"),
        _TRACE.replace(b"+ 0", b"%s"),
    ],
    "perf-script": [
        b"# ========\n# captured on    : Mon\n# a%s\n# ========\n#\n" + _SAMPLE,
        b"# ========\n# event : %s\n# ========\n#\n" + _SAMPLE,
        _SAMPLE.replace(b"c 1/1", b"c%s 1/1"),
        _SAMPLE.replace(b"f+0x0", b"f%s"),
        _SAMPLE.replace(b"f+0x0 (/l.so)", b"f%s"),
        _SAMPLE.replace(b"/l.so", b"%s"),
        _SAMPLE.replace(b"cycles:u: ", b"cyc%s: "),
        _SAMPLE.replace(b"1 cycles:u: ", b"%s"),
        _SAMPLE + b"%s\n" + _SAMPLE,
    ],
    "tracer-stacks": [
        b"@[\n    f%s\n]: 5\n",
        b"@[%s\n    f\n]: 5\n",
        b"@[\n    f\n, %s]: 5\n",
        b"@[\n    f\n]: %s\n",
        b"Tracing off-CPU time (us) of all threads by stack... Hit Ctrl-C to end.\n    f\n    -   a%s (1)\n    5\n",
        b"\n    a`f%s\n    5\n",
    ],
    "ghc-prof": [
        b"\tTime and Allocation Profiling Report\n\ttotal time = (9 ticks @ 1 us)\n\ttotal alloc = 5 bytes\n"
        + b"COST CENTRE".ljust(60)
        + b" MODULE SRC entries\na%s M <x> 1 2 0.0 0.0 0.0 0.0\n"
    ],
    "gprof": [
        b"Flat profile:\n\nEach sample counts as 1.00 seconds.\n time   seconds   seconds  calls\n 9.0 1.00 1.00 f%s\n",
        b"Call graph\n\n\ngranularity: each sample hit covers 2 byte(s)\n\nindex % time    self  children    called \n"
        b"[1] 9.0 1.00 1.00 f [1]\n     1.00   0.00    5/5   g%s [2]\n----------\n\n",
        b"Call graph\n\n\ngranularity: each sample hit covers 2 byte(s)\n\nindex % time    self  children    called \n"
        b"[1] 9.0 1.00 1.00 f (%s:5 @ 400) [1]\n----------\n\n",
    ],
    "instruments": [b"Weight\tSelf\tSymbol Name\n9 ms\t9 ms\tf%s\n", b"Weight\tSelf\tSymbol Name\n9 %s\t9 ms\tf\n"],
    "pprof-raw": [
        b"Period: 1\nSamples:\ncpu/ns\n 5: 1\n  a%s:[b]\nLocations\n 1: 0x1 f a.go:5 s=1\n",
        b"Period: 1\nSamples:\ncpu/ns\n 5: 1\nLocations\n 1: 0x1 f%s a.go:5 s=1\n",
        b"Period: 1\nSamples:\ncpu/ns\n 5: 1\nLocations\n 1: 0x1 f a.go:5 s=1\nMappings\n1: 0x1/0x2/0x0 a%s\n",
    ],
    "bolt": [b"1 f%s 1 1 g 2 0 9\n", b"no_lbr c\n1 f%s 1 9\n", b"1 f 1 1 g 2 0 9\n4 %s 1 4 t 1 2\n"],
    "llvm-profile": [b"f%s:9:1\n 1: 9\n", b"f:9:1\n 1: 9 g%s:4\n", b"f:9:1\n 1: g%s:5\n  1: 5\n", b"f:9:1\n %s\n"],
    "rprof": [b'sample.interval=5\n#File 1: a\n1#2 "f%s" "g" \n', b"sample.interval=5\n%s\n"],
    "luajit": [b"   50  f\n  <-    20  g%s\n"],
    "massif": [
        b"desc: a\ncmd: b\ntime_unit: i\n" + _SNAPSHOT + b"peak\nn0: 5 0x1: a%s\n",
        b"desc: a\ncmd: b\ntime_unit: i\n" + _SNAPSHOT + b"peak\nn0: 5 0x1: a (%s)\n",
        b"desc: a\ncmd: b\ntime_unit: i\n" + _SNAPSHOT + b"peak\nn0: 5 %s\n",
        b"desc: a\ncmd: b\ntime_unit: i\n" + _SNAPSHOT + b"peak\n%s\n",
        b"desc: a%s\ncmd: b\ntime_unit: i\n" + _SNAPSHOT + b"empty\n",
        b"desc: a\ncmd: %s\ntime_unit: i\n" + _SNAPSHOT + b"empty\n",
        b"desc: a\ncmd: b\ntime_unit: %s\n" + _SNAPSHOT + b"empty\n",
    ],
    "heap": [
        _HEAP + b"\nMAPPED_LIBRARIES:\n400000-500000 r-xp 00000000 08:01 1 /p%s\n",
        _HEAP + b"\nMAPPED_LIBRARIES:\n%s\n",
        _HEAP + b"1: 8 [1: 8] @ %s\n",
        b"heap profile: 1: 8 [1: 8] @ heap%s\n1: 8 [1: 8] @ 0x1\n",
        b"heap profile: 1: 8 [1: 8] @ heap/1048576\n1: 8 [1: 8] @ 0x1\n#\t0x1\tmain.f%s\n\n# Alloc = 1%s\n",
        b"--- symbol\nbinary=/p\n0x400005 f%s\n---\n--- heap\n" + _HEAP,
        _JAVA + b" 0x00000001 f%s\n",
        _JAVA + b" 0x00000001 f (%s)\n",
        _JAVA.replace(b"bytes", b"%s"),
        b"%s profile: total 1\n1 @ 0x1 0x2\n",
        b"goroutine profile: total 1\n1 @ 0x1 0x2\n#\t0x1\tmain.f%s\t/a.go:5\n",
        b"goroutine profile: total 1\n1 @ 0x1 0x2\n# labels: {%s}\n#\t0x1\tmain.f\t/a.go:5\n",
        b"heap_v2/524288\n  t*: 1: 8 [0: 0]\n@ 0x400005\n  t*: 1: 8 [0: 0]\n  t%s: 1: 8 [0: 0]\n",
        b"--- contention:\ncycles/second = 1000%s\nsampling period = 1\n1 1 @ 0x1\n",
        b"--- threadz 1 ---\n\n--- Thread 1 (name: %s/1) stack: ---\n  0x1 0x2\n",
    ],
}
# Formats of JSON: each text of a small file of the corpus, by its key.
JSON = {"cpuprofile", "ghc-json", "scalene", "dhat", "firefox", "heapprofile", "otlp", "speedscope", "trace-event"}
JSON |= {"pyinstrument", "safari"}
_TEXT_OF_KEY = re.compile(r'"(\w{1,40})"\s{0,9}:\s{0,9}(?:\[\s{0,9})?"([^"\\]{1,200})"')


def json_templates(format_: str) -> Iterator[bytes]:
    """Of the smallest file in which a key has a text."""
    seen = set()
    files = sorted((REPO / "tests" / "corpus" / format_ / "good").iterdir(), key=lambda path: path.stat().st_size)
    for path in files:
        head = path.read_bytes()[:1]
        if head not in (b"{", b"[") or path.stat().st_size > 50_000:
            continue
        text = path.read_text("utf-8", "replace")
        for found in _TEXT_OF_KEY.finditer(text):
            if found[1] not in seen:
                seen.add(found[1])
                start, end = found.span(2)
                yield f"{text[:start]}{found[2]}%s{text[end:]}".encode()


def templates(format_: str) -> list[bytes]:
    return [*TEMPLATES.get(format_, ()), *(json_templates(format_) if format_ in JSON else ())]


def read(format_: str) -> int:
    """Number of texts that are read."""
    n = 0
    for template in templates(format_):
        before, _, after = template.partition(b"%s")
        for piece in PIECES:
            text = piece * (N // len(piece))
            middle = (json.dumps(text)[1:-1] if format_ in JSON else text).encode()
            with contextlib.suppress(FastprofError), fastprof.open(before + middle + after, lenient=True) as profile:
                n += sum(1 for _ in profile)
    return n


# {0}, {1}: inputs; {2}: a folder
COMMANDS = (
    "info {0}",
    "top {0}",
    "top --by line -n 0 {0}",
    "top --by object {0}",
    "annotate {0}",
    "report {0} -o {2}/o.html",
    "diff {0} {1}",
    "diff --by line {0} {1}",
    "convert {0} -o {2}/o.pb.gz",
    "convert {0} -o {2}/o.speedscope.json",
)


def show() -> int:
    """Names of functions, files and objects, in all verbs."""
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        for piece in PIECES:
            for k in (0, 1):
                name = f"a{piece * (N // 4 // len(piece))}{k}".replace("\n", "")
                text = f"events: Ir\nob={name}\nfl={name}\nfn={name}\n1 1\ncfn=g\ncalls=1 1\n2 3\nfn=g\n1 3\n"
                Path(folder, f"{k}.callgrind").write_text(text)
            for command in COMMANDS:
                words = command.format(f"{folder}/0.callgrind", f"{folder}/1.callgrind", folder).split()
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    n += main(words) == 0
    return n


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    print(show() if sys.argv[1] == "names" else read(sys.argv[1]))
