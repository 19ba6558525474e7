"""Android's frame timeline in Perfetto traces.  The trace processor reads the same: tests/differential."""

from __future__ import annotations

import fastprof
from tests.support.perfettotrace import BOOTTIME, MONOTONIC, message, packet, snapshot, tree

EXPECTED_DISPLAY, ACTUAL_DISPLAY, EXPECTED_SURFACE, ACTUAL_SURFACE, END = 1, 2, 3, 4, 5
FRAMES = 76


def frame(time: int, kind: int, cookie: int, token: int | None = None, pid: int | None = None) -> bytes:
    is_surface = kind in (EXPECTED_SURFACE, ACTUAL_SURFACE)
    layer = "TX - app#0" if is_surface else None
    fields = message(
        (1, cookie), (2, token), (3, 4 if is_surface else pid), (4, pid if is_surface else None), (5, layer)
    )
    return packet((FRAMES, message((kind, fields))), time=time, clock=MONOTONIC, seq=3)


TRACE = b"".join(
    [
        packet(snapshot((BOOTTIME, 1000, 0, 0), (MONOTONIC, 500, 0, 0))),
        tree((99, 99, "surfaceflinger"), (42, 42, "app")),
        frame(510, EXPECTED_DISPLAY, 7, 4, 99),
        frame(520, EXPECTED_SURFACE, 8, 5, 42),
        frame(521, EXPECTED_SURFACE, 9, 6, 42),
        frame(530, ACTUAL_SURFACE, 10, 5, 42),
        frame(540, END, 8),
        frame(545, ACTUAL_DISPLAY, 11, 4, 99),
        frame(550, END, 10),
        frame(560, END, 9),
        frame(570, END, 7),
        frame(580, END, 11),
    ]
)


def test_frames_are_calls_of_their_process() -> None:
    log = fastprof.info(TRACE)
    assert log.facts["view"] == "timeline" and not log.repairs
    top = fastprof.top(TRACE, by="thread")
    assert {(row.name, row.inclusive or row.self) for row in top.rows}
    rows = {row.name: (row.inclusive, row.calls) for row in fastprof.top(TRACE).rows}
    assert rows == {"4": (95, 2), "5": (40, 2), "6": (39, 1)}


def test_an_end_without_its_begin_is_a_repair() -> None:
    log = fastprof.info(TRACE + frame(590, END, 70))
    assert [entry["code"] for entry in log.repairs.entries()] == ["orphan-exits"]
