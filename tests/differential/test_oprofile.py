"""OProfile sessions: figures equal the recorded output of the real opreport."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from tests.differential.opreport import (
    Figures,
    as_arcs,
    as_details,
    as_summary,
    as_symbols,
    base,
    counts,
    product,
    read_arcs,
    read_details,
    read_summary,
    read_symbols,
    read_xml,
    spelled,
    with_symbols,
)
from tests.differential.peers import need
from tests.support.paths import needs_shared, shared_data

pytestmark = needs_shared

SESSIONS = ("flat", "deps", "threads", "callgraph", "callgraph-cross", "jit", "abi-x86_64", "abi-i386-imported")


def session(name: str, **options: Any) -> Figures:
    data = shared_data("oprofile")
    options = {"debug_dirs": ()} | options  # this machine may have those of the sampled libraries
    if name == "jit":
        return product(data / "sessions" / name, **options)
    root = data / "root"
    modules = (str(root / "opt/demo/lib/modules"),)
    return product(data / "sessions" / name, sysroot=str(root), symbols=modules, **options)


def expected(name: str, file: str) -> Path:
    return shared_data("oprofile", "expected", name, file)


def columns(figures: Figures) -> int:
    return 1 + max(k for sums in figures.symbols.values() for k in sums)


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "abi-i386-imported"])
def test_symbols(name: str) -> None:
    """-X: by program, image, symbol and thread.  opreport leaves out code outside of symbols."""
    mine, theirs = session(name), read_xml(expected(name, "X.xml"))
    known = with_symbols(mine)
    outside = {key for key in mine.symbols if spelled(key[1]) == key[2] and key[:2] in known}
    got = {key: counts(sums) for key, sums in mine.symbols.items() if key not in outside}
    assert got == {key: counts(sums) for key, sums in theirs.symbols.items()}
    assert bool(outside) == (name == "flat")  # .plt


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "threads"])
@pytest.mark.parametrize("file", ["l.txt", "l-merge-all.txt"])
def test_symbols_as_text(name: str, file: str) -> None:
    path = expected(name, file)
    if not path.exists():
        return
    mine = session(name, add_up=("all",) if "merge" in file else ())
    assert as_symbols(mine, path, columns(mine)) == read_symbols(path)


@pytest.mark.parametrize(
    ("name", "file", "options"),
    [
        ("threads", "l-merge-all.txt", {"add_up": ("all",)}),
        ("threads", "l-merge-tgid.txt", {"add_up": ("tgid",)}),
        ("threads", "l-merge-tid.txt", {"add_up": ("tid", "cpu")}),
        ("deps", "l-event-clk.txt", {"spec": ("event:CPU_CLK_UNHALTED",)}),
        ("deps", "l-image-matmul.txt", {"spec": ("image:/opt/demo/bin/matmul",)}),
        ("deps", "l-lib.txt", {"spec": ("lib-image:/opt/demo/lib/libdemo.so.1",)}),
        ("deps", "l-bare-lib.txt", {"spec": ("/opt/demo/lib/libdemo.so.1",)}),
        ("deps", "l-exclude.txt", {"spec": ("image-exclude:/opt/demo/bin/wordstat",)}),
        ("deps", "l-none.txt", {"demangle": "none"}),
    ],
)
def test_specifications_and_merging(name: str, file: str, options: dict[str, Any]) -> None:
    path = expected(name, file)
    mine = session(name, **options)
    assert as_symbols(mine, path, columns(mine)) == read_symbols(path)


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "threads"])
def test_summary(name: str) -> None:
    """The summary counts all samples, including those outside of symbols."""
    mine = session(name)
    assert as_summary(mine, columns(mine)) == read_summary(expected(name, "summary.txt"))


@pytest.mark.parametrize("name", SESSIONS)
def test_info(name: str) -> None:
    """Samples by event and image, from `info`, which reads no images."""
    mine = session(name, symbolize=False)
    log = fastprof.info(shared_data("oprofile", "sessions", name), symbolize=False)
    images: dict[str, Counter[int]] = {}
    n = len(log.facts["events"])
    for (_, image, _, _), sums in mine.symbols.items():
        for k, samples in sums.items():
            images.setdefault(image, Counter())[k % n] += samples  # one column per CPU
    for k, event in enumerate(log.facts["events"]):
        by_image = log.facts["samples_by_image"]
        told = by_image if n == 1 else by_image[event]
        if name == "jit":  # the image of code made at run time is the one that made it
            assert [*told.values()] == [sums[k] for sums in images.values()]
        else:
            assert told == {image: sums[k] for image, sums in images.items() if sums[k]}


def test_threads_and_cpus_apart() -> None:
    path = expected("threads", "summary-merge-tid.txt")
    mine = session("threads", add_up=("tid",))
    assert as_summary(mine, 2) == read_summary(path)
    assert fastprof.info(shared_data("oprofile", "sessions", "threads")).facts["cpus_distinct"] == "0, 1"
    mine, path = session("threads", add_up=("cpu",)), expected("threads", "l-merge-cpu.txt")
    threads = sorted({thread for *_, thread in mine.symbols})
    columns: dict[tuple[str, ...], Counter[int]] = {}
    for (*key, thread), sums in mine.symbols.items():
        columns.setdefault((*key, ""), Counter())[threads.index(thread)] += sums[0]
    assert as_symbols(mine._replace(symbols=columns), path, 3) == read_symbols(path)


def test_summary_of_a_part() -> None:
    mine = session("threads", spec=("cpu:0",), add_up=("cpu", "tid"))
    theirs = read_summary(expected("threads", "summary-cpu0.txt"))
    sums = {name: sum(values) for values, name in theirs if not name.startswith("\t")}
    assert sums == {"wordstat": sum(sum(s.values()) for s in mine.symbols.values())}


def test_libraries_as_programs() -> None:
    """-O add_up=lib: opreport's list of images is ours, for any program."""
    mine = session("deps", add_up=("lib",))
    images: dict[str, Counter[int]] = {}
    for (_, image, _, _), sums in mine.symbols.items():
        images.setdefault(base(image), Counter()).update(sums)
    theirs = read_summary(expected("deps", "summary-merge-lib.txt"))
    assert {(tuple(sums[k] for k in range(2)), name) for name, sums in images.items()} == set(theirs)


@pytest.mark.parametrize("name", SESSIONS)
def test_details(name: str) -> None:
    """-d: by address within a symbol."""
    path = expected(name, "Xdg.xml")
    if not path.exists():
        return
    mine, theirs = session(name), read_xml(path)
    places: dict[tuple[str, int], Counter[int]] = {}
    for (_, _, symbol, address), sums in mine.places.items():
        places.setdefault((symbol, address), Counter()).update(sums)
    wanted = {(symbol, address): counts(sums) for (_, _, symbol, address), sums in theirs.places.items()}
    assert {place: counts(places.get(place, Counter())) for place in wanted} == wanted
    assert {place: mine.lines[place] for place in wanted} == theirs.lines


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "threads"])
def test_details_as_text(name: str) -> None:
    mine, path = session(name), expected(name, "d.txt")
    assert as_details(mine, path, columns(mine)) == read_details(path)


@pytest.mark.parametrize("name", ["callgraph", "callgraph-cross", "abi-x86_64"])
def test_arcs(name: str) -> None:
    """-c: the arcs from each symbol.  opreport drops those from images without symbols and from memory."""
    mine, theirs = session(name), read_xml(expected(name, "Xc.xml"))
    without = {symbol for _, image, symbol, _ in mine.symbols if symbol == spelled(image)}
    got: dict[tuple[str, ...], Counter[int]] = {}
    for (program, _, caller, _, callee), sums in mine.arcs.items():
        if caller not in without:
            got.setdefault((program, "", caller, "", callee), Counter()).update(sums)
    assert got == theirs.arcs
    assert any(caller in without for _, _, caller, _, _ in mine.arcs) == (name == "callgraph")


@pytest.mark.parametrize("name", ["callgraph", "callgraph-cross", "abi-x86_64"])
@pytest.mark.parametrize("file", ["c.txt", "c-merge-lib.txt"])
def test_arcs_as_text(name: str, file: str) -> None:
    """Without programs, opreport shows calls into other images at the caller only."""
    path, merge = expected(name, file), ("lib",) if "merge" in file else ()
    mine = session(name, add_up=merge)
    at_callers, at_callees, own = read_arcs(path)
    arcs = as_arcs(mine, path, 1)
    assert arcs == at_callers
    assert at_callees <= arcs if merge else at_callees == arcs
    assert as_symbols(mine, path, 1) == Counter({key: n for key, n in own.items() if any(key[0])})


@pytest.mark.parametrize("name", SESSIONS)
def test_a_tar_is_as_its_directory(name: str) -> None:
    data = shared_data("oprofile")
    assert product(data / "tar" / f"{name}.tar.zst") == product(data / "sessions" / name)


def test_an_archive_brings_its_images() -> None:
    path = expected(".", "archive-l.txt")
    mine = product(shared_data("oprofile", "archive"))
    assert as_symbols(mine, path, 1) == read_symbols(path)


def test_any_layout() -> None:
    """opreport reads another machine's session only after opimport, which truncates the start of memory regions."""
    data = shared_data("oprofile", "sessions")
    assert product(data / "abi-i386").symbols == product(data / "abi-x86_64").symbols


@pytest.mark.parametrize("name", ["bad-magic", "current-size-over", "name-5-fields", "short-header", "truncated-nodes"])
def test_what_opreport_refuses_or_dies_of(name: str, tmp_path: Path) -> None:
    """Its exit codes are in expected/damaged: 1, or a bus error."""
    with pytest.raises(FastprofError, match="CPU_CLK_UNHALTED"):
        fastprof.convert(shared_data("oprofile", "damaged", name), tmp_path / "x.callgrind")
    log = fastprof.convert(shared_data("oprofile", "damaged", name), tmp_path / "x.callgrind", lenient=True)
    assert log.losses


def test_a_damaged_hash_table_does_no_harm() -> None:
    data = shared_data("oprofile")
    assert product(data / "damaged" / "hash-garbage") == product(data / "sessions" / "flat")


@pytest.mark.parametrize("name", ["deps", "callgraph-cross", "threads"])
def test_callgrind_annotate_and_pprof_read_what_is_written(name: str, tmp_path: Path) -> None:
    data = shared_data("oprofile")
    total = sum(sum(sums.values()) for sums in session(name, spec=("event:CPU_CLK_UNHALTED",)).symbols.values())
    for file, command in (
        ("x.callgrind", [need("callgrind_annotate"), "--show=CPU_CLK_UNHALTED"]),
        ("x.pb.gz", [need("go"), "tool", "pprof", "-top", "-sample_index=CPU_CLK_UNHALTED"]),
    ):
        # one part: callgrind_annotate uses the total of the last one as that of the program
        fastprof.convert(data / "sessions" / name, tmp_path / file, sysroot=str(data / "root"), add_up=("all",))
        done = subprocess.run([*command, str(tmp_path / file)], capture_output=True, text=True, check=True)
        numbers = done.stdout.replace(",", "")
        assert f"{total} (100.0%)  PROGRAM TOTALS" in numbers or f" of {total} total" in numbers, done.stdout[:2000]


def test_lost_samples_are_warned_of() -> None:
    log = fastprof.info(shared_data("oprofile", "sessions", "callgraph"))
    assert any("2 samples were lost" in warning for warning in log.warnings)
    assert "Lost samples detected" in expected("callgraph", "l.err").read_text()
