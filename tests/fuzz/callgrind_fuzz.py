"""Fuzzes the Callgrind and Cachegrind tokenizer, writers and the aggregator, which are Cython and C.

    python -m tests.fuzz.callgrind_fuzz [--seconds 60] [--seed 1]

Mutates the corpus; every input is read in two window sizes (the same rows or the same error), then written,
summed up and read again.  Meant for a build with FASTPROF_SANITIZE=1, run with
LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0.  Prints the input that fails.
"""

from __future__ import annotations

import argparse
import difflib
import io
import random
import time
from pathlib import Path

from fastprof.bridges.aggregate import aggregate
from fastprof.engine import Options, read, write
from fastprof.errors import FastprofError
from fastprof.formats import get
from fastprof.io import Sink
from tests.graphs import read_parts
from tests.product import open_input

CORPUS = Path(__file__).parents[1] / "corpus"
WORDS = [
    *(b"fn= fl= fi= fe= ob= cfn= cfi= cob= calls= jump= jcnd= jfi= jfn= rcalls= totals: summary: part: events:".split()),
    *(b"positions: (1) (1)\n (2)x 0x ffffffffffffffff 18446744073709551615 9223372036854775808 4294967296".split()),
    *(b"+ - * / . , : = ( ) # \0 \xff '2'(1)".split()),
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"\ncalls=1 5\n* 7\n",
    b"\npositions: instr bb line\nevents: A B C\n",
    b"==== NEW PROFILING FILE ====\n",
    b"events: A A B\n",
]


def mutate(data: bytes, other: bytes, r: random.Random) -> bytes:
    at = r.randrange(len(data) + 1)
    n = r.choice((0, 1, 2, 8, 40))
    match r.randrange(6):
        case 0:
            return data[:at] + bytes([r.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + r.choice(WORDS) + data[at + n :]
        case 2:
            return data[:at] + data[at + n :]
        case 3:
            start = r.randrange(len(other) + 1)
            return data[:at] + other[start : start + r.randrange(200)] + data[at + n :]
        case 4:
            lines = data.split(b"\n")
            i, j = r.randrange(len(lines)), r.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            return b"\n".join(lines)
        case _:
            return data[:at]


def outcome(data: bytes, from_: str, lenient: bool, window: int, capacity: int) -> object:
    try:
        parts, report = read_parts(data, Options(lenient=lenient), window, capacity, from_)
    except FastprofError as error:
        return str(error)
    return [(p.events, p.positions, p.rows) for p in parts], report.losses


def written(data: bytes, from_: str, to: str, sums: bool, options: Options) -> bytes:
    opened = open_input(data, options, from_=from_)
    out = io.BytesIO()
    batches = read(opened.reader)
    if sums:
        batches = aggregate(batches, opened.model, options, opened.report)
    make = get(to).writer
    assert make is not None
    write(batches, make(opened.model, Sink(out), options, opened.report))
    return out.getvalue()


def check(data: bytes, from_: str, r: random.Random) -> None:
    lenient = r.random() < 0.5
    window, capacity = r.choice((1, 3, 17, 100, 1000)), r.choice((1, 2, 7, 1000))
    whole = outcome(data, from_, lenient, 1 << 16, 1000)
    assert outcome(data, from_, lenient, window, capacity) == whole, (window, capacity, lenient)
    options = Options(lenient=True, compress_names=r.random() < 0.7, compress_positions=r.random() < 0.7)
    try:
        # A jump that comes before its function is bound to a place of its own by the first reading.
        first = written(data, from_, "callgrind", False, options)
        once = written(first, "callgrind", "callgrind", False, options)
        twice = written(once, "callgrind", "callgrind", False, options)
        assert twice == once, "\n".join(difflib.unified_diff(*(repr(x)[2:-1].split("\\n") for x in (once, twice)), lineterm=""))
        written(data, from_, "callgrind", True, options)
        written(data, from_, "cachegrind", False, options)
    except FastprofError as error:
        assert "2^63" in str(error), error  # a sum that does not fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    r = random.Random(args.seed)
    corpus = [(p.read_bytes(), p.parts[-3]) for f in ("callgrind", "cachegrind") for p in sorted(CORPUS.glob(f"{f}/*/*"))]
    end, n = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        data, from_ = r.choice(corpus)
        data = data[:4000]
        for _ in range(r.randrange(1, 8)):
            data = mutate(data, r.choice(corpus)[0], r)
        try:
            check(data, from_, r)
        except BaseException:
            print(f"input {n} of seed {args.seed} ({from_}): {data!r}")
            raise
        n += 1
    print(f"{n} inputs, no failure")


if __name__ == "__main__":
    main()
