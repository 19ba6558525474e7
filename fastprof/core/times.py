"""Ranges of times as text: `2ms:5ms`, `10%:20%`, `@1.5s:`.

    time      meaning
    1500      as recorded, in ticks of a timeline or nanoseconds of stacks
    @1500     the same;  @1.5s: as recorded, in seconds of the clock
    2ms       since the first time of the input
    10%       of the way from the first time to the last one
    nothing   no limit

Both ends are included.  A range of plain numbers needs nothing else; any other is resolved for each input.
"""

from __future__ import annotations

from fastprof.core import lazy_re as re
from fastprof.core._typing import Any, NamedTuple

_LAST = (1 << 64) - 1  # time
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_TIME = re.compile(r"(@?)([0-9]{1,20})(?:\.([0-9]{1,12}))?(%|ns|us|ms|s|min)?", re.ASCII)


class Time(NamedTuple):
    """`digits` / 10^`places` of `unit`: "" for ticks, "%", or a word of _UNITS."""

    recorded: bool
    digits: int
    places: int
    unit: str

    @property
    def kind(self) -> str:
        """Times of the same kind can be compared without the input."""
        return "%" if self.unit == "%" else f"@{bool(self.unit)}" if self.recorded else "since"

    @property
    def size(self) -> int:
        """The time in units of 10^-12 ticks, percent or nanoseconds."""
        return int(self.digits * 10 ** (12 - self.places) * _UNITS.get(self.unit, 1))


class Span(NamedTuple):
    """The times of an input; `clock` is their number per second, 0 if that is unknown."""

    first: int
    last: int
    clock: int

    def text(self) -> str:
        recorded = f"@{self.first} to @{self.last}"
        return f"0 to {_seconds(self.last - self.first, self.clock)} ({recorded})" if self.clock else recorded


def parse(text: str) -> tuple[Time | None, Time | None]:
    """The two ends of a range; None: no limit.  Errors: ValueError."""
    first, colon, last = text.partition(":")
    times = _time(first), _time(last)
    wrong = not colon or (times[0] and times[1] and _contradict(times[0], times[1]))
    if wrong:
        raise ValueError
    return times


def _time(text: str) -> Time | None:
    if not text:
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError
    at, whole, fraction, unit = found[1], found[2], found[3] or "", found[4] or ""
    time = Time(bool(at) or not unit, int(whole + fraction), len(fraction), unit)
    if (unit == "%" and (at or time.size > 100 * 10**12)) or (not unit and (fraction or time.digits > _LAST)):
        raise ValueError
    return time


def _contradict(first: Time, last: Time) -> bool:
    """Whether they are in the wrong order, or one is a plain number and the other has a unit."""
    plain = [time for time in (first, last) if time.recorded and not time.unit and time.digits]
    with_unit = [time for time in (first, last) if not time.recorded]
    return bool(plain and with_unit) or (first.kind == last.kind and first.size > last.size)


def as_numbers(text: str) -> tuple[int, int] | None:
    """The range if both ends are ticks as recorded, otherwise None.  Errors: ValueError."""
    first, last = parse(text)
    if any(time and (time.unit or not time.recorded) for time in (first, last)):
        return None
    return first.digits if first else 0, last.digits if last else _LAST


def needs_clock(text: str) -> bool:
    return any(time is not None and time.unit in _UNITS for time in parse(text))


def resolved(text: str, span: Span) -> tuple[int, int]:
    """The range in ticks as recorded; first > last if it is empty.

    Span(100, 1100, clock=10**9):  500ns:  ->  (600, 2^64 - 1)      10%:20%  ->  (200, 300)
    """
    first, last = parse(text)
    # the first tick that is not before A, the last one that is not after B
    return (
        min(-_place(first, span, -1) if first else 0, _LAST),
        min(_place(last, span, 1) if last else _LAST, _LAST),
    )


def _place(time: Time, span: Span, sign: int) -> int:
    """`sign` times the time in ticks, rounded down."""
    if time.unit == "%":
        return sign * span.first + sign * (span.last - span.first) * time.size // (100 * 10**12)
    if not time.unit:
        return sign * time.digits
    ticks = sign * time.size * span.clock // (10**12 * 10**9)
    return ticks if time.recorded else sign * span.first + ticks


def _seconds(ticks: int, clock: int) -> str:
    """ "4.21 ms"."""
    ns = ticks * 10**9 // clock
    unit, size = next(((u, n) for u, n in (("s", 10**9), ("ms", 10**6), ("us", 10**3)) if ns >= n), ("ns", 1))
    return f"{ns / size:.4g}{unit}" if ns < 10**12 else f"{ns // 10**9}s"


def nanoseconds(value: Any) -> Any:
    """Those of a duration, or of a date since 1970, in UTC if it has no time zone; None for other objects."""
    from datetime import UTC, datetime, timedelta

    if isinstance(value, datetime):
        value -= datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else UTC)
    if not isinstance(value, timedelta):
        return None
    microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    return microseconds * 1000 + getattr(value, "nanoseconds", 0)  # of pandas
