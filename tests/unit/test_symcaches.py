"""SymCaches on disk: the same answers, whoever else writes there and whatever is in the directory."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from fastprof.symbols import symcaches
from fastprof.symbols.names import Symbol
from fastprof.symbols.objects import ElfObject
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
    assert place.name.startswith(f"{ElfObject(program).digest()}-")
    assert place.parent.stat().st_mode & 0o777 == 0o700
    os.utime(place, (0, 0))
    monkeypatch.setattr("symbolic.debuginfo.Archive", None)
    assert answers(program) == first
    assert place.stat().st_mtime > 0


def forged(program: Path, old: bytes, new: bytes) -> Path:
    """Another program with the same build id and size, and the time of change that its files say."""
    data = program.read_bytes()
    assert data.count(old) and len(old) == len(new)
    found = program.with_name("forged")
    found.write_bytes(data.replace(old, new))
    found.chmod(0o755)
    os.utime(found, ns=(program.stat().st_atime_ns, program.stat().st_mtime_ns))
    return found


@pytest.mark.parametrize("forged_first", [True, False])
def test_a_forged_build_id_is_not_believed(program: Path, tmp_path: Path, forged_first: bool) -> None:
    """A file that has the build id and the size of another one took over its names."""
    other = forged(program, b"mix\0", b"own\0")
    assert ElfObject(program).build_id == ElfObject(other).build_id
    for path in (other, program) if forged_first else (program, other):
        inlined = {chain[0].name for chain in answers(path) if len(chain) > 1}
        assert inlined == ({"mix"} if path == program else {"own"})
    assert len(kept(tmp_path)) == 2
    assert [*map(answers, (program, other))] == [*map(answers, (program, other))] and len(kept(tmp_path)) == 2


def test_a_digest_is_of_what_symbols_come_from(program: Path) -> None:
    """Code is left out, because there is much of it; headers, names and debug information are not."""
    elf, data = ElfObject(program), program.read_bytes()
    text, info, names = map(elf.section, (".text", ".debug_info", ".strtab"))
    assert text and info and names
    same = {text.offset, text.offset + text.size - 1}
    others = [0x18, 0x28, 0x3E, 64, info.offset, info.offset + info.size - 1, names.offset + 1, len(data) - 1]
    for at in (*same, *others):
        changed = bytearray(data)
        changed[at] ^= 1
        found = ElfObject("changed", content=bytes(changed))
        assert (found.digest() == elf.digest()) == (at in same), at


def test_a_file_that_is_replaced_while_it_is_read_is_not_kept(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the names of one would be kept under the digest of the other."""
    first, other = answers(program), forged(program, b"mix\0", b"own\0")
    kept(tmp_path)[0].unlink()
    monkeypatch.setattr(ElfObject, "digest", lambda self: (other.replace(program), "0")[1] if other.exists() else "1")
    assert answers(program) == first and kept(tmp_path) == []


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
