"""SymCaches on disk: the same answers, whoever else writes there and whatever is in the directory."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from fastprof.symbols import symcaches
from fastprof.symbols.objects import ElfObject, Symbol
from tests.differential.peers import need

SOURCE = """
static inline int mix(int x) { int s = 1; while (x-- > 0) s ^= s * x; return s; }
int main(int c, char **v) { return mix(c) * c; }
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(symcaches, "LEAST", 1)
    return build(tmp_path, "x", SOURCE)


def build(folder: Path, name: str, source: str) -> Path:
    (folder / "x.c").write_text(source)
    command = [need("gcc"), "-O2", "-g", "-Wl,--build-id=sha1", "x.c", "-o", name]
    subprocess.run(command, cwd=folder, check=True)
    return folder / name


def answers(path: Path) -> list[tuple[Symbol, ...]]:
    elf = ElfObject(path)
    text = elf.section(".text")
    assert text is not None
    found = elf.lookup_many(range(text.address, text.address + text.size))
    assert max(map(len, found)) == 2  # mix, inlined into main
    return found


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache/fastprof/symcaches").glob("*"))


def test_the_second_time_debug_information_is_not_read(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = answers(program)
    (place,) = kept(tmp_path)
    assert place.name.startswith(f"{ElfObject(program).build_id}-{program.stat().st_size}-")
    assert place.parent.stat().st_mode & 0o777 == 0o700
    os.utime(place, (0, 0))
    monkeypatch.setattr("symbolic.debuginfo.Archive", None)
    assert answers(program) == first
    assert place.stat().st_mtime > 0


@pytest.mark.parametrize("damage", [b"", b"SYMC", bytes(1000)])
def test_what_is_damaged_is_made_again(program: Path, tmp_path: Path, damage: bytes) -> None:
    first = answers(program)
    (place,) = kept(tmp_path)
    whole = place.read_bytes()
    place.write_bytes(damage)
    assert answers(program) == first
    assert kept(tmp_path) == [place] and place.read_bytes() == whole


def test_a_directory_that_cannot_be_written(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(program)
    for elsewhere in ("/dev/null", str(program)):
        monkeypatch.setenv("XDG_CACHE_HOME", elsewhere)
        assert answers(program) == first
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert symcaches.directory() == str(tmp_path / "home/.cache/fastprof/symcaches")


def test_many_write_at_once(program: Path, tmp_path: Path) -> None:
    first, found = answers(program), []
    kept(tmp_path)[0].unlink()
    threads = [threading.Thread(target=lambda: found.append(answers(program))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [first] * 8
    assert len(kept(tmp_path)) == 1


def test_no_more_is_kept_than_the_limit(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(program)
    (first,) = kept(tmp_path)
    monkeypatch.setattr(symcaches, "MOST", first.stat().st_size * 5 // 2)
    for number in range(4):
        answers(build(tmp_path, "y", f"int k{number};\n{SOURCE}"))
        os.utime(max(kept(tmp_path), key=lambda path: path.stat().st_mtime_ns), (number + 1, number + 1))
        answers(program)  # which is used each time
    assert first in kept(tmp_path) and len(kept(tmp_path)) == 2
