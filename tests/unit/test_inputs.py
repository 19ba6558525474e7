"""Several inputs: each is opened when it is read."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.source import Source
from tests.support.paths import CORPUS

GOOD = {
    "callgrind": CORPUS / "callgrind/good/cfi.callgrind",
    "cachegrind": CORPUS / "cachegrind/good/head.cachegrind",
    "folded": CORPUS / "folded/good/plain.folded",
    "gperftools": CORPUS / "gperftools/good/plain.prof",
    "pprof": CORPUS / "pprof/good/go-heap.pb.gz",
    "xray": CORPUS / "xray/good/fdr5-busy.xray",
    "archive": CORPUS / "archive/good/stacks.fpa",
}


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("format_", GOOD)
def test_one_file_is_open_at_a_time(format_: str, tmp_path: Path) -> None:
    seen: list[int] = []
    gc.collect()  # files left open by other tests
    before = open_files()
    fastprof.convert(
        [GOOD[format_]] * 20,
        tmp_path / "out.pb",
        progress=lambda source: seen.append(open_files()),
        **{"symbolize": False} if format_ in ("archive", "gperftools", "pprof") else {},
    )
    assert len(seen) == 20 and open_files() == before
    # the output, the input, and its decompressed copy
    assert max(seen) <= before + 3


def test_more_inputs_than_files_may_be_open(tmp_path: Path) -> None:
    """Their sum is that of two, times half their number."""
    (tmp_path / "in").mkdir()
    for n in range(150):
        (tmp_path / "in" / f"{n}.cachegrind").write_bytes(GOOD["cachegrind"].read_bytes())
    subprocess.run(
        [sys.executable, "-m", "fastprof", "convert", "in", "-o", "out.cachegrind"],
        cwd=tmp_path,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)),
    )
    fastprof.convert([GOOD["cachegrind"]] * 2, tmp_path / "two.cachegrind")
    many, two = (fastprof.info(tmp_path / name).facts["totals"] for name in ("out.cachegrind", "two.cachegrind"))
    assert many == {name: 75 * total for name, total in two.items()}


def test_pipes_among_files(tmp_path: Path) -> None:
    """They cannot be opened twice."""
    one, other, pipe = GOOD["callgrind"], CORPUS / "callgrind/good/tab.callgrind", tmp_path / "pipe"
    expected = tmp_path / "expected.callgrind"
    for from_, way in ((one, [pipe, other]), (other, [one, pipe])):
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(from_.read_bytes(),))
        writer.start()
        fastprof.convert(way, tmp_path / "out.callgrind")
        writer.join()
        pipe.unlink()
        fastprof.convert([one, other], expected)
        assert fastprof.info(tmp_path / "out.callgrind").facts["totals"] == fastprof.info(expected).facts["totals"]


def replaced(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.rename(path)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


@pytest.mark.parametrize("change", [replaced, appended, Path.unlink])
def test_a_file_that_changes_before_it_is_read_is_an_error(change: Callable[[Path], None], tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_bytes(GOOD["callgrind"].read_bytes())

    def at_the_first(source: Source) -> None:
        if source.name == str(paths[0]):
            change(paths[1])

    with pytest.raises(FastprofError, match=r"b: (changed while other inputs were read|No such file)"):
        fastprof.convert(paths, tmp_path / "out.callgrind", progress=at_the_first)
    assert not (tmp_path / "out.callgrind").exists()


def test_what_looking_finds_is_told_once(tmp_path: Path) -> None:
    """Warnings, repairs and losses of a head that is read twice are reported once."""
    path = tmp_path / "two.folded"
    path.write_bytes(b"a;b 1 2\na 3 4\n")
    log = fastprof.convert([path, path], tmp_path / "out.pb")
    assert len(log.warnings) == 1 and "end in two numbers" in log.warnings[0]
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes((CORPUS / "pprof/good/go-heap.pb.gz").read_bytes()[:-30])
    one = fastprof.convert(damaged, tmp_path / "out.pb", lenient=True)
    two = fastprof.convert([damaged] * 2, tmp_path / "out.pb", lenient=True)
    assert {name: 2 * n for name, n in one.losses.items()} == dict(two.losses)


@pytest.mark.parametrize("inputs", [[""], ["", GOOD["folded"]]])
def test_an_empty_name_is_shown(inputs: list[str | Path], tmp_path: Path) -> None:
    for call in (fastprof.top, fastprof.info, lambda paths: fastprof.merge(paths, tmp_path / "out.pb.gz")):
        with pytest.raises(UsageError, match="'' is not a path"):
            call(inputs[0] if call == fastprof.info else inputs)
