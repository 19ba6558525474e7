"""The text of perf script without call chains: the place of a sample is on its line, whatever else is printed."""

from __future__ import annotations

from typing import Any

import pytest

import fastprof


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"demo  6646 0.005001:     250 cpu-clock:      559732b1a418 f (/a)\n", ("f", "cpu-clock", 6646, 5001000, 250)),
        (b"demo  6646 0.005001: cpu-clock:      559732b1a418 f (/a)\n", ("f", "cpu-clock", 6646, 5001000, None)),
        (b"demo  6646 0.005001:     250      559732b1a418 f (/a)\n", ("f", "", 6646, 5001000, 250)),
        (b"demo  0.005001:      559732b1a418 f (/a)\n", ("f", "", None, 5001000, None)),
        (b"demo  0.005001:            400123 f (/a)\n", ("f", "", None, 5001000, None)),
        (b"demo  0.005001:  ffffffff81000789 f: g (/a)\n", ("f: g", "", None, 5001000, None)),
        (
            b"demo  0.005001: 1234567890123456 ev:            400123 f (/a)\n",
            ("f", "ev", None, 5001000, 1234567890123456),
        ),
        (b"  demo   7/8     250 cpu-clock:      559732b1a418 f (/a)\n", ("f", "cpu-clock", 8, None, 250)),
        (b"demo 8 cpu-clock:u:      559732b1a418 f (/a)\n", ("f", "cpu-clock:u", 8, None, None)),
        (b"demo 8 cpu-clock:      559732b1a418\n", ("[unknown]", "cpu-clock", 8, None, None)),
        (b"demo 8 0.005001: cpu-clock:      559732b1a418 f (/a)\n  d.c:12\n", ("f", "cpu-clock", 8, 5001000, None)),
    ],
)
def test_the_place_of_a_sample(line: bytes, expected: tuple[Any, ...]) -> None:
    name, event, tid, time, period = expected
    with fastprof.open(line + b"\n" + line) as profile:
        assert profile.format == "perf-script"  # recognized
        samples = [*profile.rows()]
        names = [value.name for value in profile.value_types]
    values = [1] if period is None else [1, period]
    assert names == [f"{event}_samples", event][: len(values)] if event else len(names) == len(values)
    for sample in samples:
        assert (sample["function"], sample["thread"], sample["ts"]) == (name, tid, time)
        assert [sample[name] for name in names] == values
    found = fastprof.top(line, by="line").rows[0]
    assert (found.name, found.object, found.line) == (name, "/a" if b"/a" in line else "", 12 if b"d.c" in line else 0)
