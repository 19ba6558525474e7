"""Maps of JIT-compiled code, /tmp/perf-PID.map: whose they are, and what their lines may be."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import pytest

from fastprof.symbols.finder import Finder
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.symbolizer import Symbolizer
from tests.support.elf import ElfSection, ElfSymbol, elf_file

AT = 0x400000
SOMEBODY = 12345
PROGRAM = elf_file([ElfSection(".text", AT, 64, 64)], [ElfSymbol("main", AT, 1)])
CONTENTS = {
    "map": b"400000 40 main\n",
    "elf": PROGRAM,
    "gzip": gzip.compress(PROGRAM),
    "kallsyms": b"0000000000400000 T main\n",
    "jitdump": struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0),
}


def resolved(path: Path, **options: object) -> tuple[str, list[str]]:
    """The name of an address, and the reasons for those without."""
    tool = Symbolizer([Mapping(AT, AT + 0x1000, AT, str(path))], Finder(**options))  # type: ignore[arg-type]
    (chain,) = tool.resolve([AT])
    return "".join(symbol.name for symbol in chain), [reason for _, reason, _ in tool.unresolved()]


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To somebody who is neither this user nor root."""
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    else:
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("force", [False, True])
def test_a_map_of_somebody_else_is_not_read(
    kind: str, force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in it: one that was an ELF file was used."""
    path = tmp_path / "perf-7.map"
    path.write_bytes(CONTENTS[kind])
    give_away(path, monkeypatch)
    assert resolved(path, force=force) == ("", ["not owned by this user or root"])


def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").write_bytes(CONTENTS["map"])
    path = tmp_path / "perf-7.map"
    path.symlink_to("own")
    assert resolved(path) == ("main", [])
    give_away(path, monkeypatch)
    assert resolved(path) == ("", ["not owned by this user or root"])


def test_a_map_of_somebody_else_is_used_where_the_user_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tmp/perf-7.map"
    path.parent.mkdir()
    path.write_bytes(CONTENTS["map"])
    below = tmp_path / "root" / str(path)[1:]
    below.parent.mkdir(parents=True)
    below.write_bytes(CONTENTS["map"])
    give_away(path, monkeypatch)
    assert resolved(path, symbols=[path]) == ("main", [])
    assert resolved(path, sysroot=str(tmp_path / "root")) == ("main", [])
    assert resolved(tmp_path / "perf-8.map") == ("", ["No such file or directory"])
