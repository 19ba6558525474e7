"""Answers about programs on disk: they never change an answer, and nobody else can put one there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fastprof.symbols import chains, kept
from fastprof.symbols.chains import chains_of
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.symbol import Chains, Symbol

SOURCE = "int twice(int n) {\n  return 2 * n;\n}\nint main(int n, char **v) {\n  return twice(n);\n}\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FASTPROF_SYMBOL_CACHE", raising=False)
    monkeypatch.setattr(kept, "LEAST", 0)
    monkeypatch.setattr(chains, "_holders", type(chains._holders)())  # without programs of other tests
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["cc", "-g", "-O0", "-Wl,--build-id", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    return tmp_path / "a"


def folder(program: Path) -> Path:
    return program.parent / "cache" / "fastprof" / "symbols"


def file_of(program: Path) -> Path:
    (file,) = folder(program).iterdir()
    return file


def answers(program: Path, *, save: bool = True) -> tuple[list[tuple[Symbol, ...]], bool]:
    """Of `twice` and `main`, as a new process has them, and whether they came from the disk."""
    elf = ElfObject(program)
    start = ElfObject(program).address_of("twice") or 0
    addresses = [start, start + 4, (ElfObject(program).address_of("main") or 0) + 8, 3]
    found, packed = chains_of(elf, addresses)
    if save:
        chains.save_new()
    return [found.symbols(one) for one in packed], not elf._loaded


def test_the_next_run_reads_no_debug_information(program: Path) -> None:
    first, second = answers(program), answers(program)
    assert (first[1], second[1]) == (False, True)
    assert first[0] == second[0]
    assert [[(one.name, one.line) for one in chain] for chain in first[0][:2]] == [[("twice", 1)], [("twice", 1)]]
    assert file_of(program).stat().st_mode & 0o777 == 0o600
    assert folder(program).stat().st_mode & 0o777 == folder(program).parent.stat().st_mode & 0o777 == 0o700


def test_new_addresses_are_added(program: Path) -> None:
    answers(program)
    elf = ElfObject(program)
    main = ElfObject(program).address_of("main") or 0
    chains_of(elf, [main])
    before = file_of(program).stat().st_size
    chains.save_new()
    assert file_of(program).stat().st_size > before
    again = ElfObject(program)
    found, (packed,) = chains_of(again, [main])
    assert not again._loaded
    assert found.symbols(packed)[0].name == "main"


def test_another_program_is_looked_up_anew(program: Path) -> None:
    """Also one with the same build id."""
    answers(program)
    data = program.read_bytes()
    program.write_bytes(data.replace(b"twice\0", b"trice\0"))
    elf = ElfObject(program)
    start = elf.address_of("trice") or 0
    fresh = ElfObject(program)
    found, (packed,) = chains_of(fresh, [start])
    assert (found.symbols(packed)[0].name, fresh._loaded) == ("trice", True)


@pytest.mark.parametrize("off", ["variable", "small", "style"])
def test_what_is_not_used(program: Path, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    if off == "variable":
        monkeypatch.setenv("FASTPROF_SYMBOL_CACHE", "0")
    if off == "small":
        monkeypatch.setattr(kept, "LEAST", 1 << 30)
    if off == "style":
        answers(program)
        elf = ElfObject(program, demangle="none")
        chains_of(elf, [elf.address_of("twice") or 0])
        assert elf._loaded
        return
    assert not answers(program)[1]
    assert not answers(program)[1]
    assert not folder(program).exists()


def test_damage_is_ignored_and_replaced(program: Path) -> None:
    right, _ = answers(program)
    whole = file_of(program).read_bytes()
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        file_of(program).write_bytes(damaged)
        assert answers(program, save=False) == (right, False), at
    for n in range(0, len(whole), 11):
        file_of(program).write_bytes(whole[:n])
        assert answers(program, save=False) == (right, False), n
    assert answers(program) == (right, False)
    assert answers(program) == (right, True)


def test_a_right_checksum_of_wrong_content(program: Path) -> None:
    """Of content that is damaged but has a digest: no index leads outside."""
    answers(program)
    file, head = file_of(program), ElfObject(program).place_on_disk()
    assert head is not None
    whole = file.read_bytes()[kept._DIGEST :]
    for at in range(len(head[1]), len(whole)):
        body = whole[:at] + bytes([255 - whole[at]]) + whole[at + 1 :]
        file.write_bytes(kept.blake2b(body, digest_size=kept._DIGEST).digest() + body)
        loaded = Chains()
        kept.load(*head, loaded)
        for chain in loaded.at.values():
            try:
                loaded.symbols(chain)
            except UnicodeDecodeError:
                raise AssertionError(at) from None
        file.write_bytes(kept.blake2b(whole[:at], digest_size=kept._DIGEST).digest() + whole[:at])
        loaded = Chains()
        kept.load(*head, loaded)
        assert not loaded.at, at


@pytest.mark.parametrize("wrong", ["rights", "link", "hard link", "folder's rights", "linked folder", "pipe"])
def test_what_others_may_have_made(program: Path, wrong: str) -> None:
    right, _ = answers(program)
    file, aside = file_of(program), program.parent / "aside"
    if wrong == "rights":
        file.chmod(0o644)
    elif wrong == "link":
        file.rename(aside)
        file.symlink_to(aside)
    elif wrong == "hard link":
        os.link(file, aside)
    elif wrong == "folder's rights":
        folder(program).chmod(0o755)
    elif wrong == "linked folder":
        folder(program).rename(aside)
        folder(program).symlink_to(aside)
    else:
        file.unlink()
        os.mkfifo(file, 0o600)
    kept_aside = aside.read_bytes() if aside.is_file() else b""
    assert answers(program) == (right, False)
    assert not aside.is_file() or aside.read_bytes() == kept_aside
    is_replaced = wrong in ("rights", "link", "hard link", "pipe")
    assert answers(program) == (right, is_replaced)


def test_files_of_others(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, _ = answers(program)
    monkeypatch.setattr(kept.os, "geteuid", lambda: os.getuid() + 1)
    assert answers(program) == (right, False)
    assert answers(program) == (right, False)


def test_the_oldest_files_make_room(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(program)
    size = file_of(program).stat().st_size
    monkeypatch.setattr(kept, "MOST", 3 * size)
    for number in range(5):
        old = folder(program) / f"old{number}"
        old.write_bytes(bytes(size))
        os.utime(old, (number, number))
    file_of_program = next(one for one in folder(program).iterdir() if not one.name.startswith("old"))
    file_of_program.unlink()
    answers(program)
    assert {one.name for one in folder(program).iterdir()} == {file_of_program.name, "old3", "old4"}


def test_a_folder_that_cannot_be_written(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(program))  # a file
    assert not answers(program)[1]
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(program.parent / "home"))
    assert not answers(program)[1]
    assert answers(program)[1]
    assert (program.parent / "home" / ".cache" / "fastprof" / "symbols").is_dir()
