"""Data directories of uftrace: the statements of docs/formats/uftrace.md."""

from __future__ import annotations

import re
import struct
import tarfile
import time
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError, FormatError, UnrecognizedError
from fastprof.formats.uftrace.arguments import Arguments
from fastprof.formats.uftrace.mappings import Mappings
from tests.reference import uftrace
from tests.reference.uftrace import ENTRY, EVENT, EXIT, LOST, Record
from tests.support.paths import CORPUS

GOOD = CORPUS / "uftrace" / "good"
CALLS = [Record(10, ENTRY, 0, 0), Record(20, ENTRY, 1, 1), Record(50, EXIT, 1, 1), Record(70, EXIT, 0, 0)]


def test_a_directory_is_read_as_its_tar(tmp_path: Path) -> None:
    with tarfile.open(GOOD / "args.tar") as tar:
        tar.extractall(tmp_path)  # 3.11.2 has no filters
    folder = tmp_path / "app.uftrace"
    (folder / "below").mkdir()
    (folder / "below" / "1.dat").write_bytes(b"not read")
    both = (folder, GOOD / "args.tar")
    rows = [[(row.name, row.self, row.calls) for row in fastprof.top(path, n=0).rows] for path in both]
    assert rows[0] == rows[1] and ("inner", 33) in [(name, calls) for name, _, calls in rows[0]]
    places = {row.name: (row.file, row.line) for row in fastprof.top(folder, n=0).rows}
    assert places["inner"] == ("threads.c", 6)


def test_one_file_of_a_directory_is_refused_with_advice() -> None:
    with pytest.raises(UnrecognizedError, match=r"a single file of a recording of uftrace.*pass its directory"):
        fastprof.info(uftrace.data(CALLS))
    with pytest.raises(UnrecognizedError, match=r"uftrace.*pass its directory"):
        fastprof.info(b"Ftrace!\0\4\0\0\0")


def test_lost_records_events_and_times_that_go_back() -> None:
    lost, event = Record(30, LOST, 0, 17), Record(40, EVENT, 0, 3, b"\5\0hello")
    records = [*CALLS[:2], lost, event, Record(15, EXIT, 1, 1), CALLS[3]]
    log = fastprof.info(uftrace.write({7: uftrace.data(records)}))
    assert any("lost 17 records" in str(warning) for warning in log.warnings)
    assert log.repairs["backward-times"] == 1 and log.not_representable["trace-events"] == 1


SPECS = """argspec:f0@arg1/s,arg2/i32;^f[12]$@arg1;f3.*@arg1/t200
retspec:f0@retval/f80
argauto:f4@fparg1/32;f5@arg1/c
"""


@pytest.mark.parametrize(
    ("record", "nbytes"),
    [
        (Record(1, ENTRY, 0, 0, b"\3\0abc\0\0\0\1\0\0\0"), 0),
        (Record(1, EXIT, 0, 0, bytes(12)), 0),
        (Record(1, ENTRY, 0, 4, bytes(4)), 0),
        (Record(1, ENTRY, 0, 5, b"c"), 0),
        (Record(1, ENTRY, 0, 1, bytes(8)), 1),  # a pattern that is not read
        (Record(1, ENTRY, 0, 3, bytes(200)), 1),
        (Record(1, EXIT, 0, 5, bytes(8)), 1),
    ],
)
def test_lengths_of_arguments(record: Record, nbytes: int) -> None:
    data = uftrace.write({7: uftrace.data([record, *CALLS])}, specs=SPECS)
    if not nbytes:
        assert fastprof.top(data, n=0).rows
        return
    with pytest.raises(FormatError, match=f"of f{record.function} is not known") as found:
        fastprof.info(data)
    assert found.value.offset == 0 and "7.dat" in str(found.value)
    assert fastprof.info(data, lenient=True).losses["unreadable-files"] == 1


def test_an_address_outside_of_all_symbols() -> None:
    names = {row.name for row in fastprof.top(uftrace.write({7: uftrace.data(CALLS)}, n_functions=1), n=0).rows}
    assert names == {"f0", f"<{uftrace.BASE + uftrace.STEP:x}>"}


def test_a_process_has_the_mappings_of_its_parent_up_to_exec() -> None:
    """Also of the parent's parent, and not those that the parent got later."""
    tasks = b"FORK timestamp=0.000000003 pid=8 ppid=1\nFORK timestamp=0.000000005 pid=9 ppid=8\n"
    tasks += (
        b'SESS timestamp=0.000000012 pid=1 sid=ef exename="/c"\nSESS timestamp=0.000000015 pid=9 sid=cd exename="/b"\n'
    )
    data = uftrace.write({9: uftrace.data(CALLS)}, sessions=tasks + b"TASK timestamp=0.000000006 tid=9 pid=9\n")
    assert {row.name for row in fastprof.top(data, n=0).rows} == {"f0", f"<{uftrace.BASE + uftrace.STEP:x}>"}


def test_exec_begins_a_session() -> None:
    """From 15 ns on there is no symbol."""
    data = uftrace.write({7: uftrace.data(CALLS)}, sessions=b'SESS timestamp=0.000000015 pid=1 sid=cd exename="/b"\n')
    names = {row.name for row in fastprof.top(data, n=0).rows}
    assert names == {"f0", f"<{uftrace.BASE + uftrace.STEP:x}>"}


def test_no_info(tmp_path: Path) -> None:
    with pytest.raises(FastprofError, match="no file info of uftrace"):
        fastprof.info(CORPUS / "uftrace" / "bad" / "no-info.tar")


def test_bytes_that_are_not_utf_8() -> None:
    """They are kept in the command and in the program's name; those of the head take no part in it."""
    data = uftrace.write({7: uftrace.data(CALLS)}, specs="cmdline:?\n").replace(b"cmdline:?", b"cmdline:\xff")
    data = data.replace(struct.pack("<Q", 0x363), b"\xc3\xa9" + bytes(6)).replace(b'/srv/a"', b'/srv/\xff"')
    assert fastprof.info(data).facts["program"] == "/srv/a" and fastprof.top(data, n=0).rows


def test_numbers_of_too_many_digits_are_not_read() -> None:
    line = b"TASK timestamp=1.000000000 tid=" + b"1" * 5000 + b" pid=1\n"
    assert fastprof.top(uftrace.write({7: uftrace.data(CALLS)}, sessions=line), n=0).rows


@pytest.mark.parametrize("size", [b"\x80" + b"\x7f" * 11, b"00000177777\0"])
def test_an_archive_ends_inside_an_entry_of_another_type(size: bytes) -> None:
    entry = tarfile.TarInfo("x")
    entry.type = b"V"
    head = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    head[124:136], head[148:156] = size, b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    data = uftrace.write({7: uftrace.data(CALLS)}).rstrip(b"\0")
    data += bytes(-len(data) % 512) + head + bytes(1024)
    with pytest.raises(FormatError, match=r"x has \d+ bytes, and the archive ends"):
        fastprof.info(data)
    assert fastprof.info(data, lenient=True).losses["damaged-archives"] == 1


def test_the_first_mapping_at_an_address_counts() -> None:
    maps = Mappings()
    assert maps.at(5) is None
    for start, end, path in [(10, 20, "a"), (5, 30, "b"), (12, 40, "c"), (50, 50, "d"), (60, 40, "e"), (35, 36, "f")]:
        maps.add(start, end, path)
    for address in range(70):
        assert maps.at(address) == next((one for one in maps.all if one.start <= address < one.end), None)


def test_sessions_and_mappings_of_each_are_found_fast() -> None:
    """A map is read once, and neither sessions nor maps are searched one after the other."""
    sessions = b"".join(b"SESS timestamp=0.000%06d pid=1 sid=ab\n" % i for i in range(30000))
    sessions += b"DLOP timestamp=0.000000001 tid=7 sid=ab base=0 libname=/a\n" * 10000
    records = [Record(i, ENTRY, 0, i) for i in range(30000)]
    began = time.process_time()
    assert fastprof.info(uftrace.write({7: uftrace.data(records)}, sessions=sessions)).losses == {}
    assert time.process_time() - began < 8


def test_values_of_debug_information() -> None:
    """In the order of uftrace: that of the text, and by number within a kind.  An empty class has no bytes (254)."""
    arguments = Arguments("argspec:g@arg2/i16,fparg1,arg1\nargauto:_ZdlPv@arg1/x;f@arg1/c\n", 8)
    debug = "arg1/t48:P%stack+1,arg2/S%RSI,fparg1/32%XMM2,fparg2/80,arg3/t0:E,retval/t0:E"
    assert arguments.sizes("f", debug=debug) == bytes([48, 255, 4, 10, 254, 0, 254])
    assert arguments.sizes("g", debug=debug) == bytes([8, 2, 8, 0])
    assert arguments.sizes("f") == bytes([1, 0])
    assert arguments.sizes("_ZdlPvm", "operator delete(void*, unsigned long)") == bytes([8, 0])
    assert arguments.sizes("h", debug="retval/t") == b""
    assert arguments.sizes("h", debug="arg1,retval5") == bytes([8, 0, 8])
    assert arguments.sizes("h", debug=",".join(f"arg{i}" for i in range(256))) == b""


def test_an_empty_class_has_no_bytes() -> None:
    debug = "F: 0 f0\nL: 3 a.c\nA: @arg1/t0:E,arg2/i32\nR: @retval/t0:E\nF: 100 f1\nL: 7 b.c\n"
    data = uftrace.data([Record(10, ENTRY, 0, 0, bytes(8)), *CALLS[1:3]])
    data += struct.pack("<QQ", 70, EXIT | 4 | 5 << 3 | uftrace.BASE << 16)
    trace = uftrace.write({7: data}, debug=debug)
    assert fastprof.info(trace).losses == {} and fastprof.info(trace).repairs == {}
    places = {(row.name, row.file, row.line, row.inclusive) for row in fastprof.top(trace, n=0).rows}
    assert places == {("f0", "a.c", 3, 60), ("f1", "b.c", 7, 30)}


@pytest.mark.parametrize(
    "pattern", ["b.*a", "^a.*b.*", "^.*b$", ".*a..*b$", "a.b", "^ab$", "^a.*a$", "^..*.b.*$", "..*"]
)
def test_patterns_are_regular_expressions(pattern: str) -> None:
    arguments = Arguments(f"argspec:{pattern}@arg1\n", 8)
    for i in range(2, 256):
        name = f"{i:b}"[1:].replace("0", "a").replace("1", "b")
        assert bool(arguments.sizes(name)) == bool(re.search(pattern, name))


def test_patterns_take_no_time_without_bound() -> None:
    began = time.process_time()
    assert not Arguments("argspec:.*.*.*x@arg1\n", 8).sizes("a" * 1_500)
    assert time.process_time() - began < 1
    data = uftrace.write({7: uftrace.data(CALLS)}, specs="argspec:" + "a.$@arg1;" * 1_001 + "\n")
    with pytest.raises(FormatError, match=r"info: .*more than 1000 patterns"):
        fastprof.info(data)


@pytest.mark.parametrize("n_links", [3, 200])
def test_hard_links_to_one_file_of_data(n_links: int) -> None:
    data = uftrace.write({7: uftrace.data([Record(i, ENTRY, 0, 0) for i in range(4_096)])}).rstrip(b"\0")
    data += bytes(-len(data) % 512)
    for k in range(n_links):
        entry = tarfile.TarInfo(f"d/{100 + k}.dat")
        entry.type, entry.linkname = tarfile.LNKTYPE, "d/7.dat"
        data += entry.tobuf(tarfile.USTAR_FORMAT)
    if n_links == 3:
        assert [row.calls for row in fastprof.top(data + bytes(1024), n=0).rows] == [4 * 4_096]
        return
    with pytest.raises(FormatError, match=r"hard links .* 16 times the archive's size"):
        fastprof.info(data + bytes(1024))


def test_values_of_a_function_are_read_once() -> None:
    """Not for each of its addresses."""
    data = b"".join(struct.pack("<QQ", i, ENTRY | 5 << 3 | (uftrace.BASE + i) << 16) for i in range(256))
    debug = "F: 0 f0\nL: 3 a.c\nA: @" + "arg1," * 200_000 + "arg2\n"
    began = time.process_time()
    assert fastprof.info(uftrace.write({7: data}, debug=debug, specs=f"argauto:f0@{'arg1,' * 200_000}arg1\n"))
    assert time.process_time() - began < 8


def test_forks_of_forks_are_followed_once() -> None:
    """Each process is the child of the one before it, and none of them has sessions."""
    n = 6_000
    tasks = b"".join(b"FORK timestamp=1.000%06d pid=%d ppid=%d\n" % (i, i + 1, i) for i in range(1, n))
    tasks += b"".join(b"SESS timestamp=2.000%06d pid=1 sid=ab\n" % i for i in range(30_000))
    tasks += b"".join(b"TASK timestamp=1.000%06d tid=%d pid=%d\n" % (i, i, i) for i in range(2, n))
    threads = dict.fromkeys(range(n), b"") | {n - 1: uftrace.data(CALLS)}
    began = time.process_time()
    assert {row.name for row in fastprof.top(uftrace.write(threads, sessions=tasks), n=0).rows} == {"f0", "f1"}
    assert time.process_time() - began < 4
