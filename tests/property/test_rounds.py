"""Records sorted by rounds, against a plain list of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core._c import ffi, lib

TIMES = st.integers(0, 60) | st.integers(0, (1 << 64) - 1)
SIZES = st.sampled_from([0, 1, 7, 8, 9, 40, 300])
STEPS = st.lists(st.tuples(TIMES, SIZES) | st.just("mark"), max_size=60)

Record = tuple[int, int, bytes]  # time, number, bytes


class Rounds:
    """csrc/core/rounds.h and its temporary file."""

    def __init__(self, most: int) -> None:
        self.c = ffi.gc(ffi.new("struct fp_rounds *", {"most": most}), lib.fp_rounds_clear)
        self._file = bytearray()

    def _done(self, call: Any, *arguments: Any) -> int:
        c = self.c
        while (status := int(call(c, *arguments))) == lib.FP_NEEDS:
            if c.asks == lib.FP_ROUNDS_WRITE:
                self._file += ffi.buffer(c.bytes, c.n_bytes)[:]
            else:
                assert c.offset + c.n_bytes <= len(self._file)
                ffi.memmove(c.bytes, self._file[c.offset : c.offset + c.n_bytes], c.n_bytes)
        return status

    def put(self, record: Record) -> None:
        time, number, data = record
        assert self._done(lib.fp_rounds_put, time, number, data, len(data)) == 0

    def taken(self) -> list[Record]:
        found, c = [], self.c
        while (status := self._done(lib.fp_rounds_next)) == lib.FP_FULL:
            found.append((int(c.time), int(c.tag), ffi.buffer(c.p, c.n)[:] if c.n else b""))
        assert status == lib.FP_DONE
        return found


@given(STEPS, st.sampled_from([0, 100, 2000, 1 << 20]))
def test_records_come_by_time_and_as_soon_as_they_may(steps: list[Any], most: int) -> None:
    """With any limit of memory: at a mark, all up to the newest before the previous mark; the rest at the end."""
    rounds, waiting, newest, noted, reached, late = Rounds(most), [], 0, 0, 0, 0
    expected: list[Record] = []

    def take(limit: int) -> None:
        nonlocal reached
        due = sorted((record for record in waiting if record[0] <= limit), key=lambda record: record[:2])
        waiting[:] = [record for record in waiting if record[0] > limit]
        expected.extend(due)
        reached = max([reached, *(time for time, _, _ in due)])

    found: list[Record] = []
    for number, step in enumerate(steps):
        if step == "mark":
            take(noted)
            noted = newest
            lib.fp_rounds_mark(rounds.c)
            found += rounds.taken()
        else:
            time, nbytes = step
            record = time, number, bytes(number % 256 for _ in range(nbytes))
            rounds.put(record)
            waiting.append(record)
            late += time < reached
            newest = max(newest, time)
        assert found == expected
    take((1 << 64) - 1)
    lib.fp_rounds_end(rounds.c)
    assert found + rounds.taken() == expected
    assert rounds.c.n_late == late


def test_large_records_fit_whatever_the_limit_is() -> None:
    rounds = Rounds(1000)
    records = [(1000 - i, i, bytes([i]) * (i * 20_000)) for i in range(30)]
    for record in records:
        rounds.put(record)
    lib.fp_rounds_end(rounds.c)
    assert rounds.taken() == sorted(records)
    assert rounds.c.n_runs_ever > 5
