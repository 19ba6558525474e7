"""What fastprof/formats/heads.py states of registrations agrees with the registrations."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path

import pytest

from fastprof.core.engine import NO, Format
from fastprof.core.source import Source
from fastprof.formats.heads import CLAIMING, HEADS
from tests.support.paths import CORPUS

ROUNDS = 8  # changed beginnings of each file


def registrations() -> dict[str, tuple[Format, ...]]:
    return {folder: import_module(f"fastprof.formats.{folder}").FORMATS for folder in HEADS}


def test_names_are_those_of_the_registrations() -> None:
    assert {folder: names for folder, (names, _) in HEADS.items()} == {
        folder: tuple(one.name for one in found) for folder, found in registrations().items()
    }


def test_folders_that_claim_directories() -> None:
    assert {*CLAIMING} == {folder for folder, found in registrations().items() if any(one.claims for one in found)}


def beginnings(path: Path) -> list[bytes]:
    """The first bytes of a file, decompressed, and changed ones: cut, with bytes replaced, moved, without some."""
    try:
        with Source(str(path)) as source:
            head = source.head
    except Exception:
        head = path.read_bytes()[:4096]
    chance, found = random.Random(path.name), [head, b"\xef\xbb\xbf" + head, b" \n" + head]
    for _ in range(ROUNDS):
        data = bytearray(head[: chance.choice((len(head), chance.randrange(64), chance.randrange(4096)))])
        for _ in range(chance.randrange(4)):
            if data:
                at = chance.randrange(min(len(data), chance.choice((8, 64, 4096))))
                data[at : at + chance.randrange(3)] = chance.choice((b"\0", b"\n", b" ", b"{", b"5", bytes(4), b"\xff"))
        found.append(bytes(data))
    return found


@pytest.mark.parametrize("folder", sorted(one.name for one in CORPUS.iterdir() if (one / "good").is_dir()))
def test_what_a_registration_claims_fits_its_head(folder: str) -> None:
    claimed = 0
    for path in sorted((CORPUS / folder).glob("*/*")):
        for head in beginnings(path) if path.is_file() else ():
            for folder, found in registrations().items():
                sniffed = [one.name for one in found if one.sniff and one.sniff(head) != NO]
                claimed += len(sniffed)
                assert not sniffed or any(one.fits(head) for one in HEADS[folder][1]), (path, sniffed, head)
    assert claimed
