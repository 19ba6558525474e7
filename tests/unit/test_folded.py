"""Folded stacks: output from profiles of other formats, options, and the report."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError, UnrecognizedError
from tests.contract.dump import CORPUS
from tests.reference import folded as reference
from tests.reference import profile_proto
from tests.support.product import open_input

GOOD = CORPUS / "folded" / "good"


def converted(source: Path | bytes | str, tmp_path: Path, **options: Any) -> tuple[str, fastprof.Log]:
    if not isinstance(source, Path):
        data = source if isinstance(source, bytes) else source.encode()
        source = tmp_path / "in.folded"
        source.write_bytes(data)
    log = fastprof.convert(source, tmp_path / "out.folded", **options)
    return (tmp_path / "out.folded").read_text(), log


def codes(counts: Any) -> dict[str, int]:
    return {entry["code"]: entry["count"] for entry in counts.entries()}


# ---- reading -------------------------------------------------------------


@pytest.mark.parametrize("capacity", [1000, 5])
def test_stacks_that_come_again_are_the_same(capacity: int) -> None:
    """Including lines that are not plain, and texts that differ only at the ends."""
    stacks = [f"main;{'f' * (k % 40)}{k % 7};;{k}" for k in range(300)]
    stacks += ["a", "b;", "#c;d", "e  ", "f\t", "g 1", "[x]"]
    lines = [f"{stacks[(k * 7919) % len(stacks)]} {k % 100}\n" for k in range(5000)]
    data = "".join(lines).encode()
    expected = reference.read(data, 1, 0, False)
    opened = open_input(data, from_="folded")
    found = [row for rows in fastprof_rows(opened, capacity) for row in rows]
    assert [(tuple(name.encode() for name in stack), (value,)) for stack, value in found] == expected.rows
    assert opened.log.repairs["empty-frames"] == sum(";;" in line for line in lines)


def test_more_stacks_than_are_remembered(tmp_path: Path) -> None:
    stacks = [f"f{k:x};g" for k in range(300_000)]
    text = "".join(f"{stack} 1\n" for stack in [*stacks, *stacks, *stacks[:1000]])
    written, _ = converted(text, tmp_path)
    assert written == "".join(f"{stack} {3 if k < 1000 else 2}\n" for k, stack in enumerate(stacks))


def test_a_line_is_a_stack() -> None:
    opened = open_input(b"main;f 5\nmain 2\n", from_="folded")
    model = opened.model
    (batch,) = fastprof_rows(opened)
    assert batch == [(("main", "f"), 5), (("main",), 2)]
    assert [tuple(t) for t in model.parts[0].value_types] == [("samples", "count", "", "")]


def fastprof_rows(opened: Any, capacity: int | None = None) -> list[list[tuple[tuple[str, ...], int]]]:
    from tests.support.product import batches

    found, model = [], opened.model

    def frames(node: int) -> tuple[str, ...]:
        if not node:
            return ()
        parent, frame = model.row("stacks", node)
        function = model.row("lines", model.row("frames", frame)[4])[0]
        return (*frames(parent), model.get_function(function).name.decode())

    for batch in batches(opened, capacity):
        values = batch.values(0)
        found.append([(frames(batch["stack"][i]), values[i]) for i in range(len(batch))])
    return found


def test_the_message_of_a_bad_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        converted("main;f 5\nmain;g x\n", tmp_path)
    assert str(error.value).endswith("in.folded: folded: line 2, byte 16: the count is 'x', expected digits")
    text, log = converted("main;f 5\nmain;g x\n", tmp_path, lenient=True)
    assert (text, codes(log.losses)) == ("main;f 5\n", {"unreadable-lines": 1})


def test_a_line_that_the_file_cuts(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 2, byte 9") as error:
        converted("main;f 5\nmain;", tmp_path)
    assert error.value.code == -2
    text, log = converted("main;f 5\nmain;g 1", tmp_path)
    assert text == "main;f 5\nmain;g 1\n"
    assert codes(log.repairs) == {"open-end": 1}
    assert any("may be truncated" in warning for warning in log.warnings)


def test_fractions(tmp_path: Path) -> None:
    text = "a 0.5\nb 1.49\nc 3.\nd 2.0\n"
    written, log = converted(text, tmp_path)
    assert written == "a 1\nb 1\nc 3\nd 2\n"
    assert codes(log.repairs) == {"rounded-counts": 2}
    assert "line 1: a fractional count" in log.warnings[0]
    written, log = converted(text, tmp_path, decimals=2)
    assert written == "a 50\nb 149\nc 300\nd 200\n"
    assert not log.repairs


def test_two_counts(tmp_path: Path) -> None:
    text = "main;f 5 7\nmain;g 3 0\n"
    assert converted(text, tmp_path)[0] == "main;f 7\n"
    assert converted(text, tmp_path, value="before")[0] == "main;f 5\nmain;g 3\n"
    written, log = converted(text, tmp_path, counts=1)
    assert written == "main;f_5 7\n"
    assert codes(log.not_representable) == {"renamed": 1, "zero-values": 1}
    # one line with a single count, so all have one
    assert converted(text + "main 1\n", tmp_path)[0] == "main 1\nmain;f_5 7\n"


def test_kinds_of_code(tmp_path: Path) -> None:
    """Of a flight recording, as its own reader writes them: inlined functions of one location, one function whatever
    compiled it."""
    recording = CORPUS / "jfr" / "good" / "real-async.jfr.gz"
    fastprof.convert(recording, tmp_path / "kinds.folded", kinds=True)
    log = fastprof.convert(tmp_path / "kinds.folded", tmp_path / "out.pb", suffixes=True)
    fastprof.convert(recording, tmp_path / "direct.folded")
    fastprof.convert(tmp_path / "out.pb", tmp_path / "back.folded")
    assert reference.read((tmp_path / "back.folded").read_bytes()).totals() == (
        reference.read((tmp_path / "direct.folded").read_bytes()).totals()
    )
    written = profile_proto.Profile.FromString((tmp_path / "out.pb").read_bytes())
    assert any(len(location.line) > 1 for location in written.location)
    assert codes(log.not_representable)["kinds-of-code"] > 0


def test_the_kernel_is_an_object(tmp_path: Path) -> None:
    (tmp_path / "in.folded").write_text("java;sys_[k] 3\njava;sys 2\n")
    fastprof.convert(tmp_path / "in.folded", tmp_path / "out.callgrind", suffixes=True)
    text = (tmp_path / "out.callgrind").read_text()
    assert "[kernel.kallsyms]" in text
    rows = fastprof.top(tmp_path / "in.folded", suffixes=True).rows
    assert [(row.name, row.object, row.self) for row in rows] == [
        ("sys", "[kernel.kallsyms]", 3),
        ("sys", "", 2),
        ("java", "", 0),
    ]


def test_both_counts_in_other_formats(tmp_path: Path) -> None:
    fastprof.convert(GOOD / "two_values.folded", tmp_path / "out.pb")
    assert fastprof.info(tmp_path / "out.pb").facts["totals"] == {"before": 14, "after": 9}


@pytest.mark.parametrize(
    ("head", "is_folded"),
    [
        (b"main;f 5\n", True),
        (b"# mode: wall\n\nP1;T2;f.py:main:3 17\n", True),
        (b"a;b -3\na;c 4\n", True),  # broken, but recognizable
        (b"main 10\nidle 5\n", True),
        (b"version: 1\n", False),
        (b"fn=f\n12 3\n", False),
        (b"+3 17\n", False),
        (b"hello 12\nworld\n", False),
        (b'{"a;b": 5\n', False),
        (b"main;f\n", False),
        (b"", False),
        (b"a\x01;b 3\n", False),
        (b"main;f 5\nmain;g 7\nwarning: lost 3 samples\n", True),
        (b";".join(b"com/a/B.call%d" % i for i in range(400)), True),  # a first stack longer than the inspected bytes
        (b"<!DOCTYPE html><html>&lt;b&gt; 16\n<p>a &lt;&lt; 16\n</p>\n", False),
        (b"{main} 7\n{main};f 3\n", True),  # PHP
        (b"{main};f 3\n{main};g 3\n", True),
        (b"f 8\n[unknown] 2\n", True),
        (b"[heap] (tgid:4711 range:0x55d0-0x55d1) 60\n", True),
        (b'{\n"a;b": 5\n', False),
        (b"[1, 2\n", False),
        (b"#!/bin/sh\nexit 101\n", False),
        (b"prog=a; trap 0 1 2 3\necho hi\necho there\n", False),
        (b"LC_COLLATE\n<U4E00>;IGNORE 1\n<U4E01>;IGNORE 2\n", False),
        (b"KEYCAP NUMBER SIGN;0023 FE0F 20E3\nKEYCAP;0031 0300\nMACRON;0304\n", False),  # a count has no leading 0
        (b"Debian GNU/Linux 12\n", False),
        (b"abin32\t\t32\nx32\t\t32\n", False),
        (b"Bits_BE 0\nBits_Per_Unit 8\n", False),
        (b"T 6\nint 7\nT 8\n", False),
        (b"main 3\nfoo 4\n0x40519f 1\n", True),
        (b"0x40519f 1\n0x4051a0 2\n", False),  # a table of addresses
        (b"main 3\n+[NSObject load] 7\n-[NSString(x) y:z:] 1\n", True),
        (b"+3 7\n-2 8\n", False),
        (b"1 4734\n10 4628\n", False),
        (b"0x1 = 3\nmain 4\n", False),
        (b"tcpmux\t\t1/tcp\necho\t\t7/tcp\n", False),
        (b"root 0\ndaemon 1\nbin 2\n", False),
        (b"var a=[0];" * 500, False),
        (b"p{color:red};" * 500, False),
    ],
)
def test_recognizing(head: bytes, is_folded: bool) -> None:
    sniff = formats.get("folded").sniff
    assert sniff is not None and bool(sniff(head)) == is_folded


LONG = {
    "closures": b";".join(b"{closure#%d}" % i for i in range(900)) + b" 3\n",
    "one name": b"main;f<" + b"std::pair<int, x> = " * 900 + b"> 3\n",
    "quotes": b"main;" + b'say "hi";' * 900 + b"x 3",
    "two counts": b"main;" + b"operator=;" * 900 + b"x 1 3\nmain 2 4\n",
    "more than a megabyte": b"main;" + b"operator=;" * 200_000 + b"x 3\nmain 2\n",
}


@pytest.mark.parametrize("data", LONG.values(), ids=LONG)
@pytest.mark.parametrize("kind", ["plain", "gz", "pipe"])
def test_a_first_line_longer_than_what_is_inspected_first(data: bytes, kind: str, tmp_path: Path) -> None:
    lines = data.splitlines()
    total = sum(int(line.split()[-1]) for line in lines)
    path = tmp_path / "unknown"
    path.write_bytes(gzip.compress(data) if kind == "gz" else data)
    if kind == "pipe":
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            facts = fastprof.info(cat.stdout).facts
    else:
        facts = fastprof.info(path).facts
    assert facts["totals"] == ({"before": 3, "after": 7} if b"x 1 3" in data else {"samples": total})
    assert facts["lines_of_stacks"] == len(lines)


NOT_FOLDED = {
    "script": b"var a={};a.b=function(){return 3};" * 300,
    "styles": b"p{color:red};" * 500,
    "JSON": b'{"a;b": 1, ' + b'"c;d": 2, ' * 500 + b'"e": 12',
    "no number": b"x " * 4000,
}


@pytest.mark.parametrize("data", NOT_FOLDED.values(), ids=NOT_FOLDED)
def test_other_long_lines(data: bytes) -> None:
    with pytest.raises(UnrecognizedError):
        fastprof.info(data)


SINGLE = {
    "numbers": b"1 4734\n10 4628\n11 4761\n",
    "operators": b"operator= 5\noperator== 3\n",
    "twice": b"main 3\nmain 4\n",
    "addresses": b"0x40519f 1\n0x4051a0 2\n",
}


@pytest.mark.parametrize("data", SINGLE.values(), ids=SINGLE)
def test_single_frames_that_are_also_a_table_are_known_by_their_name(data: bytes, tmp_path: Path) -> None:
    total = sum(int(line.split()[-1]) for line in data.splitlines())
    for name in ("x.folded", "x.collapsed", "x.folded.gz"):
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        assert fastprof.info(tmp_path / name).facts["totals"] == {"samples": total}
    for name in ("x.txt", "folded", "unknown"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UnrecognizedError, match="name it with"):
            fastprof.info(tmp_path / name)
        assert fastprof.info(tmp_path / name, from_="folded").facts["totals"] == {"samples": total}


@pytest.mark.parametrize("data", [b"hello world\n", b"1 2\nhello\n", b"\n", b"{}", b"\0\0\0\0 5\n", b"# only\n"])
def test_a_name_alone_makes_no_folded_stacks(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.folded").write_bytes(data)
    with pytest.raises(UnrecognizedError):
        fastprof.info(tmp_path / "x.folded")


@pytest.mark.parametrize("frame", ["main", "1", "0x40519f", "+[NSObject load]", "operator=", "f 2", "a: b", "-"])
def test_what_is_written_of_single_frames_is_recognized(frame: str, tmp_path: Path) -> None:
    fastprof.convert(f"{frame} 5\n".encode(), tmp_path / "x.pb.gz", from_="folded", counts=1)
    fastprof.convert(tmp_path / "x.pb.gz", tmp_path / "x.folded")
    assert fastprof.info(tmp_path / "x.folded").facts["totals"] == {"samples": 5}


# ---- writing -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("#f;g", "_#f;g"),
        ("f;operator() 2", "f;operator()_2"),
        ("f 2;g", "f 2;g"),
        ("f;g 1.5", "f;g_1.5"),
        ("f; g ", "f;g"),
        ("f; ", "f"),
        ("f; ;g", "f;[unknown];g"),
        ("f\0g", "f g"),
        ("f\u2028g\u0085", "f g"),
        ("f\ufeff;g", "f;g"),
    ],
)
def test_names_that_would_be_read_as_something_else(name: str, written: str, tmp_path: Path) -> None:
    text, log = converted(f"{name} 5\nlast 1\n", tmp_path, counts=1)
    assert text == f"{written} 5\nlast 1\n"
    assert codes(log.not_representable).get("renamed", 0) == (name not in (written, "f; "))
    assert converted(text, tmp_path)[0] == text


def test_names_that_would_become_one_are_told_apart(tmp_path: Path) -> None:
    text, log = converted("m;f\0g 1\nm;f g 2\nm;f\1g;f g [2] 3\nm;f g;m 4\n", tmp_path)
    assert text == "m;f g 1\nm;f g [2] 2\nm;f g [2];m 4\nm;f g [3];f g [2] [2] 3\n"
    assert codes(log.not_representable) == {"renamed": 4}
    again, log = converted(text, tmp_path)
    assert again == text and not log.not_representable
    # many names become one: each number is tried once
    lines = [f"m;{''.join(chr(1 + (i >> k & 1)) for k in range(12))}x 1\n" for i in range(4096)]
    text, _ = converted("".join(lines), tmp_path, from_="folded")
    assert len({*text.splitlines()}) == 4096


def test_equal_stacks_are_one_line_whatever_their_places(tmp_path: Path) -> None:
    """In pprof a function is in several frames: addresses and lines."""
    p = _pprof()
    (tmp_path / "in.pb").write_bytes(p)
    text, log = converted(tmp_path / "in.pb", tmp_path, value="samples")
    assert text == "main;inner 3\nmain;[libx.so+0x1136] 4\n0x9 5\n"
    assert codes(log.not_representable)["places"] == 6


def _pprof() -> bytes:
    from tests.reference import profile_proto

    p = profile_proto.Profile()
    p.string_table.extend(["", "samples", "count", "main", "inner", "a.c", "/usr/lib/libx.so"])
    p.sample_type.add(type=1, unit=2)
    p.mapping.add(id=1, memory_start=0x1000, memory_limit=0x3000, file_offset=0x100, filename=6)
    for id_, name in ((1, 3), (2, 4)):
        p.function.add(id=id_, name=name, filename=5)
    for id_, function, line in ((1, 1, 7), (2, 1, 8), (3, 2, 1)):
        p.location.add(id=id_, address=id_).line.add(function_id=function, line=line)
    inlined = p.location.add(id=4, address=4)
    inlined.line.add(function_id=2, line=9)
    inlined.line.add(function_id=1, line=10)
    p.location.add(id=5, address=0x2036, mapping_id=1)
    p.location.add(id=6, address=9)
    for ids, n in (([3, 1], 1), ([4], 2), ([5, 2], 4), ([6], 5)):
        p.sample.add(location_id=ids, value=[n])
    data: bytes = p.SerializeToString()
    return data


def test_times_are_microseconds(tmp_path: Path) -> None:
    source = CORPUS / "gperftools" / "good" / "plain.prof"
    samples, _ = converted(source, tmp_path, value="samples")
    micros, log = converted(source, tmp_path, value="cpu")
    nanos, _ = converted(source, tmp_path, value="cpu", nanoseconds=True)
    period = fastprof.info(source).facts["period_us"]
    sums = [sum(reference.read(text.encode()).totals().values()) for text in (samples, micros, nanos)]
    assert sums == [sums[0], sums[0] * period, sums[0] * period * 1000]
    assert log.rows["stacks_written"] and log.facts["value_type"] == "cpu/microseconds"


def test_rounded_times(tmp_path: Path) -> None:
    log = fastprof.convert(CORPUS / "xray/good/fdr5-busy.xray", tmp_path / "x.folded")
    assert "rounded-times" in codes(log.not_representable)
    log = fastprof.convert(CORPUS / "xray/good/fdr5-busy.xray", tmp_path / "x.folded", nanoseconds=True)
    assert "rounded-times" not in codes(log.not_representable)


def test_root(tmp_path: Path) -> None:
    assert converted("f 1\n#g;h 2\n", tmp_path, root="my; app")[0] == "my: app;f 1\nmy: app;#g;h 2\n"


def test_negative_values_are_said(tmp_path: Path) -> None:
    from tests.reference import profile_proto

    p = profile_proto.Profile.FromString(_pprof())
    p.sample[0].value[0] = -3
    (tmp_path / "in.pb").write_bytes(p.SerializeToString())
    text, log = converted(tmp_path / "in.pb", tmp_path)
    assert "inner -" not in text
    # -3 and 2 belong to equal stacks
    assert codes(log.not_representable)["negative-values"] == 1


def test_labels_and_threads_are_said(tmp_path: Path) -> None:
    text, log = converted("f 1\n", tmp_path, per_thread=True)
    assert (text, [warning["code"] for warning in log.warned()]) == ("f 1\n", ["no-threads"])


def test_max_memory_changes_nothing(tmp_path: Path) -> None:
    lines = "".join(f"main;f{i % 3000} 1\n" for i in range(60_000))
    whole, _ = converted(lines, tmp_path)
    assert whole == "".join(f"main;f{i} 20\n" for i in range(3000))
    small, _ = converted(lines, tmp_path, max_memory=4200)
    assert small == whole


@pytest.mark.parametrize("source", ["xray/good/fdr5-busy.xray", "callgrind/good/tab.callgrind"])
def test_of_timelines_and_graphs(source: str, tmp_path: Path) -> None:
    text, _ = converted(CORPUS / source, tmp_path, nanoseconds=True)
    assert converted(text, tmp_path)[0] == text
    keep = fastprof.convert(CORPUS / source, tmp_path / "out.pb")
    assert keep.rows and sum(reference.read(text.encode()).totals().values()) in [
        *fastprof.info(tmp_path / "out.pb").facts["totals"].values()
    ]


@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_written_at_the_ends_of_lines_is_no_other_name(backwards: bool, tmp_path: Path) -> None:
    """`#` at the beginning, a blank and a number at the end, and a sample without a stack."""
    source, out, again = tmp_path / "x.pb", tmp_path / "x.folded", tmp_path / "again.folded"
    names = ["m", "#f", "_#f", "f 2", "f_2", "[no stack]", "#f 2", "_#f 2"]
    stacks = [[], *([i] for i in range(2, 9)), *([i, 1] for i in range(2, 9)), [3, 2], [3, 4, 3]]
    p = profile_proto.Profile()
    p.string_table.extend(["", "samples", "count", *names])
    p.sample_type.add(type=1, unit=2)
    for i in range(1, 9):
        p.function.add(id=i, name=2 + i)
        p.location.add(id=i).line.add(function_id=i)
    values = {}
    for i, stack in enumerate(stacks[::-1] if backwards else stacks):
        p.sample.add(location_id=stack, value=[1 << i])
        values[1 << i] = len(stack)
    source.write_bytes(p.SerializeToString())
    fastprof.convert(source, out)
    lines = dict(line.rsplit(" ", 1) for line in out.read_text().splitlines())
    assert {int(n): len(line.split(";")) for line, n in lines.items()} == {n: depth or 1 for n, depth in values.items()}
    fastprof.convert(out, again)
    assert sorted(again.read_text().splitlines()) == sorted(out.read_text().splitlines())
