"""Formats that fastprof does not read, with advice for each.  Imported only for that error."""

import re

from fastprof.core.messages import Message, joined

_DEVTOOLS = "speedscope opens it, and exports its own JSON, which fastprof reads"
_PRINTED = "pass the profile itself"
_MEMRAY = "`memray flamegraph` makes a page of the recording"
_OTF2 = ("a trace of Score-P (OTF2)", "Vampir and `otf2-print` show it")

# The beginning of the input, its format, and advice.
_KNOWN: tuple[tuple[bytes, str, str | Message], ...] = (
    (rb'\s*\{\s*"linux-perf-json-version"', "perf.data as JSON", "pass the perf.data file instead"),
    (rb"\s*(?:# To display the perf\.data header|# Total Lost Samples|Percent \|)", "a report of perf", _PRINTED),
    (rb"goroutine \d+ \[", "a dump of Go's stacks", "fetch it without `debug=2`"),
    (rb"go 1\.\d+ trace\0", "a Go execution trace", "`go tool trace -pprof=TYPE` converts it to pprof"),
    (
        rb"JAVA PROFILE 1\.0\.\d, created",
        "a text profile of Java's HPROF agent",
        "record with async-profiler, which writes folded stacks",
    ),
    (rb"JAVA PROFILE 1\.0", "a Java heap dump (HPROF)", "it has no costs of functions"),
    (
        rb"Nettrace",
        "an event trace of .NET",
        "`dotnet-trace convert --format speedscope` converts it to speedscope's JSON",
    ),
    (rb"v [0-9a-f]+ [0-9a-f]+\nx ", "a raw recording of heaptrack", "`heaptrack --interpret` makes one to read of it"),
    (rb"allocator,num_allocations,size,|\s*\{\s*\"total_num_allocations\"", "a list or statistics of memray", _MEMRAY),
    (rb'\s*\{\s*"version"\s*:\s*0\s*,\s*"costs"\s*:', "a profile for gprof2dot (memray)", _MEMRAY),
    (
        rb"(?s:\0.{19}(?:.{20})?)\x05\0[\0-\x1f][\0-\x1f](?s:.)(?:cpython|pypy)",
        "a recording of vmprof",
        "`vmprof-flamegraph` converts it to folded stacks, `vmprofshow` prints it",
    ),
    (
        rb"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4} {4}[^\n]*\s{1,9})? *\d+ function calls ",
        "text printed by pstats",
        "pass the file that `python -m cProfile -o FILE` or `dump_stats` writes",
    ),
    (
        rb'\s*\{\s*"session"\s*:\s*\{',
        "the data of a page of pyinstrument",
        "`pyinstrument -r pyisession` writes a session, which fastprof reads",
    ),
    (
        rb"\s*_ +\._ +__/__",
        "text printed by pyinstrument",
        "`pyinstrument -r pyisession` writes a session, which fastprof reads",
    ),
    (
        rb"# austin: (?s:.*?)\n# mode: (?:memory|full)\n",
        "text of Austin with changes of memory or several values",
        "`austin -b` writes a file that fastprof reads",
    ),
    (
        rb"import time: +(?:self|\d)",
        "a list of Python's import times (-X importtime)",
        "`importtime-convert --output-format flamegraph.pl` converts it to folded stacks",
    ),
    (
        rb"hdrb\0?",
        "an eventlog of GHC",
        "`hs-speedscope` converts it to speedscope's JSON, which fastprof reads",
    ),
    (rb'JOB "[^\n]*\nDATE "', "a heap profile of GHC", "`hp2pretty` draws it"),
    (
        rb"Statistical profiling result from ",
        "text printed by V8's tick processor",
        "`node --cpu-prof` writes a .cpuprofile, which fastprof reads",
    ),
    (rb'\{"code":\[', "a preprocessed log of V8", _DEVTOOLS),
    (rb"QPERFSTREAM\0", "a stream of hotspot's perfparser", "pass the perf.data file instead"),
    (rb"DTiJ|JiTD", "a dump of jitted code", "it belongs to a perf.data file"),
    (rb"(?:[\t\n\r -~]\0){8}", "text in UTF-16 without a byte order mark", "`iconv -f utf-16le -t utf-8` converts it"),
    (rb"(?:\0[\t\n\r -~]){8}", "text in UTF-16 without a byte order mark", "`iconv -f utf-16be -t utf-8` converts it"),
    (rb"\xff\xfe\0\0|\0\0\xfe\xff", "text in UTF-32", "`iconv -f utf-32 -t utf-8` converts it"),
    (rb'\s*\{\s*"snapshot"\s*:\s*\{\s*"meta"', "a heap snapshot of V8", "it has no costs of functions"),
    (rb"v8-version,", "a log of V8", "speedscope opens the output of `node --prof-process --preprocess`"),
    (rb"JSLB|JsonSlab", "a binary profile of the Firefox Profiler (.jslb)", "save it as JSON instead"),
    (rb"\n(?s:.{1,2})\n(?s:.)[\w./-]+\.proto\b", "a set of protocol buffer descriptors", "it is not a profile"),
    (
        rb"\n(?s:.{1,3}?)\n(?s:.)[\w./-]+\x12(?s:.)[A-Z]\w+[\x1a\x22\x2a]"
        rb"|\x08\x01\x12(?s:.{1,4}?)\n(?s:.{1,4}?)\x12(?s:.{1,4}?)\n(?s:.{1,3}?)\n(?s:.)[A-Z]\w+",
        "a model of TensorFlow",
        "it is not a profile",
    ),
    (rb"# tracer: ", "an ftrace log", ""),
    (
        rb"\xc1\x1f\xfc\xc1|\xc1\xfc\x1f\xc1|/\* CTF |\x57\x1d\xd1\x75|\x75\xd1\x1d\x57",
        "a Common Trace Format (LTTng)",
        "",
    ),
    (
        rb"Ftrace!|(?s:.{7})\0[\x28\x29\x68\x69]\0(?s:.{6})(?s:.{7})\0[\x28-\x2d\x68-\x6d\xa8-\xad]\0",
        "a single file of a recording of uftrace",
        "pass its directory, which has the names of functions",
    ),
    (rb"\x03[B#]OTF2|\x03[B#]\x01\0{5}", *_OTF2),
    (
        rb"(?s:\0.[\x01-\x40]\0.{68})\x02\0[\x01\x02]\xc0",
        "an event trace of Windows (.etl)",
        "PerfView saves its stacks as speedscope's JSON",
    ),
    (rb"\x5e\x97\xca\xfd", "a recording of Sysprof", ""),
    (rb"tracy|tlZ\x04|tZst", "a recording of Tracy", ""),
    (
        rb"TRACE START \[|Version: \d.*\nFile format: \d+\nTRACE START",
        "a function trace of Xdebug",
        "record with `xdebug.mode=profile` instead",
    ),
    (rb"(?:[a-z]:\d+:\{s:\d+:\"main\(\)|\s*\{\s*\"main\(\)(?:==>|\"))", "a profile of XHProf", ""),
    (rb"\x04\x08", "a dump of Ruby", "StackProf's begin with their version, which fastprof reads"),
    (
        rb"Attaching \d+ probes?\.\.\.",
        "output of bpftrace without stacks",
        "`@[kstack] = count()` prints stacks, which fastprof reads",
    ),
    (
        rb"Analysis of sampling ",
        "the output of macOS's sample",
        "stackcollapse-sample.awk converts it to folded stacks",
    ),
    (rb"\*version\n", "a method trace of Android", ""),
    (rb"\xfflprofi\x81|\x81rforpl\xff", "an instrumentation profile of LLVM", "it has no stacks"),
    (rb"adcg[\1\2]\0{3}|gcda\0{3}[\1\2]", "a profile of AutoFDO for GCC", "it is for compilers and has no stacks"),
    (
        rb"(?:[BFTSER] [X:0-9a-f]+ [X:0-9a-f ]*\d+\n){2}",
        "a profile for BOLT by address",
        "`perf2bolt -pa` makes fdata of it, which fastprof reads",
    ),
    (rb"adcg|oncg|gcda|gcno|TN:.*\nSF:", "gcov coverage data", "it has no stacks"),
    (
        rb"(?:---\n)?- \{ id: \d+, address: 0x",
        "an XRay instrumentation map",
        Message("pass it with {--symbols}, together with a log"),
    ),
    (
        rb"\x7fELF",
        "a program, shared object or core file",
        Message("pass it with {--symbols}, together with a profile"),
    ),
    (rb"MZ|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe", "a program", ""),
    (
        rb"SQLite format 3\0",
        "an SQLite database of another program",
        "export it in a format of `fastprof formats`",
    ),
    (rb"PK\x03\x04", "a zip archive", "unpack it"),
    (rb"Rar!|7z\xbc\xaf", "an archive", "unpack it"),
    (rb"\s*<(?:!DOCTYPE|html|\?xml|svg)", "HTML or XML", "a report of a profile is not the profile"),
    (
        rb"File: .*\n(?:.*\n)?Type: |Showing nodes accounting for |digraph ",
        "text printed by pprof",
        _PRINTED,
    ),
    (rb"Total: \d[\d.]* \w+\n", "text printed by pprof", _PRINTED),
    (rb"-{70,}\nCommand: ", "text printed by ms_print", _PRINTED),
    (rb"\s*granularity: each sample hit ", "text of gprof in its traditional layout", "print it without `-T`"),
    (
        rb"-{70,}\n(?:Profile data file '|(?:I1 cache:|-- )|Events recorded:)",
        "text printed by an annotate tool",
        _PRINTED,
    ),
    (rb"ARROW1", "an Arrow file (Feather)", "write its table as an Arrow stream (.arrows) or as Parquet"),
    (rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "a picture or document", ""),
    (rb"\0\x01\0\0\0[\x01-\x40]\0|OTTO|wOF[F2]", "a font", ""),
)


def known(head: bytes) -> str | Message:
    """What an input is by its first bytes, with advice: "a font, which fastprof does not read"; "" if unknown."""
    for pattern, name, advice in _KNOWN:
        if re.match(pattern, head):
            return _unread(name, advice)
    return ""


def _unread(name: str, advice: str | Message) -> str | Message:
    unread = f"{name}, which fastprof does not read"
    return joined("; ", [unread, advice]) if advice else unread


# A file of a folder that is one recording.
_FOLDERS: tuple[tuple[str, str, str], ...] = (
    (r".*\.otf2", *_OTF2),
    (r".*\.vtune", "a result of VTune", "stackcollapse-vtune.pl converts its CSV report to folded stacks"),
    (
        r"form\.template",
        "a trace of Instruments",
        "`xctrace export` and inferno-collapse-xctrace make folded stacks of it",
    ),
)


def known_folder(names: list[str]) -> str | Message:
    """`known` for a folder with these files."""
    for pattern, name, advice in _FOLDERS:
        if any(re.fullmatch(pattern, file) for file in names):
            return _unread(name, advice)
    return ""
