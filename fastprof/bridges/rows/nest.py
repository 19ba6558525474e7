"""Timeline -> timeline in nanoseconds whose calls nest (csrc/bridges/rows/nest.h).

    enter f 10, enter g 20, exit f 50, enter f 70    becomes
    enter f 10, enter g 20, exit g 50, exit f 50, enter f 70, exit f 70

For formats that draw calls, which would be wrong after a missing entry or exit.  Repairs and their counts are those of
the stack machine.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges import TIME_UNIT
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.engine import CAPACITY, EVERYTHING, Capabilities
from fastprof.core.errors import check_sums, inputs_of, usage_error
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, empty
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options

NANOSECONDS = 1_000_000_000


class Clocks:
    """The clocks of a timeline's parts."""

    def __init__(self, model: Model, options: Options) -> None:
        self._model, self._in_ticks = model, options[TIME_UNIT] == "ticks"
        self._last: int | None = None

    def of(self, part: int) -> int:
        """Ticks per second of a part; 0 if its times are not converted.

        Errors: UsageError if it is known and an earlier part's is not, or vice versa.
        """
        clock: int = self._model.parts[part].extra.get("ticks_per_second", 0)
        if not self._in_ticks and self._last is not None and bool(self._last) != bool(clock):
            what = "{inputs}the clock frequency of only some inputs is known: use {--time-unit:=}ticks"
            raise usage_error(what, inputs=inputs_of(self._model))
        self._last = clock
        return 0 if self._in_ticks else clock

    @property
    def in_ns(self) -> bool:
        """Whether output times are in nanoseconds; otherwise in ticks."""
        return bool(self._last) and not self._in_ticks

    def log_to(self, log: Log) -> None:
        if self._last == 0 and not self._in_ticks:
            log.warn(REPORTED["unknown-clock"])


def nest(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Nested batches, whose parts have a clock of nanoseconds, or none if times are in ticks.

    Errors: UsageError if one clock is known and another is not; FastprofError for a time of 2^63 nanoseconds or more.
    """
    c = owned(lib.fp_nest_new(), "the open calls of threads")
    err, at = ffi.new("struct fp_err *"), ffi.new("uint32_t *")
    out = Batch("timeline", CAPACITY["timeline"])
    changed = Changed(model)
    clocks = Clocks(model, options)

    def check(status: int) -> int:
        return check_sums(status, err, model, "timeline")

    def in_nanoseconds(part: Part) -> Part:
        nested = copied(part)
        nested.extra = part.extra | {"ticks_per_second": NANOSECONDS if clocks.in_ns else 0}
        return nested

    def lend() -> Iterator[Batch]:
        if len(out):
            yield from changed.lend(out, in_nanoseconds)
        empty(out)

    last = -1
    for batch in batches:
        if batch.part != last:
            yield from lend()
            last = out.c.part = batch.part
            lib.fp_nest_clock(c, clocks.of(batch.part))
        at[0] = 0
        while check(lib.fp_nest_put(c, batch.c, at, out.c, err)) == lib.FP_FULL:
            yield from lend()
    while check(lib.fp_nest_end(c, out.c)) == lib.FP_FULL:
        yield from lend()
    yield from lend()
    changed.end()
    clocks.log_to(log)
    log.count(REPORTED["orphan-exits"], c.orphan_exits)
    log.count(REPORTED["unwound-frames"], c.unwound)
    log.count(REPORTED["unfinished-calls"], c.unfinished)
    log.count(REPORTED["clamped-times"], c.clamped)
