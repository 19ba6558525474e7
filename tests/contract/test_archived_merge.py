"""Merging into an archive gives the same result as merging into any other format."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from tests.contract.dump import CORPUS, files
from tests.support import stackdump

# at least two files of every format, two of each view that the format holds, and one without rows
FILES = (
    "archive/good/graph.fpa",
    "archive/good/stacks.fpa",
    "archive/good/timeline.fpa",
    "cachegrind/good/head.cachegrind",
    "cachegrind/good/newer.cachegrind",
    "callgrind/good/contexts.callgrind",
    "callgrind/good/xdebug.callgrind",
    "cpuprofile/good/no_samples.cpuprofile",
    "cpuprofile/good/node20.cpuprofile",
    "dhat/good/heap.dhat.json",
    "firefox/good/version-70.json",
    "firefox/good/weights-ms.json",
    "folded/good/plain.folded",
    "folded/good/two_values.folded",
    "gmon/good/cycle.gmon",
    "gprof/good/lines.gprof.txt",
    "gperftools/good/norecords.prof",
    "gperftools/good/plain.prof",
    "heap/good/tcmalloc-v2.heap",
    "heapprofile/good/node20.heapprofile",
    "heaptrack/good/small.heaptrack",
    "jfr/good/made-two-jvms.jfr",
    "ghc-prof/good/labels.ghc.prof",
    "ghc-json/good/lab.ghc.json",
    "instruments/good/time.instruments.txt",
    "bolt/good/branches.fdata",
    "llvm-profile/good/flat.llvmprof",
    "luajit/good/sr.luajit",
    "massif/good/depth3.massif",
    "memray/good/version11.memray",
    "mojo/good/full.mojo",
    "oprofile/good/jit.tar",
    "oprofile/good/oparchive.tar",
    "otlp/good/v1.9-both.otlp",
    "perf/good/made-read-group.data",
    "perf/good/real-cxx.data",
    "perf-script/good/made-names.perf",
    "perf-script/good/real-default-dwarf.perf",
    "perfetto/good/basic.pftrace",
    "pprof/good/go-heap.pb.gz",
    "pprof/good/go-block.pb.gz",
    "pprof-raw/good/go-block.pprof.txt",
    "pstats/good/py3.13.pstats",
    "rprof/good/plain.Rprof",
    "pyinstrument/good/async.pyisession",
    "safari/good/fib-recording.json",
    "simpleperf/good/app.simpleperf.trace",
    "stackprof/good/wall.stackprof",
    "tachyon/good/plain.tachyon",
    "uftrace/good/calls.tar",
    "scalene/good/memory.scalene.json",
    "speedscope/good/01_evented.json",
    "speedscope/good/02_sampled.json",
    "tracer-stacks/good/offcputime.bcc",
    "trace-event/good/arguments.json",
    "trace-event/good/mixed.json",
    "gpu-sqlite/good/nsys.sqlite",
    "xplane/good/device.xplane.pb",
    "xray/good/fdr-empty.xray",
    "xray/good/fdr5-busy.xray",
    "xray/good/profile-bare.xray",
)
BY_FORMAT = [[*group] for _, group in groupby(FILES, lambda file: file.split("/")[0])]
OF_A_VIEW = {"callgrind", "pprof", "xray"}
# each format with itself and, with files in turn, with one of each view; test_merge_order.py swaps them
PAIRS = [
    pytest.param(ones[j % len(ones)], others[i % len(others)], marks=[pytest.mark.exhaustive] * (i < j))
    for i, ones in enumerate(BY_FORMAT)
    for j, others in enumerate(BY_FORMAT)
    if i == j or (i < j and (i + j) % 2 and OF_A_VIEW & {ones[0].split("/")[0], others[0].split("/")[0]})
]
# targets that hold a view unchanged, and what a timeline becomes
TARGETS = {
    "graph": ("callgrind", "cachegrind"),
    "stacks": ("pprof", "gperftools", "folded"),
    "timeline": ("xray", "callgrind", "pprof", "folded"),
}


def converted(paths: list[Path], to: str, output: Path, **options: bool) -> bytes | str:
    """All of different value types are kept."""
    try:
        fastprof.convert(paths, output, to=to, **options)
    except FastprofError as error:  # the target cannot hold the input
        if "union=True" in str(error):
            return converted(paths, to, output, union=True)
        # losses of the merge are not repeated when its archive is converted
        return "nothing" if "no row can be written" in str(error) else str(error).partition(": ")[2]
    return output.read_bytes()


def by_name(data: bytes, format_: str) -> object:
    """The rows without their order, and the fields of the parts."""
    from tests.support.graphs import rows_of

    if format_ not in TARGETS["graph"]:
        stacks = stackdump.dump(data, format_)
        return stacks.summed(), repr(stacks.part)

    with fastprof.open(data, from_=format_) as profile:
        rows = sorted(f"{batch.part} {row}" for batch in profile for row in rows_of(batch, profile._model))
        return rows, [repr(part) for part in profile._model.parts]


def test_every_format_is_there() -> None:
    assert {file.split("/")[0] for file in FILES} == {file.split("/")[0] for file in files("good")}


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_merged_into_an_archive(one: str, other: str, tmp_path: Path) -> None:
    sources, archive = [CORPUS / one, CORPUS / other], tmp_path / "merged.fpa"
    converted(sources, "archive", archive)
    with fastprof.open(archive) as profile:
        view = profile.view
    for to in TARGETS[view]:
        via, direct = converted([archive], to, tmp_path / "via"), converted(sources, to, tmp_path / "direct")
        if to != "xray" and isinstance(via, bytes) and isinstance(direct, bytes):
            # several inputs are ordered by name, one as its functions first occur
            assert by_name(via, to) == by_name(direct, to)
        else:
            assert via == direct, to
    again = converted([archive], "archive", tmp_path / "again.fpa")
    assert converted([tmp_path / "again.fpa"], "archive", tmp_path / "third.fpa") == again


@pytest.mark.parametrize("part", [1, 2, 3])
def test_one_part_of_several(part: int, tmp_path: Path) -> None:
    """Parts are renumbered: the archive of a single part has exactly that part."""
    source = tmp_path / "parts.callgrind"
    parts = [f"part: {n}\nevents: Ir\nfn=f\n1 {n}0\n" for n in (1, 2, 3)]
    source.write_text("version: 1\ncreator: callgrind-3.19.0\npid: 5\ncmd: p\n" + "\n".join(parts))
    fastprof.convert(source, tmp_path / "all.fpa")
    fastprof.convert(tmp_path / "all.fpa", tmp_path / "one.fpa", part=part)
    fastprof.convert(tmp_path / "one.fpa", tmp_path / "one.callgrind")
    text = (tmp_path / "one.callgrind").read_text()
    assert f"part: {part}\n" in text and f"1 {part}0\n" in text and text.count("events:") == 1
    facts = fastprof.info(tmp_path / "one.fpa").facts
    assert (facts["parts"], facts["totals"]) == (1, {"Ir": 10 * part})


def test_no_rows_at_all(tmp_path: Path) -> None:
    """The headers of a profile without rows and of several logs without records are kept."""
    empty = CORPUS / "xray/good/fdr-empty.xray"
    fastprof.convert([empty, empty], tmp_path / "empty.fpa")
    with fastprof.open(tmp_path / "empty.fpa") as profile:
        assert sum(len(batch) for batch in profile) == 0
        assert [part.extra["ticks_per_second"] > 0 for part in profile._model.parts] == [True, True]


def test_repairs_of_all_sources(tmp_path: Path) -> None:
    """The merged archive records the repairs of a log and those recorded in two archives."""
    log = CORPUS / "xray/good/fdr5-busy.xray"
    expected = fastprof.convert([log], tmp_path / "one.fpa").repairs
    assert expected
    for sources in ([tmp_path / "one.fpa", log], [tmp_path / "one.fpa", tmp_path / "one.fpa"]):
        fastprof.convert(sources, tmp_path / "two.fpa")
        recorded = fastprof.info(tmp_path / "two.fpa").facts["recorded_repairs"]
        assert recorded == {name: 2 * n for name, n in expected.items()}


@pytest.mark.parametrize("last", ["fdr5-busy", "fdr1-busy"])
def test_threads_of_merged_archives_are_told_apart(last: str, tmp_path: Path) -> None:
    """Equal thread ids of different inputs are different threads, in any order of merging."""
    good = CORPUS / "xray/good"
    logs = [good / "fdr-empty.xray", good / "fdr5-busy.xray", good / "fdr5-busy.xray"]
    fastprof.convert(logs, tmp_path / "merged.fpa")
    for rest in ([good / f"{last}.xray"], [tmp_path / "merged.fpa", good / f"{last}.xray"]):
        whole = [log for path in rest for log in (logs if path.suffix == ".fpa" else [path])]
        via = converted([tmp_path / "merged.fpa", *rest], "callgrind", tmp_path / "via")
        assert via == converted([*logs, *whole], "callgrind", tmp_path / "direct")
