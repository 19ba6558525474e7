"""Every sample file, read by the product and by the reference reader."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fastprof.engine import Options
from tests.graphs import read_parts, rewrite
from tests.paths import SHARED, needs_shared
from tests.reference.callgrind import parse

pytestmark = needs_shared


def samples() -> list[Path]:
    if SHARED is None:
        return []
    folder = SHARED / "data" / "callgrind"
    named = [*folder.glob("*.callgrind"), *folder.glob("*.kcg"), *folder.glob("xdebug*"), *folder.glob("parts/*")]
    return sorted([*named, *folder.glob("threads/*"), *folder.glob("edge/*.callgrind"), *folder.glob("cachegrind/*")])


BROKEN = {"float.callgrind", "more.callgrind"}  # counts that no reader can take as they are
GOOD = [path for path in samples() if path.name not in BROKEN]


def contents(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data.removeprefix(b"\xef\xbb\xbf")


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
def test_rows_are_those_of_the_reference(path: Path) -> None:
    ours, _ = read_parts(path)
    theirs = parse(contents(path), numbered=path.parent.name != "cachegrind")
    assert [(p.events, p.positions, p.summary) for p in ours] == [(p.events, p.positions, p.summary) for p in theirs]
    for mine, reference in zip(ours, theirs, strict=True):
        assert mine.rows == reference.rows


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
@pytest.mark.parametrize("compress", [True, False])
def test_rewritten_file_has_the_same_rows(path: Path, compress: bool) -> None:
    options = Options(compress_names=compress, compress_positions=compress)
    before, _ = read_parts(path)
    written = rewrite(path, options=options)
    after = parse(written)
    assert [p.rows for p in after] == [p.rows for p in before]
    assert [p.events for p in after] == [p.events for p in before]
    assert [p.summary for p in after] == [p.summary for p in before]
    assert [p.totals for p in after] == [p.sums for p in before]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
def test_second_write_equals_the_first(path: Path) -> None:
    once = rewrite(path)
    assert rewrite(once) == once
