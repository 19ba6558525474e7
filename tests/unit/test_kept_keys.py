"""Stacks that readers keep until names come, in a temporary file: the same output, and little memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from fastprof.core.spill import KeptKeys
from tests.support.peak import peak
from tests.support.stack_files import WRITE, stacks

FORMATS = ("gperftools", "dhat", "heap", "perfetto")
MIB = 1 << 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stacks")
    for format_ in FORMATS:
        WRITE[format_](folder / format_, [*stacks(12_000), *stacks(3_000)])
    return folder


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("to", ["folded", "callgrind"])
def test_the_same_output(format_: str, to: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, kept, moved = tmp_path / "whole", tmp_path / "kept", []
    to_file = KeptKeys.file
    monkeypatch.setattr(KeptKeys, "file", lambda self: moved.append(self) or to_file(self))
    for path, limit in ((whole, 256 * MIB), (kept, MIB)):
        assert moved == []
        fastprof.convert([str(made / format_)], str(path), to=to, max_memory=limit, symbolize=False)
    assert kept.read_bytes() == whole.read_bytes()
    assert moved


@pytest.mark.parametrize("format_", FORMATS)
def test_without_room_on_the_disk(format_: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot grow, here one that is only read: stacks stay in memory."""
    outputs = []
    with open(os.devnull, "rb") as unwritable:
        for name in ("whole", "kept"):
            to = str(tmp_path / name)
            fastprof.convert([str(made / format_)], to, to="folded", max_memory=MIB, symbolize=False)
            outputs.append(Path(to).read_bytes())
            monkeypatch.setattr(KeptKeys, "file", lambda _: unwritable)
    assert outputs[0] == outputs[1]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere stacks stay in memory")
@pytest.mark.parametrize("format_", FORMATS)
def test_a_disk_that_becomes_full(format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a file that was closed.  The error names its folder, not memory."""
    rest = KeptKeys.rest

    def rested(self: KeptKeys) -> None:
        is_first = self._file is None
        rest(self)
        if is_first and self._file is not None:
            with open(os.devnull, "rb") as unwritable:
                os.dup2(unwritable.fileno(), self._file.fileno())

    WRITE[format_](tmp_path / "input", stacks(12_000))
    monkeypatch.setattr(KeptKeys, "rest", rested)
    with pytest.raises(FastprofError, match=r"temporary file in .*: "):
        fastprof.convert([str(tmp_path / "input")], os.devnull, to="folded", max_memory=MIB, symbolize=False)


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere stacks stay in memory")
@pytest.mark.parametrize("format_", FORMATS)
def test_ten_times_the_stacks_take_little(format_: str, tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    WRITE[format_](few, stacks(10_000))
    WRITE[format_](many, stacks(100_000))
    args = ("-o", os.devnull, "-t", "folded", "-q", "--no-symbols", "--max-memory", "1M")
    assert peak("convert", str(many), *args) < peak("convert", str(few), *args) + 14 * MIB
