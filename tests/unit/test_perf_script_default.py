"""The text of perf script: which event is the default."""

from __future__ import annotations

import pytest

import fastprof

TEXT = b"a 1/1 5.000001: 7 faults:\n\t1 f (/a)\n\na 1/1 5.000002: 9 cycles:u:\n\t1 f (/a)\n\n"
CYCLES, FAULTS = (b"# event : name = %s, , id = { 1, 2 }, size = 128\n" % name for name in (b"cycles:u", b"faults"))


@pytest.mark.parametrize(
    ("header", "default"),
    [
        (b"", "faults"),  # the first in the text
        (CYCLES + FAULTS, "cycles:u"),  # the first that was recorded
        (b"# event : name = no-samples, , id = { 3 }\n" + CYCLES + FAULTS, "cycles:u"),
        (b"# event : nothing\n", "faults"),
    ],
)
def test_the_default_is_the_event_that_was_recorded_first(header: bytes, default: str) -> None:
    data = b"# ========\n# cmdline : /usr/bin/perf record ./a\n" + header + b"#\n" + TEXT
    assert fastprof.info(data, from_="perf-script").facts["default_value_type"] == default


def test_events_without_periods() -> None:
    data = (
        b"# ========\n"
        + CYCLES
        + FAULTS
        + b"#\n"
        + TEXT.replace(b" 7 faults", b" faults").replace(b" 9 cycles", b" cycles")
    )
    assert fastprof.info(data, from_="perf-script").facts["default_value_type"] == "cycles:u_samples"
