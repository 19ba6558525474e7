"""Profiles in lines of text: docs/formats/tracer-stacks.md, rprof.md, luajit.md, ghc-prof.md, instruments.md and
pprof-raw.md."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference import texts
from tests.support.paths import CORPUS
from tests.support.stackdump import Dump, Frame, dump

TRACERS, RPROF, LUAJIT = (CORPUS / name / "good" for name in ("tracer-stacks", "rprof", "luajit"))
GHC, INSTRUMENTS, RAW = (CORPUS / name / "good" for name in ("ghc-prof", "instruments", "pprof-raw"))
ALL = sorted(path for folder in (TRACERS, RPROF, LUAJIT, GHC, INSTRUMENTS, RAW) for path in folder.iterdir())


def name_of(frame: Frame) -> str:
    name: bytes = frame[3][0][0] if frame[3] else b"%#x" % frame[1]
    return name.decode()


def read(data: bytes | Path, format_: str, **options: Any) -> tuple[Counter[str], Dump]:
    """The sums of values, by the names of stacks."""
    found = dump(data.read_bytes() if isinstance(data, Path) else data, format_, options=Options(**options))
    stacks: Counter[str] = Counter()
    for stack, _, values in found.rows:
        stacks[";".join(map(name_of, reversed(stack)))] += sum(values)
    return stacks, found


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_file_is_recognized(path: Path) -> None:
    with Source(path.read_bytes()) as source:
        assert formats.claimants(source) == [path.parts[-3]]


# ---- bpftrace, BCC, DTrace ----


@pytest.mark.parametrize("name", [path.name for path in sorted(TRACERS.iterdir()) if path.suffix != ".bpftrace"])
def test_blocks(name: str) -> None:
    found = read(TRACERS / name, "tracer-stacks")[0]
    assert found == texts.blocks((TRACERS / name).read_text()) and found


def test_a_named_map_is_a_value_type() -> None:
    path = TRACERS / "maps.bpftrace"
    maps = texts.bpftrace(path.read_text())
    assert {*maps} == {"", "k", "u"}
    for name, expected in maps.items():
        rows = fastprof.top(path, n=0, value=name or "samples").rows
        assert sum(row.self for row in rows) == sum(expected.values())
    merged = read(path, "tracer-stacks")[0]
    assert merged == sum(maps.values(), Counter())
    assert read(path, "tracer-stacks")[1].log.not_representable["maps-without-stacks"] == 1


def test_keys_are_callers() -> None:
    data = b"@[\n    f+1\n    g+0x2f\n, \n    main+3\n    _start+1\n, my app]: 4\n@[, idle]: 2\n@[1, \n    h\n]: -3\n"
    assert read(data, "tracer-stacks")[0] == {"my app;_start;main;g;f": 4, "idle": 2, "1;h": -3}


def test_frames_have_modules() -> None:
    data = (
        b"@[\n\t7f3340f24350 write+16 (/lib/libc.so)\n    g [ext4]\n    unix`h+0x5\n    operator new(unsigned long)+7\n"
        b"    0x7f12\n    55bb0c3a3975 0x55bb0c3a3975 ([unknown])\n    a+b\n]: 1\n"
    )
    (stack, _, _), = read(data, "tracer-stacks")[1].rows  # fmt: skip
    assert [*map(name_of, stack)] == [
        "write", "g", "h", "operator new(unsigned long)", "0x7f12", "0x55bb0c3a3975", "a+b"
    ]  # fmt: skip
    objects = fastprof.top(data, n=0, by="object", from_="tracer-stacks").rows
    assert {row.object for row in objects} >= {"/lib/libc.so", "ext4", "unix"}


def test_off_cpu_time_is_in_microseconds() -> None:
    (type_,) = read(TRACERS / "offcputime.bcc", "tracer-stacks")[1].part.value_types
    assert (type_.name, type_.unit) == ("off-CPU", "microseconds")


@pytest.mark.parametrize(
    ("data", "line", "want"),
    [
        (b"@[\n    f\n]: 5", 3, "a newline"),
        (b"@[\n    f\n]: many\n", 3, "1 to 18 digits"),
        (b"@[\n    f\n", 3, "its value"),
        (b"    f\n    -    a (1)\n", 3, "its value"),
        (b"    target:     a\n    f\n", 1, "stacks of wakers with -f"),
        (b"@a[\n f+1\n]: 3\n\n    x+1\n    5\n", 6, "a stack of a map"),
    ],
)
def test_damage_has_a_place(data: bytes, line: int, want: str) -> None:
    with pytest.raises(FormatError, match=want) as found:
        read(data, "tracer-stacks")
    assert found.value.line == line


def test_lenient_keeps_other_stacks() -> None:
    data = b"@[\n    f\n]: x\n@[\n    g\n]: 7\n@[\n    h\n"
    found, log = read(data, "tracer-stacks", lenient=True)
    assert (found, log.log.losses) == ({"g": 7}, {"unreadable-lines": 1, "stacks-without-value": 1})
    found, log = read(b"@a[\n g\n]: 3\n\n    x+1\n    5\n@a[\n h\n]: 4\n", "tracer-stacks", lenient=True)
    assert (found, log.log.losses) == ({"g": 3, "h": 4}, {"unreadable-lines": 1})


# ---- Rprof ----

# summaryRprof of R 4.2.2: total and self time in hundredths of a second
SUMMARY = {
    "plain.Rprof": {"main": (20, 0), "sapply": (18, 0), "lapply": (16, 13), "FUN": (3, 2), "unlist": (2, 1)},
    "lines.Rprof": {"main": (17, 0), "lapply": (14, 12), "FUN": (2, 2), "unlist": (2, 2), "fib": (1, 1)},
    "memory.Rprof": {"main": (23, 0), "lapply": (21, 4), "<GC>": (11, 11), "FUN": (7, 6), "fib": (1, 1)},
}


@pytest.mark.parametrize("name", SUMMARY)
def test_samples_of_r(name: str) -> None:
    stacks, found = read(RPROF / name, "rprof")
    stacks = Counter({stack: n // 10_000_001 for stack, n in stacks.items()})
    assert stacks == texts.rprof((RPROF / name).read_text())
    assert {values for _, _, values in found.rows} == {(1, 10_000_000)}
    for function, times in SUMMARY[name].items():
        inclusive = sum(n for stack, n in stacks.items() if function in stack.split(";"))
        assert (inclusive, sum(n for stack, n in stacks.items() if stack.split(";")[-1] == function)) == times


def test_a_place_precedes_its_function() -> None:
    data = b'line profiling: sample.interval=5000\n#File 1: a b.R\n1#7 "f" "g" 1#9 "say "x"" \n\n1#3 \n'
    (stack, _, values), = read(data, "rprof")[1].rows  # fmt: skip
    assert [(line[0], line[2], line[4]) for (line,) in (frame[3] for frame in stack)] == [
        (b"f", b"a b.R", 7), (b"g", b"", 0), (b'say "x"', b"a b.R", 9)
    ]  # fmt: skip
    assert values == (1, 5_000_000)


def test_an_interval_lasts_until_the_next() -> None:
    data = b'sample.interval=1000\n"f" \nGC profiling: sample.interval=3000\n"<GC>" "f" \n'
    assert [values[1] for _, _, values in read(data, "rprof")[1].rows] == [1_000_000, 3_000_000]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (b'"f" 3#1 "g" \n', "places as 1#7 of files before"),
        (b'"f" "g\n', "a quote at the end"),
        (b':1:2:3:"f" \n', "four numbers"),
        (b"#File 1000000: a\n", "below 1,000,000"),
        (b"sample.interval=0\n", "microseconds"),
        (b'"f" "g"', "a newline"),
    ],
)
def test_damaged_samples_of_r(line: bytes, want: str) -> None:
    data = b'line profiling: sample.interval=5000\n#File 1: a.R\n"f" \n' + line
    with pytest.raises(FormatError, match=want) as found:
        read(data, "rprof")
    assert found.value.line == 4
    stacks, kept = read(data, "rprof", lenient=True)
    assert (stacks, kept.log.losses) == ({"f": 5_000_001}, {"unreadable-lines": 1})


# ---- LuaJIT ----


@pytest.mark.parametrize("name", sorted(path.name for path in LUAJIT.iterdir()))
def test_lines_of_luajit(name: str) -> None:
    found, log = read(LUAJIT / name, "luajit")
    assert found == texts.luajit((LUAJIT / name).read_text()) and found
    assert log.part.value_types[0].name == ("samples" if "r" in name.partition(".")[0][-1] else "share")


def test_what_parts_leave_is_the_functions_own() -> None:
    data = b"60%  f < g\n  <- 50%  main\n  <- 25%  C code\n   40%  h\n"
    assert read(data, "luajit")[0] == {"main;g;f": 3000, "g;f;C code": 1500, "g;f": 1500, "h": 4000}


@pytest.mark.parametrize("data", [b"  <- 3%  f\n", b"101%  f\n", b"5%  f\n    3  g\n", b"5% f\n", b"5%  f"])
def test_damaged_lines_of_luajit(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"two blanks and a name|a newline"):
        read(data, "luajit")


def test_lines_of_luajit_have_a_limit() -> None:
    """Each part of a line once cost as much as the whole line."""
    chain = b" < ".join([b"f"] * 4096)
    data = b"400000  " + chain + b"\n" + b"  -- 1  g\n" * 400_000
    assert fastprof.info(io.BytesIO(data), from_="luajit").facts["totals"] == {"samples": 400_000}
    for line, want in ((b"9  f < " + chain, "4096 functions"), (b"9  " + chain + b"\n  <- 1  g", "64 functions")):
        with pytest.raises(FormatError, match=want):
            fastprof.info(io.BytesIO(line + b"\n"), from_="luajit")


def test_parts_that_exceed_their_line_leave_nothing() -> None:
    parts = b"  -- 900000000000000000  g\n" * 11
    assert read(b"1  f\n" + parts, "luajit")[0] == {"f;g": 11 * 900_000_000_000_000_000}


# ---- GHC ----


@pytest.mark.parametrize("path", sorted(GHC.iterdir()), ids=lambda path: path.name)
def test_cost_centres(path: Path) -> None:
    tree = path.read_text().split("%time %alloc   %time %alloc")[1].splitlines()[2:]
    has_ticks = path.name != "p.ghc.prof"
    expected: Counter[tuple[str, ...]] = Counter()
    stack: list[str] = []
    for line in tree:
        name, *_ = line.split()
        *_, entries, time, alloc, _, _, ticks, size = line.split() if has_ticks else [*line.split(), "0", "0"]
        stack[len(line) - len(line.lstrip()) :] = [name]
        expected[";".join(stack), "entries"] += int(entries)
        expected[";".join(stack), "time"] += int(ticks) * 1_000_000 if has_ticks else round(24_000 * float(time) * 10)
        expected[";".join(stack), "alloc"] += int(size) if has_ticks else round(63_025_704 * float(alloc) / 100)
    found = read(path, "ghc-prof")[1]
    rows: Counter[tuple[str, ...]] = Counter()
    for frames, _, values in found.rows:
        for type_, value in zip(found.part.value_types, values, strict=True):
            rows[";".join(map(name_of, reversed(frames))), type_.name] += value
    assert rows == Counter({key: n for key, n in expected.items() if n})
    assert bool(found.log.warnings) is not has_ticks


def test_a_cost_centre_has_a_place_and_a_module() -> None:
    rows = read(GHC / "labels.ghc.prof", "ghc-prof")[1].rows
    places = {(line[0].decode(), line[2], line[4]) for frames, _, _ in rows for ((line,),) in ((f[3],) for f in frames)}
    assert places >= {("größe", b"lab.hs", 6), ("sum'of", b"lab.hs", 4), ("main", b"lab.hs", 8), ("CAF", b"", 0)}
    objects = {row.object for row in fastprof.top(GHC / "labels.ghc.prof", n=0).rows}
    assert {"Main", "MAIN", "GHC.Conc.Signal"} <= objects


def test_ghc_needs_totals() -> None:
    with pytest.raises(FormatError, match="no `total time` and `total alloc`"):
        read(b"\tTime and Allocation Profiling Report\n", "ghc-prof")


# ---- Instruments ----

MS = 1_000_000


@pytest.mark.parametrize(
    ("name", "value_type", "stacks"),
    [
        (
            "time",
            "time",
            {
                "start;main;delta()": 846 * MS,
                "start;main;delta();alpha()": 1600 * MS,
                "start;dyld4::start(void*)": 4 * MS,
            },
        ),
        ("running", "time", {"prog (4211);Main Thread  0x2d7ff": 1_500_000,
                             "prog (4211);Main Thread  0x2d7ff;work(int, char)": 107_500_000}),
        ("cycles", "cycles", {"example_app (40414);start": 404_750_000, "example_app (40414);start;main": 532}),
        ("bytes", "inuse_space", {"start;main": 147_901_655, "start;main;delta()": 227_635_357,
                                  "start;main;alpha()": 75_277_260, "other": 512}),
    ],
)  # fmt: skip
def test_call_trees(name: str, value_type: str, stacks: dict[str, int]) -> None:
    found, log = read(INSTRUMENTS / f"{name}.instruments.txt", "instruments")
    assert (found, log.part.value_types[0].name) == (stacks, value_type)


@pytest.mark.parametrize("line", [b"5 ms\t5 eons\tf\n", b"5 ms\t1 ms\t   f\n", b"5 ms\n", b"1 ms\t1.1.1 ms\tf\n"])
def test_damaged_call_trees(line: bytes) -> None:
    data = b"Weight\tSelf Weight\tSymbol Name\n9 ms\t9 ms\tmain\n" + line
    with pytest.raises(FormatError) as found:
        read(data, "instruments")
    assert found.value.line == 3
    assert read(data, "instruments", lenient=True)[0] == {"main": 9 * MS}


def test_callees_that_exceed_their_caller_leave_nothing() -> None:
    data = b"Weight\tSymbol Name\n1 ns\tmain\n" + b"9000000000000000000 ns\t f\n" * 2
    assert read(data, "instruments")[0] == {"main;f": 2 * 9 * 10**18}


# ---- pprof -raw ----


@pytest.mark.parametrize(("text", "profile"), [("go-block", "go-block.pb.gz"), ("go-labels", "go-cpulabels.pb")])
def test_the_text_of_a_profile_is_the_profile(text: str, profile: str) -> None:
    data = (CORPUS / "pprof" / "good" / profile).read_bytes()
    expected = dump(gzip.decompress(data) if profile.endswith(".gz") else data, "pprof")
    found = dump((RAW / f"{text}.pprof.txt").read_bytes(), "pprof-raw")
    assert [(s, sorted(labels), v) for s, labels, v in found.rows] == [
        (s, sorted(labels), v) for s, labels, v in expected.rows
    ]
    assert {*found.mappings} <= {*expected.mappings}  # pprof leaves out what no sample uses
    shown = {key: value for key, value in expected.part.extra.items() if key != "duration_ns"}
    assert (found.part.extra, found.part.value_types) == (shown, expected.part.value_types)


def test_all_of_a_raw_text() -> None:
    found = dump((RAW / "everything.pprof.txt").read_bytes(), "pprof-raw")
    (stack, labels, values), *_ = found.rows
    assert stack[0] == (
        (b"/bin/p", b"id1", 0x1000, 0x2000, 16, 9), 0x1234, 0,
        ((b"g", b"g", b"", 0, 3, 0), (b"f", b"_Zf", b"f.c", 7, 9, 0)),
    )  # fmt: skip
    assert stack[1][2] == 2 and stack[2][:2] == (None, (1 << 64) - 1)
    assert {*labels} == {(b"key", b"value", 0, b""), (b"size", b"", -77, b"bytes")} and values == (1, -5)
    assert found.part.comments == [b"note", b"note two"]
    assert found.part.extra["default_sample_type"] == "samples"


def test_columns_of_newer_releases() -> None:
    (stack, _, _), *_ = dump((RAW / "columns.pprof.txt").read_bytes(), "pprof-raw").rows
    assert [line[4:] for line in stack[0][3]] == [(90, 7), (119, 7)]


def test_names_and_paths_have_blanks() -> None:
    head = b"Period: 1\nSamples:\ncpu/nanoseconds \n 5: 1 \n                k:[a b] n:[12]\nLocations\n"
    for line, names in {
        b"     1: 0x1 operator new(int) /a b/c d.cc:5 s=3": (b"operator new(int)", b"/a b/c d.cc", 3, 5),
        b"     1: 0x1 f(int, char) x.cc:7:2 s=0": (b"f(int, char)", b"x.cc", 0, 7),
        b"     1: 0x1 g :0 s=0(_Zg(x))": (b"g", b"", 0, 0),
    }.items():
        ((frame,), labels, _), = dump(head + line + b"\n", "pprof-raw").rows  # fmt: skip
        ((name, _, file, first, at, _),) = frame[3]
        assert (name, file, first, at) == names
        assert {*labels} == {(b"k", b"a b", 0, b""), (b"n", b"", 12, b"")}


def test_damaged_raw_texts() -> None:
    text = (RAW / "go-block.pprof.txt").read_bytes()
    for old, new, line, want in (
        (b"2 3 4 \n", b"2 3 99 \n", 7, "the number of a location"),
        (b"2 3 4 \n", b"2 3 M=1 \n", 7, "the number of a location"),
        (b"586   20651852: ", b"586: ", 7, "a number for each value type"),
        (b"M=1", b"M=2", 11, "the number of a mapping"),
        (b"0x4ba0d0", b"0x4ba0d000000000000", 11, "16 hexadecimal digits"),
        (b":90 s=0", b" s=0", 11, "ahead of s="),
        (b"0x400000/", b"400000/", 21, "0x400000/0x401000/0x0 file"),
    ):
        with pytest.raises(FormatError, match=want) as found:
            dump(text.replace(old, new, 1), "pprof-raw")
        assert found.value.line == line
    log = dump(text.replace(b"2 3 4 \n", b"2 3 99 \n"), "pprof-raw", options=Options(lenient=True)).log
    assert log.losses == {"unreadable-lines": 1}
