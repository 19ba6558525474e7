"""Whatever the input, into whatever format, damaged or not, lenient or not: a result, or an error that says why.

Anything but a FastprofError is an internal error to the user.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.sections import END, HEADER_NBYTES, NUMBERS, PARTS, ROWS, TABLES
from tests.contract.dump import files
from tests.support.conversions import WRITERS
from tests.support.paths import CORPUS

SECTIONS = {"parts": PARTS, "tables": TABLES, "rows": ROWS, "numbers": NUMBERS, "end": END}


def convert(source: Path, to: str, lenient: bool, out: Path) -> bool:
    """Is there a result?"""
    try:
        fastprof.convert(source, out, to=to, lenient=lenient)
    except FastprofError as error:
        assert str(error)
        return False
    return True


@pytest.mark.parametrize("kind", ["good", "bad"])
@pytest.mark.parametrize("to", WRITERS)
def test_every_file_into_every_format(kind: str, to: str, tmp_path: Path) -> None:
    inputs = [CORPUS / file for file in files(kind)]
    made = [convert(path, to, lenient, tmp_path / "out") for path in inputs for lenient in (False, True)]
    assert any(made)


def destroyed(data: bytes, kind: int) -> bytes:
    """The archive without one kind of its sections, in place of which there is damage."""
    found = archive_sections.scan(lambda at, n: data[at : at + n], archive_sections.FILE_HEADER_NBYTES, len(data))
    damaged = bytearray(data)
    for section in found:
        if isinstance(section, archive_sections.Section) and section.type == kind:
            damaged[section.offset + HEADER_NBYTES] ^= 0x55
            damaged[section.offset + section.nbytes - 1] ^= 0x55
    return bytes(damaged)


@pytest.mark.parametrize("what", SECTIONS)
@pytest.mark.parametrize(
    "file",
    [
        "callgrind/good/contexts.callgrind",
        "callgrind/good/quirks_inherit.callgrind",
        "callgrind/good/xtree.callgrind",
        "cachegrind/good/newer.cachegrind",
        "pprof/good/go-heap.pb.gz",
        "gperftools/good/plain.prof",
        "xray/good/fdr5-busy.xray",
    ],
)
def test_archives_that_have_lost_a_kind_of_sections(file: str, what: str, tmp_path: Path) -> None:
    """Without their parts, rows of six values had none to their name, and memory was read that is not there."""
    fastprof.convert(CORPUS / file, tmp_path / "good.fpa")
    data = (tmp_path / "good.fpa").read_bytes()
    damaged = tmp_path / "damaged.fpa"
    damaged.write_bytes(destroyed(data, SECTIONS[what]))
    for to in WRITERS:
        for lenient in (False, True):
            convert(damaged, to, lenient, tmp_path / "out")
    report = fastprof.info(damaged, lenient=True)
    assert report.losses or damaged.read_bytes() == data
