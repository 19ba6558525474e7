"""The contract of every written format, over the registry and the corpora of all formats.

A new writer is tested as soon as it is registered.  `python -m tests.contract.dump` writes its golden, written.tsv in
tests/corpus/FORMAT.  tests/contract/test_memory.py measures its memory.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.cli import main
from fastprof.core.errors import FastprofError, FormatError, UsageError
from tests.contract.dump import expected_written, files, written
from tests.support.chosen import CHOSEN, cases
from tests.support.conversions import WRITERS, Sums, convert, converted, format_of, keywords, sums_of
from tests.support.paths import CORPUS

CAPACITIES = (1, 2, 1000)
DRAWN = {2: 1, 3: 0}  # a tail exit is drawn as an exit, a call with arguments as a call
NANOSECONDS = {"microseconds": 1000}  # the unit in which firefox's times are read back
BUFFER = 7  # records of a timeline that mark the starts of a log's buffers


@cache
def refusal(file: str, to: str) -> FastprofError | None:
    """No conversion exists, or a sum does not fit.  A FormatError fails the test: the corpus is good."""
    try:
        converted(file, to)
    except FormatError:
        raise
    except FastprofError as error:
        return error
    return None


@pytest.fixture(autouse=True)
def in_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the names of inputs the same on every machine."""
    monkeypatch.chdir(CORPUS)


@pytest.mark.parametrize("to", cases(WRITERS))
def test_something_can_be_written(to: str) -> None:
    others = [file for file in files("good") if not refusal(file, to)]
    assert [file for file in others if format_of(file) != to]


@pytest.mark.parametrize("to", cases(WRITERS))
def test_golden(to: str) -> None:
    """If a change is intended: delete the file, run `python -m tests.contract.dump`, read the diff."""
    expected = expected_written(to)
    assert expected.keys() == {*files("good")}, "python -m tests.contract.dump"
    assert {file: written(file, to) for file in expected} == expected


@pytest.mark.parametrize("to", cases(WRITERS))
def test_what_cannot_be_is_refused(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, or 1 for a sum that does not fit; a message with flags (`args` has them), and no output."""
    for file in files("good"):
        if why := refusal(file, to):
            here = ["--no-symbols"] * file.startswith(("oprofile/", "perf/"))  # as in tests/support/conversions.py
            code = main(["convert", file, "--from", format_of(file), "--to", to, "-o", str(tmp_path / "out"), *here])
            said = capsys.readouterr().err
            expected = 2 if isinstance(why, UsageError) else 1
            text = why.text(flags=True).replace("input", file)
            assert (code, said) == (expected, f"fastprof: {text}\n")
            assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", cases(WRITERS))
@pytest.mark.parametrize("capacity", CAPACITIES)
def test_batches_do_not_matter(to: str, capacity: int) -> None:
    """Each file with one capacity per format: over all formats, all capacities."""
    turn = WRITERS.index(to) + CAPACITIES.index(capacity)
    for i, file in enumerate(files("good")):
        if (i + turn) % len(CAPACITIES) == 0 and not refusal(file, to):
            once, other = converted(file, to), convert(file, to, capacity=capacity)
            assert other.data == once.data, file
            assert other.given == once.given, file
            assert other.log.as_dict() == once.log.as_dict(), file


def through_a_pipe(write: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The bytes that `write` sends to a standard output that cannot seek, in pieces that its reader has room for."""
    reading, writing = os.pipe()
    found: list[bytes] = []

    def read() -> None:
        with open(reading, "rb", buffering=0) as pipe:
            while part := pipe.read(1000):
                found.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with os.fdopen(writing, "w") as pipe, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", pipe)
            write()
    finally:
        reader.join()
    return b"".join(found)


@pytest.mark.parametrize("to", cases(WRITERS))
def test_a_file_and_a_pipe_get_the_same(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So two runs give the same bytes.  Of the files that do not represent a format, each in a third of the formats."""
    out, turn = tmp_path / "out", WRITERS.index(to)
    for i, file in enumerate(files("good")):
        if (file not in CHOSEN and (i + turn) % 3) or refusal(file, to):
            continue
        options = keywords(converted(file, to))
        fastprof.convert(file, out, from_=format_of(file), to=to, **options)

        def write(file: str = file, options: dict[str, bool] = options) -> None:
            fastprof.convert(file, "-", from_=format_of(file), to=to, **options)

        assert through_a_pipe(write, monkeypatch) == out.read_bytes(), file


def amounts(values: Mapping[str, int]) -> Counter[int]:
    """Values without their names, which a format may not accept unchanged."""
    return Counter(value for value in values.values() if value)


def kinds(sums: Sums, to: str) -> Counter[int]:
    """The number of rows of each kind, as far as a format distinguishes them."""
    found = Counter({kind: n for kind, n in sums.kinds.items() if kind != BUFFER})
    for kind, as_ in DRAWN.items() if formats.get(to).holds.nested else ():
        found[as_] += found.pop(kind, 0)
    return found


@pytest.mark.parametrize("to", cases(to for to in WRITERS if formats.get(to).reader))
def test_what_is_read_back_adds_up(to: str) -> None:
    """The totals given to the writer; a format may also state them in another unit."""
    for file in files("good"):
        if refusal(file, to):
            continue
        done = converted(file, to)
        back = sums_of(done.data, to)
        if done.log.not_representable:
            continue
        given = done.given.values
        if to == "firefox":
            given = Counter({k: v * NANOSECONDS.get(done.given.units[k], 1) for k, v in given.items()})
        assert not amounts(given) - amounts(back.values), file
        assert back.calls == done.given.calls, file
        if to != "firefox":  # a timeline is written as samples
            assert kinds(back, to) == kinds(done.given, to), file


@pytest.mark.parametrize("to", cases(WRITERS))
def test_nothing_is_lost_on_the_way(to: str) -> None:
    """The totals of the source are those given to the writer, unless the report explains a difference."""
    for file in files("good"):
        if refusal(file, to) or converted(file, to).log.not_representable:
            continue
        source, given = sums_of((CORPUS / file).read_bytes(), format_of(file)), converted(file, to).given
        told = {*formats.get(to).holds.same} - given.values.keys()  # covered by the type that is kept
        assert not amounts({k: v for k, v in source.values.items() if k not in told}) - amounts(given.values), file
