"""Flight recordings that end early: each cut of a chunk that the JVM did not finish is an error, or counted."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from fastprof.core.engine import read
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats.jfr.read import JfrReader
from tests.support.jfrfile import Chunk

HEADER = 68


def killed(*, flushed: int) -> bytes:
    """A chunk whose metadata comes first, as async-profiler writes it, then samples, then constants."""
    chunk = Chunk()
    thread, state = chunk.thread("main", 1, 7), chunk.state("S")
    stacks = [chunk.stack([("a/B", f"m{i}", "()V", i, 2, "Inlined")]) for i in range(3)]
    for i in range(6):
        chunk.event("jdk.ExecutionSample", i, thread, stacks[i % 3], state)
    whole = chunk.bytes(finished=False, flushed=flushed)
    metadata = chunk.metadata()
    assert whole.endswith(metadata)
    return whole[:HEADER] + metadata + whole[HEADER : -len(metadata)]


def boundaries(data: bytes) -> Iterator[int]:
    """The ends of the header and of each record."""
    at = HEADER
    while at < len(data):
        yield at
        nbytes, shift = 0, 0
        for byte in data[at:]:
            nbytes |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        at += nbytes
    yield at


def samples(data: bytes, *, lenient: bool) -> tuple[int, Log]:
    log = Log()
    reader = JfrReader(Source(io.BytesIO(data)), Model(), Options(lenient=lenient), log)
    return sum(map(len, read(reader))), log


@pytest.mark.parametrize("flushed", [0, 3])
def test_each_cut_is_an_error_or_counted(flushed: int) -> None:
    """Nothing is missing only if the header states no size and the cut is at the end of a record, because the JVM may
    have been killed there."""
    data = killed(flushed=flushed)
    ends = [*boundaries(data)]
    assert ends[-1] == len(data)
    of_records = {end: min(max(i - 1, 0), 6) for i, end in enumerate(ends)}  # the samples before it
    assert samples(data, lenient=False)[0] == 6
    cuts = {*range(1, HEADER, 9), *range(HEADER, len(data), 61)}
    cuts |= {end + i for end in ends for i in (-1, 0, 1)}
    for cut in sorted(cut for cut in cuts if cut < len(data)):
        is_natural = cut in of_records and not flushed
        if is_natural:
            n, log = samples(data[:cut], lenient=False)
            assert n == of_records[cut]
            assert log.repairs["unfinished-chunks"] == 1
        else:
            with pytest.raises(FormatError) as error:
                samples(data[:cut], lenient=False)
            assert error.value.offset is not None
        n, log = samples(data[:cut], lenient=True)
        assert n == max((number for end, number in of_records.items() if end <= cut), default=0)
        assert bool(log.losses) != is_natural


def test_a_chunk_may_be_longer_than_at_its_last_flush() -> None:
    """The next chunk begins before that length only if bytes are missing."""
    data, other = killed(flushed=3), killed(flushed=0)
    assert samples(data + other, lenient=False)[0] == 12
    end = [*boundaries(data)][-2]
    longer = data[:8] + end.to_bytes(8, "big") + data[16:]
    assert samples(longer, lenient=False)[0] == 6
    with pytest.raises(FormatError, match=f"has {len(data)} bytes or more, but only {end} follow") as error:
        samples(data[:end] + other, lenient=False)
    assert error.value.offset == 8
