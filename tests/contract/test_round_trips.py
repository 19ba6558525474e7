"""Every loss is reported: every format to every other one, and back.

Profiles that use all features of their formats (tests/support/rich.py) are written in each format and read back.
Source and output are compared attribute by attribute (tests/support/attributes.py, independent of reports).  If part of
an attribute is missing, the report must have one of the codes that TOLD_BY declares for it; and a code must not be in
the report if nothing is missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from docs import make_matrix
from fastprof import formats
from tests.reference.profile_proto import Profile
from tests.support import rich
from tests.support.chosen import cases
from tests.support.conversions import OF_PROGRAMS, WRITERS
from tests.support.matrix import TOLD_BY, Leg, back, leg, pairs
from tests.support.paths import REPO


def unsaid(done: Leg) -> dict[str, list[object]]:
    """Attributes missing both from the output and from the log."""
    return {name: [*missing][:3] for name, missing in done.lost.items() if not TOLD_BY[name] & done.codes}


def noise(done: Leg) -> set[str]:
    """Codes of the report for which nothing is missing."""
    explained = {code for name in done.lost for code in TOLD_BY[name]}
    return {code for code in done.codes if any(code in codes for codes in TOLD_BY.values())} - explained


def written_as(to: str) -> list[str]:
    """The names of the rich profiles that can be written in a format."""
    return [name for name, other in pairs() if other == to]


@pytest.mark.parametrize("to", WRITERS)
def test_what_is_lost_is_in_the_log_and_nothing_else_is(to: str) -> None:
    assert {name: found for name in written_as(to) if (found := unsaid(leg(name, to)))} == {}
    assert {name: found for name in written_as(to) if (found := noise(leg(name, to)))} == {}


# A graph of samples has no counts of calls, so arcs without a cost have only zeros, of which no stack is made.
ZEROS = {
    ("otlp", "pstats"): {"calls", "files", "first lines", "lines"},
    ("firefox", "pstats"): {"value types"},  # ncalls and primitive_calls
}


@pytest.mark.parametrize("to", cases(WRITERS))
def test_the_way_back_loses_nothing_more_without_a_word(to: str) -> None:
    ways = {name: done for name in written_as(to) if (done := back(name, to))}
    assert {name: unsaid(done).keys() - ZEROS.get((name, to), set()) for name, done in ways.items()} == {
        name: set() for name in ways
    }


def test_each_code_is_needed() -> None:
    """These tests fail if a count is missing: without any single code, some loss goes unreported."""
    legs = [leg(name, to) for name, to in pairs()]
    codes = {code for codes in TOLD_BY.values() for code in codes} - {"comments", "renamed"}  # only with others
    codes &= {code for one in legs for code in one.codes}  # tests/contract/test_remarks.py has the others
    needless = [code for code in codes if not any(unsaid(one._replace(codes=one.codes - {code})) for one in legs)]
    assert needless == []


def test_the_page_is_current() -> None:
    assert (REPO / "docs" / "formats" / "matrix.md").read_text() == make_matrix.text(), "run `make docs`"


def test_every_format_is_read_and_written() -> None:
    assert {source.format for source in rich.sources().values()} == {f.name for f in formats.formats() if f.reader}
    assert {to for _, to in pairs()} == {f.name for f in formats.formats() if f.writer} - OF_PROGRAMS


def test_merging_loses_nothing_that_the_format_holds(tmp_path: Path) -> None:
    """Parts are renumbered, and fields that differ are listed."""
    for name, suffix in (("callgrind", ".callgrind"), ("pprof", ".pb"), ("trace-event", ".trace.json")):
        paths = [tmp_path / f"{i}{suffix}" for i in (1, 2)]
        for path in paths:
            path.write_bytes(rich.sources()[name].data)
        lost = fastprof.convert(paths, tmp_path / f"both{suffix}").not_representable.entries()
        assert {entry["code"] for entry in lost} <= {"call-arguments", "idle-threads", "thread-numbers"}, name


def test_paths_that_a_reader_would_change_are_counted(tmp_path: Path) -> None:
    profile = Profile()
    profile.ParseFromString(rich.sources()["pprof"].data)
    profile.string_table[profile.mapping[0].filename] = "/srv/$build/prog\n2 (deleted)"
    (tmp_path / "x.pb").write_bytes(profile.SerializeToString())
    log = fastprof.convert(tmp_path / "x.pb", tmp_path / "x.prof", symbolize=False)
    assert {"code": "changed-paths", "count": 1} in [
        {key: entry[key] for key in ("code", "count")} for entry in log.not_representable.entries()
    ]
