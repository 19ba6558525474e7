"""Commands that once gave a wrong answer, each with the right one; the files are described in tests/corpus/answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from fastprof.cli import main
from tests.support.paths import CORPUS

ANSWERS = CORPUS / "answers"


class Answer(NamedTuple):
    """`has` and `lacks` are regular expressions (multiline) over what the command prints to stdout and stderr."""

    command: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    code: int = 0


TABLE = [
    Answer(
        "top exec_in_import_cycle.pstats --sort inclusive --width none",
        tuple(rf" 696 ms +100\.0 +{calls}  {name}" for calls, name in ((2, "<built-in"), (1, "<module>"), (1, "main"))),
        ("<cycle",),
    ),
    Answer(
        "convert exec_in_import_cycle.pstats -t folded",
        (r"^<built-in method builtins.exec>;<module>( \(prog.py:1\))?;main;stage;work 69\d{4}$",),
        ("^stage",),
    ),
    Answer(
        "top python_m_profile_311.pstats",
        ("in 7 functions", r" 465  f$", r" 1  <code object <module>, file \"t.py\", line 1>$"),
    ),
    Answer("top python_m_profile_311.pstats --value ncalls", (r": 470 ncalls",)),
    Answer("top python_m_profile_311.pstats --value primitive_calls", (r": 6 primitive_calls",)),
    Answer(
        "top pyinstrument-5.1.3.pstats --sort inclusive",
        (r"^ +0\.10 .* 1\.65 +128\.0 +-1  fib$", r" 1\.29 +100\.0 +-1  <module>$", "in 23 functions"),
    ),
    # the first event has no sample: the first of its kind with a cost takes its place
    Answer("info zero-first-event.data", (r"^default value type +cpu-clock$", "major-faults is 0 everywhere, so cpu-")),
    Answer("top --no-symbols zero-first-event.data", ("257 ms cpu-clock in 89 functions", "so cpu-clock takes")),
    Answer("top --by thread zero-first-event.data", ("257 ms cpu-clock in 5 threads",)),
    Answer("diff zero-first-event.data zero-first-event.data", ("so cpu-clock takes its place",)),
    Answer("annotate zero-first-event.data", ("so cpu-clock takes its place", r"cpu-clock ms")),
    Answer("convert zero-first-event.data --no-symbols -t folded -o /dev/null", ("89 stacks of cpu-clock",)),
    Answer("convert zero-first-event.data -t gperftools -o /dev/null", (": 89 samples",)),
    Answer(
        "convert zero-first-event.data -t folded --value major-faults -o /dev/null",
        ("no row has a cost: major-faults is 0 everywhere; --value=NAME selects another",),
        code=1,
    ),
    # the allocator is left out, as in jeprof and Massif
    Answer("top jemalloc.heap", (r" 69\.7 .* heap ", r" 26\.2 .* heap ", r" 3\.6 .* heap "), (r"  libjemalloc",)),
    Answer("top jemalloc.heap --keep-allocator", (r" 100\.0 .* libjemalloc",)),
    Answer("top dhat.heap", (r" 71\.0 .* c$", r" 24\.9 .* b$", r" 4\.1 .* leaf$"), ("vgpreload", "malloc$")),
    Answer("top dhat.heap --keep-allocator", (r" 75\.1 .* malloc$", r" 24\.9 .* calloc$")),
    Answer("convert dhat.heap -t folded -o -", (r";c;malloc \d+$", r";b;calloc \d+$")),
    Answer("top massif-pages.out", ("133 MiB heap_bytes", "snapshot 89 is read.* peak 1;", r" 56\.8 .* c$"), ("mmap",)),
    Answer("top massif-pages.out -O snapshot=1", ("4.01 MiB heap_bytes",), ("snapshot 89",)),
    Answer("report --prune 0 cprofile.pstats -o /dev/null", ("209 functions",), ("prune",)),
    # of another host: its kernel is not this machine's
    # the second on a host of the same name, with the same kernel at the same address
    Answer(
        "top z.data",
        (
            r"kernel\.kallsyms\]: 16 addresses without .*: no build id identifies the kernel$"
            "|kernel names are this machine's: the recording has no build id",
        ),
    ),
    Answer("info memprof83.heap", (r"^  samples +4,203$", r"^distinct chains +3$", "the period is 0")),
    Answer("top memprof83.heap", (r"4,096 .* file_get_contents$", r"100 .* Foo::load$", r"^ +7 .* 4,203 .* main$")),
    Answer("info instants_with_empty_samples.json", (r"^view +timeline$", r"^events +2$")),
    Answer(
        "top llvm_xray19_stack_flame_time.folded", ("158,977,760 ticks in 4 functions", r"158,964,549 .* busy\(\)$")
    ),
    Answer("info oprofile_empty_session.tar", (r"no sample files in the session",), code=1),
    Answer(
        "top same-time-ends.trace.json",
        (r"^ +10\.0 +100\.0 +100\.0 +10\.0 +100\.0 +2 +b$", r"^ +0\.0 .* 10\.0 +100\.0 +2 +a$"),
        lacks=("repairs", "orphan"),
    ),
    Answer(
        "top --sort slef two_threads.json",
        (r"unknown key or value type 'slef', expected self, inclusive, calls, time; did you mean 'self'\?$",),
        code=2,
    ),
    Answer("topp two_threads.json", (r"unknown verb 'topp'; did you mean 'top'\?$",), code=2),
    Answer("archive ad x y", (r"'ad' is not one of add, list, .*; did you mean 'add'\?$",), code=2),
    Answer("diff two_threads.json two_threads.json --pair nme", (r"; did you mean 'name'\?$",), code=2),
    Answer("convert two_threads.json -t pprf", (r"unknown format 'pprf' \(did you mean pprof\?\)",), code=2),
    Answer("top --by funtion two_threads.json", (r"; did you mean 'function'\?$",), code=2),
    Answer("top --value tme two_threads.json", (r"; did you mean 'time'\?$",), code=2),
    Answer(
        "info named.json", (r"^view +timeline$", r"Renderer \(1\): CrRendererMain \(10\), Renderer \(1\): IOThread")
    ),
    Answer("top --by thread named.json", (r"100 .* Renderer \(1\): CrRendererMain \(10\)$", r"IOThread \(11\)$")),
    Answer("top --thread CrRendererMain named.json", (r"^named.json: 100 us in 1 function;", r"task$"), (r" x$",)),
    Answer("top --thread 'Renderer (1): IOThread (11)' named.json", (r"^named.json: 50.0 us in 1 function;",)),
    Answer("top --thread Nobody named.json", (r"the threads are CrRendererMain \(10\), IOThread \(11\)$",), code=2),
    Answer("info two_threads.json", (r"srv \(7\): worker A \(8\), srv \(7\): thread 9$",)),
    Answer(
        "convert two_threads.json -t folded --per-thread",
        (r"^srv \(7\): worker A \(8\);f 5$", r"^srv \(7\): thread 9;g 5$"),
        ("merged",),
    ),
    Answer("top --by thread two_threads.json", (r" srv \(7\): worker A \(8\)$", r" srv \(7\): thread 9$")),
    Answer(
        "convert r0.trace.json r1.trace.json -t trace-event",
        (r'"pid":10,.*"name":"python \[r0.trace.json\]"', r'"name":"python \(10\) \[r1.trace.json\]"'),
    ),
    Answer(
        "convert r0.trace.json r1.trace.json -t trace-event --label-path r{rank}.trace.json",
        (r'"name":"python \[rank=0\]"', r'"name":"python \(10\) \[rank=1\]"'),
    ),
    Answer(
        "top --by thread r0.trace.json r1.trace.json", (r"python \(10\) \[r0.trace.json\]: thread 1$", r"\[r1.trace")
    ),
    Answer(
        "top --by thread sw.data", (r"^  46 .* mt_fp \(27109\): wrk-3 \(27123\)$", r"mt_fp \(27109\): wrk-0 \(27118\)$")
    ),
    Answer("convert sw.data -t speedscope", (r'"mt_fp \(27109\): wrk-3 \(27123\)',), (r'"perf',)),
    Answer("convert sw.data -t firefox", (r'"processName":"mt_fp"', r'"name":"[^"]*wrk-3"'), (r'"processName":"perf',)),
    # functions of equal name and other lines
    Answer(
        "top two.pstats",
        (r"1\.25 s in 12 functions", r" run \(two.py:3\)$", r" run \(two.py:7\)$", r" run \(two.py:11\)$"),
    ),
    Answer("top two.pstats --csv", (r"^run,two.py,3,,570421023,", r"^run,two.py,7,,", r"^run,two.py,11,,")),
    Answer("top anon.cpuprofile", (r"554 .* a \(anon.js:2\)$", r"62 .* a \(anon.js:3\)$", r"183 .* a \(anon.js:4\)$")),
    Answer("top anon.cpuprofile --by line", (r" 554 .* a +file:///opt/t4/ux/out/anon.js:2$",), (r":0$",)),
    Answer("convert anon.cpuprofile -t folded", (r";a \(anon.js:2\) 553537$", r";a \(anon.js:4\) 183018$")),
    Answer(
        "top three.speedscope.json",
        (r"60 .* run \(two.py:3\)$", r"10 .* run \(two.py:7\)$"),
    ),
    Answer("convert three.speedscope.json -t folded", (r"^main;run \(two.py:3\) 60000$", r"run \(two.py:11\) 30000$")),
]


@pytest.mark.parametrize("answer", TABLE, ids=lambda answer: answer.command)
def test_answer(answer: Answer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ANSWERS)
    try:
        code = main(shlex.split(answer.command))
    except SystemExit as ended:  # by the parser
        code = int(ended.code or 0)
    shown = "".join(capfd.readouterr())
    assert code == answer.code, shown
    for pattern in answer.has:
        assert re.search(pattern, shown, re.MULTILINE), f"{pattern!r} is not in\n{shown}"
    for pattern in answer.lacks:
        assert not re.search(pattern, shown, re.MULTILINE), f"{pattern!r} is in\n{shown}"


def test_every_file_has_an_answer() -> None:
    named = " ".join(answer.command for answer in TABLE)
    unused = {path.name for path in Path(ANSWERS).iterdir() if path.suffix not in {".md", ".py", ".c"}} - UNTESTED
    assert not [name for name in sorted(unused) if name not in named]


UNTESTED: set[str] = {
    "node.data",
}
