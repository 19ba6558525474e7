"""Recordings of Python's sampling profiler: the statements of docs/formats/tachyon.md."""

from __future__ import annotations

import struct

import pytest

import fastprof
from fastprof.core.errors import FormatError
from tests.reference import tachyon
from tests.reference.tachyon import Sample
from tests.support.paths import CORPUS

GOOD = CORPUS / "tachyon" / "good"
MAIN = ("a.py", "main", 9, 4)
SAMPLES = [
    Sample(7, 0, 10, 3, (MAIN,)),
    Sample(7, 0, 1010, 9, (("a.py", "f", 3, 0), MAIN)),
    Sample(1 << 46, 1, 1020, 0, ()),
]


def test_the_files_have_equal_costs() -> None:
    rows = [[(r.name, r.self, r.inclusive) for r in fastprof.top(path, n=0).rows] for path in sorted(GOOD.iterdir())]
    assert rows[0] and all(row == rows[0] for row in rows)


def test_states_are_labels_and_modes_are_names() -> None:
    data = tachyon.write(SAMPLES)
    assert {(r.name, r.self) for r in fastprof.top(data, by="label:gil", n=0).rows} >= {("held", 2_000_000)}
    assert {r.name for r in fastprof.top(data, by="label:interpreter", n=0).rows} >= {"1"}
    for mode, name in ((0, "wall"), (1, "wall"), (2, "cpu"), (3, "gil"), (4, "wall"), (5, "exceptions"), (99, "wall")):
        assert next(iter(fastprof.info(tachyon.write(SAMPLES, mode=mode)).facts["totals"])) == name


def test_times_and_threads() -> None:
    facts = fastprof.info(tachyon.write(SAMPLES)).facts
    assert (facts["first_time_ns"], facts["last_time_ns"], facts["threads"]) == (5_000_010_000, 5_001_020_000, 2)
    assert {str(row.name).split()[-1] for row in fastprof.top(tachyon.write(SAMPLES), by="thread", n=0).rows} == {
        "7", str(1 << 46)
    }  # fmt: skip


def test_the_header_of_the_first_alphas() -> None:
    data = tachyon.write(SAMPLES)
    found = struct.unpack_from("<I4BQQQIQQII", data, 4)
    head = data[:4] + struct.pack("<I4BQQIIQQI", *found[:7], found[7], found[8], *found[9:12])
    assert fastprof.top(head.ljust(64, b"\0") + data[64:], n=0).rows == fastprof.top(data, n=0).rows


def test_damage_of_compressed_samples() -> None:
    samples = [Sample(7, 0, 1000 * k, k % 32, (("a.py", f"f{k * k % 97}", k, 0), MAIN)) for k in range(3000)]
    data = tachyon.write(samples, compressed=True)
    middle = int.from_bytes(data[40:48], "little") - 40
    damaged = data[:middle] + b"\xff\xff\xff\xff" + data[middle + 4 :]
    with pytest.raises(FormatError, match="compressed samples are damaged") as found:
        fastprof.info(damaged)
    assert 64 <= (found.value.offset or 0) < middle + 4
    log = fastprof.info(damaged, lenient=True)
    assert log.losses["unreadable-rest"] == 1


def test_undefined_frames_are_a_loss() -> None:
    data = tachyon.write(SAMPLES[:1], data=bytes(12) + b"\1\0\0\2\5\6")
    with pytest.raises(FormatError, match="the frame is not defined"):
        fastprof.info(data)
    assert fastprof.info(data, lenient=True).losses["undefined-frames"] == 2
