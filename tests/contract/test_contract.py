"""The contract of every format, over the registry and tests/corpus/FORMAT/{good,bad}.

A new format is tested as soon as it has a corpus folder; see CONTRIBUTING.md.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FastprofError, FormatError, UnrecognizedError, UsageError
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.contract.dump import CORPUS, dump, expected_failures, failure, files, golden, golden_path
from tests.support.chosen import CHOSEN, cases

GOOD, BAD = files("good"), files("bad")
READERS = [f.name for f in formats.formats() if f.reader]
WINDOWS = (1, 2, 3, 7, 4096, 1 << 20)
CAPACITIES = (1, 2, 1000)

# Where a file is cut or changed: at every byte of one of at most SMALL bytes; in a larger one at the first ENDS bytes,
# at half as many last ones, and at STEPS places between.  More (True) in files that represent a format.
SMALL, ENDS, STEPS = {True: 400, False: 80}, {True: 48, False: 16}, {True: 120, False: 24}


def format_of(file: str) -> str:
    return file.split("/")[0]


def whole_dump(file: str) -> list[str]:
    return dump(CORPUS / file, from_=format_of(file))


@pytest.mark.parametrize("name", READERS)
def test_a_reader_has_a_corpus(name: str) -> None:
    assert [f for f in GOOD if format_of(f) == name], f"no file in tests/corpus/{name}/good"
    assert [f for f in BAD if format_of(f) == name], f"no file in tests/corpus/{name}/bad"


def test_the_corpus_is_small() -> None:
    assert [f for f in GOOD + BAD if (CORPUS / f).stat().st_size > 100_000] == []


@pytest.mark.parametrize("file", GOOD)
def test_one_sniffer_claims_it(file: str, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown"
    unknown.write_bytes((CORPUS / file).read_bytes())
    with Source(str(unknown)) as source:
        claims = [f.name for f in formats.formats() if f.sniff and f.sniff(source.head)] or formats.claimants(source)
    assert claims == [format_of(file)]


@pytest.mark.parametrize("file", BAD)
def test_at_most_one_sniffer_claims_a_bad_file(file: str) -> None:
    with Source(str(CORPUS / file)) as source:
        claims = [f.name for f in formats.formats() if f.sniff and f.sniff(source.head)] or formats.claimants(source)
    assert claims in ([], [format_of(file)])


@pytest.mark.parametrize(
    "junk",
    [b"", b"\0" * 4096, b"\xff" * 4096, b"hello\n" * 100, bytes(range(256)) * 16, b"\x7fELF\x02\x01\x01" + bytes(200)],
)
def test_junk_is_not_recognized(junk: bytes) -> None:
    with pytest.raises(UnrecognizedError), Source(junk) as source:
        formats.detect(source)


@pytest.mark.parametrize("file", GOOD)
def test_golden(file: str) -> None:
    path = golden_path(file)
    assert path.exists(), f"no golden for {file}; python -m tests.contract.dump"
    assert golden(whole_dump(file)).encode("utf-8", "surrogateescape") == path.read_bytes()


@pytest.mark.parametrize("file", cases(GOOD, every=2))
def test_windows_and_capacities_do_not_matter(file: str) -> None:
    expected = whole_dump(file)
    for window in WINDOWS:
        assert dump(CORPUS / file, from_=format_of(file), window=window) == expected, f"window of {window}"
    for capacity in CAPACITIES:
        assert dump(CORPUS / file, from_=format_of(file), capacity=capacity) == expected, f"capacity of {capacity}"
    assert dump(CORPUS / file, from_=format_of(file), window=1, capacity=1) == expected


def places(n: int, file: str) -> Iterator[int]:
    """Every offset of a small file; in a larger one, both ends and evenly spread offsets of all alignments."""
    chosen = file in CHOSEN
    if n <= SMALL[chosen]:
        yield from range(n)
        return
    ends = ENDS[chosen]
    yield from range(ends)
    yield from range(ends, n - ends // 2, n // STEPS[chosen] | 1)
    yield from range(n - ends // 2, n)


def outcome(data: bytes, file: str, *, lenient: bool = False) -> list[str] | FastprofError:
    """The dump or the error; any other exception fails the test."""
    try:
        return dump(data, from_=format_of(file), options=Options(lenient=lenient))
    except FormatError as error:
        assert error.offset is None or 0 <= error.offset <= len(data), error
        return error
    except FastprofError as error:
        return error


@pytest.mark.parametrize("file", cases(GOOD, every=2))
def test_cut_anywhere(file: str) -> None:
    """A located error, or a valid shorter file.  Lenient: only the header may be an error, and each loss is
    reported."""
    data = (CORPUS / file).read_bytes()
    for at in places(len(data), file):
        strict = outcome(data[:at], file)
        kept = outcome(data[:at], file, lenient=True)
        if isinstance(strict, FormatError):
            assert strict.offset is not None, f"cut at {at}: {strict}"
            if not isinstance(kept, FastprofError):
                assert any(line.startswith("losses ") for line in kept), f"cut at {at}: {strict}; lenient says nothing"
        elif not isinstance(strict, FastprofError):
            assert not isinstance(kept, FastprofError), f"cut at {at}: an error only when lenient: {kept}"


@pytest.mark.parametrize("file", cases(GOOD, every=2))
def test_flipped_bits(file: str) -> None:
    """A result or a located error, lenient or not."""
    data = bytearray((CORPUS / file).read_bytes())
    for n, at in enumerate(islice(places(len(data), file), 0, None, 2)):
        mask = 1 << n % 8 if n % 3 else 0xFF
        data[at] ^= mask
        strict = outcome(bytes(data), file)
        assert not isinstance(strict, FormatError) or strict.offset is not None, strict
        outcome(bytes(data), file, lenient=True)
        data[at] ^= mask


@pytest.mark.parametrize("file", BAD)
def test_bad_files_fail_where_recorded(file: str) -> None:
    name = file.split("/")[-1]
    expected = expected_failures(format_of(file))
    assert name in expected, f"{file} is not in expected.tsv; python -m tests.contract.dump"
    assert failure(file) == expected[name]


@pytest.mark.parametrize("file", BAD)
def test_bad_files_leave_no_output(file: str, tmp_path: Path) -> None:
    if expected_failures(format_of(file))[file.split("/")[-1]].startswith("accepted"):
        pytest.fail("a bad file must fail")
    target = next(f.name for f in formats.formats() if f.writer and f.view == "graph")
    with pytest.raises(FastprofError):
        fastprof.convert([str(CORPUS / file)], str(tmp_path / "out"), from_=format_of(file), to=target)
    assert list(tmp_path.iterdir()) == []


def sums(path: Path, name: str) -> object:
    try:
        facts = fastprof.info(str(path), from_=name).facts
    except FastprofError as error:
        return str(error).replace(str(path), "")
    return [facts.get(fact) for fact in ("totals", "calls", "contexts")]


@pytest.mark.parametrize("file", cases(f for f in GOOD if formats.get(format_of(f)).writer))
def test_read_write_read(file: str, tmp_path: Path) -> None:
    """Sums are kept, and the second and later writings give the same bytes."""
    name = format_of(file)
    once, twice, thrice = (tmp_path / name for name in ("once", "twice", "thrice"))
    try:
        log = fastprof.convert([str(CORPUS / file)], str(once), from_=name, to=name)
    except UsageError:  # the format writes only one of the views that it reads
        with fastprof.open(CORPUS / file, from_=name) as profile:
            assert profile.view != formats.get(name).view
        return
    except FastprofError as error:
        assert "no sample has a cost" in str(error)
        return
    for source, target in ((once, twice), (twice, thrice)):
        fastprof.convert([str(source)], str(target), from_=name, to=name)
    assert thrice.read_bytes() == twice.read_bytes()
    if not log.not_representable:
        assert sums(once, name) == sums(CORPUS / file, name)


@pytest.mark.parametrize("file", cases(GOOD, every=2))
def test_a_pipe_says_the_same(file: str) -> None:
    class Pipe(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._data = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def readinto(self, into: memoryview) -> int:  # type: ignore[override]
            return self._data.readinto(memoryview(into)[:1000])

    data = (CORPUS / file).read_bytes()
    expected, source = dump(data, from_=format_of(file)), Pipe(data)
    assert dump(source, from_=format_of(file)) == expected  # type: ignore[arg-type]
