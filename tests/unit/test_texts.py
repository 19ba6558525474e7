"""Profiles in lines of text: docs/formats/tracer-stacks.md, rprof.md and luajit.md."""

from __future__ import annotations

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
ALL = sorted(path for folder in (TRACERS, RPROF, LUAJIT) for path in folder.iterdir())


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
