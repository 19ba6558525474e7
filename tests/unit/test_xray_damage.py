"""Damaged and hostile XRay logs: readable parts are kept, losses are counted, and memory is bounded."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support import product
from tests.support.xraylog import FdrLog, ProfilingLog, header

BUFFERS, CALLS = 12, 400
LENIENT = Options(lenient=True)


def log(version: int = 5) -> tuple[bytearray, list[int]]:
    """One thread per buffer, each larger than an index window, and the starts of the buffers."""
    made = FdrLog(version)
    starts, at = [], 32
    for tid in range(1, BUFFERS + 1):
        buffer = made.buffer(tid=tid, pid=9, seconds=tid).cpu(0, 1000 * tid)
        for _ in range(CALLS):
            buffer.enter(tid, 1).exit(tid, 2)
        starts.append(at)
        at = len(made.bytes())
    return bytearray(made.bytes()), starts


def set_extents(value: Callable[[int, int], int]) -> Callable[[bytearray, int, int], None]:
    """`value` of (the stated extents, the bytes to the end of the file)."""

    def damage(data: bytearray, at: int, nbytes: int) -> None:
        struct.pack_into("<Q", data, at + 1, value(nbytes - 16, len(data) - at - 16))

    return damage


def no_extents(data: bytearray, at: int, nbytes: int) -> None:
    data[at] = 0


RECOVERABLE = {
    "beyond the file": set_extents(lambda stated, rest: 1 << 40),
    "into the next buffer": set_extents(lambda stated, rest: stated + 1000),
    "to the end of the next buffer": set_extents(lambda stated, rest: 2 * stated + 16),
    "to the end of the file": set_extents(lambda stated, rest: rest),
    "nothing": set_extents(lambda stated, rest: 0),
    "no extents record": no_extents,
}


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("damage", RECOVERABLE)
def test_damaged_extents_cost_no_record(damage: str, version: int) -> None:
    data, starts = log(version)
    whole, _ = product.timeline(bytes(data))
    RECOVERABLE[damage](data, starts[0], starts[1] - starts[0])
    with pytest.raises(FormatError):
        product.timeline(bytes(data))
    kept, report = product.timeline(bytes(data), LENIENT)
    assert kept == whole
    assert report.losses["damaged-buffers"] == 1
    assert report.losses["skipped-bytes"] <= 16


def test_lenient_reads_a_sound_log_as_it_is() -> None:
    """Including a payload that contains the start of a buffer."""
    inner = FdrLog(5)
    inner.buffer(tid=1, pid=9).cpu(0, 1).enter(1)
    made = FdrLog(5)
    made.buffer(tid=1, pid=9).cpu(0, 1).enter(1).custom(bytes(inner.bytes())[32 + 16 :], 1).exit(1, 1)
    assert product.timeline(made.bytes(), LENIENT)[0] == product.timeline(made.bytes())[0]


def test_lost_bytes_are_bytes_of_the_file() -> None:
    data, starts = log()
    struct.pack_into("<Q", data, starts[-1] + 1, 1 << 50)
    data[starts[-1] + 16 + 64] = 0xFF  # the first call
    _, report = product.timeline(bytes(data), LENIENT)
    assert report.losses["skipped-bytes"] == len(data) - starts[-1] - 16 - 64


def test_lost_bytes_of_a_profile_beyond_a_window() -> None:
    made = ProfilingLog().block(1)
    for i in range(5000):
        made.row((1, 2, i + 3), 1, 1)
    data = bytearray(made.bytes())
    struct.pack_into("<I", data, 32 + 16, 0)  # a path without functions
    opened = product.open_input(bytes(data), LENIENT, window=4096)
    for _ in product.batches(opened):
        pass
    assert opened.log.losses["skipped-bytes"] == len(data) - 32 - 16


def test_a_negative_time_is_counted_once() -> None:
    """Not again for every new function of its path."""
    opened = product.open_input(ProfilingLog().block(1).row((1, 2, 3, 4), 1, -5).bytes())
    for _ in product.batches(opened):
        pass
    assert opened.log.repairs["negative-times"] == 1


def test_a_path_of_many_new_functions_is_read_once() -> None:
    """Restarting at each of them would take hours."""
    depth = 300_000
    opened = product.open_input(ProfilingLog().block(1).row(range(1, depth + 1), 1, 7).bytes())
    rows = sum(len(batch) for batch in product.batches(opened))
    assert rows == 1 and opened.model.count("functions") == depth + 1


def test_a_version_1_size_that_no_buffer_has_room_in() -> None:
    """Every byte would begin a buffer, so buffers then end at their end records."""
    made = FdrLog(1)
    made.buffer(tid=7).cpu(0, 1000).enter(3).exit(3, 25)
    body = made.bytes()[32 : 32 + 80]
    data = header(1, 1, buffer_size=1) + body
    threads, _ = product.timeline(data)
    assert [len(records) for records in threads.values()] == [2]
    opened = product.open_input(header(1, 1, buffer_size=1) + bytes(1 << 16))
    with pytest.raises(FormatError):
        for _ in product.batches(opened):
            pass


def test_a_version_1_buffer_with_a_damaged_first_byte_is_not_an_unused_one() -> None:
    made = FdrLog(1, buffer_size=256)
    for tid in (1, 2):
        made.buffer(tid=tid).cpu(0, 1000).enter(3).exit(3, 25)
    data = bytearray(made.bytes())
    assert len(product.timeline(bytes(data))[0]) == 2
    data[32 + 256] = 0
    with pytest.raises(FormatError) as caught:
        product.timeline(bytes(data))
    assert caught.value.offset == 32 + 256
    data[32 + 256 :] = bytes(256)
    assert len(product.timeline(bytes(data))[0]) == 1


def test_profiling_sums_that_do_not_fit_are_not_kept() -> None:
    """The record that overflows a sum is lost completely; a wrapped sum was used further."""
    most = (1 << 63) - 1
    made = ProfilingLog().block(1).row((1,), 1, most).row((1, 2), 1, most)
    for record in (((1,), 5, 10), ((1, 2), 5, 10), ((1, 3), 5, 10)):
        made.block(1).row(*record)
    made.block(1).row((4,), 7, 100)
    with pytest.raises(FormatError, match="the sum of a call path's records"):
        [*product.batches(product.open_input(made.bytes()))]
    opened = product.open_input(made.bytes(), LENIENT)
    rows = [(b.values(0)[i], b.values(1)[i]) for b in product.batches(opened) for i in range(len(b))]
    assert sorted(rows) == [(0, 1), (100, 7), (most, 1)]
    assert opened.log.losses["damaged-records"] == 3
