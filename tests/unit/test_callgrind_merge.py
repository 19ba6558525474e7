"""Several Callgrind files as one: parts, threads, metadata, and sums."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from fastprof import convert
from fastprof.core.errors import FastprofError, UnrecognizedError
from tests.reference.callgrind import Part, parse
from tests.support.paths import REPO

BODY = b"fl=(1) a\nfn=(1) f\n1 %d\ncfn=(2) g\ncalls=%d 5\n2 %d\nfn=(2)\n5 %d\n\ntotals: %d\n"


def dump(n: int, *header: str, events: str = "Ir") -> bytes:
    lines = ["version: 1", "creator: callgrind-3.19.0", *header, f"events: {events}"]
    return "\n".join([*lines, ""]).encode() + BODY % (n, n, 10 * n, 10 * n, 11 * n)


def merged(tmp_path: Path, *inputs: bytes, **options: bool) -> tuple[list[Part], bytes]:
    folder = tmp_path / "inputs"
    folder.mkdir()
    for n, data in enumerate(inputs):
        (folder / f"callgrind.out.{n}").write_bytes(data)
    out = tmp_path / "out.callgrind"
    convert([str(folder)], str(out), **options)
    return parse(out.read_bytes()), out.read_bytes()


@pytest.mark.parametrize(("uncounted", "counted"), [(0, 2), (1, 1), (2, 1), (2, 0)])
def test_calls_that_only_some_inputs_count_are_warned_of(uncounted: int, counted: int, tmp_path: Path) -> None:
    sources = []
    for n in range(uncounted + counted):
        sources.append(tmp_path / f"{n}.callgrind")
        sources[-1].write_bytes(dump(1).replace(b"calls=1 ", b"calls=0 ") if n < uncounted else dump(n + 1))
    log = convert(sources, tmp_path / "out.callgrind")
    text = f"call counts are those of {counted} of {uncounted + counted} profiles; the others do not count calls"
    assert log.warnings == ([text] if uncounted and counted else [])


def figures(part: Part) -> list[tuple[str, bytes, int, int]]:
    return [(row.kind, row.function.name, row.count, row.values[0]) for row in part.rows]


def test_parts_become_one(tmp_path: Path) -> None:
    (part,), data = merged(
        tmp_path,
        dump(1, "pid: 7", "cmd: ./x", "part: 1", "desc: Trigger: first", "summary: 12"),
        dump(2, "pid: 7", "cmd: ./x", "part: 2", "desc: Trigger: second", "summary: 22", "# why"),
    )
    assert figures(part) == [("cost", b"f", 0, 3), ("call", b"f", 3, 30), ("cost", b"g", 0, 30)]
    assert part.summary == [34] and part.totals == [33]
    for line in (b"pid: 7", b"cmd: ./x", b"# why", b"desc: Triggers: first; second"):
        assert data.count(b"\n" + line + b"\n") == 1, line
    assert b"Trigger:" not in data


def test_threads_become_one(tmp_path: Path) -> None:
    inputs = [dump(n, f"pid: {p}", f"thread: {t}", f"cmd: {c}") for n, p, t, c in ((1, 7, 1, "a"), (2, 8, 2, "b"))]
    (part,), data = merged(tmp_path, *inputs)
    assert figures(part)[1] == ("call", b"f", 3, 30)
    for line in (b"desc: Processes: 7; 8", b"desc: Threads: 1; 2", b"cmd: a; b"):
        assert data.count(b"\n" + line + b"\n") == 1, line
    assert part.summary is None  # no input had one


def test_per_thread_makes_a_part_of_each_thread(tmp_path: Path) -> None:
    """Two dumps of two threads: dumps of a thread are summed, threads are not."""
    inputs = [dump(n, "pid: 7", f"thread: {thread}") for n, thread in ((1, 1), (2, 2), (3, 1), (4, 2))]
    parts, _ = merged(tmp_path, *inputs, per_thread=True)
    assert [(part.header["thread"], figures(part)[0][3]) for part in parts] == [("1", 4), ("2", 6)]


def test_threads_that_are_no_numbers_are_threads_all_the_same(tmp_path: Path) -> None:
    inputs = [dump(1, "pid: a", "thread: x"), dump(2, "pid: a", "thread: y"), dump(4, "pid: a", "thread: x")]
    parts, _ = merged(tmp_path, *inputs, per_thread=True)
    assert [(p.header["pid"], p.header["thread"], p.sums) for p in parts] == [("a", "x", [55]), ("a", "y", [22])]
    (tmp_path / "sum").mkdir()
    parts, written = merged(tmp_path / "sum", *inputs)
    assert parts[0].header["pid"] == "a" and "thread" not in parts[0].header
    assert b"desc: Threads: x; y\n" in written


def test_per_thread_keeps_processes_apart(tmp_path: Path) -> None:
    inputs = [dump(n, f"pid: {pid}", "thread: 1") for n, pid in ((1, 7), (2, 8), (3, 7))]
    parts, _ = merged(tmp_path, *inputs, per_thread=True)
    assert [figures(part)[0][3] for part in parts] == [4, 2]


def test_events_are_matched_by_name(tmp_path: Path) -> None:
    inputs = dump(1, "summary: 11", events="Ir"), dump(2, "summary: 22", events="Dr Ir")
    (part,), _ = merged(tmp_path, *inputs, union=True)
    assert part.events == ["Dr", "Ir"]  # the order of the input with the least names, whichever comes first
    assert [row.values for row in part.rows] == [(2, 1), (20, 10), (20, 10)]
    assert part.summary == [22, 11]


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    inputs = [dump(n, f"thread: {n}") for n in (1, 2, 3)]
    results = []
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        results.append(merged(tmp_path / str(n), *inputs)[1])
    assert results[0] == results[1]


@pytest.mark.parametrize("header", ["", "summary: 9223372036854775807"])
def test_a_sum_beyond_64_bits_is_an_error(header: str, tmp_path: Path) -> None:
    """A sum of costs, or of summaries; no output is left."""
    n = 1 if header else (1 << 62)
    data = dump(1, *[header] * bool(header)).replace(b"\n1 1\n", b"\n1 %d\n" % n)
    with pytest.raises(FastprofError, match=r"2\^63"):
        merged(tmp_path, data, data)
    assert not (tmp_path / "out.callgrind").exists()


@pytest.mark.parametrize("line", ["calls=18446744073709551615 5\n2 1", "jump=18446744073709551615 5\n2"])
def test_a_count_beyond_64_bits_is_an_error(line: str, tmp_path: Path) -> None:
    data = f"events: Ir\nfl=a\nfn=f\ncfn=g\n{line}\n".encode()
    merged(tmp_path, data)
    with pytest.raises(FastprofError, match=r"2\^6"):
        merged(tmp_path / "inputs", data, data)
    path = tmp_path / "twice"
    path.write_bytes(data + f"{line}\n".encode())
    with pytest.raises(FastprofError, match=r"2\^6"):
        convert([str(path)], str(tmp_path / "sum.callgrind"), aggregate=True)


@pytest.mark.parametrize("empty", ["out", "callgrind.out.4711"])
@pytest.mark.parametrize("part", ["", ".3"])
def test_an_empty_input_is_refused_but_for_the_one_that_callgrind_leaves(empty: str, part: str, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    inputs = [tmp_path / "runs" / empty, tmp_path / "runs" / f"{empty}{part}-01"]
    inputs[0].write_bytes(b"")
    inputs[1].write_bytes(dump(1, "thread: 1"))
    out = tmp_path / "sum.callgrind"
    for given in ([str(path) for path in inputs], [str(tmp_path / "runs")]):
        convert(given, str(out))
        assert len(parse(out.read_bytes())) == 1
    (tmp_path / "other").write_bytes(b"")
    with pytest.raises(UnrecognizedError, match="other: the file is empty"):
        convert([str(tmp_path / "other"), str(inputs[1])], str(out))


PACKERS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_files_and_pipes(kind: str, tmp_path: Path) -> None:
    """Input: a file without a telling suffix, and a pipe.  Output: by the name, and a pipe."""
    data = (REPO / "tests/corpus/callgrind/good/xdebug.callgrind").read_bytes()
    plain, packed, again = (
        tmp_path / "plain.callgrind",
        tmp_path / "cachegrind.out",
        tmp_path / f"again.callgrind.{kind}",
    )
    convert([str(REPO / "tests/corpus/callgrind/good/xdebug.callgrind")], str(plain))
    packed.write_bytes(PACKERS[kind](data))
    convert([str(packed)], str(again))
    command = [sys.executable, "-m", "fastprof", "convert", "-q", "-", "--to", "callgrind"]
    for path in (packed, again):
        done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=True, cwd=REPO)
        assert done.stdout == plain.read_bytes()
    assert again.read_bytes()[:2] == PACKERS[kind](b"")[:2]
