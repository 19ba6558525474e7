"""What an input is that no format claims: formats of others, and what to do with each.  Imported for that error."""

from __future__ import annotations

import re

# The beginning of the input, what it is, and what to do.
_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (rb"PERFILE2|2ELIFREP", "a perf.data file", "`perf script | stackcollapse-perf.pl` makes folded stacks of it"),
    (
        rb"(?:# .*\n|#\n|\n)*\S.{0,80}?[ \t]+\d+(?:/\d+)?[ \t]+(?:\[\d+\][ \t]+)?\d+\.\d+:[ \t]+",
        "the output of `perf script`",
        "stackcollapse-perf.pl makes folded stacks of it",
    ),
    (rb"heap profile: ", "a heap profile of gperftools", "`pprof -proto` makes a pprof profile of it"),
    (rb"(?:heap|threadz|goroutine) profile: total ", "a text profile of Go", "take it without `debug=1`"),
    (rb"go 1\.\d+ trace\0", "a Go execution trace", "`go tool trace -pprof=TYPE` makes a pprof profile of it"),
    (rb"FLR\0", "a Java Flight Recorder recording", "async-profiler's `jfrconv` makes folded stacks or pprof of it"),
    (rb"JAVA PROFILE 1\.0", "a Java heap dump (HPROF)", "it has no costs of functions"),
    (rb"gmon", "a gmon.out of gprof", "record with perf, gperftools or Callgrind instead"),
    (
        rb"desc: .*\ncmd: .*\ntime_unit: ",
        "a Massif profile",
        "record with `--tool=memcheck --xtree-memory=full` instead",
    ),
    (rb'\{"dhatFileVersion"', "a DHAT profile", "record with `--tool=memcheck --xtree-memory=full` instead"),
    (rb'\s*\{\s*"nodes"\s*:\s*\[|\s*\{"head"\s*:\s*\{', "a CPU profile of V8 (.cpuprofile)", ""),
    (rb'\s*\{\s*"meta"\s*:\s*\{(?s:.{0,2000})"(?:processType|startTime)"', "a profile of the Firefox Profiler", ""),
    (rb"\n(?s:.{1,2})\n(?s:.)[\w./-]+\.proto\b", "a set of protocol buffer descriptors", "it is no profile"),
    (rb"\n(?s:.{1,2})[@P2Zb\x12\x18\xe2](?s:.{0,400}?)P[\x01-\x0f]", "a Perfetto trace", ""),
    (rb"# tracer: ", "an ftrace log", ""),
    (rb"\xc1\x1f\xfc\xc1|\xc1\xfc\x1f\xc1", "a Common Trace Format stream (LTTng)", ""),
    (rb"(?:---\n)?- \{ id: \d+, address: 0x", "an XRay instrumentation map", "give it with --symbols, beside a log"),
    (rb"\x7fELF", "a program, shared object or core file", "give it with --symbols, beside a profile"),
    (rb"MZ|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe", "a program", ""),
    (
        rb"SQLite format 3\0",
        "an SQLite database (Nsight Systems, Perfetto ...)",
        "export it in a format of `fastprof formats`",
    ),
    (rb"PK\x03\x04", "a zip archive", "unpack it"),
    (rb"Rar!|7z\xbc\xaf", "an archive", "unpack it"),
    (rb"\s*<(?:!DOCTYPE|html|\?xml|svg)", "HTML or XML", "a report of a profile is not the profile"),
    (
        rb"File: .*\n(?:.*\n)?Type: |Showing nodes accounting for ",
        "text that pprof has printed",
        "give the profile itself",
    ),
    (rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "a picture or document", ""),
    (rb"\0\x01\0\0|OTTO|wOF[F2]", "a font", ""),
)


def known(head: bytes) -> str:
    """What an input is by its first bytes, with what to do: "a font"; "" if nobody knows."""
    for pattern, name, advice in _KNOWN:
        if re.match(pattern, head):
            return f"{name}: {advice}" if advice else name
    return ""
