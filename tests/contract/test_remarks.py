"""What a conversion reports as dropped is dropped, and what it drops is reported: small corpus files to every format.

The same comparison as in tests/contract/test_round_trips.py, which needs fewer files, but has fewer shapes of them.
"""

from __future__ import annotations

from fnmatch import fnmatch
from functools import cache
from typing import NamedTuple

import pytest

from fastprof import formats
from fastprof.core.engine import read
from fastprof.core.errors import FastprofError
from tests.contract.dump import files
from tests.support import attributes
from tests.support.attributes import NAMES, Attributes
from tests.support.chosen import cases
from tests.support.conversions import HERE, OF_ANY, format_of
from tests.support.matrix import TOLD_BY, Leg, made
from tests.support.paths import CORPUS
from tests.support.product import open_input

LARGEST = 8000  # bytes
SMALL = [file for file in files("good") if (CORPUS / file).stat().st_size <= LARGEST]


# Rows that are left out with all that they have, and what rows have.
GONE = {
    "clamped-times",
    "empty-calls",
    "negative-values",
    "orphan-exits",
    "rounded-times",
    "unfinished-calls",
    "zero-values",
    "value-types",
}
OF_ROWS = {*NAMES[NAMES.index("totals") : NAMES.index("labels")], "times"} - {"build ids", "mappings", "system names"}
# Texts that are changed, and where they are.
CHANGED = {"blanked-newlines", "escaped-comments", "escaped-names", "invalid-utf8", "replaced-bytes"}
OF_TEXTS = {"self costs", "stacks", "calls", "call counts", "lines", "files", "header: command", "header: comments"}


class Excuse(NamedTuple):
    """A difference that nobody loses anything by, or that the attributes cannot see."""

    files: str
    formats: str
    names: str  # of attributes that may be missing without a word, and of codes
    why: str


TABLES = "parquet arrow"
EXCUSES = [
    # missing
    Excuse("*/*.callgrind", TABLES, "files objects", "a call only names its callee, which has rows if it costs"),
    Excuse("archive/good/graph.fpa", TABLES, "files objects", "the same"),
    Excuse("*", "gperftools", "default?type", "the type that is kept"),
    Excuse("*", "speedscope", "default?type", "the last one is the default anyway"),
    Excuse("pprof*", "gperftools", "totals", "cpu is samples times the period, which the made file contradicts"),
    Excuse("firefox/good/written.json", "gperftools", "totals", "the same"),
    Excuse("heap/good/threadz.heap", TABLES, "totals value?types self?costs", "thread_2, as a column is called thread"),
    Excuse("heap/good/no-rows.heap", "gperftools", "header:?drop_frames", "the reader gives each file the profiler's"),
    Excuse("perf-script/good/real-F-*", "folded", "stacks calls", "several [unknown] are told apart by their objects"),
    Excuse("gperftools/good/norecords.prof", "folded", "mappings", "objects go with frames, of which it has none"),
    Excuse("speedscope/good/27_*", "trace-event", "calls call?counts", "an empty call at its caller's end"),
    Excuse("trace-event/good/sampled_mixed.json", "speedscope", "parts", "they only separate value types"),
    # reported
    Excuse("*", "*", "zero-values", "attributes leave out what costs nothing"),
    Excuse("*", TABLES, "frames", "a stack of one frame may have no more than its row"),
    Excuse("otlp/good/lines.otlp.jsonl", "*", "columns system-names inlined-calls", "the dictionary's, of no sample"),
    Excuse("callgrind/good/unloaded.callgrind", "pstats", "cost-lines", "other functions of the name have the lines"),
    Excuse("*", "speedscope", "thread-numbers", "a reader numbers threads, now and then as they were"),
    Excuse("tracer-stacks/*", "*", "addresses", "a frame of an address alone is shown as its name"),
    Excuse("memray/good/native.memray", "cachegrind pstats", "addresses", "the same"),
    Excuse("*", "pstats", "units", "ticks, which are no unit of a timeline"),
]


def excused(file: str, to: str, name: str) -> list[Excuse]:
    return [
        one
        for one in EXCUSES
        if fnmatch(file, one.files)
        and any(fnmatch(to, format_) for format_ in one.formats.split())
        and any(fnmatch(name, pattern) for pattern in one.names.split())
    ]


@cache
def said(file: str, view: str) -> Attributes:
    return attributes.of_file((CORPUS / file).read_bytes(), format_of(file), HERE, view)


@cache
def dropped_by_its_reader(file: str) -> set[str]:
    opened = open_input((CORPUS / file).read_bytes(), HERE, None, format_of(file))
    for _ in read(opened.reader):
        pass
    return {entry.code for entry, _, _ in opened.log.not_representable.counted()}


def leg(file: str, to: str) -> tuple[Attributes, Leg] | None:
    """None if the file is not written in this format."""
    data, from_ = (CORPUS / file).read_bytes(), format_of(file)
    only_calls = formats.get(to).view_for(["stacks"]) == "timeline"
    view = open_input(data, HERE, None, from_).reader.other_view if only_calls else ""
    try:
        source = said(file, view)
        return source, made(data, from_, to, source)
    except FastprofError:
        return None


@cache
def told_by(name: str) -> set[str]:
    return TOLD_BY[name] | (GONE if name in OF_ROWS else set()) | (CHANGED if name in OF_TEXTS else set())


def unsaid(done: Leg) -> dict[str, list[object]]:
    return {name: [*missing][:3] for name, missing in done.lost.items() if not told_by(name) & done.codes}


def noise(file: str, source: Attributes, done: Leg) -> set[str]:
    """Codes for which nothing is missing.  Of a file without any cost attributes have only the header."""
    known = set[str]().union(*map(told_by, NAMES)) - dropped_by_its_reader(file)
    explained = set[str]().union(*map(told_by, done.lost))
    return (done.dropped & known) - explained if source["self costs"] else set()


@pytest.mark.parametrize("file", cases(SMALL))
def test_what_is_dropped_is_reported_and_what_is_reported_is_dropped(file: str) -> None:
    missing, not_missing = {}, {}
    for to in OF_ANY:
        if found := leg(file, to):
            source, done = found
            for name, values in unsaid(done).items():
                if not excused(file, to, name):
                    missing[to, name] = values
            if codes := {code for code in noise(file, source, done) if not excused(file, to, code)}:
                not_missing[to] = codes
    assert (missing, not_missing) == ({}, {})


@pytest.mark.exhaustive
@pytest.mark.parametrize("one", EXCUSES, ids=str)
def test_each_excuse_is_needed(one: Excuse) -> None:
    names = set[str]()
    for file in SMALL:
        for to in one.formats.replace("*", " ".join(OF_ANY)).split():
            if fnmatch(file, one.files) and (found := leg(file, to)):
                source, done = found
                differ = {*unsaid(done), *noise(file, source, done)}
                names |= {name for name in differ if one in excused(file, to, name)}
    assert all(any(fnmatch(name, pattern) for name in names) for pattern in one.names.split())
