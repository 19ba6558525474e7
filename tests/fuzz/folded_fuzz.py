"""Fuzzes the lexer of folded stacks, which is Cython, and their writer (libfuzzer.py).

The first bytes of an input choose how the rest, a profile, is read: it is read in two window sizes (the same rows,
counts and losses, or the same error), and by the slow reader; then written, and written again (the same bytes).
"""

from __future__ import annotations

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from fastprof.core.streams import compression_of_bytes
from tests.reference import folded as reference
from tests.support.stackdump import dump, rewrite

WORDS = rb"\x20 ; \x09 # \x0d\x0a \xef\xbb\xbf 9223372036854775807 9223372036854775808 .5 1. \x201\x20 \xe2\x80\xa8 _#"
CHUNKS = (1, 2, 7, 100)


def outcome(data: bytes, options: Options, chunk: int | None, capacity: int | None) -> object:
    try:
        found = dump(data, "folded", chunk=chunk, capacity=capacity, options=options)
    except FormatError as error:
        return str(error)
    return [(stack, values) for stack, _, values in found.rows], found.report.repairs, found.report.losses


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    lenient, n_counts, decimals = bool(how & 1), 1 + (how >> 1 & 1), how >> 2 & 7
    options = Options(lenient=lenient, counts=n_counts, decimals=decimals)
    whole = outcome(data, options, None, None)
    assert outcome(data, options, CHUNKS[sizes % 4], 1 + sizes // 4) == whole
    try:
        expected = reference.read(data, n_counts, decimals, lenient)
    except ValueError as error:
        assert isinstance(whole, str) and f"line {error.args[0]}," in whole, (whole, error)
        return
    assert isinstance(whole, tuple), whole
    assert [(tuple(f[3][0][0] for f in reversed(stack)), values) for stack, values in whole[0]] == expected.rows
    once = rewrite(data, "folded", "folded", Options(lenient=True, counts=n_counts))[0]
    if compression_of_bytes(once):
        return
    twice = rewrite(once, "folded", "folded", Options(counts=1))[0]
    assert twice == once


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("folded/*/*.folded")):
        for lenient in (0, 1):
            found[f"{path.parts[-2]}-{path.name}-{lenient}"] = bytes([lenient, 7]) + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
