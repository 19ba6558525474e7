"""The inputs that each format claims, and the errors for inputs that no format claims."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import UnrecognizedError
from fastprof.core.source import Source

FONT = b"\0\x01\0\0\0\x0e\0\x80\0\x03\0\x60OS/2" + bytes(range(200, 232)) * 20
DESCRIPTORS = (
    b'\n\x93\x21\n\x1egoogle/protobuf/any.proto.test\x12\x0fgoogle.protobuf"\x36\n\x03Any\x12\x10\n\x08type_url\x18\x01'
    + bytes(range(256)) * 20
)


def field(number: int, *content: bytes) -> bytes:
    """A field of a protocol buffer, of up to 16 KiB."""
    data = b"".join(content)
    n = len(data)
    return bytes([number << 3 | 2]) + (bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])) + data


NODE = field(1, b"x") + field(2, b"Placeholder") + field(5, field(1, b"dtype"), field(2, b"0\1"))
FUNCTION = field(1, field(1, b"__inference_pruned_12"), field(2, field(1, b"y"), b"\x18\1")) + field(3, NODE)
MODEL = b"\x08\1" + field(2, field(1, field(2, field(1, field(1, b"AddV2"))), field(5, b"2.4.1")), field(2, NODE))

# None of these is a profile, but each contains a trait of one.
NOT_PROFILES = {
    "a workflow": b"name: CI\nevents: push pull_request\n",
    "a workflow with jobs": b"name: CI\non:\n  push:\nevents: push\njobs:\n  build:\n    steps:\n      - run: 1\n",
    "YAML with a creator": b"title: x\ncreator: somebody\nlanguage: en\n",
    "a text protobuf": b'syntax: "proto3"\nevents: 5\nmessage {\n  name: "x"\n}\n',
    "HTML": b"<html>\n<body>\nevents: a b\n<p>fn</p>\n</body>\n</html>\n",
    "a font": FONT,
    "a font, 12 bytes of it": FONT[:12],
    "descriptors": DESCRIPTORS,
    "descriptors of a short file": b'\n\x20\n\x08a/b.proto\x12\x01p"\x10\n\x01M\x12\x0b\n\x01f\x18\x01 \x01(\x05R\x01f',
    "a TensorFlow graph": field(1, NODE) * 9 + b"\x22\3\x08\x8d\x0d",
    "a TensorFlow graph of functions": field(2, field(1, FUNCTION)) + b"\x22\3\x08\x8d\x0d",
    "a large TensorFlow graph of functions": field(2, field(1, FUNCTION) * 120),
    "a TensorFlow graph without nodes": b"\x12\0\x22\3\x08\x8d\x0d",
    "a version of a TensorFlow graph": b"\x22\3\x08\x8d\x0d",
    "the costs of a TensorFlow graph": field(2, field(1, NODE), field(2, b"\x0d\0\0\x80\x3f", field(2, b"memory"))),
    "an overview of TensorFlow's profiler": field(2, field(9, b"GPU"), b"\x80\1\1") + field(6, b"\x08\1"),
    "a TensorFlow model": MODEL,
    "a bitmap": b"P4\n16 16\n\xfb\x7f\xf1\xbf\xfa\xdf\xd5\x7f\xad\xb1\x5b" * 2,
    "four words of a binary": struct.pack("<5I", 0, 3, 0, 0, 7) + bytes(range(1, 41)),
    "a binary with a fifth word": struct.pack("<5I", 0, 3, 1, 99, 7) + bytes(range(1, 41)),
}


@pytest.mark.parametrize("data", NOT_PROFILES.values(), ids=NOT_PROFILES)
def test_what_is_no_profile_is_not_claimed(data: bytes) -> None:
    with Source(data) as source:
        assert [f.name for f in formats.formats() if f.sniff and f.sniff(source.head)] == []
    with pytest.raises(UnrecognizedError):
        fastprof.info(data)


@pytest.mark.parametrize(
    "data",
    [
        b"events: Ir\n1 5\n",
        b"events: Ir\r\nfn=f\r\n1 5\r\n",
        b"\xef\xbb\xbfevents: Ir\n\n fl=a\n",
        b"creator: callgrind-3.19.0\nevents: Ir\n\ntotals: 0\n",
        b"version: 1\ncmd: ./a\nevents: Ir\n",
        b"events: Time\nsummary 12\n",
        b"positions: instr line\nevents: Ir\n",
        b"events: Ir\n0x4000 1 5\n",
        b"creator: xyz\nevents: Ir\n" + b"# comment\n" * 300 + b"+3 * 5\n",
    ],
)
def test_short_profiles_are_claimed(data: bytes) -> None:
    with Source(data) as source:
        assert [f.name for f in formats.formats() if f.sniff and f.sniff(source.head)] == ["callgrind"]


@pytest.mark.parametrize(("head", "name"), [(b"version: 1\n", "callgrind"), (b"desc: x\ncmd: ./a\n", "cachegrind")])
def test_so_many_events_that_nothing_else_is_seen(head: bytes, name: str) -> None:
    data = head + b"events: " + b" ".join(b"E%d" % k for k in range(1000)) + b"\nfn=f\n1 " + b"1 " * 1000 + b"\n"
    with Source(data) as source:
        assert formats.detect(source).name == name


ETL = bytes([0, 0, 1, 0, 0xB0, 4, 0, 0, 0xB0, 4, 0, 0]) + bytes(60) + b"\2\0\2\xc0" + bytes(20)
# The description of the file, and the advice.
FOREIGN = {
    b'{\n\t"linux-perf-json-version": 1,\n': "perf.data as JSON: pass the perf.data",
    b"# To display the perf.data header info, please use\n": "a report of perf",
    b"Nettrace\x14\0\0\0!FastSerialization.1": "an event trace of .NET: `dotnet-trace convert",
    b"v 10400 3\nx ./a\n": "a raw recording of heaptrack: `heaptrack --interpret`",
    b'{"snapshot":{"meta":{': "a heap snapshot of V8",
    b"v8-version,11,3,244\n": "a log of V8",
    b"/* CTF 1.8 */\n": "a Common Trace Format",
    b"Ftrace!\0\4\0": "a single file of a recording of uftrace: pass its directory",
    b"Version: 3.1.6\nFile format: 4\nTRACE START [2026-01-01]\n": "a function trace of Xdebug",
    b"\x04\x08{\x0c:\x0coptions": "a dump of Ruby",
    b"Attaching 1 probe...\n\n@[main]: 5\n": "output of bpftrace without stacks",
    b"\x81rforpl\xff\x08": "an instrumentation profile of LLVM",
    b"adcg*22B": "gcov coverage data",
    b"-" * 80 + b"\nProfile data file 'cg.out'\n": "text printed by an annotate tool: pass the profile",
    b"-" * 80 + b"\nI1 cache:         32768 B\n": "text printed by an annotate tool",
    b"goroutine 1 [running]:\n": "a dump of Go's stacks",
    b"go 1.21 trace\0\0\0": "a Go execution trace: `go tool trace",
    b"JAVA PROFILE 1.0.2\0": "a Java heap dump (HPROF)",
    DESCRIPTORS: "a set of protocol buffer descriptors",
    MODEL: "a model of TensorFlow",
    field(1, NODE) * 9: "a model of TensorFlow",
    b"# tracer: function\n#\n": "an ftrace log",
    b"\xc1\x1f\xfc\xc1\0\0": "a Common Trace Format",
    b"---\n- { id: 1, address: 0x0000000000001139, function: 0x1 }\n": "an XRay instrumentation map: pass it with",
    b"\x7fELF\2\1\1\0": "a program, shared object or core file: pass it with symbols=",
    b"SQLite format 3\0": "an SQLite database",
    b"PK\3\4\x14\0": "a zip archive: unpack it",
    b"<!DOCTYPE html>\n<html>": "HTML or XML",
    b"File: app\nBuild ID: 12\nType: cpu\nShowing nodes": "text printed by pprof: pass the profile itself",
    FONT: "a font",
    b"JAVA PROFILE 1.0.1, created Tue Nov 3\n\nHeader for x\n": "a text profile of Java's HPROF agent: ",
    b'{"session": {"start_time": 1.5, "duration": 2}': "the data of a page of pyinstrument: `pyinstrument -r pyi",
    b"\n  _     ._   __/__   _ _  _  _ _/_   Recorded: 12:00": "text printed by pyinstrument",
    b"import time: self [us] | cumulative | imported package\n": "a list of Python's import times (-X importtime): ",
    b"Statistical profiling result from v8.log, (7 ticks": "text printed by V8's tick processor",
    b'{"code":[{"name":"f"': "a preprocessed log of V8",
    b"m\0a\0i\0n\0;\0f\0 \x001\0\n\0": "text in UTF-16 without a byte order mark: `iconv",
    b"allocator,num_allocations,size,tid,thread_name,stack_trace\n": "a list or statistics of memray: `memray flam",
    b'{\n  "total_num_allocations": 107,\n': "a list or statistics of memray: ",
    b'{"version": 0, "costs": [{"description": "Memory", "unit": "bytes"}]': "a profile for gprof2dot (memray)",
    b"".join(n.to_bytes(8, "little") for n in (0, 3, 0, 990, 0))
    + b"\5\0\7\4\7cpython\6"
    + b"\1" * 30: "a recording of vmprof: `vmprof-f",
    b"         197 function calls (192 primitive calls) in 0.002 seconds\n\n": "text printed by pstats: pass the file",
    b"Sat Nov 28 19:55:26 2026    /tmp/x.pst\n\n         4 function calls in 0.000 seconds\n": "text printed by pstats",
    b"# austin: 3.7.0\n# mode: memory\n\nP1;T0:1;f:1 4096\n": "text of Austin with changes of memory",
    b"# austin: 3.7.0\n# interval: 100\n# mode: full\n\nP1;T0:1;f:1 4,0,0\n": "text of Austin with changes",
    b"hdrb\0\0\0\0": "an eventlog of GHC: `hs-speedscope`",
    b'JOB "x -hc"\nDATE "Fri Nov 28"\nSAMPLE_UNIT "seconds"\n': "a heap profile of GHC: `hp2pretty`",
    b"\3BOTF2\0\3\2\3\0\2": "a trace of Score-P (OTF2): Vampir",
    b"\3B\1\0\0\0\0\0\0\0\2\0": "a trace of Score-P (OTF2)",
    ETL: "an event trace of Windows (.etl): PerfView",
    b"adcg\2\0\0\0\0\0\0\0\0\0\0\xaa": "a profile of AutoFDO for GCC: it is for compilers",
    b"gcda\0\0\0\2\0\0\0\0": "a profile of AutoFDO for GCC",
    b"B 400a50 7ffff7b0b950 16 0\nB 400a80 7ffff7b09750 28 0\n": "a profile for BOLT",
    b"Total: 7075 objects\n": "text printed by pprof",
    b"-" * 80 + b"\nCommand:            ./a\n": "text printed by ms_print",
}


@pytest.mark.parametrize("data", FOREIGN, ids=FOREIGN.values())
def test_known_formats_of_others_are_named(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(data)
    with pytest.raises(UnrecognizedError) as raised:
        fastprof.convert(path, tmp_path / "out.pb.gz")
    name, _, advice = FOREIGN[data].partition(": ")
    error = str(raised.value)
    assert error.startswith(f"{path}: this is {name}") and ", which fastprof does not read" in error
    assert not advice or f"; {advice}" in error
    assert "from_" not in str(raised.value)  # from_ would not help


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"hi", "68 69 |hi|"),
        (b"\1\2'\4\xff", "01 02 27 04 ff |..'..|"),
        (b"key: value\n", "6b 65 79 3a 20 76 61 6c 75 65 0a |key: value.|"),
        (b"a b c" * 9, "61 20 62 20 63 61 20 62 20 63 61 20 62 20 63 61 |a b ca b ca b ca|"),
    ],
)
def test_what_nobody_knows_is_shown(data: bytes, shown: str) -> None:
    """As `hexdump -C` shows it."""
    with pytest.raises(UnrecognizedError, match=rf"unknown format \(begins with {re.escape(shown)}\); name it with"):
        fastprof.info(data)


FOLDERS = {
    "traces.otf2": "a trace of Score-P",
    "r000hs.vtune": "a result of VTune",
    "form.template": "a trace of Instruments",
}


@pytest.mark.parametrize("file", FOLDERS)
def test_folders_that_are_recordings_of_others_are_named(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "below" / "recording"
    folder.mkdir(parents=True)
    (folder / file).write_bytes(b"x")
    (folder / "1421.dat").write_bytes(bytes(range(1, 200)))
    for given in (folder, tmp_path):
        with pytest.raises(UnrecognizedError, match="this is " + re.escape(FOLDERS[file])) as raised:
            fastprof.top(given)
        assert str(raised.value).startswith(f"{folder}: ")
    (tmp_path / "a.folded").write_bytes(b"main;f 3\n")
    log = fastprof.merge([tmp_path], tmp_path / "out.pb", keep_going=True)
    assert sum(entry["count"] for entry in log.losses.entries()) == 1


def test_naming_takes_linear_time() -> None:
    """Each pattern reads only the first 4 KiB."""
    for data in (b"{" * 10**6, b"# " * 10**6, b" " * 10**6, b"a" * 10**6, b"[{" * 10**6, b"\n" * 10**6):
        with pytest.raises(UnrecognizedError):
            fastprof.info(data)
