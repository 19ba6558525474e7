"""What the registry knows of each registration without opening it: the formats' names, and what an input of them begins
with.

A Head is what `sniff` needs at least, so that inputs open the registrations of few folders; `sniff` decides, and a Head
without conditions always opens one.  `tests/unit/test_heads.py` compares both.
"""

from __future__ import annotations

from fastprof.core._typing import NamedTuple


class Head(NamedTuple):
    """Conditions that must all hold for the first bytes of an input."""

    starts: tuple[bytes, ...] = ()  # they start with one of these
    words: tuple[bytes, ...] = ()  # they contain one of these
    without: bytes = b""  # they do not contain this
    json: bool = False  # they start with an object or an array, after blanks
    check: str = ""  # the function of the C core that they pass

    def fits(self, head: bytes) -> bool:
        if self.starts and not head.startswith(self.starts):
            return False
        if self.json and head[:1] not in b"{[ \t\r\n\v\f":
            return False
        if self.words and not any(word in head for word in self.words):
            return False
        if self.without and self.without in head:
            return False
        if not self.check:
            return True
        from fastprof.core._c import lib

        return bool(getattr(lib, self.check)(head, len(head)))


_BLANKS = (b" ", b"\t", b"\n", b"\r", b"\v", b"\f")

# By folder, in the order of lists: the names of its formats, and alternatives of what they begin with.
HEADS: dict[str, tuple[tuple[str, ...], tuple[Head, ...]]] = {
    "xray": (("xray",), (Head(words=(b"\0",)), Head(starts=(b"forpyarx", b"xrayprof")))),
    "gperftools": (("gperftools",), (Head(starts=(b"--- symbol",)), Head(check="fp_gperftools_sniff"))),
    "callgrind": (
        ("callgrind", "cachegrind"),
        (Head(words=(b"events:", b"creator:", b"positions:", b"version:", b"cmd: ", b"# callgrind format")),),
    ),
    "pprof": (("pprof",), (Head(check="fp_pprof_sniff"),)),
    "otlp": (
        ("otlp",),
        (Head(json=True, words=(b'"resource', b'"dictionary"')), Head(check="fp_otlp_sniff")),
    ),
    "folded": (("folded",), (Head(without=bytes(4)),)),
    "perf": (("perf",), (Head(starts=(b"PERFILE2", b"2ELIFREP", b"PERFFILE")),)),
    "perf_script": (("perf-script",), (Head(words=(b":", b"\t", b"(", b"/0x"), without=b"\0"),)),
    "simpleperf": (("simpleperf",), (Head(starts=(b"SIMPLEPERF",)),)),
    "jfr": (("jfr",), (Head(starts=(b"FLR\0",)),)),
    "speedscope": (("speedscope",), (Head(json=True, words=(b"speedscope", b'"profiles"', b'"frames"')),)),
    "trace_event": (("trace-event", "cpuprofile"), (Head(json=True),)),
    "firefox": (
        ("firefox",),
        (
            Head(
                json=True,
                words=(
                    *(b'"preprocessedProfileVersion"', b'"processType"', b'"stackwalk"', b'"stackTable"'),
                    *(b'"frameTable"', b'"funcTable"', b'"stringArray"', b'"breakpadId"', b'"processName"'),
                ),
            ),
        ),
    ),
    "perfetto": (("perfetto",), (Head(starts=(b"\n",)),)),
    "archive": (("archive",), (Head(starts=(b"\x89FPA",)),)),
    "oprofile": (("oprofile",), (Head(words=(b"ustar",)), Head(check="fp_oprofile_sniff"))),
    "arrow": (("parquet", "arrow"), (Head(starts=(b"PAR1", b"\xff\xff\xff\xff")),)),
    "heap": (("heap",), (Head(words=(b"heap profile:", b"heap_v2/", b"--- ", b" profile: total ")),)),
    "valgrind": (("massif", "dhat"), (Head(starts=(b"desc: ", b"#-")), Head(words=(b'"dhatFileVersion"',)))),
    "pgo": (
        ("llvm-profile", "gcov-profile", "bolt"),
        (
            Head(words=(b":",)),
            Head(starts=(b"\xff\xe5\xd0\xb1\xf4\xc9\x94\xa8\x53", b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8\x53")),
            Head(starts=(b"boltedcollection", b"no_lbr", *(b"%d " % kind for kind in range(6)))),
        ),
    ),
    "pstats": (("pstats",), (Head(starts=(b"{", b"\xfb")),)),
    "heapprofile": (("heapprofile",), (Head(words=(b'"head"',)),)),
    "heaptrack": (("heaptrack",), (Head(starts=(b"v ",)),)),
    "memray": (("memray",), (Head(starts=(b"memray\0",)),)),
    "mojo": (("mojo",), (Head(starts=(b"MOJ",)),)),
    "uftrace": (("uftrace",), (Head(words=(b"ustar",)),)),
    "tachyon": (("tachyon",), (Head(starts=(b"HCAT", b"TACH")),)),
    "texts": (
        ("tracer-stacks", "rprof", "luajit", "ghc-prof", "instruments", "pprof-raw"),
        (
            Head(words=(b"@",), without=b"\0"),
            Head(starts=(*_BLANKS, b"CPU ", b"Sampling at", b"Tracing "), without=b"\0"),
            Head(starts=(b"PeriodType: ", b"Period: ", b"Comment: ", b"[No samples collected]")),
            Head(starts=(b" ", *(b"%d" % digit for digit in range(10)))),
            Head(words=(b"sample.interval=", b"Time and Allocation Profiling Report", b"\tSymbol Name")),
        ),
    ),
    "gmon": (("gmon", "gprof"), (Head(starts=(b"gmon",)), Head(words=(b"Flat profile:", b"Call graph")))),
    "small_json": (
        ("scalene", "ghc-json", "pyinstrument", "stackprof", "safari"),
        (
            Head(words=(b'"alloc_samples"', b'"rts_arguments"', b'"sample_count"', b'"mode"', b'"recording"')),
            Head(starts=(b"\4\b{",)),
        ),
    ),
    "xplane": (("xplane",), (Head(starts=(b"\n",)),)),
    "gpu_sqlite": (("gpu-sqlite",), (Head(starts=(b"SQLite format 3\0",)),)),
}

# The folders with formats that claim directories.
CLAIMING = ("perf", "oprofile", "uftrace")
