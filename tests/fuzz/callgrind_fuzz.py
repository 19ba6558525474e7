"""Fuzz the Callgrind and Cachegrind tokenizer, writers and the aggregator, which are Cython and C (libfuzzer.py).

The first bytes of an input choose how the rest, a profile, is read, and one property to check, because each takes long:
two window sizes, or machines with AVX-512, AVX2 and neither (the same rows or the same error); writing the output again
(the same bytes); sums, or Cachegrind.
"""

from __future__ import annotations

import io
from itertools import product

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof import plan
from fastprof.core.engine import write
from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.streams import compression_of_bytes
from fastprof.formats import get
from tests.support.graphs import read_parts
from tests.support.product import open_input

# Words of the format: libFuzzer's dictionary.
WORDS = (
    b"fn= fl= fi= fe= ob= cfn= cfi= cob= calls= jump= jcnd= jfi= jfn= rcalls= totals: summary: part: thread: events: "
    b"positions: desc: event: cmd: creator: instr bb line (1) (2)x 0x + - * / . .5 e+06 # == \\x0a \\x0d\\x0a '2'(1) "
    b"ffffffffffffffff 18446744073709551615 9223372036854775808 \\x0a====\\x20NEW\\x20PROFILING\\x20FILE\\x0a "
    b"\\x0acalls=1\\x205\\x0a*\\x207\\x0a \\x0apositions:\\x20instr\\x20bb\\x20line\\x0aevents:\\x20A\\x20B\\x20C\\x0a"
)
WRITERS = {name: get(name).writer_class() for name in ("callgrind", "cachegrind")}
WHOLE = 1 << 13  # one window for every input; large buffers would take most of the time
WINDOWS = (1, 3, 17, 100, 1000)
CAPACITIES = (1, 2, 7, 100)
WIDE = 2  # the width of a machine with AVX-512
LOOKED_AT = (READ_IN_WINDOWS, READ_BY_WIDTH, WRITTEN_TWICE, SUMMED) = range(4)


def outcome(data: bytes, from_: str, lenient: bool, window: int, capacity: int, wide: int = 2) -> object:
    try:
        parts, log = read_parts(data, Options(lenient=lenient), window, capacity, from_, wide)
    except FastprofError as error:
        return str(error)
    return [(p.events, p.positions, p.rows) for p in parts], log.losses


def written(data: bytes, from_: str, to: str, sums: bool, options: Options, wide: int = 2) -> bytes:
    opened = open_input(data, options, WHOLE, from_)
    out = io.BytesIO()
    if sums and get(to).holds.calls:
        options = Options(**options.given, aggregate=True)
    made = plan.make([[opened.reader]], plan.writing(get(to)), options)
    writer = WRITERS[to](opened.model, Sink(out), options, opened.log)
    if wide < 2:
        opened.reader._lexer.wide = writer._body.wide = wide  # type: ignore[attr-defined]
    write(made.rows(opened.model, opened.log, 64), writer)
    return out.getvalue()


def check(data: bytes) -> None:
    """Two bytes of choices, then a profile."""
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    from_ = "cachegrind" if how & 1 else "callgrind"
    lenient = bool(how & 2)
    looked_at = LOOKED_AT[how >> 4 & 3]
    if looked_at in (READ_IN_WINDOWS, READ_BY_WIDTH):
        window, capacity, wide = WHOLE, 64, sizes % WIDE
        if looked_at == READ_IN_WINDOWS:
            window, capacity = WINDOWS[sizes % len(WINDOWS)], CAPACITIES[sizes // len(WINDOWS) % len(CAPACITIES)]
            wide = WIDE
        other = outcome(data, from_, lenient, window, capacity, wide)
        assert other == outcome(data, from_, lenient, WHOLE, 64), (window, capacity, lenient, wide)
        return
    options = Options(lenient=True, compress_names=not how & 4, compress_positions=not how & 8)
    try:
        if looked_at == WRITTEN_TWICE:
            # The first reading binds a jump that precedes its function to a separate place.
            first = written(data, from_, "callgrind", False, options)
            once = written(first, "callgrind", "callgrind", False, options)
            assert written(once, "callgrind", "callgrind", False, options, sizes % WIDE) == once
        elif sizes & 1:
            written(data, from_, "callgrind", True, options)
        else:
            written(data, from_, "cachegrind", False, options)
    except FastprofError as error:
        # a sum that does not fit, or only lines that a graph has no room for
        assert "2^63" in str(error) or "no readable costs" in str(error), error


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for name in ("callgrind", "cachegrind"):
        for path in sorted(libfuzzer.CORPUS.glob(f"{name}/*/*.{name}")):
            for lenient, looked_at in product((0, 2), LOOKED_AT):
                data = bytes([(name == "cachegrind") | lenient | looked_at << 4, 7]) + path.read_bytes()
                found[f"{path.parts[-2]}-{path.name}-{lenient}-{looked_at}"] = data
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
