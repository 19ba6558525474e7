"""Make the hand-made files of tests/corpus/xray: `python -m tests.corpus.make_xray`."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.xraylog import BasicLog, FdrLog, ProfilingLog, header

HERE = Path(__file__).parent / "xray"


def busy(version: int = 5, order: str = "<") -> FdrLog:
    """Two threads, every kind of record of this version, backward time, a buffer written twice."""
    log = FdrLog(version, order=order, frequency=2_000_000_000, buffer_size=512)
    first = log.buffer(tid=11, pid=7, seconds=5, micros=10).cpu(1, 1000).enter(1).enter(2, 10)
    first.enter_args(3, 5, 42, 1 << 63).custom(b"hello", 3, tsc=1018, cpu=4).exit(3, 4).tail(2, 8).enter(4, 0).exit(
        4, 6
    )
    first.wrap(900).enter(5, 1).exit(5, 2).cpu(2, 5000).exit(1, 7)
    log.buffer(tid=12, pid=7, seconds=4, micros=10).cpu(0, 800).exit(9, 1).enter(1, 9).enter((1 << 24) | 6, 9)
    if version >= 2:
        log.repeat(1)
    return log


def good() -> dict[str, bytes]:
    typed = FdrLog(5)
    typed.buffer(tid=3).cpu(0, 100).enter(1).typed(17, b"seven  ", 9).exit(1, 5).enter(2, 3).exit(
        2, 1
    ).forget_typed_heads()
    typed.buffer(tid=3, seconds=1).cpu(0, 900).enter(1).exit(1, 5)
    basic = BasicLog(3, frequency=0)
    basic.enter(1, 100).function(3, 2, 110).payload(2, 77).payload(2, 78).exit(2, 130).tail(1, 140).enter(8, 141).exit(
        8, 150
    )
    basic.payload(9, 5).enter(1, 20, tid=2, pid=3, cpu=9).exit(1, 60, tid=2, pid=3, cpu=9)
    bare = ProfilingLog(bare=True).block(5).row((1,), 1, 100).row((1, 2), 3, 60).row((1, 2, 3), 4, 20)
    swapped = (
        ProfilingLog(7, order=">", time_ns=10).block(5).row((1,), 1, 100).row((1, 2), 3, -5).block(6).row((4,), 0, 9)
    )
    rotated = busy().rotate(1)
    return {
        "fdr-empty": header(5, 1, buffer_size=4096),
        **{f"fdr{v}-busy": busy(v).bytes() for v in (1, 2, 3, 4, 5)},
        "fdr5-busy-swapped": busy(5, ">").bytes(),
        "fdr5-rotated": rotated.bytes(),
        "fdr5-typed-cut": typed.bytes(),
        "basic3-busy": basic.bytes(),
        "basic1-swapped": BasicLog(1, order=">").enter(1, 5).exit(1, 9).bytes(),
        "profile-bare": bare.bytes(),
        "profile-swapped": swapped.bytes(),
    }


def bad() -> dict[str, bytes]:
    def fdr() -> FdrLog:
        return FdrLog(5)

    def one(log: FdrLog) -> bytes:
        return log.bytes()

    files: dict[str, bytes] = {
        "header-cut": header(5, 1)[:31],
        "fdr-version-6": header(6, 1),
        "basic-version-4": header(4, 0),
        "profile-version": struct.pack("<QQQQ", 0x7872617970726F66, 0x20190101, 0, 1),
    }
    cases = {
        name: fdr() for name in ("kind-10", "kind-4", "no-cpu", "wall-in-body", "orphan-argument", "negative-size")
    }
    cases["kind-10"].buffer().cpu(0, 5).enter(1).metadata(10)
    cases["kind-4"].buffer().cpu(0, 5).enter(1).function(4, 1, 3)
    cases["no-cpu"].buffer().enter(1)
    cases["wall-in-body"].buffer().cpu(0, 5).wall(2, 1)
    cases["orphan-argument"].buffer().cpu(0, 5).enter(1).custom(b"x", 1).argument(3)
    cases["negative-size"].buffer().cpu(0, 5).custom(b"", 1, size=-4)
    for name in (
        "extents-split-record",
        "extents-past-end",
        "end-of-buffer-v5",
        "garbage-between",
        "no-new-buffer",
        "event-too-long",
    ):
        cases[name] = fdr()
    cases["extents-split-record"].buffer().cpu(0, 5).enter(1).exit(1, 4).claim(76)
    cases["extents-past-end"].buffer().cpu(0, 5).enter(1).exit(1, 4).claim(4000)
    cases["end-of-buffer-v5"].buffer().cpu(0, 5).end_of_buffer()
    cases["garbage-between"].gap(b"\x00" * 24).buffer().cpu(0, 5).enter(1)
    cases["no-new-buffer"].buffer(missing=["new"]).cpu(0, 5).enter(1)
    cases["event-too-long"].buffer().cpu(0, 5).custom(b"abc", 1, size=1 << 30)
    files |= {f"fdr5-{name}": one(log) for name, log in cases.items()}
    files["fdr5-cut-record"] = busy().bytes()[:-3]
    files["fdr2-cut-record"] = (
        FdrLog(2).bytes() + FdrLog(2).buffer().without_extents().cpu(0, 5).enter(1).finish(0)[:-2]
    )
    files["basic3-cut-record"] = BasicLog(3).enter(1, 5).exit(1, 9).bytes()[:-7]
    files["basic3-type-2"] = BasicLog(3).enter(1, 5).function(0, 1, 6, record_type=2).bytes()
    files["basic3-kind-4"] = BasicLog(3).enter(1, 5).function(4, 1, 6).bytes()
    profile = ProfilingLog(7).block(5).row((1,), 1, 100).row((1, 2), 3, 60).bytes()
    files["profile-cut"] = profile[:-4]
    files["profile-block-size"] = profile[:32] + struct.pack("<I", 15) + profile[36:]
    files["profile-thread"] = profile[:40] + struct.pack("<Q", 1 << 40) + profile[48:]
    return files


if __name__ == "__main__":
    for folder, files in (("good", good()), ("bad", bad())):
        for name, data in files.items():
            (HERE / folder / f"{name}.xray").write_bytes(data)
