"""Programs read for names are closed without the cycle collector, which a service may have disabled."""

from __future__ import annotations

import gc
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import fastprof
from fastprof.core import _c
from fastprof.core.errors import FastprofError
from fastprof.symbols import objects

VERBS: dict[str, Callable[[Path, Path], object]] = {
    "convert": lambda profile, out: fastprof.convert(profile, out, to="callgrind"),
    "convert, symbols": lambda profile, out: fastprof.convert(
        profile, out, to="callgrind", symbols=[str(profile.with_suffix(".so"))], force_symbols=True
    ),
    "merge": lambda profile, out: fastprof.merge([profile, profile], out, to="pprof"),
    "diff": lambda profile, out: fastprof.diff(profile, profile),
    "info": lambda profile, out: fastprof.info(profile),
    "top": lambda profile, out: fastprof.top(profile),
    "annotate": lambda profile, out: fastprof.annotate(profile),
    "annotate, asm": lambda profile, out: fastprof.annotate(profile, asm=True),
    "report": lambda profile, out: fastprof.report(profile, out),
}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def profile_of(folder: Path, n: int) -> Path:
    """A gperftools profile with an address in a program that no other profile has."""
    program, path = folder / f"{n}.so", folder / f"{n}.prof"
    shutil.copy(_c.__file__, program)
    words = struct.pack("<11Q", 0, 3, 0, 10_000, 0, 1, 1, 0x400000 + 0x8000, 0, 1, 0)
    path.write_bytes(words + f"400000-{0x400000 + (64 << 20):x} r-xp 0 08:01 1 {program}\n".encode())
    return path


def open_below(folder: Path) -> int:
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(folder))
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_programs_are_closed(verb: str, no_collector: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects._cache, "_most", 1)
    for n in range(4):
        with suppress(FastprofError):  # if objdump is missing
            VERBS[verb](profile_of(tmp_path, n), tmp_path / "out")
        assert open_below(tmp_path) <= 1, "no more than are kept for the next profile"
    if verb in ("convert", "top", "report"):
        assert open_below(tmp_path) == 1, "the program was opened at all"
