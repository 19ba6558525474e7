"""Every sample file, read by the product and by the reference reader."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from fastprof import convert, info
from fastprof.bridges import AGGREGATE
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference.callgrind import parse
from tests.support.graphs import read_parts, rewrite
from tests.support.paths import SHARED, needs_shared, shared_data

pytestmark = needs_shared


def samples() -> list[Path]:
    if SHARED is None:
        return []
    folder = SHARED / "data" / "callgrind"
    named = [*folder.glob("*.callgrind"), *folder.glob("*.kcg"), *folder.glob("xdebug*"), *folder.glob("parts/*")]
    return sorted([*named, *folder.glob("threads/*"), *folder.glob("edge/*.callgrind"), *folder.glob("cachegrind/*")])


BROKEN = "more.callgrind"  # more counts than events
GOOD = [path for path in samples() if path.name != BROKEN]


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


OPTIONS = [
    Options(),
    Options(compress_names=False),
    Options(compress_positions=False),
    Options(compress_names=False, compress_positions=False),
    Options(aggregate=True),
]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
def test_second_write_equals_the_first(path: Path) -> None:
    """With any options, and after any round trip of the file."""
    plain = rewrite(path)
    for options in OPTIONS:
        once = rewrite(path, options=options)
        assert rewrite(once, options=options) == once
        if not options[AGGREGATE]:
            assert rewrite(once) == plain
    lines = rewrite(path, "cachegrind")
    assert rewrite(lines, "cachegrind") == lines
    assert rewrite(plain, "cachegrind") == lines


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
def test_an_archive_gives_back_the_same_file(path: Path, tmp_path: Path) -> None:
    archive, back = tmp_path / "a.fpa", tmp_path / "back.callgrind"
    convert([str(path)], str(archive))
    convert([str(archive)], str(back))
    assert back.read_bytes() == rewrite(path)


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
def test_pprof_has_the_same_totals(path: Path, tmp_path: Path) -> None:
    """Its stacks are estimated, but no self cost is lost."""
    profile = tmp_path / "p.pb"
    convert([str(path)], str(profile), prune=0)
    totals: Counter[str] = Counter()
    for part in read_parts(path)[0]:
        totals.update(dict(zip(part.events, part.sums, strict=True)))
    assert info(str(profile)).facts["totals"] == totals


def test_what_no_reader_takes_is_an_error_that_says_where(tmp_path: Path) -> None:
    path = shared_data("callgrind", "edge", BROKEN)
    out = tmp_path / "out.callgrind"
    with pytest.raises(FormatError, match="line 6, byte 53: count"):
        convert([str(path)], str(out))
    assert not out.exists()
    log = convert([str(path)], str(out), lenient=True)
    assert log.losses == {"unreadable-lines": 1}
    assert rewrite(out.read_bytes()) == out.read_bytes()
